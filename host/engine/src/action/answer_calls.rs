//! Answering the calls of tools that a conversation ends with.

mod confirm;
mod delegate;
mod names;
mod of_graph;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use hotcell_budget::Usage;
use hotcell_graph::conversation::{self, Speaker};
use hotcell_graph::ir::{
    AnswerCallsAction, CallLimits, Callable, DelegateTool, Graph, NestedLoop, SkillTool, Skills, Submit, Team, Tool,
    ToolKind,
};
use hotcell_graph::value::parse_json;
use hotcell_graph::{Key, List, Object, State, TodoList, TodoTool, Value};
use hotcell_models::{ToolCallRequest, ToolSpec};
use serde_json::json;

use super::arguments::check_arguments;
use super::skills::SkillError;
use super::{Performed, agent, call, defined, skills, todo, tool};
use crate::context::Interruption;
use crate::event::Event;
use crate::ports::SharedState;
use crate::turn::NodeTurn;
use hotcell_journal::Write;

/// The only argument of an agent that is called as a tool.
const REQUEST: &str = "request";

/// What a model is told about the tool by which it hands in what it owes.
const HAND_IN: &str =
    "Hands in the results. Call it once all of them are known; ask the user in plain text for what is missing.";

/// Something that a model may call.
pub(super) struct ReachableTool {
    pub(super) spec: ToolSpec,
    kind: ReachableKind,
    /// Whether a person has to allow each call
    confirm: bool,
}

enum ReachableKind {
    /// The tool's full name
    Tool(String),
    Agent(Key),
    Skills(SkillTool),
    /// The state key with the list
    Todo(TodoTool, Key),
    Delegate(DelegateTool, Arc<Team>),
    Defined(Arc<Tool>),
    Submit(Arc<Submit>),
    Loop(Arc<NestedLoop>),
}

impl ReachableTool {
    /// Its full name, for those who watch.
    pub(super) fn name(&self) -> &str {
        match &self.kind {
            ReachableKind::Tool(name) => name,
            _ => &self.spec.name,
        }
    }
}

