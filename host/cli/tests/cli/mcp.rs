//! `hotcell mcp`: agents as tools of a Model Context Protocol server, over standard input and output and over HTTP.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use hotcell_journal::RunStatus;
use serde_json::{Value, json};

use crate::desk::Desk;

const ASKS: &str = r#"name: greeter
description: Greets whom you name.
start: ask
nodes:
  ask: { type: input, question: "Who is {{initial_prompt}}?", state_updates: { who: "{{input}}" }, next: done }
  done: { type: end, output: "Hello {{initial_prompt}}, {{who}}" }
"#;

struct Client {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    number: u64,
}

impl Client {
    fn start(desk: &Desk, folder: &str) -> Self {
        let mut child = desk
            .hotcell(&["mcp", folder])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut client = Client { child, input, output, number: 0 };
        let hello = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": { "elicitation": {} },
            "clientInfo": { "name": "test", "version": "1" },
        });
        let server = client.request("initialize", hello, "");
        assert_eq!(server["result"]["serverInfo"]["name"], "hotcell");
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
        self.input.flush().unwrap();
    }

    fn read(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: `{line}`"))
    }

    /// The answer to a request; questions on the way get `answer`, or are declined if that is empty.
    fn request(&mut self, method: &str, parameters: Value, answer: &str) -> Value {
        self.number += 1;
        let number = self.number;
        self.send(&json!({ "jsonrpc": "2.0", "id": number, "method": method, "params": parameters }));
        loop {
            let message = self.read();
            if message["method"] == "elicitation/create" {
                let result = match answer {
                    "" => json!({ "action": "decline" }),
                    answer => json!({ "action": "accept", "content": { "answer": answer } }),
                };
                self.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }));
            } else if message["id"] == number {
                return message;
            }
        }
    }

    fn call(&mut self, tool: &str, answer: &str) -> Value {
        self.request("tools/call", json!({ "name": tool, "arguments": { "prompt": "Ada" } }), answer)
    }

    fn tools(&mut self) -> Vec<String> {
        let listed = self.request("tools/list", json!({}), "");
        let tools = listed["result"]["tools"].as_array().unwrap().clone();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn agents_are_tools_and_their_questions_reach_the_client() {
    let desk = Desk::new();
    desk.write("greet/graph.yaml", ASKS);
    let mut client = Client::start(&desk, ".");
    assert_eq!(client.tools(), ["greeter"], "by its own name");
    let answered = client.call("greeter", "a mathematician");
    assert_eq!(answered["result"]["content"][0]["text"], "Hello Ada, a mathematician");
    let declined = client.call("greeter", "");
    assert_eq!(declined["result"]["isError"], true);
    let text = declined["result"]["content"][0]["text"].as_str().unwrap();
    let run = desk.runs()[0].id.clone();
    assert!(text.contains(&format!("`hotcell runs answer {run} '...' --resume`: Who is Ada?")), "{text}");
    // A model can correct what it did wrong, and only what a tool says reaches it.
    let wrong = client.request("tools/call", json!({ "name": "greeter", "arguments": {} }), "");
    assert_eq!(wrong["result"]["isError"], true, "{wrong}");
    assert!(wrong["result"]["content"][0]["text"].as_str().unwrap().contains("prompt"), "{wrong}");
}

/// What a client is told of a tool comes from its description and from what is granted to it, and a model is told nothing that
/// only the operator can do.
#[test]
fn tools_of_plugins_say_whether_they_change_anything() {
    let desk = Desk::new();
    let plugin = |name: &str, asks: Value| {
        let description = json!({
            "contract": "0.2.0", "name": name,
            "tools": [{ "name": name, "description": "Does what it is told", "parameters": { "type": "object" } }],
            "hooks": [{ "point": "before-skill-load" }], "nodes": [{ "type": "work" }], "connector": { "modes": ["sync"] },
            "capabilities": asks,
        });
        std::fs::create_dir_all(desk.path("plugins")).unwrap();
        let file = desk.path("plugins").join(format!("{name}.wasm"));
        std::fs::write(file, hotcell_plugin_tests::described(&description)).unwrap();
    };
    plugin("plain", json!({ "secret": [{ "name": "K" }] }));
    plugin("keeper", json!({ "kv": true }));
    assert_eq!(desk.output(&["plugin", "grant", "plain", "--nothing", "--yes"]).status.code(), Some(0));
    assert_eq!(desk.output(&["plugin", "grant", "keeper", "--yes"]).status.code(), Some(0));
    let mut client = Client::start(&desk, ".");
    let listed = client.request("tools/list", json!({}), "");
    let tools = listed["result"]["tools"].as_array().unwrap().clone();
    let hints = |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap()["annotations"].clone();
    let plain = json!({ "readOnlyHint": true, "destructiveHint": false, "openWorldHint": false });
    assert_eq!(hints("plain"), plain);
    assert_eq!(hints("keeper"), json!({ "readOnlyHint": false, "openWorldHint": false }));
    let denied = json!({ "name": "plain", "arguments": { "do": "secret", "name": "K" } });
    let denied = client.request("tools/call", denied, "");
    let text = denied["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("`secret` `K`, which is not granted") && !text.contains("hotcell.toml"), "{text}");
}

#[test]
fn attack_64_what_changes_in_the_folder_swaps_whole_or_not_at_all() {
    let desk = Desk::new();
    let says = |word: &str| format!("name: one\nstart: done\nnodes:\n  done: {{ type: end, output: \"{word}\" }}\n");
    desk.write("one/graph.yaml", &says("first"));
    let mut client = Client::start(&desk, ".");
    assert_eq!(client.call("one", "")["result"]["content"][0]["text"], "first");
    // Half a file changes nothing.
    desk.write("one/graph.yaml", "name: one\nstart: done\nnodes: [");
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert_eq!(client.call("one", "")["result"]["content"][0]["text"], "first");
    desk.write("one/graph.yaml", &says("second"));
    desk.write("two/graph.yaml", &says("new"));
    // The second of one name has that of its folder.
    while client.tools() != ["one", "two"] {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(client.call("one", "")["result"]["content"][0]["text"], "second");
    assert_eq!(client.call("two", "")["result"]["content"][0]["text"], "new");
}

/// The server over HTTP, without a client of ours.
struct HttpServer {
    child: Child,
    address: String,
    session: String,
}

impl HttpServer {
    fn start(desk: &Desk) -> Self {
        let mut child = desk.spawn(&["mcp", ".", "--http", "127.0.0.1:0"]);
        let mut told = BufReader::new(child.stderr.take().unwrap());
        let address = loop {
            let mut line = String::new();
            assert_ne!(told.read_line(&mut line).unwrap(), 0, "it ended");
            if let Some((_, rest)) = line.split_once("http://") {
                break rest.split('/').next().unwrap().to_owned();
            }
        };
        std::thread::spawn(move || std::io::copy(&mut told, &mut std::io::sink()));
        let mut server = HttpServer { child, address, session: String::new() };
        let hello = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": { "elicitation": {} },
            "clientInfo": { "name": "test", "version": "1" },
        });
        let said = server.post(&json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }));
        let said = until(said, "serverInfo");
        let session =
            said.lines().find_map(|line| line.to_lowercase().strip_prefix("mcp-session-id: ").map(str::to_owned));
        server.session = session.unwrap_or_else(|| panic!("{said}"));
        server.post(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        server
    }

    fn post(&self, message: &Value) -> TcpStream {
        self.request("POST", &message.to_string())
    }

    fn request(&self, method: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let session = match self.session.as_str() {
            "" => String::new(),
            session => format!("Mcp-Session-Id: {session}\r\n"),
        };
        let (address, length) = (&self.address, body.len());
        write!(
            stream,
            "{method} /mcp HTTP/1.1\r\nHost: {address}\r\nAccept: application/json, text/event-stream\r\n\
             Content-Type: application/json\r\n{session}Content-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        stream
    }

    /// Calls a tool, and gives the connection once a question has come.
    fn asked(&self, tool: &str) -> TcpStream {
        let params = json!({ "name": tool, "arguments": { "prompt": "Ada" } });
        let stream = self.post(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params }));
        until(stream.try_clone().unwrap(), "elicitation/create");
        stream
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads until a text has come.
fn until(mut stream: TcpStream, text: &str) -> String {
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let (mut read, mut buffer) = (String::new(), [0; 4096]);
    while !read.contains(text) {
        let count = stream.read(&mut buffer).unwrap_or_else(|error| panic!("{error}: {read}"));
        assert_ne!(count, 0, "{read}");
        read.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    read
}

/// Waits until the only run is interrupted.
fn interrupted(desk: &Desk) {
    let start = Instant::now();
    while desk.runs()[0].status != RunStatus::Interrupted {
        assert!(start.elapsed() < Duration::from_secs(60), "it is {}", desk.runs()[0].status);
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_client_that_leaves_during_a_question_leaves_a_run_that_can_go_on() {
    let desk = Desk::new();
    desk.write("greet/graph.yaml", ASKS);
    let server = HttpServer::start(&desk);
    drop(server.asked("greeter"));
    interrupted(&desk);
    // The server is still there, and holds nothing of the run.
    let run = desk.only_run();
    let output = desk.output(&["runs", "resume", run.as_str(), "--answer", "a mathematician"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Hello Ada, a mathematician\n");
}

#[test]
fn a_session_that_ends_during_a_question_leaves_a_run_that_can_go_on() {
    let desk = Desk::new();
    desk.write("greet/graph.yaml", ASKS);
    let server = HttpServer::start(&desk);
    let _asked = server.asked("greeter");
    let _ended = server.request("DELETE", "");
    interrupted(&desk);
}

/// A request of the revision without sessions, and the answer to it.
fn latest(address: &str, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} },
    });
    let name = params["name"].as_str().map_or(String::new(), |name| format!("Mcp-Name: {name}\r\n"));
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAccept: application/json, text/event-stream\r\nConnection: close\r\n\
         Content-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{name}\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    let data = reply.lines().filter_map(|line| line.strip_prefix("data: ")).next_back();
    serde_json::from_str(data.unwrap_or_else(|| panic!("{reply}"))).unwrap()
}

/// A plugin whose tool of the same name does what it is told, and says that it answers this.
fn plugin(desk: &Desk, name: &str, returns: Value, asks: Value) {
    let mut tool = json!({ "name": name, "description": "Does what it is told", "parameters": { "type": "object" } });
    if !returns.is_null() {
        tool["returns"] = returns;
    }
    let description = json!({
        "contract": "0.2.0", "name": name, "tools": [tool], "hooks": [{ "point": "before-skill-load" }],
        "nodes": [{ "type": "work" }], "connector": { "modes": ["sync"] }, "capabilities": asks,
    });
    std::fs::create_dir_all(desk.path("plugins")).unwrap();
    std::fs::write(desk.path("plugins").join(format!("{name}.wasm")), hotcell_plugin_tests::described(&description))
        .unwrap();
    assert_eq!(desk.output(&["plugin", "grant", name, "--yes"]).status.code(), Some(0));
}

#[test]
fn what_a_tool_says_that_it_answers_is_its_output_schema() {
    let desk = Desk::new();
    let point = json!({ "type": "object", "properties": { "x": { "type": "integer" } }, "required": ["x"] });
    plugin(&desk, "point", point.clone(), json!({}));
    plugin(&desk, "count", json!({ "type": "integer" }), json!({}));
    plugin(&desk, "plain", Value::Null, json!({}));
    let mut client = Client::start(&desk, ".");
    let listed = client.request("tools/list", json!({}), "");
    let tools = listed["result"]["tools"].as_array().unwrap().clone();
    let schema = |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap()["outputSchema"].clone();
    assert_eq!(schema("point"), point);
    assert_eq!(schema("count")["properties"]["result"]["type"], "integer", "clients know objects alone");
    assert_eq!(schema("plain"), Value::Null);
    let mut says = |name: &str, text: Value| {
        let call = json!({ "name": name, "arguments": { "do": "say", "text": text } });
        client.request("tools/call", call, "")["result"].take()
    };
    assert_eq!(says("point", json!({ "x": 1 }))["structuredContent"], json!({ "x": 1 }));
    let count = says("count", json!(3));
    assert_eq!(
        (count["structuredContent"].clone(), count["content"][0]["text"].clone()),
        (json!({ "result": 3 }), json!("3"))
    );
    for (name, wrong) in [("point", json!({ "x": "far" })), ("point", json!(1)), ("count", json!("many"))] {
        let answer = says(name, wrong);
        assert_eq!(
            (answer["isError"].clone(), answer["structuredContent"].clone()),
            (json!(true), Value::Null),
            "{answer}"
        );
        assert!(
            answer["content"][0]["text"].as_str().unwrap().contains("does not fit the form that it declares"),
            "{answer}"
        );
    }
}

#[test]
fn without_sessions_agents_and_plugins_ask_by_the_result_of_a_call() {
    let desk = Desk::new();
    desk.write("greet/graph.yaml", ASKS);
    plugin(&desk, "asker", Value::Null, json!({ "ask": true }));
    let server = HttpServer::start(&desk);
    for (tool, arguments, expected) in [
        ("greeter", json!({ "prompt": "Ada" }), "Hello Ada, a mathematician"),
        ("asker", json!({ "do": "ask", "text": "Who?" }), "a mathematician"),
    ] {
        let call = |more: Value| {
            let mut params = json!({ "name": tool, "arguments": arguments });
            params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            latest(&server.address, "tools/call", params)
        };
        let asked = call(json!({}))["result"].take();
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        let id = asked["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
        let go_on = |answer: Value| {
            call(json!({ "requestState": asked["requestState"], "inputResponses": { id.clone(): answer } }))
        };
        let text = |reply: &Value| reply["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        let declined = go_on(json!({ "action": "decline" }));
        assert_eq!(declined["result"]["isError"], true, "{declined}");
        let answered = go_on(json!({ "action": "accept", "content": { "answer": "a mathematician" } }));
        assert_eq!(text(&answered), expected, "{answered}");
        let forged = call(json!({ "requestState": "x", "inputResponses": { id.clone(): { "action": "accept" } } }));
        assert_eq!(forged["error"]["code"], -32602, "{forged}");
        let garbage = call(json!({ "requestState": asked["requestState"], "inputResponses": { id.clone(): 1 } }));
        assert_eq!(garbage["error"]["code"], -32602, "{garbage}");
    }
}
