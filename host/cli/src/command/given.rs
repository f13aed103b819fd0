//! What runs are given on the command line and on standard input.

use std::collections::HashMap;
use std::io::{self, Read as _};

use hotcell_files::MAX_TEXT;
use hotcell_graph::value::parse_json;
use hotcell_graph::{Key, Object, Value};

use crate::exit::Failure;

/// The text of a run; `-` stands for standard input.
pub(super) fn input(prompt: Option<String>) -> Result<Option<String>, Failure> {
    if prompt.as_deref() != Some("-") {
        return Ok(prompt);
    }
    read_input("the prompt").map(Some)
}

/// All of standard input, without the line end that `echo` adds.
pub(super) fn read_input(what: &str) -> Result<String, Failure> {
    let mut text = String::new();
    io::stdin()
        .take(MAX_TEXT + 1)
        .read_to_string(&mut text)
        .map_err(|error| Failure::refused(format!("{what} cannot be read from standard input: {error}")))?;
    if text.len() as u64 > MAX_TEXT {
        return Err(Failure::refused(format!("{what} on standard input is longer than {MAX_TEXT} bytes")));
    }
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(text)
}

/// The JSON object that an option takes.
pub(super) fn object(option: &str, text: &str) -> Result<Object, Failure> {
    match parse_json(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(other) => Err(Failure::refused(format!("`{option}` takes a JSON object, not {}", other.a_kind()))),
        Err(error) => Err(Failure::refused(format!("what `{option}` is given is not JSON: {error}"))
            .help("quote names and texts, and the whole for the shell: '{\"name\": \"value\"}'")),
    }
}

/// The variables of a run, each of which is given once.
pub(super) fn variables(given: Vec<(String, String)>) -> Result<HashMap<Key, Value>, Failure> {
    let mut variables = HashMap::with_capacity(given.len());
    for (name, value) in given {
        if variables.insert(Key::from(name.as_str()), Value::text(value)).is_some() {
            return Err(Failure::refused(format!("the variable `{name}` is given twice")));
        }
    }
    Ok(variables)
}
