//! `curl`, as far as scripts use it: one request, whole bodies, sent by the host within what is granted.

mod options;

use std::path::Path;

use bashkit::{Builtin, BuiltinContext, ExecResult, Result, async_trait, vfs_join};
use url::Url;

use self::options::{Data, Options};
use crate::bindings::hotcell::cell::http;

/// Exit codes of curl's.
const USAGE: i32 = 2;
const MALFORMED_ADDRESS: i32 = 3;
const NOT_REACHED: i32 = 7;
const SERVER_FAILED: i32 = 22;
const CANNOT_WRITE: i32 = 23;
const CANNOT_READ: i32 = 26;
const TOO_SLOW: i32 = 28;
const TOO_MANY_REDIRECTS: i32 = 47;

/// The command.
pub(crate) struct Curl;

/// Why it fails: the exit code and the words.
type Failure = (i32, String);

#[async_trait]
impl Builtin for Curl {
    async fn execute(&self, context: BuiltinContext<'_>) -> Result<ExecResult> {
        let options = match Options::read(context.args) {
            Ok(options) => options,
            Err(problem) => return Ok(ExecResult::err(format!("curl: {problem}\n"), USAGE)),
        };
        let mut out = Vec::new();
        let failure = run(&options, &context, &mut out).await.err();
        let (code, words) = failure.unwrap_or_default();
        let told = code != 0 && (!options.silent || options.show_error);
        Ok(ExecResult {
            stderr: if told { format!("curl: ({code}) {words}\n").into() } else { Vec::new().into() },
            exit_code: code,
            ..ExecResult::ok_bytes(out)
        })
    }
}

/// Asks, and puts what belongs on standard output into `out`.
async fn run(options: &Options, context: &BuiltinContext<'_>, out: &mut Vec<u8>) -> std::result::Result<(), Failure> {
    let mut request = request_of(options, body(options, context).await?)?;
    let mut shown = Vec::new();
    let mut redirects = 0;
    let answer = loop {
        let answer = ask(&request)?;
        if options.include || options.head {
            shown.extend_from_slice(&head(&answer));
        }
        let place = answer.headers.iter().find(|(name, _)| name == "location" && (300..400).contains(&answer.status));
        let Some((_, place)) = place.filter(|_| options.follow) else { break answer };
        if redirects == options.redirects {
            return Err((TOO_MANY_REDIRECTS, format!("Maximum ({redirects}) redirects followed")));
        }
        redirects += 1;
        follow(&mut request, answer.status, &String::from_utf8_lossy(place), options.method.is_some())?;
    };
    let refused = answer.status >= 400;
    if !(refused && options.fail) {
        shown.extend_from_slice(&answer.body);
    }
    match &options.output {
        Some(file) => {
            let path = vfs_join(context.cwd, file);
            let written = context.fs.write_file(&path, &shown).await;
            written.map_err(|error| (CANNOT_WRITE, format!("cannot write `{file}`: {error}")))?;
        }
        None => out.append(&mut shown),
    }
    out.extend_from_slice(write_out(&options.write_out, &answer, &request.url).as_bytes());
    if refused && (options.fail || options.fail_with_body) {
        return Err((SERVER_FAILED, format!("The requested URL returned error: {}", answer.status)));
    }
    Ok(())
}

/// The data of all options in one; none if there is no such option.
async fn body(options: &Options, context: &BuiltinContext<'_>) -> std::result::Result<Option<Vec<u8>>, Failure> {
    let mut body: Option<Vec<u8>> = None;
    for data in &options.data {
        let part = match data {
            Data::Raw(text) => text.as_bytes().to_vec(),
            Data::Text(text) => match text.strip_prefix('@') {
                Some(file) => {
                    let mut read = read(file, context).await?;
                    read.retain(|byte| !matches!(byte, b'\r' | b'\n' | 0));
                    read
                }
                None => text.as_bytes().to_vec(),
            },
            Data::Binary(text) => match text.strip_prefix('@') {
                Some(file) => read(file, context).await?,
                None => text.as_bytes().to_vec(),
            },
            Data::Encoded(text) => {
                let (name, value) = text.split_once('=').map_or(("", text.as_str()), |(name, value)| (name, value));
                let mark = if name.is_empty() { "" } else { "=" };
                let value: String = url::form_urlencoded::byte_serialize(value.as_bytes()).collect();
                format!("{name}{mark}{}", value.replace('+', "%20")).into_bytes()
            }
        };
        match &mut body {
            Some(body) => {
                if !options.json {
                    body.push(b'&');
                }
                body.extend(part);
            }
            None => body = Some(part),
        }
    }
    Ok(body)
}

async fn read(file: &str, context: &BuiltinContext<'_>) -> std::result::Result<Vec<u8>, Failure> {
    if file == "-" {
        return Ok(context.stdin.map(|stdin| stdin.as_bytes().to_vec()).unwrap_or_default());
    }
    let read = context.fs.read_file(&vfs_join(context.cwd, Path::new(file))).await;
    read.map_err(|error| (CANNOT_READ, format!("cannot read `{file}`: {error}")))
}

