//! Any bytes as JSON-RPC of the Model Context Protocol: as a message of a server that is used, and as lines of a client that is served.
//! No answer is lost without a word; and whoever is served hears nothing but messages, and is left when it says nothing more.
#![no_main]

use std::io::Cursor;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use hotcell_mcp::{CallContext, Called, Calling, Catalog, CatalogError, Client, Identity, OfferedTool, serve_pipe};
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value};
use tokio::io::AsyncReadExt;
use tokio::runtime::{Builder, Runtime};

#[allow(dead_code, reason = "the client uses more of it")]
#[path = "../../../host/mcp/src/client/message.rs"]
mod message;

use message::{Decoded, decode};

/// What a client begins with.
const HANDSHAKE: &[u8] = br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"f","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
"#;
/// How long it may take until a client that says nothing more is left.
const PATIENCE: Duration = Duration::from_secs(20);

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().enable_all().build().expect("no runtime"));

/// One tool that says again what it is told.
struct Tools;

impl Catalog for Tools {
    fn tools(&self, _: &Client) -> Vec<OfferedTool> {
        vec![OfferedTool {
            name: "echo".to_owned(),
            title: None,
            description: "Echoes".to_owned(),
            input_schema: Map::from_iter([("type".to_owned(), Value::from("object"))]),
            output_schema: None,
            read_only: true,
            open_world: false,
        }]
    }

    fn call<'a>(&'a self, _: &'a str, arguments: Map<String, Value>, _: CallContext) -> Calling<'a> {
        Box::pin(async move {
            match arguments.is_empty() {
                true => Err(CatalogError::InvalidArguments("it has no arguments".to_owned())),
                false => Ok(Called::text(Value::Object(arguments).to_string()).into()),
            }
        })
    }
}

fn of_a_server(bytes: &[u8]) {
    let is_message = matches!(decode(bytes), Decoded::Message(message) if serde_json::to_vec(&message).is_ok());
    let Ok(Value::Object(fields)) = serde_json::from_slice(bytes) else { return };
    let answers = !fields.contains_key("method") && (fields.contains_key("result") || fields.contains_key("error"));
    let is_awaited = answers && fields.get("id").is_some_and(Value::is_string);
    assert!(is_message || !is_awaited, "whoever waits for it is not told");
}

async fn of_a_client(said: Vec<u8>) {
    let (mut near, far) = tokio::io::duplex(1 << 20);
    let identity = Identity { name: "fuzz".to_owned(), version: "1".to_owned() };
    let serving = serve_pipe(Arc::new(Tools), identity, Cursor::new(said), far, Default::default());
    let mut heard = Vec::new();
    let both = async { tokio::join!(serving, near.read_to_end(&mut heard)) };
    let (served, read) = tokio::time::timeout(PATIENCE, both).await.expect("it is not left");
    read.expect("it hears nothing");
    if let Err(error) = served {
        let text = error.to_string();
        assert!(!text.chars().any(char::is_control), "{text:?}");
    }
    for line in heard.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let message: Value = serde_json::from_slice(line).expect("it is not JSON");
        assert_eq!(message["jsonrpc"], "2.0", "{message}");
    }
}

fuzz_target!(|bytes: &[u8]| {
    of_a_server(bytes);
    let (first, rest) = bytes.split_first().map_or((0, bytes), |(first, rest)| (*first, rest));
    let begun: &[u8] = if first % 2 == 0 { HANDSHAKE } else { b"" };
    RUNTIME.block_on(of_a_client([begun, rest].concat()));
});
