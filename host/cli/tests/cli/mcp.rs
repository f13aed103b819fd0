//! `hotcell mcp`: agents as tools of a Model Context Protocol server, over standard input and output.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

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
    assert_eq!(client.tools(), ["greet"]);
    let answered = client.call("greet", "a mathematician");
    assert_eq!(answered["result"]["content"][0]["text"], "Hello Ada, a mathematician");
    let declined = client.call("greet", "");
    assert_eq!(declined["result"]["isError"], true);
    assert!(declined["result"]["content"][0]["text"].as_str().unwrap().contains("waits for a person"), "{declined}");
    let wrong = client.request("tools/call", json!({ "name": "greet", "arguments": {} }), "");
    assert!(wrong["error"]["message"].as_str().unwrap().contains("prompt"), "{wrong}");
}

#[test]
fn attack_64_what_changes_in_the_folder_swaps_whole_or_not_at_all() {
    let desk = Desk::new();
    let says = |word: &str| format!("name: x\nstart: done\nnodes:\n  done: {{ type: end, output: \"{word}\" }}\n");
    desk.write("one/graph.yaml", &says("first"));
    let mut client = Client::start(&desk, ".");
    assert_eq!(client.call("one", "")["result"]["content"][0]["text"], "first");
    // Half a file changes nothing.
    desk.write("one/graph.yaml", "name: x\nstart: done\nnodes: [");
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert_eq!(client.call("one", "")["result"]["content"][0]["text"], "first");
    desk.write("one/graph.yaml", &says("second"));
    desk.write("two/graph.yaml", &says("new"));
    while client.tools() != ["one", "two"] {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(client.call("one", "")["result"]["content"][0]["text"], "second");
    assert_eq!(client.call("two", "")["result"]["content"][0]["text"], "new");
}
