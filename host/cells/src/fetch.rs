//! Requests of the host itself on behalf of something that was granted servers: the same policy, budget and connection
//! as for a guest, without a guest.

use std::sync::Arc;

use bytes::Bytes;
use hotcell_budget::Usage;
use http::{HeaderMap, HeaderName, HeaderValue, Request as HttpRequest, header};
use http_body_util::BodyExt as _;
use url::Url;
use wasmtime_wasi_http::{Error, WasiBody};

use crate::call::Terms;
use crate::denials::Denials;
use crate::egress::{Egress, get, get_whole, whole};
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

/// Gets what is at `url`, within what `terms` grant and within their budget. Redirects are followed, each asked of the
/// policy as the first request was.
///
/// # Errors
/// Why it cannot be had, as a text for people; a denial says which grant would allow it.
pub async fn fetch(terms: &Terms, url: &str) -> Result<Fetched, String> {
    let denials = Denials::of(terms);
    let vault = Arc::new(Vault::new(&terms.secrets, &terms.grants, None));
    let egress = Egress::new(terms, &terms.budget, denials.clone(), vault);
    let mut url = Url::parse(url).map_err(|error| format!("`{url}` is no address: {error}"))?;
    for _ in 0..=REDIRECTS {
        let answer = once(&egress, &url).await.map_err(|error| explain(&url, &error, &denials, &egress))?;
        match answer {
            Answer::Found(found) => return Ok(found),
            Answer::Status(status) => return Err(format!("`{url}` answered with the status {status}")),
            Answer::Elsewhere(place) => {
                url = url.join(&place).map_err(|error| format!("`{url}` sends on to `{place}`: {error}"))?;
            }
        }
    }
    Err(format!("`{url}` and the addresses before it sent on more than {REDIRECTS} times"))
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

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendFailure {
    /// The reason, as a text for people.
    pub reason: String,
    /// Whether it may be gone a moment later: nobody answered, or too late. What is not granted stays so.
    pub may_pass: bool,
}

impl From<String> for SendFailure {
    /// A failure that lasts.
    fn from(reason: String) -> Self {
        SendFailure { reason, may_pass: false }
    }
}

/// Sends one request, within what `terms` grant and within their budget; a redirect is an answer. Gives what was used in
/// any case.
///
/// # Errors
/// Why there is no answer; a denial says which grant would allow it.
pub async fn send(terms: &Terms, request: OwnRequest) -> (Result<OwnReply, SendFailure>, Usage) {
    let denials = Denials::of(terms);
    let vault = Arc::new(Vault::new(&terms.secrets, &terms.grants, None));
    let egress = Egress::new(terms, &terms.budget, denials.clone(), vault);
    let result = match tokio::time::timeout(terms.budget.wall_clock, send_by(&egress, &denials, request)).await {
        Ok(result) => result,
        Err(_) => {
            let reason = format!("the server did not answer within {} s", terms.budget.wall_clock.as_secs_f64());
            Err(SendFailure { reason, may_pass: true })
        }
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

async fn send_by(egress: &Egress, denials: &Denials, request: OwnRequest) -> Result<OwnReply, SendFailure> {
    let url = Url::parse(&request.url).map_err(|error| format!("`{}` is no address: {error}", request.url))?;
    let headers = request.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    let mut own = compose(&request.method, &url, headers, request.body)?;
    introduce(own.headers_mut());
    let answer = get_whole(egress, own).await.map_err(|error| failure(&url, &error, denials, egress))?;
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
/// Which part is none, as a text for people.
pub(crate) fn compose<'a>(
    method: &str,
    url: &Url,
    headers: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    body: Vec<u8>,
) -> Result<HttpRequest<WasiBody>, String> {
    let mut request = HttpRequest::new(whole(body.into()));
    let capitals = method.trim().to_ascii_uppercase();
    *request.method_mut() = capitals.parse().map_err(|_| format!("`{}` is no HTTP method", one_line(method, 100)))?;
    *request.uri_mut() = url.as_str().parse().map_err(|error| format!("`{url}` is no address: {error}"))?;
    for (name, value) in headers {
        let shown = one_line(name, 100);
        if OF_THE_CONNECTION.iter().any(|own| name.eq_ignore_ascii_case(own)) {
            return Err(format!("the header `{shown}` belongs to the connection and cannot be set"));
        }
        let key: HeaderName = name.parse().map_err(|_| format!("`{shown}` is no name of a header"))?;
        let value = HeaderValue::from_bytes(value)
            .map_err(|_| format!("the value of the header `{shown}` has characters that no header may have"))?;
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

fn explain(url: &Url, error: &Error, denials: &Denials, egress: &Egress) -> String {
    failure(url, error, denials, egress).reason
}

fn failure(url: &Url, error: &Error, denials: &Denials, egress: &Egress) -> SendFailure {
    let denied = denials.take();
    if let Some(denial) = denied.first() {
        return denial.to_string().into();
    }
    match egress.report().exhausted {
        Some(exhausted) => format!("`{url}`: {exhausted}").into(),
        None => SendFailure { reason: format!("`{url}` cannot be fetched: {error}"), may_pass: true },
    }
}
