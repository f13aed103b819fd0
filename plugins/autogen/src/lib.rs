//! Has an AutoGen service work: the endpoint that AutoGen Studio serves for a team (`predict`), or an API of one's own (`generic`).

use hotcell_connector::{Connector, Failure, Job, Step, connector, segment, text_of, words};
use hotcell_plugin::{Json, json};

connector!(AutoGen, { api_key: "the bearer token of the service" });

struct AutoGen;

/// How often it is asked where nobody says.
const POLL_MS: u64 = 2000;

fn token(job: &Job) -> Result<Vec<(&'static str, String)>, Failure> {
    let token = job.settings.secret(&["api_key"])?;
    Ok(token.map(|token| ("authorization", format!("Bearer {token}"))).into_iter().collect())
}

/// What the task is, in words.
fn task(input: &Json) -> String {
    let named = ["task", "message", "prompt", "query"].iter().find_map(|name| input[*name].as_str());
    named.map_or_else(|| input.to_string(), str::to_owned)
}

impl Connector for AutoGen {
    fn begin(job: &Job) -> Result<Step, Failure> {
        let endpoint = job.settings.address("endpoint")?;
        let workflow = job.settings.text("workflow_id");
        let style = job.settings.text("api_style").unwrap_or(if workflow.is_some() { "generic" } else { "predict" });
        if style == "predict" {
            let url = format!("{endpoint}/predict/{}", segment(&task(&job.input)));
            let answer = job.settings.get_from(&url, &token(job)?)?;
            // It works when it is read: nobody knows what is done by then.
            let body = answer.success().map_err(|failure| Failure { retry: None, ..failure })?.value()?;
            if body["status"] == json!(false) {
                return Err(Failure::new(format!("it failed there: {}", text_of(&body))));
            }
            return Ok(if job.callback.is_some() { Step::Accepted(Json::Null) } else { Step::Done(body) });
        }
        let body = json!({ "workflow_id": workflow, "input": job.input });
        let answer = job.settings.post_to(&format!("{endpoint}/run"), &token(job)?, &body)?.success()?;
        let is_later = answer.status() == 202;
        let body = answer.value()?;
        match body["run_id"].as_str().filter(|id| !id.is_empty()) {
            Some(id) if is_later || job.callback.is_some() => Ok(job.begun(json!({ "run": id }), POLL_MS)),
            None if job.callback.is_some() => Ok(Step::Accepted(Json::Null)),
            None if is_later => Err(Failure::new("it answers later, and gave no `run_id` to ask with")),
            _ => Ok(Step::Done(body)),
        }
    }

    fn poll(job: &Job, state: &Json) -> Result<Step, Failure> {
        let run = segment(state["run"].as_str().unwrap_or_default());
        let url = format!("{}/runs/{run}", job.settings.address("endpoint")?);
        let mut body = job.settings.get_from(&url, &token(job)?)?.success()?.json()?;
        match words(&body["status"]).as_str() {
            "complete" | "completed" | "success" | "done" => {
                Ok(Step::Done(if body["result"].is_null() { body } else { body["result"].take() }))
            }
            status @ ("error" | "failed" | "stopped" | "cancelled" | "canceled") => {
                let why = ["error", "message", "error_message"].iter().find_map(|name| body.get(*name));
                let why = why.filter(|why| !why.is_null()).map(|why| format!(": {}", text_of(why)));
                Err(Failure::new(format!("its status is `{status}`{}", why.unwrap_or_default())))
            }
            "" => Err(Failure::new("it does not say what its status is")),
            _ => Ok(job.again(state.clone(), POLL_MS)),
        }
    }
}

#[cfg(test)]
mod tests {
    use hotcell_plugin::http::{Request, Response};
    use hotcell_plugin::testing::Surroundings;
    use hotcell_plugin::{Error, Json, json};

    use super::tools::PLUGIN;

    fn call(tool: &str, given: Json, server: fn(&Request) -> (u16, &'static str)) -> Json {
        let mut arguments = json!({ "job": "j", "settings": { "endpoint": "https://a.example" } });
        for (name, value) in given.as_object().into_iter().flatten() {
            arguments[name] = value.clone();
        }
        let server = move |request: Request| -> Result<Response, Error> {
            let (status, body) = server(&request);
            Ok(Response { status, headers: Vec::new(), body: body.as_bytes().to_vec() })
        };
        let ran = Surroundings::new().store().http(server).run(|| PLUGIN.call_tool(tool, arguments));
        ran.result.unwrap_or_else(|error| json!({ "error": error.to_string() }))
    }

    #[test]
    fn the_task_is_a_segment_of_the_path() {
        let done = call("begin", json!({"arguments": {"task": "count 3/4 cups"}}), |request| {
            assert_eq!(
                (request.method.as_str(), request.url.as_str()),
                ("GET", "https://a.example/predict/count%203%2F4%20cups")
            );
            (200, r#"{"message":"ok","status":true,"data":{"cups":0.75}}"#)
        });
        assert_eq!(done["done"]["data"], json!({"cups": 0.75}));
        let failed =
            call("begin", json!({"arguments": {"task": "x"}}), |_| (200, r#"{"message":"no","status":false}"#));
        assert!(failed["failed"]["message"].as_str().unwrap_or_default().ends_with("no"), "{failed}");
        let failed = call("begin", json!({"arguments": {"task": "x"}}), |_| (500, ""));
        assert!(failed["failed"].is_object(), "{failed}");
    }

    #[test]
    fn a_service_of_ones_own_answers_at_once_or_later() {
        let settings = json!({"endpoint": "https://a.example", "workflow_id": "w"});
        let begin = |server| call("begin", json!({"settings": settings, "arguments": {"a": 1}}), server);
        assert_eq!(begin(|_| (200, r#"{"x":1}"#)), json!({"done": {"x": 1}}));
        assert_eq!(begin(|_| (202, r#"{"run_id":"r/1"}"#))["again"]["state"], json!({"own": {"run": "r/1"}}));
        assert!(begin(|_| (202, "{}"))["failed"].is_object());
        let poll = |server| call("poll", json!({"state": {"own": {"run": "r/1"}}}), server);
        let done = poll(|request| {
            assert_eq!(request.url, "https://a.example/runs/r%2F1");
            (200, r#"{"status":"complete","result":{"y":2}}"#)
        });
        assert_eq!(done, json!({"done": {"y": 2}}));
        assert!(poll(|_| (200, r#"{"status":"error"}"#))["failed"].is_object());
        assert!(poll(|_| (200, r#"{"status":"active"}"#))["again"].is_object());
    }
}
