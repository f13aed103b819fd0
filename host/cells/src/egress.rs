//! HTTP requests of a guest: asked of the policy, counted against the budget, and sent over a connection to an
//! address that was checked.
//!
//! A request goes out as the guest wrote it: no redirect is followed, no proxy used, no header added but `host`.
//! Nothing outlives the call, because every task here belongs to a resource of the call's store.

mod connection;
mod destination;
mod send;
#[cfg(test)]
mod tests;
mod upload;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hotcell_budget::{Budget, Bytes};
use http::{Request as HttpRequest, Response};
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpHooks};

use self::connection::Resolve;
pub(crate) use self::send::whole;
use self::send::{Sent, read_response, send};
use self::upload::Uploads;
use crate::call::Terms;
use crate::denials::Denials;
use crate::grants::Grants;
use crate::own_tls::OwnTls;
use crate::policy::Capability;
use crate::recording::{Player, Recorder, play_http, record_http};
use crate::secrets::Vault;
use crate::services::HttpTape;
use crate::tape::Tape;

/// Bytes of a body that wait to be sent at most, in one piece.
pub(crate) const BODY_PIECE: usize = 64 << 10;

/// The HTTP side of one call. Cheap to clone; clones share what is counted.
#[derive(Clone)]
pub(crate) struct Egress {
    shared: Arc<Shared>,
    recording: Option<OnTape>,
}

/// Where the requests of a component are recorded, or come from.
#[derive(Clone)]
enum OnTape {
    Recording(Arc<Recorder>),
    Playing(Arc<Player>),
}

/// What the requests of a call have in common.
struct Shared {
    grants: Arc<Grants>,
    deadline: Instant,
    max_requests: u64,
    max_bytes: u64,
    requests: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
    exhausted: AtomicBool,
    denials: Denials,
    vault: Arc<Vault>,
    tape: Option<Arc<dyn HttpTape>>,
    /// None where the system is asked
    names: Option<Arc<dyn Resolve>>,
    uploads: Uploads,
    tls: Option<OwnTls>,
}

/// What the requests of a call came to.
pub(crate) struct EgressReport {
    pub(crate) requests: u64,
    pub(crate) sent: Bytes,
    pub(crate) received: Bytes,
    /// What was exhausted, if the guest wanted more than the budget gives.
    pub(crate) exhausted: Option<String>,
}

impl Egress {
    pub(crate) fn new(terms: &Terms, budget: &Budget, denials: Denials, vault: Arc<Vault>) -> Self {
        Self::with_names(terms, budget, denials, vault, None)
    }

    fn with_names(
        terms: &Terms,
        budget: &Budget,
        denials: Denials,
        vault: Arc<Vault>,
        names: Option<Arc<dyn Resolve>>,
    ) -> Self {
        let now = Instant::now();
        Self {
            shared: Arc::new(Shared {
                grants: terms.grants.clone(),
                deadline: now.checked_add(budget.wall_clock).unwrap_or(now + Duration::from_secs(86_400)),
                max_requests: u64::from(budget.http_requests),
                max_bytes: budget.http_bytes.0,
                requests: AtomicU64::new(0),
                sent: AtomicU64::new(0),
                received: AtomicU64::new(0),
                exhausted: AtomicBool::new(false),
                denials,
                vault,
                tape: terms.tape.clone(),
                names,
                uploads: Uploads::default(),
                tls: terms.tls.clone(),
            }),
            recording: None,
        }
    }

    /// The same, with what a component asks recorded or taken from a recording.
    pub(crate) fn with_tape(mut self, tape: &Tape) -> Self {
        self.recording = match tape {
            Tape::Off => None,
            Tape::Recording(recorder) => Some(OnTape::Recording(recorder.clone())),
            Tape::Playing(player) => Some(OnTape::Playing(player.clone())),
        };
        self
    }

    pub(crate) fn report(&self) -> EgressReport {
        let shared = &self.shared;
        EgressReport {
            requests: shared.requests.load(Ordering::Relaxed).min(shared.max_requests),
            sent: Bytes(shared.sent.load(Ordering::Relaxed)),
            received: Bytes(shared.received.load(Ordering::Relaxed)),
            exhausted: shared.exhausted.load(Ordering::Relaxed).then(|| shared.exhaustion()),
        }
    }

    /// Whether the host may keep so many bytes of requests that are not sent yet. The error says what is used up.
    pub(crate) fn admit(&self, bytes: u64) -> Result<(), String> {
        if bytes <= self.shared.max_bytes {
            return Ok(());
        }
        self.shared.exhaust();
        Err(self.shared.exhaustion())
    }
}

impl Shared {
    fn deny(&self, capability: Capability) -> Error {
        self.denials.add(capability);
        Error::HttpRequestDenied
    }

    fn exhaust(&self) {
        self.exhausted.store(true, Ordering::Relaxed);
    }

    fn exhaustion(&self) -> String {
        let most = Bytes(self.max_bytes);
        format!("the budget of {} HTTP requests and {most} each way is used up", self.max_requests)
    }

    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

impl WasiHttpHooks for Egress {
    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        BODY_PIECE
    }

    fn send_request(
        &mut self,
        request: HttpRequest<WasiBody>,
        options: Option<RequestOptions>,
        _: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Box<dyn Future<Output = Sent> + Send> {
        let (shared, options) = (self.shared.clone(), options.unwrap_or_default());
        match &self.recording {
            None => Box::new(send(shared, request, options)),
            Some(OnTape::Recording(recorder)) => {
                Box::new(record_http(recorder.clone(), request, move |request| send(shared, request, options)))
            }
            Some(OnTape::Playing(player)) => Box::new(play_http(player.clone(), request)),
        }
    }
}

/// Sends a request and gives the head of the response as soon as it is there.
pub(crate) async fn get(egress: &Egress, request: HttpRequest<WasiBody>) -> Sent {
    send(egress.shared.clone(), request, RequestOptions::default()).await
}

/// Sends a request and reads the response to its end. Goes on only while it is polled.
pub(crate) fn get_whole(
    egress: &Egress,
    request: HttpRequest<WasiBody>,
) -> impl Future<Output = Result<Response<bytes::Bytes>, Error>> + Send + use<> {
    let shared = egress.shared.clone();
    async move {
        let (response, rest) = send(shared.clone(), request, RequestOptions::default()).await?;
        read_response(&shared, response, rest).await
    }
}
