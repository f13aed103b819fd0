//! What all parts of the reader share: what was found so far, and what hotcell does not run yet.

use std::cell::RefCell;
use std::time::Duration;

use hotcell_graph::diagnostic::{Diagnostic, Severity, Span};
use hotcell_graph::{Key, closest};

use super::interpolate::names_vault;
use crate::document::Need::Optional;
use crate::document::{Entry, Fields, Kind, Node, Owner, Reader, SourceText};
use crate::surroundings::Surroundings;

/// The longest time that is meant: more than anybody waits.
pub(super) const LONGEST: f64 = 1e9;
/// The same in seconds, as a whole number of them.
pub(super) const MOST_SECONDS: u32 = LONGEST as u32;
/// How what cannot run yet is told.
const LATER: &str = "not run by hotcell yet: ";

pub(super) struct Reading<'r, 'd> {
    pub(super) reader: &'r Reader<'d>,
    pub(super) surroundings: &'r dyn Surroundings,
    /// The names of the data structures
    pub(super) structures: Vec<Key>,
    /// The names of the message brokers
    pub(super) brokers: Vec<Key>,
    pub(super) is_production: bool,
    /// Whether there is a manager, and it is on
    pub(super) has_manager: bool,
    later: RefCell<Vec<String>>,
}

impl<'r, 'd> Reading<'r, 'd> {
    pub(super) fn new(reader: &'r Reader<'d>, surroundings: &'r dyn Surroundings) -> Self {
        Reading {
            reader,
            surroundings,
            structures: Vec::new(),
            brokers: Vec::new(),
            is_production: false,
            has_manager: false,
            later: RefCell::default(),
        }
    }

    /// What the file says that hotcell does not run yet.
    pub(super) fn all_later(&self) -> Vec<String> {
        self.later.borrow().clone()
    }

    /// A block of fields; none if it is left out or no mapping.
    pub(super) fn block(&self, fields: &mut Fields<'r, 'd>, name: &'static str) -> Option<Fields<'r, 'd>> {
        let node = fields.node(name, Optional)?;
        // What is wrong within is told with the way to it.
        let around = fields.owner().node.as_deref().map_or_else(String::new, |around| format!("{around}."));
        let owner =
            Owner { what: format!("`{name}`"), node: Some(format!("{around}{name}").into()), place: node.place };
        self.reader.fields(node, owner)
    }

    /// The fields of a mapping that belongs to the owner of others.
    pub(super) fn fields_of(&self, fields: &Fields<'r, 'd>, node: &'d Node, what: String) -> Option<Fields<'r, 'd>> {
        self.reader.fields(node, Owner { what, node: fields.owner().node.clone(), place: node.place })
    }

    /// Takes note of something that a run refuses.
    pub(super) fn later(&self, fields: &Fields<'_, '_>, entry: &Entry) {
        self.later_because(fields, entry, "");
    }

    pub(super) fn later_because(&self, fields: &Fields<'_, '_>, entry: &Entry, why: &str) {
        let said = format!("`{}` of {}{why}", entry.key, fields.owner().what);
        let warning = self.warning(fields, format!("{LATER}{said}"), entry.key_place);
        self.reader.report(warning.help("a run of the mesh is refused as long as it is there"));
        self.later.borrow_mut().push(said);
    }

    /// Takes note of something about an agent or a block that a run refuses.
    pub(super) fn later_of(&self, node: &str, span: &Span, said: String) {
        let warning = Diagnostic::warning(format!("{LATER}{said}")).at(span).node(node);
        self.reader.report(warning.help("a run of the mesh is refused as long as it is there"));
        self.later.borrow_mut().push(said);
    }

    /// A field that is only checked for what it can be, and refused by a run if it switches something on.
    pub(super) fn not_yet(&self, fields: &mut Fields<'r, 'd>, name: &'static str) {
        if let Some(entry) = fields.entry(name, Optional)
            && is_on(&entry.value)
        {
            self.later(fields, entry);
        }
    }

    /// Warns of a field or block that is read, checked and then changes nothing, where it is there.
    pub(super) fn no_effect(&self, fields: &mut Fields<'r, 'd>, name: &'static str, why: &str) {
        self.warn_of_no_effect(fields, name, why, None);
    }

