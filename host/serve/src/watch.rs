//! Every request as one that is watched: it gets an id, is counted, and is told in the log.
//!
//! What is told are names: of routes, runs, agents and keys. Bodies, queries and headers are not.

use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::response::Response;
use hotcell_telemetry::{Measure, Telemetry};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use tracing::field::Empty;
use tracing::{Instrument as _, info_span};

use crate::state::Server;
use crate::step::Next;

/// The header with the id of a request, there and back.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Characters that an id may have which a client thought of.
const MOST_CHARACTERS: usize = 64;
/// Stands for every address that no route has.
const NO_ROUTE: &str = "unmatched";

/// Watches a request.
pub(crate) async fn request(server: Server, request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let id = id_of(request.headers());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or(NO_ROUTE, MatchedPath::as_str);
    let method = method(request.method());
    let span = info_span!(
        target: "hotcell::serve", "request",
        request_id = id.to_str().unwrap_or_default(), method, route,
        run_id = Empty, agent = Empty, key = Empty, tenant = server.telemetry().tenant(),
    );
    let active = Active::new(server.telemetry());
    let mut response = next.run(request).instrument(span.clone()).await;
    drop(active);
    let (status, took) = (response.status(), begun.elapsed());
    server.telemetry().took(Measure::HttpSeconds, &[method, route, status.as_str()], took);
    span.in_scope(|| {
        let elapsed_ms = took.as_secs_f64() * 1e3;
        tracing::info!(target: "hotcell::serve", status = status.as_u16(), elapsed_ms, "answered");
    });
    response.headers_mut().insert(REQUEST_ID, id);
    response
}

/// Counts a request that is being answered, also if its client goes away.
struct Active<'a>(&'a Telemetry);

impl<'a> Active<'a> {
    fn new(telemetry: &'a Telemetry) -> Self {
        telemetry.add(Measure::HttpActive, &[], 1);
        Active(telemetry)
    }
}

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.0.less(Measure::HttpActive, &[]);
    }
}

/// The id that the client gave, if it is one that can be told, or a new one.
fn id_of(headers: &HeaderMap) -> HeaderValue {
    let is_plain = |id: &&HeaderValue| {
        let characters = id.as_bytes();
        (1..=MOST_CHARACTERS).contains(&characters.len())
            && characters.iter().all(|c| c.is_ascii_alphanumeric() || b"-_.:".contains(c))
    };
    headers.get(REQUEST_ID).filter(is_plain).cloned().unwrap_or_else(|| {
        let id = format!("{:016x}", rand::random::<u64>());
        // Digits can be sent.
        HeaderValue::try_from(id).unwrap_or(HeaderValue::from_static("-"))
    })
}

/// A method that is known: whoever thinks of others does not decide how many are counted.
fn method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::PATCH => "PATCH",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        _ => "_OTHER",
    }
}
