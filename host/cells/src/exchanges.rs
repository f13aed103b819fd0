//! HTTP for the scripts of bundled interpreters: `hotcell:cell/http`.
//!
//! Only the form is another than for plugins, which have `wasi:http`: messages are whole, and the text of a denial says
//! what was denied. What may be sent, what it costs and what it carries is decided where it is decided for everybody,
//! in [`egress`](crate::egress).

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use wasmtime::component::{ComponentType, Lift, Lower};
use wasmtime_wasi_http::Error;

use crate::denials::Denials;
use crate::egress::{Egress, get_whole};
use crate::fetch::{OF_THE_CONNECTION, RequestError, compose};
use crate::recording::{Blob, short_digest};
use crate::text::one_line;

/// The interface, as interpreters import it.
pub(crate) const INTERFACE: &str = "hotcell:cell/http@0.1.0";

/// Names and values, in their order.
type Headers = Vec<(String, Vec<u8>)>;

/// `http.request`.
#[derive(Clone, Debug, PartialEq, Eq, ComponentType, Lift)]
#[component(record)]
pub(crate) struct Request {
    method: String,
    url: String,
    headers: Headers,
    body: Vec<u8>,
    timeout: Option<u64>,
}

/// `http.response`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ComponentType, Lower)]
#[component(record)]
pub(crate) struct Response {
    status: u16,
    reason: String,
    #[serde(with = "recorded::headers")]
    headers: Headers,
    #[serde(with = "recorded::body")]
    body: Vec<u8>,
}

/// `http.outcome`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ComponentType, Lower)]
#[component(variant)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Outcome {
    #[component(name = "answered")]
    Answered(Response),
    #[component(name = "invalid")]
    Invalid(String),
    #[component(name = "denied")]
    Denied(String),
    #[component(name = "timed-out")]
    TimedOut(String),
    #[component(name = "failed")]
    Failed(String),
}

/// Bytes of a response in a recording.
mod recorded {
    use super::Blob;

    pub(super) mod body {
        use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

        use super::Blob;

        pub(in super::super) fn serialize<S: Serializer>(body: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
            Blob(body.to_vec()).serialize(serializer)
        }

        pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
            Blob::deserialize(deserializer).map(|Blob(body)| body)
        }
    }

    pub(super) mod headers {
        use serde::{Deserialize as _, Deserializer, Serializer};

        use super::super::Headers;
        use super::Blob;

        pub(in super::super) fn serialize<S: Serializer>(headers: &Headers, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_seq(headers.iter().map(|(name, value)| (name, Blob(value.clone()))))
        }

        pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Headers, D::Error> {
            let headers = Vec::<(String, Blob)>::deserialize(deserializer)?;
            Ok(headers.into_iter().map(|(name, Blob(value))| (name, value)).collect())
        }
    }
}

/// A request that was started and whose outcome nobody has fetched.
struct Open {
    number: u32,
    /// Bytes of the request that are kept for it.
    bytes: u64,
    outcome: Pin<Box<dyn Future<Output = Outcome> + Send>>,
}

/// The open requests of one call. They go on while the guest waits for one of them, and end with the call.
#[derive(Default)]
pub(crate) struct Exchanges {
    open: Vec<Open>,
    last: u32,
}

impl Exchanges {
    /// Keeps a request that was started, and gives its number.
    pub(crate) fn add(&mut self, bytes: u64, outcome: impl Future<Output = Outcome> + Send + 'static) -> u32 {
        self.last = self.last.wrapping_add(1);
        self.open.push(Open { number: self.last, bytes, outcome: Box::pin(outcome) });
        self.last
    }

    pub(crate) fn count(&self) -> usize {
        self.open.len()
    }

    /// Ends a request of which nobody wants to hear.
    pub(crate) fn cancel(&mut self, number: u32) {
        self.open.retain(|open| open.number != number);
    }

    /// Bytes that are kept for requests.
    pub(crate) fn bytes(&self) -> u64 {
        self.open.iter().map(|open| open.bytes).sum()
    }

