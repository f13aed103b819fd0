//! Hostile servers on this machine, which an agent was granted: of tools, of a model, or for a script with a secret.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hotcell_harness::{HostileServer, Reply, Serves, Stranger, Then};
use hotcell_runtime::Host;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

use super::Tried;
use super::ground::Ground;

/// Of a request so much is read.
const LONGEST_REQUEST: u64 = 1 << 20;
/// How long a server waits between two pieces that it sends slowly.
const SLOWLY: Duration = Duration::from_millis(100);
/// What an agent with a server of tools asks it for.
const WITH_TOOLS: &str = "name: x\nversion: \"1.0\"\nstart: a\ninitial_state: { answer: none }\nmcp_servers: [s]\nnodes:\n  a: { type: llm, prompt: x, tools: [\"mcp:s\"], timeout: 5, state_updates: { answer: \"{{output}}\" }, next: done }\n  done: { type: end, output: \"{{answer}}\" }\n";
const WITH_MODEL: &str = "name: x\nversion: \"1.0\"\nstart: a\ninitial_state: { answer: none }\nnodes:\n  a: { type: llm, prompt: x, timeout: 5, state_updates: { answer: \"{{output}}\" }, next: done }\n  done: { type: end, output: \"{{answer}}\" }\n";
const WITH_SCRIPT: &str = "name: x\nversion: \"1.0\"\nstart: a\ninitial_state: { answer: none }\nnodes:\n  a: { type: script, script: a.sh, timeout: 5, state_updates: { answer: \"{{output}}\" }, next: done }\n  done: { type: end, output: \"{{answer}}\" }\n";
const SCRIPT: &str = "curl -isSL -H \"Authorization: $SECRET\" \"$BASE/\" 2>&1\n";

/// Starts the server and has an agent use it.
pub(super) async fn attempt(host: &Host, attack: &Stranger<HostileServer>) -> Tried {
    let work = async {
        let server = Running::start(Arc::new(attack.brings.clone())).await?;
        // Only a server of tools needs a model that means well.
        let model = Running::start(Arc::new(HostileServer { serves: Serves::Model, replies: [].into() })).await?;
        let model_url = if attack.brings.serves == Serves::Model { &server.url } else { &model.url };
        let key = super::ground::KEY;
        let ground = Ground::new(
            host,
            &[
                ("HOTCELL_MODEL", "test:small"),
                ("HOTCELL_MODEL_URL", model_url),
                ("HOTCELL_MODEL_KEY", key),
                ("HOTCELL_SECRET_SECRET", key),
                ("BASE", &server.url),
            ],
        )?;
        let url = &server.url;
        match attack.brings.serves {
            Serves::Model => ground.write("agent/graph.yaml", WITH_MODEL)?,
            Serves::Tools => {
                ground.write("agent/graph.yaml", WITH_TOOLS)?;
                let servers =
                    json!({ "mcpServers": { "s": { "url": url, "headers": { "Authorization": "${KEY}" } } } });
                ground.write("agent/mcp.json", &servers.to_string())?;
                ground.write("agent/hotcell.toml", &format!("[grants.'mcp:s']\nhttp = ['{url}']\nenv = ['KEY']\n"))?;
                ground.trust("agent")?;
            }
            Serves::Script => {
                ground.write("agent/graph.yaml", WITH_SCRIPT)?;
                ground.write("agent/a.sh", SCRIPT)?;
                let secret = format!("{{ name = 'SECRET', servers = ['{url}'] }}");
                ground.write(
                    "agent/hotcell.toml",
                    &format!("[grants.'a.sh']\nhttp = ['{url}']\nenv = ['BASE']\nsecret = [{secret}]\n"),
                )?;
                ground.trust("agent")?;
            }
        }
        let mut said = ground.run("agent", None).await;
        let told = model.told();
        if !told.is_empty() {
            said.push_str(&format!("\nthe model was told: {told}"));
        }
        ground.held(said)
    };
    Tried::of(attack, work).await
}

/// A server, until it is dropped.
struct Running {
    url: String,
    /// The last thing that a model was told by a tool
    told: Arc<Mutex<String>>,
    _accepting: AbortOnDropHandle<()>,
}

