//! A client that sends what a case says, to the byte: one connection for each request.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_util::task::AbortOnDropHandle;

/// How long a reply is waited for, in real time.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is sent.
#[derive(Clone, Debug)]
pub(super) struct Post {
    pub(super) method: String,
    /// Path and query
    pub(super) path: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
}

/// What came back.
#[derive(Clone, Debug)]
pub(super) struct Answered {
    pub(super) status: u16,
    /// Names are in lower case
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
}

impl Answered {
    /// The body as JSON.
    pub(super) fn json(&self) -> Option<Value> {
        serde_json::from_str(&self.body).ok()
    }

    /// One line, and the body.
    pub(super) fn shown(&self) -> String {
        format!("{} {}", self.status, self.body).trim_end().to_owned()
    }
}

/// An event of a stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct StreamEvent {
    pub(super) event: String,
    pub(super) data: String,
}

/// Sends a request to a port of this machine, and waits for the whole reply.
pub(super) async fn send(port: u16, post: &Post) -> Result<Answered, String> {
    let whole = async {
        let (response, _connection) = begin(port, post).await?;
        let (status, headers) = head(&response);
        let body = response.into_body().collect().await.map_err(|error| error.to_string())?.to_bytes();
        Ok(Answered { status, headers, body: String::from_utf8_lossy(&body).into_owned() })
    };
    let late = || format!("{} {} was not answered within {} s", post.method, post.path, PATIENCE.as_secs());
    tokio::time::timeout(PATIENCE, whole).await.unwrap_or_else(|_| Err(late()))
}

/// Sends a request and reads events until one of that name came, or there are no more. The connection is closed then.
pub(super) async fn stream(port: u16, post: &Post, until: Option<&str>) -> Result<Vec<StreamEvent>, String> {
    let mut reader = Reader::default();
    let whole = async {
        let (response, _connection) = begin(port, post).await?;
        let (status, _) = head(&response);
        let mut body = response.into_body();
        let mut text = String::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| error.to_string())?;
            let Some(data) = frame.data_ref() else { continue };
            text += &String::from_utf8_lossy(data);
            reader.read(data);
            if until.is_some_and(|until| reader.events.iter().any(|event| event.event == until)) {
                return Ok(());
            }
        }
        if status != 200 {
            return Err(format!("no stream was begun: {status} {text}"));
        }
        Ok(())
    };
    match tokio::time::timeout(PATIENCE, whole).await {
        Ok(Ok(())) => Ok(reader.events),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(format!("the stream did not end within {} s: {:?}", PATIENCE.as_secs(), reader.events)),
    }
}

fn head(response: &Response<Incoming>) -> (u16, Vec<(String, String)>) {
    let text = |value: &hyper::header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = response.headers().iter().map(|(name, value)| (name.to_string(), text(value))).collect();
    (response.status().as_u16(), headers)
}

/// The beginning of a reply, and the connection, which ends when it is dropped.
async fn begin(port: u16, post: &Post) -> Result<(Response<Incoming>, AbortOnDropHandle<()>), String> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await.map_err(|error| error.to_string())?;
    let connected = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = connected.map_err(|error| error.to_string())?;
    let connection = AbortOnDropHandle::new(tokio::spawn(async move {
        // Whoever waits for the reply hears of it.
        let _ = connection.await;
    }));
    let mut request = Request::builder().method(post.method.as_str()).uri(post.path.as_str());
    if post.headers.iter().all(|(name, _)| !name.eq_ignore_ascii_case("host")) {
        request = request.header("host", format!("127.0.0.1:{port}"));
    }
    for (name, value) in &post.headers {
        request = request.header(name, value);
    }
    let request = request.body(Full::new(Bytes::from(post.body.clone()))).map_err(|error| error.to_string())?;
    let response = sender.send_request(request).await;
    Ok((response.map_err(|error| format!("{} {}: {error}", post.method, post.path))?, connection))
}

/// Reads server-sent events from pieces of text.
#[derive(Default)]
struct Reader {
    rest: Vec<u8>,
    next: StreamEvent,
    events: Vec<StreamEvent>,
}

impl Reader {
    fn read(&mut self, piece: &[u8]) {
        self.rest.extend_from_slice(piece);
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            self.line(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']));
        }
    }

    fn line(&mut self, line: &str) {
        if line.is_empty() {
            let event = std::mem::take(&mut self.next);
            if !event.data.is_empty() || !event.event.is_empty() {
                let name = if event.event.is_empty() { "message".to_owned() } else { event.event };
                self.events.push(StreamEvent { event: name, ..event });
            }
            return;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.next.event = value.to_owned(),
            "data" if self.next.data.is_empty() => self.next.data = value.to_owned(),
            "data" => self.next.data = format!("{}\n{value}", self.next.data),
            // Comments, ids, and how long to wait before coming back.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Reader;

    #[test]
    fn events_are_read_from_any_pieces() {
        let text = ": hello\n\nid: 1\nevent: start\ndata: {\"a\":\ndata: 1}\n\nevent:result\r\ndata:x\r\n\r\ndata: y\n\nevent: half\n";
        for size in 1..text.len() {
            let mut reader = Reader::default();
            for piece in text.as_bytes().chunks(size) {
                reader.read(piece);
            }
            let events: Vec<(&str, &str)> =
                reader.events.iter().map(|event| (event.event.as_str(), event.data.as_str())).collect();
            assert_eq!(events, [("start", "{\"a\":\n1}"), ("result", "x"), ("message", "y")], "{size}");
        }
    }
}
