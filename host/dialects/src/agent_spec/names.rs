//! What components are called where people read it: by their ids, and by their names where an id is nothing to read.

use std::sync::Arc;

use super::sources::{COMPONENT_TYPE, Located, text_of};

/// Whether an id was made by a program: 32 hexadecimal digits, with or without the dashes of a UUID.
pub(super) fn is_machine_made(id: &str) -> bool {
    let digits = id.bytes().filter(u8::is_ascii_hexdigit).count();
    let dashes: Vec<usize> = id.bytes().enumerate().filter(|(_, byte)| *byte == b'-').map(|(place, _)| place).collect();
    digits == 32 && digits + dashes.len() == id.len() && (dashes.is_empty() || dashes == [8, 13, 18, 23])
}

/// What a component is called in messages: its id, or its name where the id is nothing to read.
pub(super) fn label(at: Located<'_>) -> Arc<str> {
    let name = || text_of(at, "name").filter(|name| !name.is_empty());
    let id = text_of(at, "id");
    let readable = id.clone().filter(|id| !is_machine_made(id));
    readable.or_else(name).or(id).or_else(|| text_of(at, COMPONENT_TYPE)).unwrap_or_default()
}

/// What a diagnostic says it is about: what the component is called, and its id where that is something else, as the id is
/// what is found in the text.
pub(super) fn of_diagnostic(label: &str, id: Option<&str>) -> String {
    match id.filter(|id| *id != label && is_machine_made(id)) {
        Some(id) => format!("{label} ({id})"),
        None => label.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::is_machine_made;

    #[test]
    fn ids_that_programs_make() {
        for id in ["b3c1a0de-52a4-4c07-9d0e-0a6f7f1f2f11", "B3C1A0DE52A44C079D0E0A6F7F1F2F11"] {
            assert!(is_machine_made(id), "{id}");
        }
        for id in ["ask", "", "b3c1a0de-52a4-4c07-9d0e-0a6f7f1f2f1", "b3c1a0de52a4-4c07-9d0e-0a6f-7f1f2f11", "step-1"] {
            assert!(!is_machine_made(id), "{id}");
        }
    }
}
