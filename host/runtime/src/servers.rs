//! MCP servers: which there are, which an agent may use, and calls of their functions.
//!
//! A server is named in `mcp.json`, in the agent's folder or in the user's own configuration, and used by an agent only
//! if `hotcell.toml` in the agent's folder grants it what it needs: `process` for a program of this machine, `http` for a
//! service. Connections are shared by all agents of a host.

mod connections;
mod error;
mod permit;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use hotcell_budget::{Account, Budget, BudgetScope, Usage};
use hotcell_cells::Grants;
use hotcell_dialects::{DeclaredServer, ServerState};
use hotcell_engine::{CallError, CallReport, Clock};
use hotcell_graph::ir::Retry;
use hotcell_graph::value::read_json;
use hotcell_mcp::{FailedExchange, McpError, ServerSettings, ToolReply, Transport};
use hotcell_models::ToolSpec;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;

use crate::permissions::Permissions;
use crate::revision::sources::Sources;
use crate::server_keys::ServerKeys;
use crate::servers::connections::{ConnectError, Connected};
pub(crate) use crate::servers::connections::{Connections, ThreadError};
use crate::servers::error::ServerError;
pub(crate) use crate::servers::error::{ServersFileError, UnreadServers};
use crate::servers::permit::{CallTerms, full_name, may_reach, permit, settings_of};

/// The file that names servers.
pub(crate) const SERVERS_FILE: &str = "mcp.json";
/// What the full name of a function begins with: `mcp:server/function`. Grants are given to `mcp:server`.
pub(crate) const PREFIX: &str = "mcp:";
/// What is granted to a server, and what would be if the operator trusted it.
pub(crate) type Granted = (Arc<Grants>, Arc<Grants>);

