//! Running something once for each item of lists, side by side: another node of the graph, or a graph.

mod of_graph;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use hotcell_budget::Account;
use hotcell_graph::ir::{Expression, Graph, GraphItems, MapAction, MapBody, NodeItems};
use hotcell_graph::types::Iterated;
use hotcell_graph::{Key, List, Object, State, Value, resolve};

use super::call::{self, GraphOutput};
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
    let items = Items::prepare(action, state)?;
    let concurrency = match &action.concurrency_from {
        Some(from) => at_a_time(from, state)?,
        None => action.concurrency.unwrap_or(graph.limits.concurrency),
    };
    let mut side_by_side = SideBySide::new(concurrency, items.may_ask(graph));
    let mut given: Vec<Option<Given>> = Vec::new();
    given.resize_with(items.len(), || None);
    let clock = turn.context.ports.clock.clone();
    let mut waiting = false;
    let mut running = FuturesUnordered::new();
    let mut next = 0;
    loop {
        while next < items.len() && side_by_side.may_start(running.len()) {
            turn.emit(&Event::ItemStarted { node: &turn.node, branch: items.name(graph), item: next });
            let (work, working) = (items.begin(turn, graph, state, next), clock.working());
            // It is worked on until what came of it is taken.
            let work = Box::pin(async move { (work.await, working) });
            let started = side_by_side.start(work).await;
            running.push(started);
            next += 1;
        }
        let finished = {
            let _waits = clock.idle();
            running.next().await
        };
        let Some(finished) = finished else { break };
        let ((item, account, result), _working) =
            finished.map_err(|error| Interruption::Failed(format!("an item of the map was lost: {error}")))?;
        turn.recorded += account;
        match result {
            Ok(value) => given[item] = Some(value),
            Err(Interruption::Waiting) => waiting = true,
            Err(stop) => {
                return Err(stop.with_reason(|reason| format!("{}: {reason}", items.item(graph, item))));
            }
        }
    }
    if waiting {
        return Err(Interruption::Waiting);
    }
    items.collect(given)
}

/// How many items may run at a time, where the state says it.
fn at_a_time(from: &Expression, state: &State) -> Result<usize, Interruption> {
    let value = from.evaluate(state).map_err(|error| Interruption::Failed(format!("items at a time: {error}")))?;
    let number = value.to_display().trim().parse::<usize>().ok().filter(|number| *number > 0);
    number.ok_or_else(|| {
        let problem = format!("it is {value} that says how many items run at a time, and that has to be 1 or more");
        Interruption::Failed(problem)
    })
}

/// What is run for each item, with what it begins with.
enum Items<'a> {
    Node(&'a NodeItems, List),
    Graph(&'a GraphItems, Vec<(Key, Iterated)>, usize),
}

/// What an item gave.
enum Given {
    Value(Value),
    Outputs(GraphOutput),
}

/// What came of an item, and who used what for it.
type Finished = (usize, Account, Result<Given, Interruption>);

impl<'a> Items<'a> {
    fn prepare(action: &'a MapAction, state: &State) -> Result<Self, Interruption> {
        match &action.body {
            MapBody::Node(items) => Ok(Items::Node(items, list_of(items, state)?)),
            MapBody::Graph(items) => {
                let (inputs, rounds) = of_graph::inputs(&items.inputs, state)?;
                Ok(Items::Graph(items, inputs, rounds))
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            Items::Node(_, list) => list.len(),
            Items::Graph(_, _, rounds) => *rounds,
        }
    }

    fn may_ask(&self, graph: &Graph) -> bool {
        match self {
            Items::Node(items, _) => graph.node(items.branch).may_ask(),
            Items::Graph(items, ..) => items.graph.may_ask(),
        }
    }

    /// What is run, for those who watch.
    fn name<'n>(&'n self, graph: &'n Graph) -> &'n str {
        match self {
            Items::Node(items, _) => graph.node(items.branch).speaks_as(),
            Items::Graph(items, ..) => &items.graph.name,
        }
    }

    /// An item, for errors.
    fn item(&self, graph: &Graph, item: usize) -> String {
        match self {
            Items::Node(items, _) => {
                format!("item {item} of the map (node `{}`)", graph.node(items.branch).speaks_as())
            }
            Items::Graph(..) => format!("item {item}"),
        }
    }

    /// The work on an item.
    fn begin(&self, turn: &NodeTurn, graph: &Graph, state: &State, item: usize) -> BoxFuture<'static, Finished> {
        match self {
            Items::Node(items, list) => {
                let part = turn.part(item, graph.node(items.branch).speaks_as().clone());
                let mut state = state.clone();
                state.set(items.item_key.clone(), list.get(item).cloned().unwrap_or_default());
                Box::pin(run_one(part, (*items).clone(), state, item))
            }
            Items::Graph(items, inputs, _) => {
                let inner = of_graph::begin(inputs, item);
                let base = turn.place.within(item).within("call");
                let called = call::part(turn, base, &items.graph, inner, items.conversation.as_ref(), state);
                let context = turn.context.clone();
                Box::pin(async move {
                    let ended = call::run(context, called).await;
                    (item, ended.account, ended.result.map(Given::Outputs))
                })
            }
        }
    }

    /// What is made of what all items gave.
    fn collect(&self, given: Vec<Option<Given>>) -> Result<Performed, Interruption> {
        let given = given.into_iter().flatten();
        match self {
            Items::Node(items, _) => {
                let values = given.filter_map(|given| match given {
                    Given::Value(value) => Some(value),
                    Given::Outputs(_) => None,
                });
                let write = Write { key: items.collect_into.clone(), value: Value::List(values.collect()) };
                Ok(Performed { writes: vec![write], ..Performed::default() })
            }
            Items::Graph(items, ..) => {
                let outputs = given.filter_map(|given| match given {
                    Given::Outputs(outputs) => Some(outputs),
                    Given::Value(_) => None,
                });
                of_graph::collect(items, &outputs.collect::<Vec<_>>())
            }
        }
    }
}

fn list_of(action: &NodeItems, state: &State) -> Result<List, Interruption> {
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
async fn run_one(mut part: NodeTurn, action: NodeItems, state: State, item: usize) -> Finished {
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
    let value = value.map(Given::Value);
    (item, part.recorded, value)
}