fn request_of(options: &Options, body: Option<Vec<u8>>) -> std::result::Result<http::Request, Failure> {
    let text = if options.url.contains("://") { options.url.clone() } else { format!("http://{}", options.url) };
    let malformed = |error| (MALFORMED_ADDRESS, format!("`{}` is no address: {error}", options.url));
    let mut url = Url::parse(&text).map_err(malformed)?;
    let mut headers: Vec<(String, Vec<u8>)> = Vec::new();
    for (name, value) in &options.headers {
        headers.push((name.clone(), value.clone().into_bytes()));
    }
    let mut offer = |name: &str, value: &str| {
        if !headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
            headers.push((name.to_owned(), value.as_bytes().to_vec()));
        }
    };
    let mut method = "GET";
    let body = match body {
        Some(query) if options.get => {
            let query = String::from_utf8_lossy(&query).into_owned();
            let before = url.query().map(|before| format!("{before}&")).unwrap_or_default();
            url.set_query(Some(&format!("{before}{query}")));
            Vec::new()
        }
        Some(body) => {
            method = "POST";
            let kind = if options.json { "application/json" } else { "application/x-www-form-urlencoded" };
            offer("content-type", kind);
            body
        }
        None => Vec::new(),
    };
    if options.head {
        method = "HEAD";
    }
    offer("accept", if options.json { "application/json" } else { "*/*" });
    offer("user-agent", "hotcell");
    let method = options.method.clone().unwrap_or_else(|| method.to_owned());
    Ok(http::Request { method, url: url.into(), headers, body, timeout: options.timeout })
}

fn ask(request: &http::Request) -> std::result::Result<http::Response, Failure> {
    http::start(request);
    // One request at a time is under way, so it is this one that is done.
    match http::wait(None) {
        Some((_, http::Outcome::Answered(answer))) => Ok(answer),
        Some((_, http::Outcome::TimedOut(reason))) => Err((TOO_SLOW, reason)),
        Some((_, http::Outcome::Invalid(reason))) => Err((MALFORMED_ADDRESS, reason)),
        Some((_, http::Outcome::Denied(reason) | http::Outcome::Failed(reason))) => Err((NOT_REACHED, reason)),
        None => Err((NOT_REACHED, "the host knows nothing of the request".to_owned())),
    }
}

/// Turns a request into the one that a redirect leads to.
fn follow(
    request: &mut http::Request,
    status: u16,
    place: &str,
    method_is_given: bool,
) -> std::result::Result<(), Failure> {
    let malformed =
        |error| (MALFORMED_ADDRESS, format!("the server sends on to `{place}`, which is no address: {error}"));
    let before = Url::parse(&request.url).map_err(malformed)?;
    let next = before.join(place).map_err(malformed)?;
    let becomes_get = match status {
        303 => request.method != "HEAD",
        301 | 302 => request.method == "POST",
        _ => false,
    };
    if becomes_get && !method_is_given {
        request.method = "GET".to_owned();
        request.body.clear();
        request.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-type"));
    }
    if next.origin() != before.origin() {
        // What proves to one server who asks is not for another.
        let private = ["authorization", "cookie"];
        request.headers.retain(|(name, _)| !private.iter().any(|known| name.eq_ignore_ascii_case(known)));
    }
    request.url = next.into();
    Ok(())
}

/// The status line and the headers of an answer.
fn head(answer: &http::Response) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {} {}\r\n", answer.status, answer.reason).into_bytes();
    for (name, value) in &answer.headers {
        head.extend_from_slice(name.as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value);
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head
}

/// The text of `-w` with what it asks for; a variable that is not known stays as it is. It is read once from beginning to end,
/// so that nothing that a server says is taken for a part of it.
fn write_out(format: &str, answer: &http::Response, url: &str) -> String {
    let variable = |name: &str| match name {
        "http_code" | "response_code" => Some(format!("{:03}", answer.status)),
        "content_type" => {
            let kind = answer.headers.iter().find(|(name, _)| name == "content-type");
            Some(kind.map(|(_, kind)| String::from_utf8_lossy(kind).into_owned()).unwrap_or_default())
        }
        "size_download" => Some(answer.body.len().to_string()),
        "url_effective" => Some(url.to_owned()),
        _ => None,
    };
    let mut text = String::new();
    let mut rest = format;
    while let Some(at) = rest.find(['%', '\\']) {
        let (before, mark) = rest.split_at(at);
        text.push_str(before);
        let named = mark.strip_prefix("%{").and_then(|named| named.split_once('}'));
        let known = named.and_then(|(name, behind)| Some((variable(name)?, behind)));
        let plain = [("\\n", "\n"), ("\\t", "\t"), ("%%", "%")];
        let plain = plain.iter().find_map(|(mark_of, sign)| Some(((*sign).to_owned(), mark.strip_prefix(mark_of)?)));
        let (part, behind) = known.or(plain).unwrap_or_else(|| (mark[..1].to_owned(), &mark[1..]));
        text.push_str(&part);
        rest = behind;
    }
    text + rest
}
