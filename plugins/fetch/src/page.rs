//! From what a server sent to text.

use fluent_uri::UriRef;
use fluent_uri::pct_enc::EString;
use fluent_uri::pct_enc::encoder::Data;
use hotcell_plugin::Error;
use hotcell_plugin::http::Response;

/// Characters of a line of text made from HTML.
const WIDTH: usize = 100;

/// The title, if there is one, and the text of a page.
pub(crate) fn text(response: &Response) -> Result<(Option<String>, String), Error> {
    let kind = response.header("content-type").unwrap_or("text/plain");
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let body = String::from_utf8_lossy(&response.body);
    match kind.as_str() {
        "text/html" | "application/xhtml+xml" => {
            let text = html2text::from_read(body.as_bytes(), WIDTH)
                .map_err(|error| Error::other(format!("the page cannot be made into text: {error}")))?;
            Ok((title(&body), text))
        }
        "application/json" | "application/xml" => Ok((None, body.into_owned())),
        kind if kind.starts_with("text/") || kind.ends_with("+json") || kind.ends_with("+xml") => {
            Ok((None, body.into_owned()))
        }
        other => Err(Error::invalid_input(format!("the page is `{other}`, which is not a text"))),
    }
}

/// What stands in the first `title` of a page.
fn title(html: &str) -> Option<String> {
    // Upper case of ASCII letters only, so that places in one text are places in the other.
    let lower = html.to_ascii_lowercase();
    let begin = lower.find("<title")?;
    let begin = begin + lower[begin..].find('>')? + 1;
    let end = begin + lower[begin..].find("</title")?;
    let text = html2text::config::plain_no_decorate().string_from_read(&html.as_bytes()[begin..end], 1000).ok()?;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    (!text.is_empty()).then_some(text)
}

/// The address that a page at `base` sends on to.
pub(crate) fn resolve(base: &str, location: &str) -> Result<String, Error> {
    let refuse = |problem: String| {
        Error::other(format!("`{base}` sends on to `{location}`, which is not a valid address: {problem}"))
    };
    let base = fluent_uri::Uri::parse(base).map_err(|error| refuse(error.to_string()))?;
    let location = UriRef::parse(location).map_err(|error| refuse(error.to_string()))?;
    // An address with a fragment is no base; it was the page's own and is left out.
    let resolved = location.resolve_against(&base.strip_fragment()).map_err(|error| refuse(error.to_string()))?;
    Ok(resolved.to_string())
}

/// A text as a part of an address.
pub(crate) fn encoded(text: &str) -> String {
    let mut encoded = EString::<Data>::new();
    encoded.encode_str::<Data>(text);
    encoded.into_string()
}
