//! Models of Amazon Bedrock, against canned answers.

use hotcell_models::{
    Finish, Message, Model, ModelError, Providers, Reasoning, Request, Server, TokenUsage, ToolCallRequest, ToolSpec,
};
use serde_json::{Value, json};

use crate::support::{Answer, Canned, name};

const CLAUDE: &str = "anthropic.claude-3-7-sonnet-20250219-v1:0";

fn model(variables: &[(&str, &str)]) -> Providers {
    Providers::from_environment(&|wanted| {
        variables.iter().find(|(name, _)| *name == wanted).map(|(_, value)| (*value).to_owned())
    })
    .expect("an environment")
}

fn signing() -> Providers {
    model(&[("AWS_ACCESS_KEY_ID", "AKID"), ("AWS_SECRET_ACCESS_KEY", "s3cret"), ("AWS_SESSION_TOKEN", "t0ken")])
}

fn asking(server: &Canned, messages: Vec<Message>) -> Request {
    Request {
        server: Some(Server::ProviderAt { provider: "bedrock".to_owned(), address: server.url(), is_private: true }),
        ..Request::new(name(CLAUDE), messages)
    }
}

fn said(text: &str) -> Answer {
    let body = json!({
        "output": {"message": {"role": "assistant", "content": [{"text": text}]}},
        "stopReason": "end_turn", "usage": {"inputTokens": 3, "outputTokens": 1, "totalTokens": 4},
    });
    Answer::json(200, &body)
}

/// A stream of events, each a frame.
fn stream(events: &[(&str, &str, Value)]) -> Vec<u8> {
    let mut body = Vec::new();
    for (message, kind, payload) in events {
        let mut headers = Vec::new();
        let kind_of = if *message == "exception" { ":exception-type" } else { ":event-type" };
        for (header, text) in [(":message-type", *message), (kind_of, *kind), (":content-type", "application/json")] {
            headers.push(u8::try_from(header.len()).expect("a length"));
            headers.extend_from_slice(header.as_bytes());
            headers.push(7);
            headers.extend_from_slice(&u16::try_from(text.len()).expect("a length").to_be_bytes());
            headers.extend_from_slice(text.as_bytes());
        }
        let payload = payload.to_string();
        let mut frame = Vec::new();
        let length = u32::try_from(16 + headers.len() + payload.len()).expect("a length");
        frame.extend_from_slice(&length.to_be_bytes());
        frame.extend_from_slice(&u32::try_from(headers.len()).expect("a length").to_be_bytes());
        frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
        frame.extend_from_slice(&headers);
        frame.extend_from_slice(payload.as_bytes());
        frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
        body.extend_from_slice(&frame);
    }
    body
}

