//! Source code, cut between its items.
//!
//! Why this exists: a function is understood as a whole and together with the comment above it. In nearly every language
//! an item begins with a line at the margin, and what is inside of it is indented. That is enough to cut by, and it holds
//! for languages that nobody thought of here.
//!
//! What it must not do: know the grammar of a language (this runs on the text of strangers, in the host), or look at a line
//! more than a fixed number of times for each chunk that it could be in.

use text_splitter::{ChunkConfig, ChunkSizer, TextSplitter};

use crate::tokens::Ruler;

/// The columns of a tab. Only what is more and what is less matters.
const TAB: u32 = 4;
/// The marks that a comment, an attribute or a decorator begins with.
const LEADING: [&str; 10] = ["//", "/*", "#", "@", "--", ";", "%", "[", "{-", "template"];
/// Comments of several lines, whose lines in between may look like anything.
const BLOCKS: [(&str, &str); 2] = [("/*", "*/"), ("{-", "-}")];
/// The marks that end or continue something.
const CLOSING: [&str; 8] = ["}", ")", "]", "{", ",", "|", "=", "</"];
/// The words that end or continue something.
#[rustfmt::skip]
const CLOSING_WORDS: [&str; 24] = [
    "and", "catch", "do", "done", "elif", "else", "elseif", "elsif", "end", "endforeach", "endfunction", "endif", "endmacro",
    "endwhile", "ensure", "esac", "except", "fi", "finally", "in", "of", "rescue", "then", "where",
];
/// The rank of a line that belongs to the one before it.
const NEVER: u32 = u32::MAX;
/// A chunk that ends within an item has at least this part of its size, where that can be had.
const LEAST: usize = 4;

/// A line that is not blank.
struct Line {
    start: usize,
    /// Without the white space at its end.
    end: usize,
    /// How bad it is to begin a chunk here: 0 for an item, then by the indentation.
    rank: u32,
}

/// The chunks of `text`, which is all that `ruler` measures.
pub(super) fn cut<'t>(ruler: &Ruler<'t>, size: usize, overlap: usize, text: &'t str) -> Vec<&'t str> {
    let cut = Cut { ruler, size, overlap, text, lines: lines(text) };
    let mut chunks = Vec::new();
    // The first line that is in no chunk yet, and the first that may be repeated.
    let (mut fresh, mut floor) = (0, 0);
    while fresh < cut.lines.len() {
        let Some((mut end, worth)) = cut.end(fresh, fresh) else {
            cut.long_line(&cut.lines[fresh], &mut chunks);
            fresh += 1;
            floor = fresh;
            continue;
        };
        let mut begin = cut.overlap(floor, fresh);
        if begin < fresh {
            // Text is not repeated at the price of an item that is cut in two.
            match cut.end(begin, fresh) {
                Some((sooner, other)) if other <= worth => end = sooner,
                _ => begin = fresh,
            }
        }
        chunks.push(cut.slice(begin, end));
        floor = begin + 1;
        fresh = end;
    }
    chunks
}

/// Where the last item begins in `window`, with the comments that belong to it.
pub(super) fn last_item(window: &str) -> Option<usize> {
    lines(window).iter().rev().find(|line| line.rank == 0).map(|line| line.start)
}

/// How good a place is to end a chunk: the least is the best. Between items before within one, there in chunks of some
/// size before small ones; then the rank of the line that comes next.
type Worth = (u8, u32);

struct Cut<'t, 'r> {
    ruler: &'r Ruler<'t>,
    size: usize,
    overlap: usize,
    text: &'t str,
    lines: Vec<Line>,
}

