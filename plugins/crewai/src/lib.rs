//! Has a deployed crew of CrewAI work: it is kicked off, and asked for its status until it is done.

use hotcell_connector::{Connector, Failure, Job, Step, connector, segment, text_of, words};
use hotcell_plugin::{Json, json, warn};

connector!(CrewAi, {
    api_key: "the bearer token of the crew",
    user_api_key: "the user's bearer token, which is taken where there are both",
});

struct CrewAi;

/// How often it is asked where nobody says.
const POLL_MS: u64 = 2000;

fn token(job: &Job) -> Result<Vec<(&'static str, String)>, Failure> {
    let token = job.settings.secret(&["user_api_key", "api_key"])?;
    Ok(token.map(|token| ("authorization", format!("Bearer {token}"))).into_iter().collect())
}

impl Connector for CrewAi {
    fn begin(job: &Job) -> Result<Step, Failure> {
        let url = format!("{}/kickoff", job.settings.address("endpoint")?);
        let answer = job.settings.post_to(&url, &token(job)?, &json!({ "inputs": job.input }))?.success()?.json()?;
        match answer["kickoff_id"].as_str().filter(|id| !id.is_empty()) {
            Some(id) => Ok(job.begun(json!({ "id": id }), POLL_MS)),
            None => Err(Failure::new("it gave no `kickoff_id`")),
        }
    }

    fn poll(job: &Job, state: &Json) -> Result<Step, Failure> {
        let id = segment(state["id"].as_str().unwrap_or_default());
        let (endpoint, token) = (job.settings.address("endpoint")?, token(job)?);
        // Both addresses are documented.
        let (first, second) = (format!("{endpoint}/status/{id}"), format!("{endpoint}/{id}/status"));
        let is_second = state["second"] == json!(true);
        let mut state = state.clone();
        let mut answer = job.settings.get_from(if is_second { &second } else { &first }, &token)?;
        if answer.status() == 404 && !is_second {
            answer = job.settings.get_from(&second, &token)?;
            state["second"] = json!(true);
        }
        let body = answer.success()?.json()?;
        let status = words(body.get("status").filter(|status| status.is_string()).unwrap_or(&body["state"]));
        match status.as_str() {
            "completed" | "complete" | "success" | "succeeded" | "finished" | "done" => Ok(Step::Done(result(body))),
            "error" | "failed" | "failure" | "cancelled" | "canceled" | "timeout" => {
                let why = ["error", "message", "status_message", "result"].iter().find_map(|name| body.get(*name));
                let why = why.filter(|why| !why.is_null()).map(|why| format!(": {}", text_of(why)));
                Err(Failure::new(format!("its status is `{status}`{}", why.unwrap_or_default())))
            }
            "" => Err(Failure::new("it does not say what its status is")),
            "running" | "pending" | "queued" | "started" | "in-progress" | "processing" => {
                Ok(job.again(state, POLL_MS))
            }
            other => {
                warn!("the status `{other}` is not known and taken for one of a crew that works");
                Ok(job.again(state, POLL_MS))
            }
        }
    }
}

/// What a crew gave.
fn result(body: Json) -> Json {
    match body.get("result") {
        Some(Json::String(text)) => json!({ "output": text }),
        Some(Json::Null) | None => {
            let mut body = body;
            for name in ["status", "state", "result"] {
                body.as_object_mut().map(|body| body.remove(name));
            }
            body
        }
        Some(result) => result.clone(),
    }
}

#[cfg(test)]
mod tests {
    use hotcell_plugin::http::{Request, Response};
    use hotcell_plugin::testing::Surroundings;
    use hotcell_plugin::{Error, Json, json};

    use super::tools::PLUGIN;

