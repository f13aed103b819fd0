//! A run that is worked on while the Python program does something else.

use std::sync::Arc;
use std::time::Duration;

use hotcell_runtime::{CancellationToken, HostError, RunReport};
use pyo3::prelude::*;

use crate::errors::{of_host, refused};
use crate::feed::{Feed, Found};
use crate::report::Report;
use crate::running::threads;

/// How often whoever waits on the main thread looks whether a signal came.
const SIGNALS: Duration = Duration::from_millis(50);

/// A run that is under way. It is stopped when nobody has it any more, and can then be resumed.
#[pyclass(frozen, module = "hotcell._hotcell")]
pub(crate) struct Work {
    feed: Arc<Feed>,
    cancel: CancellationToken,
}

impl Work {
    /// Begins with it.
    pub(crate) fn begin(
        py: Python<'_>,
        feed: Arc<Feed>,
        cancel: CancellationToken,
        work: impl Future<Output = Result<RunReport, HostError>> + Send + 'static,
    ) -> PyResult<Self> {
        let runtime = threads(py)?;
        let told = feed.clone();
        runtime.spawn(async move {
            // On a task of its own, so that whoever waits hears of one that panics, too.
            let ended = match tokio::spawn(work).await {
                Ok(ended) => ended,
                Err(_) => Err(HostError::Stopped),
            };
            told.end(ended.map(Arc::new).map_err(Arc::new));
        });
        Ok(Work { feed, cancel })
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

#[pymethods]
impl Work {
    /// The next event as JSON, `True` if there may be one later, `False` at the end.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.feed.take() {
            Found::Event(event) => Ok(event.into_pyobject(py)?.into_any()),
            Found::Nothing => Ok(true.into_pyobject(py)?.to_owned().into_any()),
            Found::End => Ok(false.into_pyobject(py)?.to_owned().into_any()),
        }
    }

    /// The next event as JSON, for which it waits; `None` at the end. Ctrl-C stops the run.
    fn next(&self, py: Python<'_>) -> PyResult<Option<String>> {
        loop {
            match self.feed.take() {
                Found::Event(event) => return Ok(Some(event)),
                Found::End => return Ok(None),
                Found::Nothing => {}
            }
            py.detach(|| self.feed.wait(SIGNALS));
            py.check_signals().inspect_err(|_| self.cancel.cancel())?;
        }
    }

    /// Has `changed` called, on some thread, when there is an event or the end.
    fn when_changed(&self, py: Python<'_>, changed: Py<PyAny>) -> PyResult<()> {
        let receiver = self.feed.changes();
        threads(py)?.spawn(async move {
            let _ = receiver.await;
            let told = tokio::task::spawn_blocking(move || {
                Python::try_attach(|py| {
                    if let Err(error) = changed.call0(py) {
                        error.write_unraisable(py, None);
                    }
                })
            });
            let _ = told.await;
        });
        Ok(())
    }

    /// The name of the run; `None` before it begins.
    fn run(&self) -> Option<String> {
        self.feed.run()
    }

    /// What came of it.
    fn report(&self, py: Python<'_>) -> PyResult<Report> {
        match self.feed.ended() {
            Some(Ok(report)) => Ok(Report(report)),
            Some(Err(error)) => Err(of_host(py, &error)),
            None => Err(refused(py, "the run is not over")),
        }
    }

    /// Stops it. It can be resumed.
    fn stop(&self) {
        self.cancel.cancel();
    }
}
