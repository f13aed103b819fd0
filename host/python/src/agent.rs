//! Agents, for Python.

use std::sync::Arc;

use hotcell_graph::value::parse_json;
use hotcell_graph::{Object, Value};
use hotcell_runtime::{
    Agent, CancellationToken, Host, Nobody, Observer, People, RunInput, Session, called_with, diagnostic_json,
    input_schema, inspect,
};
use pyo3::prelude::*;
use serde_json::json;

use crate::errors::{of_host, unusable};
use crate::feed::Feed;
use crate::people::Answers;
use crate::report::Report;
use crate::running::wait;
use crate::work::Work;

/// An agent that is loaded, with the host that runs it.
#[pyclass(frozen, module = "hotcell._hotcell")]
pub(crate) struct NativeAgent {
    pub(crate) host: Host,
    pub(crate) agent: Arc<Agent>,
}

/// What a run is given.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Given {
    /// The text
    prompt: Option<String>,
    /// Values by their names, as JSON: variables, inputs of a flow, fields of the state
    values: Option<String>,
    /// Values of the state, as JSON
    state: Option<String>,
    /// The conversation that it belongs to
    thread: Option<String>,
}

/// A run's connections with the program.
pub(crate) fn session(ask: Option<Py<PyAny>>, observer: Arc<dyn Observer>, cancel: &CancellationToken) -> Session {
    let people: Arc<dyn People> = match ask {
        Some(ask) => Arc::new(Answers::new(ask)),
        None => Arc::new(Nobody),
    };
    Session { people, observer, cancel: cancel.clone() }
}

impl NativeAgent {
    fn input(&self, given: Given) -> PyResult<RunInput> {
        let name = &self.agent.graph.name;
        if given.prompt.is_some() && given.thread.is_none() && !self.agent.graph.takes_text() {
            let text = format!("nothing in `{name}` uses a prompt; leave it out, and give `values` or `state`");
            return Err(unusable(text));
        }
        let mut input = match given.values.as_deref() {
            Some(values) => {
                let values = serde_json::from_str(values).map_err(|error| unusable(format!("`values`: {error}")))?;
                called_with(&self.agent, &values)
            }
            None => RunInput::default(),
        };
        if given.prompt.is_some() {
            input.input = given.prompt;
        }
        if let Some(state) = given.state.as_deref() {
            for (key, value) in object("state", state)?.iter() {
                input.state.insert(key.clone(), value.clone());
            }
        }
        input.thread = given.thread;
        Ok(input)
    }
}

/// The JSON object of an argument.
fn object(name: &str, text: &str) -> PyResult<Object> {
    match parse_json(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(other) => Err(unusable(format!("`{name}` has to be an object, not {}", other.a_kind()))),
        Err(error) => Err(unusable(format!("`{name}`: {error}"))),
    }
}

#[pymethods]
impl NativeAgent {
    /// What it is, as JSON.
    fn about(&self, py: Python<'_>) -> String {
        let Agent { graph, warnings, dialect, file, .. } = &*self.agent;
        let found = |key: &str| graph.open_state.iter().any(|open| **open == *key);
        let about = || {
            json!({
                "name": graph.name,
                "description": graph.description,
                "language": format!("{dialect:?}").to_lowercase(),
                "file": file.to_string_lossy(),
                "revision": self.agent.digest(),
                "source": self.agent.source(),
                "warnings": warnings.iter().map(diagnostic_json).collect::<Vec<_>>(),
                "input_schema": input_schema(&self.agent),
                "takes_text": graph.takes_text(),
                "is_definition": graph.input_key.is_some() && found("conversation"),
                "loops": inspect(&self.agent, self.host.prices(), self.host.default_model().as_deref()),
            })
        };
        py.detach(|| about().to_string())
    }

    /// Runs it on this thread until the run rests.
    #[pyo3(signature = (given, ask=None))]
    fn run(&self, py: Python<'_>, given: Given, ask: Option<Py<PyAny>>) -> PyResult<Report> {
        let input = self.input(given)?;
        let cancel = CancellationToken::new();
        let session = session(ask, Arc::new(Nobody), &cancel);
        match wait(py, &cancel, self.host.run(&self.agent, input, session))? {
            Ok(report) => Ok(Report(Arc::new(report))),
            Err(error) => Err(of_host(py, &error)),
        }
    }

    /// Begins a run. Its events are kept where somebody reads them.
    #[pyo3(signature = (given, ask=None, event_loop=None, is_read=false))]
    fn begin(
        &self,
        py: Python<'_>,
        given: Given,
        ask: Option<Py<PyAny>>,
        event_loop: Option<Py<PyAny>>,
        is_read: bool,
    ) -> PyResult<Work> {
        let input = self.input(given)?;
        let (feed, cancel) = (Feed::new(is_read, event_loop), CancellationToken::new());
        let session = session(ask, feed.clone(), &cancel);
        let (host, agent) = (self.host.clone(), self.agent.clone());
        Work::begin(py, feed, cancel, async move { host.run(&agent, input, session).await })
    }
}