/// Why an attempt to call a function came to no answer.
#[derive(Debug, Error)]
enum NoAnswer {
    /// The server cannot be used
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The exchange with it failed
    #[error(transparent)]
    Exchange(#[from] McpError),
    /// There is no thread for it
    #[error(transparent)]
    Thread(#[from] ThreadError),
    /// The work panicked
    #[error("the call ended abnormally: {0}")]
    Panicked(#[from] JoinError),
}

impl NoAnswer {
    /// Whether another attempt may help, and the status after which it is made.
    fn passes(&self, retry: &Retry) -> Option<Option<u16>> {
        let exchange = match self {
            NoAnswer::Server(ServerError::Unreachable { exchange, .. }) => *exchange,
            NoAnswer::Exchange(error) => error.failed_exchange(),
            NoAnswer::Server(_) | NoAnswer::Thread(_) | NoAnswer::Panicked(_) => None,
        };
        match exchange? {
            FailedExchange::Status(status) => retry.on.answer(status, "").then_some(Some(status)),
            FailedExchange::NoAnswer => Some(None),
        }
    }
}

/// A file that names servers.
pub(crate) struct ServersFile<'a> {
    pub(crate) file: PathBuf,
    /// Reads its text; nothing where there is no such file
    pub(crate) text: &'a dyn Fn() -> Result<Option<String>, UnreadServers>,
    /// What a server may use of the environment, as `${NAME}`
    pub(crate) variable: &'a dyn Fn(&str, &str) -> Option<String>,
}

/// How the servers of an agent are reached, and who says what they may be used for.
#[derive(Clone)]
pub(crate) struct Reaching {
    pub(crate) connections: Arc<Connections>,
    pub(crate) sources: Arc<Sources>,
    /// The folder whose settings count
    pub(crate) project: PathBuf,
    pub(crate) permissions: Arc<Permissions>,
    /// Whether those that are programs are started
    pub(crate) starts_programs: bool,
    /// The clock that runs go by
    pub(crate) clock: Arc<dyn Clock>,
}

/// The servers within reach of one agent.
#[derive(Clone)]
pub(crate) struct AgentServers {
    reaching: Reaching,
    servers: Arc<Mutex<Servers>>,
    /// How often functions are called that have a policy of their own, by their full names
    retries: Arc<Mutex<BTreeMap<String, Retry>>>,
}

/// A function of a server, as models are told about it.
#[derive(Clone, Serialize, Deserialize)]
struct Function {
    name: String,
    description: String,
    input_schema: Value,
}

/// By their names, the servers that may be used, and why others may not.
type Servers = BTreeMap<String, Result<Arc<Reachable>, ServerError>>;

/// A server that may be used.
struct Reachable {
    settings: ServerSettings,
    /// What it is sent and does not give back
    keys: ServerKeys,
    /// What models see before the names of its functions
    prefix: String,
    /// How long one call may take
    timeout: Duration,
    /// How often one is tried; none means once
    retry: Option<Retry>,
    /// What was granted to it
    grants: Arc<Grants>,
    /// What would be if the operator trusted it
    held_back: Arc<Grants>,
    connected: Mutex<Option<Result<Arc<Connected>, ServerError>>>,
    /// Its functions when it was first asked for them: what a model is told does not change any more
    functions: OnceLock<Result<Arc<[Function]>, ServerError>>,
}

impl AgentServers {
    /// No servers.
    pub(crate) fn none(reaching: Reaching) -> Self {
        AgentServers { reaching, servers: Arc::default(), retries: Arc::default() }
    }

    /// The servers that the files name, with what was granted to each. The errors are what is wrong with files.
    pub(crate) fn new(
        reaching: Reaching,
        files: &[ServersFile<'_>],
        grants: impl Fn(&str) -> Granted,
    ) -> (Self, Vec<ServersFileError>) {
        let mut servers = BTreeMap::new();
        let mut problems = Vec::new();
        for ServersFile { file, text, variable } in files {
            let text = match text() {
                Ok(Some(text)) => text,
                Ok(None) => continue,
                Err(cause) => {
                    problems.push(ServersFileError::Unreadable { file: file.clone(), cause });
                    continue;
                }
            };
            match hotcell_mcp::parse_servers(&text, variable) {
                Ok(found) => {
                    for mut settings in found {
                        if let Some(folder) = file.parent() {
                            settings.relative_to(folder);
                        }
                        // The agent's own file comes first.
                        servers
                            .entry(settings.name.clone())
                            .or_insert_with(|| permit(settings, CallTerms::default(), &grants));
                    }
                }
                Err(cause) => problems.push(ServersFileError::Form { file: file.clone(), cause }),
            }
        }
        (AgentServers { reaching, servers: Arc::new(Mutex::new(servers)), retries: Arc::default() }, problems)
    }

    /// Adds a server that the agent's own file describes; it counts before those of other files.
    pub(crate) fn declare(&self, server: &DeclaredServer, folder: &Path, grants: impl Fn(&str) -> Granted) {
        let reachable =
            settings_of(server, folder, &grants(&format!("{PREFIX}{}", server.name)).0).and_then(|settings| {
                let DeclaredServer { prefix, timeout, retry, .. } = server.clone();
                permit(settings, CallTerms { prefix, timeout, retry }, &grants)
            });
        self.all().insert(server.name.clone(), reachable);
    }

    /// Says how often a function is called, by its full name, whatever its server's own file says.
    pub(crate) fn retry_function(&self, function: &str, retry: &Retry) {
        let mut retries = self.retries.lock().unwrap_or_else(PoisonError::into_inner);
        retries.insert(function.to_owned(), retry.clone());
    }

    fn all(&self) -> MutexGuard<'_, Servers> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, name: &str) -> Option<Result<Arc<Reachable>, ServerError>> {
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
            Some(Err(error)) => ServerState::Unusable(error.to_string()),
            Some(Ok(reachable)) if !self.may_connect(&reachable) => ServerState::NotStarted,
            // Also for a revision, which knows the functions: who cannot be reached is said before the run goes on, and not told to
            // a model in the middle of it.
            Some(Ok(reachable)) => match self.connected(&reachable).and_then(|_| self.functions(&reachable)) {
                Ok(functions) => ServerState::Usable(functions.iter().map(|function| function.name.clone()).collect()),
                Err(error) => ServerState::Unusable(error.to_string()),
            },
        }
    }

    /// What a model is told about a function, by its full name.
    pub(crate) fn describe(&self, name: &str) -> Option<ToolSpec> {
        let (server, function) = split(name)?;
        let Some(Ok(reachable)) = self.find(server) else { return None };
        let functions = self.functions(&reachable).ok()?;
        let tool = functions.iter().find(|tool| tool.name == function)?;
        let spoken = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
        Some(ToolSpec {
            name: reachable.prefix.chars().chain(tool.name.chars()).map(spoken).collect(),
            description: tool.description.clone(),
            parameters: tool.input_schema.clone(),
        })
    }

    /// The functions of a server. A revision knows those that were there when it was made.
    fn functions(&self, reachable: &Reachable) -> Result<Arc<[Function]>, ServerError> {
        let ask = || -> Result<String, ServerError> {
            let connected = self.connected(reachable)?;
            let functions: Vec<Function> = connected
                .server
                .tools()
                .iter()
                .map(|tool| Function {
                    name: tool.name.clone(),
                    description: tool.description.clone(),
                    input_schema: tool.input_schema.clone(),
                })
                .collect();
            Ok(reachable.keys.without(serde_json::to_string(&functions)?))
        };
        let find = || {
            let Reaching { sources, project, .. } = &self.reaching;
            let subject = format!("server {} {}", project.display(), reachable.settings.name);
            let answer = match sources.answer(&subject, || None, || ask().map_err(Some)) {
                Ok(answer) => answer,
                // Nobody had asked for them when it was made.
                Err(None) => ask()?,
                Err(Some(error)) => return Err(error),
            };
            Ok(serde_json::from_str::<Vec<Function>>(&answer)?.into())
        };
        reachable.functions.get_or_init(find).clone()
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
            Some(Err(error)) => return CallReport::failed(error.to_string()),
            None => return CallReport::failed(format!("the MCP server `{server}` is not configured")),
        };
        if let Err(overdrawn) = budget_scope.clamp(&Budget::default()) {
            return CallReport::failed(overdrawn.to_string());
        }
        let begun = Instant::now();
        let own = self.retries.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        let retry = own.or_else(|| reachable.retry.clone());
        let result = self.call_granted(&reachable, function, arguments, answers, retry.as_ref()).await;
        let usage = Usage { calls: 1, wall_clock: begun.elapsed(), ..Usage::default() };
        budget_scope.spend(&usage);
        CallReport { result, account: Account::of(format!("{PREFIX}{server}"), usage), notices: Vec::new() }
    }

