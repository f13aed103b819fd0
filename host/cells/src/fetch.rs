//! Requests of the host itself on behalf of something that was granted servers: the same policy, budget and connection
//! as for a guest, without a guest.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hotcell_budget::Usage;
use http::uri::InvalidUri;
use http::{HeaderMap, HeaderName, HeaderValue, Request as HttpRequest, header};
use http_body_util::BodyExt as _;
use url::Url;
use wasmtime_wasi_http::{Error, WasiBody};

use crate::call::Terms;
use crate::denials::Denials;
use crate::egress::{Egress, get, get_whole, whole};
use crate::policy::Denial;
use crate::secrets::Vault;
use crate::text::one_line;

/// How often a server may send on to another place.
const REDIRECTS: usize = 5;

/// What was found at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The `content-type`; empty if the server gives none.
    pub content_type: String,
    /// The body.
    pub bytes: Vec<u8>,
}

/// Which part of a request is none.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The address is none
    #[error("`{url}` is not a valid address: {cause}")]
    Address {
        /// What is said
        url: String,
        /// Why it is none
        #[source]
        cause: url::ParseError,
    },
    /// The address is none that goes over HTTP
    #[error("`{url}` is not a valid address: {cause}")]
    Uri {
        /// The address
        url: String,
        /// Why it is none
        #[source]
        cause: InvalidUri,
    },
    /// The method is none
    #[error("`{0}` is not an HTTP method")]
    Method(String),
    /// A header is for whoever keeps up the connection to write
    #[error("the header `{0}` belongs to the connection and cannot be set")]
    OfTheConnection(String),
    /// The name of a header is none
    #[error("`{0}` is not a valid header name")]
    HeaderName(String),
    /// The value of a header is none
    #[error("the value of the header `{0}` has characters that no header may have")]
    HeaderValue(String),
}

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// A part of it is none
    #[error(transparent)]
    Request(#[from] RequestError),
    /// It is not granted
    #[error("{0}")]
    Denied(Box<Denial>),
    /// It needs more than its budget gives
    #[error("`{url}`: {limit}")]
    Exhausted {
        /// The address
        url: String,
        /// The limit, in words
        limit: String,
    },
    /// Nobody answers, or not as one does over HTTP
    #[error("`{url}` cannot be fetched: {cause}")]
    Failed {
        /// The address
        url: String,
        /// Why not
        #[source]
        cause: Error,
    },
    /// The answer is late
    #[error("the server did not answer within {} s", .0.as_secs_f64())]
    Late(Duration),
}

impl SendError {
    /// Whether it may be gone a moment later: nobody answered, or too late. What is not granted stays so.
    pub fn may_pass(&self) -> bool {
        matches!(self, SendError::Failed { .. } | SendError::Late(_))
    }
}

/// Why there is nothing to be had at an address.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// A request has no answer
    #[error(transparent)]
    Send(#[from] SendError),
    /// The server says that it has nothing
    #[error("`{url}` answered with the status {status}")]
    Status {
        /// The address
        url: String,
        /// The status
        status: u16,
    },
    /// The server sends on to what is no address
    #[error("`{url}` redirects to `{place}`: {cause}")]
    SendsOn {
        /// The address
        url: String,
        /// What it names
        place: String,
        /// Why that is none
        #[source]
        cause: url::ParseError,
    },
    /// The servers send on and on
    #[error("more than {REDIRECTS} redirects led to `{0}`")]
    TooFar(String),
}

/// Gets what is at `url`, within what `terms` grant and within their budget. Redirects are followed, each asked of the
/// policy as the first request was.
///
/// # Errors
/// Why it cannot be had; a denial says which grant would allow it.
pub async fn fetch(terms: &Terms, url: &str) -> Result<Fetched, FetchError> {
    let denials = Denials::of(terms);
    let vault = Arc::new(Vault::new(&terms.secrets, &terms.grants, None));
    let egress = Egress::new(terms, &terms.budget, denials.clone(), vault);
    let mut url = parse(url).map_err(SendError::from)?;
    for _ in 0..=REDIRECTS {
        let answer = once(&egress, &url).await.map_err(|error| failure(&url, error, &denials, &egress))?;
        match answer {
            Answer::Found(found) => return Ok(found),
            Answer::Status(status) => return Err(FetchError::Status { url: url.into(), status }),
            Answer::Elsewhere(place) => match url.join(&place) {
                Ok(next) => url = next,
                Err(cause) => return Err(FetchError::SendsOn { url: url.into(), place, cause }),
            },
        }
    }
    Err(FetchError::TooFar(url.into()))
}

/// A request of the host's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnRequest {
    /// The method.
    pub method: String,
    /// The address.
    pub url: String,
    /// The headers.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// The answer to a request of the host's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnReply {
    /// The status.
    pub status: u16,
    /// The `content-type`; empty if the server gives none.
    pub content_type: String,
    /// Where a redirect leads.
    pub location: Option<String>,
    /// The body.
    pub body: Vec<u8>,
}

