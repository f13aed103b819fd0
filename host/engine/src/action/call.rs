//! Running a graph as a part of the run: in the same journal, out of the same budget scope.

mod steps;

use std::sync::{Arc, Mutex};

use hotcell_budget::{Account, RunBudget};
use hotcell_graph::ir::{
    CallAction, CallTarget, Contract, Expression, Gives, Graph, LoopAnswer, NestedLoop, Next, Node, NodeIndex, REPLY,
    Results, Tool,
};
use hotcell_graph::{Key, List, Object, State, Value};

use super::Performed;
use super::agent::{self, Within};
use super::part::{Driven, drive};
use super::read_value::Schema;
use super::tool::{Called, ToolFailure};
use crate::context::{Interruption, RunContext};
use crate::memory::Deed;
use crate::turn::NodeTurn;
use crate::what_if::locked;
use hotcell_journal::EntryPath;
use hotcell_journal::Write;

/// How many graphs deep a run may go.
const MAX_DEPTH: u32 = 32;
/// Under what it is committed what a graph said that was called as a tool.
const SAID: &str = "said";

/// What a graph gave.
pub(super) struct GraphOutput {
    pub(super) outputs: Object,
    branch: Option<String>,
    /// What it added to the conversation
    pub(super) said: List,
}

/// A graph that is to be run.
pub(super) struct CalledGraph {
    node: Key,
    base: EntryPath,
    graph: Arc<Graph>,
    state: State,
    /// How long the conversation was before
    before: usize,
    /// Whether its questions are put in the name of the node and of the one that asks
    asks_by_way: bool,
}

/// What came of a graph, with what it said so far and what it used.
pub(super) struct Ended {
    pub(super) result: Result<GraphOutput, Interruption>,
    said: List,
    pub(super) account: Account,
    failure_kind: Option<String>,
    final_refusal: bool,
    state: State,
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
        CallTarget::Graph { graph, inputs, conversation, inherits, gives } => {
            let begins = if *inherits { state.clone() } else { State::default() };
            let wanted = Wanted { graph, inputs, conversation: conversation.as_ref(), begins, gives };
            call_graph(turn, node, wanted, state).await?
        }
        CallTarget::Agent { agent, prompt, inputs } => {
            let prompt =
                prompt.evaluate_text(state).map_err(|missing| Interruption::Failed(format!("`prompt`: {missing}")))?;
            let input = |(key, value): &(Key, Expression)| match value.evaluate(state) {
                Ok(value) => Ok((key.clone(), value)),
                Err(missing) => Err(Interruption::Failed(format!("`inputs.{key}`: {missing}"))),
            };
            let inputs = inputs.iter().map(input).collect::<Result<Object, Interruption>>()?;
            Given::answer(Box::pin(agent::consult(turn, agent, prompt, inputs)).await?)
        }
        CallTarget::Loop(steps) => Given::answer(Box::pin(steps::run_loop(turn, steps, state)).await?),
    };
    let reports = matches!(&action.target, CallTarget::Loop(steps) if steps.agent.answer == LoopAnswer::Report);
    if let (true, Some(schema), Some(contract), Value::Object(report)) =
        (reports, &schema, &action.contract, &mut performed.answer)
    {
        let text = report.get(REPLY).map(|reply| reply.to_display().into_owned()).unwrap_or_default();
        let value = Box::pin(fit(turn, contract, schema, text, state)).await?;
        report.insert(REPLY, value);
        let Given { answer, writes, route, ends_branch } = performed;
        return Ok(Performed { answer: Some((action.bind, answer)), writes, route, ends_branch });
    }
    if let (Some(schema), Some(contract)) = (schema, &action.contract) {
        let text = performed.answer.to_display().into_owned();
        performed.answer = Box::pin(fit(turn, contract, &schema, text, state)).await?;
        if let Value::Object(object) = &performed.answer {
            let entry = |key: &Key| Some(Write { key: key.clone(), value: object.get(key)?.clone() });
            performed.writes.extend(contract.merge.iter().filter_map(entry));
        }
    }
    let Given { answer, writes, route, ends_branch } = performed;
    Ok(Performed { answer: Some((action.bind, answer)), writes, route, ends_branch })
}

/// The value that a text is, or that a model makes of it where there is one that does.
async fn fit(
    turn: &mut NodeTurn,
    contract: &Contract,
    schema: &Schema,
    text: String,
    state: &State,
) -> Result<Value, Interruption> {
    match (schema.read(&text), &contract.graph) {
        (Ok(value), _) => Ok(value),
        (Err(_), Some(graph)) => steps::extract(turn, graph, text, state).await,
        (Err(problem), None) => {
            // What has to fit at once gets no second try.
            turn.give_up();
            Err(Interruption::Failed(format!("the reply does not fit `output_schema`: {problem}")))
        }
    }
}

