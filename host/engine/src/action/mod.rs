//! What nodes do: one module per action, and the frame around all of them (failure, updates, route).

mod agent;
mod answer_calls;
pub(crate) mod arguments;
mod ask;
mod call;
mod compute;
mod converse;
mod defined;
mod failure;
mod forbidden;
mod given;
pub(crate) mod job;
mod look_up;
mod map;
mod model;
mod part;
mod permission;
mod plugin_node;
mod read_value;
mod script;
mod side_by_side;
mod skills;
mod spread;
mod todo;
mod tool;
mod work;

use std::pin::{Pin, pin};
use std::sync::Arc;

use futures::future::BoxFuture;
use hotcell_graph::ir::{
    Action, CallTarget, Expression, FailedNodes, Graph, Join, JoinWhen, Node, NodeIndex, OnFailure, RetryOn, Unmet,
};
use hotcell_graph::{Key, State, Value};
use hotcell_journal::Write;
use hotcell_models::says_transient;

use self::failure::fail;
use self::work::Work;
use crate::branch::WriteError;
use crate::clock::{self, Clock};
use crate::context::Interruption;
use crate::hook::{self, HookPoint};
use crate::outcome::list;
use crate::route::declared_route;
use crate::schedule::Route;
use crate::telling;
use crate::turn::NodeTurn;

