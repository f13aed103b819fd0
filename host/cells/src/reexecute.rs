//! Executing a call again, from its recording: in a fresh instance, without anything of the world.

use std::sync::Arc;
use std::time::Duration;

use hotcell_budget::{Budget, Bytes, Fuel};

use crate::call::{CellError, ConnectorCall, HookCall, NodeCall, Report, ScriptCall, StateView, Terms, ToolCall};
use crate::cells::{Cell, Cells};
use crate::grants::Grants;
use crate::machine;
use crate::recording::{Called, Gave, Player, Recording};

/// How much longer than when it was recorded a call may take: the machine may be slower, and a call that hangs has to end.
const SLOWER: u32 = 4;
/// The least that is waited for a call.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest that is waited for a call, whatever its recording says.
const LONGEST: Duration = Duration::from_secs(3600);

/// What came of a call that was executed again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reexecuted {
    /// What it gave
    pub gave: Gave,
    /// The fuel it used
    pub fuel: Fuel,
    /// What it asked that the recording does not hold, as words after "asks"; it was ended there
    pub wanted: Option<String>,
    /// The log lines, standard error and the like are not compared. This is the end of standard error, for people
    pub stderr: String,
}

impl Cells {
    /// Executes a call again in `cell`, which may be another component than the one that was recorded. `source` is the text
    /// of the script, for interpreters.
    ///
    /// Nothing outside is asked: no network, store, model, tool, clock or file. A recording with a
    /// [`Gap`](crate::Gap) does not hold what is needed for that; look at [`Recording::gap`] first.
    pub async fn reexecute(&self, cell: &Cell, source: Option<Arc<str>>, recording: &Recording) -> Reexecuted {
        let player = Some(Arc::new(Player::new(recording)));
        let patience = recording.budget.wall_clock.saturating_mul(SLOWER).clamp(PATIENCE, LONGEST);
        let terms = Terms {
            // A recording of a call that had directories says so by its gap. One that names directories and has no gap was not
            // written by us, and they would be opened: they are the one thing granted that no player stands in for.
            grants: Arc::new(Grants { fs: Vec::new(), ..recording.grants.clone() }),
            env: recording.env.clone(),
            config: Arc::new(recording.config.clone()),
            budget: Budget { wall_clock: patience, ..recording.budget.clamp(&ceiling()) },
            depth: recording.depth,
            ..Terms::new(recording.plugin.clone())
        };
        match recording.call.clone() {
            Called::Script { file, state } => {
                let state = Arc::new(RecordedState(state.unwrap_or_default().into()));
                summary(self.script(cell, ScriptCall { file_name: file, source, state, terms }, player).await)
            }
            Called::Tool { tool, arguments, answers } => {
                summary(self.tool(cell, ToolCall { tool, arguments, answers, terms }, player).await)
            }
            Called::Node { node_type, fields, inputs, answers } => {
                let state = Arc::new(RecordedState(Arc::default()));
                summary(self.node(cell, NodeCall { node_type, fields, inputs, state, answers, terms }, player).await)
            }
            Called::Hook { point, event } => summary(self.hook(cell, HookCall { point, event, terms }, player).await),
            Called::Connector { input, config, callback, body } => {
                summary(self.connector(cell, ConnectorCall { input, config, callback, body, terms }, player).await)
            }
        }
    }
}

/// What a call may take however its recording says that it might: the memory that calls have here, and parts of it of what the host keeps.
fn ceiling() -> Budget {
    let memory = machine::of_this_machine();
    let part = Bytes(memory.0 / 16);
    Budget {
        memory,
        transfer: part,
        output: part,
        error_bytes: part,
        http_bytes: part,
        log_lines: 16_384,
        log_line_bytes: Bytes(part.0 / 16_384),
        ..Budget::unlimited()
    }
}

fn summary<T: Into<Gave> + Clone>(report: Report<T>) -> Reexecuted {
    let wanted = match &report.result {
        Err(CellError::NotRecorded { wanted }) => Some(wanted.clone()),
        _ => None,
    };
    Reexecuted { gave: Gave::of(&report.result), fuel: report.usage.fuel, wanted, stderr: report.stderr }
}

/// The state that a script is told whole; what others read of it comes from the recording by another way.
struct RecordedState(Arc<str>);

impl StateView for RecordedState {
    fn get(&self, _: &str) -> Option<String> {
        None
    }

    fn all(&self) -> Arc<str> {
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use hotcell_budget::Budget;

    use super::ceiling;

    #[test]
    fn nothing_that_the_host_keeps_of_a_call_is_without_end() {
        let most = Budget::unlimited().clamp(&ceiling());
        let lines = u64::from(most.log_lines).saturating_mul(most.log_line_bytes.0);
        let kept = [most.transfer.0, most.output.0, most.error_bytes.0, most.http_bytes.0, lines];
        assert!(kept.iter().sum::<u64>() <= most.memory.0, "{most:?}");
        // What calls may take if nothing is said, they may take again.
        for usual in [Budget::default(), Budget::interpreter()] {
            assert_eq!(usual.clamp(&ceiling()), usual);
        }
    }
}
