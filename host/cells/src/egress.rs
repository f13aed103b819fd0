//! HTTP requests of a guest: asked of the policy, counted against the budget, and sent over a connection to an
//! address that was checked.
//!
//! A request goes out as the guest wrote it: no redirect is followed, no proxy used, no header added but `host`.
//! Nothing outlives the call, because every task here belongs to a resource of the call's store.

mod connection;
#[cfg(test)]
mod tests;
mod upload;

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::future::{Either, select};
use hotcell_budget::{Budget, Bytes};
use http::{HeaderValue, Method, Request as HttpRequest, Response, header};
use http_body_util::{BodyExt as _, Full};
use url::{Host, Url};
use wasmtime_wasi_http::io::TokioIo;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpHooks};

use self::connection::{Metered, Resolve, connect};
use self::upload::Uploads;
use crate::call::Terms;
use crate::denials::Denials;
use crate::grants::{Grants, Scheme};
use crate::own_tls::OwnTls;
use crate::policy::{Capability, Decision, Request, decide, may_hold_secret};
use crate::recording::{Player, Recorder, play_http, record_http};
use crate::secrets::{self, Vault};
use crate::services::{HttpExchange, HttpReply, HttpTape};
use crate::tape::Tape;

/// Bytes of a response's status line and headers that are read before it is refused.
const MAX_RESPONSE_HEAD: usize = 64 << 10;

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

/// The work that has to go on while a response is read.
type Rest = Box<dyn Future<Output = Result<(), Error>> + Send>;
/// A response, and the work that has to go on while its body is read.
type Sent = Result<(Response<WasiBody>, Rest), Error>;

/// Where a request goes, parsed once.
struct Destination {
    scheme: Scheme,
    host: Host<String>,
    port: u16,
}

impl Destination {
    fn of(request: &HttpRequest<WasiBody>) -> Result<Self, Error> {
        let uri = request.uri();
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(Error::HttpRequestUriInvalid);
        };
        let url = Url::parse(&format!("{scheme}://{authority}/")).map_err(|_| Error::HttpRequestUriInvalid)?;
        if !url.username().is_empty() || url.password().is_some() || url.path() != "/" {
            return Err(Error::HttpRequestUriInvalid);
        }
        let scheme = match url.scheme() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            _ => return Err(Error::HttpProtocolError),
        };
        let host = url.host().ok_or(Error::HttpRequestUriInvalid)?.to_owned();
        Ok(Self { scheme, host, port: url.port().unwrap_or(scheme.default_port()) })
    }

    /// The value of the `host` header.
    fn authority(&self) -> String {
        if self.port == self.scheme.default_port() {
            return self.host.to_string();
        }
        format!("{}:{}", self.host, self.port)
    }
}

async fn send(shared: Arc<Shared>, request: HttpRequest<WasiBody>, options: RequestOptions) -> Sent {
    let request = request.map(|body| shared.uploads.to_the_end(body));
    let destination = Destination::of(&request)?;
    let method = request.method().clone();
    if method == Method::CONNECT {
        return Err(Error::HttpRequestMethodInvalid);
    }
    if let Decision::Deny(capability) = decide(
        &shared.grants,
        &Request::Http {
            scheme: destination.scheme,
            host: &destination.host,
            port: destination.port,
            method: method.as_str(),
        },
    ) {
        return Err(shared.deny(capability));
    }
    if shared.requests.fetch_add(1, Ordering::Relaxed) >= shared.max_requests {
        shared.exhaust();
        return Err(Error::ConnectionLimitReached);
    }

    let Some(tape) = shared.tape.clone() else { return go_out(&shared, &destination, request, options).await };
    let (parts, body) = request.into_parts();
    let body = collect(&shared, body).await?;
    let exchange = HttpExchange {
        method: method.to_string(),
        url: parts.uri.to_string(),
        headers: texts(&parts.headers),
        body: body.to_vec(),
    };
    let reply = tape.reply(&exchange).map_err(|_| Error::HttpResponseIncomplete)?;
    response_of(reply).map(|response| -> (_, Rest) { (response, Box::new(async { Ok(()) })) })
}

