//! Has an agent work that speaks the A2A protocol (Agent2Agent, JSON-RPC over HTTP), version 1.0 or 0.3.
//!
//! The agent's card says where it takes requests and in which version. Whoever answers that they do not know a method is asked once more in
//! the other version.

mod dialect;

use hotcell_connector::rpc::{self, RpcError};
use hotcell_connector::{Connector, Failure, Job, Step, connector};
use hotcell_plugin::{Json, json, kv};

use dialect::{Dialect, State, output, said_by};

connector!(A2a, { auth_token: "the token of the agent" });

struct A2a;

/// How often it is asked where nobody says.
const POLL_MS: u64 = 2000;
/// Where cards are, the newer place first.
const CARDS: [&str; 2] = [".well-known/agent-card.json", ".well-known/agent.json"];
/// What says that a method, or the version, is not known.
const UNKNOWN: [i64; 2] = [-32601, -32009];

fn token(job: &Job) -> Result<Vec<(&'static str, String)>, Failure> {
    let scheme = job.settings.text("auth_scheme").unwrap_or("Bearer");
    let token = job.settings.secret(&["auth_token"])?;
    Ok(token.map(|token| ("authorization", format!("{scheme} {token}"))).into_iter().collect())
}

/// What an agent says of itself.
fn card(job: &Job) -> Result<Json, Failure> {
    let url = job.settings.address("url")?;
    let mut answer = job.settings.get_from(&format!("{url}/{}", CARDS[0]), &token(job)?)?;
    if answer.status() == 404 {
        answer = job.settings.get_from(&format!("{url}/{}", CARDS[1]), &token(job)?)?;
    }
    answer.success()?.json()
}

fn call(job: &Job, url: &str, dialect: Dialect, method: &str, params: Json) -> Result<Result<Json, RpcError>, Failure> {
    let mut headers = token(job)?;
    if let Some(version) = dialect.version_header() {
        headers.push(("a2a-version", version.to_owned()));
    }
    rpc::call(&job.settings, url, &headers, (&job.name, method, params))
}

impl Connector for A2a {
    fn begin(job: &Job) -> Result<Step, Failure> {
        let card = card(job)?;
        let (url, mut dialect) = dialect::endpoint(&card, job.settings.address("url")?)?;
        let kept = job.of_session("context");
        let context: Option<String> = match &kept {
            Some(kept) => kv::read(kept)?,
            None => None,
        };
        let send = |dialect: Dialect| {
            let params = dialect.message(&card, &job.input, &job.name, context.as_deref());
            call(job, &url, dialect, dialect.send(), params)
        };
        let mut answer = send(dialect)?;
        if matches!(&answer, Err(error) if UNKNOWN.contains(&error.code)) {
            dialect = dialect.other();
            answer = send(dialect)?;
        }
        let answer = dialect::inner(answer?);
        let context = answer["contextId"].as_str().filter(|id| !id.is_empty());
        if let (Some(kept), Some(context)) = (&kept, context) {
            kv::write(kept, context.to_owned())?;
        }
        step(job, &answer, &url, dialect)
    }

    fn poll(job: &Job, state: &Json) -> Result<Step, Failure> {
        let (url, dialect) = where_it_is(state);
        let task = call(job, url, dialect, dialect.get(), json!({ "id": state["task"] }))??;
        step(job, &dialect::inner(task), url, dialect)
    }

    fn cancel(job: &Job, state: &Json) {
        let (url, dialect) = where_it_is(state);
        drop(call(job, url, dialect, dialect.cancel(), json!({ "id": state["task"] })));
    }
}

fn where_it_is(state: &Json) -> (&str, Dialect) {
    (state["url"].as_str().unwrap_or_default(), Dialect::of(state["version"].as_str().unwrap_or_default()))
}

/// What a message or a task means.
fn step(job: &Job, answer: &Json, url: &str, dialect: Dialect) -> Result<Step, Failure> {
    let Some(state) = State::of(answer) else {
        return match answer["parts"].is_array() {
            true if job.callback.is_some() => Ok(Step::Accepted(Json::Null)),
            true => Ok(Step::Done(output(answer["parts"].as_array().into_iter().flatten()))),
            false => Err(Failure::new("it answered with neither a message nor a task")),
        };
    };
    let said = said_by(&answer["status"]["message"]);
    match state {
        State::Working => {
            let Some(id) = answer["id"].as_str().filter(|id| !id.is_empty()) else {
                return Err(Failure::new("its task has no `id`"));
            };
            Ok(job.begun(json!({ "url": url, "version": dialect.version(), "task": id }), POLL_MS))
        }
        State::Completed if job.callback.is_some() => Ok(Step::Accepted(Json::Null)),
        State::Completed => Ok(Step::Done(dialect::result(answer))),
        State::Asks => Err(Failure::input_required(&said)),
        State::Failed(word) => {
            let said = if said.is_empty() { said } else { format!(": {said}") };
            Err(Failure::new(format!("its task is `{word}`{said}")))
        }
    }
}

#[cfg(test)]
mod tests;
