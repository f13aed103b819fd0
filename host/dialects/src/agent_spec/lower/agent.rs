//! An agent as a graph: it asks the model, answers its calls, and asks the person what the model asks, until it has what
//! it owes.

use std::sync::Arc;

use hotcell_graph::conversation::{Speaker, message};
use hotcell_graph::ir::{
    Action, AgentLoop, AskAction, Callable, CapOrigin, Expression, Graph, LoopPlaces, Next, Node, NodeIds, PromptPart,
    Retry, Submit, Tool, Update, VisitCap,
};
use hotcell_graph::{Key, Object, Value};

use super::data::typed;
use super::tool::{LONGEST_NAME, slot};
use super::{ANSWER, Lowering, OwnKeys, node, template};
use crate::agent_spec::model::Component;

/// How often an agent may ask its model before it is taken for lost.
const MAX_ROUNDS: u32 = 100;

/// The tool by which the model hands in what the agent owes.
const SUBMIT: &str = "submit_result";

impl Lowering<'_> {
    pub(super) fn agent(&mut self, agent: &Component) -> Option<Graph> {
        let keys = OwnKeys::beside(agent.inputs.iter().map(|input| &*input.title));
        let settings = self.model(agent.child("llm_config")?);
        let mut offered: Vec<Callable> = Vec::new();
        let listed = agent.children("tools").unwrap_or_default();
        for (index, id) in listed.iter().enumerate() {
            if listed[..index].contains(id) {
                continue;
            }
            let tool = self.tool(*id);
            // Ids tell tools apart, and a model knows nothing but what they are called.
            let spoken = free_name(&offered, &tool.spoken);
            let is_taken = spoken != tool.spoken;
            offered.push(Callable::Defined(if is_taken { Arc::new(Tool { spoken, ..(*tool).clone() }) } else { tool }));
        }
        let owes = !agent.outputs.is_empty();
        let hands_in = owes.then(|| free_name(&offered, SUBMIT));
        if let Some(name) = hands_in.clone() {
            let outputs = agent.outputs.iter().map(slot).collect();
            offered.push(Callable::Submit(Arc::new(Submit { name, outputs, key: keys.filled.clone() })));
        }

        let ids = NodeIds::new(["begin", "ask", "tools", "user", "end"]);
        let to = |id: &str| Next::To(ids.get(id).into_iter().collect());
        let make = |id: &str, action: Action, updates: Vec<Update>, next: Next| Node {
            updates,
            next,
            ..node::bare(id, "Agent", action, agent)
        };
        let conversation = &keys.conversation;
        let say = |value: Expression| Update { key: conversation.clone(), value };
        let input = |name: &str| match agent.input(name) {
            Some(property) => typed(property, "input", Expression::Key(property.title.clone())),
            None => Expression::Value(Value::from("")),
        };
        let instructions = template::text(agent.text("system_prompt").unwrap_or_default(), input);
        let mut prompt = Vec::new();
        if agent.text("system_prompt").is_some_and(|text| !text.trim().is_empty()) {
            prompt.push(PromptPart::text("`system_prompt`", Speaker::System, instructions));
        }
        prompt.push(PromptPart::messages("the conversation", Expression::Key(conversation.clone())));
        let agent_loop = AgentLoop {
            settings,
            prompt,
            conversation: conversation.clone(),
            tools: offered,
            retry: Retry { attempts: node::ATTEMPTS, ..Retry::default() },
            exit: Some(Expression::Has(keys.filled.clone())),
            bind: ANSWER,
            ..AgentLoop::default()
        };
        let steps = agent_loop.lower(LoopPlaces {
            ask: ids.get("ask")?,
            tools: ids.get("tools"),
            capped: None,
            // A text is the answer of an agent that owes nothing, and a question of one that does.
            done: to(if owes { "user" } else { "end" }),
            exit: to("end"),
        });
        let ask = AskAction {
            question: Expression::LastReply { conversation: conversation.clone(), required: false },
            options: Vec::new(),
            default: None,
            check: None,
            trim: false,
            bind: ANSWER,
        };

        let begin = agent.inputs.iter().map(|property| {
            let value = typed(property, "input", Expression::Key(property.title.clone()));
            Update { key: property.title.clone(), value }
        });
        let forget = Update { key: keys.filled.clone(), value: Expression::Value(Value::Null) };
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
        let nodes = vec![
            make("begin", Action::Pass, begin.chain([forget]).collect(), to("ask")),
            make("ask", Action::Converse(Box::new(steps.ask)), vec![steps.say], steps.after_reply),
            make("tools", Action::AnswerCalls(steps.answer), Vec::new(), steps.after_calls),
            make(
                "user",
                Action::Ask(ask),
                vec![say(spoken_by(Speaker::Human, Expression::Key(ANSWER.into())))],
                to("ask"),
            ),
            make("end", Action::End { output: result }, end, Next::To(Vec::new())),
        ];
        let mut graph = Graph::new(&*agent.name, nodes, "begin")?;
        graph.description = agent.text("description").map(str::to_owned);
        graph.limits.visits_per_node =
            Some(VisitCap { visits: MAX_ROUNDS, origin: CapOrigin::Fixed(endless(agent, hands_in.as_deref())) });
        // Who goes on talking to an agent need not say again what it was told.
        let told = agent.inputs.iter().map(|input| input.title.clone()).collect();
        keys.give_to(&mut graph, &agent.inputs, told);
        Some(graph)
    }
}

/// A message with this text.
pub(super) fn spoken_by(speaker: Speaker, text: Expression) -> Expression {
    let entries = message(speaker, "");
    let entry = |(key, value): (&Key, &Value)| {
        let value = if &**key == "content" { text.clone() } else { Expression::Value(value.clone()) };
        (key.clone(), value)
    };
    Expression::List(vec![Expression::Object(entries.iter().map(entry).collect())])
}

/// What is said of an agent that asked its model as often as it may; `hands_in` is the tool by which it gives what it owes.
fn endless(agent: &Component, hands_in: Option<&str>) -> String {
    let id = &agent.shown;
    let lacks = match hands_in {
        Some(tool) => {
            let outputs: Vec<String> = agent.outputs.iter().map(|output| format!("`{}`", output.title)).collect();
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

/// What a tool is called if it may: the name itself, or with a number that no other tool has.
fn free_name(offered: &[Callable], wanted: &str) -> String {
    let is_free = |name: &str| !offered.iter().any(|one| matches!(one, Callable::Defined(tool) if tool.spoken == name));
    let numbered = |number: u32| {
        let number = format!("_{number}");
        let kept = wanted.chars().take(LONGEST_NAME.saturating_sub(number.len()));
        kept.chain(number.chars()).collect::<String>()
    };
    std::iter::once(wanted.to_owned()).chain((2..).map(numbered)).find(|name| is_free(name)).unwrap_or_default()
}
