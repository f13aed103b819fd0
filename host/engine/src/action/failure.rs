//! What follows from the failure of a node.

use hotcell_graph::ir::{Action, CallTarget, FailureRecord, Graph, Node, NodeIndex, OnFailure, failure_key};
use hotcell_graph::{Object, State, Value};
use hotcell_journal::Write;

use super::Done;
use super::work::Work;
use crate::context::Interruption;
use crate::hook;
use crate::route::declared_route;
use crate::turn::NodeTurn;

/// Goes on after a failure as the node says.
pub(super) fn fail(
    turn: &mut NodeTurn,
    graph: &Graph,
    index: NodeIndex,
    state: State,
    reason: String,
) -> Result<Done, Interruption> {
    let node = graph.node(index);
    let targets = match node.on_failure {
        OnFailure::Fail => None,
        OnFailure::EndBranch => Some(Vec::new()),
        OnFailure::To(target) => Some(vec![target]),
        OnFailure::Continue => Some(declared_route(graph, index, None, &state)?),
    };
    let mut work = Work { graph, state, writes: Vec::new() };
    if targets.is_some() {
        work.write_all(vec![failure(graph, node, &reason, turn)])?;
    }
    if let Action::Call(action) = &node.action
        && let Some(prefix) = &action.failure_prefix
    {
        let told = Value::text(format!("{prefix}{reason}"));
        let updated = work.update(&node.updates, Some(&(action.bind, told)));
        // Where the run ends with the node, what the node wrote is seen all the same.
        if targets.is_none() && updated.is_ok() {
            return Err(work.stop(turn, reason));
        }
        updated?;
    }
    match targets {
        Some(targets) => work.leave(turn, node, targets, Some(reason)),
        None => Err(Interruption::Failed(reason)),
    }
}

/// What tells later nodes why a node failed.
fn failure(graph: &Graph, node: &Node, reason: &str, turn: &NodeTurn) -> Write {
    match &graph.failure_record {
        FailureRecord::Text => Write { key: failure_key(&node.id), value: Value::text(reason) },
        FailureRecord::Object { key, field } => {
            let kind = match &node.action {
                Action::Converse(_) => "ModelError",
                Action::AnswerCalls(_) | Action::Tool(_) => "ToolError",
                Action::Call(call) => match &call.target {
                    CallTarget::Loop(_) => "ModelError",
                    CallTarget::Agent { .. } => "AgentError",
                    CallTarget::Graph { .. } => "Error",
                },
                _ => "Error",
            };
            let record = hook::event([
                ("node", Value::Text(node.speaks_as().clone())),
                ("type", kind.into()),
                ("message", reason.into()),
                ("attempt", Value::from(i64::from(turn.attempts))),
            ]);
            let value: Object = [(field.clone(), Value::Object(record))].into_iter().collect();
            Write { key: key.clone(), value: Value::Object(value) }
        }
        FailureRecord::ByNode(key) => {
            let status = if turn.timed_out { "timeout" } else { "failed" };
            let record =
                hook::event([("output", Value::Null), ("status", status.into()), ("error", Value::from(reason))]);
            let value: Object = [(node.speaks_as().clone(), Value::Object(record))].into_iter().collect();
            Write { key: key.clone(), value: Value::Object(value) }
        }
    }
}
