//! From text to the tree of the `cel` crate, with places in the text.

use std::cell::Cell;
use std::collections::HashMap;
use std::ops::Range;

use cel::common::ast::{EntryExpr, Expr, IdedExpr, SourceInfo};
use cel::parser::Parser;

use super::FormulaError;

/// The longest expression, in bytes.
const MAX_BYTES: usize = 64 << 10;
/// How deeply expressions may be nested.
const MAX_DEPTH: u16 = 64;

/// Where the parts of an expression are in its text.
pub(super) struct Offsets {
    info: SourceInfo,
}

impl Offsets {
    /// The bytes of the token that a part of the text was made of; none where the parser does not say.
    pub(super) fn range(&self, source: &str, id: u64) -> Option<Range<usize>> {
        let (start, stop) = self.info.offset_for(id)?;
        let range = start as usize..(stop as usize).saturating_add(1);
        source.get(range.clone()).filter(|token| !token.is_empty()).map(|_| range)
    }
}

/// The stack on which expressions are parsed. The parser goes as deep as the text does, whatever thread it is on.
const STACK: usize = 64 << 20;
/// How many operators, brackets and dots an expression may have outside of texts.
const MAX_MARKS: usize = 2_000;
/// As many cannot make a tree that is too deep for any stack, so most expressions need no stack of their own.
const FEW_MARKS: usize = 8;
/// How many all expressions of a file may have, each at least a few, and counted again when it is read again: reading takes some
/// thirty microseconds for each.
const OF_A_FILE: usize = 400_000;

thread_local! {
    /// How many are left for the file that this thread reads
    static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// From now on, the expressions that this thread reads are those of one file.
pub(crate) fn begin_file() {
    LEFT.set(Some(LEFT.get().unwrap_or(OF_A_FILE)));
}

/// The file is read.
pub(crate) fn end_file() {
    LEFT.set(None);
}

/// Takes note of an expression with so many marks; whether it may be read.
fn takes(marks: usize) -> bool {
    let Some(left) = LEFT.get() else { return true };
    let rest = left.checked_sub(marks.max(FEW_MARKS));
    LEFT.set(Some(rest.unwrap_or(0)));
    rest.is_some()
}

/// Parses a text and gives the tree to `work`, on a stack that is deep enough for both.
pub(super) fn with_parsed<T: Send>(
    source: &str,
    work: impl FnOnce(&IdedExpr, &Offsets) -> T + Send,
) -> Result<T, FormulaError> {
    let whole = |message: String| FormulaError { message, range: 0..source.len(), help: None };
    let marks = marks(source);
    if !takes(marks) {
        let message = format!("the expressions of the file have more than {OF_A_FILE} operators, brackets and dots");
        return Err(whole(message));
    }
    if marks <= FEW_MARKS {
        return parse(source).map(|(tree, offsets)| work(&tree, &offsets));
    }
    if marks > MAX_MARKS {
        return Err(whole(format!("the expression has more than {MAX_MARKS} operators, brackets and dots")));
    }
    let parsed = std::thread::scope(|scope| {
        let work = || parse(source).map(|(tree, offsets)| work(&tree, &offsets));
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
        thread.ok().and_then(|thread| thread.join().ok())
    });
    parsed.unwrap_or_else(|| Err(whole("the expression cannot be parsed".to_owned())))
}

/// How many marks a text has that may make a tree deeper, those inside of texts left out.
fn marks(source: &str) -> usize {
    outside_of_texts(source).filter(|(_, byte)| byte.is_ascii_punctuation() && *byte != b'_').count()
}

/// The bytes of a text that are not inside of quotes, and their places.
pub(super) fn outside_of_texts(source: &str) -> impl Iterator<Item = (usize, u8)> {
    let mut quote = None;
    let mut escaped = false;
    source.bytes().enumerate().filter(move |&(_, byte)| {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if byte == b'\\' => escaped = true,
            Some(open) if byte == open => quote = None,
            Some(_) => {}
            None if matches!(byte, b'"' | b'\'') => quote = Some(byte),
            None => return true,
        }
        false
    })
}

