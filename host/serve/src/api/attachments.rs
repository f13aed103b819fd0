//! Attachments: sending them, and having them back.

use axum::Json;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse as _, Response};
use hotcell_visible::is_hidden;
use http::header::{CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, StatusCode};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extract::read;
use super::params::Query;
use crate::attachments::{Attachment, Digest, Document, Kept, MOST_BYTES, MOST_KEPT, Said};
use crate::problem::{Problem, shown};
use crate::state::Server;

/// Bytes of a name.
const LONGEST_NAME: usize = 255;
/// Characters of each part of a media type (RFC 6838).
const LONGEST_PART: usize = 127;
/// What a body is that nobody says anything about.
const ANYTHING: &str = "application/octet-stream";
/// What forms are sent as: their body is more than the file in it, or less.
const FORMS: [&str; 2] = ["multipart/form-data", "application/x-www-form-urlencoded"];

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(create)).routes(routes!(get))
}

/// The name of a file, which is in no folder and is what it looks like.
fn checked_name(name: String) -> Result<String, Problem> {
    let is_plain = |character: char| !is_hidden(character) && !matches!(character, '/' | '\\');
    let fits = (1..=LONGEST_NAME).contains(&name.len()) && name.chars().all(is_plain) && !matches!(&*name, "." | "..");
    match fits {
        true => Ok(name),
        false => Err(Problem::unprocessable(format!(
            "`{}` is not a valid name: it has to have 1 to {LONGEST_NAME} bytes, without slashes and characters that nobody sees",
            shown(&name)
        ))),
    }
}

/// The media type that a request says its body has, without parameters.
fn media_type(headers: &HeaderMap) -> Result<String, Problem> {
    let Some(said) = headers.get(CONTENT_TYPE) else { return Ok(ANYTHING.to_owned()) };
    let said = said.to_str().unwrap_or_default();
    let kind = said.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_part = |part: &str| {
        (1..=LONGEST_PART).contains(&part.len())
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
    };
    let refused = |detail: String| Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
    match kind.split_once('/') {
        _ if FORMS.contains(&kind.as_str()) => refused(format!(
            "the body has to be the document itself, not a form; send its type as `Content-Type`, or `{ANYTHING}`"
        )),
        Some((first, second)) if is_part(first) && is_part(second) => Ok(kind),
        _ => refused(format!("`{}` is not a valid `Content-Type`; an example is `application/pdf`", shown(said))),
    }
}

/// Send a document to which inputs, values of a state and answers can refer
///
/// `reference` of the reply is a text that stands for it. Where a question has it in its text, its context or its arguments, the inbox lists the
/// document. The same bytes are kept once, under the name and the type with which they were first sent. A document is kept as long as a run
/// exists that was given its reference; without one, it is kept for a day.
#[utoipa::path(
    post, path = "/attachments", tag = "People", security(("key" = ["run", "answer"])),
    params(
        ("name" = Option<String>, Query, description = "The name of its file: at most 255 bytes, without slashes"),
        ("digest" = Option<String>, Query, description = "What its digest has to be, as `sha256:` and 64 lower-case hexadecimal digits; it is refused if it has another one"),
    ),
    request_body(content_type = "application/octet-stream", description = "The document; `Content-Type` says what it is"),
    responses(
        (status = 201, description = "It is kept", body = Attachment),
        (status = 200, description = "It was kept before", body = Attachment),
    )
)]
async fn create(
    State(server): State<Server>,
    mut query: Query,
    request: Request,
) -> Result<(StatusCode, Json<Attachment>), Problem> {
    let name = query.text("name").map(checked_name).transpose()?;
    let wanted = query.text("digest");
    query.end()?;
    let said = Said { name, media_type: media_type(request.headers())? };
    let settings = server.settings();
    let bytes = read(request, settings.largest_body, settings.body_within).await?;
    if bytes.is_empty() {
        return Err(Problem::unprocessable("the body is empty; it has to be the document"));
    }
    let digest = Digest::of(&bytes);
    if let Some(wanted) = wanted.filter(|wanted| wanted.parse::<Digest>() != Ok(digest)) {
        let detail = format!("the digest of the body is `{digest}`, and not `{}`", shown(&wanted));
        return Err(Problem::unprocessable(detail).kind("other-digest", "The body has another digest"));
    }
    match server.runs().attachments().keep(&digest, &said, &bytes, server.clock().now())? {
        Kept::New(attachment) => Ok((StatusCode::CREATED, Json(attachment))),
        Kept::Before(attachment) => Ok((StatusCode::OK, Json(attachment))),
        Kept::Full => {
            let detail = format!(
                "there is no room for it: at most {MOST_KEPT} attachments with {MOST_BYTES} bytes in total are kept; remove runs that are not needed any more, and their attachments go a day later"
            );
            Err(Problem::conflict(detail).kind("attachments-full", "There is no room for attachments"))
        }
    }
}

