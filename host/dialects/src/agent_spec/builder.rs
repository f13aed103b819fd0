//! Builds components out of texts, each once however often it is referred to.

use std::collections::HashMap;
use std::sync::Arc;

use hotcell_graph::Value;
use hotcell_graph::diagnostic::{Diagnostic, Severity, Span};
use serde_json::Value as Json;

use super::draft::Draft;
use super::generated::{self, Generated};
use super::kinds::Kind;
use super::memory::{MayHave, Memory};
use super::model::{Component, ComponentId, Field};
use super::names::{self, label};
use super::schema::Schema;
use super::sources::{COMPONENT_TYPE, Identity, Located, PLUGIN_NAME, Sources, VERSION, text_of, version};
use super::versions::Version;
use super::{problems, wayflow};
use crate::document::{Kind as NodeKind, MAX_DEPTH, Place, has_room};
use crate::surroundings::Surroundings;

/// A component and what is known of its text.
pub(super) struct Built {
    /// The component; without an id in its text it has none yet
    pub(super) component: Component,
    /// Where it is in the texts
    pub(super) identity: Identity,
    /// The place of its id, or of what tells its type
    pub(super) id_span: Span,
    /// Where its fields are written, as far as they are
    pub(super) written: HashMap<Arc<str>, Span>,
    /// The node of the entry flow in which it is
    pub(super) within: Option<Identity>,
    /// What its plugin says of it
    pub(super) generated: Generated,
    /// The version that its text is written for
    pub(super) version: Version,
}

/// Builds the components of a configuration.
pub(super) struct Builder<'s, 'd> {
    pub(super) sources: &'s mut Sources<'d>,
    pub(super) surroundings: &'s dyn Surroundings,
    pub(super) diagnostics: Vec<Diagnostic>,
    pub(super) values: Memory,
    pub(super) kinds: HashMap<(Arc<str>, Arc<str>), Kind>,
    /// The version of each document
    versions: Vec<Version>,
    /// The version of the component that is being built
    version: Version,
    built: Vec<Built>,
    visited: HashMap<Identity, Visit>,
    /// What references lead to
    pub(super) followed: HashMap<Identity, Option<Located<'d>>>,
    stack: Vec<Frame>,
}

#[derive(Clone, Copy)]
enum Visit {
    Open,
    Done(Option<usize>),
}

struct Frame {
    label: Arc<str>,
    id: Option<Arc<str>>,
    component_type: Arc<str>,
    is_node: bool,
    identity: Identity,
}

impl<'s, 'd> Builder<'s, 'd> {
    pub(super) fn new(
        sources: &'s mut Sources<'d>,
        versions: Vec<Version>,
        surroundings: &'s dyn Surroundings,
    ) -> Self {
        Builder {
            sources,
            surroundings,
            diagnostics: Vec::new(),
            values: Memory::default(),
            kinds: HashMap::new(),
            version: versions[0],
            versions,
            built: Vec::new(),
            visited: HashMap::new(),
            followed: HashMap::new(),
            stack: Vec::new(),
        }
    }

    /// Builds the root, and then what the document defines and the root does not use, so that mistakes in it are told.
    pub(super) fn document(&mut self) -> Option<usize> {
        let top = self.sources.root();
        let root = self.follow(top).and_then(|root| {
            if root.is_component() {
                return self.used(top, root).map(|id| id.0 as usize);
            }
            self.error(
                "a configuration is one component, and what its reference names is a value",
                root.node.place,
                root,
            );
            None
        });
        let mut read = 0;
        loop {
            let (defined, known) = self.sources.defined(read);
            for located in defined {
                let followed = if located.reference().is_some() { self.follow(located) } else { Some(located) };
                if let Some(component) = followed.filter(Located::is_component) {
                    self.component(component);
                }
            }
            if known == read {
                return root;
            }
            read = known;
        }
    }

    /// All components that were built, and what is wrong.
    pub(super) fn finish(self) -> (Vec<Built>, Vec<Diagnostic>) {
        (self.built, self.diagnostics)
    }

    /// The version of the text that is being read.
    pub(super) fn version(&self) -> Version {
        self.version
    }

    /// Whether something was handed in beside the document.
    pub(super) fn has_parts(&self) -> bool {
        self.versions.len() > 1
    }

    /// Reports an error at a place of the document of `at`, in the name of the component that is being built.
    pub(super) fn error(&mut self, message: impl Into<String>, place: Place, at: Located<'d>) {
        let span = self.sources.span(at.document, place);
        self.report(Diagnostic::error(message).at(&span));
    }

