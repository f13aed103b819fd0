//! Finding cases and choosing among them.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use thiserror::Error;

use crate::case_file::{CaseFile, CaseFileError};
use crate::mesh::case as mesh_case;

/// Dialects whose cases have a documented form: a key that the form does not have is a mistake of the case.
const DOCUMENTED: [&str; 4] = ["loki", "sherma", "agentloom", "agent-spec"];
/// The dialect whose cases have a form of their own.
const MESHES: &str = "leafmesh";

/// A case that was found.
#[derive(Debug)]
pub struct Found {
    /// Its directory, as a path below the one that was given
    pub directory: PathBuf,
    /// Its tags and its language, as far as the file can be read at all
    pub label: Label,
    /// The case
    pub case: Content,
}

/// What is in a `case.json`.
#[derive(Debug)]
pub enum Content {
    /// A case
    Case(Box<CaseFile>),
    /// A case of a language whose cases have no documented form yet
    Foreign,
    /// A conversation with a server: what it has in common with other cases
    Steps(Box<CaseFile>),
    /// Something that cannot be used
    Bad(CaseFileError),
}

/// What is known of a case even if its file has mistakes.
#[derive(Clone, Debug, Default)]
pub struct Label {
    /// Its title
    pub title: String,
    /// Its language
    pub dialect: String,
    /// Its tags; none where the file cannot be read
    pub covers: Option<Vec<String>>,
}

/// Why no cases could be found.
#[derive(Debug, Error)]
pub enum DiscoverError {
    /// A path cannot be searched
    #[error("`{}` cannot be searched for cases: {source}", path.display())]
    Unreadable {
        /// The path
        path: PathBuf,
        /// Why
        source: io::Error,
    },
    /// There is nothing at or below a path
    #[error("there is no case at or below `{}`: no directory has a `case.json`", .0.display())]
    NoCases(PathBuf),
}

/// All cases at or below the paths, each once, sorted within each path.
///
/// # Errors
/// When a path cannot be read or has no case at or below it.
pub fn discover(paths: &[PathBuf]) -> Result<Vec<Found>, DiscoverError> {
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for path in paths {
        let mut directories = Vec::new();
        let start = if path.ends_with("case.json") { path.parent().unwrap_or(path) } else { path };
        search(start, &mut directories)?;
        if directories.is_empty() {
            return Err(DiscoverError::NoCases(path.clone()));
        }
        for directory in directories {
            let identity = fs::canonicalize(&directory).unwrap_or_else(|_| directory.clone());
            if seen.insert(identity) {
                found.push(read(directory));
            }
        }
    }
    Ok(found)
}

/// Everything in the directory of a case belongs to that case, so nothing is searched below it.
fn search(directory: &Path, found: &mut Vec<PathBuf>) -> Result<(), DiscoverError> {
    let unreadable = |source| DiscoverError::Unreadable { path: directory.to_owned(), source };
    if directory.join("case.json").is_file() {
        found.push(directory.to_owned());
        return Ok(());
    }
    let mut below = Vec::new();
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        if entry.file_type().map_err(unreadable)?.is_dir() {
            below.push(entry.path());
        }
    }
    below.sort();
    below.iter().try_for_each(|directory| search(directory, found))
}

fn read(directory: PathBuf) -> Found {
    let label = label(&directory);
    let is_documented = label.dialect.is_empty() || DOCUMENTED.contains(&label.dialect.as_str());
    if label.dialect == MESHES {
        let case = match mesh_case::read(&directory) {
            Ok(case) if case.own.steps.is_some() => Content::Steps(Box::new(case.common)),
            Ok(case) => Content::Case(Box::new(case.common)),
            Err(error) => Content::Bad(error),
        };
        return Found { directory, label, case };
    }
    let case = match CaseFile::read(&directory) {
        Ok(case) => Content::Case(Box::new(case)),
        Err(_) if !is_documented => Content::Foreign,
        Err(error) => Content::Bad(error),
    };
    Found { directory, label, case }
}

fn label(directory: &Path) -> Label {
    let text = fs::read_to_string(directory.join("case.json")).unwrap_or_default();
    let Ok(case) = serde_json::from_str::<Value>(&text) else { return Label::default() };
    let text = |key: &str| case.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let covers = case.get("covers").and_then(Value::as_array);
    Label {
        title: text("title"),
        dialect: text("dialect"),
        covers: covers.map(|tags| tags.iter().filter_map(Value::as_str).map(str::to_owned).collect()),
    }
}

/// Which cases are wanted, by their tags.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Only cases with one of these tags; empty means all
    pub covers: Vec<String>,
    /// No case with one of these tags
    pub skip: Vec<String>,
}

impl Selection {
    /// Why a case is not wanted. A case whose tags cannot be read is always wanted: its mistake is to be seen.
    pub fn refusal(&self, label: &Label) -> Option<String> {
        let covers = label.covers.as_ref()?;
        if let Some(tag) = self.skip.iter().find(|tag| covers.contains(tag)) {
            return Some(format!("covers `{tag}`, which is left out"));
        }
        let is_wanted = self.covers.is_empty() || self.covers.iter().any(|tag| covers.contains(tag));
        (!is_wanted).then(|| "not among the selected tags".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::{Label, Selection};

    fn refused(covers: &[&str], skip: &[&str], tags: Option<&[&str]>) -> bool {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let selection = Selection { covers: owned(covers), skip: owned(skip) };
        selection.refusal(&Label { covers: tags.map(owned), ..Label::default() }).is_some()
    }

    #[test]
    fn tags_select() {
        assert!(!refused(&[], &[], Some(&[])));
        assert!(!refused(&["a", "b"], &[], Some(&["b", "c"])));
        assert!(refused(&["a", "b"], &[], Some(&["c"])));
        assert!(refused(&[], &["c"], Some(&["b", "c"])));
        assert!(refused(&["b"], &["c"], Some(&["b", "c"])));
        assert!(refused(&["sherma>=1.0"], &[], Some(&["sherma"])));
        assert!(!refused(&["a"], &[], None));
    }
}
