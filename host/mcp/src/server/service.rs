//! What answers HTTP requests of the protocol, wherever they arrive.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use hotcell_http::Peer;
use http::{Method, StatusCode};
use rmcp::model::ProtocolVersion;
use rmcp::transport::streamable_http_server::session::SessionId;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use super::attended::{AttendedSessions, MOST_SESSIONS, RETRY_AFTER};
use super::client::SessionOwner;
use super::handler::Session;
use super::{Catalog, Identity};

/// The largest request, in bytes.
const LARGEST_REQUEST: usize = 8 << 20;
/// How long a session may be silent. A call may wait that long for a person.
const SILENCE: Duration = Duration::from_secs(60 * 60);
/// The header that names a session.
const SESSION: &str = "mcp-session-id";

/// The protocol over Streamable HTTP, without a server: whoever has one hands its requests on.
///
/// Clients of the revisions up to 2025-11-25 have sessions, of which there are at most 256 at a time; where requests say
/// [whose they are](SessionOwner), a session is found by its owner alone, and nobody has more than a quarter of what
/// others leave.
#[derive(Clone)]
pub struct McpService {
    service: StreamableHttpService<Session, AttendedSessions>,
    sessions: Arc<AttendedSessions>,
}

impl McpService {
    /// For a server that looks itself at the names and pages that requests come by. Streams and sessions end when
    /// `shutdown` is cancelled.
    pub fn new(catalog: Arc<dyn Catalog>, identity: Identity, shutdown: CancellationToken) -> Self {
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .disable_allowed_origins()
            .with_cancellation_token(shutdown);
        McpService::with(catalog, identity, config)
    }

    pub(super) fn with(catalog: Arc<dyn Catalog>, identity: Identity, config: StreamableHttpServerConfig) -> Self {
        let mut sessions = AttendedSessions::default();
        sessions.local.session_config.keep_alive = Some(SILENCE);
        sessions.local.session_config.sse_retry = Some(RETRY_AFTER);
        let sessions = Arc::new(sessions);
        let session = move || Ok(Session::new(catalog.clone(), identity.clone()));
        let config = config.with_max_request_body_bytes(LARGEST_REQUEST);
        McpService { service: StreamableHttpService::new(session, sessions.clone(), config), sessions }
    }

    /// Answers a request, whatever its path.
    pub async fn respond(&self, request: Request) -> Response {
        let owner = request.extensions().get::<SessionOwner>().map(|owner| owner.0.clone());
        let named = request.headers().get(SESSION).and_then(|id| id.to_str().ok()).map(SessionId::from);
        match &named {
            Some(id) if !self.sessions.belongs_to(id, owner.as_deref()) => {
                return (StatusCode::NOT_FOUND, "there is no such session\n").into_response();
            }
            Some(id) => {
                if self.sessions.local.sessions.read().await.contains_key(id)
                    && let Some(peer) = request.extensions().get::<Peer>()
                {
                    // Whoever has a session keeps the connection.
                    peer.is_known();
                }
            }
            None if may_begin_session(&request) => return self.begin(request, owner).await,
            None => {}
        }
        self.service.handle(request).await.map(Body::new)
    }

    /// Answers a request that may begin a session. It is known whose that is also if they are gone before they are told.
    async fn begin(&self, request: Request, owner: Option<String>) -> Response {
        let full = || (StatusCode::SERVICE_UNAVAILABLE, "too many sessions\n").into_response();
        if self.sessions.local.sessions.read().await.len() >= MOST_SESSIONS {
            return full();
        }
        let place = match owner {
            Some(owner) => match self.sessions.place_for(owner) {
                Some(place) => Some(place),
                None => return full(),
            },
            None => None,
        };
        let service = self.service.clone();
        let answering = async move {
            let response = service.handle(request).await.map(Body::new);
            let made = response.headers().get(SESSION).and_then(|id| id.to_str().ok()).map(SessionId::from);
            if let (Some(made), Some(place)) = (made, place) {
                place.taken_by(made).await;
            }
            response
        };
        match tokio::spawn(answering).await {
            Ok(response) => response,
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        }
    }
}

/// Whether a request without a session may begin one. Where it says that it does not and does all the same, it finds the
/// limit of sessions later.
fn may_begin_session(request: &Request) -> bool {
    let version = request.headers().get("mcp-protocol-version").and_then(|version| version.to_str().ok());
    let version = version.and_then(|version| serde_json::from_value::<ProtocolVersion>(version.into()).ok());
    request.method() == Method::POST && version.is_none_or(|version| version.has_initialize())
}
