//! A server as its clients see it: the requests that the command line makes, and what becomes of those that are refused.

use std::path::Path;
use std::time::Duration;

use hotcell_files::MAX_TEXT;
use hotcell_runtime::mcp::{
    self, EventReader, HttpClient, HttpReply, Limits, McpError, ServerSettings, StreamEvent, TlsFiles, Transport,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::{Host, Url};

use super::replies::Problem;
use crate::arguments::Far;
use crate::exit::{Exit, Failure};
use crate::screen::Screen;
use crate::untrusted::{lines, one_line};

/// The variable with the API key.
const KEY: &str = "HOTCELL_SERVER_KEY";
/// Bytes of a reply that are read.
const LARGEST_REPLY: usize = 64 << 20;
/// Bytes of an event that are read.
const LARGEST_EVENT: usize = 16 << 20;
/// How long a stream may be silent; a server says four times in that time that it is there.
const SILENCE: Duration = Duration::from_secs(60);
/// How much of a text of the server is shown.
const SHOWN: usize = 2_000;

/// A server.
pub(crate) struct Client {
    base: Url,
    key: Option<String>,
    http: HttpClient,
}

/// Events of a run as they arrive.
pub(crate) struct Events {
    /// The run that was begun, where the server said which before the first event
    pub(crate) run: Option<String>,
    response: HttpReply,
    reader: EventReader,
    ready: std::vec::IntoIter<StreamEvent>,
    server: String,
}

/// Why a request was not answered as it should be.
#[derive(Debug)]
pub(crate) enum Refused {
    /// By the server, which says why
    Problem(Box<Problem>),
    /// The connection, or what came over it, cannot be used
    Broken(String),
}

impl Client {
    /// The server that the command line names, if it names one.
    pub(crate) fn of(far: &Far, screen: &Screen) -> Result<Option<Self>, Failure> {
        let Some(base) = far.server.clone() else { return Ok(None) };
        let transport =
            Transport::StreamableHttp { url: base.clone(), headers: Default::default(), tls: TlsFiles::default() };
        let settings = ServerSettings { name: base.to_string(), transport, limits: Limits::default() };
        let http = mcp::http_client(&settings).map_err(|error| {
            let reason = match error {
                McpError::Settings { reason, .. } => reason,
                other => other.to_string(),
            };
            Failure::refused(format!("the server at {base} cannot be used: {reason}"))
        })?;
        let key = match &far.server_key_file {
            Some(file) => Some(read_key(file)?),
            None => std::env::var(KEY).ok().filter(|key| !key.is_empty()),
        };
        if key.is_some() && base.scheme() == "http" && !is_here(&base) {
            screen.warning(&format!(
                "the API key goes to {base} without encryption; use `https` where others can listen"
            ));
        }
        Ok(Some(Client { base, key, http }))
    }

    /// Where the server is, as the command line says it.
    pub(crate) fn address(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// Asks for something. The parts of the path are escaped.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &[&str], query: &[(&str, &str)]) -> Result<T, Refused> {
        self.read(self.send("GET", path, query, None).await?).await
    }

    /// Has something done.
    pub(crate) async fn post<T: DeserializeOwned>(&self, path: &[&str], body: &Value) -> Result<T, Refused> {
        self.read(self.send("POST", path, &[], Some(body)).await?).await
    }

    /// Follows a run from an entry on.
    pub(crate) async fn follow(&self, run: &str, after: u64) -> Result<Option<Events>, Refused> {
        let after = after.to_string();
        let response = self.send("GET", &["runs", run, "stream"], &[("after", &after)], None).await?;
        Ok((response.status().as_u16() != 204).then(|| self.events(response)))
    }

    /// Has something done, and follows what comes of it.
    pub(crate) async fn post_and_follow(&self, path: &[&str], body: &Value) -> Result<Events, Refused> {
        Ok(self.events(self.send("POST", path, &[], Some(body)).await?))
    }

    fn events(&self, response: HttpReply) -> Events {
        let reader = EventReader::new(LARGEST_EVENT);
        let place = response.headers().get("content-location").and_then(|place| place.to_str().ok());
        let run = place.and_then(|place| place.strip_prefix("/runs/")).map(str::to_owned);
        Events { run, response, reader, ready: Vec::new().into_iter(), server: self.address().to_owned() }
    }

    async fn send(
        &self,
        method: &str,
        path: &[&str],
        query: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Result<HttpReply, Refused> {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let mut request = match method {
            "POST" => self.http.post(url),
            _ => self.http.get(url),
        };
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let response = request.send().await.map_err(|error| self.broken(&reason(&error)))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status().as_u16();
        let bytes = self.bytes(response).await?;
        let problem = serde_json::from_slice::<Problem>(&bytes);
        Err(Refused::Problem(Box::new(problem.unwrap_or_else(|_| Problem::unknown(status, self.address())))))
    }

    async fn read<T: DeserializeOwned>(&self, response: HttpReply) -> Result<T, Refused> {
        let bytes = self.bytes(response).await?;
        serde_json::from_slice(&bytes).map_err(|error| self.broken(&format!("its reply cannot be read: {error}")))
    }

    async fn bytes(&self, mut response: HttpReply) -> Result<Vec<u8>, Refused> {
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.broken(&reason(&error)))? {
            if bytes.len() + chunk.len() > LARGEST_REPLY {
                return Err(self.broken(&format!("its reply has more than {LARGEST_REPLY} bytes")));
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok(bytes)
    }

    fn broken(&self, reason: &str) -> Refused {
        Refused::Broken(format!("the server at {} cannot be used: {}", self.address(), one_line(reason, SHOWN)))
    }
}

impl Events {
    /// The next event, by its name and its data; none when the stream has ended, as it should or not.
    pub(crate) async fn next(&mut self) -> Result<Option<(String, Value)>, Refused> {
        loop {
            if let Some(event) = self.ready.next() {
                let data = serde_json::from_str(&event.data);
                let data = data.map_err(|error| self.broken(&format!("an event cannot be read: {error}")))?;
                return Ok(Some((event.name, data)));
            }
            // A stream that breaks off is taken up again from the last entry.
            let Ok(Ok(Some(chunk))) = tokio::time::timeout(SILENCE, self.response.chunk()).await else {
                return Ok(None);
            };
            let mut events = Vec::new();
            let read = self.reader.read(&chunk, &mut events);
            read.map_err(|_| self.broken(&format!("it sent an event of more than {LARGEST_EVENT} bytes")))?;
            self.ready = events.into_iter();
        }
    }

    fn broken(&self, reason: &str) -> Refused {
        Refused::Broken(format!("the server at {} cannot be used: {}", self.server, one_line(reason, SHOWN)))
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        let problem = match refused {
            Refused::Problem(problem) => problem,
            Refused::Broken(reason) => return Failure::failed(reason),
        };
        let message = lines(problem.detail.trim_end());
        match problem.status {
            401 => Failure::refused(message).help(format!(
                "the key is taken from the variable `{KEY}`, or from the file that `--server-key-file` names"
            )),
            429 | 500.. => Failure { exit: Exit::Failed, message: Some(message), help: None },
            _ => Failure::refused(message),
        }
    }
}

/// The API key of a file.
fn read_key(file: &Path) -> Result<String, Failure> {
    let unread = |error: std::io::Error| {
        Failure::refused(format!("the API key in `{}` cannot be read: {error}", file.display()))
    };
    let text = hotcell_files::read_text(file, MAX_TEXT).map_err(unread)?;
    let key = text.trim();
    match !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(key.to_owned()),
        false => Err(Failure::refused(format!("`{}` does not contain an API key", file.display()))),
    }
}

/// Whether a server is on this machine.
fn is_here(base: &Url) -> bool {
    match base.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Why a request failed, with what caused that.
fn reason(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = error.to_string();
        cause = error.source();
    }
    text
}
