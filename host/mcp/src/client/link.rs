//! One connection to a server, from its opening to its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientRequest, ProtocolVersion, ServerResult,
};
use rmcp::service::{
    ClientInitializeError, Peer, PeerRequestOptions, RequestHandle, RunningService, ServiceError, ServiceExt,
};
use rmcp::transport::Transport;
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio_util::sync::DropGuard;

use super::ending::Ending;
use super::events::ClientEvents;
use super::handler::{Activity, Handler};
use super::lines::Lines;
use super::reply::ToolReply;
use super::sse::Sse;
use super::tools::{ListError, ToolInfo, list};
use super::watched::Watched;
use super::{http, process};
use crate::error::McpError;
use crate::settings::{self, ServerSettings};
use crate::text::shown;

/// How long a closing connection may take to do it properly.
const CLOSE_WITHIN: Duration = Duration::from_secs(4);
/// How long a server may take to be told that an answer is not wanted any more.
const CANCEL_WITHIN: Duration = Duration::from_secs(5);

/// A connection.
pub(crate) struct Link {
    server: Arc<str>,
    peer: Peer<RoleClient>,
    running: Mutex<RunningService<RoleClient, Handler>>,
    pub(crate) ending: Arc<Ending>,
    pub(crate) activity: Arc<Activity>,
    answered: AtomicBool,
    message_bytes: usize,
    /// Ends the process, if there is one, with this connection
    _leash: Option<DropGuard>,
}

impl Link {
    /// Connects, and asks for the tools.
    pub(crate) async fn open(
        settings: &ServerSettings,
        client: Option<reqwest::Client>,
        hooks: Arc<dyn ClientEvents>,
    ) -> Result<(Self, Arc<[ToolInfo]>), McpError> {
        let ending = Arc::new(match settings.transport {
            settings::Transport::Stdio { .. } => Ending::of_process(),
            _ => Ending::default(),
        });
        let opening = async {
            let link = Link::handshake(settings, client, hooks, ending.clone()).await?;
            let tools = link.tools().await?;
            Ok((link, tools))
        };
        match tokio::time::timeout(settings.limits.connect, opening).await {
            Ok(opened) => opened,
            Err(_) => Err(McpError::ConnectTimedOut {
                server: settings.name.clone(),
                after: settings.limits.connect,
                stderr: ending.stderr(),
            }),
        }
    }

    async fn handshake(
        settings: &ServerSettings,
        client: Option<reqwest::Client>,
        hooks: Arc<dyn ClientEvents>,
        ending: Arc<Ending>,
    ) -> Result<Self, McpError> {
        let server: Arc<str> = settings.name.as_str().into();
        let limits = settings.limits;
        let client = || match client {
            Some(client) => Ok(client),
            None => http::http_client(settings),
        };
        let wrong = |reason| McpError::Settings { server: settings.name.clone(), reason };
        let activity = Arc::new(Activity::new(server.clone(), hooks));
        let handler = Handler { activity: activity.clone(), ending: ending.clone() };
        let mut leash = None;
        let running = match &settings.transport {
            settings::Transport::Stdio { command, args, env, cwd } => {
                let env = env.iter().map(|(name, value)| (name.clone(), value.clone()));
                let started = process::start(&server, command, args, env, cwd.as_deref(), &ending)?;
                leash = Some(started.leash);
                let lines =
                    Lines::new(server.clone(), started.output, started.input, limits.message_bytes, ending.clone());
                serve(handler, lines, None, &ending).await?
            }
            settings::Transport::StreamableHttp { url, headers, .. } => {
                let transport = http::streamable(client()?, url, headers, &limits, ending.clone()).map_err(wrong)?;
                serve(handler, transport, Some(limits.message_bytes), &ending).await?
            }
            settings::Transport::Sse { url, headers, .. } => {
                let transport =
                    Sse::open(&server, client()?, url, headers, limits.message_bytes, ending.clone()).await?;
                serve(handler, transport, None, &ending).await?
            }
        };
        Ok(Link {
            server,
            peer: running.peer().clone(),
            running: Mutex::new(running),
            ending,
            activity,
            answered: AtomicBool::new(false),
            message_bytes: limits.message_bytes,
            _leash: leash,
        })
    }

    /// Whether any call on this connection was answered.
    pub(crate) fn was_useful(&self) -> bool {
        self.answered.load(Ordering::Relaxed)
    }

    /// Asks for all tools.
    pub(crate) async fn tools(&self) -> Result<Arc<[ToolInfo]>, McpError> {
        let listed = tokio::select! {
            biased;
            listed = list(&self.peer, &self.server, self.message_bytes) => listed,
            () = self.ending.ended() => return Err(self.ending.report(&self.server).await),
        };
        match listed {
            Ok(tools) => Ok(tools),
            Err(ListError::Refused(error)) => Err(error),
            Err(ListError::Service(ServiceError::McpError(error))) => Err(McpError::ToolsRefused {
                server: self.server.to_string(),
                reason: format!("it answered with an error: {}", shown(&error.message)),
            }),
            Err(ListError::Service(error)) => Err(self.lost(error).await),
        }
    }

