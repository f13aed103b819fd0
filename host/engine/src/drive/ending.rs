//! What a graph comes to: a result, a limit, or an error of the schedule.

use std::time::Duration;

use hotcell_budget::{Cost, CostExceeded};
use hotcell_graph::State;
use hotcell_graph::ir::{CapOrigin, Ends, FailedNodes, NodeIndex, VisitCap};

use super::Drive;
use crate::outcome::{Outcome, list};
use crate::schedule::ScheduleError;

impl Drive {
    /// The end of a run: at a node, with its output, or because nothing is left to run.
    pub(super) fn end(&self, output: Option<String>, state: &State) -> Outcome {
        if let (Some(_), Err(exceeded)) =
            (&self.graph.limits.budget.cost, self.context.budget_scope.within_cost(Cost::default()))
        {
            return self.out_of_money(&exceeded);
        }
        if self.graph.scheduling.failed_nodes == FailedNodes::FailTheRun
            && let Some((node, _)) = self.failed.first()
        {
            let errors: Vec<String> =
                self.failed.iter().map(|(node, failure)| format!("node `{node}` failed: {failure}")).collect();
            return Outcome::Failed { node: Some(node.clone()), error: errors.join("; ") };
        }
        let output = match (&self.graph.scheduling.ends, output) {
            (_, Some(output)) => Ok(output),
            (Ends::WhenQuiet { output }, None) => output.evaluate_text(state).map_err(|missing| missing.to_string()),
            (Ends::AtNode, None) => Ok(String::new()),
        };
        match output {
            Ok(output) => Outcome::Completed { output },
            Err(missing) => Outcome::Failed { node: None, error: format!("the result of the run: {missing}") },
        }
    }

    /// The end of a run that has used up its time. It is noticed between two nodes.
    pub(super) fn out_of_time(&self, limit: Duration) -> Outcome {
        let mut coming = self.schedule.coming();
        coming.extend(self.queue.iter().map(|start| start.node));
        coming.sort_unstable();
        coming.dedup();
        let coming: Vec<String> =
            coming.into_iter().map(|node| self.graph.node(node).speaks_as().to_string()).collect();
        let before = if coming.is_empty() { String::new() } else { format!(" before {}", list(&coming)) };
        let error = format!("the run timed out{before}: it is limited to {} s", limit.as_secs_f64());
        Outcome::Failed { node: None, error }
    }

    /// The end of a run that has spent more than it may. What was under way has come to its end.
    pub(super) fn out_of_money(&self, exceeded: &CostExceeded) -> Outcome {
        let names = self.queue.iter().map(|start| self.graph.node(start.node).speaks_as().to_string());
        let names: Vec<String> = names.collect();
        let before = if names.is_empty() { String::new() } else { format!(" before {}", list(&names)) };
        Outcome::Failed { node: None, error: format!("run-budget: the run stopped{before}: {exceeded}") }
    }

    pub(super) fn explain(&self, error: ScheduleError) -> Outcome {
        let id = |node: NodeIndex| self.graph.node(node).id.to_string();
        match error {
            ScheduleError::Visits { node, visits } => {
                let node = id(node);
                let error = reached(self.graph.limits.visits_per_node.as_ref(), |setting, cap| {
                    format!(
                        "node '{node}' visited {visits} times ({setting}={cap}); it may be a loop without end, or the cap is too low"
                    )
                });
                Outcome::Failed { node: Some(node), error }
            }
            ScheduleError::Rounds { node } => {
                let node = id(node);
                let error = reached(self.graph.limits.rounds.as_ref(), |setting, cap| {
                    format!(
                        "the run has had {cap} rounds ({setting}={cap}) and would go on with node `{node}`; it may be a loop without end, or the limit is too low"
                    )
                });
                Outcome::Failed { node: Some(node), error }
            }
            ScheduleError::Turns { node } => Outcome::Stopped {
                reason: reached(self.graph.limits.turns.as_ref(), |setting, cap| {
                    let node = self.graph.node(node).speaks_as();
                    format!("the run has had {cap} turns ({setting}={cap}) and would go on with node `{node}`")
                }),
            },
            ScheduleError::Hops { node } => Outcome::Stopped {
                reason: reached(self.graph.limits.hops.as_ref(), |setting, cap| {
                    let node = self.graph.node(node).speaks_as();
                    format!("nodes led to others {cap} times ({setting}={cap}), and the run would go on with `{node}`")
                }),
            },
            ScheduleError::Merge { node, error } => {
                let node = id(node);
                let error = format!("node `{node}` cannot start: {error}");
                Outcome::Failed { node: Some(node), error }
            }
            ScheduleError::Ends(ends) => {
                let ends: Vec<String> = ends.into_iter().map(id).collect();
                let error = format!("parallel branches ended in different end nodes: {}", list(&ends));
                Outcome::Failed { node: None, error }
            }
        }
    }
}

/// What it means that a cap is reached: in its own words, or by the name of its setting and how much that allows.
fn reached(cap: Option<&VisitCap>, by_setting: impl FnOnce(&str, u32) -> String) -> String {
    match cap.map(|cap| (&cap.origin, cap.visits)) {
        Some((CapOrigin::Fixed(words), _)) => words.clone(),
        Some((CapOrigin::Setting(setting), visits)) => by_setting(setting, visits),
        None => by_setting("", 0),
    }
}
