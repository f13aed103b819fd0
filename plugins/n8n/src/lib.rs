//! Calls a workflow of n8n by its webhook.
//!
//! The input is the body. What the webhook answers is the result, unless the workflow posts it to the callback.

use hotcell_connector::{Connector, Failure, Job, Step, connector};
use hotcell_plugin::{Json, warn};

connector!(N8n, { auth_token: "the bearer token of the webhook" });

struct N8n;

/// What a webhook answers that does not wait for its workflow.
const STARTED: &str = "Workflow was started";

impl Connector for N8n {
    fn begin(job: &Job) -> Result<Step, Failure> {
        let url = job.settings.needed("webhook_url")?;
        let token = job.settings.secret(&["auth_token"])?.map(|token| ("authorization", format!("Bearer {token}")));
        let answer = job.settings.post_to(url, token.as_slice(), &job.input)?;
        if answer.status() == 404 {
            let why = "it answered with the status 404: is the workflow active, and the address that of production?";
            return Err(Failure::new(why));
        }
        let answer = answer.success()?;
        if job.callback.is_some() {
            return Ok(Step::Accepted(Json::Null));
        }
        let result = one(answer.value()?);
        if result["message"] == STARTED {
            warn!(
                "the webhook answers before its workflow is done: set it to respond with the last node, or write `mode: callback`"
            );
        }
        Ok(Step::Done(result))
    }
}

/// A list of one object is that object.
fn one(value: Json) -> Json {
    match value {
        Json::Array(mut items) if items.len() == 1 && items[0].is_object() => items.swap_remove(0),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use hotcell_plugin::http::{Request, Response};
    use hotcell_plugin::testing::Surroundings;
    use hotcell_plugin::{Error, Json, json};

    use super::tools::PLUGIN;

    fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> Response {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Response { status, headers, body: body.as_bytes().to_vec() }
    }

    /// Begins a job at a server that gives this answer.
    fn begin(settings: Json, server: impl FnMut(Request) -> Result<Response, Error> + 'static) -> Json {
        let mut settings = settings;
        settings["webhook_url"] = json!("https://n.example/webhook/w");
        let arguments = json!({ "job": "j", "settings": settings, "arguments": { "a": 1 } });
        let ran =
            Surroundings::new().store().secret("auth_token").http(server).run(|| PLUGIN.call_tool("begin", arguments));
        ran.result.unwrap_or_else(|error| json!({ "error": error.to_string() }))
    }

    #[test]
    fn answers_are_results() {
        for (body, result) in [
            (r#"[{"score":7}]"#, json!({"score": 7})),
            (r#"[{"a":1},{"a":2}]"#, json!({"result": [{"a": 1}, {"a": 2}]})),
            (r#"{"status":"failed"}"#, json!({"status": "failed"})),
            (r#"{"success":false}"#, json!({"success": false})),
            ("done", json!({"text": "done"})),
            ("", json!({})),
        ] {
            assert_eq!(begin(json!({}), move |_| Ok(answer(200, &[], body))), json!({"done": result}), "{body}");
        }
    }

    #[test]
    fn the_token_is_a_placeholder_and_the_form_is_in_the_body() {
        let settings = json!({"secrets": ["auth_token"], "request_form": {"b": 2}});
        let begun = begin(settings, |request| {
            assert!(request.headers.contains(&("authorization".to_owned(), "Bearer secret:auth_token".to_owned())));
            assert_eq!(String::from_utf8_lossy(&request.body), r#"{"a":1,"b":2}"#);
            Ok(answer(200, &[], "{}"))
        });
        assert_eq!(begun, json!({"done": {}}));
    }

    #[test]
    fn failures_say_what_happened() {
        for (response, part) in [
            (answer(400, &[], r#"{"message":"no such field"}"#), "status 400: no such field"),
            (answer(404, &[], ""), "is the workflow active"),
            (answer(500, &[], "<html>"), "status 500: <html>"),
            (answer(200, &[("content-type", "application/json")], "{"), "not JSON"),
            (answer(200, &[], r#"{"success":false,"error":"full"}"#), "it failed there: full"),
            (answer(307, &[("location", "https://m.example/webhook/w")], ""), "another server"),
            (answer(307, &[("location", "/webhook/w")], ""), "again and again"),
        ] {
            let begun = begin(json!({}), move |_| Ok(response.clone()));
            assert_eq!(begun["failed"]["error_type"], "ConnectorError", "{part}: {begun}");
            assert!(begun["failed"]["message"].as_str().unwrap_or_default().contains(part), "{part}: {begun}");
        }
        let large = begin(json!({"max_response_bytes": 10}), |_| Ok(answer(200, &[], "\"0123456789\"")));
        assert!(large["failed"]["message"].as_str().unwrap_or_default().contains("more than 10 bytes"), "{large}");
    }

    #[test]
    fn what_was_refused_for_the_moment_is_sent_again_and_nothing_else() {
        let again = begin(json!({}), |_| Ok(answer(429, &[("retry-after", "7")], "")));
        assert_eq!((&again["again"]["after_ms"], &again["again"]["state"]["tries"]), (&json!(7000), &json!(1)));
        let state = again["again"]["state"].clone();
        let arguments = json!({"job": "j", "settings": {"webhook_url": "https://n.example/w"}, "state": state});
        let ran = Surroundings::new()
            .store()
            .http(|request| {
                assert_eq!(String::from_utf8_lossy(&request.body), r#"{"a":1}"#);
                Ok(answer(200, &[], r#"{"ok":1}"#))
            })
            .run(|| PLUGIN.call_tool("poll", arguments));
        assert_eq!(ran.result, Ok(json!({"done": {"ok": 1}})));
        for status in [500, 502, 503] {
            let failed = begin(json!({}), move |_| Ok(answer(status, &[], "")));
            assert!(failed["failed"].is_object(), "{status}: {failed}");
        }
    }

    #[test]
    fn it_is_shut_off_after_failures_in_a_row() {
        let settings = json!({"webhook_url": "https://n.example/w", "quarantine_after": 2});
        let begin = |job: &str| json!({ "job": job, "settings": settings, "arguments": {} });
        let mut asked = 0;
        let ran = Surroundings::new()
            .store()
            .http(move |_| {
                asked += 1;
                assert!(asked < 4, "a request went out");
                Ok(answer(if asked == 3 { 200 } else { 400 }, &[], "{}"))
            })
            .run(|| {
                let kind =
                    |job: &str| PLUGIN.call_tool("begin", begin(job)).map(|step| step["failed"]["error_type"].clone());
                assert_eq!(kind("1"), Ok(json!("ConnectorError")));
                assert_eq!(kind("2"), Ok(json!("ConnectorError")));
                assert_eq!(kind("3"), Ok(json!("Quarantined")));
                PLUGIN.call_tool("release", json!({}))?;
                PLUGIN.call_tool("begin", begin("4"))
            });
        assert_eq!(ran.result, Ok(json!({"done": {}})));
        assert!(ran.kv.is_empty(), "{:?}", ran.kv);
    }
}
