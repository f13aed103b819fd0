//! HTTP to a provider: what is allowed on the way, and what a failure of it is called.
//!
//! The provider library encodes requests and decodes replies; it sends through this. So the rules are here and
//! nowhere else: no redirects, no second attempts, a limit on bytes, on the time to connect and on silence, no private
//! address where nothing grants it, and no proxy unless the operator says so.

use std::{
    collections::HashMap,
    error::Error as StdError,
    io,
    net::{IpAddr, SocketAddr},
    sync::{Mutex, OnceLock, PoisonError},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use hotcell_tls::{TlsFiles, client_config, public_roots};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use rig_core::http_client::{
    BoxedStream, Error as LibraryError, HttpClientExt, LazyBody, MultipartForm, Result as LibraryResult,
    StreamingResponse,
};
use thiserror::Error;
use url::{Host, Url};

use super::bounded::look_at;
use super::lines::WholeLines;
use crate::untrusted::shown;

/// Limits on every exchange with a provider, whatever a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpLimits {
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long a server may stay silent, before its reply and in the middle of it.
    pub idle_timeout: Duration,
    /// The most bytes a reply may have.
    pub max_response_bytes: u64,
}

impl Default for HttpLimits {
    /// 10 seconds to connect, 10 minutes of silence (models that think send nothing meanwhile), 32 MiB.
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(600),
            max_response_bytes: 32 << 20,
        }
    }
}

/// Why an exchange failed below HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum TransportError {
    #[error("timed out after {0:?}")]
    TimedOut(Duration),
    #[error("connection refused")]
    Refused,
    #[error("connection reset")]
    Reset,
    #[error("more than {0} bytes")]
    TooLarge(u64),
    /// What was answered is out of bounds
    #[error("{0}")]
    Unusable(String),
    #[error("{0}")]
    Other(String),
}

impl From<TransportError> for LibraryError {
    fn from(error: TransportError) -> Self {
        Self::instance(error)
    }
}

/// Who says where a server is, and what its name may lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Way {
    /// The operator, who may mean any address
    Operators,
    /// The file of an agent: public addresses
    Public,
    /// The file of an agent, and it was granted that the name leads into a private network
    Private,
}

/// The connections of all providers, opened when first used.
#[derive(Debug)]
pub(crate) struct Connections {
    limits: HttpLimits,
    proxies: bool,
    is_private: fn(IpAddr) -> bool,
    direct: OnceLock<reqwest::Client>,
    proxied: OnceLock<reqwest::Client>,
    public: OnceLock<reqwest::Client>,
    /// Those with certificates of their own
    certified: Mutex<HashMap<(Way, TlsFiles), reqwest::Client>>,
}

/// How many clients with certificates of their own are kept: more means that they are made again.
const MOST_CERTIFIED: usize = 64;

impl Connections {
    pub(crate) fn new(limits: HttpLimits) -> Self {
        let is_private = |address: IpAddr| address.is_loopback();
        let [direct, proxied, public] = [const { OnceLock::new() }; 3];
        Self { limits, proxies: false, is_private, direct, proxied, public, certified: Mutex::default() }
    }

    /// The same, through the proxies that the environment names.
    pub(crate) fn through_proxies(self) -> Self {
        Self { proxies: true, ..self }
    }

    /// The same, with a rule for addresses.
    pub(crate) fn telling_private(self, is_private: fn(IpAddr) -> bool) -> Self {
        Self { is_private, ..self }
    }

    /// A transport for requests to `url`; `tls` says how both sides prove who they are, beyond what any server does.
    pub(crate) fn transport(&self, url: &Url, way: Way, tls: Option<&TlsFiles>) -> Result<Transport, TransportError> {
        // An address that is written out is not looked up, so that no look-up is there to refuse it.
        let written_out = match url.host() {
            Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
            Some(Host::Domain(_)) | None => None,
        };
        if way == Way::Public && written_out.is_some_and(self.is_private) {
            return Err(TransportError::Other(format!("`{url}` is {NOT_GRANTED}")));
        }
        let public = (way == Way::Public).then_some(self.is_private);
        if let Some(files) = tls {
            if url.scheme() != "https" {
                return Err(TransportError::Other("certificates need an address with `https://`".to_owned()));
            }
            let mut certified = self.certified.lock().unwrap_or_else(PoisonError::into_inner);
            let key = (way, files.clone());
            let client = match certified.get(&key) {
                Some(client) => client.clone(),
                None => {
                    let client = build_client(self.limits, false, public, files)?;
                    if certified.len() >= MOST_CERTIFIED {
                        certified.clear();
                    }
                    certified.insert(key, client.clone());
                    client
                }
            };
            return Ok(Transport { client, limits: self.limits });
        }
        let (slot, proxies) = match way {
            Way::Public => (&self.public, false),
            Way::Operators if self.proxies && !is_loopback(url) => (&self.proxied, true),
            Way::Operators | Way::Private => (&self.direct, false),
        };
        let client = match slot.get() {
            Some(client) => client.clone(),
            None => {
                let client = build_client(self.limits, proxies, public, &TlsFiles::default())?;
                slot.get_or_init(|| client).clone()
            }
        };
        Ok(Transport { client, limits: self.limits })
    }
}