    /// Calls a tool and waits for the answer, however long it takes. Whoever stops waiting tells the server so.
    pub(crate) async fn call(&self, tool: &str, arguments: Map<String, Value>) -> Result<ToolReply, McpError> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sent = self.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
        let mut waiting = match sent {
            Ok(handle) => Waiting::new(handle, &self.activity, tool),
            Err(error) => return Err(self.lost(error).await),
        };
        let answer = tokio::select! {
            biased;
            answer = waiting.answer() => answer,
            () = self.ending.ended() => Err(ServiceError::TransportClosed),
        };
        waiting.finish();
        let server = || self.server.to_string();
        let unusable =
            |reason: &str| McpError::Unusable { server: server(), tool: tool.to_owned(), reason: reason.to_owned() };
        let answer = match answer {
            Ok(answer) => answer,
            Err(ServiceError::McpError(error)) => {
                self.answered.store(true, Ordering::Relaxed);
                let message = shown(&error.message);
                return Err(McpError::CallRefused {
                    server: server(),
                    tool: tool.to_owned(),
                    code: error.code.0,
                    message,
                });
            }
            Err(error) => return Err(self.lost(error).await),
        };
        self.answered.store(true, Ordering::Relaxed);
        match answer {
            ServerResult::CallToolResult(result) => Ok(ToolReply::from(result)),
            ServerResult::InputRequiredResult(_) => {
                Err(unusable("it wants input in the way of a later revision of the protocol"))
            }
            ServerResult::CreateTaskResult(_) => Err(unusable("it is a task, which nobody asked for")),
            _ => Err(unusable("it is not the result of a tool")),
        }
    }

    /// What became of the connection, or of one exchange on it.
    async fn lost(&self, error: ServiceError) -> McpError {
        if self.ending.has_ended() {
            return self.ending.report(&self.server).await;
        }
        match error {
            ServiceError::TransportSend(error) => http::failure(&self.server, error.error.as_ref()),
            other => {
                let reason = match other {
                    ServiceError::TransportClosed => "the connection was lost before the reply was complete".to_owned(),
                    other => shown(&other.to_string()),
                };
                McpError::Unreachable { server: self.server.to_string(), reason, status: None }
            }
        }
    }

    /// Ends the connection: closes it, and gives a process a moment to end by itself.
    pub(crate) async fn close(&self) {
        let mut running = self.running.lock().await;
        if let Err(error) = running.close_with_timeout(CLOSE_WITHIN).await {
            tracing::debug!(server = %self.server, %error, "closing failed");
        }
        self.ending.end();
        // Only to wait for the process: how it ended is not an error here.
        let _ = self.ending.report(&self.server).await;
    }
}

async fn serve<T: Transport<RoleClient> + 'static>(
    handler: Handler,
    transport: T,
    limit: Option<usize>,
    ending: &Arc<Ending>,
) -> Result<RunningService<RoleClient, Handler>, McpError> {
    let server = handler.activity.server.clone();
    let watched = Watched::new(transport, limit, handler.activity.clone(), ending.clone());
    let error = match handler.serve(watched).await {
        Ok(running) => return understood(running, &server),
        Err(error) => error,
    };
    Err(match error {
        ClientInitializeError::TransportError { error, .. } if !ending.has_ended() => {
            http::failure(&server, error.error.as_ref())
        }
        ClientInitializeError::TransportError { .. } | ClientInitializeError::ConnectionClosed(_) => {
            ending.report(&server).await
        }
        ClientInitializeError::JsonRpcError(error) => McpError::Handshake {
            server: server.to_string(),
            reason: format!("{} (code {})", shown(&error.message), error.code.0),
        },
        other => McpError::Handshake { server: server.to_string(), reason: shown(&other.to_string()) },
    })
}

/// The connection, if the server chose a revision of the protocol that is spoken here.
fn understood(
    running: RunningService<RoleClient, Handler>,
    server: &str,
) -> Result<RunningService<RoleClient, Handler>, McpError> {
    let spoken = ProtocolVersion::known_up_to(&ProtocolVersion::LATEST_WITH_INITIALIZE);
    match running.peer_info() {
        Some(info) if !spoken.contains(&info.protocol_version) => {
            let reason = format!("it speaks revision {} of the protocol", shown(info.protocol_version.as_str()));
            Err(McpError::Handshake { server: server.to_owned(), reason })
        }
        _ => Ok(running),
    }
}

/// A call that waits for its answer. If it is dropped before, the server is told that nobody waits any more.
struct Waiting {
    handle: Option<RequestHandle<RoleClient>>,
    activity: Arc<Activity>,
}

impl Waiting {
    fn new(handle: RequestHandle<RoleClient>, activity: &Arc<Activity>, tool: &str) -> Self {
        activity.begin(handle.progress_token.clone(), tool);
        Waiting { handle: Some(handle), activity: activity.clone() }
    }

    async fn answer(&mut self) -> Result<ServerResult, ServiceError> {
        match &mut self.handle {
            Some(handle) => (&mut handle.rx).await.unwrap_or(Err(ServiceError::TransportClosed)),
            None => Err(ServiceError::TransportClosed),
        }
    }

    fn finish(&mut self) {
        if let Some(handle) = self.handle.take() {
            self.activity.finish(&handle.progress_token);
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let Some(handle) = self.handle.take() else { return };
        self.activity.finish(&handle.progress_token);
        // Without a runtime there is no connection either.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            let params = CancelledNotificationParam::new(Some(handle.id.clone()), Some("not wanted".to_owned()));
            let told = tokio::time::timeout(CANCEL_WITHIN, handle.peer.notify_cancelled(params)).await;
            if !matches!(told, Ok(Ok(()))) {
                tracing::debug!("a server could not be told that a call was cancelled");
            }
        });
    }
}
