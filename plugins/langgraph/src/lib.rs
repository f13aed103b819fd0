//! Runs a graph on a LangGraph server: in a thread, which a session keeps, and asked for its status until it is over.

use hotcell_connector::{Connector, Failure, Job, Step, connector, segment, text_of, words};
use hotcell_plugin::{Json, json, kv, warn};

connector!(LangGraph, { api_key: "the API key of the server" });

struct LangGraph;

/// How often it is asked where nobody says.
const POLL_MS: u64 = 1000;

fn key(job: &Job) -> Result<Vec<(&'static str, String)>, Failure> {
    Ok(job.settings.secret(&["api_key"])?.map(|key| ("x-api-key", key)).into_iter().collect())
}

/// An id that the server gave.
fn id(answer: &Json, name: &str) -> Result<String, Failure> {
    let id = answer[name].as_str().filter(|id| !id.is_empty());
    id.map(str::to_owned).ok_or_else(|| Failure::new(format!("it gave no `{name}`")))
}

fn thread_url(job: &Job, state: &Json) -> Result<String, Failure> {
    let thread = segment(state["thread"].as_str().unwrap_or_default());
    Ok(format!("{}/threads/{thread}", job.settings.address("endpoint")?))
}

fn run_url(job: &Job, state: &Json) -> Result<String, Failure> {
    let run = segment(state["run"].as_str().unwrap_or_default());
    Ok(format!("{}/runs/{run}", thread_url(job, state)?))
}

/// Begins a run in a thread.
fn begin_run(job: &Job, thread: &str, input: &Json) -> Result<Option<Step>, Failure> {
    let state = json!({ "thread": thread });
    let graph = job.settings.text("graph_id").unwrap_or("agent");
    let mut body = json!({ "assistant_id": graph, "input": input });
    if let Some(form) = job.settings.get("request_form").as_object() {
        body["config"] = json!({ "configurable": form });
    }
    let answer = job.settings.post_to(&format!("{}/runs", thread_url(job, &state)?), &key(job)?, &body)?;
    if answer.status() == 404 {
        return Ok(None);
    }
    let run = id(&answer.success()?.json()?, "run_id")?;
    Ok(Some(job.begun(json!({ "thread": thread, "run": run }), POLL_MS)))
}

impl Connector for LangGraph {
    fn begin(job: &Job) -> Result<Step, Failure> {
        let kept = job.of_session("thread");
        if let Some(kept) = &kept
            && let Some(thread) = kv::read::<String>(kept)?
        {
            // One that the server does not have any more is made anew.
            if let Some(step) = begin_run(job, &thread, &job.input)? {
                return Ok(step);
            }
        }
        let url = format!("{}/threads", job.settings.address("endpoint")?);
        let thread = id(&job.settings.post_to(&url, &key(job)?, &json!({}))?.success()?.json()?, "thread_id")?;
        if let Some(kept) = &kept {
            kv::write(kept, thread.clone())?;
        }
        let callback = job.callback.clone();
        // A step of its own: whatever becomes of it, the thread is not made again.
        Ok(Step::Again { state: json!({ "thread": thread, "input": job.input, "callback": callback }), after_ms: 0 })
    }

    fn poll(job: &Job, state: &Json) -> Result<Step, Failure> {
        if let Some(input) = state.get("input") {
            let callback = state.get("callback").filter(|callback| !callback.is_null()).cloned();
            let job = Job { callback, ..job.clone() };
            let thread = state["thread"].as_str().unwrap_or_default();
            let begun = begin_run(&job, thread, input)?;
            return begun.ok_or_else(|| Failure::new("it knows neither its new thread nor the graph"));
        }
        let run = job.settings.get_from(&run_url(job, state)?, &key(job)?)?.success()?.json()?;
        match words(&run["status"]).as_str() {
            // Servers say so of runs that were interrupted, too: whether it is over, the thread says.
            "success" => {
                let mut end = at_the_end(job, state)?;
                if let Some(asked) = asked(&end) {
                    return Err(Failure::input_required(&asked));
                }
                let values = end.get_mut("values").map(Json::take).unwrap_or_default();
                Ok(Step::Done(if values.is_null() { json!({}) } else { values }))
            }
            "interrupted" => Err(Failure::input_required(&asked(&at_the_end(job, state)?).unwrap_or_default())),
            status @ ("error" | "timeout") => {
                let why = run.get("error").filter(|why| !why.is_null()).map(|why| format!(": {}", text_of(why)));
                Err(Failure::new(format!("its run ended with the status `{status}`{}", why.unwrap_or_default())))
            }
            "pending" | "running" => Ok(job.again(state.clone(), POLL_MS)),
            "" => Err(Failure::new("it does not say what the status of its run is")),
            other => {
                warn!("the status `{other}` is not known and taken for that of a run that works");
                Ok(job.again(state.clone(), POLL_MS))
            }
        }
    }

    fn cancel(job: &Job, state: &Json) {
        if state.get("run").is_none() {
            return;
        }
        if let (Ok(url), Ok(key)) = (run_url(job, state), key(job)) {
            drop(job.settings.post_to(&format!("{url}/cancel"), &key, &json!({})));
        }
    }
}

/// The state of a thread whose run is over.
fn at_the_end(job: &Job, state: &Json) -> Result<Json, Failure> {
    job.settings.get_from(&format!("{}/state", thread_url(job, state)?), &key(job)?)?.success()?.json()
}

