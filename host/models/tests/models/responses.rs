//! Servers that speak Responses, over real HTTP, and servers that want to know who asks.

use crate::support::{ask, name, provider};
use hotcell_loopback::tls::{certificates, in_front_of};
use hotcell_loopback::{Loopback, Script};
use hotcell_models::{
    Api, Finish, HttpLimits, Message, Model, ModelError, Protocol, Providers, Reply, Request, Server, TlsFiles,
    TokenUsage, ToolSpec,
};
use serde_json::{Value, json};

fn loopback(replies: Value) -> Loopback {
    Loopback::start(Script::from_json(&replies).expect("a script")).expect("a server")
}

fn of(protocol: Protocol, server: &Loopback) -> Providers {
    provider(protocol, server.base_url(), HttpLimits::default())
}

fn request(messages: Vec<Message>) -> Request {
    let parameters = json!({"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]});
    let add = ToolSpec { name: "add".to_owned(), description: "adds".to_owned(), parameters };
    Request { api: Api::Responses, tools: vec![add], ..Request::new(name("p:m"), messages) }
}

async fn streamed(model: &Providers, request: Request) -> (String, Result<Reply, ModelError>) {
    let mut text = String::new();
    let mut on_text = |piece: &str| text.push_str(piece);
    let reply = model.complete(request, Some(&mut on_text)).await;
    (text, reply)
}

#[tokio::test]
async fn a_conversation_with_tools_arrives_as_it_is() {
    let server = loopback(json!([
        {"content": "let me see", "tool_calls": [{"name": "add", "arguments": "{\"a\": 1}"}], "usage": {"prompt_tokens": 5, "completion_tokens": 2}},
        {"content": "2"},
    ]));
    let model = of(Protocol::OpenAiCompatible, &server);
    let mut messages = vec![Message::system("Be brief."), Message::user("1 + 1?")];
    let more = json!({"reasoning": {"effort": "low"}}).as_object().cloned().expect("an object");
    let first = Request {
        temperature: Some(0.5),
        top_p: Some(0.9),
        max_tokens: Some(50),
        more,
        output_schema: Some(json!({"type": "object", "properties": {"n": {"type": "number"}}})),
        ..request(messages.clone())
    };
    let reply = model.complete(first, None).await.expect("a reply");
    assert_eq!((reply.content.as_str(), &reply.finish), ("let me see", &Finish::ToolCalls));
    assert_eq!(reply.usage, TokenUsage { input: 5, output: 2 });
    let call = reply.tool_calls[0].clone();
    assert_eq!((call.name.as_str(), call.arguments.as_str()), ("add", "{\"a\": 1}"));
    messages.extend([reply.into_message(), Message::tool(&*call.id, "2")]);
    let last = model.complete(request(messages), None).await.expect("a reply");
    assert_eq!((last.content.as_str(), last.finish), ("2", Finish::Stop));

    let seen = server.requests();
    assert_eq!((seen[0].temperature, seen[0].top_p, seen[0].max_tokens), (Some(0.5), Some(0.9), Some(50)));
    assert_eq!(seen[0].body["reasoning"], json!({"effort": "low"}));
    assert_eq!(seen[0].response_format.as_ref().map(|format| format["type"].clone()), Some(json!("json_schema")));
    assert_eq!(seen[0].tool_names(), ["add"]);
    let told: Vec<Value> = seen[1].messages.iter().map(hotcell_loopback::RequestMessage::to_json).collect();
    let called =
        json!({"role": "assistant", "content": "let me see", "tool_calls": [{"name": "add", "arguments": {"a": 1}}]});
    let expected = [
        json!({"role": "system", "content": "Be brief."}),
        json!({"role": "user", "content": "1 + 1?"}),
        called,
        json!({"role": "tool", "content": "2"}),
    ];
    assert_eq!(told, expected);
    assert_eq!(seen[1].messages[2].tool_calls[0].id, call.id);
    assert!(server.problems().is_empty(), "{:?}", server.problems());
}

#[tokio::test]
async fn streaming_gives_what_not_streaming_gives() {
    for reply in [
        json!({"content": "Grüße, Welt: {\"a\": 1}\n and more", "usage": {"prompt_tokens": 5, "completion_tokens": 7}}),
        json!({"tool_calls": [{"name": "add", "arguments": {"a": 2}}, {"name": "add", "arguments": "{\"a\": 1,"}], "content": "thinking"}),
        json!({"status": 429, "error": "slow down"}),
    ] {
        let (whole, pieces) = (loopback(json!([reply])), loopback(json!([reply])));
        let wanted = request(vec![Message::user("hi")]);
        let expected = of(Protocol::OpenAi, &whole).complete(wanted.clone(), None).await;
        let (text, received) = streamed(&of(Protocol::OpenAi, &pieces), wanted).await;
        assert!(pieces.requests()[0].stream && !whole.requests()[0].stream);
        let plain = |reply: Result<Reply, ModelError>| reply.map(|reply| Reply { provider_state: None, ..reply });
        assert_eq!(plain(received), plain(expected.clone()));
        match expected {
            Ok(reply) => assert_eq!(text, reply.content),
            Err(error) => assert!(matches!(error, ModelError::Status { status: 429, .. }), "{error}"),
        }
    }
}

#[tokio::test]
async fn whoever_speaks_something_else_is_not_asked_by_responses() {
    let server = loopback(json!([]));
    for protocol in [Protocol::Anthropic, Protocol::Gemini] {
        let wanted = Request { api: Api::Responses, ..ask("hi") };
        let refused = of(protocol, &server).complete(wanted, None).await.expect_err("refused").to_string();
        assert!(refused.contains("not that of Responses"), "{refused}");
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_server_that_wants_a_certificate_is_shown_the_right_one() {
    let folder = tempfile::tempdir().expect("a folder");
    certificates(folder.path()).expect("certificates");
    let server = loopback(json!([{"content": "hello"}, {"content": "again"}]));
    let behind = url::Url::parse(&server.base_url()).expect("an address");
    let behind = behind.socket_addrs(|| None).expect("an address")[0];
    let port = in_front_of(folder.path(), behind).await.expect("a server");
    let model = Providers::new(HttpLimits::default());
    let file = |name: &str| Some(folder.path().join(name));
    let own =
        TlsFiles { ca_file: file("ca.pem"), client_certificate: file("client.pem"), client_key: file("client.key") };
    let asking =
        |url: String, tls: Option<TlsFiles>| Request { server: Some(Server::PrivateAddress(url)), tls, ..ask("hi") };
    let secure = || format!("https://localhost:{port}/v1");
    for expected in ["hello", "again"] {
        let reply = model.complete(asking(secure(), Some(own.clone())), None).await.expect("a reply");
        assert_eq!(reply.content, expected);
    }
    let stranger =
        TlsFiles { client_certificate: file("stranger.pem"), client_key: file("stranger.key"), ..own.clone() };
    let nobody = TlsFiles { client_certificate: None, client_key: None, ..own.clone() };
    let missing = TlsFiles { client_key: file("nowhere.key"), ..own.clone() };
    for (url, tls, expected) in [
        (secure(), None, "certificate"),
        (secure(), Some(nobody), "CertificateRequired"),
        (secure(), Some(stranger), "alert"),
        (secure(), Some(missing), "nowhere.key` cannot be used"),
        (server.base_url(), Some(own), "certificates need an address with `https://`"),
    ] {
        let refused = model.complete(asking(url, tls), None).await.expect_err(expected).to_string();
        assert!(refused.contains(expected), "{expected}: {refused}");
    }
}
