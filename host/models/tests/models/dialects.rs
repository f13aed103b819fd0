//! The requests and replies of the providers that have their own form, against canned answers.

use crate::support::{Answer, Canned, ask, name, provider};
use hotcell_models::{
    Finish, HttpLimits, Message, Model, ModelError, Protocol, Reasoning, Reply, Request, TokenUsage, ToolCallRequest,
    ToolSpec,
};
use serde_json::{Value, json};

fn add_tool() -> ToolSpec {
    ToolSpec {
        name: "add".to_owned(),
        description: "adds".to_owned(),
        parameters: json!({"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]}),
    }
}

fn with_tool() -> Request {
    Request {
        messages: vec![Message::system("Be brief."), Message::user("1 + 2?")],
        tools: vec![add_tool()],
        temperature: Some(0.5),
        ..ask("")
    }
}

/// The conversation after the reply was answered with `result`.
fn answered(request: &Request, reply: &Reply, result: &str) -> Request {
    let mut next = request.clone();
    next.messages.push(reply.clone().into_message());
    for call in &reply.tool_calls {
        next.messages.push(Message::tool(call.id.clone(), result));
    }
    next
}

fn events(events: &[(&str, Value)]) -> Answer {
    let body: String = events.iter().map(|(name, data)| format!("event: {name}\ndata: {data}\n\n")).collect();
    Answer::body(200, "text/event-stream", &body)
}

fn anthropic_reply() -> Value {
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "text", "text": "Let me see."},
            {"type": "tool_use", "id": "tu_1", "name": "add", "input": {"b": 2, "a": 1}},
        ],
        "stop_reason": "tool_use", "stop_sequence": null,
        "usage": {"input_tokens": 10, "output_tokens": 4},
    })
}

#[tokio::test]
async fn anthropic() {
    let done = json!({
        "id": "msg_2", "type": "message", "role": "assistant", "model": "claude-x",
        "content": [{"type": "text", "text": "3"}],
        "stop_reason": "end_turn", "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 1},
    });
    let server = Canned::start(vec![Answer::json(200, &anthropic_reply()), Answer::json(200, &done)]);
    let model = provider(Protocol::Anthropic, server.url(), HttpLimits::default());
    let reply = model.complete(with_tool(), None).await.expect("a reply");
    assert_eq!(reply.content, "Let me see.");
    let call =
        ToolCallRequest { id: "tu_1".to_owned(), name: "add".to_owned(), arguments: r#"{"b":2,"a":1}"#.to_owned() };
    assert_eq!(reply.tool_calls, [call]);
    assert_eq!(reply.finish, Finish::ToolCalls);
    assert_eq!(reply.usage, TokenUsage { input: 10, output: 4 });

    let last = model.complete(answered(&with_tool(), &reply, "3"), None).await.expect("a reply");
    assert_eq!((last.content.as_str(), last.finish), ("3", Finish::Stop));

    let seen = server.seen();
    assert_eq!(seen[0].target, "/v1/messages");
    assert_eq!(seen[0].header("x-api-key"), "sk-test");
    assert!(!seen[0].header("anthropic-version").is_empty());
    let body = &seen[0].body;
    assert_eq!(body["model"], "m");
    assert_eq!(body["temperature"], 0.5);
    assert!(body.get("top_p").is_none());
    assert!(body["max_tokens"].as_u64().is_some_and(|tokens| tokens > 0));
    assert_eq!(body["tools"][0]["name"], "add");
    assert_eq!(body["tools"][0]["input_schema"], add_tool().parameters);
    assert!(body["system"].to_string().contains("Be brief."));
    let second = seen[1].body["messages"].as_array().expect("messages");
    assert_eq!(second.len(), 3);
    assert_eq!(second[1]["content"][0], json!({"type": "thinking", "thinking": "hm", "signature": "c2ln"}));
    assert_eq!(second[1]["content"][2]["input"], json!({"b": 2, "a": 1}));
    assert_eq!(second[2]["content"][0]["tool_use_id"], "tu_1");
}

#[tokio::test]
async fn anthropic_is_asked_for_thoughts_as_the_model_takes_them() {
    let done = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x",
        "content": [{"type": "text", "text": "3"}],
        "stop_reason": "end_turn", "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 1},
    });
    let by_tokens = |tokens: u32| json!({"type": "enabled", "budget_tokens": tokens});
    let asked = [
        ("p:claude-haiku-4-5", None, by_tokens(4096), Value::Null, 4196),
        ("p:claude-haiku-4-5", Some(2048), by_tokens(2048), Value::Null, 2148),
        ("p:claude-opus-4-8", None, json!({"type": "adaptive"}), json!("medium"), 4196),
        ("p:claude-opus-4-8", Some(2048), json!({"type": "adaptive"}), json!("low"), 2148),
    ];
    let server = Canned::start(asked.iter().map(|_| Answer::json(200, &done)).collect());
    let model = provider(Protocol::Anthropic, server.url(), HttpLimits::default());
    for (asks, budget, ..) in &asked {
        let reasoning = Some(Reasoning { budget: *budget });
        let request = Request { model: name(asks), max_tokens: Some(100), reasoning, ..ask("1 + 2?") };
        model.complete(request, None).await.expect("a reply");
    }
    for ((asks, _, thinking, effort, most), seen) in asked.iter().zip(server.seen()) {
        assert_eq!(&seen.body["thinking"], thinking, "{asks}");
        assert_eq!(&seen.body["output_config"]["effort"], effort, "{asks}");
        assert_eq!(seen.body["max_tokens"], *most, "{asks}");
    }
}

