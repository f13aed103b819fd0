//! Servers whose tools are used.
//!
//! A [`Server`] hides how it is reached and that its connection may have to be made again. It calls what it is told
//! to call; whether that is allowed is decided elsewhere.

mod ending;
mod event_stream;
mod events;
mod handler;
mod http;
mod lines;
mod link;
mod message;
mod pace;
mod paced;
mod process;
mod reply;
mod sse;
mod tools;
mod watched;

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio_util::sync::{CancellationToken, DropGuard};

pub use self::event_stream::{EventReader, StreamEvent, TooLarge};
pub use self::events::{ClientEvents, Progress, Unattended};
pub use self::http::{AddressCheck, HttpClient, HttpReply, http_client, http_client_within};
pub use self::reply::ToolReply;
pub use self::tools::ToolInfo;

use self::link::Link;
use crate::error::McpError;
use crate::exchange::LogLevel;
use crate::settings::ServerSettings;

/// The shortest time between two questions for the tools, however often a server says that they changed.
const LIST_EVERY: Duration = Duration::from_millis(250);

/// A server whose tools can be called. Dropping it ends the connection; a process is killed with its whole group.
///
/// When a connection has ended, the call that was under way fails, because nobody knows whether the tool has acted.
/// The next call connects again, once: if that fails, or if the new connection ends without having answered a call,
/// all further calls fail at once with the same error, until [`Server::reconnect`] is called.
pub struct Server {
    shared: Arc<Shared>,
    /// Ends what goes on in the background
    _wanted: DropGuard,
}

struct Shared {
    settings: ServerSettings,
    client: Option<reqwest::Client>,
    hooks: Arc<dyn ClientEvents>,
    tools: RwLock<Arc<[ToolInfo]>>,
    state: Mutex<State>,
    /// Cancelled when nobody holds the server any more
    unwanted: CancellationToken,
}

enum State {
    /// Connected, as far as is known. The first connection is worth another even if it never answered a call.
    Open { link: Arc<Link>, first: bool },
    /// Not connected, and not to be connected by a call
    Gone(McpError),
}

impl Server {
    /// Connects to a server and asks for its tools. HTTP goes by the client that [`http_client`] makes.
    ///
    /// # Errors
    /// The server cannot be started or reached, does not answer as the protocol says, is not ready in time, or its
    /// tools are refused.
    pub async fn connect(settings: ServerSettings, hooks: Arc<dyn ClientEvents>) -> Result<Self, McpError> {
        Server::open(settings, None, hooks).await
    }

    /// Connects to a server over HTTP by a client of the caller, who then answers for certificates, for which
    /// addresses may be reached, and for not following redirects.
    ///
    /// # Errors
    /// As [`Server::connect`].
    pub async fn connect_through(
        client: reqwest::Client,
        settings: ServerSettings,
        hooks: Arc<dyn ClientEvents>,
    ) -> Result<Self, McpError> {
        Server::open(settings, Some(client), hooks).await
    }

    async fn open(
        settings: ServerSettings,
        client: Option<reqwest::Client>,
        hooks: Arc<dyn ClientEvents>,
    ) -> Result<Self, McpError> {
        let (link, tools) = Link::open(&settings, client.clone(), hooks.clone()).await?;
        let link = Arc::new(link);
        let state = Mutex::new(State::Open { link: link.clone(), first: true });
        let (tools, unwanted) = (RwLock::new(tools), CancellationToken::new());
        let shared = Arc::new(Shared { settings, client, hooks, tools, state, unwanted });
        shared.keep_listed(&link);
        let wanted = shared.unwanted.clone().drop_guard();
        Ok(Server { shared, _wanted: wanted })
    }

    /// The server's name.
    pub fn name(&self) -> &str {
        &self.shared.settings.name
    }

    /// Its tools, as they were last listed.
    pub fn tools(&self) -> Arc<[ToolInfo]> {
        self.shared.tools.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Calls a tool. `timeout` holds for everything, a new connection included, and nothing extends it. When it is
    /// over or `cancel` is cancelled, or the returned future is dropped, the server is told that the answer is not
    /// wanted any more.
    ///
    /// # Errors
    /// There is no such tool, no reply in time, no connection, or a reply that cannot be used. A tool that merely
    /// failed gives a reply that says so.
    pub async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        timeout: Duration,
        cancel: &CancellationToken,
    ) -> Result<ToolReply, McpError> {
        let names = || (self.name().to_owned(), tool.to_owned());
        let calling = async {
            let link = self.shared.link().await?;
            if !self.tools().iter().any(|known| known.name == tool) {
                let (server, tool) = names();
                return Err(McpError::NoTool { server, tool });
            }
            link.call(tool, arguments).await
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => {
                let (server, tool) = names();
                Err(McpError::Cancelled { server, tool })
            }
            called = tokio::time::timeout(timeout, calling) => called.unwrap_or_else(|_| {
                let (server, tool) = names();
                Err(McpError::CallTimedOut { server, tool, after: timeout })
            }),
        }
    }

