//! A server that gives canned HTTP answers, one a connection, and keeps what it was sent.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use hotcell_models::{HttpLimits, Message, ModelName, Protocol, ProviderSettings, Providers, Request, Secret};
use serde_json::Value;

/// One request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// Path and query.
    pub(crate) target: String,
    /// The header lines, names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// The body.
    pub(crate) body: Value,
    /// The body as a text.
    pub(crate) text: String,
}

impl Seen {
    /// The value of a header, or nothing.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }
}

/// What the server does with a connection.
pub(crate) enum Answer {
    /// Sends these bytes and closes.
    Bytes(Vec<u8>),
    /// Sends these bytes and then nothing more, keeping the connection open.
    Hang(Vec<u8>),
    /// Closes without a word.
    Close,
}

impl Answer {
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::body(status, "application/json", &body.to_string())
    }

    pub(crate) fn body(status: u16, content_type: &str, body: &str) -> Self {
        let length = body.len();
        Self::Bytes(
            format!("HTTP/1.1 {status} x\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
                .into_bytes(),
        )
    }
}

pub(crate) struct Canned {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Canned {
    pub(crate) fn start(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        thread::spawn(move || {
            let mut open = Vec::new();
            for answer in answers {
                let (stream, _) = listener.accept().expect("a connection");
                if let Some(stream) = serve(stream, answer, &log) {
                    open.push(stream);
                }
            }
            // Later connections are refused by dropping the listener; hanging ones stay open.
            drop(listener);
            thread::sleep(Duration::from_secs(60));
        });
        Self { address, seen }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("no panic").clone()
    }

    /// The only request there was.
    pub(crate) fn only(&self) -> Seen {
        let seen = self.seen();
        assert_eq!(seen.len(), 1, "{seen:?}");
        seen[0].clone()
    }
}

fn serve(mut stream: TcpStream, answer: Answer, log: &Mutex<Vec<Seen>>) -> Option<TcpStream> {
    let mut reader = BufReader::new(stream.try_clone().expect("a clone"));
    let mut line = String::new();
    reader.read_line(&mut line).expect("a request line");
    let target = line.split_whitespace().nth(1).unwrap_or_default().to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a header");
        let Some((name, value)) = line.trim().split_once(':') else { break };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    let length = headers
        .iter()
        .find(|(name, _)| name == "content-length")
        .map_or(0, |(_, value)| value.parse().expect("a length"));
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("the body");
    let text = String::from_utf8(body).expect("a text");
    let body = serde_json::from_str(&text).unwrap_or(Value::Null);
    log.lock().expect("no panic").push(Seen { target, headers, body, text });
    match answer {
        Answer::Bytes(bytes) => {
            stream.write_all(&bytes).ok();
            None
        }
        Answer::Hang(bytes) => {
            stream.write_all(&bytes).ok();
            Some(stream)
        }
        Answer::Close => None,
    }
}

/// A provider `p` of this protocol at `url`, with the key `sk-test`.
pub(crate) fn provider(protocol: Protocol, url: String, limits: HttpLimits) -> Providers {
    let settings = ProviderSettings { protocol, base_url: Some(url), key: Some(Secret::new("sk-test")) };
    Providers::new(limits).with_provider("p", settings).expect("a URL")
}

/// A request of one user message to `p:m`.
pub(crate) fn ask(text: &str) -> Request {
    Request::new(name("p:m"), vec![Message::user(text)])
}

pub(crate) fn name(name: &str) -> ModelName {
    name.parse().expect("a name")
}
