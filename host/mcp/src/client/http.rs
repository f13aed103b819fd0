//! The way to servers over HTTP, and what its failures are called.
//!
//! Whoever has rules about which addresses may be reached brings a client that keeps them; this makes the plain one.

use std::collections::{BTreeMap, HashMap};
use std::error::Error as StdError;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hotcell_tls::{TlsFiles, client_config};
use http::{HeaderName, HeaderValue, StatusCode};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig, StreamableHttpError,
};
use rustls::RootCertStore;
use thiserror::Error;
use url::{Host, Url};

use super::ending::Ending;
use super::paced::Paced;
use crate::error::McpError;
use crate::settings::{Limits, ServerSettings, Transport};
use crate::text::shown;

/// How long connecting may take, unless the server has less time in all.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// The longest time between two attempts to get a lost stream back.
const RETRY_EVERY: Duration = Duration::from_secs(60);
/// How many requests may be under way at a time; more have to wait.
const MOST_REQUESTS: usize = 64;

/// A way to a service over HTTP.
pub type HttpClient = reqwest::Client;

/// What a service answered over HTTP.
pub type HttpReply = reqwest::Response;

/// Whether a connection to this address may be made.
pub type AddressCheck = Arc<dyn Fn(IpAddr) -> bool + Send + Sync>;

/// A client for the server that these settings describe: no redirects, no second attempts, no proxy, and the certificates that
/// are set.
///
/// # Errors
/// A certificate or key cannot be read or used, or the settings are those of a program.
pub fn http_client(settings: &ServerSettings) -> Result<reqwest::Client, McpError> {
    client(settings, None)
}

/// The same, which connects to addresses that `allowed` allows and to no others, whatever the server's name means at the moment.
///
/// # Errors
/// As with [`http_client`], and when the settings name an address that is not allowed.
pub fn http_client_within(settings: &ServerSettings, allowed: AddressCheck) -> Result<reqwest::Client, McpError> {
    client(settings, Some(allowed))
}

fn client(settings: &ServerSettings, allowed: Option<AddressCheck>) -> Result<reqwest::Client, McpError> {
    let wrong = |reason: String| McpError::Settings { server: settings.name.clone(), reason };
    let (Transport::StreamableHttp { url, tls, .. } | Transport::Sse { url, tls, .. }) = &settings.transport else {
        return Err(wrong("it is a program and is not reached over HTTP".to_owned()));
    };
    let mut builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls_config(url, tls).map_err(wrong)?)
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .no_proxy()
        .connect_timeout(CONNECT_WITHIN.min(settings.limits.connect))
        .user_agent(concat!("hotcell/", env!("CARGO_PKG_VERSION")));
    if let Some(allowed) = allowed {
        // An address that is written out is not looked up.
        let written_out = match url.host() {
            Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
            Some(Host::Domain(_)) | None => None,
        };
        if written_out.is_some_and(|address| !allowed(address)) {
            return Err(wrong(NOT_GRANTED.to_owned()));
        }
        builder = builder.dns_resolver(Allowed(allowed));
    }
    builder.build().map_err(|error| wrong(explain(&error)))
}

/// What is said of a server whose name leads where nothing was granted.
const NOT_GRANTED: &str = "its name leads into a private network, which is not granted; grant it with `private = true`";

/// Looks names up and keeps the addresses that are allowed: the connection goes to one that was looked at.
struct Allowed(AddressCheck);

impl Resolve for Allowed {
    fn resolve(&self, name: Name) -> Resolving {
        let allowed = self.0.clone();
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let kept: Vec<SocketAddr> = found.into_iter().filter(|address| allowed(address.ip())).collect();
            if kept.is_empty() {
                return Err(io::Error::other(NOT_GRANTED).into());
            }
            Ok(Box::new(kept.into_iter()) as Addrs)
        })
    }
}

