//! A small blocking HTTP client over `wasi:http`. Capability `http`.
//!
//! ```
//! # use hotcell_plugin::{Error, Json, http, testing::Surroundings};
//! # fn example() -> Result<(), Error> {
//! let answer = http::get("https://api.example.org/forecast").query("city", "Łódź").send()?.success()?;
//! let forecast: Json = answer.json()?;
//! # Ok(()) }
//! # let surroundings = Surroundings::new().http(|request| {
//! #     assert_eq!(request.url, "https://api.example.org/forecast?city=%C5%81%C3%B3d%C5%BA");
//! #     Ok(http::Response { status: 200, headers: Vec::new(), body: b"{}".to_vec() })
//! # });
//! # assert_eq!(surroundings.run(example).result, Ok(()));
//! ```

use std::time::Duration;

use crate::{Error, Json, Value, system};

/// Bytes of a body that are read unless [`Request::limit`] says otherwise.
const LIMIT: usize = 4 << 20;

/// A request that is being put together.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a request does nothing until it is sent"]
pub struct Request {
    /// The method, in capitals.
    pub method: String,
    /// The address, with `http://` or `https://`.
    pub url: String,
    /// Names and values, in order.
    pub headers: Vec<(String, String)>,
    /// What is sent.
    pub body: Vec<u8>,
    /// How long to wait for the connection, and for each part of the answer; otherwise as long as the call may take.
    pub timeout: Option<Duration>,
    /// Bytes that the body of the answer may have.
    pub limit: usize,
}

/// What the server answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status, such as 200.
    pub status: u16,
    /// Names (in lower case) and values, in order.
    pub headers: Vec<(String, String)>,
    /// What came.
    pub body: Vec<u8>,
}

/// A request that reads `url`.
pub fn get(url: impl Into<String>) -> Request {
    Request::new("GET", url)
}

/// A request that sends something to `url`.
pub fn post(url: impl Into<String>) -> Request {
    Request::new("POST", url)
}

impl Request {
    /// A request with any method.
    pub fn new(method: impl Into<String>, url: impl Into<String>) -> Self {
        Self {
            method: method.into(),
            url: url.into(),
            headers: Vec::new(),
            body: Vec::new(),
            timeout: None,
            limit: LIMIT,
        }
    }

    /// The same request with one more header.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The same request with one more name and value in the query of its address, percent-encoded.
    pub fn query(mut self, name: &str, value: &str) -> Self {
        let fragment = self.url.find('#').unwrap_or(self.url.len());
        self.url.truncate(fragment);
        self.url.push(if self.url.contains('?') { '&' } else { '?' });
        encode(name, &mut self.url);
        self.url.push('=');
        encode(value, &mut self.url);
        self
    }

    /// The same request with a body of bytes.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// The same request with a JSON body, and the header that says so.
    pub fn json(self, value: &Json) -> Self {
        self.header("content-type", "application/json").body(value.to_string())
    }

    /// The same request that waits no longer than this for the connection and for each part of the answer.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// The same request that takes an answer of at most so many bytes; 4 MiB otherwise.
    pub fn limit(mut self, bytes: usize) -> Self {
        self.limit = bytes;
        self
    }

    /// Sends it and waits for the whole answer, whatever its status.
    ///
    /// # Errors
    /// `denied` where the server was not granted, `invalid-input` where the address, method or a header is none,
    /// `unavailable` where the server is not reached or does not answer in time, `other` where the answer is too long.
    pub fn send(self) -> Result<Response, Error> {
        let limit = self.limit;
        let url = self.url.clone();
        let response = system::http(self)?;
        if response.body.len() > limit {
            return Err(Error::other(format!("the answer of `{url}` has more than {limit} bytes")));
        }
        Ok(response)
    }
}

