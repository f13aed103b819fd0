//! The file tools of Loki agents, under the names and with the arguments that their files know.
//!
//! They work in one directory, `/work`, which is whatever directory the operator grants (capability `fs`), to be read or to be
//! changed. A path that is not absolute begins there; nothing else of the machine is within reach, and no person is asked once
//! more, because the grant was the decision.

mod patch;
mod search;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use hotcell_plugin::{Error, plugin, tool};

plugin! {
    tools: [fs_cat, fs_read, fs_ls, fs_glob, fs_grep, fs_write, fs_patch, fs_mkdir, fs_rm],
    capabilities: { fs: { "/work": write } }
}

/// Where paths begin.
const FOLDER: &str = "/work";
/// Bytes of a file that are read.
const SIZE: u64 = 8 << 20;
/// Characters of a line that `fs_read` shows.
const LINE: usize = 2000;

/// Reads the whole contents of a file.
#[tool(read_only)]
fn fs_cat(
    /// The path of the file.
    path: &str,
) -> Result<String, Error> {
    text(path)
}

/// Reads a file with line numbers, or a part of it; of a directory, lists what is in it.
///
/// Long lines are cut. `fs_cat` gives a file as it is.
#[tool(read_only)]
fn fs_read(
    /// The path of the file or directory.
    path: &str,
    /// The first line to read, counted from 1.
    #[value(default = 1)]
    offset: usize,
    /// How many lines to read at most.
    #[value(default = 2000)]
    limit: usize,
) -> Result<String, Error> {
    if offset == 0 {
        return Err(Error::invalid_input("`offset` counts lines from 1"));
    }
    if inside(path).is_dir() {
        return fs_ls(path);
    }
    let text = text(path)?;
    let total = text.lines().count();
    let mut shown = String::new();
    for (index, line) in text.lines().enumerate().skip(offset - 1).take(limit) {
        let cut: String = line.chars().take(LINE).collect();
        let more = if cut.len() < line.len() { "... (cut)" } else { "" };
        shown.push_str(&format!("{}: {cut}{more}\n", index + 1));
    }
    let end = offset.saturating_add(limit);
    if total == 0 {
        shown.push_str("(the file is empty)\n");
    } else if offset > total {
        shown.push_str(&format!("(the file has {total} lines)\n"));
    } else if end <= total {
        shown.push_str(&format!("({total} lines in all; go on with offset {end})\n"));
    }
    Ok(shown)
}

/// Lists the files and directories in a directory; directories end with `/`.
#[tool(read_only)]
fn fs_ls(
    /// The path of the directory.
    path: &str,
) -> Result<String, Error> {
    let mut names = Vec::new();
    for entry in fs::read_dir(inside(path)).map_err(|error| failed(path, &error))? {
        let entry = entry.map_err(|error| failed(path, &error))?;
        let mark = if entry.path().is_dir() { "/" } else { "" };
        names.push(format!("{}{mark}\n", entry.file_name().to_string_lossy()));
    }
    names.sort();
    Ok(names.concat())
}

/// Finds files by a pattern of their names, such as `*.rs` or `src/**/*.ts`.
///
/// Folders of dependencies and builds (`.git`, `node_modules`, `target` and the like) are left out.
#[tool(read_only)]
fn fs_glob(
    /// The pattern. One with a `/` is for the path below the directory, any other for the name of the file.
    pattern: &str,
    /// The directory to search in.
    #[value(default = ".")]
    path: &str,
) -> Result<String, Error> {
    search::glob(pattern, &inside(path), path)
}

/// Searches the contents of files for a regular expression and gives the lines that match, with file and number.
///
/// Folders of dependencies and builds (`.git`, `node_modules`, `target` and the like) are left out.
#[tool(read_only)]
fn fs_grep(
    /// The regular expression.
    pattern: &str,
    /// The directory or the file to search in.
    #[value(default = ".")]
    path: &str,
    /// A pattern of the names of files to search, such as `*.rs` or `*.{ts,tsx}`; left out, all.
    include: Option<String>,
) -> Result<String, Error> {
    search::grep(pattern, &inside(path), path, include.as_deref())
}

