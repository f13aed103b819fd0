//! Who asks, as far as the server around the protocol knows.

use std::sync::Arc;

use http::Extensions;
use http::request::Parts;

/// The client of a request.
///
/// Whoever has other things on the same server knows more of it than its session does: what it put into the extensions of
/// the HTTP request is found here.
#[derive(Clone, Debug, Default)]
pub struct Client(Option<Arc<Request>>);

#[derive(Debug)]
struct Request {
    path: String,
    extensions: Extensions,
}

impl Client {
    /// The client of a request that came over HTTP.
    pub(super) fn of(parts: Option<&Parts>) -> Self {
        let request = parts
            .map(|parts| Arc::new(Request { path: parts.uri.path().to_owned(), extensions: parts.extensions.clone() }));
        Client(request)
    }

    /// The path that the request was sent to; empty for one that did not come over HTTP.
    pub fn path(&self) -> &str {
        self.0.as_ref().map_or("", |request| &request.path)
    }

    /// What was put into the extensions of the request.
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.0.as_ref()?.extensions.get()
    }
}

/// Put into the extensions of an HTTP request: whose it is. A session is found by those alone who began it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionOwner(pub String);