    fn call(tool: &str, given: Json, server: impl Fn(&Request) -> (u16, &'static str) + 'static) -> Json {
        let mut arguments =
            json!({ "job": "j", "settings": { "endpoint": "https://c.example/" , "secrets": ["api_key"] } });
        for (name, value) in given.as_object().into_iter().flatten() {
            arguments[name] = value.clone();
        }
        let server = move |request: Request| -> Result<Response, Error> {
            let (status, body) = server(&request);
            Ok(Response { status, headers: Vec::new(), body: body.as_bytes().to_vec() })
        };
        let ran = Surroundings::new().store().secret("api_key").http(server).run(|| PLUGIN.call_tool(tool, arguments));
        ran.result.unwrap_or_else(|error| json!({ "error": error.to_string() }))
    }

    #[test]
    fn a_crew_is_kicked_off() {
        let begun = call("begin", json!({"arguments": {"topic": "moss"}}), |request| {
            assert_eq!((request.method.as_str(), request.url.as_str()), ("POST", "https://c.example/kickoff"));
            assert_eq!(String::from_utf8_lossy(&request.body), r#"{"inputs":{"topic":"moss"}}"#);
            (200, r#"{"kickoff_id":"k"}"#)
        });
        assert_eq!(begun, json!({"again": {"state": {"own": {"id": "k"}}, "after_ms": 2000}}));
        for (status, body, part) in [
            (200, "{}", "no `kickoff_id`"),
            (200, r#"{"kickoff_id":7}"#, "no `kickoff_id`"),
            (200, "<html>", "not JSON"),
            (422, r#"{"details":{"missing_inputs":["topic"]}}"#, "missing_inputs"),
            (500, "", "status 500"),
        ] {
            let failed = call("begin", json!({"arguments": {}}), move |_| (status, body));
            assert!(failed["failed"]["message"].as_str().unwrap_or_default().contains(part), "{part}: {failed}");
        }
    }

    #[test]
    fn its_status_is_asked_for_where_it_is() {
        let poll = |id: &'static str, server: fn(&Request) -> (u16, &'static str)| {
            call("poll", json!({"state": {"own": {"id": id}}}), server)
        };
        let moved = poll("k", |request| match request.url.as_str() {
            "https://c.example/k/status" => (200, r#"{"state":"queued"}"#),
            _ => (404, ""),
        });
        assert_eq!(moved["again"]["state"]["own"], json!({"id": "k", "second": true}));
        let strange = poll("../x?y", |request| {
            assert_eq!(request.url, "https://c.example/status/..%2Fx%3Fy");
            (200, r#"{"status":"SUCCESS","result":"ok"}"#)
        });
        assert_eq!(strange, json!({"done": {"output": "ok"}}));
    }

    #[test]
    fn what_a_status_means() {
        for (body, expected) in [
            (
                r#"{"status":"completed","result":{"output":"x","tasks":[]}}"#,
                json!({"done": {"output": "x", "tasks": []}}),
            ),
            (r#"{"status":"completed","output":"x"}"#, json!({"done": {"output": "x"}})),
        ] {
            assert_eq!(call("poll", json!({"state": {"own": {"id": "k"}}}), move |_| (200, body)), expected, "{body}");
        }
        for (status, body, part) in [
            (200, r#"{"status":"error","error":"no key"}"#, "`error`: no key"),
            (200, "{}", "does not say"),
            (200, "[]", "does not say"),
            (401, "no", "status 401: no"),
        ] {
            let failed = call("poll", json!({"state": {"own": {"id": "k"}}}), move |_| (status, body));
            assert!(failed["failed"]["message"].as_str().unwrap_or_default().contains(part), "{part}: {failed}");
        }
    }

    #[test]
    fn asking_is_tried_again_twice() {
        let poll = |state: Json| call("poll", json!({ "state": state }), |_| (502, "bad gateway"));
        let first = poll(json!({"own": {"id": "k"}}));
        let second = poll(first["again"]["state"].clone());
        assert_eq!(second["again"]["state"], json!({"own": {"id": "k"}, "tries": 2}));
        assert!(poll(second["again"]["state"].clone())["failed"].is_object());
    }
}
