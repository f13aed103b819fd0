//! What the tests share: settings for the servers that they start, and a record of what servers made known.

pub(crate) mod workshop;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use hotcell_loopback::mcp::Taken;
use hotcell_mcp::{
    ClientEvents, Elicited, Limits, LogLevel, McpError, Progress, Server, ServerSettings, TlsFiles, ToolInfo,
    ToolReply, Transport, Unattended,
};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use url::Url;

/// How long something may take that takes no time; only a hang takes longer, however slow the machine is.
pub(crate) const SECONDS: Duration = Duration::from_secs(60);

/// The settings of a program.
pub(crate) fn program(command: &str, args: &[&str]) -> ServerSettings {
    let transport = Transport::Stdio {
        command: command.to_owned(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env: BTreeMap::new(),
        cwd: None,
    };
    ServerSettings { name: "stranger".to_owned(), transport, limits: Limits { connect: SECONDS, ..Limits::default() } }
}

/// The settings of the server that misbehaves on request.
pub(crate) fn stranger(mode: &str) -> ServerSettings {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/stranger.py");
    program("python3", &[&script.to_string_lossy(), mode])
}

/// The settings of the example that serves over standard input and output.
pub(crate) fn example() -> ServerSettings {
    let test = std::env::current_exe().expect("a path");
    let folder = test.parent().and_then(Path::parent).expect("a folder");
    let file = folder.join("examples/conformance_server");
    assert!(file.exists(), "{} is missing; run cargo build -p hotcell-mcp --examples", file.display());
    program(&file.to_string_lossy(), &["stdio"])
}

/// The settings of a server over Streamable HTTP.
pub(crate) fn streamable(url: &str) -> ServerSettings {
    let url = Url::parse(url).expect("a URL");
    let transport = Transport::StreamableHttp { url, headers: BTreeMap::new(), tls: TlsFiles::default() };
    ServerSettings { name: "remote".to_owned(), transport, limits: Limits { connect: SECONDS, ..Limits::default() } }
}

/// The settings of a server over server-sent events.
pub(crate) fn events(url: &str) -> ServerSettings {
    let url = Url::parse(url).expect("a URL");
    let transport = Transport::Sse { url, headers: BTreeMap::new(), tls: TlsFiles::default() };
    ServerSettings { transport, ..streamable("http://localhost/") }
}

/// Where the servers of others are installed.
pub(crate) fn installed(path: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/mcp-servers").join(path);
    assert!(path.exists(), "{} is missing; run host/mcp/tests/real-servers/install.sh", path.display());
    path
}

/// Remembers what servers made known, and answers their questions.
#[derive(Default)]
pub(crate) struct Record {
    pub(crate) answer: Mutex<Option<Elicited>>,
    pub(crate) questions: Mutex<Vec<(String, Value)>>,
    pub(crate) logs: Mutex<Vec<(LogLevel, String)>>,
    pub(crate) progress: Mutex<Vec<(String, Progress)>>,
    pub(crate) changes: Mutex<Vec<Vec<String>>>,
}

impl Record {
    pub(crate) fn answering(answer: Elicited) -> Arc<Self> {
        Arc::new(Record { answer: Mutex::new(Some(answer)), ..Record::default() })
    }
}

#[async_trait]
impl ClientEvents for Record {
    async fn elicit(&self, _server: &str, message: &str, schema: &Value) -> Elicited {
        self.questions.lock().expect("unpoisoned").push((message.to_owned(), schema.clone()));
        let answer = self.answer.lock().expect("unpoisoned").clone();
        match answer {
            Some(answer) => answer,
            None => std::future::pending().await,
        }
    }

    fn log(&self, _server: &str, level: LogLevel, text: &str) {
        self.logs.lock().expect("unpoisoned").push((level, text.to_owned()));
    }

    fn tools_changed(&self, _server: &str, tools: &[ToolInfo]) {
        self.changes.lock().expect("unpoisoned").push(tools.iter().map(|tool| tool.name.clone()).collect());
    }

    fn progress(&self, _server: &str, tool: &str, progress: &Progress) {
        self.progress.lock().expect("unpoisoned").push((tool.to_owned(), progress.clone()));
    }
}

/// The fields of a JSON object.
pub(crate) fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        other => panic!("{other} is not an object"),
    }
}

/// Calls a tool within a time.
pub(crate) async fn call_within(
    server: &Server,
    tool: &str,
    arguments: Value,
    timeout: Duration,
) -> Result<ToolReply, McpError> {
    server.call(tool, fields(arguments), timeout, &CancellationToken::new()).await
}

/// Calls a tool.
pub(crate) async fn call(server: &Server, tool: &str, arguments: Value) -> Result<ToolReply, McpError> {
    call_within(server, tool, arguments, SECONDS).await
}

/// Connects to the server that misbehaves on request.
pub(crate) async fn connect_stranger(mode: &str) -> Server {
    Server::connect(stranger(mode), Arc::new(Unattended)).await.expect("connected")
}

/// Waits until the server was told of so many cancelled calls.
pub(crate) async fn told_of_cancelled(server: &Server, calls: usize) {
    for _ in 0..3_000 {
        let reply = call(server, "cancelled", json!({})).await.expect("a reply");
        let told: Vec<Value> = serde_json::from_str(&reply.text).expect("a list");
        if told.len() == calls {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the server was not told of {calls} cancelled calls");
}

/// Waits until something holds, at most for a minute.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..3_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{what} did not happen");
}

/// Whether a process exists.
pub(crate) fn alive(id: u64) -> bool {
    match std::fs::read_to_string(format!("/proc/{id}/stat")) {
        // A process that nobody has collected yet is not alive.
        Ok(stat) => !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z'),
        Err(_) => false,
    }
}

/// A server by hand: its address and the first request of every connection.
pub(crate) async fn listen() -> (String, mpsc::Receiver<Taken>) {
    let (address, requests) = hotcell_loopback::mcp::listen().await.expect("a port");
    (format!("http://{address}"), requests)
}

/// Why a server cannot be used.
pub(crate) async fn error_of(settings: ServerSettings) -> String {
    Server::connect(settings, Arc::new(Unattended)).await.expect_err("refused").to_string()
}
