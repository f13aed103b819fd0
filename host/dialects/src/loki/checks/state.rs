//! What the templates of a graph refer to.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

use hotcell_graph::diagnostic::{Diagnostic, Severity, Span};
use hotcell_graph::{Braces, closest, ir};

use super::super::schema::{Body, Node};
use super::super::{INPUT_KEY, placeholders};
use super::Check;
use crate::document::SourceText;

/// A reference of a node to a key of the state.
pub(super) struct Read<'a> {
    pub(super) key: String,
    template: &'a SourceText,
    range: Range<usize>,
}

impl Read<'_> {
    pub(super) fn span(&self) -> Span {
        self.template.span_of(self.range.clone())
    }
}

/// Steps that a reference counts for which is kept.
const READ: usize = 100;

/// The references of a node to keys of the state. A `map` reads what its branch reads, but for the item and what the branch writes.
pub(super) fn reads<'a>(check: &Check<'a>, node: &'a Node) -> Vec<Read<'a>> {
    let mut found = own_reads(node);
    if let Body::Map(map) = &node.body {
        let item = map.item_key.as_deref();
        let members: Vec<&Node> = check.branch_of(map).into_iter().map(|member| &check.nodes()[member]).collect();
        let written: HashSet<&str> = match &members[..] {
            [_, _, ..] => members.iter().flat_map(|member| member.writes()).map(|(key, _)| &**key).collect(),
            _ => HashSet::new(),
        };
        for member in members {
            let reads = own_reads(member);
            // They are kept for each map that runs the member.
            if !check.takes(READ * reads.len()) {
                break;
            }
            found.extend(reads.into_iter().filter(|read| Some(&*read.key) != item && !written.contains(&*read.key)));
        }
    }
    found
}

fn own_reads(node: &Node) -> Vec<Read<'_>> {
    let mut found: Vec<Read<'_>> = node.templates().into_iter().flat_map(roots).collect();
    // The node's own result, and what was merged from it, comes from no other node.
    let own: Vec<&str> = node
        .scoped_name()
        .into_iter()
        .chain(node.output_schema().into_iter().flat_map(|schema| schema.properties.iter().map(|key| &*key.value)))
        .collect();
    for update in &node.updates {
        found.extend(roots(&update.value).filter(|read| !own.contains(&&*read.key)));
    }
    found
}

fn roots(template: &SourceText) -> impl Iterator<Item = Read<'_>> {
    Braces::find(template).into_iter().filter_map(move |braces| {
        let key = braces.path.as_ref()?.root()?.to_owned();
        Some(Read { key, template, range: braces.range })
    })
}

/// Braces that hold no reference, and references to what nothing ever writes.
pub(super) fn references(check: &Check<'_>) {
    let written = written_keys(check);
    let declared = declared_keys(check);
    let items = item_keys(check);
    let mut unlike: HashSet<String> = HashSet::new();
    for node in check.nodes() {
        for template in node.templates().into_iter().chain(node.updates.iter().map(|update| &update.value)) {
            malformed(check, node, template);
        }
        placeholders(check, node, &declared);
        let Written { keys: written, all } = &written;
        // What a script prints may be any key, and its own updates see it.
        if matches!(node.body, Body::Script(_)) {
            continue;
        }
        let items = items.get(&*node.id.value).map(Vec::as_slice).unwrap_or_default();
        for read in own_reads(node) {
            if check.reader.is_full_of(Severity::Warning) || !check.takes(1) {
                return;
            }
            if written.contains(&*read.key) || items.contains(&&*read.key) {
                continue;
            }
            let key = &read.key;
            if placeholders::is_placeholder(key) {
                continue;
            }
            if !all {
                if unlike.contains(key) {
                    continue;
                }
                // A script may write it; but who writes `draft` rarely means something else by `drfat`.
                let near = closest(key, written.iter().map(|key| &**key));
                let is_form_of = |near: &&str| near.starts_with(&**key) || key.starts_with(*near);
                if let Some(near) = near.filter(|near| key.len() > 3 && !is_form_of(near)) {
                    let message = format!(
                        "no node writes `{key}`, which node `{}` refers to, though a script might",
                        node.id.value
                    );
                    let help = format!("did you mean `{{{{{near}}}}}`?");
                    check.reader.report(check.warning(node, message, &read.span()).help(help));
                } else {
                    unlike.insert(key.clone());
                }
                continue;
            }
            let message = format!("nothing in the graph writes `{key}`, which node `{}` refers to", node.id.value);
            let help = match closest(key, written.iter().map(|key| &**key).chain(items.iter().copied())) {
                Some(near) => format!("did you mean `{{{{{near}}}}}`?"),
                None => match scoped_elsewhere(node, key) {
                    Some(help) => help,
                    None => {
                        format!("write it before with `state_updates`, or give it a value in `initial_state`: `{key}`")
                    }
                },
            };
            check.reader.report(check.warning(node, message, &read.span()).help(help));
        }
    }
}

