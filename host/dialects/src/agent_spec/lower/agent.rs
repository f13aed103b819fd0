//! An agent as a graph: it asks the model, answers its calls, and asks the person what the model asks, until it has what
//! it owes.

use std::sync::Arc;

use hotcell_graph::conversation::{Speaker, aside, message};
use hotcell_graph::ir::{
    Action, AgentLoop, AskAction, Callable, CapOrigin, Condense, Expression, Graph, LoopPlaces, ModelSettings, Next,
    Node, NodeIds, PromptPart, Retry, Submit, Tool, Update, VisitCap,
};
use hotcell_graph::{Key, List, Object, Value};

use super::data::typed;
use super::framing::framed;
use super::tool::{LONGEST_NAME, slot};
use super::{ANSWER, Lowering, OwnKeys, site, template};
use crate::agent_spec::model::{Component, ComponentId, Property};

/// How often an agent may ask its model before it is taken for lost.
const MAX_ROUNDS: u32 = 100;

/// The tool by which the model hands in what the agent owes.
const SUBMIT: &str = "submit_result";

/// What an agent is made of, in whatever components that is written.
pub(super) struct Parts<'c> {
    /// The component in whose name it acts
    pub(super) component: &'c Component,
    /// The templates of its instructions
    pub(super) instructions: Vec<&'c str>,
    /// How its model is told of them and the conversation, where that is said
    pub(super) framing: Option<&'c Value>,
    pub(super) outputs: &'c [Property],
    pub(super) settings: ModelSettings,
    pub(super) retry: Retry,
    /// What its model may call
    pub(super) offered: Vec<Callable>,
    /// Whether it may ask the person
    pub(super) asks: bool,
    /// Whether a failure of a tool is one of the agent
    pub(super) fatal: bool,
    pub(super) rounds: VisitCap,
    /// What its model is told in fewer words
    pub(super) condense: Vec<Condense>,
}

