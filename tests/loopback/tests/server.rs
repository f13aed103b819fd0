//! The scripted server, over real HTTP.

use std::{
    io::{Read, Write},
    net::TcpStream,
    thread,
    time::Duration,
};

use hotcell_loopback::{Loopback, Script};
use serde_json::{Value, json};

fn start(replies: Value) -> Loopback {
    Loopback::start(Script::from_json(&replies).expect("a script")).expect("a server")
}

/// Sends one request and gives status and body.
fn post(server: &Loopback, path: &str, body: &str) -> (u16, String) {
    let url = server.base_url();
    let address = url.trim_start_matches("http://").trim_end_matches("/v1");
    let mut stream = TcpStream::connect(address).expect("a connection");
    let length = body.len();
    write!(stream, "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
        .expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split_whitespace().nth(1).and_then(|status| status.parse().ok()).expect("a status");
    (status, body.to_owned())
}

fn chat(server: &Loopback, request: &Value) -> (u16, Value) {
    let (status, body) = post(server, "/v1/chat/completions", &request.to_string());
    (status, serde_json::from_str(&body).expect("JSON"))
}

fn request(text: &str) -> Value {
    json!({"model": "m", "messages": [{"role": "user", "content": text}]})
}

fn content(answer: &Value) -> &str {
    answer["choices"][0]["message"]["content"].as_str().expect("content")
}

#[test]
fn replies_come_in_order_and_reserved_ones_wait_for_their_request() {
    let server = start(json!([
        {"content": "for b", "when": "bee"},
        {"content": "first"},
        {"content": "for b again", "when": "bee"},
        {"content": "second"},
    ]));
    for (asked, expected) in [("ant", "first"), ("a bee", "for b"), ("bee bee", "for b again"), ("bee", "second")] {
        assert_eq!(content(&chat(&server, &request(asked)).1), expected);
    }
    assert!(server.unserved().is_empty() && server.unexpected().is_empty());
}

#[test]
fn what_is_left_over_is_known() {
    let server = start(json!([{"content": "only"}, {"content": "kept", "when": "never"}]));
    chat(&server, &request("a"));
    let (status, answer) = chat(&server, &request("b"));
    assert_eq!(status, 500);
    assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains("no scripted reply is left")));
    assert_eq!(server.requests().len(), 2);
    let unexpected = server.unexpected();
    assert_eq!(unexpected.len(), 1);
    assert_eq!(unexpected[0].messages[0].content, "b");
    assert_eq!(server.unserved(), [json!({"content": "kept", "when": "never"})]);
}

#[test]
fn failures_have_a_status_and_a_message() {
    let server = start(json!([{"status": 503}, {"status": 429, "error": "slow"}, {"error": "Connection reset"}]));
    for (status, message) in [(503, "Service Unavailable"), (429, "slow"), (502, "Connection reset")] {
        let answer = chat(&server, &request("a"));
        assert_eq!((answer.0, answer.1["error"]["message"].as_str()), (status, Some(message)));
    }
}

