//! Functions of the Python program as tools of agents. They are not sealed: they are the program's own.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use hotcell_runtime::{FunctionCall, OfferedFunction, ToolSpec};
use pyo3::prelude::*;

/// The event loops of whoever awaits runs, by run.
static LOOPS: LazyLock<Mutex<HashMap<String, Py<PyAny>>>> = LazyLock::new(Mutex::default);

fn loops() -> MutexGuard<'static, HashMap<String, Py<PyAny>>> {
    LOOPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has the coroutines that a run calls run in this event loop.
pub(crate) fn enter_loop(run: &str, event_loop: Py<PyAny>) {
    loops().insert(run.to_owned(), event_loop);
}

/// Forgets the event loop of a run.
pub(crate) fn leave_loop(run: &str) {
    let left = loops().remove(run);
    drop(left);
}

/// A function of the program.
pub(crate) struct Function {
    spec: ToolSpec,
    /// Takes the arguments as JSON, the event loop or `None`, and a [`Call`]; gives whether it went well, and the result as JSON or the
    /// reason
    callable: Arc<Py<PyAny>>,
}

impl Function {
    pub(crate) fn new(spec: ToolSpec, callable: Py<PyAny>) -> Self {
        Function { spec, callable: Arc::new(callable) }
    }
}

/// A call that is under way.
#[pyclass(frozen, module = "hotcell._hotcell")]
pub(crate) struct Call {
    inner: Arc<Mutex<Stopping>>,
}

#[derive(Default)]
struct Stopping {
    is_stopped: bool,
    stop: Option<Py<PyAny>>,
}

#[pymethods]
impl Call {
    /// Has this called when nobody waits for the call any more.
    fn when_stopped(&self, py: Python<'_>, stop: Py<PyAny>) -> PyResult<()> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.is_stopped {
            drop(inner);
            return stop.call0(py).map(drop);
        }
        inner.stop = Some(stop);
        Ok(())
    }
}

/// Stops a call when it is dropped.
struct Stop(Arc<Mutex<Stopping>>);

impl Drop for Stop {
    fn drop(&mut self) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.is_stopped = true;
        if let Some(stop) = inner.stop.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            // The interpreter's lock is waited for elsewhere.
            runtime.spawn_blocking(move || Python::try_attach(|py| stop.call0(py).map(drop)));
        }
    }
}

#[async_trait]
impl OfferedFunction for Function {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    async fn call(&self, call: FunctionCall) -> Result<String, String> {
        let inner = Arc::new(Mutex::new(Stopping::default()));
        let stop = Stop(inner.clone());
        let callable = self.callable.clone();
        let called = tokio::task::spawn_blocking(move || {
            let called = Python::try_attach(|py| {
                let event_loop = call.run.and_then(|run| loops().get(run.as_str()).map(|one| one.clone_ref(py)));
                let arguments = (call.arguments, event_loop, Call { inner });
                callable.bind(py).call1(arguments)?.extract::<(bool, String)>()
            });
            match called {
                Some(Ok((true, value))) => Ok(value),
                Some(Ok((false, reason))) => Err(reason),
                Some(Err(error)) => Err(error.to_string()),
                None => Err("the Python interpreter is shutting down".to_owned()),
            }
        });
        let result = called.await.unwrap_or_else(|error| Err(format!("it ended abnormally: {error}")));
        // There is nothing left to stop.
        stop.0.lock().unwrap_or_else(PoisonError::into_inner).stop = None;
        result
    }
}
