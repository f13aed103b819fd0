//! Answering the calls of tools that a conversation ends with.

use hotcell_budget::{Account, Usage};
use hotcell_graph::conversation::{self, Speaker};
use hotcell_graph::ir::{AnswerCallsAction, Graph, Offered, SkillTool, Skills};
use hotcell_graph::value::parse_json;
use hotcell_graph::{Key, List, Object, State, Value};
use hotcell_models::{ToolCallRequest, ToolSpec};
use serde_json::json;

use super::model::check_arguments;
use super::tool::{self, Wanted};
use super::{Performed, agent, converse, skills};
use crate::branch::Write;
use crate::event::Event;
use crate::journal::Question;
use crate::ports::SharedState;
use crate::turn::{NodeTurn, Stop};

/// The only argument of an agent that is called as a tool.
const REQUEST: &str = "request";

/// Something that a model may call.
pub(super) struct Callable {
    pub(super) spec: ToolSpec,
    kind: Kind,
}

enum Kind {
    /// The tool's full name
    Tool(String),
    Agent(Key),
    Skills(SkillTool),
}

/// What may be called at this point of a run; of two with one name the first counts.
pub(super) fn within_reach(
    turn: &NodeTurn,
    graph: &Graph,
    offered: &[Offered],
    state: &State,
) -> Result<Vec<Callable>, Stop> {
    let mut reach: Vec<Callable> = Vec::with_capacity(offered.len());
    let mut add = |callable: Callable| {
        if reach.iter().all(|known| known.spec.name != callable.spec.name) {
            reach.push(callable);
        }
    };
    let tool = |name: &str| {
        let spec = turn.context.ports.tools.describe(name);
        let spec = spec.ok_or_else(|| Stop::Failed(format!("there is no tool `{name}`")))?;
        Ok::<_, Stop>(Callable { spec, kind: Kind::Tool(name.to_owned()) })
    };
    for one in offered {
        match one {
            Offered::Tool(name) => add(tool(name)?),
            Offered::Agent { agent, name, description } => {
                let parameters = json!({
                    "type": "object",
                    "properties": { REQUEST: { "type": "string", "description": "What the agent is asked" } },
                    "required": [REQUEST],
                });
                let spec = ToolSpec { name: name.clone(), description: description.clone(), parameters };
                add(Callable { spec, kind: Kind::Agent(agent.clone()) });
            }
            Offered::Skills(tool) => add(Callable { spec: skills::describe(*tool), kind: Kind::Skills(*tool) }),
            Offered::LoadedSkills => {
                let Some(skills) = &graph.skills else { continue };
                for name in skills::tools_of_loaded(skills, state) {
                    add(tool(name)?);
                }
            }
        }
    }
    Ok(reach)
}

pub(super) async fn perform(
    turn: &mut NodeTurn,
    graph: &Graph,
    action: &AnswerCallsAction,
    state: &State,
) -> Result<Performed, Stop> {
    let messages = state.get(&action.conversation).and_then(Value::as_list).cloned().unwrap_or_default();
    let calls = open_calls(&messages);
    let reach = within_reach(turn, graph, &action.tools, state)?;
    let shared = SharedState::new(state.clone());
    let mut answers = List::default();
    let mut loaded = Object::default();
    for call in calls {
        let callable = reach.iter().find(|callable| callable.spec.name == call.name);
        let text = match refusal(callable, &reach, &call) {
            Some(error) => {
                let usage = Usage::default();
                turn.emit(&Event::ToolCalled {
                    node: &turn.node,
                    tool: &call.name,
                    error: Some(&error),
                    usage: &usage,
                });
                error
            }
            None => match callable.map(|callable| &callable.kind) {
                Some(Kind::Tool(name)) => call_tool(turn, action, &call, name, &shared).await?,
                Some(Kind::Agent(name)) => call_agent(turn, name, &call).await?,
                Some(Kind::Skills(tool)) => use_skills(turn, graph.skills.as_ref(), *tool, &call, &mut loaded),
                None => String::new(),
            },
        };
        let mut message = conversation::message(Speaker::Tool, text);
        message.insert("tool_call_id", call.id.as_str().into());
        message.insert("name", call.name.as_str().into());
        answers.push(Value::Object(message));
    }
    let mut writes = Vec::new();
    if !answers.is_empty() {
        writes.push(Write { key: action.conversation.clone(), value: Value::List(answers) });
    }
    if let (false, Some(skills)) = (loaded.is_empty(), &graph.skills) {
        writes.push(Write { key: skills.loaded_key.clone(), value: Value::Object(loaded) });
    }
    Ok(Performed { writes, ..Performed::default() })
}

