//! Agents at other addresses, which speak the A2A protocol (Agent2Agent, JSON-RPC over HTTP, versions 0.2 and 0.3).
//!
//! To a run such an agent is a graph of its own, of three nodes: one sends, one asks the person where the agent needs an
//! answer, one ends. So what it said and what it is waiting for is in the journal, like everything else.

mod error;

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use hotcell_budget::{Account, Budget, BudgetScope, Bytes, Usage};
use hotcell_cells::policy::{Decision, decide_url};
use hotcell_cells::{Denial, Grants, OwnRequest, OwnTls, Terms, fetch, send};
use hotcell_dialects::Remote;
use hotcell_engine::{
    CallError, Callee, Clock, Nobody, Outward, PluginNodeAnswer, PluginNodeCall, PluginNodeReport, PluginNodes,
};
use hotcell_graph::diagnostic::Span;
use hotcell_graph::ir::{
    Action, AskAction, Expression, Graph, Join, Next, Node, NodeIds, PluginNodeAction, PluginNodeKind, Retry, TlsPaths,
    Update,
};
use hotcell_graph::value::read_json;
use hotcell_graph::{Key, Template};
use hotcell_models::TlsFiles;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use url::Url;

use crate::address::{AddressError, parse_address};
use crate::permissions::{FILE_GRANTS, Permissions};
pub(crate) use crate::remote::error::NotReachable;
use crate::remote::error::{AnswerError, CardError, ExchangeError, RemoteError, TaskError};

/// Where agents describe themselves, the newer place first.
const CARDS: [&str; 2] = [".well-known/agent-card.json", ".well-known/agent.json"];
/// Bytes of one answer: read as JSON, it takes many times as much.
const LARGEST: Bytes = Bytes::mib(16);
/// Bytes of a description.
const LARGEST_CARD: Bytes = Bytes::mib(1);
/// How long one call may take, the agent's work included.
const PATIENCE: Duration = Duration::from_secs(600);
/// The first and the longest pause before an agent is asked how far it is.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));
/// The branch by which the agent's question is left.
const ASKS: &str = "input-required";
const DONE: &str = "completed";

/// One agent.
struct RemoteAgent {
    name: Key,
    url: Url,
    headers: Vec<(String, String)>,
    retry: Option<Retry>,
    tls: Option<TlsFiles>,
    /// How long one request may take
    time: Duration,
    terms: Terms,
    permissions: Arc<Permissions>,
    endpoint: OnceCell<Url>,
    /// What `tls` came to when it was first needed
    own_tls: OnceCell<OwnTls>,
    clock: Arc<dyn Clock>,
}

/// The agent at an address, as one that graphs call; the error says what would allow it.
pub(crate) fn callee(
    remote: &Remote,
    (grants, permissions): (Arc<Grants>, Arc<Permissions>),
    ports: &Callee,
    clock: Arc<dyn Clock>,
) -> Result<Callee, NotReachable> {
    let Remote { name, url, headers, retry, time, tls, span } = remote;
    let url = parse_address(url)?;
    match decide_url(&grants, &url, "POST") {
        Some(Decision::Allow) => {}
        Some(Decision::Deny(capability)) => {
            let denial = Box::new(Denial::new(FILE_GRANTS, capability));
            return Err(NotReachable::Denied { name: name.clone(), denial });
        }
        None => return Err(AddressError::NoWebServer { address: url.to_string() }.into()),
    }
    let budget = Budget { http_requests: 200, http_bytes: LARGEST, wall_clock: PATIENCE, ..Budget::default() };
    let terms = Terms { grants, budget, ..Terms::new(FILE_GRANTS) };
    let agent = RemoteAgent {
        name: name.clone(),
        url,
        headers: headers.clone(),
        time: retry.as_ref().and_then(|retry| retry.time).or(*time).unwrap_or(PATIENCE),
        retry: retry.clone(),
        tls: tls.clone().map(|TlsPaths { authorities, certificate, key }| TlsFiles {
            ca_file: authorities,
            client_certificate: certificate,
            client_key: key,
        }),
        terms,
        permissions,
        endpoint: OnceCell::new(),
        own_tls: OnceCell::new(),
        clock,
    };
    let graph = graph(name, span).ok_or(NotReachable::NoGraph)?;
    Ok(Callee {
        at_once: None,
        graph: Arc::new(graph),
        plugin_nodes: Arc::new(agent),
        hooks: Arc::new(Nobody),
        agents: None,
        ..ports.clone()
    })
}

