//! A server on loopback that answers as a test says, one request a connection.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// The server. It keeps the text of every request.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

/// What a request is answered with; none is never answered.
pub(crate) type Answer = Option<Vec<u8>>;

impl Server {
    /// Starts a server for as long as the test runs. `answer` is told the whole text of a request.
    pub(crate) async fn start(answer: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Self {
        Self::start_for(1, answer).await
    }

    /// The same, but nothing is answered before so many requests have come.
    pub(crate) async fn start_for(come: usize, answer: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let (kept, answer) = (requests.clone(), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (kept, answer) = (kept.clone(), answer.clone());
                tokio::spawn(async move {
                    let request = read(&mut stream).await;
                    lock(&kept).push(request.clone());
                    while lock(&kept).len() < come {
                        tokio::time::sleep(Duration::from_millis(2)).await;
                    }
                    match answer(&request) {
                        // A client that has seen enough closes the connection, which is its right.
                        Some(answer) => drop(stream.write_all(&answer).await),
                        None => std::future::pending().await,
                    }
                });
            }
        });
        Self { address, requests }
    }

    /// Its address without a path.
    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every request so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        lock(&self.requests).clone()
    }
}

/// An answer with this status line, these header lines and this body.
pub(crate) fn answer(status: &str, headers: &str, body: &str) -> Answer {
    let length = body.len();
    Some(format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n{headers}\r\n{body}").into_bytes())
}

/// Head and body of one request.
async fn read(stream: &mut TcpStream) -> String {
    let mut request = Vec::new();
    let mut part = vec![0; 65_536];
    loop {
        let text = String::from_utf8_lossy(&request);
        if let Some((head, _)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.map_or(0, |length| length.parse().expect("a number"));
            if request.len() >= head.len() + 4 + length {
                return text.into_owned();
            }
        }
        match stream.read(&mut part).await {
            Ok(0) | Err(_) => return text.into_owned(),
            Ok(read) => request.extend_from_slice(&part[..read]),
        }
    }
}

fn lock(requests: &Mutex<Vec<String>>) -> MutexGuard<'_, Vec<String>> {
    requests.lock().unwrap_or_else(PoisonError::into_inner)
}
