//! Which names the expressions of an agent may use, and in which of the two styles a file is written.
//!
//! The first style names fields of the state by themselves, the later one as fields of `state`. Which one a file has is
//! decided by what it uses; a file that uses both is refused.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use hotcell_graph::diagnostic::{Diagnostic, Span};
use hotcell_graph::formula::{
    Doubt, Formula, FormulaError, Reason, ValueType, Variable, Vocabulary, Wanted, root_names,
};
use hotcell_graph::{Key, Object, Value};

use super::schema::{Agent, Field, MESSAGES, Route, Source};
use crate::document::{Reader, SourceText};

const STATE: &str = "state";
/// Names that are no fields of the state in any style.
const CONSTANTS: [&str; 4] = ["prompts", "llms", "skills", "data"];
/// What a failed node leaves behind.
pub(super) const HIDDEN: &str = "__sherma__";
/// The reply of a model, where updates are made of it.
pub(super) const REPLY: &str = "llm_response";

/// The condition that holds while the last reply asks for tools.
const HAS_TOOL_CALLS: &str = "has_tool_calls";

/// Whether a condition is a name that is no expression.
pub(super) fn is_native(condition: &str) -> bool {
    condition.trim() == HAS_TOOL_CALLS
}

/// The style of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// `counter`
    #[default]
    Bare,
    /// `state.counter`
    State,
}

impl Style {
    /// What it is called.
    pub fn describe(self) -> &'static str {
        match self {
            Style::Bare => "documented style: fields of the state are names by themselves",
            Style::State => "later style: fields of the state are fields of `state`",
        }
    }
}

/// Decides the style of a file; none if it mixes both, which is an error that shows one place of each.
pub(super) fn style(source: &Source, reader: &Reader<'_>) -> Option<Style> {
    let mut first: [Option<(Span, String)>; 2] = [None, None];
    for agent in &source.agents {
        let fields: HashSet<&str> = agent.fields.iter().map(|field| &*field.name.value).collect();
        let is_field = |name: &str| fields.contains(name);
        for text in expressions(agent) {
            for root in root_names(text) {
                let style = match &*root.name {
                    STATE if !is_field(STATE) => Style::State,
                    name if is_field(name) && !CONSTANTS.contains(&name) => Style::Bare,
                    _ => continue,
                };
                first[style as usize].get_or_insert_with(|| (text.span_of(root.range), root.name));
            }
        }
    }
    let [bare, state] = first;
    if let (Some((bare, name)), Some((state, _))) = (&bare, &state) {
        let error = Diagnostic::error("the file mixes two styles of expressions")
            .at(state)
            .label("here fields belong to `state`")
            .related(bare, format!("here `{name}` is a name by itself"))
            .help(format!("write `state.{name}` everywhere, or nowhere"));
        reader.report(error);
        return None;
    }
    Some(if state.is_some() { Style::State } else { Style::Bare })
}

fn expressions(agent: &Agent) -> Vec<&SourceText> {
    let mut all: Vec<&SourceText> = agent.nodes.iter().flat_map(|node| node.expressions()).collect();
    for edge in &agent.edges {
        if let Route::Branches { branches, .. } = &edge.route {
            all.extend(branches.iter().map(|(condition, _)| condition).filter(|condition| !is_native(condition)));
        }
    }
    all
}

/// Compiles the expressions of one agent.
pub(super) struct Names<'r, 'd> {
    reader: &'r Reader<'d>,
    plain: Vocabulary,
    with_reply: Vocabulary,
    /// What values are needed for that are written to the fields of the state
    writes: BTreeMap<Key, Wanted<'static>>,
    /// The fields of the state, in their order
    pub(super) keys: Arc<[Key]>,
}

impl<'r, 'd> Names<'r, 'd> {
    pub(super) fn new(source: &Source, agent: &Agent, style: Style, reader: &'r Reader<'d>) -> Self {
        // That the conversation is missing is said once, and not wherever an expression names it.
        let is_reported = agent.lacks_conversation() && agent.fields.iter().all(|field| &*field.name != MESSAGES);
        let hidden = [HIDDEN.into()].into_iter().chain(is_reported.then(|| MESSAGES.into()));
        let plain = Vocabulary {
            constants: constants(source),
            locals: Vec::new(),
            fields: agent.fields.iter().map(variable).chain(hidden).collect(),
            bare: style == Style::Bare,
            state: (style == Style::State).then(|| STATE.into()),
        };
        let reply = Variable { name: REPLY.into(), holds: ValueType::map(), enforced: true };
        let with_reply = Vocabulary { locals: vec![reply], ..plain.clone() };
        let write = |field: &Field| {
            let wanted = match field.is_conversation() {
                true => Wanted::Messages,
                false => Wanted::Declared(field.holds.clone()),
            };
            (Arc::clone(&field.name.value), wanted)
        };
        let keys = agent.fields.iter().map(|field| Arc::clone(&field.name.value)).collect();
        Names { reader, plain, with_reply, writes: agent.fields.iter().map(write).collect(), keys }
    }

