//! Answers that other systems send later: each belongs to a session that a connector handed over, and is committed in the
//! run that waits for it, as a person's answer would be.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use hotcell_engine::{RunError, RunReport};
use hotcell_http::{Limits, Peer};
use hotcell_journal::{CallbackState, Entry, Fact, JournalError, RunId, callback_arrived, callback_state};
use http::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Method, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use serde_json::{Value, json};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio_util::task::TaskTracker;

use crate::host::{Host, HostError, Session};

/// The largest answer, in bytes.
const LARGEST_BODY: usize = 1 << 20;
/// The most connections at a time. For one more, the oldest is closed that has not shown the session of an open request.
const MOST_CONNECTIONS: usize = 256;
/// How long a request may take to arrive.
const ARRIVES_WITHIN: Duration = Duration::from_secs(30);
/// How long an answer waits for its run where that is still busy: it may come before the request was done with.
const READY_WITHIN: Duration = Duration::from_secs(10);

/// Why an answer is not taken.
#[derive(Debug, Error)]
pub enum CallbackError {
    /// No run has such a session
    #[error("no run waits for an answer with this session")]
    Unknown,
    /// The run has not come so far, or another process is running it
    #[error("the run is not ready for the answer; send it again")]
    Early,
    /// It has come before
    #[error("this was answered before")]
    Answered,
    /// It did not come in time
    #[error("it comes too late")]
    Expired,
    /// The run is over
    #[error("the run is over")]
    Ended,
    /// It cannot be sealed, as everything is that is said to the run
    #[error("the answer cannot be kept: {0}")]
    Seal(#[source] RunError),
    /// The journal failed
    #[error(transparent)]
    Journal(JournalError),
}

impl From<JournalError> for CallbackError {
    fn from(error: JournalError) -> Self {
        match error {
            JournalError::NoSuchRun(_) | JournalError::Ambiguous(..) => CallbackError::Unknown,
            JournalError::NotAsked { .. } => CallbackError::Answered,
            JournalError::Expired { .. } => CallbackError::Expired,
            JournalError::Ended { .. } | JournalError::Cancelled(_) => CallbackError::Ended,
            other => CallbackError::Journal(other),
        }
    }
}

impl Host {
    /// Sends what came by a callback, a JSON text, to the run that the session belongs to. One that nobody works on goes on when
    /// somebody resumes it.
    ///
    /// # Errors
    /// When no run waits for it, yet or any more, or the journal fails.
    pub async fn answer_callback(&self, session: &str, body: &str) -> Result<RunId, CallbackError> {
        let (run, _) = session.split_once('.').ok_or(CallbackError::Unknown)?;
        let record = self.journal().find(run).await?;
        // People may shorten the name of a run; a session has it in full.
        if record.id.as_str() != run {
            return Err(CallbackError::Unknown);
        }
        let open = match callback_state(&self.journal().history(&record.id).await?.whole()?, session) {
            CallbackState::Unknown => return Err(CallbackError::Unknown),
            CallbackState::Answered => return Err(CallbackError::Answered),
            CallbackState::Expired => return Err(CallbackError::Expired),
            CallbackState::Early => return Err(CallbackError::Early),
            CallbackState::Open(_) if record.status.is_final() => return Err(CallbackError::Ended),
            CallbackState::Open(open) => open,
        };
        let text = self.kept_answer(&record, body).map_err(CallbackError::Seal)?;
        let fact = Fact::Answered { number: open.number, text };
        self.journal().send(&record.id, Entry { place: open.place, fact }).await?;
        Ok(record.id)
    }
}

/// Is told of each run that went on because its answer came.
pub type OnResumed = Arc<dyn Fn(&RunId, &Result<RunReport, HostError>) + Send + Sync>;

/// Takes answers over HTTP and goes on with their runs, until the session's token is cancelled; what is running then is
/// interrupted and can be resumed.
///
/// An answer is a `POST` of JSON to any path, with its session as `Authorization: Bearer SESSION` or `?session=SESSION`.
pub async fn serve_callbacks(host: Host, listener: TcpListener, session: Session, told: OnResumed) {
    let shutdown = session.cancel.clone();
    let taking = Taking { host, session, told, runs: TaskTracker::new() };
    taking.take_up().await;
    let runs = taking.runs.clone();
    let router = Router::new().fallback(respond).with_state(taking);
    let limits = Limits { connections: MOST_CONNECTIONS, ..Limits::default() };
    hotcell_http::serve(listener, router, limits, shutdown).await;
    runs.close();
    runs.wait().await;
}

/// What every answer needs.
#[derive(Clone)]
struct Taking {
    host: Host,
    session: Session,
    told: OnResumed,
    runs: TaskTracker,
}

async fn respond(State(taking): State<Taking>, Extension(peer): Extension<Peer>, request: Request) -> Response {
    match taking.take(request, &peer).await {
        Ok(run) => {
            let reply = reply(StatusCode::ACCEPTED, &json!({ "run": run.as_str() }));
            taking.resume(run);
            reply
        }
        Err((status, reason)) => reply(status, &json!({ "error": reason })),
    }
}

impl Taking {
    /// Goes on with the runs whose answers were taken by a process that ended before it could.
    async fn take_up(&self) {
        let runs = match self.host.journal().with_messages().await {
            Ok(runs) => runs,
            Err(error) => return tracing::error!(%error, "runs with answers cannot be found"),
        };
        for run in runs {
            // What a person answered goes on when a person says so.
            match self.host.journal().history(&run).await {
                Ok(history) if callback_arrived(&history.entries) => self.resume(run),
                Ok(_) => {}
                Err(error) => tracing::error!(%run, %error, "a run with answers cannot be read"),
            }
        }
    }