/// Placeholders of the language that nothing fills. A graph may have keys of that form, if it declares them.
fn placeholders(check: &Check<'_>, node: &Node, declared: &HashSet<&str>) {
    for read in own_reads(node) {
        let (key, is_told) = (&*read.key, is_told(node, read.template));
        if !placeholders::is_placeholder(key) || declared.contains(key) || placeholders::is_known(key, is_told) {
            continue;
        }
        if check.reader.is_full_of(Severity::Error) {
            return;
        }
        let message = format!("nothing fills the placeholder `{{{{{key}}}}}` of node `{}`", node.id.value);
        check.reader.report(check.error(node, message, &read.span()).help(placeholders::help(key, is_told)));
    }
}

/// The keys that the graph declares, or that a node of it writes.
fn declared_keys<'a>(check: &Check<'a>) -> HashSet<&'a str> {
    let source = check.source;
    let state = source.initial_state.iter().map(|(name, _)| &*name.value);
    let variables = source.variables.iter().map(|variable| &*variable.name.value);
    let written = source.nodes.iter().flat_map(Node::writes).map(|(key, _)| &**key);
    state.chain(variables).chain(written).collect()
}

/// Whether a template is what a model is told.
fn is_told(node: &Node, template: &SourceText) -> bool {
    let Body::Llm(llm) = &node.body else { return false };
    llm.instructions.iter().chain(&llm.prompt).any(|text| std::ptr::eq(text, template))
}

fn scoped_elsewhere(node: &Node, key: &str) -> Option<String> {
    let exists = format!("`{{{{{key}}}}}` exists only inside `state_updates` of the node that gives it");
    match (key, node.scoped_name()) {
        ("output" | "choice" | "input", Some(name)) if name != key => {
            Some(format!("{exists}; in `{}` nodes it is `{{{{{name}}}}}`", node.body.kind()))
        }
        ("output" | "choice" | "input", _) => Some(format!("{exists}: store it there under a name of its own")),
        _ => None,
    }
}

fn malformed(check: &Check<'_>, node: &Node, template: &SourceText) {
    unclosed(check, node, template);
    for braces in Braces::find(template) {
        let is_path = braces.path.as_ref().is_some_and(hotcell_graph::Path::is_well_formed);
        if is_path || check.reader.is_full_of(Severity::Warning) {
            continue;
        }
        let written = &template[braces.range.clone()];
        let (problem, help) = match braces.path {
            Some(_) => ("names nothing: it is not a path", "paths look like `{{a.b[0].c}}`"),
            None => ("is text, not a reference", "a reference is a path and nothing else: `{{a.b[0].c}}`"),
        };
        let span = template.span_of(braces.range);
        check.reader.report(check.warning(node, format!("`{written}` {problem}"), &span).help(help));
    }
}

