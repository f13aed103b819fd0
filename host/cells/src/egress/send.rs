//! Sending a request: asked of the policy, counted, and its answer read as far as that is needed.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::future::{Either, select};
use http::{HeaderValue, Method, Request as HttpRequest, Response, header};
use http_body_util::{BodyExt as _, Full};
use wasmtime_wasi_http::io::TokioIo;
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody};

use super::Shared;
use super::connection::{Metered, connect};
use super::destination::Destination;
use crate::policy::{Decision, Request, decide, may_hold_secret};
use crate::secrets;
use crate::services::{HttpExchange, HttpReply};

/// Bytes of a response's status line and headers that are read before it is refused.
const MAX_RESPONSE_HEAD: usize = 64 << 10;

/// The work that has to go on while a response is read.
pub(super) type Rest = Box<dyn Future<Output = Result<(), Error>> + Send>;
/// A response, and the work that has to go on while its body is read.
pub(super) type Sent = Result<(Response<WasiBody>, Rest), Error>;

/// Sends a request, if that is granted and the budget allows it.
pub(super) async fn send(shared: Arc<Shared>, request: HttpRequest<WasiBody>, options: RequestOptions) -> Sent {
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
pub(super) async fn read_response(
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