    /// Closes the request that is done.
    pub(crate) fn close(&mut self, done: Option<(u32, Outcome)>) -> Option<(u32, Outcome)> {
        if let Some((number, _)) = &done {
            self.open.retain(|open| open.number != *number);
        }
        done
    }

    /// The first that is done; none if there is nothing to wait for.
    pub(crate) async fn next(&mut self) -> Option<(u32, Outcome)> {
        poll_fn(|cx| {
            for index in 0..self.open.len() {
                if let Poll::Ready(outcome) = self.open[index].outcome.as_mut().poll(cx) {
                    return Poll::Ready(Some((self.open.remove(index).number, outcome)));
                }
            }
            if self.open.is_empty() { Poll::Ready(None) } else { Poll::Pending }
        })
        .await
    }
}

fn size(headers: &Headers) -> usize {
    headers.iter().map(|(name, value)| name.len() + value.len()).sum()
}

impl Response {
    pub(crate) fn bytes(&self) -> usize {
        size(&self.headers) + self.body.len()
    }
}

impl Request {
    /// The request as it is found again in a recording.
    pub(crate) fn shown(&self) -> String {
        let headers = self.headers.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_slice()]);
        let digest = short_digest(headers.chain([self.body.as_slice()]));
        format!("{} {} {digest}", self.method.to_ascii_uppercase(), self.url)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.method.len() + self.url.len() + size(&self.headers) + self.body.len()
    }

    /// Sends it. The future keeps nothing of the guest but what the requests of a call share.
    pub(crate) fn send(self, egress: &Egress, denials: Denials) -> impl Future<Output = Outcome> + Send + use<> {
        let timeout = self.timeout.map(Duration::from_millis);
        let url = one_line(&self.url, 500);
        let exchange = self.compose().map(|request| get_whole(egress, request));
        let egress = egress.clone();
        async move {
            let exchange = match exchange {
                Ok(exchange) => exchange,
                Err(problem) => return Outcome::Invalid(problem.to_string()),
            };
            let answer = match timeout {
                Some(timeout) => {
                    tokio::time::timeout(timeout, exchange).await.unwrap_or(Err(Error::HttpResponseTimeout))
                }
                None => exchange.await,
            };
            match answer {
                Ok(answer) => Outcome::Answered(Response::of(answer)),
                Err(error) => failure(&url, &error, &egress, &denials),
            }
        }
    }

    fn compose(self) -> Result<http::Request<wasmtime_wasi_http::WasiBody>, RequestError> {
        let wrong = |cause| RequestError::Address { url: one_line(&self.url, 500), cause };
        let mut url = url::Url::parse(&self.url).map_err(wrong)?;
        url.set_fragment(None);
        let length = self.body.len();
        let headers = self.headers.iter().filter(|(name, value)| !goes_without_saying(name, value, &url, length));
        compose(&self.method, &url, headers.map(|(name, value)| (name.as_str(), value.as_slice())), self.body)
    }
}

/// Whether a header of the connection says what the host writes anyway, as clients do that are used to a connection of
/// their own.
fn goes_without_saying(name: &str, value: &[u8], url: &url::Url, length: usize) -> bool {
    let Ok(value) = std::str::from_utf8(value) else { return false };
    let value = value.trim();
    match name.to_ascii_lowercase().as_str() {
        "host" => {
            let host = url.host_str().unwrap_or_default();
            let named = url.port_or_known_default().map(|port| format!("{host}:{port}")).unwrap_or_default();
            value.eq_ignore_ascii_case(&named) || (url.port().is_none() && value.eq_ignore_ascii_case(host))
        }
        "content-length" => value.parse() == Ok(length),
        "connection" => value.eq_ignore_ascii_case("close") || value.eq_ignore_ascii_case("keep-alive"),
        _ => false,
    }
}

impl Response {
    fn of(answer: http::Response<bytes::Bytes>) -> Self {
        let (parts, body) = answer.into_parts();
        let of_message = |name: &str| name == "content-length" || !OF_THE_CONNECTION.contains(&name);
        let headers = parts.headers.iter().filter(|(name, _)| of_message(name.as_str()));
        Self {
            status: parts.status.as_u16(),
            reason: parts.status.canonical_reason().unwrap_or_default().to_owned(),
            headers: headers.map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect(),
            body: body.to_vec(),
        }
    }
}

