//! The form of `case.json` of the dialect `leafmesh`, as far as cases are played: those without steps, of files that are refused.

use std::path::Path;

use serde_json::{Map, Value};

use crate::case_file::{CaseFile, CaseFileError};

/// Keys that this dialect adds, and that mean nothing where the file is refused.
const OWN: [&str; 3] = ["agents", "http", "model"];

/// What there is of a case.
#[derive(Debug)]
pub enum MeshCase {
    /// A file that is loaded and nothing else
    Loading(Box<CaseFile>),
    /// A conversation with a server
    Steps,
}

/// Reads the case of a directory.
///
/// # Errors
/// As [`CaseFile::read`].
pub fn read(directory: &Path) -> Result<MeshCase, CaseFileError> {
    let text = std::fs::read_to_string(directory.join("case.json"))?;
    let mut whole: Map<String, Value> = serde_json::from_str(&text)?;
    if whole.contains_key("steps") {
        return Ok(MeshCase::Steps);
    }
    whole.retain(|key, _| !OWN.contains(&key.as_str()));
    Ok(MeshCase::Loading(Box::new(CaseFile::parse(&Value::Object(whole).to_string())?)))
}
