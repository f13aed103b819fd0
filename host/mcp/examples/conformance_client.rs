//! Does what the client scenarios of the official conformance suite ask for, as far as they are about tools:
//! `npx @modelcontextprotocol/conformance client --command target/debug/examples/conformance_client --scenario tools_call`.
//! The suite appends the server's address and names the scenario in `MCP_CONFORMANCE_SCENARIO`.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hotcell_mcp::{ClientEvents, Elicited, Limits, Server, ServerSettings, TlsFiles, Transport};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use url::Url;

/// Accepts every question and fills in nothing, so that the defaults count.
struct Accepting;

#[async_trait]
impl ClientEvents for Accepting {
    async fn elicit(&self, _server: &str, _message: &str, _schema: &Value) -> Elicited {
        Elicited::Accept(Value::Object(Map::new()))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().next_back().unwrap_or_default();
    let transport =
        Transport::StreamableHttp { url: Url::parse(&address)?, headers: BTreeMap::new(), tls: TlsFiles::default() };
    let settings = ServerSettings { name: "suite".to_owned(), transport, limits: Limits::default() };
    let server = Server::connect(settings, Arc::new(Accepting)).await?;
    let arguments = match std::env::var("MCP_CONFORMANCE_SCENARIO").as_deref() {
        Ok("tools_call") => json!({ "a": 5, "b": 3 }),
        _ => json!({}),
    };
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    for tool in server.tools().iter() {
        server.call(&tool.name, arguments.clone(), Duration::from_secs(20), &CancellationToken::new()).await?;
    }
    server.close().await;
    Ok(())
}