fn texts(headers: &http::HeaderMap) -> Vec<(String, String)> {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect()
}

fn response_of(reply: HttpReply) -> Result<Response<WasiBody>, Error> {
    let mut response = Response::builder().status(reply.status);
    for (name, value) in reply.headers {
        response = response.header(name, value);
    }
    response.body(whole(reply.body.into())).map_err(|_| Error::HttpResponseIncomplete)
}

/// Sends a request that was allowed and counted.
async fn go_out(
    shared: &Arc<Shared>,
    destination: &Destination,
    mut request: HttpRequest<WasiBody>,
    options: RequestOptions,
) -> Sent {
    let method = request.method().clone();
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    *request.uri_mut() = path.parse().map_err(|_| Error::HttpRequestUriInvalid)?;
    let host = HeaderValue::from_str(&destination.authority()).map_err(|_| Error::HttpRequestUriInvalid)?;
    request.headers_mut().insert(header::HOST, host);

    // Only a server that may have been sent a secret can send it back. In the answers of others nothing is looked for: whoever
    // chooses what they answer could see by what is taken out whether it guessed a value.
    let Destination { scheme, host, port } = destination;
    let may_hold = |name: &&str| may_hold_secret(&shared.grants, name, *scheme, host, *port);
    let held: Vec<&str> = shared.vault.names().filter(may_hold).collect();
    if !held.is_empty() {
        // A value is found where it is whole and readable.
        let unreadable = [header::RANGE, header::IF_RANGE, header::ACCEPT_ENCODING, header::ACCEPT_CHARSET, header::TE];
        for header in unreadable {
            request.headers_mut().remove(header);
        }
    }
    if shared.vault.is_in_use() {
        let time = shared.left();
        let filled = fill_secrets(shared, destination, request);
        request = tokio::time::timeout(time, filled).await.map_err(|_| Error::HttpResponseTimeout)??;
    }

    let connect_time = options.connect_timeout.unwrap_or(Duration::MAX).min(shared.left());
    let connection = connect(shared, destination, method.as_str());
    let stream = tokio::time::timeout(connect_time, connection).await.map_err(|_| Error::ConnectionTimeout)??;
    let response_time = options.first_byte_timeout.unwrap_or(Duration::MAX).min(shared.left());
    let exchanged = tokio::time::timeout(response_time, exchange(stream, request));
    let (response, rest) = exchanged.await.map_err(|_| Error::HttpResponseTimeout)??;
    if held.is_empty() {
        return Ok((response, rest));
    }
    let (mut parts, body) = read_response(shared, response, rest).await?.into_parts();
    let body = shared.vault.scrub_response(&mut parts.headers, body, &held);
    if parts.headers.contains_key(header::CONTENT_LENGTH) {
        parts.headers.insert(header::CONTENT_LENGTH, body.len().into());
    }
    Ok((Response::from_parts(parts, whole(body)), Box::new(async { Ok(()) })))
}

