//! Telling addresses what becomes of tasks.
//!
//! An address is reached as the agent's own file reaches others: `[grants.agent]` says where posts may go, and the connection is made by
//! the same policy. So a client cannot make the server send anything to where its operator does not let it. What an address was told
//! of is kept with it: a server that ends in between tells the rest at its next start, and may tell something twice.

use std::time::Duration;

use hotcell_graph::Value as GraphValue;
use hotcell_runtime::{Agent, Entry, RunId, RunRecord, RunStatus, WebCall};
use serde::Deserialize;
use serde_json::{Value, json};

use super::asked::{Asked, no_tenant, params};
use super::error::{A2aError, Kind};
use super::legacy;
use super::push_store::Kept;
use super::task::{Shown, task, updates};
use super::version::Version;
use crate::api::turn::{Came, Part};
use crate::problem::{Problem, shown};
use crate::state::Server;
use crate::store::StoreError;
use crate::told_runs::Address;

/// Addresses of a task.
const MOST_OF_TASK: usize = 10;
/// Tasks of which somebody is told, at a time.
const MOST_TASKS: usize = 1000;
/// Bytes of an address, and of what proves who posts.
const LONGEST: usize = 2048;
/// How long a post may take, how often it is tried, and how long the first pause is; each further one is twice as long.
const WITHIN: Duration = Duration::from_secs(10);
const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_secs(1);

/// How an address is reached.
#[derive(Clone, Debug, Deserialize, serde::Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Config {
    #[serde(default)]
    id: String,
    #[serde(default, skip_serializing, rename = "taskId")]
    _task_id: String,
    #[serde(default, skip_serializing)]
    tenant: String,
    url: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    authentication: Option<Authentication>,
    /// The version in which it is told
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    legacy: bool,
}

#[derive(Clone, Debug, Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields)]
struct Authentication {
    scheme: String,
    #[serde(default)]
    credentials: String,
}

impl Config {
    pub(super) fn read(config: Value, agent: &Agent, version: Version) -> Result<Self, A2aError> {
        let config = if version == Version::Legacy { legacy::read_push(config) } else { config };
        if config.get("legacy").is_some() {
            return Err(A2aError::invalid("the parameters cannot be used: unknown field `legacy`"));
        }
        let mut config: Config = params(config)?;
        no_tenant(&config.tenant)?;
        config.legacy = version == Version::Legacy;
        config.check(agent)?;
        if config.id.is_empty() {
            config.id = RunId::random().to_string();
        }
        Ok(config)
    }

    fn check(&self, agent: &Agent) -> Result<(), A2aError> {
        let url = url::Url::parse(&self.url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let url = url
            .ok_or_else(|| A2aError::invalid("`url` has to be an address that begins with `https://` or `http://`"))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(A2aError::invalid("`url` may have no user and no password; give `authentication`"));
        }
        if !agent.may_post(&url) {
            let detail =
                "the operator does not let the agent post there: `[grants.agent]` has no `http` for the address";
            return Err(A2aError::invalid(detail));
        }
        let authentication = self.authentication.iter().flat_map(|how| [&how.scheme, &how.credentials]);
        for text in [&self.url, &self.id, &self.token].into_iter().chain(authentication) {
            // They become headers.
            if text.len() > LONGEST || text.chars().any(|c| c.is_control() || !c.is_ascii()) {
                let detail = format!(
                    "what says how an address is reached has at most {LONGEST} characters of ASCII each, none of them a control character"
                );
                return Err(A2aError::invalid(detail));
            }
        }
        Ok(())
    }

    /// The server of the address, and why it was not reached, without what else is in the address: that may be a secret.
    fn for_log(&self, reason: &str) -> (String, String) {
        let Ok(url) = url::Url::parse(&self.url) else { return (String::new(), String::new()) };
        let place = url.origin().ascii_serialization();
        let reason = reason.replace(url.as_str(), &place).replace(&self.url, &place);
        (place, reason)
    }

