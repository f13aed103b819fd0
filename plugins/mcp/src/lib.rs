//! Calls one tool of an MCP server over HTTP.

use hotcell_connector::{Connector, Failure, Job, Step, connector};
use hotcell_plugin::Json;

connector!(Mcp, { auth_token: "the bearer token of the server" });

struct Mcp;

impl Connector for Mcp {
    fn begin(job: &Job) -> Result<Step, Failure> {
        let (url, tool) = (job.settings.needed("url")?, job.settings.needed("tool_name")?);
        let token = job.settings.secret(&["auth_token"])?;
        let result = hotcell_connector::mcp::call(job, url, token.as_deref(), tool)?;
        Ok(if job.callback.is_some() { Step::Accepted(Json::Null) } else { Step::Done(result) })
    }
}

#[cfg(test)]
mod tests {
    use hotcell_plugin::http::{Request, Response};
    use hotcell_plugin::testing::Surroundings;
    use hotcell_plugin::{Error, Json, json};

    use super::tools::PLUGIN;

    /// Calls a tool of a server that gives this result, as an event or as it is.
    fn call(result: Json, is_stream: bool) -> Json {
        let server = move |request: Request| -> Result<Response, Error> {
            let header =
                |name: &str| request.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str());
            let message: Json = String::from_utf8_lossy(&request.body).parse().unwrap_or_default();
            let mut headers = Vec::new();
            let answer = |result: Json| json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string();
            let body = match message["method"].as_str() {
                Some("initialize") => {
                    headers.push(("mcp-session-id".to_owned(), "s".to_owned()));
                    answer(json!({ "protocolVersion": "2025-03-26" }))
                }
                Some("tools/call") => {
                    assert_eq!(header("mcp-protocol-version"), Some("2025-03-26"));
                    assert_eq!(
                        (header("mcp-session-id"), header("authorization")),
                        (Some("s"), Some("Bearer secret:auth_token"))
                    );
                    assert_eq!(message["params"], json!({ "name": "find", "arguments": { "q": 1 } }));
                    answer(result.clone())
                }
                _ => String::new(),
            };
            let kind = if is_stream { "text/event-stream" } else { "application/json" };
            headers.push(("content-type".to_owned(), kind.to_owned()));
            let body = if is_stream { format!("data: {body}\n\n") } else { body };
            Ok(Response { status: 200, headers, body: body.into_bytes() })
        };
        let settings = json!({ "url": "https://m.example/mcp", "tool_name": "find", "secrets": ["auth_token"] });
        let arguments = json!({ "job": "j", "settings": settings, "arguments": { "q": 1 } });
        let ran =
            Surroundings::new().store().secret("auth_token").http(server).run(|| PLUGIN.call_tool("begin", arguments));
        ran.result.unwrap_or_else(|error| json!({ "error": error.to_string() }))
    }

    #[test]
    fn a_tool_is_called_in_a_session() {
        for is_stream in [false, true] {
            assert_eq!(call(json!({"structuredContent": {"shelf": 3}}), is_stream), json!({"done": {"shelf": 3}}));
        }
        let failed = call(json!({"isError": true, "content": [{"text": "division by zero"}]}), false);
        assert!(failed["failed"]["message"].as_str().unwrap_or_default().contains("division by zero"), "{failed}");
    }
}
