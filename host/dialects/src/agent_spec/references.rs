//! References: from a key to what it names.

use std::collections::HashSet;

use hotcell_graph::closest;
use hotcell_graph::diagnostic::Diagnostic;

use super::builder::Builder;
use super::sources::{Located, REFERENCE, REFERENCED, VERSION};
use crate::document::{Entry, Kind as NodeKind};

/// How the keys end of values that the reference runtimes leave out of what they write, and what to do about each.
const LEFT_OUT: &[(&[&str], &str)] = &[
    (&[".api_key"], "remove `api_key`: hotcell takes the keys of models from its own environment"),
    (&[".auth_file_location"], "use another model: hotcell has no client for OCI"),
    (
        &[".key_file", ".cert_file", ".ca_file", ".ssl_ca_cert"],
        "the path is left out of the configuration: write it in place of the reference, or hand in a file of parts that has it",
    ),
    (
        &[".sensitive_headers", ".client_id", ".client_secret", ".user", ".password"],
        "the value is left out of the configuration, as it may be a secret: hand in a file of parts that has it",
    ),
];

impl<'d> Builder<'_, 'd> {
    /// What a reference leads to, through as many references as there are; the piece itself if it is none.
    pub(super) fn follow(&mut self, at: Located<'d>) -> Option<Located<'d>> {
        let mut on_the_way = Vec::new();
        let mut seen = HashSet::new();
        let mut reached = Some(at);
        while let Some(at) = reached {
            let Some(reference) = at.reference() else { break };
            if let Some(known) = self.followed.get(&at.identity()) {
                reached = *known;
                break;
            }
            if !seen.insert(at.identity()) {
                let key = self.key_of(reference);
                self.error(format!("the reference `{key}` leads to itself"), reference.value.place, at);
                reached = None;
                break;
            }
            on_the_way.push(at.identity());
            self.check_reference(at);
            let inside = self.sources.inside(at, &mut self.diagnostics);
            reached = self.look_up(inside, reference);
        }
        self.followed.extend(on_the_way.into_iter().map(|identity| (identity, reached)));
        reached
    }

    /// The key that a reference names.
    pub(super) fn key_of(&self, reference: &Entry) -> String {
        match &reference.value.kind {
            NodeKind::Text(text) => text.value.to_string(),
            _ => String::new(),
        }
    }

    /// A reference has no other keys than its own dictionary.
    fn check_reference(&mut self, at: Located<'d>) {
        let is_root = std::ptr::eq(at.node, self.sources.root().node);
        for entry in at.entries() {
            if [REFERENCE, REFERENCED].contains(&&*entry.key) || (is_root && &*entry.key == VERSION) {
                continue;
            }
            let span = self.sources.span(at.document, entry.key_place);
            let error = Diagnostic::error(format!("`{}` stands beside `{REFERENCE}`", entry.key))
                .at(&span)
                .help("a reference is an object with this one key; write the others where the component is");
            self.report(error);
        }
    }

    fn look_up(&mut self, at: Located<'d>, reference: &'d Entry) -> Option<Located<'d>> {
        let span = self.sources.span(at.document, reference.value.place);
        let NodeKind::Text(key) = &reference.value.kind else {
            let what = reference.value.describe();
            self.report(Diagnostic::error(format!("`{REFERENCE}` must be a text, not {what}")).at(&span));
            return None;
        };
        let named = &key.value;
        let key = &**named;
        let found = self.sources.definitions(key, at);
        match &found[..] {
            [] => {
                let keys = self.sources.keys(at);
                let near = closest(key, keys.iter().copied());
                let left_out = LEFT_OUT.iter().find(|(ends, _)| ends.iter().any(|end| key.ends_with(end)));
                let help = match (left_out, near) {
                    (Some((_, instead)), _) => (*instead).to_owned(),
                    (None, Some(near)) => format!("did you mean `{near}`?"),
                    (None, None) => format!(
                        "define it in a `{REFERENCED}` of this component or of one around it, or hand in a file of parts \
                         that has it"
                    ),
                };
                self.report(Diagnostic::error(format!("nothing has the key `{key}`")).at(&span).help(help));
                None
            }
            // Within a part, the key that counts is the one by which the document came there.
            [only] => {
                let part = at.part.or_else(|| (only.document > 0).then_some(named));
                Some(only.within(part))
            }
            [first, second, ..] => {
                let (first, second) = (
                    self.sources.span(first.document, first.node.place),
                    self.sources.span(second.document, second.node.place),
                );
                let error = Diagnostic::error(format!("the key `{key}` is defined twice"))
                    .at(&span)
                    .related(&first, "here")
                    .related(&second, "and here")
                    .help("remove one of them or give it another name");
                self.report(error);
                None
            }
        }
    }
}
