//! Servers that speak Chat Completions, over real HTTP.

use std::{io::Read, net::TcpListener, sync::mpsc, thread, time::Duration};

use crate::support::{Answer, Canned, ask, name, provider};
use hotcell_loopback::{Loopback, Script};
use hotcell_models::{
    Finish, HttpLimits, Message, Model, ModelError, Protocol, ProviderSettings, Providers, Reply, Request, Role,
    TokenUsage, ToolCallRequest, ToolSpec,
};
use serde_json::{Value, json};

fn loopback(replies: Value) -> Loopback {
    Loopback::start(Script::from_json(&replies).expect("a script")).expect("a server")
}

fn compatible(server: &Loopback) -> Providers {
    provider(Protocol::OpenAiCompatible, server.base_url(), HttpLimits::default())
}

fn add_tool() -> ToolSpec {
    ToolSpec {
        name: "add".to_owned(),
        description: "adds".to_owned(),
        parameters: json!({"type": "object", "properties": {"b": {"type": "number"}, "a": {"type": "number"}}, "required": ["b", "a"]}),
    }
}

async fn streamed(model: &Providers, request: Request) -> (Vec<String>, Result<Reply, ModelError>) {
    let mut pieces = Vec::new();
    let mut on_text = |piece: &str| pieces.push(piece.to_owned());
    let reply = model.complete(request, Some(&mut on_text)).await;
    (pieces, reply)
}

