//! Serving over Streamable HTTP, at `/mcp`.
//!
//! Requests are taken only under the names of this server, and from web pages only of the origins that are allowed:
//! otherwise any page that a person opens could call tools on their machine. There is no login; whoever serves beyond
//! this machine puts something before this that has one.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use super::attended::{AttendedSessions, RETRY_AFTER};
use super::handler::Session;
use super::{Catalog, Identity};
use crate::error::ServeError;

/// The only path.
const PATH: &str = "/mcp";
/// The most sessions at a time.
const MOST_SESSIONS: usize = 256;
/// The most connections at a time; more have to wait. Every session holds one open, and needs others for its calls.
const MOST_CONNECTIONS: usize = 4 * MOST_SESSIONS;
/// The largest request, in bytes.
const LARGEST_REQUEST: usize = 8 << 20;
/// How long a session may be silent. A call may wait that long for a person.
const SILENCE: Duration = Duration::from_secs(60 * 60);
/// How long a client may take to send the head of a request.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// How long connections may take to end when the server is shut down.
const SHUTDOWN_WITHIN: Duration = Duration::from_secs(5);

type Body = BoxBody<Bytes, Infallible>;
type Mcp = TowerToHyperService<StreamableHttpService<Session, AttendedSessions>>;

/// Where and to whom to serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpSettings {
    /// Where to listen; with port 0, a free port is taken
    pub address: SocketAddr,
    /// The hosts under which the server may be addressed, as `name` or `name:port`, besides those of this machine
    pub hosts: Vec<String>,
    /// The origins of web pages that may use it, as `https://name:port`, besides pages of this machine
    pub origins: Vec<String>,
}

impl Default for HttpSettings {
    /// A free port that only this machine can reach.
    fn default() -> Self {
        HttpSettings { address: (Ipv4Addr::LOCALHOST, 0).into(), hosts: Vec::new(), origins: Vec::new() }
    }
}

/// A running server. It ends when its shutdown token is cancelled or when this is dropped.
#[derive(Debug)]
pub struct HttpServer {
    address: SocketAddr,
    shutdown: CancellationToken,
    serving: Option<JoinHandle<()>>,
}

impl HttpServer {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until it has ended, which takes a cancelled token.
    ///
    /// # Errors
    /// Serving failed.
    pub async fn ended(mut self) -> Result<(), ServeError> {
        match self.serving.take() {
            Some(serving) => serving.await.map_err(|error| ServeError::Failed { reason: error.to_string() }),
            None => Ok(()),
        }
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

/// Serves over Streamable HTTP until `shutdown` is cancelled: then no more requests are taken, streams end, and what
/// is still being answered gets a few seconds.
///
/// # Errors
/// The address cannot be listened at, or it can be reached from outside and no hosts are named.
pub async fn serve_http(
    catalog: Arc<dyn Catalog>,
    identity: Identity,
    settings: HttpSettings,
    shutdown: &CancellationToken,
) -> Result<HttpServer, ServeError> {
    let address = settings.address;
    let local = address.ip().is_loopback();
    if !local && settings.hosts.is_empty() {
        return Err(ServeError::HostsMissing { address });
    }
    let listen = |source| ServeError::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(listen)?;
    let address = listener.local_addr().map_err(listen)?;
    let shutdown = shutdown.child_token();
    let names = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned);
    let pages = ["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"].map(str::to_owned);
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(settings.hosts.into_iter().chain(names))
        .with_allowed_origins(settings.origins.into_iter().chain(pages))
        .with_max_request_body_bytes(LARGEST_REQUEST)
        .with_cancellation_token(shutdown.clone());
    let mut sessions = AttendedSessions::default();
    sessions.local.session_config.keep_alive = Some(SILENCE);
    sessions.local.session_config.sse_retry = Some(RETRY_AFTER);
    let sessions = Arc::new(sessions);
    let session = move || Ok(Session::new(catalog.clone(), identity.clone()));
    let mcp = TowerToHyperService::new(StreamableHttpService::new(session, sessions.clone(), config));
    let serving = tokio::spawn(accept(listener, mcp, sessions, shutdown.clone()));
    Ok(HttpServer { address, shutdown, serving: Some(serving) })
}

async fn accept(listener: TcpListener, mcp: Mcp, sessions: Arc<AttendedSessions>, shutdown: CancellationToken) {
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = shutdown.cancelled() => break,
            Some(_) = connections.join_next() => continue,
            accepted = async {
                let place = room.clone().acquire_owned().await;
                (place, listener.accept().await)
            } => accepted,
        };
        match accepted {
            (Ok(place), Ok((stream, _))) => {
                let connection = serve_connection(stream, mcp.clone(), sessions.clone(), shutdown.clone());
                connections.spawn(async move {
                    connection.await;
                    drop(place);
                });
            }
            (_, Err(error)) => {
                // Out of file descriptors, for one; it passes.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            (Err(_), _) => break,
        }
    }
    drop(listener);
    let ending = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(SHUTDOWN_WITHIN, ending).await.is_err() {
        tracing::warn!(connections = connections.len(), "connections did not end in time and were cut");
    }
}

async fn serve_connection(stream: TcpStream, mcp: Mcp, sessions: Arc<AttendedSessions>, shutdown: CancellationToken) {
    // Small messages go at once.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection without TCP_NODELAY");
    }
    let service = service_fn(move |request| respond(request, mcp.clone(), sessions.clone()));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let served = tokio::select! {
        served = connection.as_mut() => served,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended early");
    }
}

async fn respond(
    request: Request<Incoming>,
    mcp: Mcp,
    sessions: Arc<AttendedSessions>,
) -> Result<Response<Body>, Infallible> {
    if request.uri().path() != PATH {
        return Ok(plain(StatusCode::NOT_FOUND, "only /mcp is served\n"));
    }
    let begins = request.method() == Method::POST && !request.headers().contains_key("mcp-session-id");
    if begins && sessions.local.sessions.read().await.len() >= MOST_SESSIONS {
        return Ok(plain(StatusCode::SERVICE_UNAVAILABLE, "too many sessions\n"));
    }
    mcp.call(request).await
}

fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *response.status_mut() = status;
    response
}