impl Running {
    async fn start(server: Arc<HostileServer>) -> Result<Self, String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|error| error.to_string())?;
        let url = format!("http://{}", listener.local_addr().map_err(|error| error.to_string())?);
        let told: Arc<Mutex<String>> = Arc::default();
        let heard = told.clone();
        let accepting = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (server, heard) = (server.clone(), heard.clone());
                connections.spawn(async move {
                    // Who has heard enough is gone, which is what is wanted.
                    let _ = answer(stream, &server, &heard).await;
                });
            }
        });
        Ok(Running { url, told, _accepting: AbortOnDropHandle::new(accepting) })
    }

    fn told(&self) -> String {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Answers one request.
async fn answer(stream: TcpStream, server: &HostileServer, heard: &Mutex<String>) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut authorization = String::new();
    let mut length = 0;
    let mut reading = (&mut stream).take(LONGEST_REQUEST);
    loop {
        let mut line = String::new();
        if reading.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        let Some((name, value)) = line.trim_end().split_once(':') else {
            if line.trim_end().is_empty() {
                break;
            }
            continue;
        };
        match name.to_ascii_lowercase().as_str() {
            "authorization" => value.trim().clone_into(&mut authorization),
            "content-length" => length = value.trim().parse().unwrap_or(0),
            _ => {}
        }
    }
    let mut body = vec![0; length.min(LONGEST_REQUEST as usize)];
    stream.read_exact(&mut body).await?;
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let method = request["method"].as_str().unwrap_or_default();
    let reply = server.replies.get(method).or_else(|| server.replies.get("*"));
    let Some(Reply { send, then }) = reply else {
        let text = match server.serves {
            Serves::Tools => well_behaved_tools(method, &request["id"]),
            Serves::Model => well_behaved_model(&request, heard),
            Serves::Script => json!({}),
        };
        return stream.get_mut().write_all(http(&text).as_bytes()).await;
    };
    let hex: String = authorization.bytes().map(|byte| format!("{byte:02x}")).collect();
    let percent: String = authorization.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let numbers = authorization.bytes().map(|byte| byte.to_string()).collect::<Vec<_>>().join(", ");
    let wide: String = authorization.chars().flat_map(|character| [character, '\0']).collect();
    let first = send
        .written_out()
        .replace("%id", &request["id"].to_string())
        .replace("%authorization", &authorization)
        .replace("%hex", &hex)
        .replace("%percent", &percent)
        .replace("%numbers", &numbers)
        .replace("%wide", &wide)
        .replace("%capitals", &authorization.to_uppercase());
    go_on(stream.get_mut(), &first, then).await
}

/// Sends the beginning of a message, and what follows.
pub(super) async fn go_on(stream: &mut (impl AsyncWrite + Unpin), first: &str, then: &Then) -> std::io::Result<()> {
    stream.write_all(first.as_bytes()).await?;
    let (piece, pause) = match then {
        Then::Close => return Ok(()),
        Then::Silence => return std::future::pending().await,
        Then::Forever(text) => (text.repeat((64 << 10) / text.len().max(1)), Duration::ZERO),
        Then::Slowly(text) => (text.clone(), SLOWLY),
    };
    loop {
        stream.write_all(piece.as_bytes()).await?;
        tokio::time::sleep(pause).await;
    }
}

fn http(body: &Value) -> String {
    let body = match body {
        Value::Null => String::new(),
        body => body.to_string(),
    };
    let status = if body.is_empty() { "202 Accepted" } else { "200 OK" };
    format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// What a server of tools says that means well.
fn well_behaved_tools(method: &str, id: &Value) -> Value {
    let result = match method {
        "initialize" => {
            let about = json!({ "name": "s", "version": "1" });
            json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} }, "serverInfo": about })
        }
        "tools/list" => json!({ "tools": [{ "name": "look", "inputSchema": { "type": "object" } }] }),
        "tools/call" => json!({ "content": [{ "type": "text", "text": "seen" }] }),
        _ => return Value::Null,
    };
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// What a model says that means well: it calls the first tool that it is offered, and is content with what it gives.
fn well_behaved_model(request: &Value, heard: &Mutex<String>) -> Value {
    let last = request["messages"].as_array().and_then(|messages| messages.last()).cloned().unwrap_or_default();
    let message = match (&last["role"], &request["tools"][0]["function"]["name"]) {
        (role, _) if role == "tool" => {
            *heard.lock().unwrap_or_else(PoisonError::into_inner) =
                last["content"].as_str().map_or_else(|| last["content"].to_string(), str::to_owned);
            json!({ "role": "assistant", "content": "done" })
        }
        (_, Value::String(tool)) => {
            let call = json!({ "name": tool, "arguments": "{}" });
            json!({ "role": "assistant", "tool_calls": [{ "id": "1", "type": "function", "function": call }] })
        }
        _ => json!({ "role": "assistant", "content": "done" }),
    };
    let choices = json!([{ "index": 0, "message": message, "finish_reason": "stop" }]);
    json!({ "id": "x", "object": "chat.completion", "created": 1, "model": "small", "choices": choices })
}
