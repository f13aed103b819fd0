//! Runs the cases of a plugin, `cases/*.json`, on the author's own machine. `hotcell plugin test` runs the same files
//! in a cell, with real limits and grants.

use std::fs;
use std::path::Path;

use super::{Ran, Surroundings};
use crate::{Callback, Error, Json, Plugin, Reply, Request, Verdict, http};

/// Runs each case in `folder` and gives one line for each that is not as expected; a case that expects a limit is left
/// out, because only a cell has limits.
///
/// # Errors
/// Where the folder cannot be read, has no cases, or a file in it is not a case.
pub fn run_cases(plugin: &Plugin, folder: impl AsRef<Path>) -> Result<Vec<String>, Error> {
    let folder = folder.as_ref();
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| Error::other(format!("`{}`: {error}", folder.display())))? {
        let path = entry?.path();
        let is_case = path.extension().is_some_and(|extension| extension == "json");
        // What cases used when their fuel was last accepted lies beside them.
        if is_case && path.file_name().is_some_and(|name| name != "baseline.json") {
            paths.push(path);
        }
    }
    if paths.is_empty() {
        return Err(Error::other(format!("there are no cases in `{}`", folder.display())));
    }
    paths.sort();
    let mut problems = Vec::new();
    for path in paths {
        let case: Json = serde_json::from_str(&fs::read_to_string(&path)?)
            .map_err(|error| Error::other(format!("`{}` is not JSON: {error}", path.display())))?;
        if case["expect"].get("limit").is_none()
            && let Err(problem) = run(plugin, &case)
        {
            problems.push(format!("{}: {problem}", path.display()));
        }
    }
    Ok(problems)
}

/// What a call came to.
enum Came {
    Output(Json),
    Outcome { outputs: Json, branch: Option<String> },
    Verdict(Verdict),
}

fn run(plugin: &Plugin, case: &Json) -> Result<(), String> {
    let Ran { result, questions, .. } = surroundings(case)?.run(|| call(plugin, case));
    let expect = &case["expect"];
    if let Some(question) = expect.get("question") {
        let last = questions.last().map(String::as_str).unwrap_or_default();
        return if question.as_str().is_some_and(|part| last.contains(part)) {
            Ok(())
        } else {
            Err(format!("expected the question {question}; the last one was `{last}`"))
        };
    }
    let matches = match &result {
        Err(error) => {
            expect["error"]["kind"].as_str().is_none_or(|kind| kind == error.kind())
                && expect["error"]["message"].as_str().is_none_or(|part| error.message().contains(part))
                && expect["error"].is_object()
        }
        Ok(Came::Output(output)) => expect.get("output") == Some(output),
        Ok(Came::Outcome { outputs, branch }) => {
            expect["outcome"]["outputs"] == *outputs && expect["outcome"]["branch"].as_str() == branch.as_deref()
        }
        Ok(Came::Verdict(Verdict::Proceed)) => expect["verdict"] == "proceed",
        Ok(Came::Verdict(Verdict::Change(event))) => expect["verdict"].get("change") == Some(event),
        Ok(Came::Verdict(Verdict::Refuse(reason))) => {
            expect["verdict"]["refuse"].as_str().is_some_and(|part| reason.message.contains(part))
        }
    };
    let came = match result {
        Err(error) => error.to_string(),
        Ok(Came::Output(output)) => format!("output {output}"),
        Ok(Came::Outcome { outputs, branch }) => format!("outcome {outputs} by {branch:?}"),
        Ok(Came::Verdict(verdict)) => format!("verdict {verdict:?}"),
    };
    if matches { Ok(()) } else { Err(format!("expected {expect}; came {came}")) }
}

