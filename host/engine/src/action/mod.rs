//! What nodes do: one module per action, and the frame around all of them (failure, updates, route).

mod agent;
mod answer_calls;
mod arguments;
mod ask;
mod call;
mod compute;
mod converse;
mod defined;
mod forbidden;
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
mod todo;
mod tool;

use std::pin::{Pin, pin};
use std::sync::Arc;

use futures::future::BoxFuture;
use hotcell_graph::ir::{
    Action, CallTarget, Expression, FailedNodes, FailureRecord, Graph, Join, JoinWhen, Node, NodeIndex, OnFailure,
    RetryOn, SpreadAction, Unmet, Update, failure_key,
};
use hotcell_graph::{Key, Object, Scoped, State, Value};
use hotcell_journal::Write;
use hotcell_models::says_transient;
use thiserror::Error;

use crate::branch::{WriteError, apply};
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

async fn perform(turn: &mut NodeTurn, graph: &Graph, node: &Node, state: &State) -> Result<Performed, Interruption> {
    match &node.action {
        Action::Pass | Action::End { .. } => Ok(Performed::default()),
        Action::Fail(reason) => Err(Interruption::Failed(reason.clone())),
        Action::Absent => Err(Interruption::Failed("there is no such node".to_owned())),
        Action::Script(action) => script::perform(turn, graph, node, action, state).await,
        Action::Ask(action) => ask::perform(turn, action, state).await,
        Action::Map(action) => map::perform(turn, graph, action, state).await,
        Action::PluginNode(action) => plugin_node::perform(turn, node, action, state).await,
        Action::LookUp(action) => look_up::perform(turn, action, state).await,
        Action::Converse(action) => converse::perform(turn, graph, action, state).await,
        Action::AnswerCalls(action) => answer_calls::perform(turn, graph, action, state).await,
        Action::LoadSkills(action) => skills::perform(turn, graph, action, state).await,
        Action::Spread(action) => spread(action, state),
        Action::ReadValue(action) => read_value::perform(action, state),
        Action::Call(action) => call::perform(turn, node, action, state).await,
        Action::Tool(action) => defined::perform(turn, action, state).await,
        Action::Job(action) => job::perform(turn, action, state).await,
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

/// Goes on after a failure as the node says.
fn fail(
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

/// Writes the entries of an object.
fn spread(action: &SpreadAction, state: &State) -> Result<Performed, Interruption> {
    let value =
        action.value.evaluate(state).map_err(|error| Interruption::Failed(format!("the expression {error}")))?;
    let writes = match &action.keys {
        Some(keys) => entries(&value, keys),
        None => entries_of(&value).map(|entries| entries.collect()),
    };
    let writes = writes.map_err(|problem| Interruption::Failed(problem.to_string()))?;
    Ok(Performed { writes, ..Performed::default() })
}

/// Why a value gives nothing that could be written.
#[derive(Debug, Error)]
enum SpreadError {
    #[error("the expression has to give a map, not {0}")]
    NoMap(&'static str),
    #[error("the expression writes `{0}`, which is not a field of the state")]
    UnknownField(Key),
}

/// The entries of an object as writes, if it has only these keys.
fn entries(value: &Value, keys: &[Key]) -> Result<Vec<Write>, SpreadError> {
    let entries: Vec<Write> = entries_of(value)?.collect();
    match entries.iter().find(|write| !keys.contains(&write.key)) {
        Some(write) => Err(SpreadError::UnknownField(write.key.clone())),
        None => Ok(entries),
    }
}

fn entries_of(value: &Value) -> Result<impl Iterator<Item = Write> + '_, SpreadError> {
    let object = value.as_object().ok_or_else(|| SpreadError::NoMap(value.a_kind()))?;
    Ok(object.iter().map(|(key, value)| Write { key: key.clone(), value: value.clone() }))
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

/// Keys that one node may write at a time.
const MAX_WRITES: usize = 10_000;

/// Writes of one turn and the state they lead to.
struct Work<'g> {
    graph: &'g Graph,
    state: State,
    writes: Vec<Write>,
}

impl Work<'_> {
    fn write_all(&mut self, writes: Vec<Write>) -> Result<(), Interruption> {
        if self.writes.len() + writes.len() > MAX_WRITES {
            return Err(Interruption::Failed(format!("it writes more than {MAX_WRITES} keys of the state at once")));
        }
        for write in writes {
            // Whatever made it: it goes into the journal, and a loop may make it grow.
            write.value.check_size().map_err(|problem| {
                Interruption::Failed(format!("the value that it writes to `{}` cannot be kept: {problem}", write.key))
            })?;
            apply(self.graph, &mut self.state, &write).map_err(|error| Interruption::Failed(error.to_string()))?;
            self.writes.push(write);
        }
        Ok(())
    }

    /// Evaluates all updates against the state as it is now, then writes them in order.
    fn update(&mut self, updates: &[Update], answer: Option<&(&'static str, Value)>) -> Result<(), Interruption> {
        if updates.is_empty() {
            return Ok(());
        }
        let scope = Scoped { state: &self.state, local: answer.map(|(name, value)| (*name, value)) };
        let mut writes = Vec::with_capacity(updates.len());
        for update in updates {
            let value = update
                .value
                .evaluate(&scope)
                .map_err(|missing| Interruption::Failed(format!("update of `{}`: {missing}", update.key)))?;
            writes.push(Write { key: update.key.clone(), value });
        }
        self.write_all(writes)
    }

    /// Tells hooks what the node wrote; they may change the values.
    async fn after_node(&mut self, turn: &mut NodeTurn, node: &Node) -> Result<(), Interruption> {
        let told = || {
            let writes = self.writes.iter().map(|write| (write.key.clone(), write.value.clone())).collect();
            hook::event([("node", Value::Text(node.id.clone())), ("writes", Value::Object(writes))])
        };
        let context = turn.context.clone();
        let changed = telling::tell(&context, &mut turn.account, HookPoint::AfterNode, told).await?;
        let changed = changed.and_then(|event| event.get("writes").and_then(Value::as_object).cloned());
        let Some(changed) = changed else { return Ok(()) };
        let mut more = Vec::new();
        for (key, value) in changed.iter() {
            let before = self.writes.iter().rev().find(|write| write.key == *key);
            if before.is_some_and(|before| before.value != *value) {
                more.push(Write { key: key.clone(), value: value.clone() });
            }
        }
        self.write_all(more)
    }

    /// The end of the run after this much work of the node.
    fn stop(self, turn: &mut NodeTurn, reason: String) -> Interruption {
        turn.shown = self.writes;
        Interruption::Failed(reason)
    }

    /// Goes from the node to these; with nowhere to go the run fails, and what the node did is seen all the same.
    fn leave(
        self,
        turn: &mut NodeTurn,
        node: &Node,
        targets: Vec<NodeIndex>,
        failure: Option<String>,
    ) -> Result<Done, Interruption> {
        let may_end = node.next.may_end_branch() || (failure.is_some() && node.on_failure == OnFailure::EndBranch);
        if targets.is_empty() && !may_end {
            let dynamic = matches!(&node.action, Action::Script(script) if script.route_key.is_some());
            let or = if dynamic { " and its answer does not name a node" } else { "" };
            return Err(self.stop(turn, format!("it has no `next`{or}, so there is nowhere to go")));
        }
        let mut reached = targets.iter().map(|target| self.graph.node(*target));
        if let Some(absent) = reached.find(|target| matches!(target.action, Action::Absent)) {
            let leads = format!("it leads to `{}`, and there is no such node", absent.id);
            let reason = failure.map_or_else(|| leads.clone(), |failure| format!("{failure}; then {leads}"));
            return Err(self.stop(turn, reason));
        }
        Ok(Done { writes: self.writes, state: self.state, route: Route::To(targets), output: None, failure })
    }
}
