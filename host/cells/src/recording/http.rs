//! HTTP of components: responses are recorded as they come, piece by piece, and given back in the same pieces.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::{Body, Frame};
use http_body_util::BodyExt as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wasmtime_wasi_http::{Error, WasiBody};

use super::text::{Blob, short_digest};
use super::{HostFunction, Player, Recorder, Taken};
use crate::services::HttpReply;

/// What is noted of the requests of a call, in the order in which they were sent.
#[derive(Default)]
pub(super) struct HttpNotes {
    exchanges: Vec<Exchange>,
    size: usize,
}

/// One request and what came of it so far.
struct Exchange {
    /// Method and address
    line: String,
    /// The headers
    begun: blake3::Hasher,
    /// Headers, then the pieces of the body
    said: blake3::Hasher,
    gave: Reply,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Reply {
    /// None while nothing has come
    head: Option<Result<Head, Code>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pieces: Vec<Blob>,
    end: End,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Head {
    status: u16,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    headers: Vec<(String, Blob)>,
}

/// How the body of a response ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum End {
    /// Nobody read so far
    #[default]
    Open,
    /// It was whole
    Whole,
    /// With these trailers
    Trailers(Vec<(String, Blob)>),
    /// It broke off
    Broken(Code),
}

impl Exchange {
    /// How much of the body was sent of a request that failed is chance, or nothing at all if it was denied.
    fn known_by(&self) -> &blake3::Hasher {
        if matches!(self.gave.head, Some(Err(_))) { &self.begun } else { &self.said }
    }
}

impl HttpNotes {
    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn taken(self) -> impl Iterator<Item = Taken> {
        self.exchanges.into_iter().map(|exchange| Taken {
            from: HostFunction::Http,
            asked: asked(&exchange.line, exchange.known_by()),
            gave: serde_json::to_value(&exchange.gave).unwrap_or_default(),
        })
    }

    /// What is noted of a request. None once the recording is finished: bodies may be read for a moment longer than their call.
    fn exchange(&mut self, number: usize) -> Option<&mut Exchange> {
        self.exchanges.get_mut(number)
    }

    fn keep(&mut self, left: usize, bytes: usize) -> bool {
        self.size += bytes;
        self.size <= left
    }
}

/// What a server answered, in one piece; none if it did not.
pub(super) fn reply_of(gave: &Value) -> Option<HttpReply> {
    let Reply { head, pieces, .. } = serde_json::from_value(gave.clone()).ok()?;
    let Head { status, headers } = head?.ok()?;
    let text = |Blob(bytes): Blob| String::from_utf8_lossy(&bytes).into_owned();
    let headers = headers.into_iter().map(|(name, value)| (name, text(value))).collect();
    Some(HttpReply { status, headers, body: pieces.into_iter().flat_map(|piece| piece.0).collect() })
}

/// Whether a request got no answer.
pub(super) fn has_failed(gave: &Value) -> bool {
    serde_json::from_value(gave.clone()).is_ok_and(|reply: Reply| matches!(reply.head, Some(Err(_))))
}

/// A request as it is found again.
fn asked(line: &str, said: &blake3::Hasher) -> String {
    format!("{line} {}", &said.finalize().to_hex()[..16])
}

fn line(request: &Request<WasiBody>) -> (String, blake3::Hasher) {
    let mut said = blake3::Hasher::new();
    let headers = request.headers().iter().flat_map(|(name, value)| [name.as_str().as_bytes(), value.as_bytes()]);
    said.update(short_digest(headers).as_bytes());
    (format!("{} {}", request.method(), request.uri()), said)
}

fn blobs(headers: &HeaderMap) -> Vec<(String, Blob)> {
    headers.iter().map(|(name, value)| (name.to_string(), Blob(value.as_bytes().to_vec()))).collect()
}

/// A response, and the work that has to go on while its body is read.
type Sent = Result<(Response<WasiBody>, Box<dyn Future<Output = Result<(), Error>> + Send>), Error>;

/// Sends a request by `send` and takes down what comes of it.
pub(crate) async fn record<F: Future<Output = Sent>>(
    recorder: Arc<Recorder>,
    request: Request<WasiBody>,
    send: impl FnOnce(Request<WasiBody>) -> F,
) -> Sent {
    if recorder.is_full() {
        return send(request).await;
    }
    let (line, said) = line(&request);
    let number = recorder.http(|notes, _| {
        notes.size += line.len() + 64;
        notes.exchanges.push(Exchange { line, begun: said.clone(), said, gave: Reply::default() });
        notes.exchanges.len() - 1
    });
    let (parts, body) = request.into_parts();
    let body = Said { inner: body, recorder: recorder.clone(), number }.boxed_unsync();
    let sent = send(Request::from_parts(parts, body)).await;
    let head = match &sent {
        Ok((response, _)) => Ok(Head { status: response.status().as_u16(), headers: blobs(response.headers()) }),
        Err(error) => Err(Code::of(error)),
    };
    recorder.http(|notes, _| {
        if let Ok(head) = &head {
            notes.size += head.headers.iter().map(|(name, value)| name.len() + value.0.len() + 8).sum::<usize>();
        }
        if let Some(exchange) = notes.exchange(number) {
            exchange.gave.head = Some(head);
        }
    });
    let (response, rest) = sent?;
    let heard = |body| Heard { inner: body, recorder, number }.boxed_unsync();
    Ok((response.map(heard), rest))
}

/// What came of a request when the call was recorded. The request is read to its end first.
pub(crate) async fn play(player: Arc<Player>, request: Request<WasiBody>) -> Sent {
    let (line, begun) = line(&request);
    let mut said = begun.clone();
    let mut body = request.into_body();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            said.update(&data);
        }
    }
    let gone = |_| Error::InternalError(None);
    let reply: Reply =
        player.take_one_of(HostFunction::Http, [&asked(&line, &said), &asked(&line, &begun)]).map_err(gone)?;
    let Reply { head, pieces, end } = reply;
    let Some(head) = head else {
        // Nothing had come when the call ended.
        return std::future::pending().await;
    };
    let head = head.map_err(Code::into_error)?;
    let mut response = Response::builder().status(head.status);
    for (name, value) in head.headers {
        response = response.header(name, value.0);
    }
    let pieces = pieces.into_iter().map(|piece| Bytes::from(piece.0)).collect();
    let body = Played { pieces, end: Some(end), player }.boxed_unsync();
    let response = response.body(body).map_err(|_| Error::InternalError(None))?;
    Ok((response, Box::new(async { Ok(()) })))
}