/// The calls of the last message of a model that no message of a tool answers yet.
fn open_calls(messages: &List) -> Vec<ToolCallRequest> {
    let mut answered: Vec<&str> = Vec::new();
    for message in (0..messages.len()).rev().filter_map(|place| messages.get(place)) {
        match conversation::speaker(message) {
            Some(Speaker::Tool) => {
                let id = message.as_object().and_then(|message| message.get("tool_call_id"));
                answered.extend(id.and_then(Value::as_text));
            }
            Some(Speaker::Ai) => {
                let calls = conversation::tool_calls(message);
                let calls = calls.iter().filter_map(Value::as_object).map(converse::call);
                return calls.filter(|call| !answered.contains(&call.id.as_str())).collect();
            }
            _ => {}
        }
    }
    Vec::new()
}

/// Why a call is not made, in words for the model.
fn refusal(callable: Option<&Callable>, reach: &[Callable], call: &ToolCallRequest) -> Option<String> {
    match callable {
        Some(callable) => check_arguments(&callable.spec, &call.arguments)
            .err()
            .map(|problem| format!("error: the arguments of `{}` cannot be used: {problem}", call.name)),
        None => {
            let offered: Vec<&str> = reach.iter().map(|callable| callable.spec.name.as_str()).collect();
            let offered = if offered.is_empty() { "none".to_owned() } else { offered.join(", ") };
            Some(format!("error: there is no tool `{}`; available: {offered}", call.name))
        }
    }
}

async fn call_tool(
    turn: &mut NodeTurn,
    action: &AnswerCallsAction,
    call: &ToolCallRequest,
    name: &str,
    state: &SharedState,
) -> Result<String, Stop> {
    let mut answers = Vec::new();
    loop {
        let (node, mut used) = (turn.node.clone(), Account::default());
        let outcome = turn
            .effect("tool", |context| {
                let (used, answers, state) = (&mut used, &answers, state.clone());
                async move {
                    let arguments = if call.arguments.trim().is_empty() { "{}" } else { &call.arguments };
                    let wanted = Wanted { tool: name, spoken: &call.name, arguments, answers, state };
                    Ok(tool::call(&context, used, &node, wanted).await.into_value())
                }
            })
            .await;
        turn.account += used;
        let outcome = outcome?;
        let entry = |key: &str| outcome.as_object().and_then(|object| object.get(key)).cloned();
        if let Some(question) = entry("asks") {
            let (node, text) = (turn.node.to_string(), question.to_display().into_owned());
            answers.push(turn.ask(Question { node, text, options: Vec::new(), default: None }).await?);
            continue;
        }
        return match (entry("value"), entry("error")) {
            (None, Some(error)) if action.tool_failure_is_fatal => {
                Err(Stop::Failed(format!("tool `{}`: {}", call.name, error.to_display())))
            }
            (None, Some(error)) => Ok(format!("error: {}", error.to_display())),
            (value, _) => Ok(value.map(|value| value.to_display().into_owned()).unwrap_or_default()),
        };
    }
}

async fn call_agent(turn: &mut NodeTurn, agent: &Key, call: &ToolCallRequest) -> Result<String, Stop> {
    let arguments = arguments(call);
    let request = arguments.get(REQUEST).and_then(Value::as_text).unwrap_or_default().to_owned();
    let answer = agent::consult(turn, agent, request).await?;
    turn.emit(&Event::ToolCalled { node: &turn.node, tool: &call.name, error: None, usage: &Usage::default() });
    Ok(answer.to_display().into_owned())
}

fn use_skills(
    turn: &NodeTurn,
    skills: Option<&Skills>,
    tool: SkillTool,
    call: &ToolCallRequest,
    loaded: &mut Object,
) -> String {
    let outcome = match skills {
        Some(skills) => skills::call(skills, tool, &arguments(call), loaded),
        None => Err("there are no skills".to_owned()),
    };
    let error = outcome.as_ref().err().map(String::as_str);
    turn.emit(&Event::ToolCalled { node: &turn.node, tool: &call.name, error, usage: &Usage::default() });
    outcome.unwrap_or_else(|error| format!("error: {error}"))
}

fn arguments(call: &ToolCallRequest) -> Object {
    parse_json(&call.arguments).ok().and_then(|value| value.as_object().cloned()).unwrap_or_default()
}
