//! From a list of documents to the documents.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use glob::{MatchOptions, Pattern};

use super::{Document, Documents, Kind, Named, Origin, SourceError, named, read};

/// How a pattern matches: as in a shell, where `*` finds no hidden file and no separator.
const MATCHING: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// The most files and directories that are looked at, and how deep directories may lie in each other.
const MOST_FILES: usize = 100_000;
const DEEPEST: usize = 64;

impl Documents {
    /// The documents that `entries` stand for, in their order, those of a directory or pattern sorted by path, each only
    /// where it comes first. Paths are relative to `folder` and do not leave it.
    pub(crate) fn find(folder: &Path, entries: &[String]) -> Result<Self, SourceError> {
        let unreadable = |error: io::Error| SourceError::Folder { folder: folder.into(), reason: error.to_string() };
        let root = folder.canonicalize().map_err(unreadable)?;
        if !root.is_dir() {
            return Err(SourceError::Folder { folder: folder.into(), reason: "it is not a directory".to_owned() });
        }
        let mut search =
            Search { folder, root, found: Self::default(), files: BTreeSet::new(), names: BTreeSet::new() };
        for entry in entries {
            match Named::parse(entry)? {
                Named::Url(url) => search.add(entry.clone(), Origin::Url(url)),
                Named::Loader { name, path } => search.add(entry.clone(), Origin::Loader { name, path }),
                Named::Path(path) => search.path(&path)?,
            }
        }
        Ok(search.found)
    }
}

struct Search<'a> {
    folder: &'a Path,
    /// The folder without links.
    root: PathBuf,
    found: Documents,
    /// The files and directories that have been come by, without links.
    files: BTreeSet<PathBuf>,
    names: BTreeSet<String>,
}

impl Search<'_> {
    fn add(&mut self, shown: String, origin: Origin) {
        if self.names.insert(shown.clone()) {
            self.found.list.push(Document { shown, origin });
        }
    }

    fn path(&mut self, entry: &str) -> Result<(), SourceError> {
        match self.inside(&self.folder.join(entry), entry) {
            Ok(path) if path.is_dir() => {
                let shown = entry.trim_end_matches('/');
                // The root of the file system is all slashes.
                self.directory(&path, if shown.is_empty() { entry } else { shown }, 0)
            }
            Ok(path) => self.file(path, entry.to_owned(), false),
            Err(SourceError::NotFound { .. }) if named::is_pattern(entry) => self.pattern(entry),
            Err(error) => Err(error),
        }
    }

    /// `path` without links, if it exists and is within the folder.
    fn inside(&self, path: &Path, shown: &str) -> Result<PathBuf, SourceError> {
        let entry = shown.to_owned();
        match path.canonicalize() {
            Ok(path) if path.starts_with(&self.root) => Ok(path),
            Ok(_) => Err(SourceError::Outside { entry, folder: self.folder.to_owned() }),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                Err(SourceError::NotFound { entry })
            }
            Err(error) => Err(SourceError::Unreadable { entry, reason: error.to_string() }),
        }
    }

    /// Adds a file without links, of any format if it was named.
    fn file(&mut self, path: PathBuf, shown: String, found: bool) -> Result<(), SourceError> {
        let unreadable = |reason: String| SourceError::Unreadable { entry: shown.clone(), reason };
        // Opening anything else (a pipe, a device) could wait for ever.
        if !fs::metadata(&path).map_err(|error| unreadable(error.to_string()))?.is_file() {
            if found {
                self.found.unknown.push(shown);
                return Ok(());
            }
            return Err(unreadable("it is neither a file nor a directory".to_owned()));
        }
        if self.files.contains(&path) {
            return Ok(());
        }
        let known = match Kind::of_path(&shown) {
            _ if !found => true,
            Some(Kind::Foreign(_)) => true,
            Some(_) => !read::is_binary(&path),
            // A name without extension may be a README; its content tells.
            None => path.extension().is_none() && read::seems_text(&path),
        };
        if !known {
            self.found.unknown.push(shown);
            return Ok(());
        }
        self.files.insert(path.clone());
        self.add(shown, Origin::File { path, found });
        Ok(())
    }

    fn directory(&mut self, path: &Path, shown: &str, depth: usize) -> Result<(), SourceError> {
        // A link to a directory that is being walked would never end.
        if !self.files.insert(path.to_owned()) {
            return Ok(());
        }
        let wrong = |reason: String| SourceError::Unreadable { entry: shown.to_owned(), reason };
        let unreadable = |error: io::Error| wrong(error.to_string());
        if depth > DEEPEST {
            return Err(wrong(format!("it lies more than {DEEPEST} directories deep")));
        }
        let mut names = Vec::new();
        for entry in fs::read_dir(path).map_err(unreadable)? {
            names.push(entry.map_err(unreadable)?.file_name());
            if names.len() + self.files.len() > MOST_FILES {
                return Err(wrong(format!("more than {MOST_FILES} files were found")));
            }
        }
        names.sort();
        for name in names {
            let hidden = name.as_encoded_bytes().starts_with(b".");
            let Some(name) = name.to_str() else {
                self.found.unknown.push(format!("{shown}/{}", name.to_string_lossy()));
                continue;
            };
            if hidden {
                continue;
            }
            let shown = format!("{}/{name}", shown.trim_end_matches('/'));
            let path = self.inside(&path.join(name), &shown)?;
            if path.is_dir() {
                self.directory(&path, &shown, depth + 1)?;
            } else {
                self.file(path, shown, true)?;
            }
        }
        Ok(())
    }

    fn pattern(&mut self, entry: &str) -> Result<(), SourceError> {
        let wrong = |reason: String| SourceError::Pattern { entry: entry.to_owned(), reason };
        let Some(base) = self.root.to_str() else {
            return Err(wrong("cannot be used in a folder whose path is not UTF-8; list the files".to_owned()));
        };
        let (base, prefix) = match entry.strip_prefix("./") {
            _ if Path::new(entry).is_absolute() => (String::new(), ""),
            Some(_) => (format!("{}/", Pattern::escape(base)), "./"),
            None => (format!("{}/", Pattern::escape(base)), ""),
        };
        let relative = entry.strip_prefix("./").unwrap_or(entry);
        let mut matches = BTreeSet::new();
        let patterns = named::alternatives(relative).ok_or_else(|| {
            wrong(format!("stands for more than {} patterns; list the files, or a directory", named::MOST_ALTERNATIVES))
        })?;
        for pattern in patterns {
            let paths = glob::glob_with(&format!("{base}{pattern}"), MATCHING);
            for path in paths.map_err(|error| wrong(format!("is not a valid pattern: {error}")))? {
                matches.insert(path.map_err(|error| wrong(format!("cannot be followed: {error}")))?);
                if matches.len() > MOST_FILES {
                    return Err(wrong(format!("matches more than {MOST_FILES} files")));
                }
            }
        }
        let mut files = 0;
        for path in matches {
            let Some(text) = path.strip_prefix(&self.root).unwrap_or(&path).to_str() else {
                self.found.unknown.push(path.to_string_lossy().into_owned());
                continue;
            };
            let shown = format!("{prefix}{text}");
            let path = self.inside(&path, &shown)?;
            if !path.is_dir() {
                files += 1;
                self.file(path, shown, true)?;
            }
        }
        if files == 0 {
            return Err(wrong("matches no file; correct it or take it off the list".to_owned()));
        }
        Ok(())
    }
}
