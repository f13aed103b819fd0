//! The real server of a mesh, in this process: it is started, stopped and killed, and started again on the same files.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hotcell_runtime::{CancellationToken, Host, HostOptions, JournalChoice};
use hotcell_serve::{Keys, Role, ServeSettings, Server};
use indexmap::IndexMap;
use rusqlite::Connection;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinHandle;

use super::case::Auth;
use super::client::{Post, send};
use crate::loki::with_causes;

/// How long the server may take to begin, and to stop.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the server is started with.
#[derive(Clone)]
pub(super) struct Setup {
    /// Whose engine and compiled cells are used
    pub(super) stage: Host,
    pub(super) options: HostOptions,
    pub(super) settings: ServeSettings,
}

/// A server that runs, with a runtime of its own, so that nothing of it is left when it is killed.
pub(super) struct Running {
    /// None when it has ended
    runtime: Option<Runtime>,
    shutdown: CancellationToken,
    serving: Option<JoinHandle<Result<(), String>>>,
    pub(super) port: u16,
}

/// What the mesh said.
pub(super) type Said = Arc<Mutex<Vec<Value>>>;

impl Running {
    /// Starts the server, at the same port as before if there was one.
    pub(super) async fn start(setup: &Setup, port: Option<u16>, said: &Said) -> Result<Self, String> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let (stage, options, settings) = (setup.stage.clone(), setup.options.clone(), setup.settings.clone());
        let shutdown = CancellationToken::new();
        let (stop, said) = (shutdown.clone(), said.clone());
        let started = runtime.spawn(async move {
            let host = stage.beside(options).map_err(|error| with_causes(&error))?;
            let server = Server::new(host, settings).await.map_err(|error| with_causes(&error))?;
            if let Some((file, failure)) = server.not_served().first() {
                return Err(format!("`{}` is not served: {failure}", file.display()));
            }
            let listener = TcpListener::bind(("127.0.0.1", port.unwrap_or(0))).await;
            let listener = listener.map_err(|error| format!("port {port:?}: {error}"))?;
            let port = listener.local_addr().map_err(|error| error.to_string())?.port();
            note_events(&server, said);
            let serving = async move { server.serve(listener, stop).await.map_err(|error| with_causes(&error)) };
            Ok((port, tokio::spawn(serving)))
        });
        let started = started.await.map_err(|error| error.to_string()).and_then(|started| started);
        let (port, serving) = match started {
            Ok(started) => started,
            Err(error) => {
                end(runtime).await;
                return Err(error);
            }
        };
        let running = Running { runtime: Some(runtime), shutdown, serving: Some(serving), port };
        running.is_ready().await?;
        Ok(running)
    }

    async fn is_ready(&self) -> Result<(), String> {
        let ready = Post { method: "GET".to_owned(), path: "/ready".to_owned(), headers: Vec::new(), body: Vec::new() };
        let begun = Instant::now();
        loop {
            let answered = send(self.port, &ready).await;
            if answered.as_ref().is_ok_and(|answered| answered.status == 200) {
                return Ok(());
            }
            if begun.elapsed() > PATIENCE {
                return Err(format!("the server is not ready: {answered:?}"));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Tells it to stop, and waits until it has.
    pub(super) async fn stop(mut self) -> Result<(), String> {
        self.shutdown.cancel();
        let Some(serving) = self.serving.take() else { return Ok(()) };
        let stopped = tokio::time::timeout(PATIENCE, serving).await;
        self.kill().await;
        match stopped {
            Ok(Ok(stopped)) => stopped,
            Ok(Err(panicked)) => Err(panicked.to_string()),
            Err(_) => Err(format!("the server did not stop within {} s", PATIENCE.as_secs())),
        }
    }

    /// Ends all that it does where it is.
    pub(super) async fn kill(mut self) {
        if let Some(runtime) = self.runtime.take() {
            end(runtime).await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A case that was given up has nobody who waits for it.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A server that goes on after another one was killed finds what there was at that moment, and nothing that the other one writes while
/// its tasks are taken down.
pub(super) fn as_of_now(setup: &mut Setup, place: &Path) -> Result<(), String> {
    let copy = |from: &Path, name: &str| {
        let to = place.join(name);
        let copied = Connection::open(from).and_then(|open| open.execute("VACUUM INTO ?1", [to.display().to_string()]));
        copied.map(|_| to).map_err(|error| format!("{}: {error}", from.display()))
    };
    // Before the journal: what is in the server's file is about what the journal has.
    if let Some(file) = &setup.settings.file {
        setup.settings.file = Some(copy(file, "serve.db")?);
    }
    if let JournalChoice::File(file) = &setup.options.journal {
        setup.options.journal = JournalChoice::File(copy(file, "runs.db")?);
    }
    Ok(())
}

/// Ends everything that runs there. A runtime may not be waited for among tasks.
async fn end(runtime: Runtime) {
    let _ = tokio::task::spawn_blocking(move || runtime.shutdown_timeout(PATIENCE)).await;
}

/// Keeps what the mesh says, as long as the server runs.
fn note_events(server: &Server, said: Said) {
    let mut events = server.mesh_events();
    tokio::spawn(async move {
        loop {
            match events.recv().await {
                Ok(event) => said.lock().unwrap_or_else(PoisonError::into_inner).push(event),
                Err(RecvError::Lagged(left_out)) => {
                    let gap = serde_json::json!({ "type": "(left out)", "count": left_out });
                    said.lock().unwrap_or_else(PoisonError::into_inner).push(gap);
                }
                Err(RecvError::Closed) => return,
            }
        }
    });
}

/// Makes the keys of a case: what the case calls them, and what they are.
pub(super) fn make_keys(auth: Option<&Auth>, file: &Path) -> Result<IndexMap<String, String>, String> {
    let Some(auth) = auth else { return Ok(IndexMap::new()) };
    let keys = Keys::open(file).map_err(|error| with_causes(&error))?;
    let users = auth.keys.iter().map(|key| (key, &[Role::Run, Role::Answer][..]));
    let administrators = auth.admin_keys.iter().map(|key| (key, &Role::ALL[..]));
    let make = |(name, roles): (&String, &[Role])| {
        let made = keys.add(name, None, roles, None).map_err(|error| with_causes(&error))?;
        Ok((name.clone(), made.reveal()))
    };
    users.chain(administrators).map(make).collect()
}

/// What the mesh said so far.
pub(super) fn said(said: &Said) -> Vec<Value> {
    said.lock().unwrap_or_else(PoisonError::into_inner).clone()
}