    /// The same, with what to write in its place.
    pub(super) fn no_effect_but(&self, fields: &mut Fields<'r, 'd>, name: &'static str, why: &str, instead: &str) {
        self.warn_of_no_effect(fields, name, why, Some(instead));
    }

    fn warn_of_no_effect(&self, fields: &mut Fields<'r, 'd>, name: &'static str, why: &str, instead: Option<&str>) {
        let Some(entry) = fields.entry(name, Optional) else { return };
        let said = format!("`{name}` of {} has no effect: {why}", fields.owner().what);
        let mut warning = self.warning(fields, said, entry.key_place);
        warning.help = instead.map(str::to_owned);
        self.reader.report(warning);
    }

    pub(super) fn warning(
        &self,
        fields: &Fields<'_, '_>,
        message: impl Into<String>,
        place: crate::document::Place,
    ) -> Diagnostic {
        let warning = fields.error(message, &self.reader.span(place));
        Diagnostic { severity: Severity::Warning, ..warning }
    }

    /// A time in seconds, more than nothing.
    pub(super) fn seconds(&self, fields: &mut Fields<'r, 'd>, name: &'static str, most: f64) -> Option<Duration> {
        let given = fields.number(name, Optional)?;
        if given.value > 0.0 && given.value <= most {
            return Some(Duration::from_secs_f64(given.value));
        }
        let most = if most == LONGEST { String::new() } else { format!(" and at most {most}") };
        let error = fields.error(format!("`{name}` must be more than 0{most}, not {}", given.value), &given.span);
        self.reader.report(error);
        None
    }

    /// A number that is more than nothing.
    pub(super) fn positive(&self, fields: &mut Fields<'r, 'd>, name: &'static str) -> Option<f64> {
        self.seconds(fields, name, LONGEST).map(|number| number.as_secs_f64())
    }

    /// Looks at a secret: one that is written out is an error in production, and a warning elsewhere.
    pub(super) fn secret(&self, fields: &Fields<'r, 'd>, name: &str, text: &SourceText, node: &Node) {
        let raw = self.reader.document().raw(node.place);
        if text.is_empty() || raw.contains("${") {
            return;
        }
        let message = format!("`{name}` of {} is written out in the file", fields.owner().what);
        let warning = self.warning(fields, message, node.place);
        let severity = if self.is_production { Severity::Error } else { Severity::Warning };
        let help = "take it from the environment: `${NAME}`";
        self.reader.report(Diagnostic { severity, ..warning.help(help) });
    }
}

/// Whether a value switches something on: not `false`, nothing, nor what is empty.
pub(super) fn is_on(node: &Node) -> bool {
    match &node.kind {
        Kind::Null | Kind::Bool(false) => false,
        Kind::Text(text) => !text.value.is_empty() && &*text.value != "false",
        Kind::List(items) => !items.is_empty(),
        Kind::Map(entries) => !entries.is_empty(),
        Kind::Bool(true) | Kind::Number(_) => true,
    }
}

/// The first text below a node that names a secret in the vault.
pub(super) fn vault_name(node: &Node) -> Option<String> {
    match &node.kind {
        Kind::Text(text) if names_vault(&text.value) => {
            let at = text.value.find("${vault:")?;
            let end = text.value[at..].find('}')?;
            Some(text.value[at..=at + end].to_owned())
        }
        Kind::List(items) => items.iter().find_map(vault_name),
        Kind::Map(entries) => entries.iter().find_map(|entry| vault_name(&entry.value)),
        _ => None,
    }
}

/// A mapping whose values are texts.
pub(super) fn text_values<'d>(
    reading: &Reading<'_, 'd>,
    fields: &mut Fields<'_, 'd>,
    name: &'static str,
) -> Vec<(String, String)> {
    let (entries, _) = fields.map(name, Optional).unwrap_or_default();
    let value = |entry: &'d Entry| {
        let text = reading.reader.text(&entry.value, || format!("`{}` of `{name}`", entry.key), fields.owner())?;
        Some((entry.key.to_string(), text.to_string()))
    };
    entries.iter().filter_map(value).collect()
}

/// Help for a name that is none of these.
pub(super) fn did_you_mean<'a>(name: &SourceText, known: impl IntoIterator<Item = &'a Key>) -> Option<String> {
    closest(name, known.into_iter().map(|name| &**name)).map(|near| format!("did you mean `{near}`?"))
}
