//! Running a graph as a part of the run: with a state of its own, in the same journal, out of the same budget scope.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use hotcell_budget::Account;
use hotcell_graph::ir::{
    CallAction, CallEachAction, Collect, Graph, Iterate, Next, Node, NodeIndex, Reduction, Results, Rounds,
};
use hotcell_graph::types::Iterated;
use hotcell_graph::value::Number;
use hotcell_graph::{Key, List, Object, State, Value};

use super::Performed;
use super::agent::Within;
use super::side_by_side::SideBySide;
use crate::context::{Interruption, RunContext};
use crate::event::Event;
use crate::outcome::{Outcome, Part};
use crate::turn::NodeTurn;
use hotcell_journal::EntryPath;
use hotcell_journal::Write;

/// How many graphs deep a run may go.
const MAX_DEPTH: u32 = 32;

/// What a graph gave.
struct GraphOutput {
    outputs: Object,
    branch: Option<String>,
    /// What it added to the conversation
    said: List,
}

/// A graph that is to be run.
struct Called {
    node: Key,
    base: EntryPath,
    graph: Arc<Graph>,
    state: State,
    /// How long the conversation was before
    before: usize,
}

/// What came of a graph, with what it said so far and what it used.
struct Ended {
    result: Result<GraphOutput, Interruption>,
    said: List,
    account: Account,
}

pub(super) async fn perform(
    turn: &mut NodeTurn,
    node: &Node,
    action: &CallAction,
    state: &State,
) -> Result<Performed, Interruption> {
    let mut inner = State::default();
    for (key, value) in &action.inputs {
        let value = value.evaluate(state).map_err(|error| Interruption::Failed(error.to_string()))?;
        inner.set(key.clone(), value);
    }
    let base = turn.next_base();
    let part = part(turn, base, &action.graph, inner, action.conversation.as_ref(), state);
    let ended = run(turn.context.clone(), part).await;
    turn.recorded += ended.account;
    let said = |said: List| match &action.conversation {
        Some(key) if !said.is_empty() => vec![Write { key: key.clone(), value: Value::List(said) }],
        _ => Vec::new(),
    };
    let given = match ended.result {
        Ok(given) => given,
        Err(stop) => {
            turn.shown = said(ended.said);
            return Err(stop);
        }
    };
    let route = leave_by(node, given.branch.as_deref());
    Ok(Performed { answer: Some((action.bind, given.outputs.into())), writes: said(given.said), route })
}

pub(super) async fn perform_each(
    turn: &mut NodeTurn,
    graph: &Graph,
    action: &CallEachAction,
    state: &State,
) -> Result<Performed, Interruption> {
    let (inputs, rounds) = inputs(&action.inputs, state)?;
    let mut side_by_side =
        SideBySide::new(action.concurrency.unwrap_or(graph.limits.concurrency), action.graph.may_ask());
    let mut given: Vec<Option<GraphOutput>> = Vec::new();
    given.resize_with(rounds, || None);
    let mut waiting = false;
    let mut running = FuturesUnordered::new();
    let mut next = 0;
    loop {
        while next < rounds && side_by_side.may_start(running.len()) {
            turn.emit(&Event::ItemStarted { node: &turn.node, branch: &action.graph.name, item: next });
            let mut inner = State::default();
            for (key, value) in &inputs {
                let value = match value {
                    Iterated::Same(value) => Some(value),
                    Iterated::Each(values) => values.get(next),
                };
                inner.set(key.clone(), value.cloned().unwrap_or_default());
            }
            let base = turn.place.within(next).within("call");
            let part = part(turn, base, &action.graph, inner, action.conversation.as_ref(), state);
            let (item, context) = (next, turn.context.clone());
            let work = Box::pin(async move { (item, run(context, part).await) });
            let started = side_by_side.start(work).await;
            running.push(started);
            next += 1;
        }
        let Some(finished) = running.next().await else { break };
        let (item, ended) = finished.map_err(|error| Interruption::Failed(format!("an item was lost: {error}")))?;
        turn.recorded += ended.account;
        match ended.result {
            Ok(value) => given[item] = Some(value),
            Err(Interruption::Waiting) => waiting = true,
            Err(Interruption::Failed(reason)) => return Err(Interruption::Failed(format!("item {item}: {reason}"))),
            Err(other) => return Err(other),
        }
    }
    if waiting {
        return Err(Interruption::Waiting);
    }
    let given: Vec<GraphOutput> = given.into_iter().flatten().collect();
    let mut collected = Object::default();
    for collect in &action.collect {
        collected.insert(collect.into.clone(), reduce(collect, &given)?);
    }
    let mut writes = Vec::new();
    if let Some(key) = &action.conversation {
        let mut said = List::default();
        for message in given.iter().flat_map(|given| given.said.iter()) {
            let mut message = message.as_object().cloned().unwrap_or_default();
            // Each item numbered its messages as if it were alone.
            message.remove("id");
            said.push(Value::Object(message));
        }
        if !said.is_empty() {
            writes.push(Write { key: key.clone(), value: Value::List(said) });
        }
    }
    Ok(Performed { answer: Some((action.bind, collected.into())), writes, route: None })
}

