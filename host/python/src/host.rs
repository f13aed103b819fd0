//! Hosts, for Python.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use hotcell_runtime::{
    Agent, CancellationToken, Environment, Host, HostError, HostOptions, JournalChoice, LoadFailure, ModelSource,
    Nobody, Offered, RevisionChoice, RunQuery, RunReport, RunStatus, Session, StoresChoice, ToolSpec, open_questions,
};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::agent::{NativeAgent, session};
use crate::errors::{not_loaded, of_host, refused, unusable};
use crate::feed::Feed;
use crate::function::Function;
use crate::report::Report;
use crate::running::{threads, wait};
use crate::work::Work;

/// The first host of this process, whose WebAssembly engine all others share.
static FIRST: Mutex<Option<Host>> = Mutex::new(None);

/// How a host is set up.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Options {
    /// `memory`, a file, or the user's own journal
    journal: Option<PathBuf>,
    in_memory: bool,
    plugins: Vec<PathBuf>,
    /// Whether the folder of an agent that the program names may grant something
    trust: bool,
    /// Nothing of the user's own settings, plugins, keys or runs
    isolated: bool,
    /// The variables of the environment; those of the process where there are none
    environment: Option<Vec<(String, String)>>,
    record: Option<PathBuf>,
    replay: Option<PathBuf>,
}

impl Options {
    fn into_host(self) -> HostOptions {
        let mut options = if self.isolated { HostOptions::isolated() } else { HostOptions::default() };
        if self.in_memory {
            options.journal = JournalChoice::Memory;
            options.stores = StoresChoice::Memory;
        }
        if let Some(file) = self.journal {
            options.journal = JournalChoice::File(file);
        }
        if let Some(environment) = self.environment {
            options.environment = Environment::of(environment);
        }
        if let Some(file) = self.record {
            options.model_source = ModelSource::Record(file);
        }
        if let Some(file) = self.replay {
            options.model_source = ModelSource::Replay(file);
        }
        options.plugins = self.plugins;
        options.trust_named = self.trust;
        options
    }
}

/// A function of the program: its name, what models are told, the schema of its parameters as JSON, and what calls it.
type Handed = (String, String, String, Py<PyAny>);

/// Loads and runs agents.
#[pyclass(frozen, module = "hotcell._hotcell")]
pub(crate) struct NativeHost(Host);

#[pymethods]
impl NativeHost {
    #[new]
    fn new(py: Python<'_>, options: Options) -> PyResult<Self> {
        // Whatever goes on elsewhere needs threads.
        threads(py)?;
        let made = py.detach(|| {
            let mut first = FIRST.lock().unwrap_or_else(PoisonError::into_inner);
            let options = options.into_host();
            let host = match &*first {
                Some(host) => host.beside(options)?,
                None => Host::new(options)?,
            };
            first.get_or_insert_with(|| host.clone());
            Ok::<_, HostError>(host)
        });
        made.map(NativeHost).map_err(|error| of_host(py, &error))
    }

    /// The same host, which hands these functions, and JSON schemas of these types, to the agents that it loads.
    fn offering(&self, functions: Vec<Handed>, types: Vec<(String, String)>) -> PyResult<Self> {
        let mut offered = Offered::default();
        for (name, description, parameters, callable) in functions {
            let parameters = schema(&name, &parameters)?;
            let spec = ToolSpec { name, description, parameters };
            let added = offered.function(Arc::new(Function::new(spec, callable)));
            offered = added.map_err(|error| unusable(error.to_string()))?;
        }
        for (path, text) in types {
            let added = offered.type_schema(path.as_str(), &schema(&path, &text)?);
            offered = added.map_err(|error| unusable(error.to_string()))?;
        }
        Ok(NativeHost(self.0.offering(offered)))
    }

    /// Loads an agent.
    #[pyo3(signature = (path, name=None))]
    fn load(&self, py: Python<'_>, path: PathBuf, name: Option<String>) -> PyResult<NativeAgent> {
        let (host, cancel) = (self.0.clone(), CancellationToken::new());
        let loaded = wait(py, &cancel, async move { load(&host, &path, name.as_deref()).await })?;
        let agent = loaded.map_err(|failure| not_loaded(py, &failure))?;
        Ok(NativeAgent { host: self.0.clone(), agent: Arc::new(agent) })
    }

    /// Goes on with a run on this thread until it rests; with one that failed if it is to be tried again.
    #[pyo3(signature = (run, ask=None, again=false))]
    fn resume(&self, py: Python<'_>, run: &str, ask: Option<Py<PyAny>>, again: bool) -> PyResult<Report> {
        let cancel = CancellationToken::new();
        let session = session(ask, Arc::new(Nobody), &cancel);
        match wait(py, &cancel, go_on(&self.0, run, session, again))? {
            Ok(report) => Ok(Report(Arc::new(report))),
            Err(error) => Err(of_host(py, &error)),
        }
    }