    /// An expression on the state.
    pub(super) fn compile(&self, text: &SourceText, what: &str, node: &str, wanted: &Wanted<'_>) -> Option<Formula> {
        self.compile_with(&self.plain, text, what, node, wanted)
    }

    /// An expression on the state and a model's reply.
    pub(super) fn compile_with_reply(
        &self,
        text: &SourceText,
        what: &str,
        node: &str,
        wanted: &Wanted<'_>,
    ) -> Option<Formula> {
        self.compile_with(&self.with_reply, text, what, node, wanted)
    }

    /// What a value is needed for that is written to this field.
    pub(super) fn written_to(&self, field: &str) -> &Wanted<'static> {
        self.writes.get(field).unwrap_or(&Wanted::Anything)
    }

    /// Whether the state has this field.
    pub(super) fn has(&self, field: &str) -> bool {
        self.writes.contains_key(field)
    }

    /// What a map is needed for whose entries are written to the state.
    pub(super) fn written(&self) -> Wanted<'_> {
        Wanted::Writes(&self.writes)
    }

    fn compile_with(
        &self,
        vocabulary: &Vocabulary,
        text: &SourceText,
        what: &str,
        node: &str,
        wanted: &Wanted<'_>,
    ) -> Option<Formula> {
        let diagnostic = |diagnostic: fn(String) -> Diagnostic, error: FormulaError| Diagnostic {
            help: error.help,
            ..diagnostic(format!("{what}: {}", error.message)).at(&text.span_of(error.range)).node(node)
        };
        let checked = match Formula::check(text, vocabulary, wanted) {
            Ok(checked) => checked,
            Err(error) => {
                self.reader.report(diagnostic(Diagnostic::error, error));
                return None;
            }
        };
        for Doubt { error, reason } in checked.doubts {
            let warning = diagnostic(Diagnostic::warning, error);
            self.reader.report(match reason {
                Reason::Reached => warning.label("this fails wherever it is reached"),
                Reason::Declared => warning.label("this fails if the state holds what it declares"),
                Reason::Written => warning,
            });
        }
        Some(checked.formula)
    }
}

/// A field as expressions see it. What is written to a conversation becomes messages or is refused; nothing keeps a value
/// of another type out of any other field.
fn variable(field: &Field) -> Variable {
    let name = Arc::clone(&field.name.value);
    match field.is_conversation() {
        true => Variable { name, holds: ValueType::list_of(ValueType::map()), enforced: true },
        false => Variable { name, holds: field.holds.clone(), enforced: false },
    }
}

fn constants(source: &Source) -> Vec<(Key, Value)> {
    let object = |entries: Vec<(Key, Value)>| Value::Object(entries.into_iter().collect::<Object>());
    let text = |text: &str| Value::from(text);
    let prompt = |(id, instructions): &(SourceText, Arc<str>)| {
        (Arc::clone(&id.value), object(vec![("instructions".into(), Value::Text(Arc::clone(instructions)))]))
    };
    let llm = |llm: &super::schema::Llm| {
        (Arc::clone(&llm.declared.id.value), object(vec![("model_name".into(), text(&llm.model))]))
    };
    let skill = |skill: &hotcell_graph::ir::Skill| {
        let entries = [
            ("id", &skill.id),
            ("version", &skill.version),
            ("name", &skill.name),
            ("description", &skill.description),
        ];
        let entries = entries.into_iter().map(|(key, value)| (key.into(), text(value))).collect();
        (Key::from(skill.id.as_str()), object(entries))
    };
    vec![
        ("prompts".into(), object(source.prompts.iter().map(prompt).collect())),
        ("llms".into(), object(source.llms.iter().map(llm).collect())),
        ("skills".into(), object(source.skills.iter().map(skill).collect())),
        ("data".into(), source.data.clone()),
    ]
}
