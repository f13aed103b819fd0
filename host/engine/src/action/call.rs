//! Running a graph as a part of the run: in the same journal, out of the same budget scope.

mod steps;

use std::sync::Arc;

use hotcell_budget::Account;
use hotcell_graph::ir::{CallAction, CallTarget, Expression, Graph, Next, Node, NodeIndex, Results};
use hotcell_graph::{Key, List, Object, State, Value};

use super::Performed;
use super::agent::{self, Within};
use super::part::{Driven, drive};
use super::read_value::Schema;
use crate::context::{Interruption, RunContext};
use crate::turn::NodeTurn;
use hotcell_journal::EntryPath;
use hotcell_journal::Write;

/// How many graphs deep a run may go.
const MAX_DEPTH: u32 = 32;

/// What a graph gave.
pub(super) struct GraphOutput {
    pub(super) outputs: Object,
    branch: Option<String>,
    /// What it added to the conversation
    pub(super) said: List,
}

/// A graph that is to be run.
pub(super) struct Called {
    node: Key,
    base: EntryPath,
    graph: Arc<Graph>,
    state: State,
    /// How long the conversation was before
    before: usize,
}

/// What came of a graph, with what it said so far and what it used.
pub(super) struct Ended {
    pub(super) result: Result<GraphOutput, Interruption>,
    said: List,
    pub(super) account: Account,
}

/// A node that calls a graph, whichever it is.
pub(super) async fn perform(
    turn: &mut NodeTurn,
    node: &Node,
    action: &CallAction,
    state: &State,
) -> Result<Performed, Interruption> {
    // What is wrong with a schema is found before anything is done.
    let schema = action.contract.as_ref().map(|contract| Schema::compile(&contract.schema)).transpose()?;
    let mut performed = match &action.target {
        CallTarget::Graph { graph, inputs, conversation } => {
            call_graph(turn, node, graph, inputs, conversation.as_ref(), state).await?
        }
        CallTarget::Agent { agent, prompt } => {
            let prompt =
                prompt.evaluate_text(state).map_err(|missing| Interruption::Failed(format!("`prompt`: {missing}")))?;
            Given::answer(agent::consult(turn, agent, prompt).await?)
        }
        CallTarget::Loop(steps) => Given::answer(Value::text(steps::run_loop(turn, &steps.graph, state).await?)),
    };
    if let (Some(schema), Some(contract)) = (schema, &action.contract) {
        let text = performed.answer.to_display().into_owned();
        performed.answer = match schema.read(&text) {
            Ok(value) => value,
            Err(_) => steps::extract(turn, &contract.graph, text, state).await?,
        };
        if let Value::Object(object) = &performed.answer {
            let entry = |key: &Key| Some(Write { key: key.clone(), value: object.get(key)?.clone() });
            performed.writes.extend(contract.merge.iter().filter_map(entry));
        }
    }
    let Given { answer, writes, route } = performed;
    Ok(Performed { answer: Some((action.bind, answer)), writes, route })
}

/// What a call gives its node.
struct Given {
    answer: Value,
    writes: Vec<Write>,
    route: Option<NodeIndex>,
}

impl Given {
    fn answer(answer: Value) -> Self {
        Given { answer, writes: Vec::new(), route: None }
    }
}

async fn call_graph(
    turn: &mut NodeTurn,
    node: &Node,
    graph: &Arc<Graph>,
    inputs: &[(Key, Expression)],
    conversation: Option<&Key>,
    state: &State,
) -> Result<Given, Interruption> {
    let mut inner = State::default();
    for (key, value) in inputs {
        let value = value.evaluate(state).map_err(|error| Interruption::Failed(error.to_string()))?;
        inner.set(key.clone(), value);
    }
    let base = turn.next_base();
    let part = part(turn, base, graph, inner, conversation, state);
    let ended = run(turn.context.clone(), part).await;
    turn.recorded += ended.account;
    let said = |said: List| match conversation {
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
    Ok(Given { answer: given.outputs.into(), writes: said(given.said), route })
}

/// A graph with what it begins with.
pub(super) fn part(
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
pub(super) async fn run(caller: Arc<RunContext>, part: Called) -> Ended {
    if caller.depth >= MAX_DEPTH {
        let reason = format!("graphs may call each other to a depth of {MAX_DEPTH}, and this is deeper");
        return Ended { result: Err(Interruption::Failed(reason)), said: List::default(), account: Account::default() };
    }
    let Driven { result, state, account } = drive(prepare(&caller, &part), part.state.clone()).await;
    let said = said(&part, &state);
    let result = result.map(|_| given(part.graph.results.as_ref(), &state, said.clone()));
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
