//! What a list of documents names, and the text of each.
//!
//! Why this exists: a list says files, directories, globs, addresses and loaders in one kind of text. Here each entry
//! becomes the documents that it stands for, in a fixed order, each with the name under which it is shown, and each
//! document becomes text.
//!
//! What it must not do: read anything outside the folder (links included), or guess at an encoding.

mod kind;
mod named;
mod read;
mod text;
mod walk;

use std::path::PathBuf;

use thiserror::Error;

use crate::outside::{Format, OutsideError};

pub(crate) use kind::Kind;
pub(crate) use named::Named;
pub(crate) use read::{Raw, read};

/// One document that is to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Document {
    /// The name under which it is shown, in the way the list wrote it.
    pub(crate) shown: String,
    pub(crate) origin: Origin,
}

/// Where a document comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A file within the folder. One that was found in a directory may be empty.
    File {
        path: PathBuf,
        found: bool,
    },
    Url(String),
    Loader {
        name: String,
        path: String,
    },
}

/// The documents that a list stands for.
#[derive(Debug, Default)]
pub(crate) struct Documents {
    pub(crate) list: Vec<Document>,
    /// Files found in directories that are of no known format, and therefore left out.
    pub(crate) unknown: Vec<String>,
}

/// Why a list of documents cannot be followed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The folder of the agent is not there.
    #[error("the folder `{}` cannot be read: {reason}", .folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why not.
        reason: String,
    },
    /// An entry names nothing that exists.
    #[error("document `{entry}` is not there; create it or take it off the list")]
    NotFound {
        /// The entry.
        entry: String,
    },
    /// An entry leaves the folder.
    #[error("document `{entry}` is outside the folder `{}`; copy it there", .folder.display())]
    Outside {
        /// The entry, or the link that was found.
        entry: String,
        /// The folder.
        folder: PathBuf,
    },
    /// A pattern is none, or finds nothing.
    #[error("pattern `{entry}` {reason}")]
    Pattern {
        /// The entry.
        entry: String,
        /// What is wrong.
        reason: String,
    },
    /// An entry is of a form that means nothing.
    #[error("document `{entry}` {reason}")]
    Form {
        /// The entry.
        entry: String,
        /// What is wrong.
        reason: String,
    },
    /// A file or directory cannot be looked at.
    #[error("document `{entry}` cannot be read: {reason}")]
    Unreadable {
        /// The entry, or what was found in it.
        entry: String,
        /// Why not.
        reason: String,
    },
    /// The whole list stands for no document.
    #[error(
        "there is no document to read in {listed}: {unknown} files of unknown format and {empty} empty ones were left out"
    )]
    Nothing {
        /// The entries.
        listed: String,
        /// How many files were left out for their format.
        unknown: usize,
        /// How many were left out because they are empty.
        empty: usize,
    },
}

/// Why a document cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// It cannot be read.
    #[error("document `{document}` cannot be read: {reason}")]
    Unreadable {
        /// The document.
        document: String,
        /// Why not.
        reason: String,
    },
    /// It is larger than is accepted.
    #[error("document `{document}` has {size} bytes, and at most {limit} are read; split it or raise the limit")]
    TooLarge {
        /// The document.
        document: String,
        /// Its size in bytes.
        size: u64,
        /// The most bytes that are read.
        limit: u64,
    },
    /// It has no text.
    #[error("document `{document}` is empty; write something into it or take it off the list")]
    Empty {
        /// The document.
        document: String,
    },
    /// It is not text in UTF-8.
    #[error("document `{document}` is not text in UTF-8: {reason}; save it as UTF-8")]
    NotText {
        /// The document.
        document: String,
        /// What is wrong, and at which byte.
        reason: String,
    },
    /// It is of a format that is not read.
    #[error("document `{document}` is {format}, which is not read; convert it to text, Markdown or PDF")]
    Format {
        /// The document.
        document: String,
        /// What it is.
        format: String,
    },
    /// An address gave nothing.
    #[error("document `{document}` could not be fetched: {cause}")]
    Fetch {
        /// The document.
        document: String,
        /// Why not.
        #[source]
        cause: OutsideError,
    },
    /// A loader gave nothing.
    #[error("document `{document}` could not be loaded by `{loader}`: {cause}")]
    Load {
        /// The document.
        document: String,
        /// The loader.
        loader: String,
        /// Why not.
        #[source]
        cause: OutsideError,
    },
    /// The text could not be taken out of it.
    #[error("document `{document}` gives no text as {format}: {cause}")]
    Extract {
        /// The document.
        document: String,
        /// Its format.
        format: Format,
        /// Why not.
        #[source]
        cause: OutsideError,
    },
}
