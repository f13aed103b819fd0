use std::collections::HashMap;

use hotcell_graph::Value as GraphValue;
use hotcell_runtime::WebCall;
use hotcell_runtime::leafmesh::{ChannelSettings, Hidden};
use serde_json::{Value, json};

use super::super::adapter::{Keep, Outgoing, Reply, Step, To};
use super::super::provider::{Moved, Provider};
use super::{Secrets, Text, build, value_of};

fn channel(provider: Provider) -> ChannelSettings {
    ChannelSettings {
        provider: provider.word().to_owned(),
        bot_token: Some(Hidden("77:tok/en".to_owned())),
        signing_secret: Some(Hidden("pass&word".to_owned())),
        verify_token: None,
        listen_channels: Vec::new(),
        post_channel: None,
        service_url: None,
        operators: Vec::new(),
        operators_only: false,
        more: Vec::new(),
    }
}

fn request(request: Value) -> Outgoing {
    let mut all = json!({"step": "request", "method": "POST", "to": "api", "path": [], "headers": [], "json": null, "form": [], "keep": null});
    for (name, value) in request.as_object().expect("an object") {
        all[name] = value.clone();
    }
    match serde_json::from_value(all).expect("a step") {
        Step::Request(request) => request,
        other => panic!("{other:?}"),
    }
}

fn built(provider: Provider, channel: &ChannelSettings, address: Value, what: Value) -> Result<WebCall, String> {
    let to = To { chat: "c".to_owned(), thread: None, address };
    let text = Text { seat: "ops", channel, to: &to, text: "x", key: "k" };
    let kept = HashMap::from([("access_token".to_owned(), "tk-8".to_owned())]);
    build(&Moved::new(), provider, &text, &Secrets { channel, kept }, &request(what))
}

#[test]
fn a_secret_goes_where_it_belongs() {
    let with = |name: &str| json!([{"name": "authorization", "value": {"text": "Bearer ", "secret": name}}]);
    let path = json!([{"text": "a/b", "secret": null}, {"text": "bot", "secret": "bot_token"}]);
    let call = built(
        Provider::Telegram,
        &channel(Provider::Telegram),
        json!({}),
        json!({"path": path, "headers": with("bot_token"), "json": {"text": "bot_token"}}),
    )
    .expect("a request");
    // What is put into an address stays in its segment.
    assert_eq!(call.url, "https://api.telegram.org/a%2Fb/bot77:tok%2Fen");
    assert!(call.headers.contains(&("authorization".to_owned(), "Bearer 77:tok/en".to_owned())));
    assert_eq!(call.body, Some(GraphValue::from(&json!({"text": "bot_token"}))));

    let service = json!({"service_url": "https://smba.example.org/emea/"});
    for (provider, to, secret, may) in [
        (Provider::Slack, "api", "bot_token", true),
        (Provider::Slack, "api", "signing_secret", false),
        (Provider::Slack, "api", "access_token", false),
        (Provider::Slack, "api", "verify_token", false),
        (Provider::Slack, "login", "bot_token", false),
        (Provider::Teams, "login", "signing_secret", true),
        (Provider::Teams, "login", "access_token", false),
        (Provider::Teams, "service", "access_token", true),
        (Provider::Teams, "service", "signing_secret", false),
        (Provider::Teams, "service", "bot_token", false),
        (Provider::Slack, "https://evil.invalid", "bot_token", false),
    ] {
        let what = json!({"to": to, "path": [{"text": "x", "secret": null}], "headers": with(secret)});
        let call = built(provider, &channel(provider), service.clone(), what);
        assert_eq!(call.is_ok(), may, "{provider:?} {to} {secret}: {:?}", call.err());
    }
    for segment in ["", ".", ".."] {
        let what = json!({"path": [{"text": segment, "secret": null}]});
        assert!(built(Provider::Slack, &channel(Provider::Slack), json!({}), what).is_err(), "{segment}");
    }
}

#[test]
fn an_address_of_a_service_is_looked_at() {
    let call = |channel: &ChannelSettings, address: Value| {
        let what =
            json!({"to": "service", "path": [{"text": "v3", "secret": null}, {"text": "a:b;c=1", "secret": null}]});
        built(Provider::Teams, channel, address, what).map(|call| call.url)
    };
    let (plain, mut own) = (channel(Provider::Teams), channel(Provider::Teams));
    own.service_url = Some("http://127.0.0.1:9/svc".to_owned());
    assert_eq!(call(&own, Value::Null), Ok("http://127.0.0.1:9/svc/v3/a:b;c=1".to_owned()));
    let said = |address: &str| call(&plain, json!({ "service_url": address }));
    assert_eq!(said("https://smba.example.org/emea/"), Ok("https://smba.example.org/emea/v3/a:b;c=1".to_owned()));
    for wrong in [
        "http://smba.example.org/",
        "http://127.0.0.1:9/svc",
        "https://user@smba.example.org/",
        "https://:pass@smba.example.org/",
        "https://smba.example.org/?x=1",
        "https://smba.example.org/#x",
        "file:///etc/passwd",
        "smba.example.org",
        "",
    ] {
        assert!(said(wrong).is_err(), "{wrong}");
    }
    assert!(call(&plain, Value::Null).is_err_and(|reason| reason.contains("service_url")));
}

#[test]
fn what_comes_back_shows_no_secret() {
    let channel = channel(Provider::Teams);
    let kept = HashMap::from([("access_token".to_owned(), "tk-8".to_owned())]);
    let secrets = Secrets { channel: &channel, kept };
    let text = "77:tok/en pass&word tk-8 77%3Atok%2Fen pass%26word";
    assert_eq!(secrets.taken_out(text), ["(secret)"; 5].join(" "));
}

#[test]
fn a_token_is_kept_for_as_long_as_it_is_good() {
    let keep =
        Keep { name: "access_token".to_owned(), at: "/access_token".to_owned(), seconds: "/expires_in".to_owned() };
    let found = |status: u16, body: &str| {
        let reply = Reply { status, body: body.to_owned() };
        value_of(&keep, &reply).map(|(_, value, length)| (value, length.as_secs()))
    };
    assert_eq!(found(200, r#"{"access_token": "t", "expires_in": 3600}"#), Some(("t".to_owned(), 3540)));
    assert_eq!(found(200, r#"{"access_token": "t"}"#), Some(("t".to_owned(), 60)));
    assert_eq!(found(200, r#"{"access_token": "t", "expires_in": 99999999999}"#), Some(("t".to_owned(), 86_340)));
    for none in [
        (401, r#"{"access_token": "t"}"#),
        (200, r#"{"access_token": ""}"#),
        (200, r#"{"access_token": 5}"#),
        (200, "x"),
    ] {
        assert_eq!(found(none.0, none.1), None, "{none:?}");
    }
}
