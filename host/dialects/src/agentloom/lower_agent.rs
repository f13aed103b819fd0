//! What an agent becomes: the one loop, with settings.

use std::sync::Arc;

use hotcell_graph::conversation::Speaker;
use hotcell_graph::ir::NestedLoop;
use hotcell_graph::ir::{
    Action, AgentLoop, AtCap, COST, CallAction, CallTarget, Callable, Contract, Ends, Expression, Forbidden, Graph,
    ITERATIONS, LoopAnswer, LoopLimits, Next, Node, PromptPart, REPLY, RequestCap, RetryOn, Scheduling, Transcript,
    Trim, Update, Window,
};
use hotcell_graph::{Key, Place, Value};

use super::lowering::{ANSWER, Context, retry, value};
use super::models;
use super::schema::{Agent, AgentStep, AgentTool, Attempts, Config, Step};

/// The entry of the state with what a nested agent is asked.
const REQUEST: &str = "(request)";
/// Entries of the state of an agent that is run by itself.
const INPUT: &str = "input";
const CONVERSATION: &str = "conversation";

/// What an agent is run with.
struct Setting<'a> {
    config: &'a Config,
    attempts: &'a Attempts,
    /// In whose name models are asked
    name: String,
}

/// The action of a step that runs an agent, and what the step gives.
pub(super) fn step(step: &Step, of: &AgentStep, context: &Context<'_>) -> (Action, Expression) {
    let input = Expression::TextOf(Box::new(value(&of.input)));
    let before = match &of.conversation {
        Some(target) => Expression::MessagesAt(target.place.clone()),
        None => Expression::List(Vec::new()),
    };
    let setting = Setting { config: context.config, attempts: &step.attempts, name: step.id.to_string() };
    let action = call(&of.agent, &setting, before.clone(), input.clone());
    let report = || Expression::Key(ANSWER.into());
    let entry = |name: &str| (Key::from(name), Expression::Entry(Box::new(report()), name.into()));
    let transcript = Expression::Transcript(Box::new(Transcript { before, input, report: report() }));
    let given = vec![entry(REPLY), (CONVERSATION.into(), transcript), entry(COST), entry(ITERATIONS)];
    (action, Expression::Object(given))
}

/// The graph of an agent that is run by itself: its text is the user's message, and its conversation goes on from run to run.
pub(super) fn entry(agent: &Agent) -> Graph {
    let (config, attempts) = (Config::default(), Attempts::default());
    let setting = Setting { config: &config, attempts: &attempts, name: agent.name.to_string() };
    let key = |key: &str| Expression::Key(key.into());
    let before = Place::parse(CONVERSATION).map_or(Expression::List(Vec::new()), Expression::MessagesAt);
    let action = call(agent, &setting, before.clone(), key(INPUT));
    let entry = |name: &str| {
        let value = Expression::Entry(Box::new(key(ANSWER)), name.into());
        Update { key: name.into(), value }
    };
    let transcript = Transcript { before, input: key(INPUT), report: key(ANSWER) };
    let conversation = Update { key: CONVERSATION.into(), value: Expression::Transcript(Box::new(transcript)) };
    let node = Node {
        updates: vec![entry(REPLY), conversation, entry(COST), entry(ITERATIONS)],
        ..Node::new(&agent.name, "agent", action, Next::Open(Vec::new()), &agent.name.span)
    };
    // One node has no other of its name.
    let mut graph = Graph::new(&*agent.name, vec![node], &agent.name).expect("a graph of one node");
    graph.description = agent.description.clone();
    graph.initial_state = vec![(INPUT.into(), "".into())];
    graph.input_key = Some(INPUT.into());
    graph.open_state = vec![INPUT.into(), CONVERSATION.into()];
    graph.kept = Some(vec![CONVERSATION.into()]);
    graph.scheduling = Scheduling { ends: Ends::WhenQuiet { output: Box::new(key(REPLY)) }, ..Scheduling::default() };
    graph
}

/// The call of an agent's loop.
fn call(agent: &Agent, setting: &Setting<'_>, before: Expression, input: Expression) -> Action {
    let said = PromptPart::messages("the conversation", before);
    let steps = loop_of(agent, setting, vec![said, PromptPart::text("`input`", Speaker::Human, input)]);
    let target = CallTarget::Loop(Arc::new(steps.into_graph()));
    let contract = contract(agent);
    Action::Call(Box::new(CallAction { target, contract, failure_prefix: None, bind: ANSWER }))
}

fn contract(agent: &Agent) -> Option<Box<Contract>> {
    agent.output_schema.clone().map(|schema| Box::new(Contract::strict(schema)))
}

/// The settings of an agent's loop; `said` follows its own instructions.
fn loop_of(agent: &Agent, setting: &Setting<'_>, said: Vec<PromptPart>) -> AgentLoop {
    let mut prompt = Vec::new();
    if let Some(text) = &agent.system_prompt {
        let text = Expression::Value(Value::Text(text.clone()));
        prompt.push(PromptPart::text("`system_prompt`", Speaker::System, text));
    }
    prompt.extend(said);
    let most = agent.max_iterations;
    let then = match agent.returns_at_cap {
        true => AtCap::Return,
        false => {
            AtCap::Fail(format!("`max_iterations`: the agent `{}` was not done after {most} replies", &*agent.name))
        }
    };
    AgentLoop {
        settings: models::settings(setting.config, agent.model.as_ref(), &setting.name),
        retry: retry(setting.attempts, RetryOn::Statuses(setting.attempts.statuses.clone())),
        prompt,
        window: agent.memory.map(|memory| Window {
            tokens: memory.tokens as usize,
            trim: if memory.summarizes { Trim::Summarize } else { Trim::LeaveOut },
        }),
        tools: agent.tools.iter().map(|tool| callable(tool, setting)).collect(),
        reply_schema: agent.output_schema.clone(),
        forbidden: Forbidden { patterns: agent.forbidden.clone(), only_last: true, setting: "forbidden_patterns" },
        until: agent.exit.clone().map(Expression::Holds),
        limits: LoopLimits {
            time: agent.max_latency.map(|limit| (limit, "max_latency_ms")),
            cost_usd: agent.max_cost_usd.map(|most| (most, "max_cost_usd")),
            allowance: None,
        },
        answer: LoopAnswer::Report,
        cap: Some(RequestCap { requests: most, then }),
        agent: Some(agent.name.value.clone()),
        ..AgentLoop::default()
    }
}

fn callable(tool: &AgentTool, setting: &Setting<'_>) -> Callable {
    match tool {
        AgentTool::Host(name) => Callable::Tool(name.clone()),
        AgentTool::Agent { name, agent } => {
            let setting = Setting { name: format!("{}.{name}", setting.name), ..*setting };
            let request = PromptPart::text("the request", Speaker::Human, Expression::Key(REQUEST.into()));
            let steps = loop_of(agent, &setting, vec![request]);
            let described = agent.description.clone();
            Callable::Loop(Arc::new(NestedLoop {
                name: name.clone(),
                description: described.unwrap_or_else(|| format!("Asks the agent `{}`", &*agent.name)),
                steps: Arc::new(AgentLoop { answer: LoopAnswer::Text, ..steps }.into_graph()),
                request: REQUEST.into(),
                contract: contract(agent),
            }))
        }
    }
}
