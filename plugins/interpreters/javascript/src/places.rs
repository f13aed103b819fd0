//! Places in errors: those in the author's own text, and not in what the engine was given.

use crate::typescript::{self, ModuleSystem};

/// What stands before a CommonJS source: on one line with its first, so that line numbers stay true.
pub(crate) const BEFORE: &str = "(function (exports, require, module, __filename, __dirname) {";

/// Where a call of this cell's own code is, in a stack.
const OWN: &str = "(hotcell:";

/// The text of an error with the places in `source` as its author wrote it. Calls of this cell's own code are left out.
pub(crate) fn corrected(text: &str, file: &str, source: &str) -> String {
    let Ok((prepared, places)) = typescript::prepare_with_places(file, source) else { return text.to_owned() };
    let is_wrapped = prepared.system == ModuleSystem::Common;
    let before = |line: usize| if is_wrapped && line == 1 { BEFORE.len() } else { 0 };
    let place = |line: usize, column: usize| {
        let column = column.checked_sub(before(line)).filter(|column| *column > 0)?;
        places.written(line, column)
    };
    let lines: Vec<&str> = text.lines().collect();
    let has_calls = lines.iter().any(|line| is_call(line));
    let mut kept = Vec::with_capacity(lines.len());
    for (number, line) in lines.iter().enumerate() {
        let next_is_own = lines.get(number + 1).is_some_and(|next| is_own(next));
        if is_own(line) || is_native(line) && next_is_own {
            continue;
        }
        let moved = if has_calls { in_call(line, file, place) } else { in_message(line, place) };
        kept.push(moved.unwrap_or_else(|| (*line).to_owned()));
    }
    // What called the script is of no use to its author.
    while kept.last().is_some_and(|line| is_native(line)) {
        kept.pop();
    }
    let mut shown = kept.join("\n");
    if text.ends_with('\n') {
        shown.push('\n');
    }
    shown
}

fn is_call(line: &str) -> bool {
    line.trim_start().starts_with("at ")
}

fn is_own(line: &str) -> bool {
    is_call(line) && line.contains(OWN)
}

fn is_native(line: &str) -> bool {
    is_call(line) && line.trim_end().ends_with("(native)")
}

/// A line of a stack, `at NAME (FILE:LINE:COLUMN)`, with another place.
fn in_call(line: &str, file: &str, place: impl Fn(usize, usize) -> Option<(usize, usize)>) -> Option<String> {
    let (name, at) = line.trim_end().strip_suffix(')').filter(|_| is_call(line))?.rsplit_once('(')?;
    let (row, column) = at.strip_prefix(file)?.strip_prefix(':')?.split_once(':')?;
    let (row, column) = place(row.parse().ok()?, column.parse().ok()?)?;
    Some(format!("{name}({file}:{row}:{column})"))
}

/// A message of the engine's parser, `... at line LINE, col COLUMN`, with another place.
fn in_message(line: &str, place: impl Fn(usize, usize) -> Option<(usize, usize)>) -> Option<String> {
    let (said, at) = line.split_once(" at line ")?;
    let (row, rest) = at.split_once(", col ")?;
    let digits = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
    let (column, after) = rest.split_at(digits);
    let (row, column) = place(row.parse().ok()?, column.parse().ok()?)?;
    Some(format!("{said} at line {row}, col {column}{after}"))
}
