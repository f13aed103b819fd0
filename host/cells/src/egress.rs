//! HTTP requests of a guest: asked of the policy, counted against the budget, and sent over a connection to an
//! address that was checked.
//!
//! A request goes out as the guest wrote it: no redirect is followed, no proxy used, no header added but `host`.
//! Nothing outlives the call, because every task here belongs to a resource of the call's store.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::future::{Either, select};
use hotcell_budget::{Budget, Bytes};
use http::{HeaderValue, Method, Request as HttpRequest, Response, header};
use http_body_util::{BodyExt as _, Full};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use url::{Host, Url};
use wasmtime_wasi_http::io::TokioIo;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody, WasiHttpHooks};

use crate::call::Terms;
use crate::denials::Denials;
use crate::grants::{Grants, Scheme};
use crate::policy::{Capability, Decision, Request, decide};
use crate::secrets::{self, Vault};
use crate::services::{HttpExchange, HttpReply, HttpTape};

/// Bytes of a response's status line and headers that are read before it is refused.
const MAX_RESPONSE_HEAD: usize = 64 << 10;

/// The HTTP side of one call.
pub(crate) struct Egress {
    shared: Arc<Shared>,
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
            }),
        }
    }

    pub(crate) fn report(&self) -> EgressReport {
        let shared = &self.shared;
        let exhausted = shared.exhausted.load(Ordering::Relaxed).then(|| {
            format!(
                "the budget of {} HTTP requests and {} each way is used up",
                shared.max_requests,
                Bytes(shared.max_bytes)
            )
        });
        EgressReport {
            requests: shared.requests.load(Ordering::Relaxed).min(shared.max_requests),
            sent: Bytes(shared.sent.load(Ordering::Relaxed)),
            received: Bytes(shared.received.load(Ordering::Relaxed)),
            exhausted,
        }
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

    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

impl WasiHttpHooks for Egress {
    fn send_request(
        &mut self,
        request: HttpRequest<WasiBody>,
        options: Option<RequestOptions>,
        _: Box<dyn Future<Output = Result<(), Error>> + Send>,
    ) -> Box<dyn Future<Output = Sent> + Send> {
        Box::new(send(self.shared.clone(), request, options.unwrap_or_default()))
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
    if let Some(replayed) = tape.replay(&exchange) {
        let reply = replayed.map_err(|_| Error::HttpResponseIncomplete)?;
        return response_of(reply).map(|response| -> (_, Rest) { (response, Box::new(async { Ok(()) })) });
    }
    let (response, rest) = go_out(&shared, &destination, HttpRequest::from_parts(parts, whole(body)), options).await?;
    let response = read_response(&shared, response, rest).await?;
    let (parts, body) = response.into_parts();
    let body = collect(&shared, body).await?;
    let status = parts.status.as_u16();
    tape.record(&exchange, &HttpReply { status, headers: texts(&parts.headers), body: body.to_vec() });
    Ok((Response::from_parts(parts, whole(body)), Box::new(async { Ok(()) })))
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

    let with_secrets = shared.vault.is_in_use();
    if with_secrets {
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
    if !with_secrets {
        return Ok((response, rest));
    }
    let (mut parts, body) = read_response(shared, response, rest).await?.into_parts();
    shared.vault.scrub_headers(&mut parts.headers);
    let body = shared.vault.scrub_bytes(collect(shared, body).await?);
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
    let (mut parts, body) = request.into_parts();
    let target = parts.uri.to_string();
    let filled = vault.fill(target.as_bytes(), &allowed(target.as_bytes()), secrets::in_url);
    parts.uri = http::Uri::try_from(filled).map_err(|_| Error::HttpRequestUriInvalid)?;
    for value in parts.headers.values_mut() {
        let allowed = allowed(value.as_bytes());
        if !allowed.is_empty() {
            let filled = vault.fill(value.as_bytes(), &allowed, secrets::as_is);
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
    let filled = vault.fill(&body, &allowed(&body), encode);
    if parts.headers.remove(header::CONTENT_LENGTH).is_some() || !filled.is_empty() {
        parts.headers.insert(header::CONTENT_LENGTH, filled.len().into());
    }
    parts.headers.remove(header::TRANSFER_ENCODING);
    Ok(HttpRequest::from_parts(parts, whole(filled.into())))
}

/// Reads a response to its end, as long as the call has time.
async fn read_response(shared: &Shared, response: Response<WasiBody>, rest: Rest) -> Result<Response<WasiBody>, Error> {
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
    Ok(Response::from_parts(parts, whole(body)))
}

fn whole(bytes: bytes::Bytes) -> WasiBody {
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

/// Connects to the first address of the destination that the policy allows and that answers.
async fn connect(shared: &Arc<Shared>, destination: &Destination, method: &str) -> Result<Metered, Error> {
    let mut denied = None;
    let mut failed = None;
    for address in addresses(destination).await? {
        let request = Request::Address {
            scheme: destination.scheme,
            host: &destination.host,
            port: destination.port,
            method,
            address: address.ip(),
        };
        if let Decision::Deny(capability) = decide(&shared.grants, &request) {
            denied = Some(capability);
            continue;
        }
        match TcpStream::connect(address).await {
            Ok(stream) => return secure(shared, destination, stream).await,
            Err(error) => failed = Some(error),
        }
    }
    match (failed, denied) {
        (Some(error), _) => Err(Error::Connect(error)),
        (None, Some(capability)) => {
            shared.deny(capability);
            Err(Error::DestinationIpProhibited)
        }
        (None, None) => Err(Error::DestinationNotFound),
    }
}

async fn addresses(destination: &Destination) -> Result<Vec<SocketAddr>, Error> {
    let port = destination.port;
    match &destination.host {
        Host::Ipv4(address) => Ok(vec![SocketAddr::from((*address, port))]),
        Host::Ipv6(address) => Ok(vec![SocketAddr::from((*address, port))]),
        Host::Domain(name) => match tokio::net::lookup_host((name.as_str(), port)).await {
            Ok(addresses) => Ok(addresses.collect()),
            Err(_) => Err(Error::DnsError { rcode: None, info_code: None }),
        },
    }
}

/// Puts TLS on the connection where the scheme asks for it, and the meter around what the guest sends and gets.
async fn secure(shared: &Arc<Shared>, destination: &Destination, stream: TcpStream) -> Result<Metered, Error> {
    let inner: Box<dyn Duplex> = match destination.scheme {
        Scheme::Http => Box::new(stream),
        Scheme::Https => {
            let name = match &destination.host {
                Host::Domain(name) => rustls::pki_types::ServerName::try_from(name.clone())
                    .map_err(|_| Error::DnsError { rcode: None, info_code: None })?,
                Host::Ipv4(address) => rustls::pki_types::ServerName::from(std::net::IpAddr::V4(*address)),
                Host::Ipv6(address) => rustls::pki_types::ServerName::from(std::net::IpAddr::V6(*address)),
            };
            let configuration = TLS.clone().ok_or(Error::ConfigurationError)?;
            let connector = tokio_rustls::TlsConnector::from(configuration);
            Box::new(connector.connect(name, stream).await.map_err(Error::Tls)?)
        }
    };
    Ok(Metered { inner, shared: shared.clone() })
}

/// TLS with the certificate authorities of the web, or nothing where the cryptography cannot be set up.
static TLS: LazyLock<Option<Arc<rustls::ClientConfig>>> = LazyLock::new(|| {
    let roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.into() };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().ok()?;
    let mut configuration = builder.with_root_certificates(roots).with_no_client_auth();
    configuration.alpn_protocols = vec![b"http/1.1".to_vec()];
    Some(Arc::new(configuration))
});

trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A connection whose bytes count against the call's budget; one byte too many breaks it.
struct Metered {
    inner: Box<dyn Duplex>,
    shared: Arc<Shared>,
}

impl Metered {
    fn count(&self, counter: &AtomicU64, bytes: usize) -> std::io::Result<()> {
        let before = counter.fetch_add(bytes as u64, Ordering::Relaxed);
        if before.saturating_add(bytes as u64) <= self.shared.max_bytes {
            return Ok(());
        }
        self.shared.exhaust();
        Err(std::io::Error::other("the HTTP budget of the call is used up"))
    }
}

impl AsyncRead for Metered {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        match Pin::new(&mut self.inner).poll_read(cx, buffer) {
            Poll::Ready(Ok(())) => {
                let read = buffer.filled().len() - before;
                Poll::Ready(self.count(&self.shared.received, read))
            }
            other => other,
        }
    }
}

impl AsyncWrite for Metered {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        match Pin::new(&mut self.inner).poll_write(cx, bytes) {
            Poll::Ready(Ok(written)) => Poll::Ready(self.count(&self.shared.sent, written).map(|()| written)),
            other => other,
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use hotcell_budget::{Budget, Bytes};
    use http_body_util::{BodyExt as _, Empty, Full};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use wasmtime_wasi_http::{Error, WasiBody};

    use super::{Denials, Egress, HttpRequest, Vault, send};
    use crate::call::Terms;
    use crate::secrets::Secrets;

    type TestResult = Result<(), Box<dyn std::error::Error>>;

    /// A server that counts connections, remembers the last request and gives the same answer to every one.
    struct Server {
        address: SocketAddr,
        connections: Arc<AtomicUsize>,
        request: Arc<std::sync::Mutex<String>>,
    }

    async fn serve(answer: Vec<u8>) -> std::io::Result<Server> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let server = Server { address: listener.local_addr()?, connections: Arc::default(), request: Arc::default() };
        let (connections, request) = (server.connections.clone(), server.request.clone());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::SeqCst);
                let (answer, request) = (answer.clone(), request.clone());
                tokio::spawn(async move {
                    let mut head = vec![0; 4_096];
                    let read = stream.read(&mut head).await.unwrap_or(0);
                    if let Ok(mut request) = request.lock() {
                        *request = String::from_utf8_lossy(&head[..read]).into_owned();
                    }
                    if answer.is_empty() {
                        std::future::pending::<()>().await;
                    }
                    let _ = stream.write_all(&answer).await;
                });
            }
        });
        Ok(server)
    }

    fn answer(status: &str, headers: &str, body: &str) -> Vec<u8> {
        format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{headers}\r\n{body}", body.len()).into_bytes()
    }

    fn egress(grants: &str, budget: &Budget) -> Egress {
        let grants = toml::from_str(grants).unwrap_or_else(|error| panic!("{error}"));
        let secrets = Secrets::new([("KEY".to_owned(), "value-of-the-key".to_owned())]);
        let terms = Terms { grants: Arc::new(grants), secrets, ..Terms::new("test") };
        Egress::new(&terms, budget, Denials::new("test"), Arc::new(Vault::new(&terms, None)))
    }

    /// The status and body of a response.
    async fn get(egress: &Egress, url: &str) -> Result<(u16, String), Error> {
        ask(egress, "GET", url).await
    }

    async fn ask(egress: &Egress, method: &str, url: &str) -> Result<(u16, String), Error> {
        let body: WasiBody = Empty::new().map_err(Error::from).boxed_unsync();
        let request = HttpRequest::builder()
            .method(method)
            .uri(url)
            .header("host", "what.the.guest.says")
            .body(body)
            .map_err(|_| Error::HttpRequestUriInvalid)?;
        let (response, rest) = send(egress.shared.clone(), request, Default::default()).await?;
        tokio::spawn(Box::into_pin(rest));
        let status = response.status().as_u16();
        let body = response.into_body().collect().await?.to_bytes();
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    }

    #[tokio::test]
    async fn attack_42_without_a_grant_nothing_is_connected() -> TestResult {
        let server = serve(answer("200 OK", "", "no")).await?;
        let budget = Budget::default();
        let url = format!("http://{}/path", server.address);
        for grants in ["", "http = ['https://127.0.0.1']", "http = ['http://127.0.0.1']", "http = ['http://localhost']"]
        {
            let egress = egress(grants, &budget);
            for _ in 0..2 {
                assert!(matches!(get(&egress, &url).await, Err(Error::HttpRequestDenied)), "{grants}");
            }
            let report = egress.report();
            let denials: Vec<String> = egress.shared.denials.take().iter().map(ToString::to_string).collect();
            assert_eq!((denials.len(), report.requests, report.sent), (1, 0, Bytes(0)));
            assert!(denials[0].contains(&format!("http = [\"http://{}\"]", server.address)), "{denials:?}");
        }
        assert_eq!(server.connections.load(Ordering::SeqCst), 0);
        Ok(())
    }

    #[tokio::test]
    async fn attack_48_a_granted_request_is_sent_with_the_host_of_its_url_and_counted() -> TestResult {
        let server = serve(answer("200 OK", "", "hello")).await?;
        let budget = Budget::default();
        let egress = egress(&format!("http = ['http://{}']", server.address), &budget);
        let (status, body) = get(&egress, &format!("http://{}/a?b=c", server.address)).await?;
        assert_eq!((status, body.as_str()), (200, "hello"));
        let request = server.request.lock().map(|request| request.clone()).unwrap_or_default();
        assert!(request.starts_with("GET /a?b=c HTTP/1.1\r\n"), "{request}");
        assert!(request.contains(&format!("host: {}\r\n", server.address)), "{request}");
        assert!(!request.contains("what.the.guest.says"), "{request}");
        let report = egress.report();
        assert_eq!((report.requests, report.sent), (1, Bytes::from(request.len())));
        assert!(report.received > Bytes(40) && report.exhausted.is_none() && egress.shared.denials.take().is_empty());
        Ok(())
    }

    /// A request with a secret's placeholder in every place, to a server that answers with what it got.
    async fn send_secret(egress: &Egress, server: &Server) -> Result<(String, String), Box<dyn std::error::Error>> {
        let placeholder = egress.shared.vault.placeholder("KEY").ok_or("it is granted")?;
        let body: WasiBody = Full::from(format!("{{\"key\": \"{placeholder}\"}}")).map_err(Error::from).boxed_unsync();
        let request = HttpRequest::post(format!("http://{}/?key={placeholder}", server.address))
            .header("authorization", format!("Bearer {placeholder}"))
            .header("content-type", "application/json")
            .body(body)?;
        let (response, _) = send(egress.shared.clone(), request, Default::default()).await?;
        let told = response.headers().get("x-told").and_then(|told| told.to_str().ok()).unwrap_or_default().to_owned();
        let body = response.into_body().collect().await?.to_bytes();
        assert!(!format!("{told}{}", String::from_utf8_lossy(&body)).contains("value-of-the-key"));
        let request = server.request.lock().map(|request| request.clone()).unwrap_or_default();
        Ok((request, format!("{told} {}", String::from_utf8_lossy(&body))))
    }

    #[tokio::test]
    async fn attack_55_a_secret_goes_out_to_its_servers_and_never_comes_back() -> TestResult {
        let echo = answer("200 OK", "x-told: value-of-the-key\r\n", "you sent value-of-the-key");
        let server = serve(echo).await?;
        let address = server.address;
        let grants =
            format!("http = ['http://{address}']\nsecret = [{{ name = 'KEY', servers = ['http://{address}'] }}]");
        let (request, told) = send_secret(&egress(&grants, &Budget::default()), &server).await?;
        assert!(request.starts_with("POST /?key=value-of-the-key HTTP/1.1\r\n"), "{request}");
        assert!(request.contains("authorization: Bearer value-of-the-key\r\n"), "{request}");
        assert!(request.ends_with("{\"key\": \"value-of-the-key\"}"), "{request}");
        assert!(request.contains("content-length: 27\r\n"), "{request}");
        assert_eq!(told, "(secret KEY) you sent (secret KEY)");
        Ok(())
    }

    #[tokio::test]
    async fn attack_53_towards_another_server_a_placeholder_stays_what_it_is() -> TestResult {
        let server = serve(answer("200 OK", "", "")).await?;
        let grants = format!(
            "http = ['http://{}']\nsecret = [{{ name = 'KEY', servers = ['https://elsewhere.example'] }}]",
            server.address
        );
        let egress = egress(&grants, &Budget::default());
        let (request, _) = send_secret(&egress, &server).await?;
        assert_eq!(request.matches("hotcell-secret-").count(), 3, "{request}");
        assert!(!request.contains("value-of-the-key"), "{request}");
        let denials: Vec<String> = egress.shared.denials.take().iter().map(ToString::to_string).collect();
        let line = format!("secret = [{{ name = \"KEY\", servers = [\"http://{}\"] }}]", server.address);
        assert!(denials.len() == 1 && denials[0].contains(&line), "{denials:?}");
        Ok(())
    }

    #[tokio::test]
    async fn attack_46_a_redirect_is_an_answer_and_not_followed() -> TestResult {
        let elsewhere = serve(answer("200 OK", "", "elsewhere")).await?;
        let location = format!("location: http://{}/\r\n", elsewhere.address);
        let server = serve(answer("302 Found", &location, "")).await?;
        let budget = Budget::default();
        let egress = egress(&format!("http = ['http://{}']", server.address), &budget);
        let (status, _) = get(&egress, &format!("http://{}/", server.address)).await?;
        assert_eq!((status, elsewhere.connections.load(Ordering::SeqCst)), (302, 0));
        Ok(())
    }

    #[tokio::test]
    async fn attack_52_requests_and_bytes_are_counted_out() -> TestResult {
        let server = serve(answer("200 OK", "", &"x".repeat(100_000))).await?;
        let (grants, url) = (format!("http = ['http://{}']", server.address), format!("http://{}/", server.address));
        let budget = Budget { http_requests: 2, ..Budget::default() };
        let few = egress(&grants, &budget);
        assert!(get(&few, &url).await.is_ok() && get(&few, &url).await.is_ok());
        assert!(few.report().exhausted.is_none());
        assert!(matches!(get(&few, &url).await, Err(Error::ConnectionLimitReached)));
        assert_eq!((few.report().requests, server.connections.load(Ordering::SeqCst)), (2, 2));
        assert!(few.report().exhausted.is_some_and(|text| text.contains("2 HTTP requests")));

        let budget = Budget { http_bytes: Bytes(50_000), ..Budget::default() };
        let small = egress(&grants, &budget);
        assert!(get(&small, &url).await.is_err());
        assert!(small.report().exhausted.is_some());
        Ok(())
    }

    #[tokio::test]
    async fn a_server_that_never_answers_is_given_up_with_the_call() -> TestResult {
        let server = serve(Vec::new()).await?;
        let budget = Budget { wall_clock: Duration::from_millis(50), ..Budget::default() };
        let egress = egress(&format!("http = ['http://{}']", server.address), &budget);
        let outcome = get(&egress, &format!("http://{}/", server.address)).await;
        assert!(matches!(outcome, Err(Error::HttpResponseTimeout | Error::ConnectionTimeout)), "{outcome:?}");
        Ok(())
    }

    #[tokio::test]
    async fn attack_44_47_49_odd_urls_are_read_once_and_canonically() {
        let budget = Budget::default();
        let egress = egress("http = ['http://granted.example', 'http://[::1]:1']", &budget);
        let cases = [
            ("http://granted.example@127.0.0.1/", "", Error::HttpRequestUriInvalid),
            ("http://granted.example:pw@127.0.0.1/", "", Error::HttpRequestUriInvalid),
            ("http://2130706433/", "http://127.0.0.1", Error::HttpRequestDenied),
            ("http://0x7f.1/", "http://127.0.0.1", Error::HttpRequestDenied),
            ("http://0177.0.0.1/", "http://127.0.0.1", Error::HttpRequestDenied),
            ("http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]", Error::HttpRequestDenied),
            ("http://granted.example./", "http://granted.example.", Error::HttpRequestDenied),
            ("http://granted.example:81/", "http://granted.example:81", Error::HttpRequestDenied),
            ("https://granted.example/", "https://granted.example", Error::HttpRequestDenied),
        ];
        for (url, server, expected) in cases {
            let outcome = get(&egress, url).await;
            assert_eq!(outcome.map_err(|error| error.to_string()), Err(expected.to_string()), "{url}");
            let denials = egress.shared.denials.take();
            assert!(
                server.is_empty() || denials.iter().any(|denial| denial.to_string().contains(&format!("\"{server}\""))),
                "{url}: {denials:?}"
            );
        }
        let outcome = ask(&egress, "CONNECT", "http://granted.example/").await;
        assert!(matches!(outcome, Err(Error::HttpRequestMethodInvalid)), "{outcome:?}");
        assert_eq!(egress.report().requests, 0);
    }
}
