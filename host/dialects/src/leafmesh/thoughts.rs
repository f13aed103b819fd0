//! Thoughts: the tools by which any model writes them down (`thinking`), and those of a model itself (`reasoning`).
//!
//! The documentation has both words with either meaning; here they mean what its later versions say. A file whose `thinking` has a
//! `thinking_budget` means the thoughts of the model, whatever its version.

use std::sync::Arc;

use hotcell_graph::Value;
use hotcell_graph::ir::{Callable, ModelReasoning, Slot, Tool, ToolKind};
use hotcell_graph::types::Type;
use serde_json::json;

use super::families;
use super::reading::Reading;
use super::shapes::Field;
use crate::document::Fields;
use crate::document::Need::Optional;
use hotcell_graph::Key;

/// Less than this leaves no room for thoughts.
const FEW_TOKENS: u32 = 1500;
/// What budgets of tokens may be.
const BUDGET: (u32, u32) = (1024, 32_768);
/// The tools by which thoughts are written down.
pub(super) const TOOLS: [&str; 3] = ["chain_of_thought", "metacognitive_reflection", "apply_edits"];
/// How the names of models begin that think by themselves, of the families of which not all do.
const THINK: [&str; 16] = [
    "o1",
    "o3",
    "o4",
    "gpt-5",
    "claude-3-7",
    "claude-opus-4",
    "claude-sonnet-4",
    "claude-haiku-4",
    "gemini-2.5",
    "gemini-3",
    "deepseek-reasoner",
    "deepseek-r1",
    "grok-3-mini",
    "grok-4",
    "mistral-medium-2",
    "mistral-small-2",
];

/// How an agent thinks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Thoughts {
    /// Whether its model has the tools for it
    pub(super) tools: bool,
    /// How much the model thinks by itself
    pub(super) own: Option<ModelReasoning>,
}

/// Reads how an agent thinks that has this model and so many tokens for a reply.
pub(super) fn read<'r, 'd>(
    reading: &Reading<'r, 'd>,
    fields: &mut Fields<'r, 'd>,
    model: Option<&str>,
    tokens: u32,
    yields: &[(Key, Field)],
) -> Thoughts {
    let is_on = |fields: &mut Fields<'r, 'd>, name| fields.flag(name, Optional).is_some_and(|flag| flag.value);
    let (thinks, reasons) = (is_on(fields, "thinking"), is_on(fields, "reasoning"));
    let older = fields.between("thinking_budget", BUDGET.0, BUDGET.1);
    let budget = fields.between("reasoning_budget", BUDGET.0, BUDGET.1).or(older);
    let warn = |fields: &mut Fields<'r, 'd>, name, message: String, help: &str| {
        let place = fields.entry(name, Optional).map_or(fields.owner().place, |entry| entry.value.place);
        reading.reader.report(reading.warning(fields, message, place).help(help.to_owned()));
    };
    let is_older = thinks && !reasons && older.is_some();
    if is_older {
        let message =
            "`thinking` with a `thinking_budget` is read as `reasoning`: the model thinks by itself".to_owned();
        warn(fields, "thinking", message, "write `reasoning: true` and `reasoning_budget`");
    }
    let thoughts =
        Thoughts { tools: thinks && !is_older, own: (reasons || is_older).then_some(ModelReasoning { budget }) };
    if thoughts.own.is_none() && budget.is_some() {
        for name in ["thinking_budget", "reasoning_budget"] {
            reading.no_effect(fields, name, "`reasoning` is off");
        }
    }
    if thinks && tokens < FEW_TOKENS {
        let message = format!("`thinking` with {tokens} tokens of output leaves little for the reply");
        warn(fields, "thinking", message, &format!("set `max_tokens` to {FEW_TOKENS} or more"));
    }
    if thoughts.tools && yields.len() == 1 {
        let message = "`thinking` is meant for replies of several parts, and `yields` has one field".to_owned();
        warn(fields, "thinking", message, "declare what the reply consists of, or leave `thinking` out");
    }
    if let (Some(_), Some(model)) = (thoughts.own, model.filter(|model| !thinks_by_itself(model))) {
        let message = format!("the model `{model}` has no thoughts of its own, and is asked for none");
        warn(
            fields,
            if reasons { "reasoning" } else { "thinking" },
            message,
            "`thinking: true` has any model write them down",
        );
    }
    thoughts
}

/// Whether a model thinks by itself, as far as its name says: of those that are not known, it is assumed.
fn thinks_by_itself(model: &str) -> bool {
    let is_known =
        matches!(families::provider(model), Some("openai" | "anthropic" | "gemini" | "deepseek" | "xai" | "mistral"));
    !is_known || THINK.iter().any(|start| model.starts_with(start))
}

impl Thoughts {
    /// How much a model thinks by itself that has this name.
    pub(super) fn of_model(self, model: &str) -> Option<ModelReasoning> {
        self.own.filter(|_| thinks_by_itself(model))
    }

    /// The tools by which a model writes thoughts down. What it writes stands in the conversation, which is what they are for.
    pub(super) fn callables(self) -> Vec<Callable> {
        let text = |said: &str| json!({ "type": "string", "description": said });
        let tool = |name: &str, description: &str, inputs: Vec<Slot>, answer: &'static str| {
            Callable::Defined(Arc::new(Tool {
                name: name.into(),
                spoken: name.to_owned(),
                description: description.to_owned(),
                inputs,
                kind: ToolKind::Note(answer),
                confirm: false,
            }))
        };
        if !self.tools {
            return Vec::new();
        }
        let [step, look_back, edits] = TOOLS;
        vec![
            tool(
                step,
                "Write down the next step of your reasoning before you answer. Call it once for each step of a task that has several.",
                vec![slot("thought", text("The step"), None)],
                "noted: take the next step, or answer",
            ),
            tool(
                look_back,
                "Look critically at your reasoning so far: what is uncertain, what was assumed, what was left out.",
                vec![
                    slot("reflection", text("What you found"), None),
                    slot("confidence", json!({ "type": "number", "description": "From 0 to 1" }), Some(Value::Null)),
                ],
                "noted: put right what has to be, or answer",
            ),
            tool(
                edits,
                "List the changes that a draft of your answer needs. Your answer is the draft with all of them made.",
                vec![slot(
                    "edits",
                    json!({ "type": "array", "items": { "type": "string" }, "description": "The changes" }),
                    None,
                )],
                "noted: answer with these changes made",
            ),
        ]
    }
}

/// What a tool of a model takes.
pub(super) fn slot(name: &str, schema: serde_json::Value, default: Option<Value>) -> Slot {
    let schema = Value::from(&schema);
    let ty = match default {
        // What may be left out may be anything.
        Some(_) => Type::any(),
        None => Type::of_schema(&schema).unwrap_or_else(|_| Type::any()),
    };
    Slot { name: name.into(), schema, ty: Arc::new(ty), default }
}
