//! MCP servers: which there are, which an agent may use, and calls of their functions.
//!
//! A server is named in `mcp.json`, in the agent's folder or in the user's own configuration, and used by an agent only
//! if `hotcell.toml` in the agent's folder grants it what it needs: `process` for a program of this machine, `http` for a
//! service. Connections are shared by all agents of a host.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use hotcell_budget::{Account, Budget, BudgetScope, Usage};
use hotcell_cells::policy::{Decision, Request, decide, decide_address, decide_url};
use hotcell_cells::{Denial, Grants};
use hotcell_dialects::{DeclaredServer, ServerState, ServerWay};
use hotcell_engine::{CallError, CallReport};
use hotcell_mcp::{
    ClientEvents, Elicited, Limits, LogLevel, Progress, Server, ServerSettings, TlsSettings, ToolInfo, ToolReply,
    Transport,
};
use hotcell_models::ToolSpec;
use serde_json::{Map, Value};
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

/// The file that names servers.
pub(crate) const SERVERS_FILE: &str = "mcp.json";
/// What the full name of a function begins with: `mcp:server/function`. Grants are given to `mcp:server`.
pub(crate) const PREFIX: &str = "mcp:";
/// What is granted to a server, and what would be if the operator trusted it.
pub(crate) type Granted = (Arc<Grants>, Arc<Grants>);

/// How long one call may take.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// A server that is connected, with the settings and grants under which it is.
type OpenServer = (ServerSettings, Arc<Grants>, Arc<Connected>);

/// The servers that a host is connected to. They live on threads of their own, because agents are loaded where nothing
/// can be awaited.
#[derive(Default)]
pub(crate) struct Connections {
    open: Mutex<Vec<OpenServer>>,
    runtime: OnceLock<Result<Runtime, String>>,
}

struct Connected {
    server: Server,
    asking: Arc<Asking>,
}

impl Connections {
    fn runtime(&self) -> Result<&Runtime, String> {
        let make = || {
            let built = Builder::new_multi_thread().worker_threads(1).thread_name("hotcell-mcp").enable_all().build();
            built.map_err(|error| format!("the thread for MCP servers cannot be started: {error}"))
        };
        self.runtime.get_or_init(make).as_ref().map_err(Clone::clone)
    }

    /// Does work that has to be awaited, where nothing can be awaited.
    pub(crate) fn wait_for<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, String> {
        let (sender, receiver) = std::sync::mpsc::channel();
        self.runtime()?.spawn(async move {
            // Whoever waits for it may be gone; then what came of it is dropped.
            let _ = sender.send(work.await);
        });
        receiver.recv().map_err(|_| "it ended abnormally".to_owned())
    }

    /// The server with these settings and grants; one that could not be reached is tried again the next time.
    fn connect(&self, settings: &ServerSettings, grants: &Arc<Grants>) -> Result<Arc<Connected>, String> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((.., connected)) = open.iter().find(|(known, with, _)| known == settings && with == grants) {
            return Ok(connected.clone());
        }
        let asking = Arc::new(Asking::default());
        let (wanted, events) = (settings.clone(), asking.clone());
        let client = client(settings, grants)?;
        let connected = self.wait_for(async move {
            match client {
                Some(client) => Server::connect_through(client, wanted, events).await,
                None => Server::connect(wanted, events).await,
            }
        })?;
        let connected = connected.map_err(|error| error.to_string())?;
        let connected = Arc::new(Connected { server: connected, asking });
        open.push((settings.clone(), grants.clone(), connected.clone()));
        Ok(connected)
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        // Servers first: their processes are ended with them.
        self.open.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
        if let Some(Ok(runtime)) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A file that names servers.
pub(crate) struct ServersFile<'a> {
    pub(crate) file: PathBuf,
    /// Reads its text; nothing where there is no such file
    pub(crate) text: &'a dyn Fn() -> Result<Option<String>, String>,
    /// What a server may use of the environment, as `${NAME}`
    pub(crate) variable: &'a dyn Fn(&str, &str) -> Option<String>,
}

/// The servers within reach of one agent.
#[derive(Clone)]
pub(crate) struct AgentServers {
    connections: Arc<Connections>,
    servers: Arc<Mutex<Servers>>,
    /// Whether those that are programs are started
    starts_programs: bool,
}

