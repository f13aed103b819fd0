//! JSON by its structure.
//!
//! A value that fits is one piece, written as it is in the document; of one that does not, each member is looked at. Each
//! piece begins with the path to it.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{Cutter, pack::Packer};

/// How deep the structure is followed; what is deeper is text. Each level reads its values once more.
const DEPTH: usize = 64;
/// Values of more bytes for a token than this are not measured but taken for too long.
const BYTES: usize = 16;
/// Bytes of a path that stand before a piece. Each piece has its path, and one key may be as long as a document.
const PATH: usize = 512;

/// The chunks of a JSON document, or `None` if it is none.
pub(super) fn cut(cutter: &Cutter<'_>, text: &str) -> Option<Vec<String>> {
    let value: &RawValue = serde_json::from_str(text).ok()?;
    let mut packer = Packer::new(*cutter, "");
    add(cutter, &mut packer, &mut String::new(), value, 0);
    Some(packer.finish())
}

/// The same for one value in each line; they are the elements of one list.
pub(super) fn cut_lines(cutter: &Cutter<'_>, text: &str) -> Option<Vec<String>> {
    let mut packer = Packer::new(*cutter, "");
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    for (index, line) in lines.enumerate() {
        add(cutter, &mut packer, &mut format!("[{index}]"), serde_json::from_str(line).ok()?, 1);
    }
    Some(packer.finish())
}

fn add(cutter: &Cutter<'_>, packer: &mut Packer<'_>, path: &mut String, value: &RawValue, depth: usize) {
    let text = value.get();
    let (label, label_length) = label(cutter, path);
    let measured = (text.len() <= cutter.size.saturating_mul(BYTES)).then(|| cutter.length(text));
    if let Some(length) = measured.filter(|&length| length + label_length <= cutter.size) {
        return packer.add(&label, text, length);
    }
    let outer = path.len();
    if depth < DEPTH && text.starts_with('{') {
        if let Ok(members) = serde_json::from_str::<Members<'_>>(text) {
            for (name, member) in members.0 {
                step(path, &name);
                add(cutter, packer, path, member, depth + 1);
                path.truncate(outer);
            }
            return;
        }
    } else if depth < DEPTH && text.starts_with('[') {
        if let Ok(elements) = serde_json::from_str::<Vec<&RawValue>>(text) {
            for (index, element) in elements.into_iter().enumerate() {
                path.push_str(&format!("[{index}]"));
                add(cutter, packer, path, element, depth + 1);
                path.truncate(outer);
            }
            return;
        }
    } else if let Ok(string) = serde_json::from_str::<String>(text) {
        // A long text is cut as what it says, without the escapes.
        return packer.add(&label, &string, cutter.length(&string));
    }
    packer.add(&label, text, measured.unwrap_or_else(|| cutter.length(text)));
}

/// What stands before a piece, and its tokens: the path to it, or the end of one that is long or would leave little room for the piece.
fn label(cutter: &Cutter<'_>, path: &str) -> (String, usize) {
    if path.is_empty() {
        return (String::new(), 0);
    }
    let measured = |most: usize| {
        let label = format!("{}: ", end_of(path, most));
        let length = cutter.length(&label);
        (label, length)
    };
    let whole = measured(PATH);
    // No letter of it takes more than a token for each of its bytes.
    if whole.1 > cutter.size / 4 * 3 { measured(cutter.size / 4) } else { whole }
}

fn end_of(path: &str, most: usize) -> Cow<'_, str> {
    match path.len().checked_sub(most) {
        None | Some(0) => path.into(),
        Some(rest) => format!("…{}", &path[path.ceil_char_boundary(rest)..]).into(),
    }
}

/// Appends the step to a member to a path.
fn step(path: &mut String, name: &str) {
    let plain = name.starts_with(|first: char| first.is_alphabetic() || first == '_')
        && name.chars().all(|other| other.is_alphanumeric() || other == '_');
    match (plain, path.is_empty()) {
        (true, true) => path.push_str(name),
        (true, false) => path.push_str(&format!(".{name}")),
        (false, _) => path.push_str(&format!("[{name:?}]")),
    }
}

/// The members of an object in their order, as they are written.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Members(members))
    }
}
