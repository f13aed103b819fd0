//! Requests: time and size as the settings say, no way to another server, and which failures may be tried again.

use std::time::Duration;

use hotcell_plugin::http::{self, Request, Response};
use hotcell_plugin::{Error, Json};

use crate::a_job::{Settings, text_of};
use crate::failure::Failure;

/// How long a request may take where nobody says.
const TIMEOUT_MS: u64 = 30_000;
/// Bytes that an answer may have where nobody says.
const BYTES: usize = 1_000_000;
/// How often a server may send on to another place of its own.
const REDIRECTS: usize = 3;
/// Characters of an answer that an error shows.
const SHOWN: usize = 300;

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// The response
    pub response: Response,
    is_safe: bool,
}

impl Settings {
    /// Sends a request and gives the answer, whatever its status.
    ///
    /// # Errors
    /// Why there is none.
    pub fn send(&self, request: Request) -> Result<Answer, Failure> {
        let timeout = self.milliseconds("http_timeout").or_else(|| self.milliseconds("timeout")).unwrap_or(TIMEOUT_MS);
        let limit = self.number("max_response_bytes").and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(BYTES);
        let mut request = request.timeout(Duration::from_millis(timeout)).limit(limit);
        if !request.headers.iter().any(|(name, _)| name == "accept") {
            request = request.header("accept", "application/json");
        }
        for _ in 0..=REDIRECTS {
            let is_safe = request.method == "GET";
            let response = request.clone().send().map_err(|error| {
                let failure = Failure::from(error.clone());
                // Whether the server did something is not known.
                if is_safe && error.kind() == "unavailable" { failure.again(None) } else { failure }
            })?;
            let Some(location) = response.header("location").filter(|_| (300..400).contains(&response.status)) else {
                return Ok(Answer { response, is_safe });
            };
            let url = on_same_server(&request.url, location).ok_or_else(|| {
                Failure::new(format!("it sends on to `{location}`, which is another server and is not followed"))
            })?;
            let keeps = matches!(response.status, 307 | 308) || is_safe;
            request.url = url;
            if !keeps {
                request.method = "GET".to_owned();
                request.body = Vec::new();
                request.headers.retain(|(name, _)| name != "content-type");
            }
        }
        Err(Failure::new("it sends on again and again"))
    }

    /// Reads something.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn get_from(&self, url: &str, headers: &[(&str, String)]) -> Result<Answer, Failure> {
        self.send(with(http::get(url), headers))
    }

    /// Sends JSON.
    ///
    /// # Errors
    /// Why there is no answer.
    pub fn post_to(&self, url: &str, headers: &[(&str, String)], body: &Json) -> Result<Answer, Failure> {
        self.send(with(http::post(url).json(body), headers))
    }
}

fn with(request: Request, headers: &[(&str, String)]) -> Request {
    headers.iter().fold(request, |request, (name, value)| request.header(*name, value))
}

impl Answer {
    /// The status.
    pub fn status(&self) -> u16 {
        self.response.status
    }

    /// The answer itself where its status is 200 to 299.
    ///
    /// # Errors
    /// What the server said. One that may be tried again says so: what was refused for the moment, and what was only read.
    pub fn success(self) -> Result<Self, Failure> {
        let status = self.status();
        if (200..300).contains(&status) {
            return Ok(self);
        }
        let failure = Failure::new(format!("it answered with the status {status}{}", self.shown()));
        let after = self.response.header("retry-after").and_then(|after| after.trim().parse::<u64>().ok());
        let after = after.map(|seconds| seconds.saturating_mul(1000));
        // What was refused for the moment was not done.
        let was_refused = status == 429 || status == 503 && after.is_some();
        let is_passing = self.is_safe && (status == 408 || status >= 500);
        Err(if was_refused || is_passing { failure.again(after) } else { failure })
    }

    /// The body, which has to be JSON.
    ///
    /// # Errors
    /// That it is not.
    pub fn json(&self) -> Result<Json, Failure> {
        self.response
            .json::<Json>()
            .map_err(|error: Error| Failure::new(format!("{}{}", error.message(), self.shown())))
    }

    /// The body: JSON if it is JSON, else a text; nothing is null.
    ///
    /// # Errors
    /// That it says it is JSON, and is not.
    pub fn value(&self) -> Result<Json, Failure> {
        let says_json = self.response.header("content-type").is_some_and(|kind| kind.contains("json"));
        match self.response.json::<Json>() {
            Ok(value) => Ok(value),
            Err(_) if says_json && !self.response.body.is_empty() => self.json(),
            Err(_) if self.response.body.is_empty() => Ok(Json::Null),
            Err(_) => Ok(self.response.text()?.into()),
        }
    }

    fn shown(&self) -> String {
        let body = match self.response.json::<Json>() {
            Ok(value) => ["error", "detail", "details"]
                .iter()
                .find_map(|name| value.get(*name).filter(|found| !found.is_null()))
                .map_or_else(|| text_of(&value), text_of),
            Err(_) => String::from_utf8_lossy(&self.response.body).trim().to_owned(),
        };
        let start: String = body.chars().take(SHOWN).collect();
        if start.is_empty() { String::new() } else { format!(": {start}") }
    }
}

/// The address that a server sends on to, if that is its own.
fn on_same_server(url: &str, location: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let server = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let origin = format!("{scheme}://{server}");
    if location.starts_with("//") {
        return None;
    }
    if location.starts_with('/') {
        return Some(format!("{origin}{location}"));
    }
    let rest = location.strip_prefix(&origin)?;
    (rest.is_empty() || rest.starts_with(['/', '?'])).then(|| location.to_owned())
}

/// A text as one segment of a path, whatever is in it. What would be a step up is none.
pub fn segment(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'~' => encoded.push(char::from(byte)),
            b'.' if text.bytes().any(|byte| byte != b'.') => encoded.push('.'),
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::{on_same_server, segment};

    #[test]
    fn no_way_leads_to_another_server() {
        let from = "https://a.example:8443/x/y?q";
        for (location, to) in [
            ("/z", Some("https://a.example:8443/z")),
            ("https://a.example:8443/z", Some("https://a.example:8443/z")),
            ("https://a.example:84430/z", None),
            ("https://a.example/z", None),
            ("http://a.example:8443/z", None),
            ("//b.example/z", None),
            ("https://a.example:8443@b.example/z", None),
            ("https://a.example:8443.b.example/z", None),
            ("z", None),
        ] {
            assert_eq!(on_same_server(from, location).as_deref(), to, "{location}");
        }
    }

    #[test]
    fn what_a_server_calls_something_stays_one_segment() {
        for (id, encoded) in [
            ("k-5", "k-5"),
            ("../admin?x=1", "..%2Fadmin%3Fx%3D1"),
            ("..", "%2E%2E"),
            (".", "%2E"),
            ("a b/ü", "a%20b%2F%C3%BC"),
            ("count 3/4 cups", "count%203%2F4%20cups"),
        ] {
            assert_eq!(segment(id), encoded, "{id}");
        }
    }
}