/// By their names, the servers that may be used, and why others may not.
type Servers = BTreeMap<String, Result<Arc<Reachable>, String>>;

/// A server that may be used.
struct Reachable {
    settings: ServerSettings,
    grants: Arc<Grants>,
    /// What models see before the names of its functions
    prefix: String,
    /// How long one call may take
    timeout: Duration,
    connected: OnceLock<Result<Arc<Connected>, String>>,
}

impl AgentServers {
    /// No servers.
    pub(crate) fn none(connections: Arc<Connections>) -> Self {
        AgentServers { connections, servers: Arc::default(), starts_programs: false }
    }

    /// The servers that the files name, with what was granted to each. The text is what is wrong with a file.
    pub(crate) fn new(
        connections: Arc<Connections>,
        starts_programs: bool,
        files: &[ServersFile<'_>],
        grants: impl Fn(&str) -> Granted,
    ) -> (Self, Vec<String>) {
        let mut servers = BTreeMap::new();
        let mut problems = Vec::new();
        for ServersFile { file, text, variable } in files {
            let text = match text() {
                Ok(Some(text)) => text,
                Ok(None) => continue,
                Err(error) => {
                    problems.push(format!("cannot read `{}`: {error}", file.display()));
                    continue;
                }
            };
            match hotcell_mcp::parse_servers(&text, variable) {
                Ok(found) => {
                    for settings in found {
                        // The agent's own file comes first.
                        servers
                            .entry(settings.name.clone())
                            .or_insert_with(|| permit(settings, String::new(), CALL_TIMEOUT, &grants));
                    }
                }
                Err(error) => problems.push(format!("`{}`: {error}", file.display())),
            }
        }
        (AgentServers { connections, servers: Arc::new(Mutex::new(servers)), starts_programs }, problems)
    }

    /// Adds a server that the agent's own file describes; it counts before those of other files.
    pub(crate) fn declare(&self, server: &DeclaredServer, grants: impl Fn(&str) -> Granted) {
        let reachable = settings_of(server).and_then(|settings| {
            permit(settings, server.prefix.clone(), server.timeout.unwrap_or(CALL_TIMEOUT), &grants)
        });
        self.all().insert(server.name.clone(), reachable);
    }

    fn all(&self) -> MutexGuard<'_, Servers> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, name: &str) -> Option<Result<Arc<Reachable>, String>> {
        self.all().get(name).cloned()
    }

    /// The names of all servers, those that may not be used among them.
    pub(crate) fn names(&self) -> Vec<String> {
        self.all().keys().cloned().collect()
    }

    /// What a front end is told of a server.
    pub(crate) fn state(&self, name: &str) -> ServerState {
        match self.find(name) {
            None => ServerState::Missing,
            Some(Err(reason)) => ServerState::Unusable(reason),
            Some(Ok(reachable)) if !self.may_connect(&reachable) => ServerState::NotStarted,
            Some(Ok(reachable)) => match self.connected(&reachable) {
                Ok(connected) => {
                    ServerState::Usable(connected.server.tools().iter().map(|tool| tool.name.clone()).collect())
                }
                Err(reason) => ServerState::Unusable(reason),
            },
        }
    }

    /// What a model is told about a function, by its full name.
    pub(crate) fn describe(&self, name: &str) -> Option<ToolSpec> {
        let (server, function) = split(name)?;
        let Some(Ok(reachable)) = self.find(server) else { return None };
        let connected = self.connected(&reachable).ok()?;
        let tools = connected.server.tools();
        let tool: &ToolInfo = tools.iter().find(|tool| tool.name == function)?;
        let spoken = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
        Some(ToolSpec {
            name: reachable.prefix.chars().chain(tool.name.chars()).map(spoken).collect(),
            description: tool.description.clone(),
            parameters: tool.input_schema.clone(),
        })
    }

    /// Whether a name is that of a function of a server.
    pub(crate) fn is_function(name: &str) -> bool {
        split(name).is_some()
    }