#[tokio::test]
async fn anthropic_streams_what_it_replies_and_keeps_broken_arguments() {
    let stream = |arguments: &str| {
        events(&[
            (
                "message_start",
                json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "content": [], "stop_reason": null, "usage": {"input_tokens": 10, "output_tokens": 1}}}),
            ),
            (
                "content_block_start",
                json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            ),
            (
                "content_block_delta",
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Let me"}}),
            ),
            (
                "content_block_delta",
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": " see."}}),
            ),
            ("content_block_stop", json!({"type": "content_block_stop", "index": 0})),
            (
                "content_block_start",
                json!({"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "tu_1", "name": "add", "input": {}}}),
            ),
            (
                "content_block_delta",
                json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": arguments}}),
            ),
            ("content_block_stop", json!({"type": "content_block_stop", "index": 1})),
            (
                "message_delta",
                json!({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null}, "usage": {"output_tokens": 4}}),
            ),
            ("message_stop", json!({"type": "message_stop"})),
        ])
    };
    for arguments in [r#"{"b":2,"a":1}"#, r#"{"b":2,"a"#] {
        let server = Canned::start(vec![stream(arguments)]);
        let model = provider(Protocol::Anthropic, server.url(), HttpLimits::default());
        let mut text = String::new();
        let reply = model.complete(with_tool(), Some(&mut |piece: &str| text.push_str(piece))).await.expect("a reply");
        assert_eq!(server.only().body["stream"], true);
        assert_eq!((text.as_str(), reply.content.as_str()), ("Let me see.", "Let me see."));
        assert_eq!(reply.tool_calls[0].arguments, arguments);
        assert_eq!(reply.usage, TokenUsage { input: 10, output: 4 });
    }
}

