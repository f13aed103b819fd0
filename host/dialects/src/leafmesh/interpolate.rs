//! Variables of the environment in the texts of a mesh: `${NAME}` and `${NAME:default}`.
//!
//! They are put in after the file was read, and what they put in is never looked at again.

use hotcell_graph::diagnostic::Diagnostic;

use crate::document::{Document, Entry, Kind, Node, Style, Text, report};
use crate::surroundings::Surroundings;

/// What begins the name of a secret in the vault.
const VAULT: &str = "vault:";
/// How the names of variables begin, or are, that no mesh may read.
const DENIED_STARTS: [&str; 3] = ["LD_", "DYLD_", "HOTCELL_"];
const DENIED: [&str; 5] = ["PATH", "HOME", "LEAFMESH_LICENSE_KEY", "LEAFMESH_ENV_TOKEN", "LEAFMESH_WEBHOOK_SECRET"];

/// The document with all variables put in, and what is wrong with them.
pub(super) fn interpolate(document: Document, surroundings: &dyn Surroundings) -> (Document, Vec<Diagnostic>) {
    let mut work = Interpolation { document: &document, surroundings, diagnostics: Vec::new() };
    let root = work.node(&document.root);
    let diagnostics = work.diagnostics;
    (Document { file: document.file, root }, diagnostics)
}

/// Whether a text refers to a secret in the vault.
pub(super) fn names_vault(text: &str) -> bool {
    text.contains("${vault:")
}

struct Interpolation<'a> {
    document: &'a Document,
    surroundings: &'a dyn Surroundings,
    diagnostics: Vec<Diagnostic>,
}

impl Interpolation<'_> {
    fn node(&mut self, node: &Node) -> Node {
        let kind = match &node.kind {
            Kind::Text(text) if text.value.contains('$') => Kind::Text(self.text(node, text)),
            Kind::List(items) => Kind::List(items.iter().map(|item| self.node(item)).collect()),
            Kind::Map(entries) => Kind::Map(
                entries.iter().map(|entry| Entry { value: self.node(&entry.value), ..entry.clone() }).collect(),
            ),
            other => other.clone(),
        };
        Node { place: node.place, kind }
    }

    fn text(&mut self, node: &Node, text: &Text) -> Text {
        let mut put_in = String::with_capacity(text.value.len());
        let mut rest = &*text.value;
        let mut variables = 0;
        // Behind the last brace that closes there is no variable: looking for one each time would take for ever.
        let closes = rest.rfind('}').unwrap_or(0);
        while let Some(at) = rest.find('$') {
            put_in.push_str(&rest[..at]);
            let behind = &rest[at + 1..];
            let may_close = text.value.len() - behind.len() <= closes;
            let inner = behind.strip_prefix('{').filter(|_| may_close);
            let inner = inner.and_then(|inner| Some((inner, inner.find('}')?)));
            rest = match inner {
                Some((inner, end)) => {
                    let name = &inner[..end];
                    if name.starts_with(VAULT) {
                        put_in.push_str(&rest[at..=at + 2 + end]);
                    } else {
                        put_in.push_str(&self.value(node, name));
                    }
                    variables += 1;
                    &inner[end + 1..]
                }
                None => {
                    put_in.push('$');
                    // Two of them are one.
                    behind.strip_prefix('$').unwrap_or(behind)
                }
            };
        }
        put_in.push_str(rest);
        let whole = &text.value;
        let is_alone = variables == 1 && whole.starts_with("${") && whole.find('}') == Some(whole.len() - 1);
        // One that stands alone is what its place takes, quoted or not: braces have to be quoted in JSON and within `{...}`.
        let style = if is_alone { Style::Variable } else { text.style };
        Text { value: put_in.into(), style }
    }

    /// The value of `NAME` or `NAME:default`.
    fn value(&mut self, node: &Node, written: &str) -> String {
        let (name, default) = match written.split_once(':') {
            Some((name, default)) => (name, Some(default)),
            None => (written, None),
        };
        let span = self.document.span(node.place);
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_name {
            let error = Diagnostic::error(format!(
                "`${{{written}}}` does not name a variable: `{name}` is not a valid name of one"
            ));
            let help = "write `${NAME}` or `${NAME:default}`, and `$$` for a dollar";
            report(&mut self.diagnostics, error.at(&span).help(help));
            return String::new();
        }
        if DENIED.contains(&name) || DENIED_STARTS.iter().any(|start| name.starts_with(start)) {
            let error = Diagnostic::error(format!("the variable `{name}` is not for meshes to read"));
            report(&mut self.diagnostics, error.at(&span).help("give the value in a variable of another name"));
            return String::new();
        }
        match (self.surroundings.variable(name), default) {
            (Some(value), _) => value,
            (None, Some(default)) => default.to_owned(),
            (None, None) => {
                let warning =
                    Diagnostic::warning(format!("the variable `{name}` is not set: it is replaced by the empty text"));
                let help = format!("set it, or give a default: `${{{name}:default}}`");
                report(&mut self.diagnostics, warning.at(&span).help(help));
                String::new()
            }
        }
    }
}