/// What a thread that is not at its end waits for.
fn asked(end: &Json) -> Option<String> {
    let tasks = end["tasks"].as_array().into_iter().flatten();
    let interrupts = tasks.flat_map(|task| task["interrupts"].as_array().into_iter().flatten());
    let asked: Vec<String> = interrupts.map(|interrupt| text_of(&interrupt["value"])).collect();
    if !asked.is_empty() {
        return Some(asked.join("; "));
    }
    let next: Vec<&str> = end["next"].as_array().into_iter().flatten().filter_map(|node| node.as_str()).collect();
    (!next.is_empty()).then(|| format!("whether to go on with `{}`", next.join("`, `")))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use hotcell_plugin::http::{Request, Response};
    use hotcell_plugin::testing::{Ran, Surroundings};
    use hotcell_plugin::{Error, Json, json};

    use super::tools::PLUGIN;

    /// Calls a tool and gives what came of it, with the requests that were made.
    fn call(
        surroundings: Surroundings,
        tool: &str,
        given: Json,
        server: impl Fn(&str) -> (u16, &'static str) + 'static,
    ) -> (Json, Vec<String>) {
        let mut arguments = json!({ "job": "j", "settings": { "endpoint": "https://l.example", "scope": "t/s" } });
        for (name, value) in given.as_object().into_iter().flatten() {
            arguments[name] = value.clone();
        }
        let asked: Rc<RefCell<Vec<String>>> = Rc::default();
        let noted = asked.clone();
        let server = move |request: Request| -> Result<Response, Error> {
            let path = request.url.replace("https://l.example", "");
            noted.borrow_mut().push(format!("{} {path}", request.method));
            let (status, body) = server(&path);
            Ok(Response { status, headers: Vec::new(), body: body.as_bytes().to_vec() })
        };
        let Ran { result, .. } = surroundings.http(server).run(|| PLUGIN.call_tool(tool, arguments));
        let asked = asked.borrow().clone();
        (result.unwrap_or_else(|error| json!({ "error": error.to_string() })), asked)
    }

    #[test]
    fn a_thread_is_made_once_and_a_run_begun_in_it() {
        let server = |path: &str| match path {
            "/threads" => (200, r#"{"thread_id":"t1"}"#),
            _ => (200, r#"{"run_id":"r1","status":"pending"}"#),
        };
        let (begun, asked) = call(Surroundings::new().store(), "begin", json!({"arguments": {"q": 1}}), server);
        assert_eq!((begun["again"]["after_ms"].as_u64(), asked), (Some(0), vec!["POST /threads".to_owned()]));
        let state = begun["again"]["state"].clone();
        let (running, asked) = call(Surroundings::new().store(), "poll", json!({ "state": state }), server);
        assert_eq!(running["again"]["state"]["own"], json!({"thread": "t1", "run": "r1"}));
        assert_eq!(asked, ["POST /threads/t1/runs"]);
    }

    #[test]
    fn how_runs_end() {
        let poll = |body: &'static str, end: &'static str| {
            let server = move |path: &str| if path.ends_with("/state") { (200, end) } else { (200, body) };
            call(Surroundings::new().store(), "poll", json!({"state": {"own": {"thread": "t", "run": "r"}}}), server).0
        };
        assert_eq!(poll(r#"{"status":"success"}"#, r#"{"values":{"a":1}}"#), json!({"done": {"a": 1}}));
        assert_eq!(poll(r#"{"status":"success"}"#, r#"{"values":null}"#), json!({"done": {}}));
        let asks = poll(r#"{"status":"interrupted"}"#, r#"{"tasks":[{"interrupts":[{"value":"Pay 90?"}]}]}"#);
        assert_eq!(asks["failed"]["error_type"], "InputRequired");
        assert!(asks["failed"]["message"].as_str().unwrap_or_default().ends_with("Pay 90?"), "{asks}");
        // What `langgraph dev` and the platform answer of a run that asks, and of one that stops before a node.
        let asks =
            poll(r#"{"status":"success"}"#, r#"{"next":["pay"],"tasks":[{"interrupts":[{"value":"Pay 90?"}]}]}"#);
        assert_eq!(asks["failed"]["error_type"], "InputRequired");
        assert!(asks["failed"]["message"].as_str().unwrap_or_default().ends_with("Pay 90?"), "{asks}");
        let stops = poll(r#"{"status":"success"}"#, r#"{"values":{"a":1},"next":["pay"],"tasks":[{"interrupts":[]}]}"#);
        assert!(stops["failed"]["message"].as_str().unwrap_or_default().ends_with("go on with `pay`"), "{stops}");
        assert_eq!(poll(r#"{"status":"success"}"#, "[]"), json!({"done": {}}));
        for (body, part) in
            [(r#"{"status":"error"}"#, "`error`"), (r#"{"status":"timeout"}"#, "`timeout`"), ("{}", "does not say")]
        {
            let failed = poll(body, "{}");
            assert!(failed["failed"]["message"].as_str().unwrap_or_default().contains(part), "{failed}");
        }
    }

    #[test]
    fn ids_stay_within_their_segments_and_a_run_is_cancelled() {
        let given = json!({"reason": "timeout", "state": {"own": {"thread": "../t", "run": "a/b"}}});
        let (_, asked) = call(Surroundings::new().store(), "cancel", given, |_| (500, ""));
        assert_eq!(asked, ["POST /threads/..%2Ft/runs/a%2Fb/cancel"]);
    }
}
