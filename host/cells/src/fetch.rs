//! Requests of the host itself on behalf of something that was granted servers: the same policy, budget and connection
//! as for a guest, without a guest.

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue, Method, Request as HttpRequest, header};
use http_body_util::{BodyExt as _, Empty};
use url::Url;
use wasmtime_wasi_http::{Error, WasiBody};

use crate::call::Terms;
use crate::denials::Denials;
use crate::egress::{Egress, get};
use crate::secrets::Vault;

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
    let denials = Denials::new(&terms.plugin);
    let egress = Egress::new(terms, &terms.budget, denials.clone(), Arc::new(Vault::new(terms, None)));
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

enum Answer {
    Found(Fetched),
    Elsewhere(String),
    Status(u16),
}

async fn once(egress: &Egress, url: &Url) -> Result<Answer, Error> {
    let body: WasiBody = Empty::new().map_err(Error::from).boxed_unsync();
    let mut request = HttpRequest::new(body);
    *request.method_mut() = Method::GET;
    *request.uri_mut() = url.as_str().parse().map_err(|_| Error::HttpRequestUriInvalid)?;
    request.headers_mut().insert(header::ACCEPT, HeaderValue::from_static("*/*"));
    request.headers_mut().insert(header::USER_AGENT, HeaderValue::from_static("hotcell"));
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
    let denied = denials.take();
    if let Some(denial) = denied.first() {
        return denial.to_string();
    }
    match egress.report().exhausted {
        Some(exhausted) => format!("`{url}`: {exhausted}"),
        None => format!("`{url}` cannot be fetched: {error}"),
    }
}
