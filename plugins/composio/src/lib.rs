//! Runs an action of Composio for one of its users.

use hotcell_connector::{Connector, Failure, Job, Step, connector, segment, text_of};
use hotcell_plugin::{Json, config, json};

connector!(Composio, ["https://backend.composio.dev"], { api_key: "the API key of Composio" });

struct Composio;

/// Where Composio is.
const SERVER: &str = "https://backend.composio.dev";

impl Connector for Composio {
    fn begin(job: &Job) -> Result<Step, Failure> {
        let server = config::get("base_url").unwrap_or_else(|| SERVER.to_owned());
        let action = segment(job.settings.needed("action")?);
        let url = format!("{}/api/v3.1/tools/execute/{action}", server.trim_end_matches('/'));
        let user = job.settings.text("entity_id").unwrap_or("default");
        let mut body = json!({ "user_id": user, "arguments": job.input });
        for name in ["connected_account_id", "version"] {
            if let Some(value) = job.settings.text(name) {
                body[name] = value.into();
            }
        }
        let key = job.settings.secret(&["api_key"])?.map(|key| ("x-api-key", key));
        let mut answer = job.settings.post_to(&url, key.as_slice(), &body)?.success()?.json()?;
        if answer["successful"] != json!(true) {
            let why = answer.get("error").filter(|error| !error.is_null());
            let why = why.map_or_else(|| "it does not say that it was successful".to_owned(), text_of);
            return Err(Failure::new(format!("the action failed: {why}")));
        }
        Ok(if job.callback.is_some() { Step::Accepted(Json::Null) } else { Step::Done(answer["data"].take()) })
    }
}

#[cfg(test)]
mod tests {
    use hotcell_plugin::http::{Request, Response};
    use hotcell_plugin::testing::Surroundings;
    use hotcell_plugin::{Error, Json, json};

    use super::tools::PLUGIN;

    fn begin(settings: Json, status: u16, body: &'static str) -> (Json, Json) {
        let sent = std::rc::Rc::new(std::cell::RefCell::new(Json::Null));
        let noted = sent.clone();
        let server = move |request: Request| -> Result<Response, Error> {
            let body_of: Json = String::from_utf8_lossy(&request.body).parse().unwrap_or_default();
            *noted.borrow_mut() = json!({ "url": request.url, "body": body_of });
            Ok(Response { status, headers: Vec::new(), body: body.as_bytes().to_vec() })
        };
        let arguments = json!({ "job": "j", "settings": settings, "arguments": { "a": 1 } });
        let ran = Surroundings::new().store().http(server).run(|| PLUGIN.call_tool("begin", arguments));
        let sent = sent.borrow().clone();
        (ran.result.unwrap_or_else(|error| json!({ "error": error.to_string() })), sent)
    }

    #[test]
    fn an_action_is_run_for_a_user() {
        let (done, sent) = begin(json!({"action": "STAR"}), 200, r#"{"data":{"x":1},"error":null,"successful":true}"#);
        assert_eq!(done, json!({"done": {"x": 1}}));
        assert_eq!(sent["url"], "https://backend.composio.dev/api/v3.1/tools/execute/STAR");
        assert_eq!(sent["body"], json!({"user_id": "default", "arguments": {"a": 1}}));
        let settings = json!({"action": "../X", "entity_id": "e", "version": "1", "connected_account_id": "c"});
        let (_, sent) = begin(settings, 200, "{}");
        assert_eq!(sent["url"], "https://backend.composio.dev/api/v3.1/tools/execute/..%2FX");
        assert_eq!(
            sent["body"],
            json!({"user_id": "e", "arguments": {"a": 1}, "version": "1", "connected_account_id": "c"})
        );
    }

    #[test]
    fn what_was_not_successful_failed() {
        for (status, body, part) in [
            (200, r#"{"data":{},"error":"no account","successful":false}"#, "no account"),
            (200, r#"{"data":{}}"#, "does not say"),
            (401, r#"{"error":{"message":"bad key"}}"#, "bad key"),
            (200, "<html>", "not JSON"),
        ] {
            let (failed, _) = begin(json!({"action": "STAR"}), status, body);
            assert!(failed["failed"]["message"].as_str().unwrap_or_default().contains(part), "{part}: {failed}");
        }
    }
}
