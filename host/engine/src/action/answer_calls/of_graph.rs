//! Calls of what the graph itself defines: its tools, those that the client has to call among them, and the tool by which
//! a model hands in what it owes.

use std::collections::HashMap;
use std::sync::Arc;

use hotcell_graph::conversation::{aside, without_open_calls};
use hotcell_graph::ir::{AnswerCallsAction, Graph, Submit, Tool, ToolKind};
use hotcell_graph::{List, Object, State, Value};
use hotcell_models::ToolCallRequest;
use thiserror::Error;

use super::confirm::Answer;
use super::{ReachableKind, ReachableTool, answered, named};
use crate::action::arguments::{ArgumentsError, parse_arguments};
use crate::action::call::{Heard, consult_graph};
use crate::action::defined;
use crate::action::tool::ToolFailure;
use crate::context::Interruption;
use crate::turn::NodeTurn;
use hotcell_journal::Write;

/// Asks the client for all calls that it has to make, so that it can make them at the same time: the results by the places
/// of the calls, none where one is awaited.
///
/// This comes before all other calls. How many effects these have depends on what they meet, and the numbers of the
/// questions have to be the same when the turn is repeated.
pub(super) async fn ask_clients(
    turn: &mut NodeTurn,
    reach: &[ReachableTool],
    calls: &[ToolCallRequest],
    allowed: &HashMap<usize, Answer>,
) -> Result<HashMap<usize, Option<Result<Value, ToolFailure>>>, Interruption> {
    let mut results = HashMap::new();
    for (place, call) in calls.iter().enumerate() {
        if allowed.get(&place).is_some_and(|answer| *answer != Answer::Yes) {
            continue;
        }
        let Some(ReachableTool { kind: ReachableKind::Defined(tool), .. }) = named(reach, call) else { continue };
        let (ToolKind::Client, Ok(inputs)) = (&tool.kind, inputs(tool, call)) else { continue };
        let result = match defined::client(turn, tool, inputs).await {
            Ok(result) => Some(result),
            Err(Interruption::Waiting) => None,
            Err(other) => return Err(other),
        };
        results.insert(place, result);
    }
    Ok(results)
}

/// Why a call of a model cannot be answered as it is. The model is told, so that it can put it right.
#[derive(Debug, Error)]
enum CallProblem {
    #[error("the arguments of `{tool}` cannot be used: {cause}")]
    Arguments {
        tool: String,
        #[source]
        cause: ArgumentsError,
    },
    /// What is missing, of another type, or unknown
    #[error("{}", .0.join("; "))]
    Values(Vec<String>),
    #[error("the results were already submitted")]
    HandedIn,
}

/// The inputs of a tool that the graph defines.
fn inputs(tool: &Tool, call: &ToolCallRequest) -> Result<Object, CallProblem> {
    defined::fill(&tool.inputs, &given(call)?, "argument").map_err(CallProblem::Values)
}

/// The arguments that a model gave.
fn given(call: &ToolCallRequest) -> Result<Object, CallProblem> {
    parse_arguments(&call.arguments).map_err(|cause| CallProblem::Arguments { tool: call.name.clone(), cause })
}

/// A call of a tool that the graph defines. What is wrong with the arguments, the model is told.
pub(super) async fn call_defined(
    turn: &mut NodeTurn,
    action: &AnswerCallsAction,
    tool: &Tool,
    call: &ToolCallRequest,
    state: &State,
) -> Result<String, Interruption> {
    match inputs(tool, call) {
        Ok(inputs) => told(action, tool, defined::call(turn, tool, inputs, state).await?),
        Err(problem) => Ok(format!("error: {problem}")),
    }
}

/// A call of another graph, which hears the conversation and, of this reply's calls, what those before it `said`.
pub(super) async fn call_graph(
    turn: &mut NodeTurn,
    action: &AnswerCallsAction,
    (tool, graph): (&Tool, &Arc<Graph>),
    call: &ToolCallRequest,
    state: &State,
    said: &mut List,
) -> Result<String, Interruption> {
    let inputs = match inputs(tool, call) {
        Ok(inputs) => inputs,
        Err(problem) => {
            let problem = problem.to_string();
            answered(turn, call, Some(&problem));
            return Ok(format!("error: {problem}"));
        }
    };
    let messages = state.get(&action.conversation).and_then(Value::as_list);
    let mut messages = messages.map(without_open_calls).unwrap_or_default();
    messages.extend(said);
    let heard = Heard { messages, conversation: Some(&action.conversation) };
    let consulted = consult_graph(turn, tool, graph, inputs, heard).await?;
    for message in consulted.said.iter() {
        said.push(aside(message));
    }
    let problem = consulted.result.as_ref().err().map(|failure| failure.reason.clone());
    answered(turn, call, problem.as_deref());
    told(action, tool, consulted.result)
}

