//! Reads PDF and HTML files as text.
//!
//! It reads the directories that the operator granted it (capability `fs`) and no others. PDF becomes text with
//! [`pdf_extract`], HTML with [`html2text`]; there is no recognition of pictures, so a scanned page has no text. What is
//! damaged is an error with its reason. Some damage inside of fonts and pages makes the library give up in a way that ends
//! the cell; then the call fails as a trap, and nothing else does.

mod html;
mod pdf;

use std::path::Path;

use hotcell_plugin::{Error, Value, plugin, tool};

plugin! { tools: [read_document], capabilities: { fs: { "/documents": read } } }

/// Bytes of a file that are read.
const SIZE: u64 = 64 << 20;

/// A format of documents.
#[derive(Clone, Copy, Debug, PartialEq, Value)]
#[value(rename_all = "lowercase")]
enum Format {
    /// Portable Document Format.
    Pdf,
    /// Web pages.
    Html,
    /// Plain text in UTF-8, given as it is.
    Text,
}

/// A document as text.
#[derive(Debug, PartialEq, Value)]
struct Document {
    /// What it says.
    text: String,
    /// Its title, if it has one.
    title: Option<String>,
    /// How many pages it has, if it has pages.
    pages: Option<usize>,
}

/// Reads a PDF or HTML file and gives its text.
#[tool(read_only)]
fn read_document(
    /// The file, in a directory that was granted, such as `/documents/report.pdf`.
    path: &str,
    /// What it is; left out, it is told by its first bytes and its name.
    format: Option<Format>,
) -> Result<Document, Error> {
    let bytes = read(path)?;
    if bytes.is_empty() {
        return Err(Error::invalid_input(format!("`{path}` is empty")));
    }
    let refuse = |reason: String| Error::invalid_input(format!("`{path}` {reason}"));
    match format.unwrap_or_else(|| guess(path, &bytes)) {
        Format::Pdf => pdf::read(&bytes).map_err(refuse),
        Format::Html => html::read(&bytes).map_err(refuse),
        Format::Text => match String::from_utf8(bytes) {
            Ok(text) => Ok(Document { text, title: None, pages: None }),
            Err(error) => {
                let at = error.utf8_error().valid_up_to();
                Err(refuse(format!("is neither PDF nor HTML nor text in UTF-8 (byte {at} begins no character)")))
            }
        },
    }
}

fn read(path: &str) -> Result<Vec<u8>, Error> {
    let failed = |error: std::io::Error| Error::invalid_input(format!("`{path}` cannot be read: {error}"));
    let size = std::fs::metadata(path).map_err(failed)?.len();
    if size > SIZE {
        return Err(Error::invalid_input(format!("`{path}` has {size} bytes, more than {SIZE}")));
    }
    std::fs::read(path).map_err(failed)
}

fn guess(path: &str, bytes: &[u8]) -> Format {
    let extension = Path::new(path).extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    match extension.to_ascii_lowercase().as_str() {
        _ if pdf::is_pdf(bytes) => Format::Pdf,
        "pdf" => Format::Pdf,
        "html" | "htm" | "xhtml" => Format::Html,
        _ => Format::Text,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use hotcell_plugin::testing::Surroundings;
    use hotcell_plugin::{Error, Json, json};

    use super::PLUGIN;
    use super::pdf::tests::pdf;

    fn file(name: &str, bytes: &[u8]) -> Result<PathBuf, Error> {
        let folder = std::env::temp_dir().join(format!("hotcell-documents-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let path = folder.join(name);
        std::fs::write(&path, bytes)?;
        Ok(path)
    }

    fn read(name: &str, bytes: &[u8], format: Json) -> Result<Json, Error> {
        let path = file(name, bytes)?;
        let arguments = json!({"path": path.to_string_lossy(), "format": format});
        let result = Surroundings::new().run(|| PLUGIN.call_tool("read_document", arguments)).result;
        std::fs::remove_file(path)?;
        result
    }

    #[test]
    fn documents_become_text() {
        let page = pdf(&["Hello cell", "Second page"], Some("A report"));
        for (name, format) in [("a.pdf", Json::Null), ("b", Json::Null), ("c.txt", json!("pdf"))] {
            let read = read(name, &page, format).unwrap_or_else(|error| json!(error.to_string()));
            assert_eq!((&read["title"], &read["pages"]), (&json!("A report"), &json!(2)), "{name}: {read}");
            let text = read["text"].as_str().unwrap_or_default();
            assert!(text.contains("Hello cell") && text.contains("Second page"), "{text:?}");
        }
        let html =
            b"<html><head><title>T &amp; U</title><script>x()</script></head><body><h1>News</h1><p>One</p></body>";
        let read_html = read("d.html", html, Json::Null).unwrap_or_default();
        assert_eq!(read_html["title"], "T & U");
        let text = read_html["text"].as_str().unwrap_or_default();
        assert!(text.contains("# News") && text.contains("One") && !text.contains("x()"), "{text}");
        let plain = read("e.md", b"# Plain", Json::Null);
        assert_eq!(plain, Ok(json!({"text": "# Plain", "title": null, "pages": null})));
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        let whole = pdf(&["Hello"], None);
        let half = &whole[..whole.len() / 2];
        for (name, bytes, format, part) in [
            ("bad-a.pdf", &b"no PDF"[..], Json::Null, "is not a PDF"),
            ("bad-b.pdf", half, Json::Null, "is damaged"),
            ("bad-c.pdf", b"%PDF-1.4\nrubbish", Json::Null, "is damaged"),
            ("bad-d.pdf", b"", Json::Null, "is empty"),
            ("bad-e.txt", b"\xff\xfe", Json::Null, "byte 0 begins no character"),
            ("bad-f.txt", b"x", json!("docx"), "format"),
        ] {
            let error = read(name, bytes, format).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains(part), "{name}: {error}");
        }
        let arguments = json!({"path": "/nowhere/x.pdf"});
        let error = Surroundings::new().run(|| PLUGIN.call_tool("read_document", arguments)).result;
        assert!(error.is_err_and(|error| error.message().contains("`/nowhere/x.pdf` cannot be read")));
    }

    #[test]
    fn cases_hold() {
        let problems = hotcell_plugin::testing::run_cases(&PLUGIN, concat!(env!("CARGO_MANIFEST_DIR"), "/cases"));
        assert_eq!(problems, Ok(Vec::new()));
    }
}