    /// As a client sees it. What proves who posts is not shown again.
    fn shown(&self, run: &RunId, version: Version) -> Value {
        let mut config = json!(self);
        if let Some(members) = config.as_object_mut() {
            members.remove("legacy");
            members.remove("token");
        }
        if let Some(how) = config.get_mut("authentication").and_then(Value::as_object_mut) {
            how.remove("credentials");
        }
        config["taskId"] = run.as_str().into();
        version.written(config)
    }
}

/// Whether an address can be told of a task, too, or of one that is to begin.
pub(super) fn has_room(server: &Server, run: Option<&RunId>, config: &Config) -> Result<(), A2aError> {
    let of_task = match run {
        Some(run) => server.store().pushes_of(run)?,
        None => Vec::new(),
    };
    if of_task.iter().any(|kept| kept.id == config.id) {
        // It takes the place of that one.
        return Ok(());
    }
    if of_task.len() >= MOST_OF_TASK {
        let detail = format!("{MOST_OF_TASK} addresses are told of the task, which is the limit; delete one");
        return Err(A2aError::new(Kind::UnsupportedOperation, detail));
    }
    if of_task.is_empty() && server.store().pushed_count()? >= MOST_TASKS {
        let detail =
            format!("somebody is told of {MOST_TASKS} tasks, which is the limit; try it later, or follow the task");
        return Err(A2aError::from(Problem::unavailable(detail)));
    }
    Ok(())
}

/// Has an address told what becomes of a run after so many entries.
pub(super) fn add(server: &Server, run: &RunId, config: Config, told: u64) -> Result<(), A2aError> {
    let kept = Kept { id: config.id.clone(), config: json!(config).to_string(), told };
    server.store().keep_push(run, &kept)?;
    watch(server, run, &kept.id);
    Ok(())
}

/// Which address of a task is meant.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Which {
    #[serde(default)]
    task_id: String,
    #[serde(default)]
    id: String,
    #[serde(default)]
    push_notification_config_id: String,
    #[serde(default)]
    tenant: String,
    #[serde(default, rename = "pageSize")]
    _page_size: Option<u32>,
    #[serde(default, rename = "pageToken")]
    _page_token: String,
    #[serde(default, rename = "metadata")]
    _metadata: Option<Value>,
}

impl Which {
    /// The run, and the name of the address.
    async fn read(asked: &Asked, given: Value) -> Result<(RunRecord, String), A2aError> {
        let which: Which = params(given)?;
        no_tenant(&which.tenant)?;
        // In version 0.3 `id` is the task.
        let (task, id) = match asked.version {
            Version::One => (which.task_id, which.id),
            Version::Legacy => (which.id, which.push_notification_config_id),
        };
        Ok((asked.run(&task).await?, id))
    }
}

pub(super) async fn set(asked: &Asked, given: Value) -> Result<Value, A2aError> {
    let (task, config) = match asked.version {
        Version::One => {
            let task = given.get("taskId").and_then(Value::as_str).unwrap_or_default().to_owned();
            (task, Config::read(given, &asked.agent, asked.version)?)
        }
        Version::Legacy => {
            let task = given.get("taskId").and_then(Value::as_str).unwrap_or_default().to_owned();
            let config = given.get("pushNotificationConfig").cloned();
            let config = config.ok_or_else(|| A2aError::invalid("`pushNotificationConfig` is missing"))?;
            (task, Config::read(config, &asked.agent, asked.version)?)
        }
    };
    let run = asked.run(&task).await?;
    if run.status.is_final() {
        let detail = format!("task `{}` has ended; nothing more becomes of it", run.id);
        return Err(A2aError::new(Kind::UnsupportedOperation, detail));
    }
    has_room(&asked.server, Some(&run.id), &config)?;
    let told = asked.server.runs().store().last_entry(&run.id).await?;
    let view = config.shown(&run.id, asked.version);
    add(&asked.server, &run.id, config, told)?;
    Ok(view)
}