impl<'t> Cut<'t, '_> {
    /// The text of the lines from `from` on and before `to`, which is greater.
    fn slice(&self, from: usize, to: usize) -> &'t str {
        &self.text[self.lines[from].start..self.lines[to - 1].end]
    }

    /// Before which line to end a chunk that begins at `from` and has more than the lines before `after`, and what that
    /// place is worth: the best that there is room for, and of several the last. `None` if there is no room for a line more.
    fn end(&self, from: usize, after: usize) -> Option<(usize, Worth)> {
        let mut best: Option<(usize, Worth)> = None;
        for end in after + 1..=self.lines.len() {
            let size = self.ruler.size(self.slice(from, end));
            if size > self.size {
                break;
            }
            let worth = match self.lines.get(end).map_or(0, |line| line.rank) {
                0 => (0, 0),
                NEVER => (3, 0),
                rank => (if size < self.size / LEAST { 2 } else { 1 }, rank),
            };
            if best.is_none_or(|(_, other)| worth <= other) {
                best = Some((end, worth));
            }
        }
        best
    }

    /// From which line on to repeat what stands before `fresh`: not more than the overlap, nor smaller parts than the
    /// text was cut into there.
    fn overlap(&self, floor: usize, fresh: usize) -> usize {
        let mut begin = fresh;
        for line in (floor..fresh).rev() {
            if self.ruler.size(self.slice(line, fresh)) > self.overlap {
                break;
            }
            if self.lines[line].rank <= self.lines[fresh].rank {
                begin = line;
            }
        }
        begin
    }

    /// A line that is too long for a chunk is cut as text is.
    fn long_line(&self, line: &Line, chunks: &mut Vec<&'t str>) {
        let config = ChunkConfig::new(self.size).with_sizer(self.ruler);
        // The overlap was checked when the cutter was made.
        if let Ok(config) = config.with_overlap(self.overlap) {
            chunks.extend(TextSplitter::new(config).chunks(&self.text[line.start..line.end]));
        }
    }
}

/// Comments, attributes and decorators that wait for the line that they belong to.
struct Run {
    indent: u32,
    /// The mark that ends the comment of several lines that is open.
    block: Option<&'static str>,
    /// Whether a bracket of the last attribute is open.
    open: bool,
}

fn lines(text: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut run: Option<Run> = None;
    let (mut start, mut after_blank) = (0, false);
    for whole in text.split_inclusive('\n') {
        let from = start;
        start += whole.len();
        let content = whole.trim();
        if content.is_empty() {
            after_blank = true;
            run = run.filter(|run| run.block.is_some());
            continue;
        }
        let indent = indent(whole);
        let closing = closes(content);
        let attached = run.as_ref().is_some_and(|run| run.block.is_some() || indent >= run.indent);
        let rank = match indent {
            _ if attached || closing => NEVER,
            0 => 0,
            // A blank line before it is half a step.
            _ => indent.saturating_mul(2).saturating_add(u32::from(!after_blank)).min(NEVER - 1),
        };
        lines.push(Line { start: from, end: from + whole.trim_end().len(), rank });
        after_blank = false;
        run = next_run(run, content, indent, closing);
    }
    lines
}

/// What waits after a line.
fn next_run(run: Option<Run>, content: &str, indent: u32, closing: bool) -> Option<Run> {
    let opens = content.ends_with(['(', '[', '{', ',']);
    match run {
        Some(Run { indent, block: Some(end), .. }) => {
            Some(Run { indent, block: (!content.contains(end)).then_some(end), open: false })
        }
        Some(run) if run.open && indent > run.indent => Some(run),
        Some(run) if run.open && indent == run.indent && closing => Some(Run { open: opens, ..run }),
        _ if !leads(content) => None,
        run => {
            // Lines that are further in than the first belong to it.
            let indent = run.map_or(indent, |run| run.indent.min(indent));
            Some(Run { indent, block: open_block(content), open: opens && !is_comment(content) })
        }
    }
}

fn indent(line: &str) -> u32 {
    let mut columns = 0_u32;
    for character in line.chars().take_while(|character| character.is_whitespace()) {
        columns = columns.saturating_add(if character == '\t' { TAB } else { 1 });
    }
    columns
}

/// Whether a line is a comment, an attribute or a decorator of what follows.
fn leads(content: &str) -> bool {
    LEADING.iter().any(|mark| content.starts_with(mark)) && (!content.starts_with("template") || content.ends_with('>'))
}

/// Whether brackets in it mean nothing.
fn is_comment(content: &str) -> bool {
    !content.starts_with(['@', '[']) && !content.starts_with("#[")
}

fn open_block(content: &str) -> Option<&'static str> {
    let (_, end) = BLOCKS.iter().find(|(begin, _)| content.starts_with(begin))?;
    (!content[2..].contains(end)).then_some(*end)
}

/// Whether a line ends or continues what stands before it.
fn closes(content: &str) -> bool {
    let word =
        content.find(|character: char| !character.is_alphanumeric() && character != '_').unwrap_or(content.len());
    let (word, rest) = content.split_at(word);
    // A label, or the access in a class of C++.
    let label = rest == ":" && !word.is_empty() && word != "try";
    let mark = CLOSING.iter().any(|mark| content.starts_with(mark)) && !content.starts_with("{-");
    label || mark || CLOSING_WORDS.contains(&word)
}