/// What may be called at this point of a run.
pub(super) fn within_reach(
    turn: &NodeTurn,
    graph: &Graph,
    offered: &[Callable],
    state: &State,
) -> Result<Vec<ReachableTool>, Interruption> {
    let mut reach: Vec<ReachableTool> = Vec::with_capacity(offered.len());
    let full_names = names::full_names(offered);
    let mut add = |callable: ReachableTool| names::add(&mut reach, &full_names, callable);
    let tool = |name: &str| {
        let spec = turn.context.ports.tools.describe(name);
        let spec = spec.ok_or_else(|| Interruption::Failed(format!("there is no tool `{name}`")))?;
        Ok::<_, Interruption>(ReachableTool { spec, kind: ReachableKind::Tool(name.to_owned()), confirm: false })
    };
    for one in offered {
        match one {
            Callable::Tool(name) => add(tool(name)?),
            Callable::Described { tool: full, name, description, parameters, confirm } => {
                let mut described = ReachableTool { confirm: *confirm, ..tool(full)? };
                described.spec.name.clone_from(name);
                if let Some(description) = description {
                    described.spec.description.clone_from(description);
                }
                if let Some(parameters) = parameters {
                    described.spec.parameters = parameters.into();
                }
                add(described);
            }
            Callable::Agent { agent, name, description } => {
                let parameters = asks_for(REQUEST, "What the agent is asked");
                let spec = ToolSpec { name: name.clone(), description: description.clone(), parameters };
                add(ReachableTool { spec, kind: ReachableKind::Agent(agent.clone()), confirm: false });
            }
            Callable::Skills(tool) => {
                let words = graph.skills.as_ref().map(|skills| skills.words).unwrap_or_default();
                let (spec, kind) = (skills::describe(*tool, words), ReachableKind::Skills(*tool));
                add(ReachableTool { spec, kind, confirm: false });
            }
            Callable::Todo { tool, name, list } => {
                let (spec, kind) = (todo::describe(*tool, name), ReachableKind::Todo(*tool, list.clone()));
                add(ReachableTool { spec, kind, confirm: false });
            }
            Callable::Delegate { tool, name, team } => {
                let (spec, kind) =
                    (delegate::describe(*tool, name, team), ReachableKind::Delegate(*tool, team.clone()));
                add(ReachableTool { spec, kind, confirm: false });
            }
            Callable::Defined(tool) => {
                let (spec, kind) = (defined::describe(tool), ReachableKind::Defined(tool.clone()));
                add(ReachableTool { spec, kind, confirm: tool.confirm });
            }
            Callable::Submit(submit) => {
                let spec = ToolSpec {
                    name: submit.name.clone(),
                    description: submit.description.clone().unwrap_or_else(|| HAND_IN.to_owned()),
                    parameters: defined::parameters(&submit.outputs),
                };
                add(ReachableTool { spec, kind: ReachableKind::Submit(submit.clone()), confirm: false });
            }
            Callable::Loop(nested) => {
                let parameters = asks_for(REQUEST, "What the agent is asked");
                let spec = ToolSpec { name: nested.name.clone(), description: nested.description.clone(), parameters };
                add(ReachableTool { spec, kind: ReachableKind::Loop(nested.clone()), confirm: false });
            }
            Callable::LoadedSkills => {
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
) -> Result<Performed, Interruption> {
    let messages = state.get(&action.conversation).and_then(Value::as_list).cloned().unwrap_or_default();
    let mut calls = open_calls(&messages);
    let reach = within_reach(turn, graph, &action.tools, state)?;
    let asked = calls.len();
    let beyond = take_beyond(&action.limits, action.counted.as_ref().and_then(|key| state.get(key)), &mut calls);
    let shared = turn.context.seen_by_tools(state);
    let allowed = confirm::ask(turn, &reach, &calls).await?;
    let mut of_clients = of_graph::ask_clients(turn, &reach, &calls, &allowed).await?;
    let mut answers = List::default();
    // What graphs said that were called: it comes before the answers, and no model is told it.
    let mut said = List::default();
    let mut loaded = Object::default();
    let mut lists: BTreeMap<Key, TodoList> = BTreeMap::new();
    let mut works: BTreeMap<Key, List> = BTreeMap::new();
    let mut writes = Vec::new();
    let mut is_waiting = false;
    for (place, call) in calls.into_iter().enumerate() {
        let callable = named(&reach, &call);
        let refused = match allowed.get(&place) {
            Some(confirm::Answer::No) => Some(format!("error: {}", confirm::NOT_ALLOWED)),
            Some(confirm::Answer::Yes) | None => refusal(callable, &reach, &call),
        };
        let text = match refused {
            Some(error) => {
                answered(turn, &call, Some(&error));
                error
            }
            None => match callable.map(|callable| &callable.kind) {
                Some(ReachableKind::Tool(name)) => call_tool(turn, action, &call, name, &shared).await?,
                Some(ReachableKind::Agent(name)) => call_agent(turn, name, &call).await?,
                Some(ReachableKind::Loop(nested)) => call_loop(turn, nested, &call).await?,
                Some(ReachableKind::Skills(tool)) => {
                    use_skills(turn, graph.skills.as_ref(), *tool, &call, &mut loaded).await
                }
                Some(ReachableKind::Todo(tool, list)) => keep_list(
                    turn,
                    *tool,
                    &call,
                    lists.entry(list.clone()).or_insert_with(|| TodoList::of(state.get(list))),
                ),
                Some(ReachableKind::Delegate(tool, team)) => {
                    let before = || state.get(&team.work).and_then(Value::as_list).cloned().unwrap_or_default();
                    let work = works.entry(team.work.clone()).or_insert_with(before);
                    let outcome = delegate::call(turn, *tool, team, &arguments(&call), work).await?;
                    text_of(turn, &call, outcome)
                }
                Some(ReachableKind::Defined(tool)) => match (of_clients.remove(&place), &tool.kind) {
                    (Some(Some(outcome)), _) => of_graph::told(action, tool, outcome)?,
                    (Some(None), _) => {
                        is_waiting = true;
                        continue;
                    }
                    (None, ToolKind::Graph(nested)) => {
                        let called = (&**tool, &nested.0);
                        of_graph::call_graph(turn, action, called, &call, state, &mut said).await?
                    }
                    (None, _) => of_graph::call_defined(turn, action, tool, &call, state).await?,
                },
                Some(ReachableKind::Submit(submit)) => of_graph::hand_in(turn, submit, &call, state, &mut writes),
                None => String::new(),
            },
        };
        answers.push(Value::Object(answer(&call, text)));
    }
    if is_waiting {
        return Err(Interruption::Waiting);
    }
    for (call, error) in beyond {
        answered(turn, &call, Some(&error));
        answers.push(Value::Object(answer(&call, error)));
    }
    if let Some(key) = &action.counted {
        writes.push(Write { key: key.clone(), value: Value::from(i64::try_from(asked).unwrap_or(i64::MAX)) });
    }
    if !answers.is_empty() {
        said.extend(&answers);
        writes.push(Write { key: action.conversation.clone(), value: Value::List(said) });
    }
    writes.extend(works.into_iter().map(|(key, work)| Write { key, value: Value::List(work) }));
    writes.extend(lists.into_iter().map(|(key, list)| Write { key, value: list.to_value() }));
    if let (false, Some(skills)) = (loaded.is_empty(), &graph.skills) {
        writes.push(Write { key: skills.loaded_key.clone(), value: Value::Object(loaded) });
    }
    Ok(Performed { writes, ..Performed::default() })
}

/// The message that answers a call.
fn answer(call: &ToolCallRequest, text: String) -> Object {
    let mut message = conversation::message(Speaker::Tool, text);
    message.insert("tool_call_id", call.id.as_str().into());
    message.insert("name", call.name.as_str().into());
    message
}

/// Takes those of the calls away that are not made, with what the model is told of each. There were so many before.
fn take_beyond(
    limits: &CallLimits,
    before: Option<&Value>,
    calls: &mut Vec<ToolCallRequest>,
) -> Vec<(ToolCallRequest, String)> {
    let before = match before {
        Some(Value::Number(number)) => number.to_f64() as usize,
        _ => 0,
    };
    let left = limits.most.map_or(usize::MAX, |most| (most as usize).saturating_sub(before));
    let at_once = if limits.one_at_a_time { 1 } else { usize::MAX };
    let why = |place: usize| match limits.most {
        Some(most) if place >= left => format!("error: it was not called: {most} calls of tools are all there may be"),
        _ => "error: it was not called: one tool is called at a time".to_owned(),
    };
    let from = left.min(at_once).min(calls.len());
    let beyond = calls.split_off(from).into_iter().enumerate();
    beyond.map(|(place, call)| (call, why(from + place))).collect()
}

/// A call of a message, as the model wrote it.
pub(super) fn as_written(call: &Object) -> ToolCallRequest {
    let text = |key: &str| call.get(key).and_then(Value::as_text).map(str::to_owned);
    let written = || call.get("args").map_or_else(|| "{}".to_owned(), Value::to_json);
    ToolCallRequest {
        id: text("id").unwrap_or_default(),
        name: text("name").unwrap_or_default(),
        arguments: text("arguments").unwrap_or_else(written),
    }
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
                let calls = calls.iter().filter_map(Value::as_object).map(as_written);
                return calls.filter(|call| !answered.contains(&call.id.as_str())).collect();
            }
            _ => {}
        }
    }
    Vec::new()
}

