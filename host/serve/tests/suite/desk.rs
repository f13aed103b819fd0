//! A server with some agents, a model that answers when it is told to, and a client.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use axum::extract::State;
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use futures::StreamExt as _;
use hotcell_runtime::plugins::Trust;
use hotcell_runtime::{
    CancellationToken, Clock, Environment, Host, HostOptions, JournalChoice, ManualClock, SystemClock,
};
use hotcell_serve::{ServeSettings, Server};
use reqwest::{Client, RequestBuilder};
use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// Repeats its text.
pub(crate) const ECHO: (&str, &str) = (
    "echo/graph.yaml",
    "name: echo\ndescription: Repeats what it is told\nstart: done\nnodes:\n  done: { type: end, output: \"you said {{initial_prompt}}\" }\n",
);

/// Asks a person, and repeats the answer.
pub(crate) const ASK: (&str, &str) = (
    "ask/graph.yaml",
    "name: ask\nstart: name\nnodes:\n  name:\n    type: input\n    question: \"Who asks?\"\n    default: somebody\n    state_updates: { name: \"{{input}}\" }\n    next: done\n  done: { type: end, output: \"hello {{name}}\" }\n",
);

/// Asks a model twice, one request after the other.
pub(crate) const SLOW: (&str, &str) = (
    "slow/graph.yaml",
    "name: slow\nstart: first\nnodes:\n  first:\n    type: llm\n    prompt: \"first {{initial_prompt}}\"\n    state_updates: { first: \"{{output}}\" }\n    next: second\n  second:\n    type: llm\n    prompt: \"second\"\n    state_updates: { second: \"{{output}}\" }\n    next: done\n  done: { type: end, output: \"{{first}} {{second}}\" }\n",
);

/// Counts the runs of its thread.
pub(crate) const COUNT: (&str, &str) = (
    "count/agent.yaml",
    "manifest_version: 1\nagents:\n  counter:\n    state: {fields: [{name: messages, type: list}, {name: n, type: int, default: 0}]}\n    graph:\n      entry_point: count\n      nodes:\n        - {name: count, type: set_state, args: {values: {n: state.n + 1, messages: '{\"type\": \"ai\", \"content\": string(state.n + 1)}'}}}\n      edges: []\n",
);

/// What the variable `DESK_SECRET` of the server is.
pub(crate) const SECRET: &str = "s3same";

/// By what its webhooks are signed.
const WEBHOOK: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A model that answers requests when it is let, each with its number.
#[derive(Clone, Default)]
pub(crate) struct Model {
    requests: Arc<Mutex<Vec<Value>>>,
    replies: Arc<Mutex<VecDeque<String>>>,
    let_through: Arc<Gate>,
    /// How many requests wait for their answers
    waiting: Arc<AtomicUsize>,
}

/// A request that waits for its answer, until this is dropped: also when its client is gone.
struct Waits(Arc<AtomicUsize>);