#[tokio::test]
async fn gemini() {
    let call = json!({
        "candidates": [{"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": [
            {"text": "Let me see."},
            {"functionCall": {"name": "add", "args": {"b": 2, "a": 1}}, "thoughtSignature": "c2ln"},
        ]}}],
        "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 3, "totalTokenCount": 10},
        "modelVersion": "gemini-x", "responseId": "r1",
    });
    let done = json!({
        "candidates": [{"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": [{"text": "3"}]}}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
    });
    let sse = Answer::body(200, "text/event-stream", &format!("data: {call}\r\n\r\n"));
    let server = Canned::start(vec![Answer::json(200, &call), Answer::json(200, &done), sse]);
    let model = provider(Protocol::Gemini, server.url(), HttpLimits::default());
    let reply = model.complete(with_tool(), None).await.expect("a reply");
    assert_eq!(reply.content, "Let me see.");
    assert_eq!(
        (reply.tool_calls[0].name.as_str(), reply.tool_calls[0].arguments.as_str()),
        ("add", r#"{"b":2,"a":1}"#)
    );
    assert_eq!((reply.finish.clone(), reply.usage), (Finish::ToolCalls, TokenUsage { input: 7, output: 3 }));

    let last = model.complete(answered(&with_tool(), &reply, "3"), None).await.expect("a reply");
    assert_eq!(last.content, "3");

    let mut text = String::new();
    let streamed = model.complete(with_tool(), Some(&mut |piece: &str| text.push_str(piece))).await.expect("a reply");
    assert_eq!((text.as_str(), streamed.content.as_str()), ("Let me see.", "Let me see."));
    assert_eq!(streamed.tool_calls[0].arguments, reply.tool_calls[0].arguments);

    let seen = server.seen();
    assert!(seen[0].target.starts_with("/v1beta/models/m:generateContent"), "{}", seen[0].target);
    assert!(seen[2].target.starts_with("/v1beta/models/m:streamGenerateContent"), "{}", seen[2].target);
    assert!(seen[0].target.contains("key=sk-test") || seen[0].header("x-goog-api-key") == "sk-test");
    assert_eq!(seen[0].body["generationConfig"]["temperature"], 0.5);
    assert!(seen[0].body.to_string().contains("Be brief."));
    let second = seen[1].body["contents"].as_array().expect("contents");
    assert!(second[1].to_string().contains(r#""thoughtSignature":"c2ln""#), "{second:?}");
    assert_eq!(second[2]["parts"][0]["functionResponse"]["name"], "add");
}

#[tokio::test]
async fn a_key_in_an_address_stays_out_of_failures() {
    let server =
        Canned::start(vec![Answer::Close, Answer::json(400, &json!({"error": {"message": "bad key sk-test"}}))]);
    let model = provider(Protocol::Gemini, server.url(), HttpLimits::default());
    for expected in ["Connection reset", "400 Bad Request: bad key [key]"] {
        let error = model.complete(ask("hi"), None).await.expect_err("a failure");
        let texts = format!("{error} {error:?}");
        assert!(texts.contains(expected) && !texts.contains("sk-test"), "{texts}");
    }
}

#[tokio::test]
async fn failures_of_every_dialect_have_their_status_and_words() {
    for protocol in [Protocol::Anthropic, Protocol::Gemini, Protocol::DeepSeek, Protocol::Ollama, Protocol::OpenAi] {
        let body = json!({"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}});
        for stream in [false, true] {
            let server = Canned::start(vec![Answer::json(429, &body)]);
            let model = provider(protocol, server.url(), HttpLimits::default());
            let mut ignore = |_: &str| {};
            let result = if stream {
                model.complete(ask("hi"), Some(&mut ignore)).await
            } else {
                model.complete(ask("hi"), None).await
            };
            assert_eq!(
                result,
                Err(ModelError::Status { status: 429, message: "slow down".to_owned() }),
                "{protocol:?}"
            );
        }
    }
}

#[tokio::test]
async fn deepseek_gets_its_reasoning_back() {
    let reply = json!({
        "id": "1", "object": "chat.completion", "model": "m",
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": "", "reasoning_content": "hm",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{\"a\": 1}"}}],
        }}],
        "usage": {"prompt_tokens": 2, "completion_tokens": 1, "total_tokens": 3},
    });
    let server = Canned::start(vec![Answer::json(200, &reply), Answer::json(200, &reply)]);
    let model = provider(Protocol::DeepSeek, server.url(), HttpLimits::default());
    let first = model.complete(with_tool(), None).await.expect("a reply");
    assert_eq!(first.tool_calls[0].arguments, "{\"a\": 1}");
    let mut next = answered(&with_tool(), &first, "1");
    next.messages.push(Message::assistant("hand-written"));
    model.complete(next.clone(), None).await.expect("a reply");
    let seen = server.seen();
    assert_eq!(seen[0].target, "/chat/completions");
    assert_eq!(seen[0].header("authorization"), "Bearer sk-test");
    assert_eq!(seen[1].body["messages"][2]["reasoning_content"], "hm");
    assert_eq!(seen[1].body["messages"][4]["reasoning_content"], "");

    // The same conversation with another kind of server: nothing of the first one's goes along.
    let other = Canned::start(vec![Answer::json(200, &reply)]);
    let model = provider(Protocol::OpenAiCompatible, other.url(), HttpLimits::default());
    model.complete(next, None).await.expect("a reply");
    assert!(other.only().body["messages"][2].get("reasoning_content").is_none());
}