/// Why a call is not made, in words for the model.
fn refusal(callable: Option<&ReachableTool>, reach: &[ReachableTool], call: &ToolCallRequest) -> Option<String> {
    match callable {
        // These convert their arguments, which is more than the schema allows.
        Some(ReachableTool { kind: ReachableKind::Defined(_) | ReachableKind::Submit(_), .. }) => None,
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
) -> Result<String, Interruption> {
    match tool::call_to_the_end(turn, name, &call.name, &call.arguments, state, action.limits.time).await? {
        Ok(value) => Ok(value.to_display().into_owned()),
        Err(failure) if action.tool_failure_is_fatal => {
            Err(failure.stop(|reason| format!("tool `{}`: {reason}", call.name)))
        }
        Err(failure) => Ok(format!("error: {}", failure.reason)),
    }
}

async fn call_agent(turn: &mut NodeTurn, agent: &Key, call: &ToolCallRequest) -> Result<String, Interruption> {
    let arguments = arguments(call);
    let request = arguments.get(REQUEST).and_then(Value::as_text).unwrap_or_default().to_owned();
    let answer = agent::consult(turn, agent, request, Object::default()).await?;
    answered(turn, call, None);
    Ok(answer.to_display().into_owned())
}

/// Another loop does the work; what it fails with the model is told.
async fn call_loop(
    turn: &mut NodeTurn,
    nested: &Arc<NestedLoop>,
    call: &ToolCallRequest,
) -> Result<String, Interruption> {
    let arguments = arguments(call);
    let request = arguments.get(REQUEST).and_then(Value::as_text).unwrap_or_default().to_owned();
    let outcome = call::consult_loop(turn, nested, request).await?;
    Ok(text_of(turn, call, outcome))
}

/// The parameters of a tool that takes one text.
fn asks_for(name: &str, description: &str) -> serde_json::Value {
    json!({
        "type": "object",
        "properties": { name: { "type": "string", "description": description } },
        "required": [name],
    })
}

/// What a model calls.
fn named<'r>(reach: &'r [ReachableTool], call: &ToolCallRequest) -> Option<&'r ReachableTool> {
    reach.iter().find(|callable| callable.spec.name == call.name)
}

