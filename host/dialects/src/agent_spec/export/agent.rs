//! A graph that is nothing but one model in a conversation, or one model with instructions and tools: an agent.

use hotcell_graph::Key;
use hotcell_graph::conversation::Speaker;
use hotcell_graph::formula::{Plain, Step};
use hotcell_graph::ir::{
    Action, AnswerCallsAction, Callable, ConverseAction, Expression, Graph, Next, Node, NodeIndex, OnFailure,
    PromptPart, Said,
};
use serde_json::{Value as Json, json};

use super::Exporter;
use super::nodes::REPEATED;
use super::prompt::{Inputs, Prompt};
use super::slots::Slot;
use super::text_loop::TextLoop;
use super::tools::DescribedTool;
use super::values::{plain, single};
use super::writes::is_message;

/// What of a graph is an agent.
pub(super) struct Shape<'g> {
    node: &'g Node,
    asks: Asks<'g>,
}

/// How its model is asked.
enum Asks<'g> {
    /// About the conversation, which the tools' answers are a part of
    Conversation(&'g ConverseAction, Option<&'g AnswerCallsAction>),
    /// About the text that a run is given
    Text(TextLoop<'g>),
}

/// Finds out whether a graph has the form of an agent. Whether the specification can say all of it is another matter.
pub(super) fn shape(graph: &Graph) -> Option<Shape<'_>> {
    let node = graph.node(onwards(graph, graph.start)?);
    match &node.action {
        Action::Converse(converse) => {
            let conversation = graph.conversation.as_ref()?;
            let is_conversation =
                |part: &PromptPart| matches!(&part.said, Said::Messages(all) if is_key(all, conversation));
            converse.prompt.iter().any(is_conversation).then_some(())?;
            let (answers, after) = match &node.next {
                Next::When { condition, then, otherwise } => {
                    asks_for_tools(condition, conversation).then_some(())?;
                    let answering = graph.node(only(then)?);
                    let Action::AnswerCalls(answers) = &answering.action else { return None };
                    let leads_back = only(&answering.next)? == graph.find(&node.id)?;
                    let does_no_more = answering.updates.is_empty()
                        && answering.on_failure == OnFailure::Fail
                        && answering.timeout.is_none();
                    (leads_back && does_no_more).then_some((Some(answers), &**otherwise))?
                }
                next => (None, next),
            };
            let end = graph.node(onwards(graph, only(after)?)?);
            let Action::End { output: Expression::LastReply { .. } } = &end.action else { return None };
            end.updates.is_empty().then_some(Shape { node, asks: Asks::Conversation(converse, answers) })
        }
        Action::Call(call) => {
            let text = TextLoop::of(call)?;
            // What needs neither is a flow that asks once.
            (text.instructions.is_some() || !text.tools.is_empty()).then_some(())?;
            let asked = text.prompt.template().and_then(single)?;
            (Some(&asked) == graph.input_key.as_ref()).then_some(())?;
            let [update] = &node.updates[..] else { return None };
            (update.value.template().and_then(single)? == Key::from(text.bind)).then_some(())?;
            let end = graph.node(onwards(graph, only(&node.next)?)?);
            let Action::End { output } = &end.action else { return None };
            let gives_it = output.template().and_then(single).as_ref() == Some(&update.key);
            (gives_it && end.updates.is_empty()).then_some(Shape { node, asks: Asks::Text(text) })
        }
        _ => None,
    }
}

/// Whether a condition is true after a reply that calls tools, and only then.
fn asks_for_tools(condition: &Expression, conversation: &Key) -> bool {
    match condition {
        Expression::AsksForTools(key) => key == conversation,
        Expression::Formula(formula) => formula.has_items().is_some_and(|place| {
            let is_calls = |entry: &Key| &**entry == "tool_calls";
            place.root == *conversation
                && matches!(&place.steps[..], [Step::Last, Step::Entry(entry)] if is_calls(entry))
        }),
        _ => false,
    }
}

/// The node that something leads to, behind those that do nothing.
fn onwards(graph: &Graph, mut index: NodeIndex) -> Option<NodeIndex> {
    for _ in 0..=graph.len() {
        let node = graph.node(index);
        match node.action {
            Action::Pass if node.updates.is_empty() => index = only(&node.next)?,
            _ => return Some(index),
        }
    }
    None
}

fn only(next: &Next) -> Option<NodeIndex> {
    match next {
        Next::To(targets) if targets.len() == 1 => targets.first().copied(),
        _ => None,
    }
}

fn is_key(expression: &Expression, key: &Key) -> bool {
    matches!(plain(expression), Some(Plain::Place(place)) if place.root == *key && place.steps.is_empty())
}

