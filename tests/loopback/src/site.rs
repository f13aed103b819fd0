//! A server that answers as a test says: pages, and services that speak JSON.

use std::io;

use crate::web::{WebAnswer, WebServer};

/// A running server. Dropping it stops it.
#[derive(Debug)]
pub struct Site {
    server: WebServer,
}

impl Site {
    /// Starts a server on a free port of `127.0.0.1`. `answer` is given the path and the body of a request and gives the
    /// body of the reply; nothing is a 404.
    ///
    /// # Errors
    ///
    /// When no port can be bound or no thread started.
    pub fn start(answer: impl Fn(&str, &[u8]) -> Option<String> + Send + Sync + 'static) -> io::Result<Self> {
        let server = WebServer::start(move |request| {
            let body = answer(&request.path, &request.body)?;
            Some(WebAnswer { status: 200, body, is_json: true, headers: Vec::new() })
        })?;
        Ok(Self { server })
    }

    /// Its address, without a path.
    #[must_use]
    pub fn origin(&self) -> String {
        format!("http://127.0.0.1:{}", self.server.port())
    }
}