/// What is said of a name that leads where nothing was granted.
const NOT_GRANTED: &str = "in a private network, which is not granted";

/// Looks names up and keeps the addresses that are public: the connection goes to one that was looked at.
struct PublicAddresses(fn(IpAddr) -> bool);

impl Resolve for PublicAddresses {
    fn resolve(&self, name: Name) -> Resolving {
        let is_private = self.0;
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let public: Vec<SocketAddr> = found.into_iter().filter(|address| !is_private(address.ip())).collect();
            if public.is_empty() {
                return Err(io::Error::other(format!("`{}` is {NOT_GRANTED}", name.as_str())).into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

fn build_client(
    limits: HttpLimits,
    proxies: bool,
    public: Option<fn(IpAddr) -> bool>,
    files: &TlsFiles,
) -> Result<reqwest::Client, TransportError> {
    let other = |error: &dyn StdError| TransportError::Other(shown(&error.to_string()));
    let tls = client_config(files, public_roots).map_err(|error| other(&error))?;
    let mut builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .connect_timeout(limits.connect_timeout)
        .read_timeout(limits.idle_timeout)
        .user_agent(concat!("hotcell/", env!("CARGO_PKG_VERSION")));
    if !proxies {
        builder = builder.no_proxy();
    }
    if let Some(is_private) = public {
        builder = builder.dns_resolver(PublicAddresses(is_private));
    }
    builder.build().map_err(|error| other(&error))
}

/// One provider's way out.
#[derive(Debug, Clone)]
pub(crate) struct Transport {
    client: reqwest::Client,
    limits: HttpLimits,
}

impl Transport {
    /// The client behind it.
    pub(crate) fn client(&self) -> reqwest::Client {
        self.client.clone()
    }

    /// Takes the next piece of a body, of which so many bytes were received.
    pub(crate) async fn next_piece(
        &self,
        response: &mut reqwest::Response,
        received: &mut u64,
    ) -> Result<Option<Bytes>, TransportError> {
        next_piece(response, received, self.limits).await
    }

    /// What went wrong with a request that its client sent.
    pub(crate) fn failure(&self, error: reqwest::Error) -> TransportError {
        Self::classify(self.limits, error)
    }

    /// The error's cause in the words of this module. The URL is left out: Gemini's holds the key.
    fn classify(limits: HttpLimits, error: reqwest::Error) -> TransportError {
        let error = error.without_url();
        if error.is_timeout() {
            let limit = if error.is_connect() { limits.connect_timeout } else { limits.idle_timeout };
            return TransportError::TimedOut(limit);
        }
        let mut cause: Option<&(dyn StdError + 'static)> = Some(&error);
        let mut deepest = error.to_string();
        while let Some(current) = cause {
            if let Some(known) = known_cause(current) {
                return known;
            }
            deepest = current.to_string();
            cause = current.source();
        }
        TransportError::Other(shown(&deepest))
    }

    async fn execute(
        client: reqwest::Client,
        limits: HttpLimits,
        request: Result<reqwest::Request, reqwest::Error>,
    ) -> Result<reqwest::Response, TransportError> {
        let request = request.map_err(|error| Self::classify(limits, error))?;
        client.execute(request).await.map_err(|error| Self::classify(limits, error))
    }
}

fn known_cause(error: &(dyn StdError + 'static)) -> Option<TransportError> {
    if let Some(error) = error.downcast_ref::<io::Error>() {
        return match error.kind() {
            io::ErrorKind::ConnectionRefused => Some(TransportError::Refused),
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::UnexpectedEof => Some(TransportError::Reset),
            _ => None,
        };
    }
    let error = error.downcast_ref::<hyper::Error>()?;
    (error.is_incomplete_message() || error.is_closed() || error.is_canceled()).then_some(TransportError::Reset)
}

fn parts_of(response: &reqwest::Response) -> http::response::Builder {
    let mut builder = http::Response::builder().status(response.status());
    if let Some(headers) = builder.headers_mut() {
        headers.clone_from(response.headers());
    }
    builder
}

/// Takes the next piece of a body, counting what has come so far.
async fn next_piece(
    response: &mut reqwest::Response,
    received: &mut u64,
    limits: HttpLimits,
) -> Result<Option<Bytes>, TransportError> {
    let piece = response.chunk().await.map_err(|error| Transport::classify(limits, error))?;
    if let Some(piece) = &piece {
        *received = received.saturating_add(piece.len() as u64);
        if *received > limits.max_response_bytes {
            return Err(TransportError::TooLarge(limits.max_response_bytes));
        }
    }
    Ok(piece)
}

impl HttpClientExt for Transport {
    fn send<T, U>(
        &self,
        request: http::Request<T>,
    ) -> impl Future<Output = LibraryResult<http::Response<LazyBody<U>>>> + Send + 'static
    where
        T: Into<Bytes> + Send,
        U: From<Bytes> + Send + 'static,
    {
        let request = reqwest::Request::try_from(request.map(Into::<Bytes>::into));
        let (client, limits) = (self.client.clone(), self.limits);
        async move {
            let mut response = Self::execute(client, limits, request).await?;
            let builder = parts_of(&response);
            let body: LazyBody<U> = Box::pin(async move {
                let (mut body, mut received) = (BytesMut::new(), 0);
                while let Some(piece) = next_piece(&mut response, &mut received, limits).await? {
                    body.extend_from_slice(&piece);
                }
                // The library reads it before its wire sees it.
                if let Ok(text) = std::str::from_utf8(&body) {
                    look_at(text, &mut 0).map_err(|error| TransportError::Unusable(shown(&error.to_string())))?;
                }
                Ok(U::from(body.freeze()))
            });
            Ok(builder.body(body)?)
        }
    }

    fn send_multipart<U>(
        &self,
        _request: http::Request<MultipartForm>,
    ) -> impl Future<Output = LibraryResult<http::Response<LazyBody<U>>>> + Send + 'static
    where
        U: From<Bytes> + Send + 'static,
    {
        // Forms belong to transcription and image editing, which this crate does not ask for.
        futures::future::ready(Err(TransportError::Other("forms are not sent".to_owned()).into()))
    }

    async fn send_streaming<T>(&self, request: http::Request<T>) -> LibraryResult<StreamingResponse>
    where
        T: Into<Bytes> + Send,
    {
        let request = reqwest::Request::try_from(request.map(Into::<Bytes>::into));
        let limits = self.limits;
        let response = Self::execute(self.client.clone(), limits, request).await?;
        let builder = parts_of(&response);
        let begin = (response, 0, WholeLines::default());
        let pieces = futures::stream::unfold(Some(begin), move |state| async move {
            let (mut response, mut received, mut lines) = state?;
            loop {
                if let Some(whole) = lines.next() {
                    return Some((Ok(whole), Some((response, received, lines))));
                }
                match next_piece(&mut response, &mut received, limits).await {
                    Ok(Some(piece)) => lines.push(&piece),
                    Ok(None) => return lines.rest().map(|rest| (Ok(rest), None)),
                    Err(error) => return Some((Err(LibraryError::from(error)), None)),
                }
            }
        });
        let body: BoxedStream = Box::pin(pieces);
        Ok(builder.body(body)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_reached_without_a_proxy() {
        for (url, expected) in [
            ("http://localhost:1/v1", true),
            ("http://127.0.0.9/", true),
            ("http://[::1]:8080/", true),
            ("http://localhost.example/", false),
            ("https://api.example/", false),
            ("http://10.0.0.1/", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(url).expect("a URL")), expected, "{url}");
        }
    }

    #[test]
    fn proxies_of_the_environment_are_used_where_the_operator_says_so() {
        let url = Url::parse("https://api.example/").expect("a URL");
        let connections = Connections::new(HttpLimits::default());
        assert!(connections.transport(&url, Way::Operators, None).is_ok());
        assert!(connections.proxied.get().is_none() && connections.direct.get().is_some());
        let connections = Connections::new(HttpLimits::default()).through_proxies();
        for way in [Way::Operators, Way::Public, Way::Private] {
            assert!(connections.transport(&url, way, None).is_ok());
        }
        assert!(
            [&connections.proxied, &connections.public, &connections.direct].iter().all(|slot| slot.get().is_some())
        );
    }

    #[tokio::test]
    async fn a_name_in_an_agents_file_leads_to_no_private_address() {
        let resolve = async |name: &str| match PublicAddresses(|address| address.is_loopback())
            .resolve(name.parse().expect("a name"))
            .await
        {
            Ok(found) => Ok(found.count()),
            Err(error) => Err(error),
        };
        let refused = resolve("localhost").await.expect_err("it is this machine").to_string();
        assert!(refused.contains("in a private network"), "{refused}");
        let connections = Connections::new(HttpLimits::default());
        let url = Url::parse("http://127.0.0.1:1/v1").expect("a URL");
        assert!(connections.transport(&url, Way::Public, None).is_err());
        assert!(
            connections.transport(&url, Way::Private, None).is_ok()
                && connections.transport(&url, Way::Operators, None).is_ok()
        );
    }
}