/// Braces that open and do not close before the line ends: what looks like a reference reaches people and models as text.
fn unclosed(check: &Check<'_>, node: &Node, template: &SourceText) {
    // All of these in their order, so that a text is looked through once.
    let found = Braces::find(template);
    let places = |of: &str| template.match_indices(of).map(|(at, _)| at).collect::<Vec<_>>();
    let (line_ends, closings) = (places("\n"), places("}}"));
    let next = |among: &[usize], from: usize| among.get(among.partition_point(|at| *at < from)).copied();
    let is_found = |start: usize| {
        let at = found.partition_point(|braces| braces.range.end <= start);
        found.get(at).is_some_and(|braces| braces.range.contains(&start))
    };
    for (start, _) in template.match_indices("{{").filter(|(start, _)| !is_found(*start)) {
        let end = next(&line_ends, start + 2).unwrap_or(template.len());
        let line = &template[start + 2..end];
        let word =
            line.trim_start().split(|c: char| !(c.is_alphanumeric() || "_.-[]".contains(c))).next().unwrap_or_default();
        // JSON in a prompt has such braces, too.
        let closes = next(&closings, start + 2).is_some_and(|closing| closing + 2 <= end);
        if word.is_empty() || closes || check.reader.is_full_of(Severity::Warning) {
            continue;
        }
        let span = template.span_of(start..start + 2);
        let message = format!("`{{{{` before `{word}` is never closed, so it is text");
        check.reader.report(check.warning(node, message, &span).help(format!("a reference is `{{{{{word}}}}}`")));
    }
}

/// The keys that nodes write.
struct Written {
    keys: BTreeSet<String>,
    /// Whether these are all: a script may write any key
    all: bool,
}

fn written_keys(check: &Check<'_>) -> Written {
    let mut all = true;
    // What a script alone gives to a map is collected, and what it writes beside that is dropped.
    let mut alone = vec![false; check.nodes().len()];
    for node in check.nodes() {
        if let Body::Map(map) = &node.body
            && let [only] = check.branch_of(map)[..]
        {
            alone[only] = true;
        }
    }
    let source = check.source;
    let mut keys: BTreeSet<String> = BTreeSet::from([INPUT_KEY.to_owned()]);
    keys.extend(source.initial_state.iter().map(|(key, _)| key.value.to_string()));
    keys.extend(source.variables.iter().map(|variable| variable.name.to_string()));
    for (index, node) in check.nodes().iter().enumerate() {
        match &node.body {
            Body::Unknown => all = false,
            Body::Script(_) if !alone[index] => all = false,
            _ => {}
        }
        keys.extend(node.writes().iter().map(|(key, _)| key.to_string()));
        keys.insert(ir::failure_key(&node.id.value).to_string());
    }
    Written { keys, all }
}

/// The keys under which the nodes in the branches of maps find their items, by these nodes.
fn item_keys<'a>(check: &Check<'a>) -> HashMap<&'a str, Vec<&'a str>> {
    let mut keys: HashMap<&str, Vec<&str>> = HashMap::new();
    for node in check.nodes() {
        let Body::Map(map) = &node.body else { continue };
        let Some(key) = map.item_key.as_deref() else { continue };
        for member in check.branch_of(map) {
            keys.entry(check.id(member)).or_default().push(key);
        }
    }
    keys
}

pub(super) fn initial_state(check: &Check<'_>) {
    let keys = check.source.initial_state.iter().map(|(key, _)| (&*key.value, &key.span, "initial_state"));
    let variables = check.source.variables.iter().map(|variable| (&*variable.name, &variable.name.span, "variables"));
    for (key, span, field) in keys.chain(variables) {
        if key == INPUT_KEY {
            let warning =
                Diagnostic::warning(format!("`{INPUT_KEY}` in `{field}` is overwritten by the prompt of the run"))
                    .at(span)
                    .help("remove it");
            check.reader.report(warning);
        }
    }
}