#[test]
fn arguments_are_handed_over_as_they_are() {
    let server = start(json!([
        {"tool_calls": [
            {"name": "t", "arguments": {"b": 1, "a": 2}},
            {"name": "t", "arguments": "{broken"},
            {"name": "t", "arguments": {"$text": "hello"}},
            {"name": "t"},
        ]},
        {"tool_calls": [{"name": "other", "arguments": {"$text": "hello"}}]},
    ]));
    let mut asked = request("a");
    asked["tools"] = json!([{"type": "function", "function": {"name": "t", "description": "d", "parameters": {
        "type": "object", "properties": {"goal": {"type": "string"}, "note": {"type": "string"}}, "required": ["goal"],
    }}}]);
    let (_, answer) = chat(&server, &asked);
    let calls = answer["choices"][0]["message"]["tool_calls"].as_array().expect("calls");
    let arguments: Vec<&str> = calls.iter().filter_map(|call| call["function"]["arguments"].as_str()).collect();
    assert_eq!(arguments, [r#"{"b":1,"a":2}"#, "{broken", r#"{"goal":"hello"}"#, "{}"]);
    assert_eq!(answer["choices"][0]["finish_reason"], "tool_calls");
    assert!(server.problems().is_empty());
    assert_eq!(chat(&server, &asked).0, 500);
    assert!(server.problems()[0].contains("`other`"), "{:?}", server.problems());
}

#[test]
fn outputs_are_handed_in_by_call_or_as_text() {
    let tool = |name: &str, property: &str| json!({"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {property: {}}}}});
    let cases = [
        (json!([]), None),
        (json!([tool("submit", "x")]), Some("submit")),
        (json!([tool("submit", "y")]), None),
        (json!([tool("mine", "x")]), None),
        (json!([tool("mine", "x"), tool("submit", "x")]), Some("submit")),
        (json!([tool("other", "x"), tool("submit", "x")]), None),
        (json!([tool("other", "y"), tool("submit", "x")]), Some("submit")),
    ];
    for (tools, called) in cases {
        let script = Script::from_json(&json!([{"submit": {"x": 1}}]))
            .expect("a script")
            .with_configured_tools(["mine".to_owned()]);
        let server = Loopback::start(script).expect("a server");
        let mut asked = request("a");
        asked["tools"] = tools;
        let (_, answer) = chat(&server, &asked);
        let message = &answer["choices"][0]["message"];
        match called {
            None => assert_eq!(message["content"], r#"{"x":1}"#),
            Some(name) => {
                assert_eq!(message["tool_calls"][0]["function"], json!({"name": name, "arguments": r#"{"x":1}"#}));
            }
        }
    }
}

#[test]
fn requests_are_kept_in_a_form_of_no_provider() {
    let server = start(json!([{"content": "a"}, {"content": "b"}]));
    chat(
        &server,
        &json!({
            "model": "m", "temperature": 0, "max_completion_tokens": 7, "top_p": null,
            "messages": [
                {"role": "developer", "content": [{"type": "text", "text": "be "}, {"type": "text", "text": "brief"}]},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "1", "type": "function", "function": {"name": "t", "arguments": "{\"a\": 1}"}},
                    {"id": "2", "type": "function", "function": {"name": "t", "arguments": "{a"}},
                ]},
                {"role": "tool", "tool_call_id": "1", "content": "x"},
            ],
        }),
    );
    chat(&server, &json!({"model": "m", "messages": [], "temperature": 0.5, "top_p": 0.25, "max_tokens": 9}));
    let requests = server.requests();
    let messages: Vec<Value> = requests[0].messages.iter().map(|message| message.to_json()).collect();
    assert_eq!(
        messages,
        [
            json!({"role": "system", "content": "be brief"}),
            json!({"role": "assistant", "content": "", "tool_calls": [{"name": "t", "arguments": {"a": 1}}, {"name": "t", "arguments": "{a"}]}),
            json!({"role": "tool", "content": "x"}),
        ]
    );
    assert_eq!((requests[0].temperature, requests[0].top_p, requests[0].max_tokens), (Some(0.0), None, Some(7)));
    assert_eq!((requests[1].temperature, requests[1].top_p, requests[1].max_tokens), (Some(0.5), Some(0.25), Some(9)));
}

#[test]
fn a_stream_says_what_a_document_says() {
    let server =
        start(json!([{"content": "some words to split", "usage": {"prompt_tokens": 2, "completion_tokens": 3}}]));
    let mut asked = request("a");
    asked["stream"] = json!(true);
    asked["stream_options"] = json!({"include_usage": true});
    let (status, body) = post(&server, "/chat/completions", &asked.to_string());
    assert_eq!(status, 200);
    let (chunks, done) = body.trim_end().rsplit_once("data: ").expect("an end");
    assert_eq!(done, "[DONE]");
    let chunks: Vec<Value> =
        chunks.split("data: ").skip(1).map(|chunk| serde_json::from_str(chunk.trim()).expect("JSON")).collect();
    let text: String = chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(text, "some words to split");
    assert!(chunks.len() > 4);
    assert_eq!(chunks.last().map(|chunk| &chunk["usage"]["completion_tokens"]), Some(&json!(3)));
}

#[test]
fn a_late_reply_keeps_its_turn_and_holds_up_nobody() {
    let server = start(json!([{"content": "late", "delay_ms": 300_000}, {"content": "second"}]));
    thread::scope(|scope| {
        let url = server.base_url();
        let address = url.trim_start_matches("http://").trim_end_matches("/v1").to_owned();
        let body = request("a").to_string();
        let mut waiting = TcpStream::connect(address).expect("a connection");
        write!(
            waiting,
            "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .expect("sent");
        while server.requests().is_empty() {
            thread::sleep(Duration::from_millis(1));
        }
        let second = scope.spawn(|| chat(&server, &request("b")).1);
        assert_eq!(content(&second.join().expect("no panic")), "second");
    });
    assert!(server.unserved().is_empty());
}

#[test]
fn what_is_no_chat_request_is_a_problem() {
    let server = start(json!([]));
    for (path, body, status) in [
        ("/v1/chat/completions", "nonsense", 400),
        ("/v1/chat/completions", "{}", 400),
        ("/v1/chat/completions", r#"{"model":"m","messages":[{"role":"boss"}]}"#, 400),
        ("/v1/responses", "{}", 400),
        ("/v1/completions", "{}", 404),
        ("/v1/embeddings", r#"{"model":"real","input":"a"}"#, 400),
    ] {
        assert_eq!(post(&server, path, body).0, status, "{path} {body}");
    }
    assert_eq!(server.problems().len(), 6, "{:?}", server.problems());
    assert!(server.requests().is_empty());
    let (status, body) = post(&server, "/v1/embeddings", r#"{"model":"test:words","input":["a b","b a"]}"#);
    let body: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!((status, &body["data"][0]["embedding"]), (200, &body["data"][1]["embedding"]));
}
