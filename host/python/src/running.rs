//! The threads that runs are worked on, and waiting for them so that Ctrl-C still works.

use std::pin::pin;
use std::sync::OnceLock;
use std::time::Duration;

use hotcell_runtime::CancellationToken;
use pyo3::prelude::*;
use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;

use crate::errors::refused;

/// How often whoever waits on the main thread looks whether a signal came.
const SIGNALS: Duration = Duration::from_millis(50);
/// How long a run may take to come to rest after Ctrl-C. What was committed can be resumed in any case.
const PATIENCE: Duration = Duration::from_secs(5);

/// The threads of this process, and the process they belong to.
static THREADS: OnceLock<(u32, Result<Runtime, String>)> = OnceLock::new();

/// The threads on which runs are worked on.
///
/// # Errors
/// When they cannot be started, and in a process that was forked from the one that has them.
pub(crate) fn threads(py: Python<'_>) -> PyResult<&'static Runtime> {
    let (owner, runtime) = THREADS.get_or_init(|| {
        let built = Builder::new_multi_thread().thread_name("hotcell").enable_all().build();
        (std::process::id(), built.map_err(|error| error.to_string()))
    });
    if *owner != std::process::id() {
        let text = "hotcell was used before this process was forked, and its threads are not in it; begin processes with \
                    `multiprocessing.set_start_method(\"spawn\")`, or import hotcell in the child only";
        return Err(refused(py, text));
    }
    runtime.as_ref().map_err(|error| refused(py, &format!("threads cannot be started: {error}")))
}

/// Does work to its end on this thread, without the interpreter's lock. A signal whose handler raises (Ctrl-C) cancels it, and is
/// raised when the work rests.
pub(crate) fn wait<T: Send>(
    py: Python<'_>,
    cancel: &CancellationToken,
    work: impl Future<Output = T> + Send,
) -> PyResult<T> {
    let runtime = threads(py)?;
    py.detach(|| {
        runtime.block_on(async {
            let mut work = pin!(work);
            let mut raised = None;
            // Not at once: a tick that is due waits for the end of its millisecond.
            let mut ticks = tokio::time::interval_at(Instant::now() + SIGNALS, SIGNALS);
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            let mut left = PATIENCE.as_millis() / SIGNALS.as_millis();
            loop {
                tokio::select! {
                    biased;
                    done = &mut work => {
                        return match raised {
                            Some(error) => Err(error),
                            None => Ok(done),
                        };
                    }
                    _ = ticks.tick() => {
                        let signal = Python::try_attach(|py| py.check_signals()).and_then(Result::err);
                        match (signal, raised.take()) {
                            (Some(error), None) => {
                                cancel.cancel();
                                raised = Some(error);
                            }
                            // The second one does not wait.
                            (Some(error), Some(_)) => return Err(error),
                            (None, Some(error)) => {
                                left = left.saturating_sub(1);
                                if left == 0 {
                                    return Err(error);
                                }
                                raised = Some(error);
                            }
                            (None, None) => {}
                        }
                    }
                }
            }
        })
    })
}