/// What each input is, and how many rounds there are: as many as the lists have items, one if there is no list.
fn inputs(inputs: &[Iterate], state: &State) -> Result<(Vec<(Key, Iterated)>, usize), Interruption> {
    let mut rounds: Option<(usize, &Key)> = None;
    let mut values = Vec::with_capacity(inputs.len());
    for input in inputs {
        let value = input.value.evaluate(state).map_err(|error| Interruption::Failed(error.to_string()))?;
        let value = match input.rounds {
            Some(Rounds::Same) => input.ty.convert(&value).map(Iterated::Same),
            Some(Rounds::Each) => input.ty.each(&value).map(Iterated::Each),
            None => input.ty.iterate(&value),
        };
        let value = value.map_err(|mismatch| Interruption::Failed(format!("input `{}`: {mismatch}", input.name)))?;
        if let Iterated::Each(list) = &value {
            match rounds {
                Some((length, other)) if length != list.len() => {
                    return Err(Interruption::Failed(format!(
                        "the lists have to be equally long: input `{other}` has {length} items and input `{}` has {}",
                        input.name,
                        list.len()
                    )));
                }
                _ => rounds = Some((list.len(), &input.name)),
            }
        }
        values.push((input.key.clone(), value));
    }
    Ok((values, rounds.map_or(1, |(length, _)| length)))
}

fn reduce(collect: &Collect, given: &[GraphOutput]) -> Result<Value, Interruption> {
    let values = given.iter().map(|given| given.outputs.get(&collect.output).cloned().unwrap_or_default());
    if collect.how == Reduction::Append {
        return Ok(Value::List(values.collect()));
    }
    let how = collect.how.name();
    let numbers = values.map(|value| match value {
        Value::Number(number) => Ok(number),
        other => {
            Err(Interruption::Failed(format!("`{how}` takes numbers, and output `{}` is {other}", collect.output)))
        }
    });
    let numbers = numbers.collect::<Result<Vec<Number>, Interruption>>()?;
    let sum = |numbers: &[Number]| {
        numbers.iter().try_fold(Number::Int(0), |sum, number| sum.add(number)).ok_or_else(|| {
            Interruption::Failed(format!("the {how} of output `{}` is beyond all numbers", collect.output))
        })
    };
    let result = match (collect.how, numbers.is_empty()) {
        (Reduction::Sum | Reduction::Append, _) => sum(&numbers)?,
        (_, true) => {
            return collect.default.clone().ok_or_else(|| {
                let (output, into) = (&collect.output, &collect.into);
                Interruption::Failed(format!(
                    "`{how}` of output `{output}` over no items has no value, and `{into}` has no default"
                ))
            });
        }
        (Reduction::Average, false) => Number::Float(sum(&numbers)?.to_f64() / numbers.len() as f64),
        (Reduction::Max, false) => best(numbers, std::cmp::Ordering::Greater),
        (Reduction::Min, false) => best(numbers, std::cmp::Ordering::Less),
    };
    Ok(Value::Number(result))
}

