//! Answers that other systems send later: each belongs to a session that a connector handed over, and is committed in the
//! run that waits for it, as a person's answer would be.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hotcell_engine::{RunError, RunReport};
use hotcell_journal::{CallbackState, Entry, Fact, JournalError, RunId, callback_arrived, callback_state};
use http::header::AUTHORIZATION;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::{Value, json};
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::host::{Host, HostError, Session};

/// The largest answer, in bytes.
const LARGEST_BODY: usize = 1 << 20;
/// The most connections at a time. For one more, the oldest is closed that has not shown the session of an open request.
const MOST_CONNECTIONS: usize = 256;
/// How long the head of a request may take to arrive.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// How long a request may take to arrive.
const ARRIVES_WITHIN: Duration = Duration::from_secs(30);
/// How long an answer waits for its run where that is still busy: it may come before the request was done with.
const READY_WITHIN: Duration = Duration::from_secs(10);
/// How long nothing is accepted after a connection could not be.
const PAUSE: Duration = Duration::from_millis(50);

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
    /// The run is over
    #[error("the run is over")]
    Ended,
    /// The journal failed
    #[error(transparent)]
    Journal(JournalError),
}

impl From<JournalError> for CallbackError {
    fn from(error: JournalError) -> Self {
        match error {
            JournalError::NoSuchRun(_) | JournalError::Ambiguous(..) => CallbackError::Unknown,
            JournalError::NotAsked { .. } => CallbackError::Answered,
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
            CallbackState::Early => return Err(CallbackError::Early),
            CallbackState::Open(_) if record.status.is_final() => return Err(CallbackError::Ended),
            CallbackState::Open(open) => open,
        };
        let fact = Fact::Answered { number: open.number, text: body.to_owned() };
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
    let taking = Taking { host, session: session.clone(), told, runs: TaskTracker::new(), strangers: Arc::default() };
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let shutdown = session.cancel;
    taking.take_up().await;
    while let Some(accepted) = shutdown.run_until_cancelled(listener.accept()).await {
        match accepted {
            Ok((stream, _)) => {
                if room.available_permits() == 0 {
                    taking.strangers.close_oldest();
                }
                let Some(Ok(place)) = shutdown.run_until_cancelled(room.clone().acquire_owned()).await else { break };
                let stranger = taking.strangers.add(&shutdown);
                let taking = taking.clone();
                taking.runs.clone().spawn(async move {
                    let end = stranger.end.clone();
                    end.run_until_cancelled(connection(stream, taking, stranger)).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    taking.runs.close();
    taking.runs.wait().await;
}

/// What every connection needs.
#[derive(Clone)]
struct Taking {
    host: Host,
    session: Session,
    told: OnResumed,
    runs: TaskTracker,
    strangers: Arc<Strangers>,
}

/// Connections over which nobody has shown a session yet, the oldest first. Whoever opens many of them closes his own.
#[derive(Default)]
struct Strangers {
    next: AtomicU64,
    waiting: Mutex<BTreeMap<u64, CancellationToken>>,
}

/// One of them, for as long as it is one.
struct Stranger {
    number: u64,
    /// Ends the connection
    end: CancellationToken,
    all: Arc<Strangers>,
}

impl Strangers {
    fn add(self: &Arc<Self>, shutdown: &CancellationToken) -> Stranger {
        let (number, end) = (self.next.fetch_add(1, Ordering::Relaxed), shutdown.child_token());
        self.waiting().insert(number, end.clone());
        Stranger { number, end, all: self.clone() }
    }

    fn close_oldest(&self) {
        if let Some((_, oldest)) = self.waiting().pop_first() {
            oldest.cancel();
        }
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<u64, CancellationToken>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stranger {
    /// It has shown a session: it stays until it has its reply.
    fn is_known(&self) {
        self.all.waiting().remove(&self.number);
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.is_known();
    }
}

async fn connection(stream: TcpStream, taking: Taking, stranger: Stranger) {
    let stranger = Arc::new(stranger);
    let service = service_fn(move |request| {
        let (taking, stranger) = (taking.clone(), stranger.clone());
        async move { Ok::<_, Infallible>(taking.respond(request, &stranger).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = served.await {
        tracing::debug!(%error, "a connection ended early");
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
            let report = taking.host.resume(run.as_str(), taking.session.clone()).await;
            // Whoever works on it has the answer.
            if !matches!(report, Err(HostError::Run(RunError::Journal(JournalError::Busy(_))))) {
                (taking.told)(&run, &report);
            }
        });
    }

    async fn respond(&self, request: Request<Incoming>, stranger: &Stranger) -> Response<Full<Bytes>> {
        match self.take(request, stranger).await {
            Ok(run) => {
                let reply = reply(StatusCode::ACCEPTED, &json!({ "run": run.as_str() }));
                self.resume(run);
                reply
            }
            Err((status, reason)) => reply(status, &json!({ "error": reason })),
        }
    }

    /// Commits the answer that a request carries.
    async fn take(&self, request: Request<Incoming>, stranger: &Stranger) -> Result<RunId, (StatusCode, String)> {
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
        let text = text.ok_or_else(|| refuse(StatusCode::BAD_REQUEST, "the answer is no JSON"))?;
        let mut answered = self.host.answer_callback(&session, text).await;
        if !matches!(answered, Err(CallbackError::Unknown)) {
            stranger.is_known();
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
            CallbackError::Journal(error) => {
                tracing::error!(%error, "an answer could not be kept");
                let reason = "the answer could not be kept; send it again";
                return Err(refuse(StatusCode::INTERNAL_SERVER_ERROR, reason));
            }
        };
        Err((status, error.to_string()))
    }
}

/// The session that comes with an answer.
fn session_of(request: &Request<Incoming>) -> Option<String> {
    if let Some(value) = request.headers().get(AUTHORIZATION) {
        return value.to_str().ok()?.strip_prefix("Bearer ").map(|session| session.trim().to_owned());
    }
    let query = request.uri().query()?;
    url::form_urlencoded::parse(query.as_bytes())
        .find(|(name, _)| name == "session")
        .map(|(_, value)| value.into_owned())
}

fn reply(status: StatusCode, body: &Value) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(format!("{body}\n"))));
    *response.status_mut() = status;
    response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(http::header::RETRY_AFTER, http::HeaderValue::from_static("10"));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_stranger_goes_first_and_whoever_is_known_stays() {
        let (strangers, shutdown) = (Arc::new(Strangers::default()), CancellationToken::new());
        let [first, second, third] = [0; 3].map(|_| strangers.add(&shutdown));
        first.is_known();
        strangers.close_oldest();
        assert_eq!([&first, &second, &third].map(|one| one.end.is_cancelled()), [false, true, false]);
        drop(third);
        strangers.close_oldest();
        assert!(strangers.waiting().is_empty() && !first.end.is_cancelled());
        shutdown.cancel();
        assert!(first.end.is_cancelled());
    }
}
