//! The HTTP form of the protocol of 2024-11-05: a stream of events from the server, and an address, announced in it,
//! that messages are posted to.
//!
//! The address must be of the same origin as the stream, because the headers with the keys go there too. A stream
//! that ends cannot be resumed: the connection has then ended.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, StatusCode};
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};
use url::Url;

use super::ending::Ending;
use super::event_stream::{EventReader, StreamEvent, TooLarge};
use super::http::{Refused, explain, header_map, unreachable};
use super::message::{Decoded, decode};
use super::pace::{Pace, UNASKED, reading};
use crate::error::McpError;
use crate::text::shown;

/// How many messages wait to be taken before the stream is not read any further.
const WAITING_MESSAGES: usize = 16;
/// How many events in a row may be something other than messages.
const GARBAGE_EVENTS: u32 = 100;
/// How long the server may take to acknowledge a message.
const POST_WITHIN: Duration = Duration::from_secs(30);

/// A connection by server-sent events.
pub(crate) struct Sse {
    client: reqwest::Client,
    endpoint: Url,
    headers: HashMap<HeaderName, HeaderValue>,
    messages: mpsc::Receiver<RxJsonRpcMessage<RoleClient>>,
    _reading: DropGuard,
}

impl Sse {
    /// Opens the stream and waits for the address to post to. Takes as long as the server does.
    pub(crate) async fn open(
        server: &Arc<str>,
        client: reqwest::Client,
        url: &Url,
        headers: &BTreeMap<String, String>,
        limit: usize,
        ending: Arc<Ending>,
    ) -> Result<Self, McpError> {
        let handshake = |reason: String| McpError::Handshake { server: server.to_string(), reason };
        let headers =
            header_map(headers).map_err(|reason| McpError::Settings { server: server.to_string(), reason })?;
        let request = with_headers(client.get(url.clone()), &headers).header(ACCEPT, "text/event-stream");
        let response = request.send().await.map_err(|error| unreachable(server, explain(&error), None))?;
        match response.status() {
            StatusCode::UNAUTHORIZED => return Err(McpError::Unauthorized { server: server.to_string() }),
            status if !status.is_success() => {
                return Err(unreachable(server, format!("HTTP {status}"), Some(status.as_u16())));
            }
            _ => {}
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("nothing");
        if !kind.starts_with("text/event-stream") {
            return Err(handshake(format!("it answered with {} and not with a stream of events", shown(kind))));
        }
        let mut stream = EventStream { response, reader: EventReader::new(limit), events: Vec::new().into_iter() };
        let mut pace = Pace::new();
        let endpoint = loop {
            pace.ready().await;
            match stream.next().await {
                Ok(Some(event)) if event.name == "endpoint" => break event.data,
                Ok(Some(event)) => pace.spend(UNASKED.saturating_add(reading(event.data.len()))),
                Ok(None) => return Err(handshake("the stream ended before the address to post to".to_owned())),
                Err(reason) => return Err(handshake(reason)),
            }
        };
        let endpoint = url.join(&endpoint).map_err(|error| handshake(format!("the address to post to: {error}")))?;
        if endpoint.origin() != url.origin() {
            let (there, here) = (endpoint.origin().ascii_serialization(), url.origin().ascii_serialization());
            return Err(handshake(format!("it wants messages to be posted to {}, not to {here}", shown(&there))));
        }
        let (sender, messages) = mpsc::channel(WAITING_MESSAGES);
        let stop = CancellationToken::new();
        let work = read(server.clone(), stream, sender, ending);
        tokio::spawn(stop.clone().run_until_cancelled_owned(work));
        Ok(Sse { client, endpoint, headers, messages, _reading: stop.drop_guard() })
    }
}

fn with_headers(
    mut request: reqwest::RequestBuilder,
    headers: &HashMap<HeaderName, HeaderValue>,
) -> reqwest::RequestBuilder {
    for (name, value) in headers {
        request = request.header(name, value);
    }
    request
}

/// A response that is read as events.
struct EventStream {
    response: reqwest::Response,
    reader: EventReader,
    events: std::vec::IntoIter<StreamEvent>,
}

impl EventStream {
    async fn next(&mut self) -> Result<Option<StreamEvent>, String> {
        loop {
            if let Some(event) = self.events.next() {
                return Ok(Some(event));
            }
            let piece =
                self.response.chunk().await.map_err(|error| format!("the stream broke: {}", explain(&error)))?;
            let Some(piece) = piece else {
                return Ok(None);
            };
            let mut events = Vec::new();
            self.reader
                .read(&piece, &mut events)
                .map_err(|TooLarge| "it sent an event that is too large".to_owned())?;
            self.events = events.into_iter();
        }
    }
}

/// Reads messages until the stream ends.
async fn read(
    server: Arc<str>,
    mut stream: EventStream,
    sender: mpsc::Sender<RxJsonRpcMessage<RoleClient>>,
    ending: Arc<Ending>,
) {
    let (mut garbage, mut pace) = (0, Pace::new());
    loop {
        pace.ready().await;
        let event = match stream.next().await {
            Ok(Some(event)) => event,
            Ok(None) => return ending.end_because("it closed the stream of events"),
            Err(fault) => return ending.end_because(fault),
        };
        pace.spend(UNASKED.saturating_add(reading(event.data.len())));
        if !matches!(event.name.as_str(), "" | "message") {
            continue;
        }
        match decode(event.data.as_bytes()) {
            Decoded::Message(message) => {
                garbage = 0;
                if sender.send(*message).await.is_err() {
                    return;
                }
            }
            Decoded::Garbage(reason) => {
                garbage += 1;
                tracing::warn!(server = %server, event = shown(&event.data), reason, "not a message, ignored");
                if garbage > GARBAGE_EVENTS {
                    return ending.end_because(format!("it sent {garbage} events in a row that are not messages"));
                }
            }
        }
    }
}

impl Transport<RoleClient> for Sse {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let request = with_headers(self.client.post(self.endpoint.clone()), &self.headers);
        async move {
            let body = serde_json::to_vec(&item)?;
            let request = request.header(CONTENT_TYPE, "application/json").timeout(POST_WITHIN).body(body);
            let response = request.send().await.map_err(|error| io::Error::other(explain(&error)))?;
            match response.status() {
                status if status.is_success() => Ok(()),
                status => Err(io::Error::other(Refused(status))),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        self.messages.recv().await
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.messages.close();
        Ok(())
    }
}
