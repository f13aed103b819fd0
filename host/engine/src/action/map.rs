//! Running a node once for each item of a list.

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use hotcell_budget::Account;
use hotcell_graph::ir::{Graph, MapAction};
use hotcell_graph::{List, Object, State, Value, resolve};

use super::side_by_side::SideBySide;
use super::{Performed, run_item};
use crate::context::Interruption;
use crate::event::Event;
use crate::memory::Deed;
use crate::turn::NodeTurn;
use hotcell_journal::Write;

pub(super) async fn perform(
    turn: &mut NodeTurn,
    graph: &Graph,
    action: &MapAction,
    state: &State,
) -> Result<Performed, Interruption> {
    let items = items(action, state)?;
    let branch = graph.node(action.branch);
    let mut side_by_side = SideBySide::new(action.concurrency.unwrap_or(graph.limits.concurrency), branch.may_ask());
    let branch = &branch.id;
    let mut collected: Vec<Option<Value>> = vec![None; items.len()];
    let mut waiting = false;
    let mut running = FuturesUnordered::new();
    let mut next = 0;
    loop {
        while let Some(item) = items.get(next).filter(|_| side_by_side.may_start(running.len())) {
            turn.emit(&Event::ItemStarted { node: &turn.node, branch, item: next });
            let part = turn.part(next, branch.clone());
            let mut state = state.clone();
            state.set(action.item_key.clone(), item.clone());
            let task = run_one(part, action.clone(), state, next);
            let started = side_by_side.start(Box::pin(task)).await;
            running.push(started);
            next += 1;
        }
        let Some(finished) = running.next().await else { break };
        let (item, account, result) =
            finished.map_err(|error| Interruption::Failed(format!("an item of the map was lost: {error}")))?;
        turn.recorded += account;
        match result {
            Ok(value) => collected[item] = Some(value),
            Err(Interruption::Waiting) => waiting = true,
            Err(Interruption::Failed(reason)) => {
                return Err(Interruption::Failed(format!("item {item} of the map (node `{branch}`): {reason}")));
            }
            Err(other) => return Err(other),
        }
    }
    if waiting {
        return Err(Interruption::Waiting);
    }
    let values: List = collected.into_iter().flatten().collect();
    let write = Write { key: action.collect_into.clone(), value: Value::List(values) };
    Ok(Performed { writes: vec![write], ..Performed::default() })
}

fn items(action: &MapAction, state: &State) -> Result<List, Interruption> {
    let Some(path) = action.over.single_reference() else {
        return Err(Interruption::Failed("`over` has to be exactly one reference to a list".into()));
    };
    match resolve(path, state) {
        Some(Value::List(items)) => Ok(items.clone()),
        Some(other) => {
            Err(Interruption::Failed(format!("`over` has to name a list, but `{path}` is {}", other.a_kind())))
        }
        None => Err(Interruption::Failed(format!("`over` names `{path}`, which is not in state"))),
    }
}

/// Runs one item. The collected value is an effect of the item's own, so a map that is repeated repeats no item.
async fn run_one(
    mut part: NodeTurn,
    action: MapAction,
    state: State,
    item: usize,
) -> (usize, Account, Result<Value, Interruption>) {
    let mut inner = NodeTurn::new(part.context.clone(), part.place.within("run"), part.node.clone());
    let deed = Deed::new("item", &part.node.clone(), &[]);
    let result = part
        .effect(deed, |context| async move {
            let result = run_item(&mut inner, &context.graph, action.branch, state, &action.output_key).await;
            let answer = match result {
                Ok(Some(value)) => Ok(Value::Object([("value".into(), value)].into_iter().collect::<Object>())),
                Ok(None) => {
                    Err(Interruption::Failed(format!("it wrote no `{}`, which is collected", action.output_key)))
                }
                Err(stop) => Err(stop),
            };
            let mut used = inner.used();
            used += inner.before;
            (used, answer)
        })
        .await;
    let value =
        result.map(|answer| answer.as_object().and_then(|object| object.get("value")).cloned().unwrap_or_default());
    (item, part.recorded, value)
}