fn streamed(body: &[u8]) -> Answer {
    let head = format!(
        "HTTP/1.1 200 x\r\ncontent-type: application/vnd.amazon.eventstream\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    Answer::Bytes([head.as_bytes(), body].concat())
}

#[tokio::test]
async fn a_request_is_signed_and_has_the_form_of_converse() {
    let calls = json!({
        "output": {"message": {"role": "assistant", "content": [
            {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln"}}},
            {"text": "Let me see."},
            {"toolUse": {"toolUseId": "t1", "name": "add", "input": {"b": 2, "a": 1}}},
        ]}},
        "stopReason": "tool_use",
        "usage": {"inputTokens": 10, "outputTokens": 4, "totalTokens": 19, "cacheReadInputTokens": 5},
    });
    let server = Canned::start(vec![Answer::json(200, &calls), said("3")]);
    let model = signing();
    assert_eq!(model.own_key_variable("bedrock"), Some("AWS_SECRET_ACCESS_KEY"));
    let messages =
        vec![Message::system("Be brief."), Message::user("1 + 2?"), Message::user(" "), Message::user("Well?")];
    let mut request = Request {
        tools: vec![ToolSpec {
            name: "add".to_owned(),
            description: String::new(),
            parameters: json!({"type": "object"}),
        }],
        temperature: Some(0.5),
        max_tokens: Some(100),
        reasoning: Some(Reasoning { budget: Some(2000) }),
        keeps_prompt: true,
        output_schema: Some(json!({"type": "object"})),
        ..asking(&server, messages)
    };
    let reply = model.complete(request.clone(), None).await.expect("a reply");
    let call =
        ToolCallRequest { id: "t1".to_owned(), name: "add".to_owned(), arguments: r#"{"b":2,"a":1}"#.to_owned() };
    assert_eq!((reply.content.as_str(), &reply.tool_calls), ("Let me see.", &vec![call]));
    assert_eq!((&reply.finish, reply.usage), (&Finish::ToolCalls, TokenUsage { input: 15, output: 4 }));
    request.messages.push(reply.into_message());
    request.messages.push(Message::tool("t1", ""));
    let reply = model.complete(request, None).await.expect("a reply");
    assert_eq!((reply.content.as_str(), reply.finish, reply.provider_state), ("3", Finish::Stop, None));

    let seen = server.seen();
    let first = &seen[0];
    assert_eq!(first.target, "/model/anthropic.claude-3-7-sonnet-20250219-v1%3A0/converse");
    let authorization = first.header("authorization");
    assert!(authorization.starts_with("AWS4-HMAC-SHA256 Credential=AKID/"), "{authorization}");
    let signed =
        "/us-east-1/bedrock/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, Signature=";
    assert!(authorization.contains(signed), "{authorization}");
    assert_eq!((first.header("x-amz-security-token"), first.header("x-amz-date").len()), ("t0ken", 16));
    let schema = "Reply with JSON that follows this JSON Schema, and with nothing else:\n{\"type\":\"object\"}";
    assert_eq!(
        first.body,
        json!({
            "messages": [{"role": "user", "content": [{"text": "1 + 2?"}, {"text": "Well?"}]}],
            "system": [{"text": "Be brief."}, {"text": schema}, {"cachePoint": {"type": "default"}}],
            "inferenceConfig": {"maxTokens": 2100},
            "additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 2000}},
            "toolConfig": {"tools": [{"toolSpec": {"name": "add", "inputSchema": {"json": {"type": "object"}}}}]},
        })
    );
    assert_eq!(
        seen[1].body["messages"].as_array().expect("messages")[1..],
        [
            json!({"role": "assistant", "content": [
                {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln"}}},
                {"text": "Let me see."},
                {"toolUse": {"toolUseId": "t1", "name": "add", "input": {"b": 2, "a": 1}}},
            ]}),
            json!({"role": "user", "content": [
                {"toolResult": {"toolUseId": "t1", "content": [{"text": "(nothing)"}], "status": "success"}},
            ]}),
        ]
    );
}

#[tokio::test]
async fn calls_are_told_as_texts_where_no_tool_is_offered_and_have_results_elsewhere() {
    let server = Canned::start(vec![said("a"), said("b")]);
    let call = |id: &str, arguments: &str| ToolCallRequest {
        id: id.to_owned(),
        name: "add".to_owned(),
        arguments: arguments.to_owned(),
    };
    let mut asked = Message::assistant("");
    asked.tool_calls = vec![call("t1", "{\"a\": 1}"), call("t2", "no JSON")];
    let messages = vec![asked, Message::tool("t1", "3"), Message::tool("t9", "?"), Message::user("So?")];
    let model = model(&[("AWS_BEARER_TOKEN_BEDROCK", "k3y")]);
    let request = Request { temperature: Some(0.5), ..asking(&server, messages) };
    model.complete(request.clone(), None).await.expect("a reply");
    let tools = vec![ToolSpec { name: "add".to_owned(), description: "adds".to_owned(), parameters: json!({}) }];
    model.complete(Request { tools, ..request }, None).await.expect("a reply");
    let seen = server.seen();
    assert_eq!((seen[0].header("authorization"), seen[0].header("x-amz-date")), ("Bearer k3y", ""));
    assert_eq!(
        seen[0].body,
        json!({
            "messages": [
                {"role": "user", "content": [{"text": "Begin."}]},
                {"role": "assistant", "content": [
                    {"text": "The tool `add` is called with {\"a\": 1}"}, {"text": "The tool `add` is called with no JSON"},
                ]},
                {"role": "user", "content": [{"text": "The tool `add` gave 3"}, {"text": "So?"}]},
            ],
            "inferenceConfig": {"temperature": 0.5},
        })
    );
    assert_eq!(
        seen[1].body["messages"].as_array().expect("messages")[1..],
        [
            json!({"role": "assistant", "content": [
                {"toolUse": {"toolUseId": "t1", "name": "add", "input": {"a": 1}}},
                {"toolUse": {"toolUseId": "t2", "name": "add", "input": {"arguments": "no JSON"}}},
            ]}),
            json!({"role": "user", "content": [
                {"toolResult": {"toolUseId": "t1", "content": [{"text": "3"}], "status": "success"}},
                {"toolResult": {"toolUseId": "t2", "content": [{"text": "There is no result."}], "status": "error"}},
                {"text": "So?"},
            ]}),
        ]
    );
}

#[tokio::test]
async fn a_stream_is_read_frame_by_frame() {
    let delta =
        |place: u64, delta: Value| ("event", "contentBlockDelta", json!({"contentBlockIndex": place, "delta": delta}));
    let call = json!({"contentBlockIndex": 2, "start": {"toolUse": {"toolUseId": "t1", "name": "add"}}});
    let body = stream(&[
        ("event", "messageStart", json!({"role": "assistant"})),
        delta(0, json!({"reasoningContent": {"text": "h"}})),
        delta(0, json!({"reasoningContent": {"text": "m"}})),
        delta(0, json!({"reasoningContent": {"signature": "c2ln"}})),
        delta(1, json!({"text": "Let me "})),
        delta(1, json!({"text": "see."})),
        ("event", "contentBlockStart", call),
        delta(2, json!({"toolUse": {"input": "{\"a\":"}})),
        delta(2, json!({"toolUse": {"input": "1}"}})),
        ("event", "contentBlockStop", json!({"contentBlockIndex": 2})),
        ("event", "messageStop", json!({"stopReason": "tool_use"})),
        ("event", "metadata", json!({"usage": {"inputTokens": 7, "outputTokens": 2}})),
    ]);
    let server = Canned::start(vec![streamed(&body), said("done")]);
    let model = signing();
    let mut pieces = Vec::new();
    let request = asking(&server, vec![Message::user("1 + 2?")]);
    let reply =
        model.complete(request.clone(), Some(&mut |text: &str| pieces.push(text.to_owned()))).await.expect("a reply");
    assert_eq!(pieces, ["Let me ", "see."]);
    assert_eq!((reply.content.as_str(), reply.tool_calls[0].arguments.as_str()), ("Let me see.", "{\"a\":1}"));
    assert_eq!((&reply.finish, reply.usage), (&Finish::ToolCalls, TokenUsage { input: 7, output: 2 }));
    let mut next = request;
    next.messages.push(reply.into_message());
    model.complete(next, None).await.expect("a reply");
    let seen = server.seen();
    assert!(seen[0].target.ends_with("/converse-stream"), "{}", seen[0].target);
    let thought = json!({"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln"}}});
    assert_eq!(seen[1].body["messages"][1]["content"][0], thought);
}

#[tokio::test]
async fn failures_are_told() {
    let stop = ("event", "messageStop", json!({"stopReason": "end_turn"}));
    let text = ("event", "contentBlockDelta", json!({"contentBlockIndex": 0, "delta": {"text": "hi"}}));
    let throttled = ("exception", "throttlingException", json!({"message": "Too many tokens"}));
    // A server may say again what it was sent.
    let reflected = ("exception", "validationException", json!({"message": "no t0ken, no s3cret"}));
    let unknown = ("exception", "oddException", json!({"Message": "t0ken"}));
    let mut changed = stream(&[text.clone(), stop.clone()]);
    *changed.last_mut().expect("a byte") ^= 1;
    let whole = stream(&[text.clone(), stop]);
    let server = Canned::start(vec![
        Answer::json(403, &json!({"message": "The security token t0ken of s3cret is invalid."})),
        streamed(&stream(&[text.clone(), throttled])),
        streamed(&stream(&[reflected])),
        streamed(&stream(&[unknown])),
        streamed(&changed),
        streamed(&stream(&[text])),
        streamed(&whole[..whole.len() - 3]),
        Answer::json(200, &json!({"Output": {}})),
        Answer::body(200, "text/html", "<html>"),
    ]);
    let model = signing();
    let request = asking(&server, vec![Message::user("hi")]);
    let status = |status, message: &str| ModelError::Status { status, message: message.to_owned() };
    let malformed = |reason: &str| ModelError::Malformed { reason: reason.to_owned() };
    for expected in [
        status(403, "The security token [key] of [key] is invalid."),
        status(429, "Too many tokens"),
        status(400, "no [key], no [key]"),
        ModelError::Reported { message: "oddException [key]".to_owned() },
        malformed("a checksum of the event stream is wrong"),
        malformed("it stops before its end"),
        malformed("it stops before its end"),
    ] {
        let told = model.complete(request.clone(), Some(&mut |_: &str| {})).await.expect_err("no reply");
        assert_eq!(told, expected);
    }
    let no_message = model.complete(request.clone(), None).await.expect_err("no reply");
    assert_eq!(no_message, malformed("it has no message"));
    assert!(matches!(model.complete(request.clone(), None).await, Err(ModelError::Malformed { .. })));

    // These do not reach the server, which gave its last answer.
    let half = [("AWS_SECRET_ACCESS_KEY", "s3cret")];
    for (known, missing) in [(0, "AWS_SECRET_ACCESS_KEY"), (1, "AWS_ACCESS_KEY_ID")] {
        let told = self::model(&half[..known]).complete(request.clone(), None).await.expect_err("no key").to_string();
        assert!(told.contains(missing), "{told}");
    }
    for wrong in ["..", "a?b", "a b"] {
        let request = Request { model: name(wrong), ..request.clone() };
        let told = model.complete(request, None).await.expect_err(wrong).to_string();
        assert!(told.contains("models of Bedrock"), "{told}");
    }
}