/// The first number that none is before in this order.
fn best(numbers: Vec<Number>, order: std::cmp::Ordering) -> Number {
    let better = |best: Number, number: Number| if number.compare(&best) == order { number } else { best };
    numbers.into_iter().reduce(better).unwrap_or(Number::Int(0))
}

/// A graph with what it begins with.
fn part(
    turn: &NodeTurn,
    base: EntryPath,
    graph: &Arc<Graph>,
    mut inner: State,
    conversation: Option<&Key>,
    state: &State,
) -> Called {
    for (key, value) in &graph.initial_state {
        inner.set(key.clone(), value.clone());
    }
    let messages = conversation.and_then(|key| state.get(key)).and_then(Value::as_list);
    let before = messages.map_or(0, List::len);
    if let (Some(key), Some(messages)) = (&graph.conversation, messages) {
        inner.set(key.clone(), Value::List(messages.clone()));
    }
    Called { node: turn.node.clone(), base, graph: graph.clone(), state: inner, before }
}

/// Runs a graph to its end, or to where it waits.
async fn run(caller: Arc<RunContext>, part: Called) -> Ended {
    if caller.depth >= MAX_DEPTH {
        let reason = format!("graphs may call each other to a depth of {MAX_DEPTH}, and this is deeper");
        return Ended { result: Err(Interruption::Failed(reason)), said: List::default(), account: Account::default() };
    }
    let Part { result, used: account } =
        (caller.drive_part)(Arc::new(prepare(&caller, &part)), part.state.clone()).await;
    let (outcome, state) = match result {
        Ok(result) => result,
        Err(error) => return Ended { result: Err(error.into()), said: List::default(), account },
    };
    let said = said(&part, &state);
    let result = match outcome {
        Outcome::Completed { .. } => Ok(given(part.graph.results.as_ref(), &state, said.clone())),
        Outcome::Failed { error, .. } | Outcome::Stopped { reason: error } => Err(Interruption::Failed(error)),
        Outcome::Waiting { .. } | Outcome::Interrupted | Outcome::Cancelled => Err(Interruption::Waiting),
    };
    Ended { result, said, account }
}

/// What a graph is run with.
fn prepare(caller: &RunContext, part: &Called) -> RunContext {
    let observer = caller.ports.observer.clone();
    let observer = Arc::new(Within { node: part.node.clone(), agent: part.graph.name.as_str().into(), observer });
    let mut ports = caller.ports.clone();
    ports.observer = observer;
    RunContext {
        graph: part.graph.clone(),
        ports,
        asks_as: Some(caller.asks_as.clone().unwrap_or_else(|| part.node.clone())),
        ..caller.part(part.base.clone())
    }
}

/// What a graph has added to the conversation.
fn said(part: &Called, state: &State) -> List {
    let messages = part.graph.conversation.as_ref().and_then(|key| state.get(key)).and_then(Value::as_list);
    messages.map(|messages| messages.iter().skip(part.before).cloned().collect()).unwrap_or_default()
}

fn given(results: Option<&Results>, state: &State, said: List) -> GraphOutput {
    let get = |key: fn(&Results) -> &Key| results.and_then(|results| state.get(key(results)));
    GraphOutput {
        outputs: get(|results| &results.outputs).and_then(Value::as_object).cloned().unwrap_or_default(),
        branch: get(|results| &results.branch).and_then(Value::as_text).map(str::to_owned),
        said,
    }
}

/// Where a branch leads, if the node's routes are by branches.
fn leave_by(node: &Node, branch: Option<&str>) -> Option<NodeIndex> {
    let Next::ByAnswer { routes, otherwise } = &node.next else { return None };
    let route = routes.iter().find(|(name, _)| Some(name.as_str()) == branch);
    Some(route.map_or(*otherwise, |(_, target)| *target))
}