fn tls_config(url: &Url, files: &TlsFiles) -> Result<rustls::ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    if files.ca_file.is_none() && url.scheme() == "https" {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            return Err("this machine trusts no certificates; name those to trust in `tls.ca_file`".to_owned());
        }
    }
    client_config(files, || roots).map_err(|error| error.to_string())
}

/// The headers of every request. The settings were checked when they were read, but may come from elsewhere.
pub(crate) fn header_map(headers: &BTreeMap<String, String>) -> Result<HashMap<HeaderName, HeaderValue>, String> {
    let read = |(name, value): (&String, &String)| {
        let parsed = HeaderName::try_from(name).ok().zip(HeaderValue::try_from(value).ok());
        let (name, mut value) = parsed.ok_or_else(|| format!("`headers.{name}` is not a valid header"))?;
        value.set_sensitive(true);
        Ok((name, value))
    };
    headers.iter().map(read).collect()
}

/// A connection by Streamable HTTP; it is opened by the first message.
pub(crate) fn streamable(
    client: reqwest::Client,
    url: &Url,
    headers: &BTreeMap<String, String>,
    limits: &Limits,
    ending: Arc<Ending>,
) -> Result<StreamableHttpClientTransport<Paced>, String> {
    let mut retries = ExponentialBackoff::default();
    retries.max_delay = Some(RETRY_EVERY);
    let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str());
    config.custom_headers = header_map(headers)?;
    config.retry_config = Arc::new(retries);
    config.max_concurrent_requests = MOST_REQUESTS;
    Ok(StreamableHttpClientTransport::with_client(Paced::new(client, limits.message_bytes, ending), config))
}

/// What a failed request is called. Never with its address, which may hold a key.
pub(crate) fn explain(error: &reqwest::Error) -> String {
    if let Some(status) = error.status() {
        return format!("HTTP {status}");
    }
    let mut deepest = None;
    let mut cause = error.source();
    while let Some(current) = cause {
        deepest = Some(current);
        cause = current.source();
    }
    match deepest {
        Some(cause) => shown(&cause.to_string()),
        None if error.is_timeout() => "it took too long".to_owned(),
        None => "the request failed".to_owned(),
    }
}

/// A server over HTTP that gave no answer, or this status. Where nobody may be asked, that does not change.
pub(crate) fn unreachable(server: &str, reason: String, status: Option<u16>) -> McpError {
    let server = server.to_owned();
    match reason == NOT_GRANTED {
        true => McpError::Settings { server, reason },
        false => McpError::Unreachable { server, reason, status },
    }
}

/// An answer over HTTP that is no success.
#[derive(Debug, Error)]
#[error("HTTP {0}")]
pub(crate) struct Refused(pub(crate) StatusCode);

/// The status in what the library says of an answer: `HTTP 404 Not Found: ...`.
fn status_in(text: &str) -> Option<u16> {
    text.strip_prefix("HTTP ")?.get(..3)?.parse().ok()
}