/// The body of a request, of which a digest is taken as it goes out.
struct Said {
    inner: WasiBody,
    recorder: Arc<Recorder>,
    number: usize,
}

impl Body for Said {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(data) = frame.data_ref()
        {
            let number = self.number;
            self.recorder.http(|notes, _| {
                if let Some(exchange) = notes.exchange(number) {
                    exchange.said.update(data);
                }
            });
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.inner.size_hint()
    }
}

/// The body of a response, which is taken down as it is read.
struct Heard {
    inner: WasiBody,
    recorder: Arc<Recorder>,
    number: usize,
}

impl Body for Heard {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(cx);
        let number = self.number;
        let Poll::Ready(frame) = &polled else { return polled };
        self.recorder.http(|notes, left| {
            let bytes = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref()).map_or(0, Bytes::len);
            let is_kept = notes.keep(left, bytes + 8);
            let Some(Exchange { gave, .. }) = notes.exchange(number) else { return };
            match frame {
                None if matches!(gave.end, End::Open) => gave.end = End::Whole,
                None => {}
                Some(Err(error)) => gave.end = End::Broken(Code::of(error)),
                Some(Ok(frame)) => match (frame.data_ref(), frame.trailers_ref()) {
                    (Some(data), _) if is_kept => gave.pieces.push(Blob(data.to_vec())),
                    (None, Some(trailers)) => gave.end = End::Trailers(blobs(trailers)),
                    _ => {}
                },
            }
        });
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.inner.size_hint()
    }
}

/// The body of a response as it was read.
struct Played {
    pieces: VecDeque<Bytes>,
    end: Option<End>,
    player: Arc<Player>,
}

impl Body for Played {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if let Some(piece) = self.pieces.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        Poll::Ready(match self.end.take() {
            Some(End::Trailers(trailers)) => {
                let header = |(name, value): (String, Blob)| {
                    Some((http::HeaderName::try_from(name).ok()?, http::HeaderValue::from_bytes(&value.0).ok()?))
                };
                Some(Ok(Frame::trailers(trailers.into_iter().filter_map(header).collect())))
            }
            Some(End::Broken(code)) => Some(Err(code.into_error())),
            Some(End::Open) => {
                self.player.miss("for more of a response than was read of it".to_owned());
                Some(Err(Error::HttpResponseIncomplete))
            }
            Some(End::Whole) | None => None,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty() && matches!(self.end, Some(End::Whole) | None)
    }
}

/// An error of a request as the guest is told it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Code {
    code: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    number: Option<u64>,
}

/// Errors without a part of their own, by their names.
macro_rules! plain_codes {
    ($($name:ident),* $(,)?) => {
        fn plain_name(error: &Error) -> Option<&'static str> {
            match error { $(Error::$name => Some(stringify!($name)),)* _ => None }
        }

        fn plain_error(name: &str) -> Option<Error> {
            match name { $(stringify!($name) => Some(Error::$name),)* _ => None }
        }
    };
}