/// Sends one request, within what `terms` grant and within their budget; a redirect is an answer. Gives what was used in
/// any case.
///
/// # Errors
/// Why there is no answer; a denial says which grant would allow it.
pub async fn send(terms: &Terms, request: OwnRequest) -> (Result<OwnReply, SendError>, Usage) {
    let denials = Denials::of(terms);
    let vault = Arc::new(Vault::new(&terms.secrets, &terms.grants, None));
    let egress = Egress::new(terms, &terms.budget, denials.clone(), vault);
    let result = match tokio::time::timeout(terms.budget.wall_clock, send_by(&egress, &denials, request)).await {
        Ok(result) => result,
        Err(_) => Err(SendError::Late(terms.budget.wall_clock)),
    };
    let report = egress.report();
    let usage = Usage {
        http_requests: report.requests,
        http_sent: report.sent,
        http_received: report.received,
        ..Usage::default()
    };
    (result, usage)
}

async fn send_by(egress: &Egress, denials: &Denials, request: OwnRequest) -> Result<OwnReply, SendError> {
    let url = parse(&request.url)?;
    let headers = request.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    let mut own = compose(&request.method, &url, headers, request.body)?;
    introduce(own.headers_mut());
    let answer = get_whole(egress, own).await.map_err(|error| failure(&url, error, denials, egress))?;
    let (parts, body) = answer.into_parts();
    let content_type = text(&parts.headers, header::CONTENT_TYPE);
    let location = Some(text(&parts.headers, header::LOCATION)).filter(|place| !place.is_empty());
    Ok(OwnReply { status: parts.status.as_u16(), content_type, location, body: body.to_vec() })
}

/// Headers that whoever keeps up the connection writes.
pub(crate) const OF_THE_CONNECTION: [&str; 8] =
    ["host", "content-length", "transfer-encoding", "connection", "upgrade", "keep-alive", "proxy-connection", "te"];

/// Adds what every request of the host says, unless it says something else.
fn introduce(headers: &mut HeaderMap) {
    headers.entry(header::ACCEPT).or_insert(HeaderValue::from_static("*/*"));
    headers.entry(header::USER_AGENT).or_insert(HeaderValue::from_static("hotcell"));
}

/// A request made of texts that others wrote.
///
/// # Errors
/// Which part is none.
pub(crate) fn compose<'a>(
    method: &str,
    url: &Url,
    headers: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    body: Vec<u8>,
) -> Result<HttpRequest<WasiBody>, RequestError> {
    let mut request = HttpRequest::new(whole(body.into()));
    let capitals = method.trim().to_ascii_uppercase();
    *request.method_mut() = capitals.parse().map_err(|_| RequestError::Method(one_line(method, 100)))?;
    let no_uri = |cause| RequestError::Uri { url: url.to_string(), cause };
    *request.uri_mut() = url.as_str().parse().map_err(no_uri)?;
    for (name, value) in headers {
        let shown = one_line(name, 100);
        if OF_THE_CONNECTION.iter().any(|own| name.eq_ignore_ascii_case(own)) {
            return Err(RequestError::OfTheConnection(shown));
        }
        let Ok(key) = name.parse::<HeaderName>() else { return Err(RequestError::HeaderName(shown)) };
        let Ok(value) = HeaderValue::from_bytes(value) else { return Err(RequestError::HeaderValue(shown)) };
        request.headers_mut().append(key, value);
    }
    Ok(request)
}

enum Answer {
    Found(Fetched),
    Elsewhere(String),
    Status(u16),
}

async fn once(egress: &Egress, url: &Url) -> Result<Answer, Error> {
    let mut request = HttpRequest::new(whole(Bytes::new()));
    introduce(request.headers_mut());
    *request.uri_mut() = url.as_str().parse().map_err(|_| Error::HttpRequestUriInvalid)?;
    let (response, rest) = get(egress, request).await?;
    let rest = tokio::spawn(Box::into_pin(rest));
    let status = response.status();
    let content_type = text(response.headers(), header::CONTENT_TYPE);
    let place = text(response.headers(), header::LOCATION);
    if status.is_redirection() && !place.is_empty() {
        rest.abort();
        return Ok(Answer::Elsewhere(place));
    }
    if !status.is_success() {
        rest.abort();
        return Ok(Answer::Status(status.as_u16()));
    }
    let bytes = response.into_body().collect().await?.to_bytes().to_vec();
    rest.abort();
    Ok(Answer::Found(Fetched { content_type, bytes }))
}

fn text(headers: &HeaderMap, name: HeaderName) -> String {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("").to_owned()
}

fn parse(url: &str) -> Result<Url, RequestError> {
    Url::parse(url).map_err(|cause| RequestError::Address { url: url.to_owned(), cause })
}

fn failure(url: &Url, cause: Error, denials: &Denials, egress: &Egress) -> SendError {
    if let Some(denial) = denials.take().into_iter().next() {
        return SendError::Denied(Box::new(denial));
    }
    let url = url.to_string();
    match egress.report().exhausted {
        Some(limit) => SendError::Exhausted { url, limit },
        None => SendError::Failed { url, cause },
    }
}