impl<'g> Exporter<'g> {
    pub(super) fn agent(&mut self, shape: &Shape<'g>, describe: &dyn Fn(&str) -> Option<DescribedTool>) -> Json {
        self.made = "an agent";
        self.whole();
        let node = shape.node;
        self.common(node);
        let (prompt, settings, tools) = match &shape.asks {
            Asks::Conversation(converse, answers) => {
                (self.instructions_in(node, converse, *answers), &converse.settings, &converse.tools[..])
            }
            Asks::Text(text) => (self.instructions_of(node, text), text.settings, text.tools),
        };
        let inputs = self.placeholders(node, prompt.inputs);
        let tools = self.tools(node, tools, describe);
        let config = self.config(node, settings);
        let model = self.models.iter().find(|(_, id)| *id == config).map(|(model, _)| model.clone());
        self.root(
            "Agent",
            json!({
                "inputs": inputs,
                "outputs": [],
                "llm_config": model,
                "system_prompt": prompt.text,
                "tools": tools,
            }),
        )
    }

    /// The instructions of a model that is asked about a conversation.
    fn instructions_in(
        &mut self,
        node: &Node,
        converse: &ConverseAction,
        answers: Option<&AnswerCallsAction>,
    ) -> Prompt {
        if converse.output_schema.is_some() {
            self.problem(node, "asks for a structured answer, which an agent gives by a tool only");
        }
        if converse.retry.attempts > 1 {
            self.difference(node, REPEATED);
        }
        if !converse.condense.is_empty() {
            self.problem(node, "tells its model of a conversation in summaries");
        }
        let answered = answers.map(|answers| &answers.tools[..]).unwrap_or_default();
        if converse.tools.iter().any(|tool| !answered.contains(tool)) {
            self.problem(node, "offers tools that nobody answers for, and an agent does for all of its own");
        }
        // Without skills there is nothing that could be loaded.
        let has_skills = self.graph.skills.is_some();
        let is_other =
            |tool: &Callable| !converse.tools.contains(tool) && (has_skills || !matches!(tool, Callable::LoadedSkills));
        if answered.iter().any(is_other) {
            self.difference(node, "answers calls of tools that its model was not offered, and an agent does not");
        }
        if answers.is_some_and(|answers| answers.tool_failure_is_fatal) {
            self.difference(node, "fails when a tool does, and an agent tells its model");
        }
        let is_said = matches!(&node.updates[..], [only] if Some(&only.key) == self.graph.conversation.as_ref()
            && plain(&only.value).is_some_and(|value| is_message(&value, converse.bind)));
        if !is_said {
            self.problem(node, "does something else with the reply than to add it to the conversation");
        }
        match &converse.prompt[..] {
            [PromptPart { said: Said::Messages(_), .. }] => Prompt::default(),
            [
                PromptPart { said: Said::Text(Speaker::System, text), .. },
                PromptPart { said: Said::Messages(_), .. },
            ] => self.prompt(node, text),
            _ => {
                let what = "says something else to its model than one instruction and the conversation, in this order";
                self.problem(node, what);
                Prompt::default()
            }
        }
    }

    /// The instructions of a model that is asked about a text.
    fn instructions_of(&mut self, node: &Node, text: &TextLoop<'g>) -> Prompt {
        if text.is_structured {
            self.problem(node, "asks for a structured answer, which an agent gives by a tool only");
        }
        if text.attempts > 1 {
            self.difference(node, REPEATED);
        }
        if let Some(cap) = text.cap {
            let requests = format!(
                "asks its model at most {} times, and how often an agent may is a matter of whoever runs it",
                cap.requests
            );
            self.difference(node, &requests);
        }
        self.difference(node, "answers each text by itself, and an agent remembers the texts before it");
        text.instructions.map(|text| self.prompt(node, text)).unwrap_or_default()
    }

    /// The placeholders of an agent are its inputs, with the values that the state begins with.
    fn placeholders(&mut self, node: &Node, inputs: Inputs) -> Vec<Json> {
        let graph = self.graph;
        let declared = graph.variables.iter().map(|variable| &variable.name).chain(&graph.open_state);
        let is_read = |key: &Key| inputs.0.iter().any(|(_, slot)| *slot == Slot::Key(key.clone()));
        for key in declared.filter(|key| graph.conversation.as_ref() != Some(*key) && !is_read(key)) {
            self.differences.push(format!("the agent takes no value for `{key}`, which nothing in it uses"));
        }
        let mut properties = Vec::new();
        for (name, slot) in inputs.0 {
            let Slot::Key(key) = &slot else {
                self.problem(node, format!("has {slot} in its instructions, which an agent knows only as a message"));
                continue;
            };
            let mut property = json!({"title": name, "type": "string"});
            if graph.input_key.as_ref() == Some(key) {
                self.problem(node, "repeats the text that a run is given in its instructions");
            } else if let Some(variable) = graph.variables.iter().find(|variable| variable.name == *key) {
                property["description"] = Json::from(variable.description.as_str());
                if let Some(default) = &variable.default {
                    property["default"] = Json::from(default.as_str());
                }
            } else if let Some((_, value)) = graph.initial_state.iter().find(|(known, _)| known == key) {
                // What a value is, its default shows; it becomes a text where it is put in.
                property = json!({"title": name, "default": Json::from(value)});
            } else if !graph.open_state.contains(key) {
                self.problem(node, format!("has `{key}` in its instructions, which nothing writes"));
            }
            properties.push(property);
        }
        properties
    }
}