impl Response {
    /// The first header of that name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The answer itself where its status is 200 to 299.
    ///
    /// # Errors
    /// `unavailable` for 408, 429 and 500 to 599, which a later call may not meet; otherwise `other`. Both have the
    /// fact `status`, and the message shows the beginning of the body.
    pub fn success(self) -> Result<Self, Error> {
        if (200..300).contains(&self.status) {
            return Ok(self);
        }
        let mut message = format!("the server answered with the status {}", self.status);
        let start: String = String::from_utf8_lossy(&self.body).trim().chars().take(200).collect();
        if !start.is_empty() {
            message.push_str(": ");
            message.push_str(&start);
        }
        let error = match self.status {
            408 | 429 | 500..=599 => Error::unavailable(message),
            _ => Error::other(message),
        };
        Err(error.with("status", self.status.to_string()))
    }

    /// The body as text.
    ///
    /// # Errors
    /// `other` where it is not UTF-8.
    pub fn text(&self) -> Result<&str, Error> {
        std::str::from_utf8(&self.body).map_err(|error| Error::other(format!("the answer is not UTF-8: {error}")))
    }

    /// The body, read as JSON.
    ///
    /// # Errors
    /// `other` where it is not JSON or does not fit.
    pub fn json<T: Value>(&self) -> Result<T, Error> {
        let json: Json = serde_json::from_slice(&self.body)
            .map_err(|error| Error::other(format!("the answer is not JSON: {error}")))?;
        T::decode(json).map_err(|mismatch| Error::other(format!("the answer is not as expected: {mismatch}")))
    }
}

/// Percent-encodes all but the unreserved characters.
fn encode(text: &str, onto: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            onto.push(char::from(byte));
        } else {
            const HEX: &[u8; 16] = b"0123456789ABCDEF";
            onto.push('%');
            onto.push(char::from(HEX[usize::from(byte >> 4)]));
            onto.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}

/// The parts of an address that `wasi:http` wants one by one: whether it is `https`, the authority, path and query.
/// The host looks at them again with a full parser.
pub(crate) fn split(url: &str) -> Result<(bool, &str, String), Error> {
    let refuse = |why: &str| Err(Error::invalid_input(format!("`{url}` is not an address to send to: {why}")));
    let (secure, rest) = match url.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
        _ => return refuse("it begins with neither `https://` nor `http://`"),
    };
    if url.chars().any(|character| character.is_whitespace() || character.is_control() || character == '\\') {
        return refuse("it contains a space, a control character or a backslash; percent-encode it");
    }
    let rest = rest.split_once('#').map_or(rest, |(before, _)| before);
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    if authority.is_empty() {
        return refuse("it does not name a server");
    }
    if authority.contains('@') {
        return refuse("a user and password belong into the header `authorization`");
    }
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    Ok((secure, authority, path))
}

#[cfg(test)]
mod tests {
    use super::{Response, get, split};

    #[test]
    fn addresses_are_split_or_refused() {
        let parts = |url: &str| split(url).map(|(secure, server, path)| format!("{secure} {server} {path}"));
        assert_eq!(parts("HTTPS://a.example:8443/x/y?q=1#part"), Ok("true a.example:8443 /x/y?q=1".to_owned()));
        assert_eq!(parts("http://[::1]?q"), Ok("false [::1] /?q".to_owned()));
        for url in ["a.example", "ftp://a.example", "https://", "https:///x", "https://user@a.example", "https://a/b c"]
        {
            assert_eq!(parts(url).map_err(|error| error.kind()), Err("invalid-input"), "{url}");
        }
    }

    #[test]
    fn queries_come_before_the_fragment() {
        let url = get("https://a.example/x?a=1#part").query("b c", "&ü").url;
        assert_eq!(url, "https://a.example/x?a=1&b%20c=%26%C3%BC");
    }

    #[test]
    fn a_status_decides_the_kind() {
        let kind = |status| {
            let response = Response { status, headers: Vec::new(), body: b" why ".to_vec() };
            response.success().map(|response| response.status).map_err(|error| error.to_string())
        };
        assert_eq!(kind(204), Ok(204));
        assert_eq!(kind(429), Err("unavailable: the server answered with the status 429: why".to_owned()));
        assert_eq!(kind(301), Err("other: the server answered with the status 301: why".to_owned()));
    }
}