#[tokio::test]
async fn a_request_arrives_as_it_was_made() {
    let server = loopback(json!([{"content": "  done \n", "usage": {"prompt_tokens": 11, "completion_tokens": 3}}]));
    let call =
        ToolCallRequest { id: "c1".to_owned(), name: "add".to_owned(), arguments: r#"{"b": 2,  "a":1.0}"#.to_owned() };
    let messages = vec![
        Message::system("Be brief."),
        Message::system(""),
        Message::user("one"),
        Message::user("two"),
        Message::user(""),
        Message { tool_calls: vec![call], ..Message::assistant("") },
        Message::tool("c1", "3"),
        Message::assistant("three"),
    ];
    let request = Request {
        tools: vec![add_tool()],
        temperature: Some(0.0),
        top_p: Some(0.9),
        max_tokens: Some(50),
        ..Request::new(name("p:some-model-high"), messages.clone())
    };
    let reply = compatible(&server).complete(request, None).await.expect("a reply");
    assert_eq!(reply.content, "  done \n");
    assert_eq!(reply.usage, TokenUsage { input: 11, output: 3 });
    assert_eq!(reply.finish, Finish::Stop);
    assert_eq!(reply.provider_state, None);

    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    let seen = &requests[0];
    assert_eq!(seen.model, "some-model-high");
    assert_eq!((seen.temperature, seen.top_p, seen.max_tokens), (Some(0.0), Some(0.9), Some(50)));
    assert!(!seen.stream);
    let arrived: Vec<(Role, String, usize)> = seen
        .messages
        .iter()
        .map(|message| {
            let role = serde_json::from_value(json!(message.role)).expect("a role");
            (role, message.content.clone(), message.tool_calls.len())
        })
        .collect();
    let sent: Vec<(Role, String, usize)> =
        messages.iter().map(|message| (message.role, message.content.clone(), message.tool_calls.len())).collect();
    assert_eq!(arrived, sent);
    assert_eq!(seen.messages[5].tool_calls[0].arguments, r#"{"b": 2,  "a":1.0}"#);
    assert_eq!(seen.messages[6].tool_call_id.as_deref(), Some("c1"));
    assert_eq!(seen.tool_names(), ["add"]);
    assert_eq!(seen.tools[0].parameters, add_tool().parameters);
    assert_eq!(seen.tools[0].description, "adds");
}

#[tokio::test]
async fn what_is_not_set_is_not_sent() {
    let server = loopback(json!([{"content": "a"}, {"content": "b"}]));
    let model = compatible(&server);
    model.complete(ask("hi"), None).await.expect("a reply");
    streamed(&model, ask("hi")).await.1.expect("a reply");
    for request in server.requests() {
        let body = request.body.as_object().expect("an object");
        for key in
            ["temperature", "top_p", "max_tokens", "max_completion_tokens", "tools", "tool_choice", "response_format"]
        {
            assert!(!body.contains_key(key), "{key} in {body:?}");
        }
    }
}

#[tokio::test]
async fn streaming_gives_what_not_streaming_gives() {
    let replies = json!([
        {"content": "Grüße, Welt: {\"a\": 1}\n and more", "usage": {"prompt_tokens": 5, "completion_tokens": 7}},
        {"tool_calls": [{"name": "add", "arguments": {"b": 2, "a": 1}}, {"name": "add", "arguments": "{\"a\": 1,"}], "content": "thinking"},
        {"tool_calls": [{"name": "add", "arguments": ""}]},
        {"content": ""},
        {"status": 429, "error": "slow down"},
    ]);
    for reply in replies.as_array().expect("a list") {
        let (whole, pieces) = (loopback(json!([reply])), loopback(json!([reply])));
        let request = Request { tools: vec![add_tool()], ..ask("hi") };
        let expected = compatible(&whole).complete(request.clone(), None).await;
        let (texts, received) = streamed(&compatible(&pieces), request).await;
        assert!(pieces.requests()[0].stream && !whole.requests()[0].stream);
        assert_eq!(received, expected);
        if let Ok(reply) = &expected {
            assert_eq!(texts.concat(), reply.content);
        }
        if reply["usage"].is_object() {
            assert!(texts.len() > 1, "{texts:?}");
        }
    }
}

#[tokio::test]
async fn arguments_survive_however_broken_they_are() {
    for arguments in [
        r#"{"a": 1, "b": "#,
        "not json",
        r#"[1, 2]"#,
        r#""{\"a\":1}""#,
        r#"{"a":1,"a":2}"#,
        r#"{"n": 123456789012345678901234567890}"#,
        "null",
    ] {
        for stream in [false, true] {
            let server =
                loopback(json!([{"tool_calls": [{"name": "add", "arguments": arguments}]}, {"content": "ok"}]));
            let model = compatible(&server);
            let request = Request { tools: vec![add_tool()], ..ask("hi") };
            let reply = if stream {
                streamed(&model, request.clone()).await.1
            } else {
                model.complete(request.clone(), None).await
            };
            let reply = reply.expect("a reply");
            assert_eq!(reply.finish, Finish::ToolCalls);
            assert_eq!(reply.tool_calls[0].arguments, arguments, "stream: {stream}");

            let id = reply.tool_calls[0].id.clone();
            let mut next = request;
            next.messages.push(reply.into_message());
            next.messages.push(Message::tool(id, "cannot be read"));
            model.complete(next, None).await.expect("a reply");
            assert_eq!(server.requests()[1].messages[1].tool_calls[0].arguments, arguments);
            assert!(server.problems().is_empty());
        }
    }
}

#[tokio::test]
async fn failures_say_what_the_provider_said() {
    for (reply, text, transient) in [
        (json!({"status": 429, "error": "slow down"}), "429 Too Many Requests: slow down", true),
        (json!({"status": 429}), "429 Too Many Requests", true),
        (json!({"error": "Connection reset by peer"}), "502 Bad Gateway: Connection reset by peer", true),
        (json!({"error": "upstream: Connection refused"}), "502 Bad Gateway: upstream: Connection refused", true),
        (json!({"error": "request timed out"}), "502 Bad Gateway: request timed out", true),
        (json!({"error": "no luck"}), "502 Bad Gateway: no luck", false),
        (json!({"status": 400, "error": "unsupported parameter"}), "400 Bad Request: unsupported parameter", false),
        (json!({"status": 500}), "500 Internal Server Error", false),
        (json!({"status": 401, "error": "bad key sk-test"}), "401 Unauthorized: bad key [key]", false),
        (json!({"status": 400, "error": "a\u{1b}[2Jb\nc"}), "400 Bad Request: a\\u{1b}[2Jb c", false),
    ] {
        let server = loopback(json!([reply]));
        let error = compatible(&server).complete(ask("hi"), None).await.expect_err("a failure");
        assert_eq!(error.to_string(), text);
        assert_eq!(error.is_transient(), transient, "{error}");
        assert_eq!(server.requests().len(), 1, "nothing is tried twice");
    }
}

#[tokio::test]
async fn a_long_message_of_a_provider_is_cut() {
    let server = loopback(json!([{"status": 400, "error": "x".repeat(100_000)}]));
    let error = compatible(&server).complete(ask("hi"), None).await.expect_err("a failure");
    assert!(error.to_string().len() < 5000);
}

#[tokio::test]
async fn a_late_reply_times_out() {
    for stream in [false, true] {
        let server = loopback(json!([{"content": "late", "delay_ms": 60_000}]));
        let request = Request { timeout: Some(Duration::from_millis(50)), ..ask("hi") };
        let model = compatible(&server);
        let result = if stream { streamed(&model, request).await.1 } else { model.complete(request, None).await };
        let error = result.expect_err("too late");
        assert_eq!(error, ModelError::TimedOut { after: Duration::from_millis(50) });
        assert!(error.to_string().contains("timed out") && error.is_transient());
    }
}

#[tokio::test]
async fn silence_times_out_without_a_limit_of_the_request() {
    let limits = HttpLimits { idle_timeout: Duration::from_millis(50), ..HttpLimits::default() };
    let half = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n";
    for begun in [Vec::new(), half.to_vec()] {
        let server = Canned::start(vec![Answer::Hang(begun)]);
        let model = provider(Protocol::OpenAiCompatible, server.url(), limits);
        let error = streamed(&model, ask("hi")).await.1.expect_err("silence");
        assert_eq!(error, ModelError::TimedOut { after: limits.idle_timeout });
    }
}

#[tokio::test]
async fn nobody_listening_and_lost_connections_are_told_apart() {
    let refused = {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        format!("http://{}/v1", listener.local_addr().expect("an address"))
    };
    let model = provider(Protocol::OpenAiCompatible, refused, HttpLimits::default());
    let error = model.complete(ask("hi"), None).await.expect_err("nobody");
    assert_eq!(error, ModelError::ConnectionRefused { provider: "p".to_owned() });
    assert!(error.is_transient());

    let cut = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{\"choi";
    for answer in [Answer::Close, Answer::Bytes(cut.to_vec())] {
        let server = Canned::start(vec![answer]);
        let model = provider(Protocol::OpenAiCompatible, server.url(), HttpLimits::default());
        let error = model.complete(ask("hi"), None).await.expect_err("lost");
        assert_eq!(error, ModelError::ConnectionReset { provider: "p".to_owned() });
        assert!(error.is_transient());
    }
}

#[tokio::test]
async fn a_reply_that_is_too_large_is_abandoned() {
    let limits = HttpLimits { max_response_bytes: 1000, ..HttpLimits::default() };
    let server = loopback(json!([{"content": "x".repeat(2000)}, {"content": "x".repeat(2000)}, {"content": "ok"}]));
    let model = provider(Protocol::OpenAiCompatible, server.base_url(), limits);
    let whole = model.complete(ask("hi"), None).await;
    assert_eq!(whole, Err(ModelError::TooLarge { limit: 1000 }));
    assert_eq!(streamed(&model, ask("hi")).await.1, Err(ModelError::TooLarge { limit: 1000 }));
    assert_eq!(model.complete(ask("hi"), None).await.expect("small").content, "ok");
}

#[tokio::test]
async fn more_tokens_than_any_model_takes_are_not_believed() {
    let whole = |usage: u64| {
        let choice = json!({"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"});
        let usage = json!({"prompt_tokens": usage, "completion_tokens": usage, "total_tokens": usage});
        Answer::json(200, &json!({"choices": [choice], "usage": usage}))
    };
    let server = Canned::start(vec![whole(1_000_000), whole(1 << 60)]);
    let model = provider(Protocol::OpenAiCompatible, server.url(), HttpLimits::default());
    for most in [1_000_000, 1 << 24] {
        let reply = model.complete(ask("hi"), None).await.expect("a reply");
        assert_eq!(reply.usage, TokenUsage { input: most, output: most });
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = loopback(json!([{"content": "leaked"}]));
    let location = format!("{}/chat/completions", elsewhere.base_url());
    let redirect = format!("HTTP/1.1 307 x\r\nlocation: {location}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    let server = Canned::start(vec![Answer::Bytes(redirect.into_bytes())]);
    let model = provider(Protocol::OpenAiCompatible, server.url(), HttpLimits::default());
    let error = model.complete(ask("hi"), None).await.expect_err("refused");
    assert_eq!(error.to_string(), "307 Temporary Redirect");
    assert!(elsewhere.requests().is_empty());
}

#[tokio::test]
async fn replies_that_are_none_are_malformed() {
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    for body in ["", "<html>", "{}", "[]", r#"{"choices":[]}"#, r#"{"choices":[{}]}"#, deep.as_str()] {
        let server = Canned::start(vec![Answer::body(200, "application/json", body)]);
        let model = provider(Protocol::OpenAiCompatible, server.url(), HttpLimits::default());
        let error = model.complete(ask("hi"), None).await.expect_err(body);
        assert!(matches!(error, ModelError::Malformed { .. }), "{body}: {error:?}");
        assert!(!error.is_transient());
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_or_reports_a_failure_is_no_reply() {
    let begun = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"half\"}}]}\n\n";
    let server = Canned::start(vec![
        Answer::body(200, "text/event-stream", begun),
        Answer::body(
            200,
            "text/event-stream",
            &format!("{begun}data: {{\"error\":{{\"message\":\"rate limit hit\"}}}}\n\n"),
        ),
    ]);
    let model = provider(Protocol::OpenAiCompatible, server.url(), HttpLimits::default());
    let (pieces, result) = streamed(&model, ask("hi")).await;
    assert_eq!(pieces, ["half"]);
    assert!(matches!(result, Err(ModelError::Malformed { .. })), "{result:?}");
    let (_, result) = streamed(&model, ask("hi")).await;
    assert_eq!(result, Err(ModelError::Reported { message: "rate limit hit".to_owned() }));
}

#[tokio::test]
async fn a_schema_is_sent_only_when_asked_for() {
    let server = loopback(json!([{"content": "{\"a\":1}"}]));
    let request = Request {
        output_schema: Some(json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})),
        tools: vec![add_tool()],
        ..ask("hi")
    };
    compatible(&server).complete(request, None).await.expect("a reply");
    let format = server.requests()[0].response_format.clone().expect("a format");
    assert_eq!(format["type"], "json_schema");
    assert_eq!(format["json_schema"]["schema"]["properties"]["a"]["type"], "integer");
}

#[tokio::test]
async fn names_find_their_provider() {
    let (first, second) = (loopback(json!([{"content": "1"}, {"content": "2"}])), loopback(json!([{"content": "3"}])));
    let settings = |server: &Loopback| ProviderSettings {
        protocol: Protocol::OpenAiCompatible,
        base_url: Some(server.base_url()),
        key: None,
    };
    let model = Providers::new(HttpLimits::default())
        .with_provider("one", settings(&first))
        .and_then(|providers| providers.with_provider("two", settings(&second)))
        .expect("URLs")
        .with_default_model(name("one:small"));
    for (asked, reply) in [("one:llama3:8b", "1"), ("bare", "2"), ("two:m", "3")] {
        let request = Request::new(name(asked), vec![Message::user("hi")]);
        assert_eq!(model.complete(request, None).await.expect("a reply").content, reply);
    }
    let models: Vec<String> = first.requests().into_iter().map(|request| request.model).collect();
    assert_eq!(models, ["llama3:8b", "bare"]);
    assert_eq!(second.requests()[0].model, "m");
    let error = model.check(&name("three:m")).expect_err("unknown");
    assert_eq!(error.to_string(), "there is no provider `three`; known are `one`, `two`");
}

#[tokio::test]
async fn one_server_can_answer_every_name() {
    let server = loopback(json!([{"content": "1"}, {"content": "2"}, {"content": "3"}]));
    let url = server.base_url();
    let model = Providers::from_environment(&|variable| match variable {
        "HOTCELL_MODEL_URL" => Some(url.clone()),
        "HOTCELL_MODEL" => Some("test:general".to_owned()),
        "OPENAI_API_KEY" => Some(String::new()),
        _ => None,
    })
    .expect("an environment");
    assert_eq!(model.default_model(), Some(&name("test:general")));
    for asked in ["test:large", "anthropic:claude", "gpt-4o"] {
        model.check(&name(asked)).expect("known");
        model.complete(Request::new(name(asked), vec![Message::user("hi")]), None).await.expect("a reply");
    }
    let models: Vec<String> = server.requests().into_iter().map(|request| request.model).collect();
    assert_eq!(models, ["test:large", "anthropic:claude", "gpt-4o"]);
}

#[test]
fn what_is_missing_in_the_environment_is_named() {
    let nothing = Providers::from_environment(&|_| None).expect("an environment");
    for (asked, text) in [
        ("openai:gpt", "provider `openai` needs a key; set `OPENAI_API_KEY`"),
        ("gemini:flash", "provider `gemini` needs a key; set `GEMINI_API_KEY`"),
        (
            "antropic:haiku",
            "there is no provider `antropic`; known are `anthropic`, `deepseek`, `gemini`, `mistral`, `ollama`, `openai`, `xai`",
        ),
        (
            "haiku",
            "`haiku` does not name a provider; write `provider:haiku` with one of `anthropic`, `deepseek`, `gemini`, `mistral`, `ollama`, `openai`, `xai`, or set `HOTCELL_MODEL_URL` to a server that has it",
        ),
    ] {
        assert_eq!(nothing.check(&name(asked)).expect_err(asked).to_string(), text);
    }
    nothing.check(&name("ollama:llama3:8b")).expect("needs no key");

    for variable in ["GEMINI_API_KEY", "GOOGLE_API_KEY"] {
        let google = Providers::from_environment(&|asked| (asked == variable).then(|| "k".to_owned()));
        google.expect("an environment").check(&name("gemini:flash")).expect("either will do");
    }
    let one_key = Providers::from_environment(&|variable| (variable == "DEEPSEEK_API_KEY").then(|| "k".to_owned()));
    one_key.expect("an environment").check(&name("chat")).expect("the only provider with a key");
    let elsewhere = Providers::from_environment(&|variable| {
        (variable == "OPENAI_BASE_URL").then(|| "http://127.0.0.1:1/v1".to_owned())
    });
    elsewhere.expect("an environment").check(&name("openai:m")).expect("a server of one's own may need no key");
    let bad = Providers::from_environment(&|variable| (variable == "OPENAI_BASE_URL").then(|| "nowhere".to_owned()));
    assert!(matches!(bad, Err(ModelError::InvalidUrl { .. })));
}

#[tokio::test]
async fn a_server_without_tls_is_unreachable_by_tls() {
    let server = Canned::start(vec![Answer::Close]);
    let url = server.url().replace("http://", "https://");
    let model = provider(Protocol::OpenAiCompatible, url, HttpLimits::default());
    let error = tokio::time::timeout(Duration::from_secs(60), model.complete(ask("hi"), None)).await;
    let error = error.expect("an end").expect_err("no TLS");
    let expected = matches!(error, ModelError::Unreachable { .. } | ModelError::ConnectionReset { .. });
    assert!(expected, "{error:?}");
}

#[tokio::test]
async fn dropping_a_request_closes_its_connection() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let (closed, was_closed) = mpsc::channel();
    let (arrived, has_arrived) = tokio::sync::oneshot::channel();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut buffer = [0; 4096];
        let first = stream.read(&mut buffer).expect("a request");
        arrived.send(first).expect("somebody waits");
        while stream.read(&mut buffer).is_ok_and(|read| read > 0) {}
        closed.send(()).ok();
    });
    let model = provider(Protocol::OpenAiCompatible, url, HttpLimits::default());
    tokio::select! {
        result = model.complete(ask("hi"), None) => panic!("nothing was answered: {result:?}"),
        arrived = has_arrived => assert!(arrived.is_ok_and(|read| read > 0)),
    }
    tokio::task::spawn_blocking(move || was_closed.recv_timeout(Duration::from_secs(60)))
        .await
        .expect("no panic")
        .expect("the connection is closed");
}

#[tokio::test]
async fn settings_that_are_no_numbers_are_not_sent() {
    let server = loopback(json!([]));
    let request = Request { temperature: Some(f64::NAN), ..ask("hi") };
    let error = compatible(&server).complete(request, None).await.expect_err("refused");
    assert_eq!(error.to_string(), "the request cannot be sent to provider `p`: `temperature` is not a number");
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn connecting_times_out() {
    // The system completes the connection, but nobody answers the TLS greeting.
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let url = format!("https://{}", listener.local_addr().expect("an address"));
    let limits = HttpLimits { connect_timeout: Duration::from_millis(50), ..HttpLimits::default() };
    let error = provider(Protocol::OpenAiCompatible, url, limits).complete(ask("hi"), None).await;
    assert_eq!(error, Err(ModelError::TimedOut { after: limits.connect_timeout }));
}