/// What an action gives on success.
#[derive(Default)]
struct Performed {
    /// The answer and the name under which updates see it
    answer: Option<(&'static str, Value)>,
    /// What the action itself writes
    writes: Vec<Write>,
    /// Where it goes, if the action decides that
    route: Option<NodeIndex>,
    /// Whether its branch ends, without anything that the node would write
    ends_branch: bool,
}

/// A node's turn that is done.
pub(crate) struct Done {
    pub(crate) writes: Vec<Write>,
    pub(crate) state: State,
    pub(crate) route: Route,
    pub(crate) output: Option<String>,
    pub(crate) failure: Option<String>,
}

/// Runs a node's turn on a snapshot of the state.
pub(crate) async fn run_node(
    turn: &mut NodeTurn,
    graph: &Graph,
    index: NodeIndex,
    state: State,
) -> Result<Done, Interruption> {
    let node = graph.node(index);
    if let Action::End { output } = &node.action {
        return end(turn, graph, node, output, state);
    }
    let context = turn.context.clone();
    let clock = &context.ports.clock;
    let told = || {
        let state = Value::Object(state.to_object());
        hook::event([("node", Value::Text(node.id.clone())), ("kind", node.kind.into()), ("state", state)])
    };
    let attempts = async {
        loop {
            let performed = match telling::tell(&context, &mut turn.account, HookPoint::BeforeNode, told).await {
                Ok(_) => perform(turn, graph, node, &state).await,
                Err(stop) => Err(stop),
            };
            match again(turn, node, performed).await? {
                Tried::Again => {}
                Tried::Done(performed) => break performed,
            }
        }
    };
    let in_time = in_time(clock, node, pin!(attempts)).await;
    let performed = in_time.unwrap_or_else(|| Err(timed_out(turn, node)));
    let stop = match performed {
        Ok(performed) => match succeed(turn, graph, index, state.clone(), performed).await {
            // What the node would have written is not written: another node goes on, or none.
            Err(stop @ Interruption::Refused(_)) => stop,
            // A run that fails for each node that failed has the others go on until then, whatever the failure was.
            Err(stop @ Interruption::Failed(_)) if survives(graph, node) => stop,
            done => return done,
        },
        Err(stop) => stop,
    };
    let Some(reason) = stop.reason().map(str::to_owned) else { return Err(stop) };
    let told = || hook::event([("node", Value::Text(node.id.clone())), ("error", reason.as_str().into())]);
    // It failed already: nothing that a hook says of it makes a difference.
    let _ = telling::tell(&context, &mut turn.account, HookPoint::NodeFailed, told).await;
    match stop {
        // What follows is not made for this: it would go on as if nothing had been refused.
        Interruption::Refused(_) if !matches!(node.on_failure, OnFailure::To(_)) => Err(stop),
        _ => fail(turn, graph, index, state, reason),
    }
}

/// Whether other nodes go on after a node failed, and the run is known to have failed in the end.
fn survives(graph: &Graph, node: &Node) -> bool {
    graph.scheduling.failed_nodes == FailedNodes::FailTheRun && node.on_failure != OnFailure::Fail
}

/// Writes what a node gave, and goes on from it.
async fn succeed(
    turn: &mut NodeTurn,
    graph: &Graph,
    index: NodeIndex,
    state: State,
    performed: Performed,
) -> Result<Done, Interruption> {
    let node = graph.node(index);
    let mut work = Work { graph, state, writes: Vec::new() };
    if performed.ends_branch {
        let Work { state, writes, .. } = work;
        return Ok(Done { writes, state, route: Route::To(Vec::new()), output: None, failure: None });
    }
    work.write_all(performed.writes)?;
    work.update(&node.updates, performed.answer.as_ref())?;
    work.after_node(turn, node).await?;
    let answer = performed.answer.as_ref().and_then(|(_, answer)| answer.as_text());
    let targets = match performed.route {
        Some(target) => vec![target],
        None => declared_route(graph, index, answer, &work.state)?,
    };
    work.leave(turn, node, targets, None)
}

/// What is done about an attempt at a node.
enum Tried {
    Again,
    Done(Result<Performed, Interruption>),
}

/// Has a node tried again that failed, if it may be.
async fn again(
    turn: &mut NodeTurn,
    node: &Node,
    performed: Result<Performed, Interruption>,
) -> Result<Tried, Interruption> {
    match (performed, &node.retry) {
        (Err(Interruption::Failed(reason)), Some(retry))
            if turn.attempt() < retry.attempts && !turn.gave_up && may_pass(&retry.on, &reason) =>
        {
            let pause = model::pause(retry, turn.attempt(), None);
            turn.try_again(reason).await?;
            turn.context.ports.clock.pause(pause).await;
            Ok(Tried::Again)
        }
        (performed, _) => Ok(Tried::Done(performed)),
    }
}

/// Whether another attempt may help after a failure of a node.
fn may_pass(on: &RetryOn, reason: &str) -> bool {
    *on != RetryOn::Transient || says_transient(reason)
}

/// A turn of a node that waited in vain: a failure like any other.
pub(crate) async fn miss_node(
    turn: &mut NodeTurn,
    graph: &Graph,
    index: NodeIndex,
    state: State,
    missed: &[NodeIndex],
) -> Result<Done, Interruption> {
    if let Join::When(JoinWhen { unmet: Unmet::FailAs(kind), .. }) = &graph.node(index).join {
        turn.failure_kind = Some((*kind).to_owned());
    }
    let names: Vec<String> = missed.iter().map(|node| graph.node(*node).speaks_as().to_string()).collect();
    fail(turn, graph, index, state, format!("it waited for {}, and nothing came", list(&names)))
}

/// A turn whose writes do not go with what other branches wrote meanwhile: a failure like any other.
pub(crate) fn unfit_node(
    turn: &mut NodeTurn,
    graph: &Graph,
    index: NodeIndex,
    state: State,
    error: &WriteError,
) -> Result<Done, Interruption> {
    fail(turn, graph, index, state, error.to_string())
}

/// Runs a node once for an item of a map: its value under `output_key`, on a state that nobody else sees.
///
/// Boxed, because a node that maps awaits the nodes it runs, which are performed by the same function.
pub(crate) fn run_item<'a>(
    turn: &'a mut NodeTurn,
    graph: &'a Graph,
    index: NodeIndex,
    state: State,
    output_key: &'a str,
) -> BoxFuture<'a, Result<Option<Value>, Interruption>> {
    Box::pin(async move {
        let node = graph.node(index);
        let clock = turn.context.ports.clock.clone();
        let attempts = async {
            loop {
                let performed = perform(turn, graph, node, &state).await;
                match again(turn, node, performed).await? {
                    Tried::Again => {}
                    Tried::Done(performed) => break performed,
                }
            }
        };
        let in_time = in_time(&clock, node, pin!(attempts)).await;
        let performed = in_time.unwrap_or_else(|| Err(timed_out(turn, node)))?;
        let mut work = Work { graph, state, writes: Vec::new() };
        work.write_all(performed.writes)?;
        work.update(&node.updates, performed.answer.as_ref())?;
        let written = work.writes.into_iter().rev().find(|write| &*write.key == output_key).map(|write| write.value);
        Ok(written.or_else(|| performed.answer.and_then(|(name, answer)| (name == output_key).then_some(answer))))
    })
}

