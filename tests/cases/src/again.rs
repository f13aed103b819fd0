//! Executing again what cases called: the same to the byte and to the unit of fuel, or the case fails.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use hotcell_runtime::{Again, EntryPath, Host, ReexecuteError, RunQuery, Tally};

/// Executes the recorded calls of cases again, and counts them.
#[derive(Debug)]
pub struct Reexecution {
    /// How often each call is executed again
    pub times: u32,
    counted: Mutex<Counted>,
}

/// What was executed again.
#[derive(Clone, Debug, Default)]
pub struct Counted {
    /// Calls that were recorded
    pub recorded: u64,
    /// What executing them again came to
    pub tally: Tally,
    /// Why calls cannot be executed again, by how many
    pub left: BTreeMap<String, u64>,
}

impl Reexecution {
    /// Executes every call again that often.
    pub fn new(times: u32) -> Self {
        Reexecution { times, counted: Mutex::default() }
    }

    /// What was executed again so far.
    pub fn counted(&self) -> Counted {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Executes the calls of all runs of a host again. The error says what was different.
    pub(crate) async fn of(&self, host: &Host) -> Result<(), String> {
        let query = RunQuery { limit: usize::MAX, ..RunQuery::default() };
        let runs = host.journal().list(&query).await.map_err(|error| error.to_string())?.runs;
        let mut finder = host.finder();
        let mut problems = Vec::new();
        for run in runs {
            for time in 0..self.times {
                let mut told = |call: hotcell_runtime::CallReexecuted| {
                    let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
                    counted.recorded += u64::from(time == 0);
                    counted.tally.add(&call.again);
                    match &call.again {
                        Again::Same { .. } => {}
                        Again::Left(gap) if time == 0 => *counted.left.entry(gap.to_string()).or_default() += 1,
                        Again::Left(_) => {}
                        other => problems.push(format!(
                            "{} of `{}` at `{}`: {other:?}",
                            named(&call.called),
                            call.name,
                            call.place
                        )),
                    }
                };
                match host.reexecute(&mut finder, &run.id, None::<&EntryPath>, &mut told).await {
                    Ok(_) | Err(ReexecuteError::NothingRecorded(_)) => {}
                    Err(error) => problems.push(error.to_string()),
                }
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
    }
}

fn named(called: &Option<String>) -> &str {
    called.as_deref().unwrap_or("a call")
}
