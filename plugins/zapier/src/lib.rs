//! Runs an action of Zapier, over the Model Context Protocol.

use hotcell_connector::{Connector, Failure, Job, Step, connector};
use hotcell_plugin::{Json, config};

connector!(Zapier, ["https://mcp.zapier.com"], { mcp_key: "the key of the MCP server" });

struct Zapier;

/// Where Zapier is.
const SERVER: &str = "https://mcp.zapier.com";
/// Where its servers are reached.
const PATH: &str = "/api/v1/connect";

impl Connector for Zapier {
    fn begin(job: &Job) -> Result<Step, Failure> {
        let names: Vec<&str> = ["connection", "action"].iter().filter_map(|name| job.settings.text(name)).collect();
        if names.is_empty() {
            return Err(Failure::new("neither `connection` nor `action` is set"));
        }
        let usual = || {
            let server = config::get("base_url").unwrap_or_else(|| SERVER.to_owned());
            format!("{}{PATH}", server.trim_end_matches('/'))
        };
        let url = job.settings.text("mcp_endpoint").map_or_else(usual, str::to_owned);
        let token = job.settings.secret(&["mcp_key"])?;
        let result = hotcell_connector::mcp::call(job, &url, token.as_deref(), &names.join("_"))?;
        Ok(if job.callback.is_some() { Step::Accepted(Json::Null) } else { Step::Done(result) })
    }
}

#[cfg(test)]
mod tests {
    use hotcell_plugin::http::{Request, Response};
    use hotcell_plugin::testing::Surroundings;
    use hotcell_plugin::{Error, Json, json};

    use super::tools::PLUGIN;

    #[test]
    fn the_tool_is_named_by_connection_and_action() {
        for (connection, action, tool) in
            [("airtable", "add", "airtable_add"), ("", "add", "add"), ("airtable", "", "airtable")]
        {
            let server = move |request: Request| -> Result<Response, Error> {
                assert_eq!(request.url, "https://mcp.zapier.com/api/v1/connect");
                let message: Json = String::from_utf8_lossy(&request.body).parse().unwrap_or_default();
                if message["method"] == "tools/call" {
                    assert_eq!(message["params"]["name"], tool);
                }
                let answer = json!({ "id": message["id"], "result": { "structuredContent": { "row": 17 } } });
                Ok(Response { status: 200, headers: Vec::new(), body: answer.to_string().into_bytes() })
            };
            let settings = json!({ "connection": connection, "action": action });
            let arguments = json!({ "job": "j", "settings": settings, "arguments": {} });
            let ran = Surroundings::new().store().http(server).run(|| PLUGIN.call_tool("begin", arguments));
            assert_eq!(ran.result, Ok(json!({"done": {"row": 17}})), "{tool}");
        }
    }
}