plain_codes!(
    DnsTimeout,
    DestinationNotFound,
    DestinationUnavailable,
    DestinationIpProhibited,
    DestinationIpUnroutable,
    ConnectionRefused,
    ConnectionTerminated,
    ConnectionTimeout,
    ConnectionReadTimeout,
    ConnectionWriteTimeout,
    ConnectionLimitReached,
    TlsProtocolError,
    TlsCertificateError,
    HttpRequestDenied,
    HttpRequestLengthRequired,
    HttpRequestMethodInvalid,
    HttpRequestUriInvalid,
    HttpRequestUriTooLong,
    HttpResponseIncomplete,
    HttpResponseTimeout,
    HttpUpgradeFailed,
    HttpProtocolError,
    LoopDetected,
    ConfigurationError,
);

impl Code {
    /// What the guest is told of an error.
    fn of(error: &Error) -> Self {
        let plain = |code: &str| Code { code: code.to_owned(), text: None, number: None };
        if let Some(name) = plain_name(error) {
            return plain(name);
        }
        match error {
            Error::Hyper(error) if error.is_timeout() => plain("HttpResponseTimeout"),
            Error::Hyper(_) => plain("HttpProtocolError"),
            Error::Connect(error) => {
                let unknown = error.to_string().starts_with("failed to lookup address information");
                match unknown || error.kind() == std::io::ErrorKind::AddrNotAvailable {
                    true => Code { text: Some("address not available".to_owned()), ..plain("DnsError") },
                    false => plain("ConnectionRefused"),
                }
            }
            Error::Tls(_) => plain("TlsProtocolError"),
            Error::DnsError { rcode, info_code } => {
                Code { text: rcode.clone(), number: info_code.map(u64::from), ..plain("DnsError") }
            }
            Error::HttpRequestBodySize(size) => Code { number: *size, ..plain("HttpRequestBodySize") },
            Error::HttpRequestHeaderSectionSize(size) => {
                Code { number: size.map(u64::from), ..plain("HttpRequestHeaderSectionSize") }
            }
            Error::InternalError(text) => Code { text: text.clone(), ..plain("InternalError") },
            other => Code { text: Some(other.to_string()), ..plain("InternalError") },
        }
    }

    fn into_error(self) -> Error {
        let Code { code, text, number } = self;
        if let Some(error) = plain_error(&code) {
            return error;
        }
        match code.as_str() {
            "DnsError" => {
                Error::DnsError { rcode: text, info_code: number.and_then(|number| u16::try_from(number).ok()) }
            }
            "HttpRequestBodySize" => Error::HttpRequestBodySize(number),
            "HttpRequestHeaderSectionSize" => {
                Error::HttpRequestHeaderSectionSize(number.and_then(|number| u32::try_from(number).ok()))
            }
            _ => Error::InternalError(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use hotcell_budget::Fuel;
    use http::Request;
    use http_body_util::BodyExt as _;

    use super::{Code, Error, Recorder, record};
    use crate::call::Terms;
    use crate::egress::whole;
    use crate::grants::Grants;
    use crate::record::RecordTerms;
    use crate::recording::{Begun, Called, Ended, Gave, Random};
    use crate::secrets::{Secrets, Vault};

    #[tokio::test]
    async fn a_body_that_is_read_longer_than_its_call_is_recorded_is_read_on() {
        let terms = Terms { record: Some(RecordTerms::default()), ..Terms::new("test") };
        let vault = Vault::new(&Secrets::default(), &Grants::default(), None);
        let called = || Called::Hook { point: "before-run".to_owned(), event: "{}".to_owned() };
        let begun = Begun::new("digest", &terms, called).unwrap_or_else(|| panic!("it is to be recorded"));
        let recorder = Recorder::new(begun, &terms, &terms.budget, Random::default(), &vault);
        let mut kept = None;
        let request = Request::new(whole(Bytes::from_static(b"body")));
        let sent = record(recorder.clone(), request, |request| {
            kept = Some(request.into_body());
            async { Err(Error::HttpRequestDenied) }
        });
        assert!(sent.await.is_err());
        let ended =
            Ended { gave: Gave::Proceed, fuel: Fuel(0), gap: None, denied: Vec::new(), exhausted: None, vault: &vault };
        assert!(recorder.finish(ended).is_some());
        let body = kept.unwrap_or_else(|| panic!("it was sent")).collect().await;
        assert_eq!(body.map(|body| body.to_bytes()).ok().as_deref(), Some(&b"body"[..]));
    }

    #[test]
    fn errors_come_back_as_the_guest_was_told_them() {
        for error in [
            Error::HttpRequestDenied,
            Error::ConnectionLimitReached,
            Error::HttpRequestBodySize(Some(9)),
            Error::DnsError { rcode: Some("x".to_owned()), info_code: Some(3) },
            Error::InternalError(Some("y".to_owned())),
        ] {
            let code = Code::of(&error);
            assert_eq!(Code::of(&code.clone().into_error()), code, "{error}");
            assert_eq!(code.into_error().to_string(), error.to_string());
        }
        let refused = Error::Connect(std::io::Error::other("no"));
        assert!(matches!(Code::of(&refused).into_error(), Error::ConnectionRefused));
    }
}