fn call(plugin: &Plugin, case: &Json) -> Result<Came, Error> {
    let given = |name: &str| case.get(name).cloned().unwrap_or_else(|| crate::json!({}));
    let text = |name: &str| case[name].as_str();
    if let Some(name) = text("tool") {
        return plugin.call_tool(name, given("arguments")).map(Came::Output);
    }
    if let Some(name) = text("node") {
        let outcome = plugin.run_node(name, given("fields"), given("inputs"))?;
        return Ok(Came::Outcome { outputs: outcome.outputs, branch: outcome.branch });
    }
    if let Some(point) = text("hook") {
        return plugin.on(point, given("event")).map(Came::Verdict);
    }
    if let Some(connector) = case.get("connector") {
        let part = |name: &str| connector.get(name).cloned().unwrap_or_else(|| crate::json!({}));
        let callback = connector.get("callback").map(|callback| {
            let text = |name: &str| callback[name].as_str().unwrap_or_default().to_owned();
            Callback { url: text("url"), session: text("session") }
        });
        let request = Request { input: part("input"), config: part("config"), callback, metadata: Vec::new() };
        return match connector.get("body") {
            Some(body) => plugin.receive(request, body.clone()).map(Came::Output),
            None => match plugin.send(request)? {
                Reply::Done(answer) => Ok(Came::Output(answer)),
                Reply::Accepted => Ok(Came::Output(Json::from("accepted"))),
            },
        };
    }
    plugin.run_script().map(Came::Output)
}

/// The surroundings that a case describes.
fn surroundings(case: &Json) -> Result<Surroundings, String> {
    let mut surroundings = Surroundings::new().state(case["script"]["state"].clone());
    for (key, value) in members(&case["config"]) {
        surroundings = surroundings.config(key, value.as_str().ok_or("a setting is a text")?);
    }
    for answer in case["answers"].as_array().into_iter().flatten() {
        surroundings = surroundings.answer(answer.as_str().ok_or("an answer is a text")?);
    }
    for (name, _) in members(&case["secrets"]) {
        surroundings = surroundings.secret(name);
    }
    if case["grants"]["kv"] != Json::Null && case["grants"]["kv"] != false {
        surroundings = surroundings.store();
    }
    for (key, value) in members(&case["kv"]) {
        surroundings = surroundings.kept(key, value.as_str().ok_or("a value of the store is a text")?.as_bytes());
    }
    let mut http = Replies::of(case, "http");
    surroundings = surroundings.http(move |request| {
        let sent = crate::json!({ "method": request.method, "url": request.url });
        let reply = http.next(&sent, || Error::denied(format!("http to `{}` is not granted", request.url)))?;
        let headers = members(&reply["headers"])
            .map(|(name, value)| (name.to_ascii_lowercase(), value.as_str().unwrap_or_default().to_owned()));
        Ok(http::Response {
            status: reply["status"].as_u64().and_then(|status| u16::try_from(status).ok()).unwrap_or(200),
            headers: headers.collect(),
            body: reply["body"].as_str().unwrap_or_default().as_bytes().to_vec(),
        })
    });
    let mut model = Replies::of(case, "llm");
    surroundings = surroundings.model(move |request| model.next(&request, || Error::denied("llm is not granted")));
    let mut tools = Replies::of(case, "tool");
    Ok(surroundings.tools(move |name, arguments| {
        let sent = crate::json!({ "name": name, "arguments": arguments });
        tools.next(&sent, || Error::denied(format!("the tool `{name}` is not granted")))
    }))
}

fn members(value: &Json) -> impl Iterator<Item = (&String, &Json)> {
    value.as_object().into_iter().flatten()
}

/// The replies of a case to one kind of call, in order.
struct Replies(std::vec::IntoIter<Json>);

impl Replies {
    fn of(case: &Json, call: &str) -> Self {
        let all = case["replies"].as_array().into_iter().flatten();
        Self(all.filter(|reply| reply["call"] == call).cloned().collect::<Vec<_>>().into_iter())
    }

    /// The next reply, whose `request`, where it has one, has to agree with what was sent.
    fn next(&mut self, sent: &Json, denied: impl FnOnce() -> Error) -> Result<Json, Error> {
        let reply = self.0.next().ok_or_else(denied)?;
        match members(&reply["request"]).find(|(name, value)| sent.get(name.as_str()) != Some(value)) {
            Some((name, value)) => {
                let found = sent.get(name.as_str()).unwrap_or(&Json::Null);
                Err(Error::other(format!("the case expects a call with `{name}` {value}; it has {found}")))
            }
            None => Ok(reply["reply"].clone()),
        }
    }
}