/// Sends what comes in, and every answer of the person, until the agent is done.
fn graph(name: &Key, span: &Span) -> Option<Graph> {
    let ids = NodeIds::new(["send", "ask", "done"]);
    let value = |name: &str| Expression::Lenient(Template::parse(&format!("{{{{{name}}}}}")));
    let input = |name: &str| (Key::from(name), value(name));
    let send = PluginNodeAction {
        plugin_node: name.to_string(),
        kind: PluginNodeKind::Node,
        with: Expression::Object(Vec::new()),
        inputs: Expression::Object(["request", "task", "context"].map(input).to_vec()),
        branches: vec![ASKS.to_owned(), DONE.to_owned()],
        keys: Some(["text", "task", "context"].map(Key::from).into()),
        bind: "reply",
    };
    let ask = AskAction::new(value("text"), "answer");
    let node = |id: &str, action: Action, updates: Vec<Update>, next: Next| Node {
        updates,
        join: Join::All,
        implied_by: Some(name.clone()),
        ..Node::new(id, "agent", action, next, span)
    };
    let by_answer = Next::ByAnswer { routes: vec![(ASKS.to_owned(), ids.get("ask")?)], otherwise: ids.get("done")? };
    let again = Next::To(vec![ids.get("send")?]);
    let answered = vec![Update { key: "request".into(), value: value("answer") }];
    let nodes = vec![
        node("send", Action::PluginNode(Box::new(send)), Vec::new(), by_answer),
        node("ask", Action::Ask(ask), answered, again),
        node("done", Action::End { output: value("text") }, Vec::new(), Next::To(Vec::new())),
    ];
    let mut graph = Graph::new(&**name, nodes, "send")?;
    graph.input_key = Some("request".into());
    graph.initial_state = ["task", "context"].map(|key| (Key::from(key), hotcell_graph::Value::Null)).to_vec();
    Some(graph)
}

#[async_trait]
impl PluginNodes for RemoteAgent {
    async fn take(&self, call: PluginNodeCall<'_>) -> PluginNodeReport {
        if !call.site.may(Outward::Http) {
            let what =
                format!("a message to the agent `{}` at `{}`", self.name, self.url.origin().ascii_serialization());
            call.site.withhold(&what);
            return PluginNodeReport { result: Err(CallError::Failed(what)), account: Account::default() };
        }
        let begun = Instant::now();
        let result = match self.terms_now(&call.budget_scope) {
            Ok(terms) => self.send(call.inputs, terms).await,
            Err(error) => Err(error),
        };
        let usage = Usage { calls: 1, wall_clock: begun.elapsed(), ..Usage::default() };
        call.budget_scope.spend(&usage);
        let account = Account::of(format!("a2a:{}", self.name), usage);
        PluginNodeReport { result: result.map_err(|error| CallError::Failed(error.to_string())), account }
    }
}

/// What the graph sends: a text, and the task of which it is a part.
#[derive(Deserialize)]
struct Sent {
    request: String,
    task: Option<String>,
    context: Option<String>,
}

/// What an agent answers over JSON-RPC.
#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

/// A message or a task, of which both have the fields that count.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Reply {
    id: Option<String>,
    context_id: Option<String>,
    task_id: Option<String>,
    status: Option<Status>,
    artifacts: Vec<Parts>,
    history: Vec<Parts>,
    parts: Option<Vec<Part>>,
}