    fn resume(&self, run: RunId) {
        let taking = self.clone();
        self.runs.spawn(async move {
            let report = match taking.host.wake(run.as_str(), taking.session.clone()).await {
                Ok(Some(report)) => Ok(report),
                // The answer is kept until somebody resumes the run.
                Ok(None) => return,
                Err(error) => Err(error),
            };
            // Whoever works on it has the answer.
            if !matches!(report, Err(HostError::Run(RunError::Journal(JournalError::Busy(_))))) {
                (taking.told)(&run, &report);
            }
        });
    }

    /// Commits the answer that a request carries.
    async fn take(&self, request: Request, peer: &Peer) -> Result<RunId, (StatusCode, String)> {
        let refuse = |status: StatusCode, reason: &str| (status, reason.to_owned());
        if request.method() != Method::POST {
            return Err(refuse(StatusCode::METHOD_NOT_ALLOWED, "an answer is sent with POST"));
        }
        let session = session_of(&request).ok_or_else(|| {
            refuse(
                StatusCode::UNAUTHORIZED,
                "the session is missing: `Authorization: Bearer SESSION` or `?session=SESSION`",
            )
        })?;
        let body =
            tokio::time::timeout(ARRIVES_WITHIN, Limited::new(request.into_body(), LARGEST_BODY).collect()).await;
        let body = match body {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(_)) => {
                let reason = format!("the answer did not arrive, or has more than {LARGEST_BODY} bytes");
                return Err((StatusCode::PAYLOAD_TOO_LARGE, reason));
            }
            Err(_) => return Err(refuse(StatusCode::REQUEST_TIMEOUT, "the answer did not arrive in time")),
        };
        let text = std::str::from_utf8(&body).ok().filter(|text| serde_json::from_str::<Value>(text).is_ok());
        let text = text.ok_or_else(|| refuse(StatusCode::BAD_REQUEST, "the answer is not valid JSON"))?;
        let mut answered = self.host.answer_callback(&session, text).await;
        if !matches!(answered, Err(CallbackError::Unknown)) {
            peer.is_known();
        }
        if let (Err(CallbackError::Early), Some((run, _))) = (&answered, session.split_once('.')) {
            // It is ready at the latest when nobody works on it any more.
            let run = RunId::from(run.to_owned());
            let _ = tokio::time::timeout(READY_WITHIN, self.host.journal().released(&run)).await;
            answered = self.host.answer_callback(&session, text).await;
        }
        let error = match answered {
            Ok(run) => return Ok(run),
            Err(error) => error,
        };
        let status = match error {
            CallbackError::Unknown => StatusCode::NOT_FOUND,
            CallbackError::Early => StatusCode::SERVICE_UNAVAILABLE,
            CallbackError::Answered | CallbackError::Ended => StatusCode::CONFLICT,
            CallbackError::Expired => StatusCode::GONE,
            error @ (CallbackError::Seal(_) | CallbackError::Journal(_)) => {
                tracing::error!(%error, "an answer could not be kept");
                let reason = "the answer could not be kept; send it again";
                return Err(refuse(StatusCode::INTERNAL_SERVER_ERROR, reason));
            }
        };
        Err((status, error.to_string()))
    }
}

/// The session that comes with an answer.
fn session_of(request: &Request) -> Option<String> {
    if let Some(value) = request.headers().get(AUTHORIZATION) {
        return value.to_str().ok()?.strip_prefix("Bearer ").map(|session| session.trim().to_owned());
    }
    let query = request.uri().query()?;
    url::form_urlencoded::parse(query.as_bytes())
        .find(|(name, _)| name == "session")
        .map(|(_, value)| value.into_owned())
}

fn reply(status: StatusCode, body: &Value) -> Response {
    let mut response = (status, Body::from(format!("{body}\n"))).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    // Whoever answers comes once.
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    if status == StatusCode::SERVICE_UNAVAILABLE {
        headers.insert(RETRY_AFTER, HeaderValue::from_static("10"));
    }
    response
}