/// Has another loop work on a text, as an effect: the text that it gives, or what it fails with.
pub(super) async fn consult_loop(
    turn: &mut NodeTurn,
    nested: &Arc<NestedLoop>,
    request: String,
) -> Result<Result<String, ToolFailure>, Interruption> {
    let (base, node) = (turn.base_of_next(), turn.node.clone());
    let deed = Deed::new("agent", &nested.name, &[&request]);
    let outcome = turn
        .effect(deed, |context| async move {
            let (account, result) = steps::run_nested(&context, node, base, nested, request).await;
            let called = match result {
                Ok(text) => Called { key: "value", value: Value::text(text) },
                Err(Interruption::Failed(reason)) => Called::error(reason),
                Err(other) => return (account, Err(other)),
            };
            (account, Ok(called.into_value()))
        })
        .await?;
    let value = outcome.as_object().and_then(|object| object.get("value"));
    Ok(match ToolFailure::of(&outcome) {
        Some(failure) => Err(failure),
        None => Ok(value.map(|value| value.to_display().into_owned()).unwrap_or_default()),
    })
}

/// What a graph that is called as a tool hears of the conversation around it.
#[derive(Default)]
pub(super) struct Heard<'a> {
    pub(super) messages: List,
    /// The state key of the conversation; none if nobody hears what the graph says
    pub(super) conversation: Option<&'a Key>,
}

/// What came of a graph that was called as a tool.
pub(super) struct Consulted {
    pub(super) result: Result<Value, ToolFailure>,
    /// What it said
    pub(super) said: List,
}

/// Has a graph do the work of a tool, as an effect.
pub(super) async fn consult_graph(
    turn: &mut NodeTurn,
    tool: &Tool,
    graph: &Arc<Graph>,
    inputs: Object,
    heard: Heard<'_>,
) -> Result<Consulted, Interruption> {
    let base = turn.base_of_next();
    let arguments = Value::Object(inputs.clone()).to_json();
    let deed = Deed::new("agent", &tool.name, &[&arguments]);
    let mut called = part(turn, base, graph, State::from_object(&inputs), None, &State::default());
    if let Some(key) = &graph.conversation {
        called.before = heard.messages.len();
        called.state.set(key.clone(), Value::List(heard.messages));
    }
    let last_words = Mutex::new(List::default());
    let so_far = &last_words;
    let outcome = turn
        .effect(deed, |context| async move {
            let ended = {
                let _place = context.gates.enter(&called.graph, &*context.ports.clock).await;
                run(context.clone(), called).await
            };
            let outcome = match ended.result {
                Ok(given) => Called { key: "value", value: only_or_all(given.outputs) },
                Err(Interruption::Failed(reason)) => Called::error(reason),
                Err(other) => {
                    *locked(so_far) = ended.said;
                    return (ended.account, Err(other));
                }
            };
            let mut outcome = outcome.into_value();
            if let Value::Object(outcome) = &mut outcome {
                outcome.insert(SAID, Value::List(ended.said));
            }
            (ended.account, Ok(outcome))
        })
        .await;
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(stop) => {
            let said = std::mem::take(&mut *locked(&last_words));
            if let (Some(key), false) = (heard.conversation, said.is_empty()) {
                turn.shown.push(Write { key: key.clone(), value: Value::List(said) });
            }
            return Err(stop);
        }
    };
    let entry = |key: &str| outcome.as_object().and_then(|outcome| outcome.get(key));
    let said = entry(SAID).and_then(Value::as_list).cloned().unwrap_or_default();
    let result = match ToolFailure::of(&outcome) {
        Some(failure) => Err(failure),
        None => Ok(entry("value").cloned().unwrap_or_default()),
    };
    Ok(Consulted { result, said })
}

/// What a tool gives that has these outputs.
fn only_or_all(outputs: Object) -> Value {
    let only = outputs.iter().next().filter(|_| outputs.len() == 1).map(|(_, only)| only.clone());
    only.unwrap_or_else(|| outputs.into())
}

/// A graph that a node calls.
struct Wanted<'a> {
    graph: &'a Arc<Graph>,
    inputs: &'a [(Key, Expression)],
    conversation: Option<&'a Key>,
    /// What its state begins with, beneath the inputs
    begins: State,
    gives: &'a Gives,
}

/// What a call gives its node.
struct Given {
    answer: Value,
    writes: Vec<Write>,
    route: Option<NodeIndex>,
    ends_branch: bool,
}