    async fn call_granted(
        &self,
        reachable: &Arc<Reachable>,
        function: &str,
        arguments: &str,
        answers: &[String],
        retry: Option<&Retry>,
    ) -> Result<String, CallError> {
        let failed = |reason: String| CallError::Failed(reason);
        let granted = self.reaching.permissions.grants(&full_name(&reachable.settings), &reachable.grants);
        let granted = granted.map_err(|revoked| failed(revoked.to_string()))?;
        may_reach(&reachable.settings, &granted, &reachable.held_back).map_err(|error| failed(error.to_string()))?;
        let arguments = match read_json(arguments) {
            Ok(Value::Object(arguments)) => arguments,
            Ok(_) => return Err(failed("the arguments are not an object".to_owned())),
            Err(error) => return Err(failed(format!("the arguments are not an object: {error}"))),
        };
        let timeout = retry.and_then(|retry| retry.time).unwrap_or(reachable.timeout);
        let mut attempt = 1;
        loop {
            let call = (function, arguments.clone(), timeout, attempt > 1);
            let failure = match self.attempt(reachable, call, answers).await {
                Ok(answer) => return answer,
                Err(failure) => failure,
            };
            let again = retry.filter(|retry| attempt < retry.attempts);
            match again.and_then(|retry| Some((retry, failure.passes(retry)?))) {
                Some((retry, status)) => {
                    self.reaching.clock.pause(retry.pause_after(attempt, status, fastrand::f64())).await;
                }
                None => return Err(failed(reachable.keys.without(failure.to_string()))),
            }
            attempt += 1;
        }
    }

