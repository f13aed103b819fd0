//! The connections of a host to MCP servers, and the threads that they live on.

use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use hotcell_cells::Grants;
use hotcell_cells::policy::decide_address;
use hotcell_mcp::{FailedExchange, McpError, Server, ServerSettings, Transport};
use thiserror::Error;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinError;

use crate::server_questions::Asking;

/// Why work is not done on the threads of MCP servers.
#[derive(Clone, Debug, Error)]
pub(crate) enum ThreadError {
    /// There are no such threads
    #[error("the thread for MCP servers cannot be started: {0}")]
    Start(#[source] Arc<io::Error>),
    /// The work panicked
    #[error("it ended abnormally: {0}")]
    Panicked(#[source] Arc<JoinError>),
    /// The work panicked, and nobody says why
    #[error("it ended abnormally")]
    Ended,
}

/// Why a server cannot be connected to.
#[derive(Debug, Error)]
pub(super) enum ConnectError {
    #[error(transparent)]
    Thread(#[from] ThreadError),
    #[error(transparent)]
    Server(#[from] McpError),
}

impl ConnectError {
    /// How the exchange with the server failed, if that may be different another time.
    pub(super) fn failed_exchange(&self) -> Option<FailedExchange> {
        match self {
            ConnectError::Server(error) => error.failed_exchange(),
            ConnectError::Thread(_) => None,
        }
    }
}

/// The place of a server with these settings, which is used under these grants.
type OpenServer = (ServerSettings, Arc<Grants>, Slot);

/// The servers that a host is connected to. They live on threads of their own, because agents are loaded where nothing
/// can be awaited.
#[derive(Default)]
pub(crate) struct Connections {
    open: Mutex<Vec<OpenServer>>,
    runtime: OnceLock<Result<Runtime, ThreadError>>,
}

/// The place of one server. Whoever connects to it holds it, so that others who want it wait for that, and nobody else.
type Slot = Arc<Mutex<Option<Arc<Connected>>>>;

pub(super) struct Connected {
    pub(super) server: Server,
    pub(super) asking: Arc<Asking>,
}

/// How many servers are kept that no agent uses any more, for the next one that does. The oldest leave first.
const MOST_UNUSED: usize = 32;

/// Whether no agent has a connection to a server, and nobody is about to connect.
fn is_unused((.., slot): &OpenServer) -> bool {
    let is_held =
        |connection: &Option<Arc<Connected>>| connection.as_ref().is_some_and(|one| Arc::strong_count(one) > 1);
    Arc::strong_count(slot) == 1 && slot.try_lock().is_ok_and(|connection| !is_held(&connection))
}

impl Connections {
    pub(super) fn runtime(&self) -> Result<&Runtime, ThreadError> {
        let make = || {
            let built = Builder::new_multi_thread().worker_threads(1).thread_name("hotcell-mcp").enable_all().build();
            built.map_err(|error| ThreadError::Start(Arc::new(error)))
        };
        self.runtime.get_or_init(make).as_ref().map_err(Clone::clone)
    }

    /// Does work that has to be awaited, where nothing can be awaited.
    pub(crate) fn wait_for<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, ThreadError> {
        let (sender, receiver) = std::sync::mpsc::channel();
        self.runtime()?.spawn(async move {
            // Whoever waits for it may be gone; then what came of it is dropped.
            let _ = sender.send(work.await);
        });
        receiver.recv().map_err(|_| ThreadError::Ended)
    }

    /// Does work that blocks on a thread of its own.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ThreadError> {
        self.runtime()?.spawn_blocking(work).await.map_err(|error| ThreadError::Panicked(Arc::new(error)))
    }

    /// The server with these settings and grants; one that could not be reached is tried again the next time.
    pub(super) fn connect(
        &self,
        settings: &ServerSettings,
        grants: &Arc<Grants>,
    ) -> Result<Arc<Connected>, ConnectError> {
        let slot = self.slot(settings, grants);
        let mut connection = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(connected) = &*connection {
            return Ok(connected.clone());
        }
        let asking = Arc::new(Asking::default());
        let (wanted, events) = (settings.clone(), asking.clone());
        let client = client(settings, grants)?;
        let connected = self.wait_for(async move {
            match client {
                Some(client) => Server::connect_through(client, wanted, events).await,
                None => Server::connect(wanted, events).await,
            }
        })??;
        let connected = Arc::new(Connected { server: connected, asking });
        *connection = Some(connected.clone());
        Ok(connected)
    }

    fn slot(&self, settings: &ServerSettings, grants: &Arc<Grants>) -> Slot {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((.., slot)) = open.iter().find(|(known, with, _)| known == settings && with == grants) {
            return slot.clone();
        }
        let slot = Slot::default();
        open.push((settings.clone(), grants.clone(), slot.clone()));
        let mut too_many = open.iter().filter(|server| is_unused(server)).count().saturating_sub(MOST_UNUSED);
        let mut left = Vec::new();
        open.retain(|server| {
            let leaves = too_many > 0 && is_unused(server);
            if leaves {
                too_many -= 1;
                left.push(server.2.clone());
            }
            !leaves
        });
        // What ends with a connection holds up nobody who wants another one.
        drop(open);
        drop(left);
        slot
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        // Servers first: their processes are ended with them.
        self.open.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
        if let Some(Ok(runtime)) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The way to a service: to addresses that the policy allows. A program has none.
fn client(settings: &ServerSettings, grants: &Arc<Grants>) -> Result<Option<hotcell_mcp::HttpClient>, McpError> {
    let (Transport::StreamableHttp { url, .. } | Transport::Sse { url, .. }) = &settings.transport else {
        return Ok(None);
    };
    let (url, grants) = (url.clone(), grants.clone());
    let allowed = move |address| {
        let decision = decide_address(&grants, &url, "POST", address);
        decision.is_some_and(|decision| decision.is_allowed())
    };
    hotcell_mcp::http_client_within(settings, Arc::new(allowed)).map(Some)
}

#[cfg(test)]
mod tests {
    use hotcell_mcp::Limits;

    use super::*;

    #[test]
    fn few_servers_are_kept_that_nobody_uses() {
        let (connections, grants) = (Connections::default(), Arc::new(Grants::default()));
        let slot = |number: usize| {
            let (args, env) = (vec![number.to_string()], Default::default());
            let transport = Transport::Stdio { command: "server".to_owned(), args, env, cwd: None };
            connections.slot(&ServerSettings { name: "s".to_owned(), transport, limits: Limits::default() }, &grants)
        };
        let used = slot(0);
        (1..10 * MOST_UNUSED).for_each(|number| drop(slot(number)));
        // The one that is used, those that are kept, and the last one.
        assert_eq!(connections.open.lock().expect("unpoisoned").len(), MOST_UNUSED + 2);
        assert!(Arc::ptr_eq(&used, &slot(0)), "it was not forgotten");
        let last = 10 * MOST_UNUSED - 1;
        assert!(Arc::ptr_eq(&slot(last), &slot(last)));
    }
}