/// Parses a text.
fn parse(source: &str) -> Result<(IdedExpr, Offsets), FormulaError> {
    let whole = |message: String| FormulaError { message, range: 0..source.len(), help: None };
    if source.len() > MAX_BYTES {
        return Err(whole(format!("the expression has {} bytes, and at most {MAX_BYTES} are read", source.len())));
    }
    if source.trim().is_empty() {
        return Err(whole("the expression is empty".to_owned()));
    }
    match Parser::new().max_recursion_depth(MAX_DEPTH).parse_with_source_info(source) {
        Ok((tree, info)) => Ok((tree, Offsets { info })),
        Err(errors) => {
            let Some(first) = errors.errors.into_iter().next() else {
                return Err(whole("the expression cannot be read".to_owned()));
            };
            let offset = offset_of(source, first.pos);
            let mut message = first.msg.lines().next().unwrap_or_default().to_owned();
            if let Some(at) = message.find(" expecting ") {
                // What the grammar would take instead is a list of twenty kinds of tokens.
                message.truncate(at);
            }
            let message = match &*message {
                message if message.contains("<EOF>") => "the expression ends too early".to_owned(),
                "" => "the expression cannot be read".to_owned(),
                message if message.contains("invalid int literal") => "the int is beyond 64 bits".to_owned(),
                message => {
                    let reason = message.strip_prefix("Syntax error: ").unwrap_or(message);
                    format!("the expression cannot be read: {reason}")
                }
            };
            let rest = &source[offset..];
            let word = rest.len() - rest.trim_start_matches(|c: char| c.is_alphanumeric()).len();
            let end = offset + word.max(rest.chars().next().map_or(0, char::len_utf8));
            let last = source.char_indices().last().map_or(0, |(place, _)| place);
            let range = if offset >= source.len() { last..source.len() } else { offset..end };
            let help = match (assigns(source), is_prose(source)) {
                (true, _) => Some("values are compared with `==`; there is no assignment".to_owned()),
                (false, true) => Some("a text needs quotes of its own: `\"a text\"`".to_owned()),
                (false, false) => None,
            };
            Err(FormulaError { message, range, help })
        }
    }
}

/// Whether there is a single `=`, which other languages compare with.
fn assigns(source: &str) -> bool {
    let bytes = source.as_bytes();
    let at = |place: Option<usize>| place.and_then(|place| bytes.get(place)).copied().unwrap_or_default();
    outside_of_texts(source).any(|(place, byte)| {
        let (before, after) = (at(place.checked_sub(1)), at(place.checked_add(1)));
        byte == b'=' && after != b'=' && !matches!(before, b'=' | b'!' | b'<' | b'>')
    })
}

/// Whether what does not parse looks like a text that was written without quotes: words with nothing between them.
fn is_prose(source: &str) -> bool {
    let is_word = |part: &&str| {
        part.starts_with(char::is_alphabetic) && part.chars().all(|c| c.is_alphanumeric() || ".,:;!?'-".contains(c))
    };
    !source.contains('"') && source.split_whitespace().take(3).filter(is_word).count() >= 2
}

/// The byte at a line, from 1, and a column, from 0, in characters.
fn offset_of(source: &str, (line, column): (isize, isize)) -> usize {
    let line = usize::try_from(line - 1).unwrap_or(0);
    let start: usize = source.split_inclusive('\n').take(line).map(str::len).sum();
    let rest = source.get(start..).unwrap_or_default();
    let column = usize::try_from(column - 1).unwrap_or(0);
    rest.char_indices().nth(column).map_or(source.len(), |(offset, _)| start + offset)
}

/// A name that an expression takes from outside.
#[derive(Clone, Debug, PartialEq)]
pub struct RootName {
    /// The name
    pub name: String,
    /// Where it is first used, in bytes of the text
    pub range: Range<usize>,
}

/// The names that an expression takes from outside, each once; nothing if it does not parse.
pub fn root_names(source: &str) -> Vec<RootName> {
    let found = with_parsed(source, |tree, offsets| {
        let mut found: HashMap<String, Range<usize>> = HashMap::new();
        let mut bound = Vec::new();
        collect(tree, &mut bound, &mut |name, id| {
            found.entry(name.to_owned()).or_insert_with(|| offsets.range(source, id).unwrap_or(0..source.len()));
        });
        found
    });
    let found = found.unwrap_or_default();
    let mut names: Vec<RootName> = found.into_iter().map(|(name, range)| RootName { name, range }).collect();
    names.sort_by_key(|name| (name.range.start, name.name.clone()));
    names
}

fn collect<'t>(tree: &'t IdedExpr, bound: &mut Vec<&'t str>, found: &mut impl FnMut(&str, u64)) {
    match &tree.expr {
        Expr::Ident(name) if !bound.contains(&name.as_str()) => found(name, tree.id),
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => {}
        Expr::Select(select) => collect(&select.operand, bound, found),
        Expr::Call(call) => {
            call.target.iter().for_each(|target| collect(target, bound, found));
            call.args.iter().for_each(|argument| collect(argument, bound, found));
        }
        Expr::List(list) => list.elements.iter().for_each(|element| collect(element, bound, found)),
        Expr::Map(map) => {
            for entry in &map.entries {
                if let EntryExpr::MapEntry(entry) = &entry.expr {
                    collect(&entry.key, bound, found);
                    collect(&entry.value, bound, found);
                }
            }
        }
        Expr::Struct(_) => {}
        Expr::Comprehension(fold) => {
            collect(&fold.iter_range, bound, found);
            collect(&fold.accu_init, bound, found);
            bound.extend([fold.iter_var.as_str(), fold.accu_var.as_str()]);
            collect(&fold.loop_cond, bound, found);
            collect(&fold.loop_step, bound, found);
            collect(&fold.result, bound, found);
            bound.truncate(bound.len() - 2);
        }
    }
}