/// Writes a file with these contents, and the directories above it that are not there. What was in it is replaced.
#[tool]
fn fs_write(
    /// The path of the file.
    path: &str,
    /// The whole contents.
    contents: &str,
) -> Result<String, Error> {
    let file = inside(path);
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).map_err(|error| failed(path, &error))?;
    }
    fs::write(&file, contents).map_err(|error| failed(path, &error))?;
    Ok(format!("wrote {} bytes to {path}", contents.len()))
}

/// Changes a file by a patch, without writing all of it.
///
/// A patch has hunks that begin with `@@`; in them lines that stay begin with a blank, lines that go with `-`, new ones with
/// `+`. Line numbers are not needed: the lines that stay and go say where. Either all hunks fit or nothing is changed.
#[tool]
fn fs_patch(
    /// The path of the file.
    path: &str,
    /// The patch.
    contents: &str,
) -> Result<String, Error> {
    let patched =
        patch::apply(&text(path)?, contents).map_err(|reason| Error::invalid_input(format!("`{path}`: {reason}")))?;
    fs::write(inside(path), patched).map_err(|error| failed(path, &error))?;
    Ok(format!("patched {path}"))
}

/// Creates a directory and those above it.
#[tool]
fn fs_mkdir(
    /// The path of the directory.
    path: &str,
) -> Result<String, Error> {
    fs::create_dir_all(inside(path)).map_err(|error| failed(path, &error))?;
    Ok(format!("created {path}"))
}

/// Deletes a file, or a directory with everything in it.
#[tool]
fn fs_rm(
    /// The path of the file or directory.
    path: &str,
) -> Result<String, Error> {
    let place = inside(path);
    let about = fs::symlink_metadata(&place).map_err(|error| failed(path, &error))?;
    let deleted = if about.is_dir() { fs::remove_dir_all(&place) } else { fs::remove_file(&place) };
    deleted.map_err(|error| failed(path, &error))?;
    Ok(format!("deleted {path}"))
}

fn inside(path: &str) -> PathBuf {
    Path::new(FOLDER).join(path)
}

fn text(path: &str) -> Result<String, Error> {
    let file = inside(path);
    let about = fs::metadata(&file).map_err(|error| failed(path, &error))?;
    if about.is_dir() {
        return Err(Error::invalid_input(format!("`{path}` is a directory; `fs_ls` lists it")));
    }
    if about.len() > SIZE {
        return Err(Error::invalid_input(format!("`{path}` has {} bytes, more than {SIZE}", about.len())));
    }
    let bytes = fs::read(&file).map_err(|error| failed(path, &error))?;
    String::from_utf8(bytes).map_err(|_| Error::invalid_input(format!("`{path}` is not text")))
}

