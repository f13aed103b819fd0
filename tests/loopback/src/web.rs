//! A web server that keeps its requests and answers each as it is told.

use std::{
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use hyper::StatusCode;

use crate::{listen::Listening, respond::HttpReply};

/// A request as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebRequest {
    /// The method.
    pub method: String,
    /// The path as it was written, without the query.
    pub path: String,
    /// The query as it was written; empty if there is none.
    pub query: String,
    /// The headers; names are in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebAnswer {
    /// The status.
    pub status: u16,
    /// The body.
    pub body: String,
    /// Whether the body is JSON.
    pub is_json: bool,
    /// Further headers.
    pub headers: Vec<(String, String)>,
}

/// A running web server. Dropping it stops it.
#[derive(Debug)]
pub struct WebServer {
    listening: Listening,
    requests: Arc<Mutex<Vec<WebRequest>>>,
}

impl WebServer {
    /// Starts a server on a free port of `127.0.0.1`. `answer` decides what each request gets; without an answer it is
    /// a 404.
    ///
    /// # Errors
    ///
    /// When no port can be bound or no thread started.
    pub fn start(answer: impl Fn(&WebRequest) -> Option<WebAnswer> + Send + Sync + 'static) -> io::Result<Self> {
        Self::start_late(move |request| std::future::ready(answer(request)))
    }

    /// The same for a server that takes its time: it answers when the future is ready. A future is dropped when the client goes
    /// away before.
    ///
    /// # Errors
    ///
    /// As [`WebServer::start`].
    pub fn start_late<R>(answer: impl Fn(&WebRequest) -> R + Send + Sync + 'static) -> io::Result<Self>
    where
        R: Future<Output = Option<WebAnswer>> + Send + 'static,
    {
        let requests: Arc<Mutex<Vec<WebRequest>>> = Arc::default();
        let kept = Arc::clone(&requests);
        let listening = Listening::start(move |head, body| {
            let text = |value: &hyper::header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
            let request = WebRequest {
                method: head.method.to_string(),
                path: head.uri.path().to_owned(),
                query: head.uri.query().unwrap_or_default().to_owned(),
                headers: head.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect(),
                body: body.to_vec(),
            };
            let answer = answer(&request);
            lock(&kept).push(request);
            async move {
                match answer.await {
                    Some(answer) => HttpReply {
                        status: StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
                        content_type: if answer.is_json { "application/json" } else { "text/plain; charset=utf-8" },
                        headers: answer.headers,
                        body: answer.body,
                    },
                    None => HttpReply::error(StatusCode::NOT_FOUND, Some("nothing answers this")),
                }
            }
        })?;
        Ok(Self { listening, requests })
    }

    /// The port it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.listening.address().port()
    }

    /// Every request so far.
    #[must_use]
    pub fn requests(&self) -> Vec<WebRequest> {
        lock(&self.requests).clone()
    }
}

/// A list to which only whole requests are added, so a panic elsewhere does not spoil it.
fn lock(requests: &Mutex<Vec<WebRequest>>) -> MutexGuard<'_, Vec<WebRequest>> {
    requests.lock().unwrap_or_else(PoisonError::into_inner)
}