/// What a model is told of a call that was made.
pub(super) fn told(
    action: &AnswerCallsAction,
    tool: &Tool,
    outcome: Result<Value, ToolFailure>,
) -> Result<String, Interruption> {
    match outcome {
        Ok(value) => Ok(value.to_display().into_owned()),
        Err(failure) if action.tool_failure_is_fatal => {
            Err(failure.stop(|reason| format!("tool `{}`: {reason}", tool.name)))
        }
        Err(failure) => Ok(format!("error: {}", failure.reason)),
    }
}

/// Takes what a model owes. The first that is complete counts.
pub(super) fn hand_in(
    turn: &NodeTurn,
    submit: &Submit,
    call: &ToolCallRequest,
    state: &State,
    writes: &mut Vec<Write>,
) -> String {
    let before = handed_in_before(submit, state, writes);
    let taken = match owed(submit, call, &before) {
        Ok(_) if writes.iter().any(|write| write.key == submit.key) => Err(CallProblem::HandedIn),
        other => other,
    };
    let error = taken.as_ref().err().map(CallProblem::to_string);
    answered(turn, call, error.as_deref());
    match taken {
        Ok(results) => {
            writes.push(Write { key: submit.key.clone(), value: Value::Object(results) });
            "taken".to_owned()
        }
        Err(problem) => {
            let instead = match &submit.kept {
                Some(kept) => {
                    let value = Value::Object(with_what_fits(submit, call, before));
                    writes.push(Write { key: kept.clone(), value });
                    "hand in what is missing or wrong"
                }
                None => "hand in all results again",
            };
            format!("error: {problem}; ask the user, or {instead}")
        }
    }
}

/// What a model handed in while something was missing.
fn handed_in_before(submit: &Submit, state: &State, writes: &[Write]) -> Object {
    let Some(kept) = &submit.kept else { return Object::default() };
    let written = writes.iter().rev().find(|write| write.key == *kept).map(|write| &write.value);
    written.or_else(|| state.get(kept)).and_then(Value::as_object).cloned().unwrap_or_default()
}

/// The same, with what of a call is what is owed.
fn with_what_fits(submit: &Submit, call: &ToolCallRequest, before: Object) -> Object {
    let given = given(call).unwrap_or_default();
    let mut results = before;
    for output in &submit.outputs {
        if let Some(Ok(value)) = given.get(&output.name).map(|value| output.ty.convert(value)) {
            results.insert(output.name.clone(), value);
        }
    }
    results
}

/// The results in a call by which a model hands them in, with those that it handed in before, or everything that is wrong with
/// them, so that one more call is enough to put it right.
fn owed(submit: &Submit, call: &ToolCallRequest, before: &Object) -> Result<Object, CallProblem> {
    let given = given(call)?;
    let mut all = before.clone();
    for (name, value) in given.iter() {
        all.insert(name.clone(), value.clone());
    }
    let filled = defined::fill(&submit.outputs, &all, "result");
    let unknown = given.iter().filter(|(name, _)| submit.outputs.iter().all(|output| output.name != **name));
    let mut problems: Vec<String> = unknown.map(|(name, _)| format!("nobody asked for the result `{name}`")).collect();
    if !problems.is_empty() {
        let wanted: Vec<String> = submit.outputs.iter().map(|output| format!("`{}`", output.name)).collect();
        problems.push(format!("what is asked for is {}", wanted.join(", ")));
    }
    match filled {
        Ok(results) if problems.is_empty() => Ok(results),
        Ok(_) => Err(CallProblem::Values(problems)),
        Err(wrong) => Err(CallProblem::Values(wrong.into_iter().chain(problems).collect())),
    }
}
