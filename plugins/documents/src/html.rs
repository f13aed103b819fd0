//! From HTML to text.

use crate::Document;

/// Characters of a line of text.
const WIDTH: usize = 100;

/// The text of a web page. What is not UTF-8 in it is replaced.
pub(crate) fn read(bytes: &[u8]) -> Result<Document, String> {
    let html = String::from_utf8_lossy(bytes);
    let text = html2text::from_read(html.as_bytes(), WIDTH).map_err(|error| format!("has no text as HTML: {error}"))?;
    Ok(Document { text, title: title(&html), pages: None })
}

/// What stands in the first `title`.
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