#[tokio::test]
async fn ollama_and_openai_speak_chat_completions() {
    let reply = json!({
        "id": "1", "object": "chat.completion", "model": "m",
        "choices": [{"index": 0, "finish_reason": "length", "message": {"role": "assistant", "content": "cut"}}],
    });
    for (protocol, model_name, cap) in [
        (Protocol::Ollama, "p:m", "max_tokens"),
        (Protocol::OpenAi, "p:gpt-4o", "max_tokens"),
        (Protocol::OpenAi, "p:o3-mini", "max_completion_tokens"),
    ] {
        let server = Canned::start(vec![Answer::json(200, &reply)]);
        let model = provider(protocol, format!("{}/v1", server.url()), HttpLimits::default());
        let request = Request {
            max_tokens: Some(9),
            ..Request::new(crate::support::name(model_name), vec![Message::user("hi")])
        };
        let reply = model.complete(request, None).await.expect("a reply");
        assert_eq!((reply.content.as_str(), reply.finish, reply.usage), ("cut", Finish::Length, TokenUsage::default()));
        let seen = server.only();
        assert_eq!(seen.target, "/v1/chat/completions");
        assert_eq!(seen.body[cap], 9, "{}", seen.body);
        assert_eq!(seen.body["messages"], json!([{"role": "user", "content": "hi"}]));
    }
}

/// Nobody has so many parts that a number names; whoever made room for them would need terabytes.
#[tokio::test]
async fn a_part_with_a_number_out_of_bounds_is_refused_before_room_is_made() {
    let begin =
        json!({"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "content": []}});
    let block = |index: u64| json!({"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}});
    let server =
        Canned::start(vec![events(&[("message_start", begin), ("content_block_start", block(100_000_000_000))])]);
    let model = provider(Protocol::Anthropic, server.url(), HttpLimits::default());
    let mut on_text = |_: &str| ();
    let error = model.complete(ask("hi"), Some(&mut on_text)).await.expect_err("refused");
    assert!(matches!(&error, ModelError::Malformed { reason } if reason.contains("above 1023")), "{error:?}");
}

/// It would be read as the JSON in its text, as deep as whoever answers likes, and kept where it cannot be read again.
#[tokio::test]
async fn a_reply_holds_no_json_within_a_text() {
    let deep = format!("{}{}", "[".repeat(120), "]".repeat(120));
    let hidden = json!({"$serde_json::private::RawValue": deep});
    let details = json!([{"type": "reasoning.encrypted", "data": hidden}]);
    let whole = json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": "a", "reasoning_details": details}, "finish_reason": "stop"}]});
    let piece = json!({"choices": [{"index": 0, "delta": {"content": "a", "reasoning_details": details}}]});
    let server = Canned::start(vec![
        Answer::json(200, &whole),
        Answer::body(200, "text/event-stream", &format!("data: {piece}\n\ndata: [DONE]\n\n")),
    ]);
    let model = provider(Protocol::OpenAiCompatible, server.url(), HttpLimits::default());
    for is_streamed in [false, true] {
        let mut on_text = |_: &str| ();
        let error = match is_streamed {
            true => model.complete(ask("hi"), Some(&mut on_text)).await,
            false => model.complete(ask("hi"), None).await,
        };
        let error = error.expect_err("refused");
        assert!(matches!(&error, ModelError::Malformed { .. }), "{error:?}");
    }
}