    /// Calls a function by its full name. Where the server puts a question for which there is no answer, the call is to be
    /// repeated with the answer.
    pub(crate) async fn call(
        &self,
        name: &str,
        arguments: &str,
        answers: &[String],
        budget_scope: &BudgetScope,
    ) -> CallReport {
        let Some((server, function)) = split(name) else { return CallReport::failed(format!("there is no `{name}`")) };
        let reachable = match self.find(server) {
            Some(Ok(reachable)) => reachable,
            Some(Err(reason)) => return CallReport::failed(reason),
            None => return CallReport::failed(format!("the MCP server `{server}` is not configured")),
        };
        if let Err(overdrawn) = budget_scope.clamp(&Budget::default()) {
            return CallReport::failed(overdrawn.to_string());
        }
        let begun = Instant::now();
        let result = self.call_connected(&reachable, function, arguments, answers).await;
        let usage = Usage { calls: 1, wall_clock: begun.elapsed(), ..Usage::default() };
        budget_scope.spend(&usage);
        CallReport { result, account: Account::of(format!("{PREFIX}{server}"), usage), notices: Vec::new() }
    }

    async fn call_connected(
        &self,
        reachable: &Reachable,
        function: &str,
        arguments: &str,
        answers: &[String],
    ) -> Result<String, CallError> {
        let failed = |reason: String| CallError::Failed(reason);
        let connected = self.connected(reachable).map_err(failed)?;
        let arguments: Map<String, Value> =
            serde_json::from_str(arguments).map_err(|error| failed(format!("the arguments are no object: {error}")))?;
        let ticket = connected.asking.begin(answers);
        let (function, timeout) = (function.to_owned(), reachable.timeout);
        let called = connected.clone();
        let cancel = CancellationToken::new();
        // Dropping this call, for example because its run was stopped, tells the server.
        let _guard = cancel.clone().drop_guard();
        let task = self
            .connections
            .runtime()
            .map_err(failed)?
            .spawn(async move { called.server.call(&function, arguments, timeout, &cancel).await });
        let reply = task.await;
        if let Some(question) = connected.asking.end(ticket) {
            return Err(CallError::Asks(question));
        }
        let reply = reply.map_err(|error| failed(format!("the call ended abnormally: {error}")))?;
        let ToolReply { text, structured, is_error, .. } = reply.map_err(|error| failed(error.to_string()))?;
        match (is_error, structured) {
            (true, _) => Err(failed(text)),
            (false, Some(value)) => Ok(value.to_string()),
            (false, None) => Ok(text),
        }
    }

    /// Whether the server is no program, or programs may be started.
    fn may_connect(&self, reachable: &Reachable) -> bool {
        self.starts_programs || !matches!(reachable.settings.transport, Transport::Stdio { .. })
    }

    fn connected(&self, reachable: &Reachable) -> Result<Arc<Connected>, String> {
        if !self.may_connect(reachable) {
            return Err(format!("the MCP server `{}` is a program, and none is started here", reachable.settings.name));
        }
        reachable.connected.get_or_init(|| self.connections.connect(&reachable.settings, &reachable.grants)).clone()
    }
}

/// The server and the function of a full name.
fn split(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix(PREFIX)?.split_once('/')
}

/// How a server that a file describes is reached; the error is what is wrong with the description.
fn settings_of(server: &DeclaredServer) -> Result<ServerSettings, String> {
    let transport = match &server.way {
        ServerWay::Program { command, arguments, environment, folder } => Transport::Stdio {
            command: command.clone(),
            args: arguments.clone(),
            env: environment.iter().cloned().collect(),
            cwd: folder.as_ref().map(PathBuf::from),
        },
        ServerWay::Service { url, headers, events, tls } => {
            let url = url
                .parse()
                .map_err(|error| format!("the `url` of the MCP server `{}` is no address: {error}", server.name))?;
            let tls = tls.as_ref().map_or_else(TlsSettings::default, |tls| TlsSettings {
                ca_file: Some(PathBuf::from(&tls.ca_file)),
                client_certificate: Some(PathBuf::from(&tls.certificate_file)),
                client_key: Some(PathBuf::from(&tls.key_file)),
            });
            let headers = headers.iter().cloned().collect();
            match events {
                true => Transport::Sse { url, headers, tls },
                false => Transport::StreamableHttp { url, headers, tls },
            }
        }
    };
    Ok(ServerSettings { name: server.name.clone(), transport, limits: Limits::default() })
}