fn failed(path: &str, error: &std::io::Error) -> Error {
    match error.kind() {
        ErrorKind::NotFound => Error::invalid_input(format!(
            "there is no `{path}`; paths begin in `{FOLDER}`, the directory that the operator grants to the plugin `fs`"
        )),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            Error::denied(format!("`{path}` was not granted, or not to be changed: {error}"))
        }
        _ => Error::other(format!("`{path}`: {error}")),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // in tests that is what fails them
mod tests {
    use hotcell_plugin::{Error, Json, json};

    use super::PLUGIN;

    fn call(tool: &str, arguments: Json) -> Result<String, Error> {
        let answer = hotcell_plugin::testing::Surroundings::new().run(|| PLUGIN.call_tool(tool, arguments)).result?;
        Ok(answer.as_str().unwrap_or_default().to_owned())
    }

    #[test]
    fn files_are_written_read_patched_and_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let file = path("a/b/notes.txt");
        assert!(call("fs_write", json!({"path": file, "contents": "one\ntwo\nthree\n"})).is_ok());
        assert_eq!(call("fs_cat", json!({"path": file})), Ok("one\ntwo\nthree\n".to_owned()));
        let part = call("fs_read", json!({"path": file, "offset": 2, "limit": 1}));
        assert_eq!(part, Ok("2: two\n(3 lines in all; go on with offset 3)\n".to_owned()));
        assert_eq!(call("fs_read", json!({"path": path("a")})), Ok("b/\n".to_owned()));
        let patched = call("fs_patch", json!({"path": file, "contents": "@@ ... @@\n one\n-two\n+2\n"}));
        assert!(patched.is_ok(), "{patched:?}");
        assert_eq!(call("fs_cat", json!({"path": file})), Ok("one\n2\nthree\n".to_owned()));
        assert!(call("fs_patch", json!({"path": file, "contents": "@@\n-gone\n+x\n"})).is_err());
        assert!(call("fs_mkdir", json!({"path": path("c/d")})).is_ok());
        assert_eq!(call("fs_ls", json!({"path": path("")})), Ok("a/\nc/\n".to_owned()));
        assert!(
            call("fs_rm", json!({"path": path("a")})).is_ok() && call("fs_rm", json!({"path": path("a")})).is_err()
        );
    }

    #[test]
    fn what_is_wrong_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let binary = folder.path().join("picture");
        std::fs::write(&binary, [0xff, 0xfe, 0]).unwrap();
        for (tool, arguments, part) in [
            ("fs_cat", json!({"path": folder.path().display().to_string()}), "is a directory"),
            ("fs_cat", json!({"path": binary.display().to_string()}), "is not text"),
            ("fs_cat", json!({"path": folder.path().join("gone").display().to_string()}), "there is no"),
            ("fs_read", json!({"path": binary.display().to_string(), "offset": 0}), "from 1"),
            ("fs_grep", json!({"pattern": "("}), "regular expression"),
            ("fs_glob", json!({"pattern": "["}), "pattern"),
        ] {
            let error = call(tool, arguments).err().map(|error| error.message().to_owned()).unwrap_or_default();
            assert!(error.contains(part), "{tool}: {error}");
        }
    }

    #[test]
    fn files_are_found_by_name_and_by_contents() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("src/main.rs", "fn main() {}\nstruct User;\n"),
            ("src/deep/lib.rs", "pub struct User;\n"),
            ("target/made.rs", "struct User;\n"),
            ("readme.md", "User\n"),
        ] {
            let file = folder.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        let path = folder.path().display().to_string();
        let found = |arguments: Json| call("fs_glob", arguments).unwrap().replace(&path, "");
        assert_eq!(found(json!({"pattern": "*.rs", "path": path})), "/src/deep/lib.rs\n/src/main.rs\n");
        assert_eq!(found(json!({"pattern": "src/*.rs", "path": path})), "/src/main.rs\n");
        let searched = |arguments: Json| call("fs_grep", arguments).unwrap().replace(&path, "");
        assert_eq!(
            searched(json!({"pattern": "struct U\\w+", "path": path, "include": "*.rs"})),
            "/src/deep/lib.rs:1:pub struct User;\n/src/main.rs:2:struct User;\n"
        );
        assert_eq!(searched(json!({"pattern": "nowhere", "path": path})), "no line matches `nowhere`\n");
        let file = folder.path().join("target/made.rs").display().to_string();
        assert_eq!(searched(json!({"pattern": "User", "path": file})), "/target/made.rs:1:struct User;\n");
    }

    #[test]
    fn cases_hold() {
        let problems = hotcell_plugin::testing::run_cases(&PLUGIN, concat!(env!("CARGO_MANIFEST_DIR"), "/cases"));
        assert_eq!(problems, Ok(Vec::new()));
    }
}
