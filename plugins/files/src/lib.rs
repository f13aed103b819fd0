//! Keeps files of the agent's own, in a store that outlives the run.
//!
//! They are no files of the machine: each is one value of the plugin's own store (capability `kv`), and nobody else
//! sees them. A name is a path such as `notes/today.md`; folders exist by being named.

use hotcell_plugin::{Error, Value, kv, plugin, tool};

plugin! { tools: [write, read, list, delete], capabilities: { kv: true } }

/// Before each name, so that the store has room for other things later.
const PREFIX: &str = "file/";
/// Bytes of a name.
const NAME: usize = 200;
/// Bytes of a file.
const SIZE: usize = 1 << 20;

/// A file that was written.
#[derive(Debug, PartialEq, Value)]
struct Written {
    /// Bytes that it has now.
    bytes: usize,
}

/// Lines of a file.
#[derive(Debug, PartialEq, Value)]
struct Part {
    /// The lines.
    content: String,
    /// The first of them, counted from 1.
    first_line: usize,
    /// How many lines the file has.
    lines: usize,
}

/// Writes a text into a file of the agent's own store, which is kept for later runs.
#[tool]
fn write(
    /// The name, such as `notes/today.md`.
    name: &str,
    /// The text.
    content: &str,
    /// Whether to add it at the end instead of replacing what is there.
    #[value(default = false)]
    append: bool,
) -> Result<Written, Error> {
    let key = key(name)?;
    let mut bytes = if append { kv::get(&key)?.unwrap_or_default() } else { Vec::new() };
    bytes.extend_from_slice(content.as_bytes());
    if bytes.len() > SIZE {
        let message = format!("`{name}` would have {} bytes, more than {SIZE}; begin another file", bytes.len());
        return Err(Error::invalid_input(message));
    }
    kv::set(&key, &bytes)?;
    Ok(Written { bytes: bytes.len() })
}

/// Reads a file of the agent's own store, or some lines of it.
#[tool(read_only)]
fn read(
    /// The name.
    name: &str,
    /// The first line to read, counted from 1.
    #[value(default = 1)]
    first_line: usize,
    /// How many lines to read at most.
    #[value(default = 2000)]
    lines: usize,
) -> Result<Part, Error> {
    if first_line == 0 {
        return Err(Error::invalid_input("lines are counted from 1"));
    }
    let Some(bytes) = kv::get(&key(name)?)? else { return missing(name) };
    let text = String::from_utf8(bytes).map_err(|_| Error::other(format!("`{name}` is not a text")))?;
    let all: Vec<&str> = text.split_inclusive('\n').collect();
    let content = all.iter().skip(first_line - 1).take(lines).copied().collect();
    Ok(Part { content, first_line, lines: all.len() })
}

/// Lists the files of the agent's own store.
#[tool(read_only)]
fn list(
    /// Only names that begin with this, such as `notes/`.
    #[value(default = "")]
    prefix: &str,
) -> Result<Vec<String>, Error> {
    let keys = kv::keys(&format!("{PREFIX}{prefix}"))?;
    Ok(keys.into_iter().filter_map(|key| Some(key.strip_prefix(PREFIX)?.to_owned())).collect())
}

/// Deletes a file of the agent's own store.
#[tool]
fn delete(
    /// The name.
    name: &str,
) -> Result<(), Error> {
    let key = key(name)?;
    if kv::get(&key)?.is_none() {
        return missing(name);
    }
    kv::delete(&key)
}

fn missing<T>(name: &str) -> Result<T, Error> {
    Err(Error::invalid_input(format!("there is no file `{name}`; `list` tells which there are")))
}

fn key(name: &str) -> Result<String, Error> {
    let parts_are_plain = name.split('/').all(|part| !matches!(part, "" | "." | ".."));
    if name.len() <= NAME && parts_are_plain && !name.chars().any(char::is_control) {
        return Ok(format!("{PREFIX}{name}"));
    }
    let message = format!(
        "`{}` is not a name of a file: up to {NAME} bytes, parts with `/` between them, none of them empty, `.` or `..`",
        name.escape_debug()
    );
    Err(Error::invalid_input(message))
}

#[cfg(test)]
mod tests {
    use hotcell_plugin::testing::Surroundings;
    use hotcell_plugin::{Error, json};

    use super::{PLUGIN, SIZE, delete, list, read, write};

    #[test]
    fn what_is_written_is_there() {
        let ran = Surroundings::new().store().run(|| -> Result<_, Error> {
            write("notes/a.md", "one\ntwo\n", false)?;
            write("notes/a.md", "three", true)?;
            write("b", "", false)?;
            let part = read("notes/a.md", 2, 1)?;
            Ok((part.content, part.lines, list("")?, list("notes/")?))
        });
        let names = vec!["b".to_owned(), "notes/a.md".to_owned()];
        assert_eq!(ran.result, Ok(("two\n".to_owned(), 3, names, vec!["notes/a.md".to_owned()])));
        assert_eq!(ran.kv["file/notes/a.md"], b"one\ntwo\nthree");
    }

    #[test]
    fn what_is_deleted_is_gone() {
        let ran =
            Surroundings::new().kept("file/a", b"x").kept("other", b"y").run(|| delete("a").and_then(|()| delete("a")));
        assert_eq!(ran.result.map_err(|error| error.kind()), Err("invalid-input"));
        assert_eq!(ran.kv.into_keys().collect::<Vec<_>>(), ["other"]);
    }

    #[test]
    fn names_and_sizes_have_limits() {
        let long = "x".repeat(201);
        for name in ["", "/a", "a//b", "../a", "a/./b", "a\nb", long.as_str()] {
            let ran = Surroundings::new().store().run(|| write(name, "", false).map_err(|error| error.kind()));
            assert_eq!(ran.result, Err("invalid-input"), "{name:?}");
        }
        let big = "x".repeat(SIZE);
        let ran = Surroundings::new().store().run(|| write("a", &big, false).and_then(|_| write("a", "y", true)));
        assert!(ran.result.is_err_and(|error| error.message().contains("more than 1048576")));
        assert_eq!(ran.kv["file/a"].len(), SIZE);
    }

    #[test]
    fn without_the_capability_it_says_so() {
        let ran = Surroundings::new().run(|| PLUGIN.call_tool("list", json!({})));
        assert_eq!(ran.result.map_err(|error| error.kind()), Err("denied"));
    }

    #[test]
    fn cases_hold() {
        let problems = hotcell_plugin::testing::run_cases(&PLUGIN, concat!(env!("CARGO_MANIFEST_DIR"), "/cases"));
        assert_eq!(problems, Ok(Vec::new()));
    }
}