    /// Reports something about the component that is being built.
    pub(super) fn report(&mut self, mut diagnostic: Diagnostic) {
        if !has_room(&self.diagnostics, diagnostic.severity) {
            return;
        }
        if let Some(frame) = self.stack.last() {
            diagnostic.node = Some(names::of_diagnostic(&frame.label, frame.id.as_deref()));
            if let Some(entry) = self.entry_node().filter(|entry| entry.identity != frame.identity) {
                diagnostic.message.push_str(&format!(" (inside of the node `{}`)", entry.label));
            }
        }
        self.diagnostics.push(diagnostic);
    }

    /// The node of the entry flow inside of which the component that is being built is.
    fn entry_node(&self) -> Option<&Frame> {
        let is_flow = self.stack.first().is_some_and(|root| Schema::get().is_in(&root.component_type, "Flow"));
        self.stack.iter().skip(1).find(|frame| is_flow && frame.is_node)
    }

    /// The component of a text that is one, built when it is met for the first time.
    pub(super) fn component(&mut self, at: Located<'d>) -> Option<usize> {
        let identity = at.identity();
        let label = label(at);
        match self.visited.get(&identity) {
            Some(Visit::Done(index)) => return *index,
            Some(Visit::Open) => {
                self.error(format!("`{label}` contains itself: the references go in a circle"), at.node.place, at);
                return None;
            }
            None => {}
        }
        if self.stack.len() >= MAX_DEPTH {
            let message = format!("components are nested more than {MAX_DEPTH} levels deep");
            self.error(message, at.node.place, at);
            return None;
        }
        self.visited.insert(identity, Visit::Open);
        let component_type = text_of(at, COMPONENT_TYPE).unwrap_or_default();
        let version = std::mem::replace(&mut self.version, self.versions[at.document]);
        let is_known = Schema::get().component(&component_type).is_some();
        let is_node = match is_known {
            true => Schema::get().is_in(&component_type, "Node"),
            false => at.node.get(PLUGIN_NAME).is_some(),
        };
        self.stack.push(Frame { label, id: text_of(at, "id"), component_type, is_node, identity });
        let index = self.parts(at);
        self.stack.pop();
        self.version = version;
        self.visited.insert(identity, Visit::Done(index));
        index
    }

