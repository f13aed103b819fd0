//! HTTP over `wasi:http`.

use wasip2::http::outgoing_handler;
use wasip2::http::types::{
    ErrorCode, Fields, IncomingBody, IncomingResponse, Method, OutgoingBody, OutgoingRequest, RequestOptions, Scheme,
};
use wasip2::io::streams::StreamError;

use crate::Error;
use crate::http::{Request, Response, split};

/// Bytes that one write or read moves.
const PART: usize = 4096;

pub(crate) fn http(request: Request) -> Result<Response, Error> {
    let (secure, authority, path) = split(&request.url)?;
    let headers = Fields::new();
    for (name, value) in &request.headers {
        headers
            .append(name, value.as_bytes())
            .map_err(|error| Error::invalid_input(format!("the header `{name}` cannot be sent: {error}")))?;
    }
    let outgoing = OutgoingRequest::new(headers);
    let refuse = |what: &str| Error::invalid_input(format!("the {what} of the request to `{}` is none", request.url));
    outgoing.set_method(&method(&request.method)).map_err(|()| refuse("method"))?;
    let scheme = if secure { Scheme::Https } else { Scheme::Http };
    outgoing.set_scheme(Some(&scheme)).map_err(|()| refuse("scheme"))?;
    outgoing.set_authority(Some(authority)).map_err(|()| refuse("server"))?;
    outgoing.set_path_with_query(Some(&path)).map_err(|()| refuse("path"))?;
    let options = request.timeout.map(|timeout| {
        let options = RequestOptions::new();
        let nanoseconds = u64::try_from(timeout.as_nanos()).ok();
        // A host that does not know one of these waits as long as the call may take.
        let _ = options.set_connect_timeout(nanoseconds);
        let _ = options.set_first_byte_timeout(nanoseconds);
        let _ = options.set_between_bytes_timeout(nanoseconds);
        options
    });

    let body = outgoing.body().map_err(|()| refuse("body"))?;
    let waiting = outgoing_handler::handle(outgoing, options).map_err(|code| failed(&request.url, &code))?;
    if !request.body.is_empty() {
        let stream = body.write().map_err(|()| refuse("body"))?;
        for part in request.body.chunks(PART) {
            stream.blocking_write_and_flush(part).map_err(|error| broken(&request.url, &error))?;
        }
    }
    OutgoingBody::finish(body, None).map_err(|code| failed(&request.url, &code))?;

    waiting.subscribe().block();
    match waiting.get() {
        Some(Ok(Ok(response))) => read(&request, &response),
        Some(Ok(Err(code))) => Err(failed(&request.url, &code)),
        _ => Err(Error::other(format!("the host gave no answer of `{}`", request.url))),
    }
}

fn read(request: &Request, response: &IncomingResponse) -> Result<Response, Error> {
    let status = response.status();
    let entries = response.headers().entries();
    let headers = entries
        .into_iter()
        .map(|(name, value)| (name.to_ascii_lowercase(), String::from_utf8_lossy(&value).into_owned()))
        .collect();
    let missing = || Error::other(format!("the answer of `{}` has no body to read", request.url));
    let incoming = response.consume().map_err(|()| missing())?;
    let mut body = Vec::new();
    {
        let stream = incoming.stream().map_err(|()| missing())?;
        loop {
            match stream.blocking_read(16 * PART as u64) {
                Ok(part) => body.extend_from_slice(&part),
                Err(StreamError::Closed) => break,
                Err(error) => return Err(broken(&request.url, &error)),
            }
            if body.len() > request.limit {
                break;
            }
        }
    }
    drop(IncomingBody::finish(incoming));
    Ok(Response { status, headers, body })
}

fn method(name: &str) -> Method {
    match name {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "DELETE" => Method::Delete,
        "CONNECT" => Method::Connect,
        "OPTIONS" => Method::Options,
        "TRACE" => Method::Trace,
        "PATCH" => Method::Patch,
        other => Method::Other(other.to_owned()),
    }
}

fn broken(url: &str, error: &StreamError) -> Error {
    match error {
        StreamError::Closed => Error::unavailable(format!("the connection to `{url}` ended early")),
        StreamError::LastOperationFailed(error) => {
            Error::unavailable(format!("the connection to `{url}` failed: {}", error.to_debug_string()))
        }
    }
}

fn failed(url: &str, code: &ErrorCode) -> Error {
    let message = format!("the request to `{url}` failed: {code:?}");
    match code {
        ErrorCode::HttpRequestDenied => {
            Error::denied(format!("the request to `{url}` was not granted (capability `http`)"))
        }
        ErrorCode::DnsTimeout
        | ErrorCode::DnsError(_)
        | ErrorCode::DestinationNotFound
        | ErrorCode::DestinationUnavailable
        | ErrorCode::ConnectionRefused
        | ErrorCode::ConnectionTerminated
        | ErrorCode::ConnectionTimeout
        | ErrorCode::ConnectionReadTimeout
        | ErrorCode::ConnectionWriteTimeout
        | ErrorCode::HttpResponseTimeout
        | ErrorCode::HttpResponseIncomplete => Error::unavailable(message),
        ErrorCode::HttpRequestUriInvalid | ErrorCode::HttpRequestMethodInvalid => Error::invalid_input(message),
        _ => Error::other(message),
    }
}