impl<'c> Lowering<'c> {
    /// The parts of an agent; none, with a reason, if a component is none that is made of parts.
    pub(super) fn parts(&mut self, id: ComponentId) -> Option<Parts<'c>> {
        let component = self.component(id);
        match &*component.component_type {
            "Agent" | "ExtendedAgent" => self.agent_parts(component),
            "SpecializedAgent" => {
                let mut parts = self.parts(component.child("agent")?)?;
                let special = self.component(component.child("agent_specialization_parameters")?);
                parts.component = component;
                parts.outputs = &component.outputs;
                parts.instructions.extend(special.text("additional_instructions"));
                self.offer(&mut parts.offered, special.children("additional_tools").unwrap_or_default());
                if let Some(Value::Bool(asks)) = special.value("human_in_the_loop") {
                    parts.asks = *asks && !self.is_alone;
                }
                Some(parts)
            }
            other => {
                self.refuse(component, format!("`{other}` cannot be an agent among others here: write an `Agent`"));
                None
            }
        }
    }

    fn agent_parts(&mut self, agent: &'c Component) -> Option<Parts<'c>> {
        let llm = agent.child("llm_config")?;
        let settings = self.model(llm);
        let mut offered = Vec::new();
        self.offer(&mut offered, agent.children("tools").unwrap_or_default());
        self.toolboxes(&mut offered, agent.children("toolboxes").unwrap_or_default());
        let condense = self.transforms(agent);
        let is = |field: &str, value: bool| matches!(agent.value(field), Some(Value::Bool(given)) if *given == value);
        let never = agent.text("caller_input_mode") == Some("never");
        let mut framing = None;
        if &*agent.component_type == "ExtendedAgent" {
            framing = self.extended_agent(agent, &mut offered);
        }
        let rounds = match agent.value("max_iterations") {
            Some(Value::Number(number)) => {
                let visits = number.to_f64().clamp(1.0, f64::from(u32::MAX)) as u32;
                VisitCap { visits, origin: CapOrigin::Setting("max_iterations") }
            }
            _ => VisitCap { visits: MAX_ROUNDS, origin: CapOrigin::Fixed(String::new()) },
        };
        Some(Parts {
            component: agent,
            instructions: agent.text("system_prompt").into_iter().collect(),
            framing,
            outputs: &agent.outputs,
            settings,
            retry: self.retry(self.component(llm)).unwrap_or(Retry { attempts: site::ATTEMPTS, ..Retry::default() }),
            offered,
            asks: !(self.is_alone || never || is("human_in_the_loop", false)),
            fatal: is("raise_exceptions", true),
            rounds,
            condense,
        })
    }

    /// Adds tools to what a model may call.
    pub(super) fn offer(&mut self, offered: &mut Vec<Callable>, listed: &[ComponentId]) {
        for (index, id) in listed.iter().enumerate() {
            if listed[..index].contains(id) {
                continue;
            }
            let tool = self.tool(*id);
            // Ids tell tools apart, and a model knows nothing but what they are called.
            let spoken = free_name(offered, &tool.spoken);
            let is_taken = spoken != tool.spoken;
            offered.push(Callable::Defined(if is_taken { Arc::new(Tool { spoken, ..(*tool).clone() }) } else { tool }));
        }
    }

    /// The graph of an agent.
    pub(super) fn agent(&mut self, id: ComponentId) -> Option<Graph> {
        let parts = self.parts(id)?;
        self.agent_of(parts)
    }

    /// The graph of an agent that is made of these parts.
    pub(super) fn agent_of(&mut self, parts: Parts<'c>) -> Option<Graph> {
        let agent = parts.component;
        let keys = OwnKeys::beside(agent.inputs.iter().map(|input| &*input.title));
        let mut offered = parts.offered.clone();
        let owes = !parts.outputs.is_empty();
        let hands_in = owes.then(|| free_name(&offered, SUBMIT));
        if let Some(name) = hands_in.clone() {
            let outputs = parts.outputs.iter().map(slot).collect();
            offered.push(Callable::Submit(Arc::new(Submit {
                name,
                description: None,
                outputs,
                key: keys.filled.clone(),
                kept: Some(keys.partly.clone()),
            })));
        }

        let ids = NodeIds::new(["begin", "ask", "tools", "user", "end"]);
        let to = |id: &str| Next::To(ids.get(id).into_iter().collect());
        let make = |id: &str, action: Action, updates: Vec<Update>, next: Next| Node {
            updates,
            next,
            ..site::bare(id, "Agent", action, agent)
        };
        let conversation = &keys.conversation;
        let say = |value: Expression| Update { key: conversation.clone(), value };
        let mut agent_loop = self.agent_loop(&parts, conversation);
        agent_loop.tools = offered;
        agent_loop.exit = Some(Expression::Has(keys.filled.clone()));
        if owes && !parts.asks {
            // What an agent says that nobody answers is no part of the conversation.
            let nothing = Expression::Value(Value::List(List::default()));
            let reminder = Expression::Else(Box::new(Expression::Key(keys.reminder.clone())), Box::new(nothing));
            agent_loop.prompt.push(PromptPart::messages("the reminder", reminder));
        }
        let steps = agent_loop.lower(LoopPlaces {
            ask: ids.get("ask")?,
            tools: ids.get("tools"),
            capped: None,
            // A text is the answer of an agent that owes nothing, and a question of one that does.
            done: to(if owes { "user" } else { "end" }),
            exit: to("end"),
        });
        let begin = agent.inputs.iter().map(|property| {
            let value = typed(property, "input", Expression::Key(property.title.clone()));
            Update { key: property.title.clone(), value }
        });
        let forget =
            [&keys.filled, &keys.partly].map(|key| Update { key: key.clone(), value: Expression::Value(Value::Null) });
        let outputs = if owes {
            Expression::Key(keys.filled.clone())
        } else {
            Expression::Value(Value::Object(Object::default()))
        };
        let result = if owes {
            Expression::Key(keys.results.outputs.clone())
        } else {
            Expression::LastReply { conversation: conversation.clone(), required: false }
        };
        let end = vec![
            Update { key: keys.results.outputs.clone(), value: outputs },
            Update { key: keys.results.branch.clone(), value: Expression::Value("next".into()) },
        ];
        let user = if parts.asks {
            let said = spoken_by(Speaker::Human, Expression::Key(ANSWER.into()));
            make("user", Action::Ask(last_reply_as_question(conversation)), vec![say(said)], to("ask"))
        } else {
            let words = alone(hands_in.as_deref().unwrap_or(SUBMIT));
            let reminder = spoken_by(Speaker::Human, Expression::Value(Value::from(words)));
            make("user", Action::Pass, vec![Update { key: keys.reminder.clone(), value: reminder }], to("ask"))
        };
        let nodes = vec![
            make("begin", Action::Pass, begin.chain(forget).collect(), to("ask")),
            make("ask", Action::Converse(Box::new(steps.ask)), vec![steps.say], steps.after_reply),
            make("tools", Action::AnswerCalls(steps.answer), Vec::new(), steps.after_calls),
            user,
            make("end", Action::End { output: result }, end, Next::To(Vec::new())),
        ];
        let mut graph = Graph::new(&*agent.name, nodes, "begin")?;
        graph.description = agent.text("description").map(str::to_owned);
        graph.limits.visits_per_node = Some(match parts.rounds {
            VisitCap { visits, origin: CapOrigin::Fixed(_) } => {
                VisitCap { visits, origin: CapOrigin::Fixed(endless(agent, parts.outputs, hands_in.as_deref())) }
            }
            cap => cap,
        });
        // Who goes on talking to an agent need not say again what it was told.
        let told = agent.inputs.iter().map(|input| input.title.clone()).collect();
        keys.give_to(&mut graph, &agent.inputs, parts.outputs, told);
        Some(graph)
    }

    /// The loop of an agent.
    pub(super) fn agent_loop(&self, parts: &Parts<'c>, conversation: &Key) -> AgentLoop {
        let input = |name: &str| match parts.component.input(name) {
            Some(property) => typed(property, "input", Expression::Key(property.title.clone())),
            None => Expression::Value(Value::from("")),
        };
        let written: Vec<&str> = parts.instructions.iter().copied().filter(|text| !text.trim().is_empty()).collect();
        let is_jinja = self.surroundings.renders_jinja();
        let instructions = (!written.is_empty()).then(|| template::rendered(&written.join("\n\n"), is_jinja, input));
        let prompt = match parts.framing {
            Some(framing) => framed(framing, instructions.as_ref(), input, conversation),
            None => {
                let instructions = instructions.map(|text| PromptPart::text("`system_prompt`", Speaker::System, text));
                let conversation = PromptPart::messages("the conversation", Expression::Key(conversation.clone()));
                instructions.into_iter().chain([conversation]).collect()
            }
        };
        AgentLoop {
            settings: parts.settings.clone(),
            prompt,
            conversation: conversation.clone(),
            tools: parts.offered.clone(),
            tool_failure_is_fatal: parts.fatal,
            retry: parts.retry.clone(),
            condense: parts.condense.clone(),
            bind: ANSWER,
            ..AgentLoop::default()
        }
    }
}

