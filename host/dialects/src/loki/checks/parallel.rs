//! Branches that run side by side: what they may write and read.
//!
//! For a fan-out, a node that only one of two targets leads to runs beside every node that only the other leads to. A
//! node that both lead to runs after them, because it waits for both.

use std::collections::HashSet;

use hotcell_graph::diagnostic::{Severity, Span};
use indexmap::IndexMap;

use super::super::schema::Body;
use super::Check;
use super::edges::Edge;
use super::state::{Read, reads};

/// The nodes with several targets, each with the edges to these.
fn fan_outs<'c, 'a>(check: &'c Check<'a>) -> impl Iterator<Item = (usize, Vec<&'c Edge<'a>>)> {
    check.edges.iter().enumerate().filter_map(|(node, edges)| {
        let targets: Vec<&Edge<'a>> = edges.iter().filter(|edge| edge.field == "next").collect();
        (targets.len() > 1).then_some((node, targets))
    })
}

pub(super) fn people_in_branches(check: &Check<'_>) {
    for (from, targets) in fan_outs(check) {
        for edge in targets {
            let node = &check.nodes()[edge.to];
            if !matches!(node.body, Body::Input(_) | Body::Approval(_)) {
                continue;
            }
            let (kind, id, from) = (node.body.kind(), &node.id.value, check.id(from));
            let error = check
                .error(node, format!("the `{kind}` node `{id}` is one of several targets of `{from}`"), edge.span)
                .help("a question cannot be asked beside other work: ask before the fan-out or after it");
            check.reader.report(error);
        }
    }
}

/// Which targets of a fan-out lead to each node, one bit for each target.
struct LedToBy(Vec<Vec<u64>>);

impl LedToBy {
    fn new(check: &Check<'_>, targets: &[&Edge<'_>]) -> Self {
        let mut bits = vec![vec![0u64; targets.len().div_ceil(64)]; check.nodes().len()];
        for (number, edge) in targets.iter().enumerate() {
            if !check.takes(bits.len()) {
                break;
            }
            for (node, reached) in check.reachable_from(edge.to).iter().enumerate() {
                bits[node][number / 64] |= u64::from(*reached) << (number % 64);
            }
        }
        LedToBy(bits)
    }

    /// Whether some target leads to the node and some does not.
    fn is_inside(&self, node: usize, targets: usize) -> bool {
        let leading: u32 = self.0[node].iter().map(|word| word.count_ones()).sum();
        leading > 0 && (leading as usize) < targets
    }

    /// Whether two nodes run side by side: each lies behind a target that does not lead to the other.
    fn side_by_side(&self, left: usize, right: usize) -> bool {
        let (left, right) = (&self.0[left], &self.0[right]);
        let has_own = |one: &[u64], other: &[u64]| one.iter().zip(other).any(|(one, other)| one & !other != 0);
        has_own(left, right) && has_own(right, left)
    }
}

/// Who writes and who reads a key.
#[derive(Default)]
struct Uses<'a> {
    writers: Vec<(usize, &'a Span)>,
    readers: Vec<(usize, &'a Read<'a>)>,
}

/// Two writers of one key without a reducer, and readers of what a sibling writes.
pub(super) fn shared_keys(check: &Check<'_>) {
    let reducers: HashSet<&str> = check.source.reducers.iter().map(|(key, _)| &*key.value).collect();
    let reads: Vec<Vec<Read<'_>>> = check.nodes().iter().map(|node| reads(check, node)).collect();
    let mut reported = HashSet::new();
    for (_, targets) in fan_outs(check) {
        let led_to_by = LedToBy::new(check, &targets);
        let inside = (0..check.nodes().len()).filter(|node| led_to_by.is_inside(*node, targets.len()));
        for (key, uses) in uses(check, &reads, inside) {
            let is_reduced = reducers.contains(key);
            for (number, writer) in uses.writers.iter().enumerate() {
                let compared = uses.writers.len() - number + uses.readers.len();
                if check.reader.is_full_of(Severity::Error) || !check.takes(compared * targets.len().div_ceil(64)) {
                    return;
                }
                for other in &uses.writers[number + 1..] {
                    let is_new = !is_reduced
                        && led_to_by.side_by_side(writer.0, other.0)
                        && reported.insert((key.to_owned(), writer.0, other.0, "write"));
                    if is_new {
                        report_writers(check, key, *writer, *other);
                    }
                }
                for reader in &uses.readers {
                    let is_new = led_to_by.side_by_side(writer.0, reader.0)
                        && reported.insert((key.to_owned(), writer.0, reader.0, "read"));
                    if is_new {
                        report_reader(check, key, *reader, *writer);
                    }
                }
            }
        }
    }
}

/// How nodes use each key, each node once for each kind of use.
fn uses<'a>(
    check: &Check<'a>,
    reads: &'a [Vec<Read<'a>>],
    nodes: impl Iterator<Item = usize>,
) -> IndexMap<&'a str, Uses<'a>> {
    let mut uses: IndexMap<&str, Uses<'_>> = IndexMap::new();
    for index in nodes {
        for (key, span) in check.nodes()[index].writes() {
            let writers = &mut uses.entry(key).or_default().writers;
            if writers.last().is_none_or(|(last, _)| *last != index) {
                writers.push((index, span));
            }
        }
        for read in &reads[index] {
            let readers = &mut uses.entry(&read.key).or_default().readers;
            if readers.last().is_none_or(|(last, _)| *last != index) {
                readers.push((index, read));
            }
        }
    }
    uses
}

fn report_writers(check: &Check<'_>, key: &str, left: (usize, &Span), right: (usize, &Span)) {
    let (id, other) = (check.id(left.0), check.id(right.0));
    let message = format!("the nodes `{id}` and `{other}` run side by side and both write `{key}`");
    let error = check
        .error(&check.nodes()[right.0], message, right.1)
        .label(format!("`{other}` writes it here"))
        .related(left.1, format!("`{id}` writes it here"))
        .help(format!("say how the writes are combined, as in `reducers: {{ {key}: append }}`, or use two keys"));
    check.reader.report(error);
}

fn report_reader(check: &Check<'_>, key: &str, reader: (usize, &Read<'_>), writer: (usize, &Span)) {
    let (id, writer_id) = (check.id(reader.0), check.id(writer.0));
    let message = format!("node `{id}` reads `{key}`, which `{writer_id}` writes side by side with it");
    let error = check
        .error(&check.nodes()[reader.0], message, &reader.1.span())
        .related(writer.1, format!("`{writer_id}` writes it here"))
        .help("a branch sees the state at its start: read it after the branches have met");
    check.reader.report(error);
}