/// Why there is no answer, in the words that a guest is told. What the operator is told is noted elsewhere already.
fn failure(url: &str, error: &Error, egress: &Egress, denials: &Denials) -> Outcome {
    match error {
        // Noted within the same step as the error was made, so it is the latest.
        Error::HttpRequestDenied | Error::DestinationIpProhibited => Outcome::Denied(match denials.latest() {
            Some(capability) => format!("{capability} is not granted"),
            None => format!("`{url}` is not granted"),
        }),
        Error::HttpResponseTimeout | Error::ConnectionTimeout => {
            Outcome::TimedOut(format!("`{url}` has not answered in time"))
        }
        Error::HttpRequestUriInvalid => Outcome::Invalid(format!("`{url}` is not a valid address of a server")),
        Error::HttpProtocolError => Outcome::Invalid(format!("`{url}` is neither `http` nor `https`")),
        Error::HttpRequestMethodInvalid => Outcome::Invalid("`CONNECT` is for proxies and cannot be sent".to_owned()),
        _ => Outcome::Failed(match egress.report().exhausted {
            Some(exhausted) => format!("`{url}` cannot be asked: {exhausted}"),
            None => format!("`{url}` cannot be reached: {error}"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::Request;

    fn request(url: &str, headers: &[(&str, &str)]) -> Request {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect();
        Request { method: "post".to_owned(), url: url.to_owned(), headers, body: b"four".to_vec(), timeout: None }
    }

    #[test]
    fn headers_of_the_connection_are_left_out_where_they_say_the_same() {
        let kept = [("Accept", "a/b"), ("X-Two", "1"), ("x-two", "2")];
        for (url, host) in [
            ("http://x.org/a#b", "x.org"),
            ("http://x.org:80/", "X.org:80"),
            ("https://x.org:444/", "x.org:444"),
            ("http://[::1]:8/", "[::1]:8"),
        ] {
            let said = [("Host", host), ("content-length", "4"), ("Connection", "close"), ("connection", "Keep-Alive")];
            let all: Vec<(&str, &str)> = kept.into_iter().chain(said).collect();
            let composed = request(url, &all).compose().unwrap_or_else(|problem| panic!("{url}: {problem}"));
            let names: Vec<&str> = composed.headers().keys().map(|name| name.as_str()).collect();
            assert_eq!(names, ["accept", "x-two"], "{url}");
            assert_eq!(composed.headers().get_all("x-two").iter().count(), 2);
            assert_eq!((composed.method().as_str(), composed.uri().to_string().contains('#')), ("POST", false));
        }
    }

    #[test]
    fn attack_48_headers_of_the_connection_that_say_something_else_are_refused() {
        for (name, value) in [
            ("host", "y.org"),
            ("host", "x.org:81"),
            ("Content-Length", "5"),
            ("Transfer-Encoding", "chunked"),
            ("Connection", "upgrade"),
            ("upgrade", "h2c"),
            ("te", "trailers"),
        ] {
            let refused = request("http://x.org/", &[(name, value)]).compose();
            let problem = refused.err().unwrap_or_else(|| panic!("`{name}: {value}` is sent"));
            assert_eq!(problem.to_string(), format!("the header `{name}` belongs to the connection and cannot be set"));
        }
    }

    #[test]
    fn what_is_no_request_is_named() {
        let cases = [
            (request("x.org", &[]), "`x.org` is not a valid address: relative URL without a base"),
            (request("http://x.org/", &[("a b", "c")]), "`a b` is not a valid header name"),
            (
                request("http://x.org/", &[("a", "b\nc")]),
                "the value of the header `a` has characters that no header may have",
            ),
            (Request { method: "a b".to_owned(), ..request("http://x.org/", &[]) }, "`a b` is not an HTTP method"),
        ];
        for (request, expected) in cases {
            assert_eq!(request.compose().unwrap_err().to_string(), expected);
        }
    }
}