/// Does the work of a node.
///
/// Every turn has room for the largest of these futures, and is moved to the heap with it. What asks people or models, runs a program or
/// many nodes is large, and takes so long that room of its own costs nothing.
async fn perform(turn: &mut NodeTurn, graph: &Graph, node: &Node, state: &State) -> Result<Performed, Interruption> {
    match &node.action {
        Action::Pass | Action::End { .. } => Ok(Performed::default()),
        Action::Fail(reason) => Err(Interruption::Failed(reason.clone())),
        Action::Absent => Err(Interruption::Failed("there is no such node".to_owned())),
        Action::Script(action) => Box::pin(script::perform(turn, graph, node, action, state)).await,
        Action::Ask(action) => Box::pin(ask::perform(turn, action, state)).await,
        Action::Map(action) => Box::pin(map::perform(turn, graph, action, state)).await,
        Action::PluginNode(action) => plugin_node::perform(turn, node, action, state).await,
        Action::LookUp(action) => Box::pin(look_up::perform(turn, action, state)).await,
        Action::Converse(action) => Box::pin(converse::perform(turn, graph, action, state)).await,
        Action::AnswerCalls(action) => Box::pin(answer_calls::perform(turn, graph, action, state)).await,
        Action::LoadSkills(action) => Box::pin(skills::perform(turn, graph, action, state)).await,
        Action::Spread(action) => spread::perform(action, state),
        Action::ReadValue(action) => read_value::perform(action, state),
        Action::Call(action) => call::perform(turn, node, action, state).await,
        Action::Tool(action) => defined::perform(turn, action, state).await,
        Action::Job(action) => Box::pin(job::perform(turn, action, state)).await,
        Action::Compute(action) => compute::perform(turn, action, state),
    }
}

/// All attempts at a node, unless they take longer than the node may. They are pinned where they are made: a future that is
/// handed on would be kept twice, and what all actions need together is moved with every node.
async fn in_time<W>(clock: &Arc<dyn Clock>, node: &Node, work: Pin<&mut W>) -> Option<Result<Performed, Interruption>>
where
    W: Future<Output = Result<Performed, Interruption>>,
{
    // A person may think as long as they like, and what limits a script or a job ends it with an error of its own.
    let is_limited = !matches!(node.action, Action::Ask(_) | Action::Script(_) | Action::Job(_));
    match node.timeout.filter(|_| is_limited) {
        None => Some(work.await),
        Some(limit) => clock::timeout(&**clock, limit, work).await,
    }
}

/// A node took longer than it may.
fn timed_out(turn: &mut NodeTurn, node: &Node) -> Interruption {
    turn.timed_out = true;
    turn.give_up();
    let limit = node.timeout.unwrap_or_default().as_secs_f64();
    let who = match called_agent(node) {
        Some(agent) => format!("agent `{agent}` "),
        None => String::new(),
    };
    Interruption::Failed(format!("{who}timed out after {limit} s"))
}

/// The agent that a node calls by its name.
fn called_agent(node: &Node) -> Option<&Key> {
    match &node.action {
        Action::Call(call) => match &call.target {
            CallTarget::Agent { agent, .. } => Some(agent),
            CallTarget::Graph { .. } | CallTarget::Loop(_) => None,
        },
        _ => None,
    }
}

fn end(
    turn: &mut NodeTurn,
    graph: &Graph,
    node: &Node,
    output: &Expression,
    state: State,
) -> Result<Done, Interruption> {
    let mut work = Work { graph, state, writes: Vec::new() };
    work.update(&node.updates, None)?;
    let output = output.evaluate_text(&work.state).map_err(|missing| format!("`output`: {missing}"));
    let output = match output {
        Ok(output) => output,
        Err(reason) => return Err(work.stop(turn, reason)),
    };
    Ok(Done { writes: work.writes, state: work.state, route: Route::End, output: Some(output), failure: None })
}