    /// One attempt to call a function, with a new connection if the last one has ended and it is not the first: the answer,
    /// which may be an error, or why there is none.
    async fn attempt(
        &self,
        reachable: &Arc<Reachable>,
        (function, arguments, timeout, again): (&str, Map<String, Value>, Duration, bool),
        answers: &[String],
    ) -> Result<Result<String, CallError>, NoAnswer> {
        let connected = self.connection(reachable, again).await?;
        let ticket = connected.asking.begin(answers);
        let function = function.to_owned();
        let called = connected.clone();
        let cancel = CancellationToken::new();
        // Dropping this call, for example because its run was stopped, tells the server.
        let _guard = cancel.clone().drop_guard();
        let task = self.reaching.connections.runtime()?.spawn(async move {
            if again {
                called.server.connect_again().await?;
            }
            called.server.call(&function, arguments, timeout, &cancel).await
        });
        let reply = task.await;
        let keys = &reachable.keys;
        if let Some(question) = connected.asking.end(ticket) {
            return Ok(Err(CallError::Asks(keys.without(question))));
        }
        let ToolReply { text, structured, is_error, .. } = reply??;
        Ok(match (is_error, structured) {
            (true, _) => Err(CallError::Failed(keys.without(text))),
            (false, Some(value)) => Ok(keys.without(value.to_string())),
            (false, None) => Ok(keys.without(text)),
        })
    }

    /// Whether the server is no program, or programs may be started.
    fn may_connect(&self, reachable: &Reachable) -> bool {
        self.reaching.starts_programs || !matches!(reachable.settings.transport, Transport::Stdio { .. })
    }

    /// The connection; who has to wait for it does so where that holds up nobody else.
    async fn connection(&self, reachable: &Arc<Reachable>, again: bool) -> Result<Arc<Connected>, NoAnswer> {
        // Whoever is connecting holds it.
        let known = reachable.connected.try_lock().ok().and_then(|known| known.as_ref()?.as_ref().ok().cloned());
        if let Some(connected) = known {
            return Ok(connected);
        }
        let (servers, reachable) = (self.clone(), reachable.clone());
        let connecting = move || servers.connected_again(&reachable, again);
        Ok(self.reaching.connections.blocking(connecting).await??)
    }

    fn connected(&self, reachable: &Reachable) -> Result<Arc<Connected>, ServerError> {
        self.connected_again(reachable, false)
    }

    /// The connection; `again` tries once more if there was none.
    fn connected_again(&self, reachable: &Reachable, again: bool) -> Result<Arc<Connected>, ServerError> {
        if !self.may_connect(reachable) {
            return Err(ServerError::NotStarted(reachable.settings.name.clone()));
        }
        let mut connected = reachable.connected.lock().unwrap_or_else(PoisonError::into_inner);
        match &*connected {
            Some(known) if known.is_ok() || !again => known.clone(),
            _ => {
                let found = self.reaching.connections.connect(&reachable.settings, &reachable.grants);
                let unreachable = |error: ConnectError| ServerError::Unreachable {
                    words: reachable.keys.without(error.to_string()),
                    exchange: error.failed_exchange(),
                };
                connected.insert(found.map_err(unreachable)).clone()
            }
        }
    }
}

/// The server and the function of a full name.
fn split(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix(PREFIX)?.split_once('/')
}