/// The way to a service: to addresses that the policy allows. A program has none.
fn client(settings: &ServerSettings, grants: &Arc<Grants>) -> Result<Option<hotcell_mcp::HttpClient>, String> {
    let (Transport::StreamableHttp { url, .. } | Transport::Sse { url, .. }) = &settings.transport else {
        return Ok(None);
    };
    let (url, grants) = (url.clone(), grants.clone());
    let allowed = move |address| {
        let decision = decide_address(&grants, &url, "POST", address);
        decision.is_some_and(|decision| decision.is_allowed())
    };
    hotcell_mcp::http_client_within(settings, Arc::new(allowed)).map(Some).map_err(|error| error.to_string())
}

/// Asks the policy whether a server may be used; the error says what would allow it.
fn permit(
    settings: ServerSettings,
    prefix: String,
    timeout: Duration,
    grants: &impl Fn(&str) -> Granted,
) -> Result<Arc<Reachable>, String> {
    let name = format!("{PREFIX}{}", settings.name);
    let (granted, held_back) = grants(&name);
    let decision = match &settings.transport {
        Transport::Stdio { .. } => decide(&granted, &Request::Process),
        Transport::StreamableHttp { url, .. } | Transport::Sse { url, .. } => decide_url(&granted, url, "POST")
            .ok_or_else(|| format!("the address of `{name}` is not one of a web server"))?,
    };
    match decision {
        Decision::Allow => {
            Ok(Arc::new(Reachable { settings, grants: granted, prefix, timeout, connected: OnceLock::new() }))
        }
        Decision::Deny(capability) => {
            let held_back = capability.is_in(&held_back);
            let denial = Denial { held_back, ..Denial::new(name, capability) };
            Err(format!("the MCP server `{}` may not be used here: {denial}", settings.name))
        }
    }
}

/// Answers for the calls that are under way with one server.
#[derive(Default)]
struct Asking(Mutex<Vec<Ticket>>);

struct Ticket {
    number: u64,
    answers: VecDeque<String>,
    question: Option<String>,
}

impl Asking {
    fn tickets(&self) -> MutexGuard<'_, Vec<Ticket>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, answers: &[String]) -> u64 {
        let mut tickets = self.tickets();
        let number = tickets.iter().map(|ticket| ticket.number + 1).max().unwrap_or(0);
        tickets.push(Ticket { number, answers: answers.iter().cloned().collect(), question: None });
        number
    }

    /// The question that has no answer yet, if the server put one.
    fn end(&self, number: u64) -> Option<String> {
        let mut tickets = self.tickets();
        let place = tickets.iter().position(|ticket| ticket.number == number)?;
        tickets.swap_remove(place).question
    }
}

#[async_trait]
impl ClientEvents for Asking {
    async fn elicit(&self, server: &str, message: &str, schema: &Value) -> Elicited {
        let mut tickets = self.tickets();
        // A server does not say which call its question belongs to. Nobody gets another one's question.
        let [ticket] = &mut tickets[..] else {
            tracing::warn!(target: "hotcell::mcp", server, "a question was declined: several calls are under way");
            return Elicited::Decline;
        };
        match ticket.answers.pop_front() {
            Some(answer) if answer.trim().is_empty() => Elicited::Decline,
            Some(answer) => fill(schema, &answer).map_or(Elicited::Decline, Elicited::Accept),
            None => {
                ticket.question = Some(question(message, schema));
                Elicited::Cancel
            }
        }
    }

    fn log(&self, server: &str, level: LogLevel, text: &str) {
        tracing::info!(target: "hotcell::mcp", server, ?level, "{text}");
    }

    fn tools_changed(&self, server: &str, tools: &[ToolInfo]) {
        tracing::info!(target: "hotcell::mcp", server, "it has {} tools now", tools.len());
    }

    fn progress(&self, server: &str, tool: &str, progress: &Progress) {
        tracing::info!(target: "hotcell::mcp", server, tool, done = progress.done, "{}", progress.message.as_deref().unwrap_or(""));
    }
}

/// The fields that a person has to fill in, with their schemas: those that are required, or all if none is.
fn fields(schema: &Value) -> Vec<(&String, &Value)> {
    let all = || schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let needed: Vec<(&String, &Value)> = all().filter(|(name, _)| required.contains(&name.as_str())).collect();
    if needed.is_empty() { all().collect() } else { needed }
}