    /// Begins to go on with a run.
    #[pyo3(signature = (run, ask=None, event_loop=None, is_read=false, again=false))]
    fn begin_resume(
        &self,
        py: Python<'_>,
        run: String,
        ask: Option<Py<PyAny>>,
        event_loop: Option<Py<PyAny>>,
        is_read: bool,
        again: bool,
    ) -> PyResult<Work> {
        let (feed, cancel) = (Feed::new(is_read, event_loop), CancellationToken::new());
        let session = session(ask, feed.clone(), &cancel);
        let host = self.0.clone();
        Work::begin(py, feed, cancel, async move { go_on(&host, &run, session, again).await })
    }

    /// Sends an answer to a run; the question as JSON.
    #[pyo3(signature = (run, text, question=None))]
    fn answer(&self, py: Python<'_>, run: &str, text: &str, question: Option<&str>) -> PyResult<String> {
        let cancel = CancellationToken::new();
        let answered = wait(py, &cancel, self.0.answer(run, question, text))?;
        answered.map(|open| json!(open.question).to_string()).map_err(|error| of_host(py, &error))
    }

    /// The questions of a run that wait for answers, as JSON.
    fn questions(&self, py: Python<'_>, run: &str) -> PyResult<String> {
        let find = async {
            let record = self.0.journal().find(run).await?;
            let entries = self.0.journal().history(&record.id).await?.whole()?;
            Ok::<_, HostError>(open_questions(&entries))
        };
        let found = wait(py, &CancellationToken::new(), find)?.map_err(|error| of_host(py, &error))?;
        let questions: Vec<Value> = found.into_iter().map(|open| json!(open.question)).collect();
        Ok(Value::from(questions).to_string())
    }

    /// Has a run rest until somebody resumes it. Gives how it stands.
    fn pause(&self, py: Python<'_>, run: &str) -> PyResult<&'static str> {
        let paused = wait(py, &CancellationToken::new(), self.0.pause(run))?;
        paused.map(|record| record.status.as_str()).map_err(|error| of_host(py, &error))
    }

    /// Ends a run for good.
    fn cancel(&self, py: Python<'_>, run: &str) -> PyResult<()> {
        let cancelled = wait(py, &CancellationToken::new(), self.0.cancel(run))?;
        cancelled.map(drop).map_err(|error| of_host(py, &error))
    }

    /// Runs in the journal, the newest first, as JSON.
    #[pyo3(signature = (status, thread, limit))]
    fn runs(&self, py: Python<'_>, status: Option<&str>, thread: Option<String>, limit: usize) -> PyResult<String> {
        let statuses: Vec<RunStatus> = match status {
            Some(word) => vec![named_status(py, word)?],
            None => Vec::new(),
        };
        let query = RunQuery { statuses, thread, limit, ..RunQuery::default() };
        let page = wait(py, &CancellationToken::new(), self.0.journal().list(&query))?;
        let page = page.map_err(|error| of_host(py, &error.into()))?;
        let runs: Vec<Value> = page
            .runs
            .into_iter()
            .map(|run| {
                json!({
                    "id": run.id.as_str(),
                    "graph": run.graph,
                    "thread": run.thread,
                    "status": run.status.as_str(),
                    "created": seconds(run.created),
                    "updated": seconds(run.updated),
                    "outcome": run.outcome,
                })
            })
            .collect();
        Ok(Value::from(runs).to_string())
    }
}

fn named_status(py: Python<'_>, word: &str) -> PyResult<RunStatus> {
    RunStatus::ALL.into_iter().find(|status| status.as_str() == word).ok_or_else(|| {
        let all: Vec<&str> = RunStatus::ALL.iter().map(|status| status.as_str()).collect();
        refused(py, &format!("`{word}` is not a status of a run; use one of `{}`", all.join("`, `")))
    })
}

/// Seconds since the beginning of 1970.
fn seconds(time: std::time::SystemTime) -> f64 {
    time.duration_since(std::time::UNIX_EPOCH).map(|since| since.as_secs_f64()).unwrap_or_default()
}

fn schema(name: &str, text: &str) -> PyResult<Value> {
    serde_json::from_str(text).map_err(|error| unusable(format!("the schema of `{name}` is not JSON: {error}")))
}

async fn load(host: &Host, path: &Path, name: Option<&str>) -> Result<Agent, LoadFailure> {
    match name {
        Some(name) => host.load_any_async(path, Some(name)).await,
        None => host.load_async(path).await,
    }
}

async fn go_on(host: &Host, run: &str, session: Session, again: bool) -> Result<RunReport, HostError> {
    match again {
        true => host.retry_with(run, &RevisionChoice::Own, session).await,
        false => host.resume(run, session).await,
    }
}
