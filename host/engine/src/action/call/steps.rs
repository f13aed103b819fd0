//! Graphs that are the work of a node: the loop of an agent, and what makes a value of a text. Each of their turns is
//! committed, so that a process that dies in the middle repeats no request and no call; nobody is told of them as nodes.

use std::sync::Arc;

use hotcell_graph::ir::{FITTING, Graph, TEXT};
use hotcell_graph::{State, Value};
use hotcell_journal::EntryPath;

use super::super::part::{Driven, drive};
use crate::context::{Acting, Idle, Interruption, RunContext};
use crate::turn::NodeTurn;

/// Runs the loop of an agent: the text of its last reply.
pub(super) async fn run_loop(turn: &mut NodeTurn, steps: &Arc<Graph>, state: &State) -> Result<String, Interruption> {
    turn.recorded += turn.context.remembered().adopt(&turn.place);
    let base = turn.place.of_loop();
    let driven = run(turn, base, steps, state.clone(), state).await;
    driven.result
}

/// Has a model make a value of a text that is none.
pub(super) async fn extract(
    turn: &mut NodeTurn,
    steps: &Arc<Graph>,
    text: String,
    state: &State,
) -> Result<Value, Interruption> {
    turn.recorded += turn.context.remembered().adopt(&turn.place);
    let base = turn.place.of_extraction();
    let mut inner = State::default();
    inner.set(TEXT.into(), Value::text(text));
    let driven = run(turn, base, steps, inner, state).await;
    driven.result?;
    Ok(driven.state.get(FITTING).cloned().unwrap_or_default())
}

async fn run(turn: &mut NodeTurn, base: EntryPath, steps: &Arc<Graph>, mut begin: State, state: &State) -> Driven {
    for (key, value) in &steps.initial_state {
        begin.set(key.clone(), value.clone());
    }
    let context = &turn.context;
    // Within the steps of a step there is nothing that another graph sees or decides.
    let acting = context.acting.clone().unwrap_or_else(|| {
        let (node, graph) = (turn.node.clone(), context.graph.clone());
        Arc::new(Acting { node, graph, state: context.seen_by_tools(state) })
    });
    let context = RunContext {
        graph: steps.clone(),
        depth: context.depth,
        idle: Idle::within(turn.idle.clone()),
        acting: Some(acting),
        ..context.part(base)
    };
    let driven = drive(context, begin).await;
    turn.recorded += driven.account.clone();
    driven
}