impl Given {
    fn answer(answer: Value) -> Self {
        Given { answer, writes: Vec::new(), route: None, ends_branch: false }
    }
}

async fn call_graph(
    turn: &mut NodeTurn,
    node: &Node,
    wanted: Wanted<'_>,
    state: &State,
) -> Result<Given, Interruption> {
    let Wanted { graph, inputs, conversation, begins: mut inner, gives } = wanted;
    for (key, value) in inputs {
        let value = value.evaluate(state).map_err(|error| Interruption::Failed(error.to_string()))?;
        inner.set(key.clone(), value);
    }
    let base = turn.next_base();
    let mut part = part(turn, base, graph, inner, conversation, state);
    part.asks_by_way = *gives != Gives::Outputs;
    let ended = {
        let _place = turn.context.gates.enter(graph, &*turn.context.ports.clock).await;
        run(turn.context.clone(), part).await
    };
    turn.recorded += ended.account;
    let said = |said: List| match conversation {
        Some(key) if !said.is_empty() => vec![Write { key: key.clone(), value: Value::List(said) }],
        _ => Vec::new(),
    };
    let given = match ended.result {
        Ok(given) => given,
        Err(stop) => {
            turn.shown = said(ended.said);
            turn.failure_kind = ended.failure_kind;
            if ended.final_refusal {
                turn.note_final_refusal();
            }
            return Err(stop);
        }
    };
    let route = leave_by(node, given.branch.as_deref());
    let answer = match gives {
        Gives::Outputs => given.outputs,
        Gives::State => ended.state.to_object(),
        Gives::Entries(keys) | Gives::Needed(keys) => {
            keys.iter().filter_map(|key| Some((key.clone(), ended.state.get(key)?.clone()))).collect()
        }
    };
    let ends_branch = matches!(gives, Gives::Needed(keys) if answer.len() < keys.len());
    Ok(Given { answer: answer.into(), writes: said(given.said), route, ends_branch })
}

/// A graph with what it begins with.
pub(super) fn part(
    turn: &NodeTurn,
    base: EntryPath,
    graph: &Arc<Graph>,
    mut inner: State,
    conversation: Option<&Key>,
    state: &State,
) -> CalledGraph {
    for (key, value) in &graph.initial_state {
        inner.set(key.clone(), value.clone());
    }
    let messages = conversation.and_then(|key| state.get(key)).and_then(Value::as_list);
    let before = messages.map_or(0, List::len);
    if let (Some(key), Some(messages)) = (&graph.conversation, messages) {
        inner.set(key.clone(), Value::List(messages.clone()));
    }
    CalledGraph { node: turn.node.clone(), base, graph: graph.clone(), state: inner, before, asks_by_way: false }
}

/// Runs a graph to its end, or to where it waits.
pub(super) async fn run(caller: Arc<RunContext>, part: CalledGraph) -> Ended {
    if caller.depth >= MAX_DEPTH {
        let reason = format!("graphs may call each other to a depth of {MAX_DEPTH}, and this is deeper");
        let (said, account, state) = (List::default(), Account::default(), State::default());
        let result = Err(Interruption::Failed(reason));
        return Ended { result, said, account, failure_kind: None, final_refusal: false, state };
    }
    let Driven { result, failure_kind, final_refusal, state, account } =
        drive(prepare(&caller, &part), part.state.clone()).await;
    let said = said(&part, &state);
    let result = result.map(|_| given(part.graph.results.as_ref(), &state, said.clone()));
    Ended { result, said, account, failure_kind, final_refusal, state }
}

/// What a graph is run with.
fn prepare(caller: &RunContext, part: &CalledGraph) -> RunContext {
    let mut inside = caller.part(part.base.clone());
    let observer = caller.ports.observer.clone();
    let agent = part.graph.name.as_str().into();
    inside.ports.observer = Arc::new(Within { node: part.node.clone(), agent, observer });
    inside.graph = part.graph.clone();
    let own = &part.graph.limits.budget;
    if *own != RunBudget::default() {
        let used = caller.remembered().used_at(&part.base);
        inside.budget_scope = Arc::new(caller.budget_scope.part(own.clone(), used));
    }
    if part.asks_by_way {
        inside.asks_as = None;
        inside.asks_within = Some(match &caller.asks_within {
            None => part.node.clone(),
            Some(within) => format!("{within}.{}", part.node).into(),
        });
    } else {
        inside.asks_as.get_or_insert_with(|| part.node.clone());
    }
    inside
}

/// What a graph has added to the conversation.
fn said(part: &CalledGraph, state: &State) -> List {
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
