//! The bytes of a document and what they are.

use std::{
    io::{self, Read},
    path::Path,
};

use sha2::{Digest, Sha256};

use super::{Document, DocumentError, Kind, Origin, text};
use crate::{Format, Outside};

/// How much of a file is looked at to tell whether it is text, in bytes.
const SAMPLE: u64 = 8192;

/// A document as it was found.
pub(crate) struct Raw {
    kind: Kind,
    bytes: Vec<u8>,
    pub(crate) sha256: [u8; 32],
    /// Whether it may be empty.
    found: bool,
    shown: String,
}

/// Reads a document of at most `limit` bytes.
pub(crate) async fn read(document: &Document, limit: u64, outside: &Outside) -> Result<Raw, DocumentError> {
    let shown = document.shown.clone();
    let name = || document.shown.clone();
    let (kind, bytes, found) = match &document.origin {
        Origin::File { path, found } => {
            let (path, found, shown) = (path.clone(), *found, shown.clone());
            let bytes = tokio::task::spawn_blocking(move || read_file(&path, &shown, limit)).await;
            let unreadable = |reason: String| DocumentError::Unreadable { document: name(), reason };
            let bytes = bytes.map_err(|error| unreadable(error.to_string()))??;
            (Kind::of_path(&document.shown).unwrap_or(Kind::Text), bytes, found)
        }
        Origin::Url(url) => {
            let fetched = outside.fetch.get(url).await;
            let fetched = fetched.map_err(|cause| DocumentError::Fetch { document: name(), cause })?;
            let path = url::Url::parse(url).map(|url| url.path().to_owned()).unwrap_or_default();
            let kind = Kind::of_content(&fetched.content_type, &path);
            (kind.map_err(|format| DocumentError::Format { document: name(), format })?, fetched.bytes, false)
        }
        Origin::Loader { name: loader, path } => {
            let failed = |cause| DocumentError::Load { document: name(), loader: loader.clone(), cause };
            let text = outside.loader.load(loader, path).await.map_err(failed)?;
            // What a loader gives is text already, also of a PDF.
            let kind = Kind::of_path(path).filter(|kind| !matches!(kind, Kind::Foreign(_)));
            (kind.unwrap_or(Kind::Text), text.into_bytes(), false)
        }
    };
    if bytes.len() as u64 > limit {
        return Err(DocumentError::TooLarge { document: shown, size: bytes.len() as u64, limit });
    }
    let sha256 = Sha256::digest(&bytes).into();
    Ok(Raw { kind, bytes, sha256, found, shown })
}

impl Raw {
    /// How many bytes it has.
    pub(crate) fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Its text and how that is cut; `None` is an empty document that may be left out.
    pub(crate) async fn text(self, outside: &Outside) -> Result<Option<(Kind, String)>, DocumentError> {
        let Self { kind, bytes, found, shown, .. } = self;
        if bytes.is_empty() {
            return if found { Ok(None) } else { Err(DocumentError::Empty { document: shown }) };
        }
        let (kind, text) = match kind {
            Kind::Foreign(format) => {
                let text = outside.extract.text(format, bytes).await;
                let failed = |cause| DocumentError::Extract { document: shown.clone(), format, cause };
                // What comes of a web page has the marks of Markdown.
                let kind = if format == Format::Html { Kind::Markdown } else { Kind::Text };
                (kind, text.map_err(failed)?)
            }
            kind => {
                let text = text::decode(bytes);
                (kind, text.map_err(|reason| DocumentError::NotText { document: shown.clone(), reason })?)
            }
        };
        if !text.trim().is_empty() {
            return Ok(Some((kind, text)));
        }
        if found { Ok(None) } else { Err(DocumentError::Empty { document: shown }) }
    }
}

/// Reads a file whose size is looked at first, and once more while reading.
fn read_file(path: &Path, shown: &str, limit: u64) -> Result<Vec<u8>, DocumentError> {
    let document = || shown.to_owned();
    let unreadable = |error: io::Error| DocumentError::Unreadable { document: document(), reason: error.to_string() };
    let (file, metadata) = hotcell_files::open_regular(path).map_err(unreadable)?;
    let size = metadata.len();
    if size > limit {
        return Err(DocumentError::TooLarge { document: document(), size, limit });
    }
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(bytes)
}

/// Whether the beginning of a file is text in UTF-8. An empty file is.
pub(super) fn seems_text(path: &Path) -> bool {
    sample(path).is_ok_and(|sample| !sample.contains(&0) && text::is_utf8_beginning(&sample))
}

/// Whether the beginning of a file has what no text has, whatever its name says. Text in UTF-16 is none of that: it is
/// text of the wrong encoding, which somebody should know.
pub(super) fn is_binary(path: &Path) -> bool {
    sample(path).is_ok_and(|sample| sample.contains(&0) && !text::is_utf16(&sample))
}

fn sample(path: &Path) -> io::Result<Vec<u8>> {
    let mut sample = Vec::new();
    hotcell_files::open_regular(path)?.0.take(SAMPLE).read_to_end(&mut sample)?;
    Ok(sample)
}
