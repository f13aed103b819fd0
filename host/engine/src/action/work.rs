//! What a node writes, and where it leads.

use hotcell_graph::ir::{Action, Graph, Node, NodeIndex, OnFailure, Update};
use hotcell_graph::{Effort, Scoped, State, Value};
use hotcell_journal::Write;

use super::Done;
use crate::branch::apply;
use crate::context::Interruption;
use crate::hook::{self, HookPoint};
use crate::schedule::Route;
use crate::telling;
use crate::turn::NodeTurn;

/// Keys that one node may write at a time.
const MAX_WRITES: usize = 10_000;

/// Writes of one turn and the state they lead to.
pub(super) struct Work<'g> {
    pub(super) graph: &'g Graph,
    pub(super) state: State,
    pub(super) writes: Vec<Write>,
}

impl Work<'_> {
    pub(super) fn write_all(&mut self, writes: Vec<Write>) -> Result<(), Interruption> {
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
    pub(super) fn update(
        &mut self,
        updates: &[Update],
        answer: Option<&(&'static str, Value)>,
    ) -> Result<(), Interruption> {
        if updates.is_empty() {
            return Ok(());
        }
        let scope = Scoped { state: &self.state, local: answer.map(|(name, value)| (*name, value)) };
        let _effort = Effort::begin();
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
    pub(super) async fn after_node(&mut self, turn: &mut NodeTurn, node: &Node) -> Result<(), Interruption> {
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
    pub(super) fn stop(self, turn: &mut NodeTurn, reason: String) -> Interruption {
        turn.shown = self.writes;
        Interruption::Failed(reason)
    }

    /// Goes from the node to these; with nowhere to go the run fails, and what the node did is seen all the same.
    pub(super) fn leave(
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