/// The question as a person sees it.
fn question(message: &str, schema: &Value) -> String {
    let described = |(name, schema): &(&String, &Value)| {
        let about = ["title", "description"].iter().find_map(|key| schema.get(*key)?.as_str());
        let kind = schema.get("type").and_then(Value::as_str).unwrap_or("text");
        match about {
            Some(about) => format!("{name} ({kind}): {about}"),
            None => format!("{name} ({kind})"),
        }
    };
    let fields = fields(schema);
    match &fields[..] {
        [] => format!("{message} [y/N]"),
        [field] => format!("{message}\n{} (nothing to decline)", described(field)),
        several => {
            let lines: Vec<String> = several.iter().map(|field| format!("- {}", described(field))).collect();
            format!("{message}\nAnswer with a JSON object of\n{}\n(nothing to decline)", lines.join("\n"))
        }
    }
}

/// What a person answered, in the form that was asked for; none if it does not have that form.
fn fill(schema: &Value, answer: &str) -> Option<Value> {
    let fields = fields(schema);
    match &fields[..] {
        [] => (yes_or_no(answer)?).then(|| Value::Object(Map::new())),
        [(name, schema)] => {
            let answer = answer.trim();
            let value = match schema.get("type").and_then(Value::as_str) {
                Some("boolean") => Value::Bool(yes_or_no(answer)?),
                Some("number" | "integer") => answer.parse().map(Value::Number).ok()?,
                _ => Value::String(answer.to_owned()),
            };
            Some(Value::Object(Map::from_iter([((*name).clone(), value)])))
        }
        _ => serde_json::from_str(answer).ok().filter(Value::is_object),
    }
}

/// A plain yes or no. Anything else is neither: a confirmation must not rest on a guess.
fn yes_or_no(answer: &str) -> Option<bool> {
    match answer.trim().to_lowercase().as_str() {
        "yes" | "y" | "true" | "1" | "ok" => Some(true),
        "no" | "n" | "false" | "0" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_yes_confirms() {
        let nothing = json!({ "type": "object", "properties": {} });
        assert_eq!(question("Delete it?", &nothing), "Delete it? [y/N]");
        for (answer, confirmed) in
            [("yes", true), (" Y ", true), ("no", false), ("N", false), ("never", false), ("yes, but", false)]
        {
            assert_eq!(fill(&nothing, answer).is_some(), confirmed, "{answer}");
        }
        let flag = json!({ "properties": { "x": { "type": "boolean" } } });
        assert_eq!(fill(&flag, "no"), Some(json!({ "x": false })));
        assert_eq!(fill(&flag, "perhaps"), None);
    }

    #[test]
    fn a_person_answers_in_plain_words_where_one_thing_is_asked() {
        let one = |kind: &str| json!({ "properties": { "x": { "type": kind, "title": "The X" } } });
        assert_eq!(question("Which?", &one("string")), "Which?\nx (string): The X (nothing to decline)");
        assert_eq!(fill(&one("string"), " a b "), Some(json!({ "x": "a b" })));
        assert_eq!(fill(&one("boolean"), "Yes"), Some(json!({ "x": true })));
        assert_eq!(fill(&one("integer"), "7"), Some(json!({ "x": 7 })));
        assert_eq!(fill(&one("integer"), "seven"), None);
        let two = json!({ "properties": { "a": { "type": "string" }, "b": { "type": "number" } } });
        assert!(question("Who?", &two).contains("- a (string)\n- b (number)"));
        assert_eq!(fill(&two, r#"{"a":"x","b":1}"#), Some(json!({ "a": "x", "b": 1 })));
        assert_eq!(fill(&two, "x"), None);
        let one_of_two = json!({ "properties": { "a": { "type": "string" }, "b": {} }, "required": ["a"] });
        assert_eq!(fill(&one_of_two, "x"), Some(json!({ "a": "x" })));
    }

    #[test]
    fn a_question_goes_to_nobody_where_it_is_not_clear_whose_it_is() {
        let asking = Asking::default();
        let (first, second) = (asking.begin(&[]), asking.begin(&["yes".to_owned()]));
        let elicited = futures::executor::block_on(asking.elicit("s", "Go on?", &json!({})));
        assert!(matches!(elicited, Elicited::Decline));
        assert_eq!((asking.end(first), asking.end(second)), (None, None));
        let only = asking.begin(&[]);
        assert!(matches!(futures::executor::block_on(asking.elicit("s", "Go on?", &json!({}))), Elicited::Cancel));
        assert!(asking.end(only).is_some_and(|question| question.starts_with("Go on?")));
    }
}