async fn use_skills(
    turn: &mut NodeTurn,
    skills: Option<&Skills>,
    tool: SkillTool,
    call: &ToolCallRequest,
    loaded: &mut Object,
) -> String {
    let outcome = match skills {
        Some(skills) => skills::call(turn, skills, tool, &arguments(call), loaded).await,
        None => Err(SkillError::None),
    };
    text_of(turn, call, outcome)
}

fn keep_list(turn: &NodeTurn, tool: TodoTool, call: &ToolCallRequest, list: &mut TodoList) -> String {
    let outcome = list.apply(tool, &arguments(call));
    text_of(turn, call, outcome)
}

/// What a model is told of a call that is answered without a cell; observers are told, too.
fn text_of<E: Display>(turn: &NodeTurn, call: &ToolCallRequest, outcome: Result<String, E>) -> String {
    match outcome {
        Ok(text) => {
            answered(turn, call, None);
            text
        }
        Err(error) => {
            let error = error.to_string();
            answered(turn, call, Some(&error));
            format!("error: {error}")
        }
    }
}

/// Tells of a call that is answered without a cell.
fn answered(turn: &NodeTurn, call: &ToolCallRequest, error: Option<&str>) {
    let (node, tool, place, arguments) = (&turn.node, &call.name, turn.place.as_str(), &call.arguments);
    let (usage, elapsed) = (&Usage::default(), Duration::ZERO);
    turn.emit(&Event::ToolCalled { node, tool, place, arguments, error, usage, elapsed });
}

fn arguments(call: &ToolCallRequest) -> Object {
    parse_json(&call.arguments).ok().and_then(|value| value.as_object().cloned()).unwrap_or_default()
}
