//! One call of a tool over the Model Context Protocol (Streamable HTTP).

use hotcell_plugin::{Json, http, json};

use crate::a_job::{Job, Settings};
use crate::failure::Failure;
use crate::rpc::result_of;
use crate::web::Answer;

/// The version of the protocol that is spoken here.
const VERSION: &str = "2025-06-18";
/// The header with the session that a server begins.
const SESSION: &str = "mcp-session-id";

/// Calls a tool with what a job is about, and gives its result: the structured one, or its texts.
///
/// # Errors
/// Why there is none.
pub fn call(job: &Job, url: &str, token: Option<&str>, tool: &str) -> Result<Json, Failure> {
    let mut talk = Talk { settings: &job.settings, url, headers: Vec::new() };
    if let Some(token) = token {
        talk.headers.push(("authorization", format!("Bearer {token}")));
    }
    let about = json!({ "name": "hotcell", "version": env!("CARGO_PKG_VERSION") });
    let params = json!({ "protocolVersion": VERSION, "capabilities": {}, "clientInfo": about });
    let (begun, answer) = talk.request("1", "initialize", params)?;
    if let Some(session) = answer.response.header(SESSION) {
        talk.headers.push((SESSION, session.to_owned()));
    }
    let version = begun["protocolVersion"].as_str().unwrap_or(VERSION);
    talk.headers.push(("mcp-protocol-version", version.to_owned()));
    talk.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?.success()?;
    let called = talk.request("2", "tools/call", json!({ "name": tool, "arguments": job.input }));
    talk.end();
    result(&called?.0)
}

/// What is said to a server.
struct Talk<'a> {
    settings: &'a Settings,
    url: &'a str,
    headers: Vec<(&'static str, String)>,
}

impl Talk<'_> {
    fn send(&self, message: &Json) -> Result<Answer, Failure> {
        let mut request = http::post(self.url).json(message).header("accept", "application/json, text/event-stream");
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        self.settings.send(request)
    }

    fn request(&self, id: &str, method: &str, params: Json) -> Result<(Json, Answer), Failure> {
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let answer = self.send(&message)?.success()?;
        let is_stream = answer.response.header("content-type").is_some_and(|kind| kind.contains("text/event-stream"));
        let said = if is_stream { of_stream(answer.response.text()?, id) } else { Some(answer.json()?) };
        let said = said.ok_or_else(|| Failure::new(format!("its events have no answer to `{method}`")))?;
        Ok((result_of(said, id, method)??, answer))
    }

    /// Ends a session; a server that has none may say what it likes.
    fn end(&self) {
        if self.headers.iter().any(|(name, _)| *name == SESSION) {
            let request = self
                .headers
                .iter()
                .fold(http::Request::new("DELETE", self.url), |request, (name, value)| request.header(*name, value));
            drop(self.settings.send(request));
        }
    }
}

/// The answer to a call among events.
fn of_stream(events: &str, id: &str) -> Option<Json> {
    let events = events.replace("\r\n", "\n");
    events.split("\n\n").find_map(|event| {
        let data: Vec<&str> =
            event.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim_start).collect();
        let message: Json = data.join("\n").parse().ok()?;
        (message["id"] == id).then_some(message)
    })
}

/// What the result of a tool says.
fn result(result: &Json) -> Result<Json, Failure> {
    let parts = result["content"].as_array().into_iter().flatten();
    let texts: Vec<&str> = parts.filter_map(|part| part["text"].as_str()).collect();
    let text = texts.join("\n");
    if result["isError"] == json!(true) {
        return Err(Failure::new(format!("its tool failed: {text}")));
    }
    Ok(match result.get("structuredContent").filter(|value| !value.is_null()) {
        Some(value) => value.clone(),
        None => json!({ "text": text }),
    })
}

#[cfg(test)]
mod tests {
    use hotcell_plugin::json;

    use super::{of_stream, result};

    #[test]
    fn answers_are_found_among_events() {
        let events =
            "event: message\r\ndata: {\"id\":\"1\"}\r\n\r\n: ping\n\ndata: {\"id\":\"2\",\ndata: \"result\":{}}\n\n";
        assert_eq!(of_stream(events, "2"), Some(json!({"id": "2", "result": {}})));
        assert_eq!(of_stream(events, "3"), None);
        assert_eq!(of_stream("data: {", "2"), None);
    }

    #[test]
    fn results_of_tools() {
        let texts =
            json!({"content": [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]});
        assert_eq!(result(&texts), Ok(json!({"text": "a\nb"})));
        assert_eq!(result(&json!({"content": [], "structuredContent": {"x": 1}})), Ok(json!({"x": 1})));
        let failed = result(&json!({"isError": true, "content": [{"text": "no"}]}));
        assert!(failed.is_err_and(|failure| failure.message.ends_with("no")));
    }
}