    /// Connects anew if the last connection has ended, however often that has happened.
    ///
    /// # Errors
    /// As [`Server::connect`].
    pub async fn connect_again(&self) -> Result<(), McpError> {
        let mut state = self.shared.state.lock().await;
        match &*state {
            State::Open { link, .. } if !link.ending.has_ended() => Ok(()),
            State::Open { .. } | State::Gone(_) => self.shared.open_link(&mut state, true).await.map(drop),
        }
    }

    /// Connects anew, whatever happened before. A connection that is there is closed first.
    ///
    /// # Errors
    /// As [`Server::connect`].
    pub async fn reconnect(&self) -> Result<(), McpError> {
        let mut state = self.shared.state.lock().await;
        if let State::Open { link, .. } = &*state {
            link.close().await;
        }
        self.shared.open_link(&mut state, true).await.map(drop)
    }

    /// Ends the connection properly: a process gets a moment to end by itself. Calls fail from now on.
    pub async fn close(self) {
        let mut state = self.shared.state.lock().await;
        if let State::Open { link, .. } = &*state {
            link.close().await;
        }
        *state = State::Gone(self.shared.closed());
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("settings", &self.shared.settings).finish_non_exhaustive()
    }
}

impl Shared {
    fn closed(&self) -> McpError {
        let server = self.settings.name.clone();
        McpError::Ended { server, reason: "it was closed".to_owned(), stderr: String::new() }
    }

    /// The connection; a new one if the last has ended and one more attempt is allowed.
    async fn link(self: &Arc<Self>) -> Result<Arc<Link>, McpError> {
        {
            let state = self.state.lock().await;
            match &*state {
                State::Open { link, .. } if !link.ending.has_ended() => return Ok(link.clone()),
                State::Open { .. } => {}
                State::Gone(error) => return Err(error.clone()),
            }
        }
        // In a task of its own, so that a call with little time does not stop a server from starting.
        let shared = self.clone();
        let attempt = async move { shared.link_again().await };
        let attempt = tokio::spawn(self.unwanted.clone().run_until_cancelled_owned(attempt));
        attempt.await.ok().flatten().unwrap_or_else(|| Err(self.closed()))
    }

    async fn link_again(self: &Arc<Self>) -> Result<Arc<Link>, McpError> {
        let mut state = self.state.lock().await;
        let (link, first) = match &*state {
            State::Open { link, first } => (link.clone(), *first),
            State::Gone(error) => return Err(error.clone()),
        };
        if !link.ending.has_ended() {
            return Ok(link);
        }
        if !first && !link.was_useful() {
            let error = link.ending.report(&self.settings.name).await;
            *state = State::Gone(error.clone());
            return Err(error);
        }
        tracing::info!(server = self.settings.name, "connecting again");
        self.open_link(&mut state, false).await
    }

    async fn open_link(self: &Arc<Self>, state: &mut State, first: bool) -> Result<Arc<Link>, McpError> {
        match Link::open(&self.settings, self.client.clone(), self.hooks.clone()).await {
            Ok((link, tools)) => {
                let link = Arc::new(link);
                self.keep_listed(&link);
                *state = State::Open { link: link.clone(), first };
                self.replace_tools(tools);
                Ok(link)
            }
            Err(error) => {
                *state = State::Gone(error.clone());
                Err(error)
            }
        }
    }

    fn keep_listed(self: &Arc<Self>, link: &Arc<Link>) {
        let keeping = keep_listed(Arc::downgrade(self), Arc::downgrade(link));
        tokio::spawn(self.unwanted.clone().run_until_cancelled_owned(keeping));
    }

    fn replace_tools(&self, tools: Arc<[ToolInfo]>) {
        let mut known = self.tools.write().unwrap_or_else(PoisonError::into_inner);
        if *known == tools {
            return;
        }
        known.clone_from(&tools);
        drop(known);
        self.hooks.tools_changed(&self.settings.name, &tools);
    }
}

/// Asks for the tools again when the server says that they changed, for as long as the connection lasts. A list that
/// is refused changes nothing but the log: the tools that are known stay.
async fn keep_listed(shared: Weak<Shared>, link: Weak<Link>) {
    let Some((activity, ending)) = link.upgrade().map(|link| (link.activity.clone(), link.ending.clone())) else {
        return;
    };
    loop {
        tokio::select! {
            () = activity.changed.notified() => {}
            () = ending.ended() => return,
        }
        let (Some(shared), Some(link)) = (shared.upgrade(), link.upgrade()) else { return };
        let settings = &shared.settings;
        match tokio::time::timeout(settings.limits.connect, link.tools()).await {
            Ok(Ok(tools)) => shared.replace_tools(tools),
            Ok(Err(error)) => shared.hooks.log(&settings.name, LogLevel::Error, &error.to_string()),
            Err(_) => {
                let text = format!("its changed tools were not listed within {:?}", settings.limits.connect);
                shared.hooks.log(&settings.name, LogLevel::Error, &text);
            }
        }
        drop((shared, link));
        tokio::time::sleep(LIST_EVERY).await;
    }
}
