//! Serving over Streamable HTTP, at `/mcp`.
//!
//! Requests are taken only under the names of this server, and from web pages only of the origins that are allowed:
//! otherwise any page that a person opens could call tools on their machine. There is no login; whoever serves beyond
//! this machine puts something before this that has one.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use hotcell_http::Limits;
use http::StatusCode;
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::attended::MOST_SESSIONS;
use super::service::McpService;
use super::{Catalog, Identity};
use crate::error::ServeError;

/// The only path.
const PATH: &str = "/mcp";
/// The most connections at a time. Every session holds one open, and needs others for its calls.
const MOST_CONNECTIONS: usize = 4 * MOST_SESSIONS;

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
        .with_cancellation_token(shutdown.clone());
    let service = McpService::with(catalog, identity, config);
    let router = Router::new().route(PATH, any(respond)).with_state(service).fallback(elsewhere);
    let limits = Limits { connections: MOST_CONNECTIONS, ..Limits::default() };
    let serving = tokio::spawn(hotcell_http::serve(listener, router, limits, shutdown.clone()));
    Ok(HttpServer { address, shutdown, serving: Some(serving) })
}

async fn respond(State(service): State<McpService>, request: Request) -> Response {
    service.respond(request).await
}

async fn elsewhere() -> Response {
    (StatusCode::NOT_FOUND, "only /mcp is served\n").into_response()
}