fn configs(asked: &Asked, run: &RunId) -> Result<Vec<Config>, A2aError> {
    let kept = asked.server.store().pushes_of(run)?;
    Ok(kept.iter().filter_map(|kept| serde_json::from_str(&kept.config).ok()).collect())
}

fn none(id: &str) -> A2aError {
    A2aError::new(Kind::TaskNotFound, format!("the task has no address `{}`", shown(id)))
}

pub(super) async fn get(asked: &Asked, given: Value) -> Result<Value, A2aError> {
    let (run, id) = Which::read(asked, given).await?;
    let configs = configs(asked, &run.id)?;
    let found = configs.iter().find(|config| config.id == id || id.is_empty());
    found.map(|config| config.shown(&run.id, asked.version)).ok_or_else(|| none(&id))
}

pub(super) async fn list(asked: &Asked, given: Value) -> Result<Value, A2aError> {
    let (run, _) = Which::read(asked, given).await?;
    let configs = configs(asked, &run.id)?;
    let configs: Vec<Value> = configs.iter().map(|config| config.shown(&run.id, asked.version)).collect();
    Ok(if asked.version == Version::One { json!({ "configs": configs }) } else { configs.into() })
}

pub(super) async fn delete(asked: &Asked, given: Value) -> Result<Value, A2aError> {
    let (run, id) = Which::read(asked, given).await?;
    match asked.server.store().forget_push(&run.id, Some(&id))? {
        true => Ok(Value::Null),
        false => Err(none(&id)),
    }
}

/// Goes on telling what a server that ended left untold.
pub(crate) fn take_up(server: &Server) -> Result<(), StoreError> {
    let (server, runs) = (server.clone(), server.store().pushed_runs()?);
    tokio::spawn(async move {
        for run in runs {
            let record = match server.runs().find(&run).await {
                Ok(record) => record,
                Err(problem) if problem.status == 404 => {
                    let _ = server.store().forget_push(&RunId::from(run), None);
                    continue;
                }
                Err(problem) => {
                    tracing::error!(target: "hotcell::serve", run, reason = problem.detail, "nobody is told of a task");
                    continue;
                }
            };
            match server.store().pushes_of(&record.id) {
                Ok(addresses) => addresses.iter().for_each(|kept| watch(&server, &record.id, &kept.id)),
                Err(error) => tracing::error!(target: "hotcell::serve", run, %error, "nobody is told of a task"),
            }
        }
    });
    Ok(())
}

/// Tells an address of a run what becomes of it until it has ended, nobody wants to know any more, or the server closes. Each address has a
/// task for that, whatever other addresses come and go, and however slow they are.
fn watch(server: &Server, run: &RunId, id: &str) {
    let address = (run.clone(), id.to_owned());
    if !server.told_runs().begin(&address) {
        return;
    }
    let server = server.clone();
    tokio::spawn(async move {
        let closing = server.closing().clone();
        let watching = async {
            if let Err(problem) = tell_on(&server, &address).await {
                let (run, reason) = (&address.0, problem.detail);
                tracing::error!(target: "hotcell::serve", %run, reason, "nobody is told of a task any more");
                server.told_runs().end(&address);
            }
        };
        closing.run_until_cancelled(watching).await;
    });
}