/// Download a document
///
/// It always comes as a download of unknown type, so that no browser shows or runs it as part of this server. What it is said to be is in
/// the list of the inbox.
#[utoipa::path(
    get, path = "/attachments/{digest}", tag = "People", security(("key" = ["run", "answer", "operate", "administer"])),
    params(("digest" = String, Path, description = "Its digest, as `sha256:` and 64 lower-case hexadecimal digits")),
    responses((status = 200, content_type = "application/octet-stream", description = "The document"))
)]
async fn get(State(server): State<Server>, Path(digest): Path<String>) -> Result<Response, Problem> {
    let found = match digest.parse::<Digest>() {
        Ok(digest) => server.runs().attachments().document(&digest)?,
        Err(_) => None,
    };
    let none = || Problem::not_found(format!("there is no attachment `{}`", shown(&digest)));
    let Document { name, bytes } = found.ok_or_else(none)?;
    let mut response = bytes.into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(ANYTHING));
    headers.insert(CONTENT_DISPOSITION, disposition(name.as_deref())?);
    headers.insert(
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'; sandbox"),
    );
    Ok(response)
}

/// Says that something is to be saved, by which name (RFC 8187).
fn disposition(name: Option<&str>) -> Result<HeaderValue, Problem> {
    let Some(name) = name else { return Ok(HeaderValue::from_static("attachment")) };
    let mut text = String::from("attachment; filename*=UTF-8''");
    for byte in name.bytes() {
        match byte {
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'-' | b'.' | b'_' => text.push(char::from(byte)),
            other => text += &format!("%{other:02X}"),
        }
    }
    HeaderValue::try_from(text).map_err(|error| Problem::internal(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_into_no_folder_and_is_what_it_looks_like() {
        for name in ["a", "invoice 7.pdf", "Übersicht, «neu».txt", "..a", "👩\u{200d}👧.png", &"x".repeat(255)] {
            assert_eq!(checked_name(name.to_owned()).as_deref(), Ok(name));
        }
        for name in [
            "",
            ".",
            "..",
            "/etc/passwd",
            "../x",
            "a\\b",
            "a\r\nX-Evil: 1",
            "a\0",
            "a\u{7f}",
            "invoice\u{202e}fdp.exe",
            "zero\u{200b}width",
            &"x".repeat(256),
        ] {
            assert_eq!(checked_name(name.to_owned()).map_err(|problem| problem.status), Err(422), "{name:?}");
        }
    }

    #[test]
    fn a_media_type_is_two_words() {
        let of = |said: &'static [u8]| {
            let value = HeaderValue::from_bytes(said).expect("a header");
            media_type(&HeaderMap::from_iter([(CONTENT_TYPE, value)])).map_err(|problem| problem.status)
        };
        assert_eq!(media_type(&HeaderMap::new()).as_deref(), Ok(ANYTHING));
        assert_eq!(of(b"Application/PDF").as_deref(), Ok("application/pdf"));
        assert_eq!(of(b"text/plain; charset=utf-8").as_deref(), Ok("text/plain"));
        assert_eq!(of(b"application/vnd.x+json").as_deref(), Ok("application/vnd.x+json"));
        for said in [
            &b""[..],
            b"text",
            b"text/",
            b"/plain",
            b"text/plain/x",
            b"text/pl ain",
            b"text/\xff",
            b"text/<b>",
            b"text/plain,text/html",
            b"multipart/form-data; boundary=x",
            b"application/x-www-form-urlencoded",
        ] {
            assert_eq!(of(said), Err(415), "{said:?}");
        }
    }

    #[test]
    fn a_name_adds_nothing_to_the_header_that_it_is_in() {
        let of = |name: &str| disposition(Some(name)).expect("a header").to_str().expect("text").to_owned();
        assert_eq!(of("a-b_c.pdf"), "attachment; filename*=UTF-8''a-b_c.pdf");
        assert_eq!(of("é\"; x='y'\r\n%41"), "attachment; filename*=UTF-8''%C3%A9%22%3B%20x%3D%27y%27%0D%0A%2541");
        assert_eq!(disposition(None).expect("a header"), "attachment");
    }
}