    fn parts(&mut self, outside: Located<'d>) -> Option<usize> {
        let at = self.sources.inside(outside, &mut self.diagnostics);
        self.written_version(outside);
        let kind = self.kind(at)?;
        let before = self.diagnostics.len();
        let mut draft = Draft::default();
        for entry in at.entries() {
            self.entry(at, entry, &kind, &mut draft);
        }
        let shallow = Json::Object(std::mem::take(&mut draft.shallow));
        let problems = problems::of(
            &shallow,
            &kind,
            self.version,
            |path| {
                let nearest = at.node.nearest(path.iter().map(String::as_str));
                self.sources.span(at.document, nearest.place)
            },
            |key| {
                let entry = at.node.get(key).or_else(|| at.node.get(COMPONENT_TYPE));
                self.sources.span(at.document, entry.map_or(at.node.place, |entry| entry.key_place))
            },
        );
        for problem in problems {
            self.report(problem);
        }
        if self.diagnostics[before..].iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
            return None;
        }
        Some(self.finish_component(at, outside, &kind, draft))
    }

    /// `agentspec_version` stands at the top of the document and in each part.
    fn written_version(&mut self, at: Located<'d>) {
        let Some(entry) = at.node.get(VERSION) else { return };
        if self.sources.is_part(at) {
            if let Ok(Some(version)) = version(at, self.sources, &mut self.diagnostics) {
                self.version = version;
            }
        } else if !std::ptr::eq(at.node, self.sources.root().node) {
            let span = self.sources.span(at.document, entry.key_place);
            let error = Diagnostic::error(format!("`{VERSION}` stands inside of a configuration"))
                .at(&span)
                .help("it belongs to the top of the file");
            self.report(error);
        }
    }

    /// The component of a field.
    pub(super) fn child(&mut self, at: Located<'d>, field: &str, family: &str) -> Option<ComponentId> {
        let target = self.follow(at)?;
        let span = self.sources.span(at.document, at.node.place);
        if !target.is_component() {
            let what = target.node.describe();
            let mut error =
                Diagnostic::error(format!("`{field}` takes a component of the type {family}, not {what}")).at(&span);
            if matches!(target.node.kind, NodeKind::Map(_)) {
                error = Diagnostic::error(format!("the component in `{field}` has no `{COMPONENT_TYPE}`")).at(&span);
                error = error.help(format!("write the name of its type, one of the family {family}"));
            }
            self.report(error);
            return None;
        }
        let id = self.used(at, target)?;
        let component = &self.built[id.0 as usize].component;
        let component_type = Arc::clone(&component.component_type);
        let is_in_family = match self.plugin_kind(component) {
            Some(kind) => kind.is_in(family),
            None => Schema::get().is_in(&component_type, family),
        };
        if !is_in_family {
            let label = label(target);
            let by_key = at.reference().map(|entry| self.key_of(entry)).filter(|key| **key != *label);
            let by_key = by_key.map(|key| format!(" (by the key `{key}`)")).unwrap_or_default();
            let message = format!(
                "`{field}` takes a component of the type {family}, and `{label}`{by_key} is of the type `{component_type}`"
            );
            let defined = self.sources.span(target.document, target.node.place);
            self.report(Diagnostic::error(message).at(&span).related(&defined, "defined here"));
            return None;
        }
        Some(id)
    }

    /// The component that is used at a place.
    pub(super) fn used(&mut self, at: Located<'d>, target: Located<'d>) -> Option<ComponentId> {
        let index = self.component(target)?;
        if at.document == 0
            && let Some(key) = target.part
        {
            self.built[index].component.handed_in = Some(Arc::clone(key));
        }
        Some(ComponentId(index as u32))
    }

    fn plugin_kind(&self, component: &Component) -> Option<&Kind> {
        let plugin = component.plugin.as_ref()?;
        self.kinds.get(&(Arc::clone(&plugin.name), Arc::clone(&component.component_type)))
    }

    fn finish_component(&mut self, at: Located<'d>, outside: Located<'d>, kind: &Kind, draft: Draft) -> usize {
        let span = self.sources.span(at.document, at.node.place);
        let told_by = at.node.get("id").or_else(|| at.node.get(COMPONENT_TYPE));
        let id_span = self.sources.span(at.document, told_by.map_or(at.node.place, |entry| entry.value.place));
        let id = self.resolved_text(at, "id");
        let name = self.resolved_text(at, "name").unwrap_or_default();
        let mut fields = draft.fields;
        let branches = match fields.shift_remove("branches") {
            Some(Field::Value { value: Value::List(list), .. }) => {
                Some(list.iter().filter_map(Value::as_text).map(Arc::from).collect::<Vec<Arc<str>>>())
            }
            _ => None,
        };
        let mut component = Component {
            component_type: kind.component_type().into(),
            id_is_written: id.is_some(),
            // The configuration as a whole decides that.
            shown: Arc::default(),
            id: id.unwrap_or_default(),
            name,
            fields,
            inputs: Vec::new(),
            outputs: Vec::new(),
            branches: Vec::new(),
            plugin: kind.plugin(at),
            handed_in: None,
            pieces: draft.pieces,
            left_out: Vec::new(),
            span,
        };
        // Some of what is implied follows from what is declared.
        component.inputs = draft.inputs.clone().unwrap_or_default();
        component.outputs = draft.outputs.clone().unwrap_or_default();
        let declared = generated::Declared { inputs: draft.inputs.is_some(), outputs: draft.outputs.is_some() };
        let generated = match kind {
            Kind::Plugin(plugin) => plugin.generated(&component.span),
            Kind::Standard { .. } => {
                let find = |id: ComponentId| &self.built[id.0 as usize].component;
                wayflow::generated(&component, &find).unwrap_or_else(|| {
                    generated::of(&component, declared, &find, self.version, self.surroundings.renders_jinja())
                })
            }
        };
        if draft.inputs.is_none() {
            component.inputs = generated.inputs.clone().unwrap_or_default();
        }
        if draft.outputs.is_none() {
            component.outputs = generated.outputs.clone().unwrap_or_default();
        }
        if self.has_parts() {
            let declared =
                [("inputs", declared.inputs), ("outputs", declared.outputs), ("branches", branches.is_some())];
            component.left_out = declared.into_iter().filter(|(_, is)| !is).map(|(name, _)| name).collect();
        }
        component.branches = branches.or_else(|| generated.branches.clone()).unwrap_or_default();
        let within = self.entry_node().map(|frame| frame.identity).filter(|entry| *entry != outside.identity());
        self.built.push(Built {
            component,
            identity: outside.identity(),
            id_span,
            written: draft.written,
            within,
            generated,
            version: self.version,
        });
        self.built.len() - 1
    }

    /// The text of a field, which may be a reference to one.
    fn resolved_text(&mut self, at: Located<'d>, field: &str) -> Option<Arc<str>> {
        let entry = at.node.get(field)?;
        match self.value(at.with(&entry.value), &entry.key, MayHave::Values)?.0 {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}