async fn tell_on(server: &Server, address: &Address) -> Result<(), Problem> {
    let (run, id) = address;
    loop {
        server.runs().rest(run).await?;
        let record = match server.runs().find(run.as_str()).await {
            Err(problem) if problem.status == 404 => {
                server.store().forget_push(run, Some(id))?;
                server.told_runs().end(address);
                return Ok(());
            }
            record => record?,
        };
        let entries = server.runs().store().history(run).await?.whole()?;
        // As it is now: what was granted to it may have changed.
        let agent = server.agents().id_of(&record.header.source).unwrap_or_default();
        let (_, agent) = server.agents().find(&agent)?;
        let told = entries.len() as u64;
        if let Some(kept) = server.store().push_of(run, id)? {
            tell(server, &agent, &record, &entries, &kept).await;
            server.store().told_push(run, id, told)?;
        }
        let is_over = || -> Result<bool, StoreError> {
            match server.store().push_of(run, id)? {
                Some(kept) if record.status.is_final() && kept.told >= told => {
                    server.store().forget_push(run, Some(id))?;
                    Ok(true)
                }
                left => Ok(left.is_none()),
            }
        };
        if server.told_runs().end_if(address, is_over)? {
            return Ok(());
        }
        match record.status {
            // It was given anew meanwhile.
            status if status.is_final() => {}
            // Somebody goes on with it, in this process or in another one.
            RunStatus::Interrupted => tokio::time::sleep(PAUSE).await,
            _ => {
                // It may have ended between its record and its entries: then none will come.
                let now = server.runs().find(run.as_str()).await;
                if now.is_ok_and(|now| !now.status.is_final()) {
                    server.runs().store().grown(run, told).await?;
                }
            }
        }
    }
}

/// Tells an address what happened since it was told something: the task may have asked, and gone on to its end.
async fn tell(server: &Server, agent: &Agent, run: &RunRecord, entries: &[Entry], kept: &Kept) {
    let Ok(config) = serde_json::from_str::<Config>(&kept.config) else { return };
    let version = if config.legacy { Version::Legacy } else { Version::One };
    let mut part = Part::of(entries, kept.told);
    let mut events = Vec::new();
    while part.came != Came::Working {
        match version {
            Version::One => events.extend(updates(run, &part)),
            // It is told the task as it is.
            Version::Legacy => events = vec![version.written(task(run, entries, Shown::default()))],
        }
        part = Part::of(entries, part.until);
    }
    for event in events {
        if let Err(reason) = post(server, agent, &config, &event).await {
            let (place, reason) = config.for_log(&reason);
            tracing::warn!(target: "hotcell::serve", run = %run.id, place, reason, "an address was not told of a task");
            return;
        }
    }
}

async fn post(server: &Server, agent: &Agent, config: &Config, event: &Value) -> Result<(), String> {
    let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    if !config.token.is_empty() {
        // The protocol does not name the header, and receivers look for one of these.
        for name in ["x-a2a-notification-token", "a2a-notification-token"] {
            headers.push((name.to_owned(), config.token.clone()));
        }
    }
    if let Some(Authentication { scheme, credentials }) = &config.authentication {
        headers.push(("authorization".to_owned(), format!("{scheme} {credentials}").trim_end().to_owned()));
    }
    let mut last = String::new();
    for attempt in 0..TRIES {
        if attempt > 0 {
            server.clock().pause(PAUSE * 2u32.pow(attempt - 1)).await;
        }
        let call = WebCall {
            time: None,
            method: "POST".to_owned(),
            url: config.url.clone(),
            query: Vec::new(),
            headers: headers.clone(),
            body: Some(GraphValue::from(event)),
        };
        last = match tokio::time::timeout(WITHIN, agent.send(call)).await {
            Ok(Ok(reply)) if (200..300).contains(&reply.status) => return Ok(()),
            Ok(Ok(reply)) if reply.status < 500 && reply.status != 429 => {
                return Err(format!("status {}", reply.status));
            }
            Ok(Ok(reply)) => format!("status {}", reply.status),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no reply within {} s", WITHIN.as_secs()),
        };
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_has_no_more_of_an_address_than_its_server() {
        let config = json!({ "url": "https://a.example/hooks/s3same?key=s3same" });
        let config: Config = serde_json::from_value(config).expect("a configuration");
        let reason = "https://a.example/hooks/s3same?key=s3same cannot be reached";
        let told = config.for_log(reason);
        assert_eq!(told, ("https://a.example".to_owned(), "https://a.example cannot be reached".to_owned()));
    }
}