#[derive(Deserialize)]
struct Status {
    state: String,
    message: Option<Parts>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Parts {
    role: Option<String>,
    parts: Vec<Part>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Part {
    kind: Option<String>,
    /// What its kind was called first
    #[serde(rename = "type")]
    is_a: Option<String>,
    text: Option<String>,
    /// As it was written: nobody here looks into it
    data: Option<Box<RawValue>>,
}

impl RemoteAgent {
    /// The terms of a call as things stand.
    fn terms_now(&self, budget_scope: &BudgetScope) -> Result<Terms, RemoteError> {
        let mut terms = self.terms.clone();
        self.permissions.narrow(&mut terms, false)?;
        terms.budget = budget_scope.clamp(&terms.budget)?;
        Ok(terms)
    }

    async fn send(&self, inputs: &str, terms: Terms) -> Result<PluginNodeAnswer, RemoteError> {
        let sent: Sent = serde_json::from_str(inputs).map_err(RemoteError::Inputs)?;
        let endpoint = self.endpoint.get_or_try_init(|| self.find(&terms)).await?;
        let mut message = json!({
            "kind": "message", "role": "user", "messageId": id(), "parts": [{ "kind": "text", "text": sent.request }],
        });
        for (key, value) in [("taskId", sent.task), ("contextId", sent.context)] {
            if let Some(value) = value {
                message[key] = value.into();
            }
        }
        let parameters = json!({ "message": message, "configuration": { "blocking": true } });
        let begun = self.clock.elapsed();
        let mut reply = self.request(&terms, endpoint, "message/send", parameters).await?;
        let mut pause = PAUSES.0;
        while let (Some("submitted" | "working"), Some(task)) = (reply.state(), &reply.id) {
            if self.clock.elapsed().saturating_sub(begun) >= terms.budget.wall_clock {
                return Err(RemoteError::NotDone(terms.budget.wall_clock));
            }
            self.clock.pause(pause).await;
            pause = (pause * 2).min(PAUSES.1);
            reply = self.request(&terms, endpoint, "tasks/get", json!({ "id": task })).await?;
        }
        Ok(reply.into_answer()?)
    }

    /// The address that takes requests: the one that the agent's description names.
    async fn find(&self, terms: &Terms) -> Result<Url, RemoteError> {
        let mut base = self.url.clone();
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        let mut reasons = Vec::new();
        for place in CARDS {
            let card = base.join(place).map_err(ExchangeError::from)?;
            match self.card(terms, &card).await {
                Ok(text) => {
                    return self.endpoint_of(&text).map_err(|cause| RemoteError::Card { card: card.into(), cause });
                }
                Err(error) => reasons.push(error),
            }
        }
        Err(RemoteError::NoCard(reasons))
    }

    /// The address that a description names.
    fn endpoint_of(&self, text: &[u8]) -> Result<Url, CardError> {
        let described = read_json(&String::from_utf8_lossy(text)).map_err(CardError::Form)?;
        let endpoint = endpoint(&described, &self.url)?;
        // Headers and certificates are for the server that the configuration names.
        if !(self.headers.is_empty() && self.tls.is_none()) && endpoint.origin() != self.url.origin() {
            let what = if self.tls.is_some() { "certificates" } else { "headers" };
            return Err(CardError::AnotherServer { endpoint: endpoint.into(), what });
        }
        Ok(endpoint)
    }

    /// The text of a description. With headers or certificates, it has to be there, so that they go nowhere else.
    async fn card(&self, terms: &Terms, card: &Url) -> Result<Vec<u8>, ExchangeError> {
        let mut terms = terms.clone();
        terms.budget.http_bytes = terms.budget.http_bytes.min(LARGEST_CARD);
        match (self.headers.is_empty(), &self.retry, &self.tls) {
            (true, None, None) => Ok(fetch(&terms, card.as_str()).await?.bytes),
            _ => self.exchange(&terms, "GET", card, Vec::new()).await,
        }
    }

    /// One request over JSON-RPC.
    async fn request(
        &self,
        terms: &Terms,
        endpoint: &Url,
        method: &'static str,
        parameters: Value,
    ) -> Result<Reply, RemoteError> {
        let body = json!({ "jsonrpc": "2.0", "id": id(), "method": method, "params": parameters });
        let answer = self.exchange(terms, "POST", endpoint, body.to_string().into_bytes()).await?;
        Ok(result(&answer, endpoint, method)?)
    }

    /// The answer to one request, which is made again as the agent's connection says. Redirects are not followed: what is sent is
    /// for whoever was named, and nobody else.
    async fn exchange(&self, terms: &Terms, method: &str, url: &Url, body: Vec<u8>) -> Result<Vec<u8>, ExchangeError> {
        let mut terms = terms.clone();
        terms.budget.wall_clock = terms.budget.wall_clock.min(self.time);
        if let Some(files) = &self.tls {
            let make = || async { OwnTls::new(files) };
            terms.tls = Some(self.own_tls.get_or_try_init(make).await?.clone());
        }
        let mut headers = self.headers.clone();
        if !body.is_empty() {
            headers.push(("content-type".to_owned(), "application/json".to_owned()));
        }
        let request = OwnRequest { method: method.to_owned(), url: url.to_string(), headers, body };
        let mut attempt = 1;
        loop {
            let (error, status, helps) = match send(&terms, request.clone()).await.0 {
                Ok(reply) => match (reply.status, reply.location) {
                    (200..300, _) => return Ok(reply.body),
                    (300..400, Some(place)) => {
                        return Err(ExchangeError::SendsOn { url: url.to_string(), place });
                    }
                    (status, _) => {
                        let text = String::from_utf8_lossy(&reply.body);
                        let helps = self.retry.as_ref().is_some_and(|retry| retry.on.answer(status, &text));
                        (ExchangeError::Status { url: url.to_string(), status }, Some(status), helps)
                    }
                },
                Err(error) => {
                    let helps = error.may_pass();
                    (ExchangeError::Send(error), None, helps)
                }
            };
            match self.retry.as_ref().filter(|retry| helps && attempt < retry.attempts) {
                Some(retry) => self.clock.pause(retry.pause_after(attempt, status, fastrand::f64())).await,
                None => return Err(error),
            }
            attempt += 1;
        }
    }
}

/// The address in an agent's description; one that is not said is where the agent is.
fn endpoint(card: &Value, own: &Url) -> Result<Url, CardError> {
    let url_of = |interface: &Value| interface["url"].as_str().map(str::to_owned);
    let is_ours = |interface: &&Value| interface["transport"] == "JSONRPC";
    let url = match card["preferredTransport"].as_str() {
        None | Some("JSONRPC") => card["url"].as_str().map(str::to_owned),
        Some(other) => {
            let others = card["additionalInterfaces"].as_array().into_iter().flatten();
            let found = others.into_iter().find(is_ours).and_then(url_of);
            Some(found.ok_or_else(|| CardError::NoJsonRpc(other.to_owned()))?)
        }
    };
    match url {
        Some(url) => own.join(&url).map_err(|cause| CardError::Address { url, cause }),
        None if card.get("supportedInterfaces").is_some() => Err(CardError::TooNew),
        None => Ok(own.clone()),
    }
}

/// What an agent answered over JSON-RPC.
fn result(answer: &[u8], endpoint: &Url, method: &'static str) -> Result<Reply, AnswerError> {
    let endpoint = || endpoint.to_string();
    let Answer { error, result } =
        serde_json::from_slice(answer).map_err(|cause| AnswerError::NoJson { endpoint: endpoint(), cause })?;
    if let Some(error) = error {
        let error = read_json(error.get()).unwrap_or_default();
        let message = error["message"].as_str().unwrap_or("no reason was given").to_owned();
        let code = error["code"].to_string();
        return Err(AnswerError::Refused { endpoint: endpoint(), method, message, code });
    }
    let result = result.map_or("{}", RawValue::get);
    let reply: Reply =
        serde_json::from_str(result).map_err(|cause| AnswerError::Form { endpoint: endpoint(), method, cause })?;
    // Fields may be left out, but what has none of these is something else.
    match reply.status.is_none() && reply.parts.is_none() {
        true => Err(AnswerError::Neither { endpoint: endpoint(), method }),
        false => Ok(reply),
    }
}

impl Reply {
    fn state(&self) -> Option<&str> {
        self.status.as_ref().map(|status| status.state.as_str())
    }

    /// What the graph goes on with.
    fn into_answer(self) -> Result<PluginNodeAnswer, TaskError> {
        let said = self.status.as_ref().and_then(|status| status.message.as_ref()).map(|message| text(&message.parts));
        let said = said.transpose()?.unwrap_or_default();
        let (text, branch) = match self.state() {
            // A message, and no task.
            None => (text(self.parts.as_deref().unwrap_or_default())?, DONE),
            Some(DONE) => (self.result(said)?, DONE),
            Some(ASKS) => (said, ASKS),
            Some("auth-required") => return Err(TaskError::SignIn(said)),
            Some(state) => return Err(TaskError::State { state: state.to_owned(), said }),
        };
        let task = self.id.filter(|_| self.status.is_some()).or(self.task_id);
        let outputs = json!({ "text": text, "task": task, "context": self.context_id }).to_string();
        Ok(PluginNodeAnswer::RunInput { outputs, branch: Some(branch.to_owned()) })
    }

    /// The result of a task: what it made, else what it said at the end.
    fn result(&self, said: String) -> Result<String, TaskError> {
        let made = self.artifacts.iter().map(|artifact| text(&artifact.parts)).collect::<Result<Vec<_>, _>>()?;
        if !made.is_empty() {
            return Ok(made.join("\n"));
        }
        if !said.is_empty() {
            return Ok(said);
        }
        let last = self.history.iter().rev().find(|message| message.role.as_deref() == Some("agent"));
        last.map_or(Ok(String::new()), |message| text(&message.parts))
    }
}

/// The text of parts: texts as they are, data as JSON.
fn text(parts: &[Part]) -> Result<String, TaskError> {
    let one = |part: &Part| match (part.kind.as_deref().or(part.is_a.as_deref()), &part.text, &part.data) {
        (None | Some("text"), Some(text), _) => Ok(text.clone()),
        (Some("data"), _, data) => Ok(data.as_deref().map_or("null", RawValue::get).to_owned()),
        (kind, ..) => Err(TaskError::Part(kind.unwrap_or("part").to_owned())),
    };
    Ok(parts.iter().map(one).collect::<Result<Vec<_>, _>>()?.join("\n"))
}

/// A name that nobody else has.
fn id() -> String {
    (0..2).map(|_| format!("{:016x}", fastrand::u64(..))).collect()
}
