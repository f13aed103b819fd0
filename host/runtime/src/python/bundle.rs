//! What a file in TypeScript imports from other files of its folder, put into one text with it. The cell says what that is, and makes the
//! text; the host reads files, and nothing but code.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::python::error::ToolFileError;
use crate::revision::sources::SourceFolder;

/// What the cell runs for it.
pub(super) const SCRIPT: &str = include_str!("../typescript_imports.js");
/// How often files may name further files, each time after those that they named before were looked for.
const MAX_ROUNDS: usize = 64;
/// Bytes that the text of one file may have.
const MAX_FILE: u64 = 1 << 20;
/// Bytes that all of them may have together.
const MAX_TOGETHER: usize = 8 << 20;
/// What a name of another file begins with.
const BEGINNINGS: [&str; 4] = ["\"./", "\"../", "'./", "'../"];
/// Extensions of code.
const CODE: [&str; 4] = [".ts", ".mts", ".js", ".mjs"];

/// A file with what it imports.
pub(super) struct Bundle {
    pub(super) text: String,
    /// The texts of the other files
    pub(super) others: Vec<String>,
}

/// What the cell answers.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Answer {
    Needs(Vec<String>),
    Bundle(String),
    Error(String),
}

/// A file of the folder with what it imports; `ask` runs [`SCRIPT`] on what it is told.
pub(super) fn of(
    file: &str,
    source: &str,
    root: &SourceFolder<'_>,
    folder: &Path,
    ask: impl Fn(Value) -> Result<String, ToolFileError>,
) -> Result<Bundle, ToolFileError> {
    let alone = || Bundle { text: source.to_owned(), others: Vec::new() };
    if !BEGINNINGS.iter().any(|beginning| source.contains(beginning)) {
        return Ok(alone());
    }
    let broken = |reason: String| ToolFileError::Load { file: file.to_owned(), reason };
    let mut modules: BTreeMap<String, Value> = BTreeMap::new();
    let mut others: BTreeMap<String, String> = BTreeMap::new();
    // The bytes of all of them
    let mut together: usize = 0;
    for _ in 0..MAX_ROUNDS {
        let answer = match ask(json!({ "file": file, "source": source, "modules": modules })) {
            Ok(answer) => answer,
            // A run that began before files could import others goes on without.
            Err(ToolFileError::FunctionsNotKept(_)) if modules.is_empty() => return Ok(alone()),
            Err(error) => return Err(error),
        };
        let answer = serde_json::from_str(answer.trim());
        match answer.map_err(|cause| ToolFileError::Description { file: file.to_owned(), cause })? {
            Answer::Bundle(text) => return Ok(Bundle { text, others: others.into_values().collect() }),
            Answer::Error(reason) => return Err(broken(reason)),
            Answer::Needs(paths) => {
                for path in paths {
                    let found = candidates(&path).into_iter().find(|candidate| root.is_file(&folder.join(candidate)));
                    let module = match found {
                        None => Value::Null,
                        Some(found) => {
                            let text = root.read_text(&folder.join(&found), MAX_FILE);
                            let text = text.map_err(|cause| broken(format!("cannot read `{found}`: {cause}")))?;
                            let module = json!({ "file": found, "source": text });
                            together += text.len();
                            // Several paths may mean one file.
                            together -= others.insert(found, text).map_or(0, |before| before.len());
                            module
                        }
                    };
                    if together > MAX_TOGETHER {
                        let reason = format!("what it imports has more than {MAX_TOGETHER} bytes, with `{path}`");
                        return Err(broken(reason));
                    }
                    modules.insert(path, module);
                }
            }
        }
    }
    Err(ToolFileError::Endless(file.to_owned()))
}

/// The files that a path may mean, as TypeScript finds them: it may be written as what the file becomes, or without its extension.
fn candidates(path: &str) -> Vec<String> {
    let mut files = Vec::new();
    if let Some(stem) = path.strip_suffix(".js") {
        files.push(format!("{stem}.ts"));
    }
    if CODE.iter().any(|extension| path.ends_with(extension)) {
        files.insert(0, path.to_owned());
    }
    files.extend(CODE.iter().map(|extension| format!("{path}{extension}")));
    files.extend(["ts", "js"].map(|extension| format!("{path}/index.{extension}")));
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::revision::sources::Sources;

    /// What comes of a file that imports these paths, in a folder with files of a million bytes.
    fn importing(folder: &Path, paths: &[&str]) -> Result<usize, String> {
        let ask = |told: Value| {
            let is_first = told["modules"].as_object().is_some_and(serde_json::Map::is_empty);
            Ok(if is_first { json!({ "needs": paths }) } else { json!({ "bundle": "done" }) }.to_string())
        };
        let bundle = of("tool.ts", "import './0'", &Sources::Plain.anywhere(), folder, ask);
        bundle.map(|bundle| bundle.others.len()).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_imported_has_so_many_bytes_in_all_and_each_file_counts_once() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..9 {
            std::fs::write(folder.path().join(format!("{number}.ts")), "x".repeat(1_000_000)).unwrap();
        }
        let eight = ["0", "1", "2", "3", "4", "5", "6", "7"];
        let twice = [&eight[..], &["0.ts", "1.js", "7.ts"]].concat();
        assert_eq!(importing(folder.path(), &twice), Ok(8));
        let error = importing(folder.path(), &[&twice[..], &["8"]].concat()).unwrap_err();
        assert!(error.contains("more than 8388608 bytes, with `8`"), "{error}");
    }

    #[test]
    fn nothing_but_code_is_looked_for() {
        assert_eq!(candidates("lib/a.ts")[0], "lib/a.ts");
        assert_eq!(candidates("lib/a.js")[..2], ["lib/a.js", "lib/a.ts"]);
        assert_eq!(candidates("lib/a")[0], "lib/a.ts");
        let is_code = |file: &String| CODE.iter().any(|extension| file.ends_with(extension));
        assert!(["secrets.env", "lib/a", "a.js"].into_iter().flat_map(candidates).all(|file| is_code(&file)));
    }
}
