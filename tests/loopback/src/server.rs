//! The server: hands out scripted replies and keeps the requests.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use hyper::{Method, StatusCode, http::request::Parts};
use serde_json::Value;

use crate::{
    embeddings::embeddings_reply,
    listen::Listening,
    request::ModelRequest,
    respond::HttpReply,
    responses,
    script::{Script, ScriptedAnswer},
};

/// A running scripted model server. Dropping it stops it.
#[derive(Debug)]
pub struct Loopback {
    listening: Listening,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    script: Script,
    served: Vec<bool>,
    requests: Vec<ModelRequest>,
    unexpected: Vec<ModelRequest>,
    problems: Vec<String>,
    arrivals: Vec<Arrival>,
}

/// When a chat request came, and what it got.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// When it came.
    pub at: Instant,
    /// Whether it was answered with a failure.
    pub is_refused: bool,
}

/// How a reply that comes late is waited for.
pub type Delays = Arc<dyn Fn(Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

impl Loopback {
    /// Starts a server for `script` on a free port of `127.0.0.1`.
    ///
    /// # Errors
    ///
    /// When no port can be bound or no thread started.
    pub fn start(script: Script) -> io::Result<Self> {
        Self::start_with(script, Arc::new(|delay| Box::pin(tokio::time::sleep(delay))))
    }

    /// The same, with delays that are waited for in another way.
    ///
    /// # Errors
    ///
    /// As [`Loopback::start`].
    pub fn start_with(script: Script, delays: Delays) -> io::Result<Self> {
        let served = vec![false; script.replies.len()];
        let state = Arc::new(Mutex::new(State {
            script,
            served,
            requests: Vec::new(),
            unexpected: Vec::new(),
            problems: Vec::new(),
            arrivals: Vec::new(),
        }));
        let shared = Arc::clone(&state);
        let listening = Listening::start(move |head, body| {
            let (shared, delays) = (Arc::clone(&shared), Arc::clone(&delays));
            async move { answer(&head, &body, &shared, &delays).await }
        })?;
        Ok(Self { listening, state })
    }

    /// Names more tools of the configuration under test (see [`Script::with_configured_tools`]).
    pub fn name_tools(&self, names: impl IntoIterator<Item = String>) {
        let mut state = self.state();
        let script = std::mem::take(&mut state.script);
        state.script = script.with_configured_tools(names);
    }

    /// The base URL to give to an OpenAI-compatible client; ends in `/v1`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.listening.address())
    }

    /// Every chat request so far, in the order of arrival.
    #[must_use]
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.state().requests.clone()
    }

    /// When each of [`Self::requests`] came, and what it got.
    #[must_use]
    pub fn arrivals(&self) -> Vec<Arrival> {
        self.state().arrivals.clone()
    }

    /// The requests among [`Self::requests`] for which no reply was left.
    #[must_use]
    pub fn unexpected(&self) -> Vec<ModelRequest> {
        self.state().unexpected.clone()
    }

    /// The replies that no request has taken yet, as the script wrote them.
    #[must_use]
    pub fn unserved(&self) -> Vec<Value> {
        let state = self.state();
        let replies = state.script.replies.iter().zip(&state.served);
        replies.filter(|(_, served)| !**served).map(|(reply, _)| reply.source.clone()).collect()
    }

    /// What went wrong in the exchange itself: requests that could not be read, other paths than those of a
    /// model server, replies that did not fit the request.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        self.state().problems.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// The state stays consistent between two statements of every holder, so a panic elsewhere does not spoil it.
fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn answer(head: &Parts, body: &[u8], state: &Mutex<State>, delays: &Delays) -> HttpReply {
    let path = head.uri.path();
    match (&head.method, path.strip_prefix("/v1").unwrap_or(path)) {
        (&Method::POST, form @ ("/chat/completions" | "/responses")) => {
            let read = if form == "/responses" { responses::read } else { ModelRequest::read };
            let (delay, reply) = chat(body, state, read);
            if !delay.is_zero() {
                delays(delay).await;
            }
            reply
        }
        (&Method::POST, "/embeddings") => embed(body, state),
        (method, path) => {
            let problem = format!("nothing answers {method} {path}");
            refuse(state, StatusCode::NOT_FOUND, problem)
        }
    }
}

fn refuse(state: &Mutex<State>, status: StatusCode, problem: String) -> HttpReply {
    let reply = HttpReply::error(status, Some(&problem));
    lock(state).problems.push(problem);
    reply
}

fn embed(body: &[u8], state: &Mutex<State>) -> HttpReply {
    let reply = serde_json::from_slice(body).map_err(|error| error.to_string());
    match reply.and_then(|request| embeddings_reply(&request)) {
        Ok(reply) => HttpReply::json(StatusCode::OK, &reply),
        Err(problem) => refuse(state, StatusCode::BAD_REQUEST, problem),
    }
}

/// The reply to a chat request and how late it comes. Choosing happens here, on arrival, so that a late reply
/// does not lose its turn.
fn chat(
    body: &[u8],
    state: &Mutex<State>,
    read: impl FnOnce(Value) -> Result<ModelRequest, String>,
) -> (Duration, HttpReply) {
    let request = serde_json::from_slice(body).map_err(|error| error.to_string()).and_then(read);
    let request = match request {
        Ok(request) => request,
        Err(problem) => return (Duration::ZERO, refuse(state, StatusCode::BAD_REQUEST, problem)),
    };
    let mut state = lock(state);
    let number = state.requests.len();
    state.requests.push(request.clone());
    let chosen = state.choose(&request);
    let replies = &state.script.replies;
    let is_refused = chosen.is_none_or(|chosen| matches!(replies[chosen].answer, ScriptedAnswer::Failure { .. }));
    state.arrivals.push(Arrival { at: Instant::now(), is_refused });
    let Some(chosen) = chosen else {
        state.unexpected.push(request);
        let message = "no scripted reply is left for this request";
        return (Duration::ZERO, HttpReply::error(StatusCode::INTERNAL_SERVER_ERROR, Some(message)));
    };
    state.served[chosen] = true;
    let reply = &state.script.replies[chosen];
    let delay = reply.delay;
    if let ScriptedAnswer::Failure { status, message } = &reply.answer {
        let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        return (delay, HttpReply::error(status, message.as_deref()));
    }
    match state.script.message(&reply.answer, &request) {
        Ok(Some(message)) => (delay, HttpReply::message(number, &request, reply, &message)),
        Ok(None) => (delay, HttpReply::error(StatusCode::INTERNAL_SERVER_ERROR, None)),
        Err(problem) => {
            let refused = HttpReply::error(StatusCode::INTERNAL_SERVER_ERROR, Some(&problem));
            state.problems.push(problem);
            (Duration::ZERO, refused)
        }
    }
}

impl State {
    /// The reply for `request`: the first one reserved for it, else the next one that is reserved for nobody.
    fn choose(&self, request: &ModelRequest) -> Option<usize> {
        let waiting = || self.script.replies.iter().enumerate().filter(|(index, _)| !self.served[*index]);
        waiting()
            .find(|(_, reply)| reply.is_reserved_for(request))
            .or_else(|| waiting().find(|(_, reply)| reply.when.is_none()))
            .map(|(index, _)| index)
    }
}