/// The last reply of a model as a question to the person.
fn last_reply_as_question(conversation: &Key) -> AskAction {
    AskAction::new(Expression::LastReply { conversation: conversation.clone(), required: false }, ANSWER)
}

/// What a model is told that asks where nobody answers.
fn alone(hands_in: &str) -> String {
    format!("There is nobody who could answer. Decide for yourself, and hand in the results with `{hands_in}`.")
}

/// A message with this text.
pub(super) fn spoken_by(speaker: Speaker, text: Expression) -> Expression {
    with_text(&message(speaker, ""), text)
}

/// A message with this text that people are shown and no model is told.
pub(super) fn shown_only(text: Expression) -> Expression {
    match aside(&Value::Object(message(Speaker::Ai, ""))) {
        Value::Object(entries) => with_text(&entries, text),
        _ => spoken_by(Speaker::Ai, text),
    }
}

fn with_text(entries: &Object, text: Expression) -> Expression {
    let entry = |(key, value): (&Key, &Value)| {
        let value = if &**key == "content" { text.clone() } else { Expression::Value(value.clone()) };
        (key.clone(), value)
    };
    Expression::List(vec![Expression::Object(entries.iter().map(entry).collect())])
}

/// What is said of an agent that asked its model as often as it may; `hands_in` is the tool by which it gives what it owes.
fn endless(agent: &Component, outputs: &[Property], hands_in: Option<&str>) -> String {
    let id = &agent.shown;
    let lacks = match hands_in {
        Some(tool) => {
            let outputs: Vec<String> = outputs.iter().map(|output| format!("`{}`", output.title)).collect();
            format!("has not handed in all of its outputs ({}) with `{tool}`", outputs.join(", "))
        }
        None => "still calls tools instead of giving an answer".to_owned(),
    };
    format!(
        "the agent `{id}` has asked its model {MAX_ROUNDS} times, which is all that is allowed, and {lacks}; look at what it \
         did in each round, and say in its `system_prompt` when it is done, take away the tool that leads nowhere, or give \
         it another model"
    )
}

/// What something is called that a model may call, if it may: the name itself, or with a number that nothing else has.
pub(super) fn free_name(offered: &[Callable], wanted: &str) -> String {
    let is_free = |name: &str| {
        !offered.iter().any(|one| match one {
            Callable::Defined(tool) => tool.spoken == name,
            Callable::Agent { name: taken, .. } => taken == name,
            _ => false,
        })
    };
    let numbered = |number: u32| {
        let number = format!("_{number}");
        let kept = wanted.chars().take(LONGEST_NAME.saturating_sub(number.len()));
        kept.chain(number.chars()).collect::<String>()
    };
    std::iter::once(wanted.to_owned()).chain((2..).map(numbered)).find(|name| is_free(name)).unwrap_or_default()
}