impl Waits {
    fn begin(waiting: &Arc<AtomicUsize>) -> Self {
        waiting.fetch_add(1, Ordering::SeqCst);
        Waits(waiting.clone())
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

struct Gate(Semaphore);

impl Default for Gate {
    fn default() -> Self {
        Gate(Semaphore::new(0))
    }
}

impl Model {
    /// Lets so many requests be answered.
    pub(crate) fn answers(&self, count: usize) {
        self.let_through.0.add_permits(count);
    }

    pub(crate) fn requests(&self) -> MutexGuard<'_, Vec<Value>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until so many requests have come.
    pub(crate) async fn was_asked(&self, count: usize) {
        until("the model is asked", || self.requests().len() >= count).await;
    }

    /// Waits until nobody waits for an answer: that of a request whose client is gone would be missing elsewhere.
    pub(crate) async fn is_left_alone(&self) {
        until("nobody waits for the model", || self.waiting.load(Ordering::SeqCst) == 0).await;
    }

    pub(crate) async fn serve() -> (Self, String) {
        let model = Model::default();
        let router = Router::new().route("/chat/completions", post(complete)).with_state(model.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        tokio::spawn(hotcell_http::serve(listener, router, hotcell_http::Limits::default(), CancellationToken::new()));
        (model, url)
    }
}

async fn complete(State(model): State<Model>, Json(request): Json<Value>) -> Response {
    let streams = request["stream"] == true;
    let waits = Waits::begin(&model.waiting);
    let number = {
        let mut requests = model.requests();
        requests.push(request);
        requests.len()
    };
    model.let_through.0.acquire().await.expect("open").forget();
    drop(waits);
    let text = model.replies.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let text = text.unwrap_or_else(|| format!("reply{number}"));
    let usage = json!({ "prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2 });
    if !streams {
        let message = json!({ "role": "assistant", "content": text });
        let choices = json!([{ "index": 0, "message": message, "finish_reason": "stop" }]);
        return Json(json!({ "id": "x", "object": "chat.completion", "created": 1, "model": "small", "choices": choices, "usage": usage }))
            .into_response();
    }
    let chunk = |delta: Value, end: Value| {
        let choices = json!([{ "index": 0, "delta": delta, "finish_reason": end }]);
        json!({ "id": "x", "object": "chat.completion.chunk", "created": 1, "model": "small", "choices": choices })
            .to_string()
    };
    let (one, two) = text.split_at(text.len() / 2);
    let last = json!({ "id": "x", "object": "chat.completion.chunk", "created": 1, "model": "small", "choices": [], "usage": usage });
    let chunks = [
        chunk(json!({ "role": "assistant", "content": one }), Value::Null),
        chunk(json!({ "content": two }), Value::Null),
        chunk(json!({}), json!("stop")),
        last.to_string(),
        "[DONE]".to_owned(),
    ];
    let events =
        futures::stream::iter(chunks.map(|chunk| Ok::<_, std::convert::Infallible>(Event::default().data(chunk))));
    Sse::new(events).into_response()
}

/// Waits until something holds; only a hang makes this fail.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "waited too long until {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The same for what has to be asked for.
pub(crate) async fn until_async(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < Duration::from_secs(60), "waited too long until {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Where a test works.
pub(crate) struct Desk {
    folder: Arc<TempDir>,
    pub(crate) url: String,
    pub(crate) client: Client,
    pub(crate) model: Model,
    model_url: String,
    clock: Arc<dyn Clock>,
    trust: Option<Trust>,
    shutdown: CancellationToken,
    serving: Option<JoinHandle<()>>,
}

impl Desk {
    /// A server with these agents.
    pub(crate) async fn with(files: &[(&str, &str)]) -> Self {
        Desk::set_up(files, |_| {}).await
    }

    /// A server with these agents, set up in its own way.
    pub(crate) async fn set_up(files: &[(&str, &str)], change: impl FnOnce(&mut ServeSettings)) -> Self {
        Desk::made(files, Arc::new(SystemClock::default()), change).await
    }

    /// A server with these agents and a clock that only the test moves.
    pub(crate) async fn by_hand(files: &[(&str, &str)]) -> (Self, ManualClock) {
        Desk::by_hand_with(files, |_| {}).await
    }

    /// The same, set up in its own way.
    pub(crate) async fn by_hand_with(
        files: &[(&str, &str)],
        change: impl FnOnce(&mut ServeSettings),
    ) -> (Self, ManualClock) {
        let clock = ManualClock::at(SystemTime::UNIX_EPOCH);
        (Desk::made(files, Arc::new(clock.clone()), change).await, clock)
    }

    async fn made(files: &[(&str, &str)], clock: Arc<dyn Clock>, change: impl FnOnce(&mut ServeSettings)) -> Self {
        let folder = Arc::new(tempfile::tempdir().expect("a folder"));
        for (name, text) in files {
            let path = folder.path().join("agents").join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        let (model, model_url) = Model::serve().await;
        Desk::start(folder, model, model_url, clock, None, change).await
    }

    async fn start(
        folder: Arc<TempDir>,
        model: Model,
        model_url: String,
        clock: Arc<dyn Clock>,
        trust: Option<Trust>,
        change: impl FnOnce(&mut ServeSettings),
    ) -> Self {
        let path = folder.path().to_owned();
        let mut settings = ServeSettings {
            folders: vec![path.join("agents")],
            file: Some(path.join("runs.serve.db")),
            drain: Duration::from_millis(200),
            ..ServeSettings::default()
        };
        change(&mut settings);
        let host = host(&path, &model_url, clock.clone(), trust.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let server = Server::new(host, settings).await.expect("a server");
        let shutdown = CancellationToken::new();
        let stop = shutdown.clone();
        let serving = tokio::spawn(async move { server.serve(listener, stop).await.expect("served") });
        let desk =
            Desk { folder, url, client: client(), model, model_url, clock, trust, shutdown, serving: Some(serving) };
        // A server that cuts slow clients off may do so with this one.
        until_async("the server is ready", async || {
            assert!(!desk.serving.as_ref().is_some_and(JoinHandle::is_finished), "the server has ended");
            desk.get("/ready").send().await.is_ok_and(|reply| reply.status() == 200)
        })
        .await;
        desk
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A host of its own with the same journal.
    pub(crate) fn host(&self) -> Host {
        host(self.folder(), &self.model_url, self.clock.clone(), self.trust.clone())
    }

    /// Tells the server to stop.
    pub(crate) fn tell_to_stop(&self) {
        self.shutdown.cancel();
    }

    /// Stops the server and waits until it has.
    pub(crate) async fn stop(&mut self) {
        self.tell_to_stop();
        self.serving.take().expect("it serves").await.expect("no panic");
    }

    /// Another server with the same agents and the same journal.
    pub(crate) async fn again(self) -> Self {
        self.again_set_up(|_| {}).await
    }

    /// Another server with the same agents and the same journal, set up in its own way.
    pub(crate) async fn again_set_up(mut self, change: impl FnOnce(&mut ServeSettings)) -> Self {
        if self.serving.is_some() {
            self.stop().await;
        }
        let (clock, trust) = (self.clock.clone(), self.trust.clone());
        Desk::start(self.folder.clone(), self.model.clone(), self.model_url.clone(), clock, trust, change).await
    }

    /// Another one that trusts no folders but these.
    pub(crate) async fn trusting(mut self, trust: Trust) -> Self {
        self.trust = Some(trust);
        self.again().await
    }

    pub(crate) fn get(&self, path: &str) -> RequestBuilder {
        self.client.get(format!("{}{path}", self.url))
    }

    pub(crate) fn delete(&self, path: &str) -> RequestBuilder {
        self.client.delete(format!("{}{path}", self.url))
    }

    pub(crate) fn post(&self, path: &str, body: Value) -> RequestBuilder {
        self.client.post(format!("{}{path}", self.url)).json(&body)
    }

    /// Begins a run, and gives its name.
    pub(crate) async fn begin(&self, body: Value) -> String {
        let run = ok(self.post("/runs", body)).await;
        run["run_id"].as_str().expect("a name").to_owned()
    }

    /// Waits until a run stands so, in hotcell's own words.
    pub(crate) async fn stands(&self, run: &str, standing: &str) -> Value {
        let begun = std::time::Instant::now();
        loop {
            let found = ok(self.get(&format!("/runs/{run}"))).await;
            if found["standing"] == standing {
                return found;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{found} is not {standing}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// The kinds of all entries of a run, as `kind` or `kind@place`.
    pub(crate) async fn kinds(&self, run: &str) -> Vec<String> {
        let page = ok(self.get(&format!("/runs/{run}/entries?limit=1000"))).await;
        page["entries"].as_array().expect("entries").iter().map(kind).collect()
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

/// The file of a server, to be changed as if by one that ended. Others may be at it.
pub(crate) fn opened(file: &Path) -> Connection {
    let connection = Connection::open(file).expect("opened");
    connection.busy_timeout(Duration::from_secs(60)).expect("it waits");
    connection
}

/// A client that knows nothing of proxies.
pub(crate) fn client() -> Client {
    // Every client wants to know how to encrypt, also one that never does.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // A server closes what lies idle for ten seconds: nothing is sent over a connection to which that happens at this moment.
    Client::builder().no_proxy().pool_idle_timeout(Duration::from_secs(5)).build().expect("a client")
}

fn host(folder: &Path, model_url: &str, clock: Arc<dyn Clock>, trust: Option<Trust>) -> Host {
    let variables = [
        ("HOTCELL_MODEL_URL", model_url),
        ("HOTCELL_MODEL", "test:small"),
        ("DESK_SECRET", SECRET),
        ("HOTCELL_WEBHOOK_SECRET", WEBHOOK),
    ];
    let isolated = HostOptions::isolated();
    let options = HostOptions {
        journal: JournalChoice::File(folder.join("runs.db")),
        environment: Environment::of(variables),
        clock,
        cache_dir: Some(env!("CARGO_TARGET_TMPDIR").into()),
        trust: trust.or(isolated.trust.clone()),
        ..isolated
    };
    Host::new(options).expect("a host")
}

/// An entry as `kind`, or `kind@place`.
pub(crate) fn kind(entry: &Value) -> String {
    let (kind, place) = (entry["kind"].as_str().expect("a kind"), entry["place"].as_str().expect("a place"));
    if place.is_empty() { kind.to_owned() } else { format!("{kind}@{place}") }
}

/// The JSON of a reply that says that all is well.
pub(crate) async fn ok(request: RequestBuilder) -> Value {
    let response = request.send().await.expect("a reply");
    let status = response.status();
    let text = response.text().await.expect("text");
    assert!(status.is_success(), "{status}: {text}");
    if text.is_empty() { Value::Null } else { serde_json::from_str(&text).expect("JSON") }
}

/// The problem of a reply that says that something is wrong. What every problem has is looked at.
pub(crate) async fn problem(request: RequestBuilder) -> Value {
    let response = request.send().await.expect("a reply");
    let status = response.status().as_u16();
    let kind = response.headers().get("content-type").map(|kind| kind.to_str().expect("text").to_owned());
    let text = response.text().await.expect("text");
    assert!(status >= 400, "{status}: {text}");
    assert_eq!(kind.as_deref(), Some("application/problem+json"), "{status}: {text}");
    let problem: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(problem["status"], status, "{problem}");
    assert!(problem["type"].as_str().is_some_and(|kind| kind.starts_with("urn:hotcell:problem:")), "{problem}");
    assert!(problem["title"].as_str().is_some_and(|title| !title.is_empty()), "{problem}");
    assert!(problem["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{problem}");
    problem
}

/// The replies to requests that are all made at once.
pub(crate) async fn at_once(requests: impl Iterator<Item = RequestBuilder>) -> Vec<reqwest::Response> {
    let replies = futures::future::join_all(requests.map(RequestBuilder::send)).await;
    replies.into_iter().map(|reply| reply.expect("a reply")).collect()
}

/// An event of a stream.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Told {
    pub(crate) event: String,
    pub(crate) id: Option<String>,
    pub(crate) data: Value,
}

/// A stream of events as a client reads it.
pub(crate) struct Events {
    body: futures::stream::BoxStream<'static, Vec<u8>>,
    text: String,
}

impl Events {
    pub(crate) async fn of(request: RequestBuilder) -> Self {
        let response = request.send().await.expect("a reply");
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let body = futures::stream::unfold(response, async |mut response| {
            let chunk = response.chunk().await.ok().flatten()?;
            Some((chunk.to_vec(), response))
        });
        Events { body: body.boxed(), text: String::new() }
    }

    /// The next event; none when the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<Told> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.text = rest;
                let field = |name: &str| {
                    event.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ").map(str::to_owned))
                };
                // An event without data only says where to come back to.
                let Some(data) = field("data").filter(|data| !data.is_empty()) else { continue };
                let data = serde_json::from_str(&data).expect("JSON");
                return Some(Told { event: field("event").unwrap_or_default(), id: field("id"), data });
            }
            let more = tokio::time::timeout(Duration::from_secs(60), self.body.next()).await.expect("no hang")?;
            self.text.push_str(std::str::from_utf8(&more).expect("UTF-8"));
        }
    }

    pub(crate) async fn all(mut self) -> Vec<Told> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }
}