/// What a failure to send or to receive over HTTP is called.
pub(crate) fn failure(server: &str, error: &(dyn StdError + Send + Sync + 'static)) -> McpError {
    let unauthorized = || McpError::Unauthorized { server: server.to_owned() };
    let mut cause: Option<&(dyn StdError + 'static)> = Some(error);
    let (mut known, mut refused) = (None, None);
    while let Some(current) = cause {
        known = known.or(current.downcast_ref::<StreamableHttpError<reqwest::Error>>());
        let inner = current.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        refused = refused.or(inner.and_then(|inner| inner.downcast_ref::<Refused>()));
        cause = current.source();
    }
    let mut status = refused.map(|Refused(status)| status.as_u16());
    let reason = match known {
        Some(StreamableHttpError::AuthRequired(_) | StreamableHttpError::InsufficientScope(_)) => {
            return unauthorized();
        }
        Some(StreamableHttpError::UnexpectedServerResponse(text)) if text.starts_with("HTTP 401") => {
            return unauthorized();
        }
        Some(StreamableHttpError::Client(error)) => {
            status = error.status().map(|status| status.as_u16());
            explain(error)
        }
        Some(StreamableHttpError::HttpStatus(error)) => {
            status = Some(error.status);
            shown(&error.to_string())
        }
        Some(StreamableHttpError::UnexpectedServerResponse(text)) => {
            status = status_in(text);
            shown(&format!("unexpected server response: {text}"))
        }
        Some(other) => shown(&other.to_string()),
        None => shown(&error.to_string()),
    };
    unreachable(server, reason, status)
}

#[cfg(test)]
mod tests {
    use rmcp::transport::streamable_http_client::HttpStatusError;

    use super::*;
    use crate::error::FailedExchange;

    fn settings(url: &str, tls: TlsFiles) -> ServerSettings {
        let url = Url::parse(url).expect("a URL");
        let transport = Transport::StreamableHttp { url, headers: BTreeMap::new(), tls };
        ServerSettings { name: "s".to_owned(), transport, limits: Limits::default() }
    }

    #[tokio::test]
    async fn a_name_leads_only_where_it_is_allowed() {
        let none: AddressCheck = Arc::new(|_| false);
        let lookup =
            async |allowed: AddressCheck| match Allowed(allowed).resolve("localhost".parse().expect("a name")).await {
                Ok(found) => Ok(found.count()),
                Err(error) => Err(error),
            };
        assert!(lookup(none.clone()).await.is_err_and(|error| error.to_string().contains("private = true")));
        assert!(lookup(Arc::new(|address: IpAddr| address.is_loopback())).await.is_ok_and(|found| found > 0));
        // What is written out is never looked up.
        let literal = settings("http://127.0.0.1:1/mcp", TlsFiles::default());
        let refused = http_client_within(&literal, none).expect_err("it is not allowed").to_string();
        assert!(refused.contains("private = true"), "{refused}");
        assert!(http_client_within(&literal, Arc::new(|_| true)).is_ok());
    }

    #[test]
    fn a_client_needs_readable_certificates() {
        assert!(http_client(&settings("http://localhost:1/mcp", TlsFiles::default())).is_ok());
        let missing = TlsFiles { ca_file: Some("/nowhere/ca.pem".into()), ..TlsFiles::default() };
        let error = http_client(&settings("https://localhost:1/mcp", missing)).expect_err("no file").to_string();
        assert!(error.contains("`s`") && error.contains("/nowhere/ca.pem"), "{error}");
    }

    #[test]
    fn an_answer_that_is_no_success_is_known_by_its_status() {
        let lost = |error: Box<dyn StdError + Send + Sync>| failure("s", &*error).failed_exchange();
        let of_library = |error: StreamableHttpError<reqwest::Error>| lost(Box::new(error));
        let status = |status| Some(FailedExchange::Status(status));
        let text = |text: &'static str| StreamableHttpError::UnexpectedServerResponse(text.into());
        assert_eq!(of_library(text("HTTP 404 Not Found: not here")), status(404));
        assert_eq!(of_library(text("HTTP 401 Unauthorized: who?")), status(401));
        assert_eq!(of_library(text("a page")), Some(FailedExchange::NoAnswer));
        assert_eq!(of_library(StreamableHttpError::HttpStatus(HttpStatusError::new(503, None))), status(503));
        assert_eq!(lost(Box::new(io::Error::other(Refused(StatusCode::CONFLICT)))), status(409));
        assert_eq!(unreachable("s", NOT_GRANTED.to_owned(), None).failed_exchange(), None);
    }

    #[test]
    fn headers_are_not_shown() {
        let headers = BTreeMap::from([("Authorization".to_owned(), "Bearer s3cret".to_owned())]);
        let map = header_map(&headers).expect("headers");
        assert!(!format!("{map:?}").contains("s3cret"));
        assert!(header_map(&BTreeMap::from([("a b".to_owned(), "c".to_owned())])).is_err());
    }
}