/// Puts the values of secrets in the place of their placeholders: those that are granted for this destination.
async fn fill_secrets(
    shared: &Shared,
    destination: &Destination,
    request: HttpRequest<WasiBody>,
) -> Result<HttpRequest<WasiBody>, Error> {
    let method = request.method().clone();
    let allowed = |text: &[u8]| -> Vec<String> {
        let mentioned = shared.vault.mentioned(text).into_iter();
        let granted = |name: &String| {
            let Destination { scheme, host, port } = destination;
            let request = Request::SecretTo { name, scheme: *scheme, host, port: *port, method: method.as_str() };
            match decide(&shared.grants, &request) {
                Decision::Allow => true,
                Decision::Deny(capability) => {
                    shared.deny(capability);
                    false
                }
            }
        };
        mentioned.filter(granted).collect()
    };
    let vault = &shared.vault;
    let fill = |text: &[u8], allowed: &[String], encode: fn(&str) -> Cow<'_, str>| {
        vault.fill(text, allowed, encode, shared.max_bytes).ok_or_else(|| {
            shared.exhaust();
            Error::HttpRequestBodySize(None)
        })
    };
    let (mut parts, body) = request.into_parts();
    let target = parts.uri.to_string();
    let filled = fill(target.as_bytes(), &allowed(target.as_bytes()), secrets::in_url)?;
    parts.uri = http::Uri::try_from(filled).map_err(|_| Error::HttpRequestUriInvalid)?;
    for value in parts.headers.values_mut() {
        let allowed = allowed(value.as_bytes());
        if !allowed.is_empty() {
            let filled = fill(value.as_bytes(), &allowed, secrets::as_is)?;
            *value = HeaderValue::from_bytes(&filled).map_err(|_| Error::HttpRequestHeaderSectionSize(None))?;
            value.set_sensitive(true);
        }
    }
    let body = collect(shared, body).await?;
    let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let encode = match kind {
        kind if kind.contains("json") => secrets::in_json,
        kind if kind.contains("x-www-form-urlencoded") => secrets::in_url,
        _ => secrets::as_is,
    };
    let filled = fill(&body, &allowed(&body), encode)?;
    if parts.headers.remove(header::CONTENT_LENGTH).is_some() || !filled.is_empty() {
        parts.headers.insert(header::CONTENT_LENGTH, filled.len().into());
    }
    parts.headers.remove(header::TRANSFER_ENCODING);
    Ok(HttpRequest::from_parts(parts, whole(filled.into())))
}

/// Reads a response to its end, as long as the call has time.
async fn read_response(
    shared: &Shared,
    response: Response<WasiBody>,
    rest: Rest,
) -> Result<Response<bytes::Bytes>, Error> {
    let (parts, body) = response.into_parts();
    let connection = async move {
        // What ends the connection shows in the body as well.
        let _ = Box::into_pin(rest).await;
        std::future::pending::<()>().await;
    };
    let read = async {
        match select(std::pin::pin!(collect(shared, body)), std::pin::pin!(connection)).await {
            Either::Left((body, _)) => body,
            Either::Right(((), read)) => read.await,
        }
    };
    let body = tokio::time::timeout(shared.left(), read).await.map_err(|_| Error::HttpResponseTimeout)??;
    Ok(Response::from_parts(parts, body))
}

/// A body in one piece.
pub(crate) fn whole(bytes: bytes::Bytes) -> WasiBody {
    Full::new(bytes).map_err(Error::from).boxed_unsync()
}

/// A body in one piece, as long as the budget allows it.
async fn collect(shared: &Shared, mut body: WasiBody) -> Result<bytes::Bytes, Error> {
    let mut whole = bytes::BytesMut::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            whole.extend_from_slice(&data);
        }
        if whole.len() as u64 > shared.max_bytes {
            shared.exhaust();
            return Err(Error::HttpRequestBodySize(Some(whole.len() as u64)));
        }
    }
    Ok(whole.freeze())
}

/// Sends the request and waits for the head of the response.
async fn exchange(stream: Metered, request: HttpRequest<WasiBody>) -> Sent {
    let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
        .max_buf_size(MAX_RESPONSE_HEAD)
        .handshake(TokioIo::new(stream))
        .await?;
    let answer = Box::pin(sender.send_request(request));
    let (response, connection) = match select(answer, Box::pin(connection)).await {
        Either::Left((response, connection)) => (response?, Some(connection)),
        Either::Right((ended, answer)) => {
            ended?;
            (answer.await?, None)
        }
    };
    let response = response.map(|body| body.map_err(Error::from).boxed_unsync());
    let rest = async move {
        match connection {
            Some(connection) => connection.await.map_err(Error::from),
            None => Ok(()),
        }
    };
    Ok((response, Box::new(rest)))
}
