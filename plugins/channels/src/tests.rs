#![expect(clippy::expect_used, reason = "a test that fails says where")]

use hotcell_plugin::{Json, json};

use super::PLUGIN;

fn receive(provider: &str, body: &Json, settings: Json) -> Json {
    let arguments = json!({ "provider": provider, "body": body.to_string(), "settings": settings });
    PLUGIN.call_tool("receive", arguments).expect("an answer")
}

/// What of the one message is of interest.
fn message(provider: &str, body: &Json, settings: Json) -> Json {
    let received = receive(provider, body, settings);
    let message = received["messages"][0].clone();
    assert!(message.is_object() && received["messages"].as_array().is_some_and(|all| all.len() == 1), "{received}");
    message
}

fn has(found: &Json, wanted: Json) {
    for (name, value) in wanted.as_object().expect("an object") {
        assert_eq!(&found[name], value, "`{name}` of {found}");
    }
}

fn post(provider: &str, settings: Json, to: Json, text: &str, kept: Json, replies: Json) -> Json {
    let arguments = json!({
        "provider": provider, "settings": settings, "to": to, "text": text, "key": "k", "kept": kept, "replies": replies,
    });
    PLUGIN.call_tool("post", arguments).expect("a step")
}

fn slack(event: Json) -> Json {
    json!({"type": "event_callback", "event_id": "E1", "authorizations": [{"user_id": "UBOT"}], "event": event})
}

#[test]
fn slack_messages() {
    let direct = json!({"type": "message", "channel": "D1", "channel_type": "im", "user": "U5", "text": "a &lt; b", "ts": "1.5"});
    has(
        &message("slack", &slack(direct), json!({})),
        json!({"ids": ["E1"], "chat": "D1", "thread": null, "is_direct": true, "answers_chat": true, "text": "a < b", "sender": "U5"}),
    );
    let named = json!({"type": "message", "channel": "C1", "channel_type": "channel", "user": "U5", "ts": "1.5",
        "text": "<@UBOT> see <https://x.invalid/a|that> in <#C2|ops>, <@U7>"});
    has(
        &message("slack", &slack(named), json!({})),
        json!({"is_addressed": true, "is_direct": false, "thread": "1.5", "in_thread": false, "answers_chat": false,
            "text": "see https://x.invalid/a in #ops, <@U7>"}),
    );
    let mention = json!({"type": "app_mention", "channel": "C1", "user": "U5", "ts": "1.5", "text": "<@U0> now", "thread_ts": "1.1"});
    let body = json!({"type": "event_callback", "event_id": "E2", "event": mention});
    has(
        &message("slack", &body, json!({})),
        json!({"is_addressed": true, "text": "now", "thread": "1.1", "in_thread": true}),
    );
    let bot = json!({"type": "message", "channel": "C1", "user": "U5", "bot_id": "B1", "ts": "1.5", "text": "x"});
    has(&message("slack", &slack(bot), json!({})), json!({"is_bot": true, "is_addressed": false}));
    let own = json!({"type": "message", "channel": "C1", "user": "UBOT", "ts": "1.5", "text": "x"});
    has(&message("slack", &slack(own), json!({})), json!({"is_bot": true}));
}

#[test]
fn slack_says_other_things_too() {
    let check = receive("slack", &json!({"type": "url_verification", "challenge": "abc"}), json!({}));
    assert_eq!(check["reply"], json!({"challenge": "abc"}));
    let edit = slack(json!({"type": "message", "subtype": "message_changed", "channel": "C1", "ts": "1"}));
    for ignored in [edit, slack(json!({"type": "reaction_added"})), json!({"type": "app_rate_limited"})] {
        let received = receive("slack", &ignored, json!({}));
        assert!(received["ignored"].is_string() && received["messages"] == json!([]), "{received}");
    }
    let form = |body: &str| {
        PLUGIN.call_tool("receive", json!({"provider": "slack", "body": body, "settings": {}})).expect("an answer")
    };
    let command =
        form("token=x&command=%2Fask&text=how+much%3F+%C3%A4&user_id=U1&channel_id=C1&channel_name=ops&trigger_id=7.8");
    has(&command["messages"][0], json!({"text": "how much? ä", "is_addressed": true, "ids": ["7.8"], "chat": "C1"}));
    for broken in ["", "x", "token=x&team_id=T1&text=hi", "{\"type\":", "[]", "{}", "{\"type\":\"event_callback\"}"] {
        assert!(form(broken)["malformed"].is_string(), "{broken}");
    }
    assert!(form("payload=%7B%7D")["ignored"].is_string());
    assert!(form(&"[".repeat(100_000))["malformed"].is_string());
    assert!(form(&format!("{{\"type\":{}", "[".repeat(100_000)))["malformed"].is_string());
}

#[test]
fn telegram_messages() {
    let update = |message: Json| json!({"update_id": 7, "message": message});
    let private = json!({"message_id": 1, "chat": {"id": 60, "type": "private"}, "from": {"id": 60, "is_bot": false}, "text": "yes"});
    has(
        &message("telegram", &update(private), json!({})),
        json!({"ids": ["7"], "chat": "60", "sender": "60", "text": "yes", "is_direct": true, "answers_chat": true}),
    );
    let group = |text: &str, entities: Json| {
        update(
            json!({"message_id": 1, "chat": {"id": -70, "type": "supergroup"}, "from": {"id": 5}, "text": text, "entities": entities}),
        )
    };
    let mention = |offset: u32, length: u32| json!([{"type": "mention", "offset": offset, "length": length}]);
    for (text, marks, settings, addressed, said) in [
        ("hello", json!([]), json!({}), false, "hello"),
        ("@OpsBot what?", mention(0, 7), json!({}), true, "what?"),
        // Offsets count UTF-16 units.
        ("😀 @OpsBot", mention(3, 7), json!({"bot_username": "opsbot"}), true, "😀"),
        ("@other what?", mention(0, 6), json!({}), false, "@other what?"),
        ("@OpsBot what?", mention(0, 7), json!({"bot_username": "@mybot"}), false, "@OpsBot what?"),
        ("/ask it", json!([{"type": "bot_command", "offset": 0, "length": 4}]), json!({}), true, "/ask it"),
        // Marks that lead out of the text, or nowhere.
        ("x", mention(0, 99), json!({}), false, "x"),
        ("x", json!([{"type": "mention", "offset": u64::MAX, "length": u64::MAX}, 5, null]), json!({}), false, "x"),
    ] {
        let found = message("telegram", &group(text, marks), settings);
        has(&found, json!({"is_addressed": addressed, "text": said, "is_direct": false}));
    }
    let bot =
        json!({"message_id": 1, "chat": {"id": 1, "type": "private"}, "from": {"id": 60, "is_bot": true}, "text": "x"});
    has(&message("telegram", &update(bot), json!({})), json!({"is_bot": true}));
    let other = receive("telegram", &json!({"update_id": 1, "edited_message": {}}), json!({}));
    assert!(other["ignored"].is_string());
}

#[test]
fn discord_interactions() {
    assert_eq!(receive("discord", &json!({"type": 1}), json!({}))["reply"], json!({"type": 1}));
    let command = json!({"type": 2, "id": "11", "channel_id": "8800", "guild_id": "1", "member": {"user": {"id": "5"}},
        "channel": {"id": "8800", "type": 0},
        "data": {"name": "ask", "options": [{"name": "sub", "options": [{"name": "text", "value": "why"}, {"name": "n", "value": 3}]}]}});
    assert_eq!(receive("discord", &command, json!({}))["reply"], json!({"type": 5}));
    has(
        &message("discord", &command, json!({})),
        json!({"ids": ["11"], "chat": "8800", "thread": null, "text": "why 3", "sender": "5", "is_addressed": true, "answers_chat": false}),
    );
    let in_thread = json!({"type": 2, "id": "12", "channel_id": "9", "guild_id": "1", "member": {"user": {"id": "5"}},
        "channel": {"id": "9", "type": 11, "parent_id": "8800"}, "data": {"name": "ask"}});
    has(
        &message("discord", &in_thread, json!({})),
        json!({"chat": "8800", "thread": "9", "in_thread": true, "text": "/ask"}),
    );
    let direct = json!({"type": 2, "id": "13", "channel_id": "4", "user": {"id": "5"}, "data": {"name": "ask"}});
    has(&message("discord", &direct, json!({})), json!({"is_direct": true, "answers_chat": true}));
}

#[test]
fn whatsapp_messages() {
    let post = |value: Json| json!({"object": "whatsapp_business_account", "entry": [{"changes": [{"field": "messages", "value": value}]}]});
    let text = |id: &str| json!({"from": "43", "id": id, "type": "text", "text": {"body": "Tisch?"}});
    let two = post(json!({"metadata": {"phone_number_id": "5551"}, "messages": [text("a"), text("b")]}));
    let received = receive("whatsapp", &two, json!({"post_channel": "5551"}));
    assert_eq!(received["messages"].as_array().map(Vec::len), Some(2));
    has(
        &received["messages"][1],
        json!({"ids": ["b"], "chat": "43", "also": ["5551"], "text": "Tisch?", "answers_chat": true}),
    );
    for ignored in [
        two,
        post(json!({"statuses": [{"id": "a", "status": "read"}]})),
        post(json!({"messages": [{"from": "43", "id": "a", "type": "reaction"}]})),
        json!({"object": "page"}),
    ] {
        let received = receive("whatsapp", &ignored, json!({"post_channel": "7"}));
        assert!(received["ignored"].is_string() && received["messages"] == json!([]), "{received}");
    }
    let nobody = post(json!({"messages": [{"id": "a", "type": "text", "text": {"body": "x"}}]}));
    assert!(receive("whatsapp", &nobody, json!({}))["malformed"].is_string());
}

#[test]
fn teams_activities() {
    let activity = |conversation: Json, more: Json| {
        let mut activity = json!({"type": "message", "id": "1", "serviceUrl": "https://smba.invalid/", "from": {"id": "29:u"},
            "recipient": {"id": "28:us"}, "conversation": conversation, "text": "a"});
        for (name, value) in more.as_object().expect("an object") {
            activity[name] = value.clone();
        }
        activity
    };
    let personal = activity(json!({"id": "a:conv", "conversationType": "personal"}), json!({}));
    has(
        &message("teams", &personal, json!({})),
        json!({"chat": "a:conv", "thread": null, "is_direct": true, "address": {"service_url": "https://smba.invalid/"}}),
    );
    let named = json!({"text": "<at>Ops</at>&nbsp;go", "entities": [{"type": "mention", "mentioned": {"id": "28:us"}, "text": "<at>Ops</at>"}]});
    let channel = activity(json!({"id": "19:x@thread.tacv2;messageid=9", "conversationType": "channel"}), named);
    has(
        &message("teams", &channel, json!({})),
        json!({"chat": "19:x@thread.tacv2", "thread": "9", "in_thread": true, "is_addressed": true, "text": "go"}),
    );
    let typing = json!({"type": "typing"});
    assert!(receive("teams", &typing, json!({}))["ignored"].is_string());
}

#[test]
fn texts_name_nobody_and_are_posted_in_pieces() {
    let to = || json!({"chat": "C1", "thread": "1.1"});
    let step = post("slack", json!({}), to(), "<!channel> & <@U1>", json!([]), json!([]));
    assert_eq!(step["json"]["text"], "&lt;!channel&gt; &amp; &lt;@U1&gt;");
    assert_eq!(step["json"]["thread_ts"], "1.1");
    assert_eq!(step["headers"][0]["value"], json!({"text": "Bearer ", "secret": "bot_token"}));
    let long = format!("{} {}", "a".repeat(1500), "b".repeat(1500));
    let first = post("discord", json!({}), to(), &long, json!([]), json!([]));
    assert_eq!(first["json"]["content"].as_str().map(str::len), Some(1500));
    assert_eq!(first["json"]["allowed_mentions"], json!({"parse": []}));
    let replies = json!([{"status": 200, "body": "{\"id\": \"m1\"}"}]);
    let second = post("discord", json!({}), to(), &long, json!([]), replies);
    assert_ne!(first["json"]["nonce"], second["json"]["nonce"]);
    let replies = json!([{"status": 200, "body": "{\"id\": \"m1\"}"}, {"status": 200, "body": "{\"id\": \"m2\"}"}]);
    let done = post("discord", json!({}), json!({"chat": "C1"}), &long, json!([]), replies);
    assert_eq!(done, json!({"step": "posted", "chat": "C1", "message": "m1", "thread": "m1"}));
    let smile = "😀".repeat(3000);
    let step = post("telegram", json!({}), to(), &smile, json!([]), json!([]));
    assert_eq!(step["json"]["text"].as_str().map(|text| text.encode_utf16().count()), Some(4096));
}

#[test]
fn what_a_reply_means() {
    let cases = [
        (
            "slack",
            200,
            r#"{"ok": true, "ts": "1.5", "channel": "C9"}"#,
            json!({"step": "posted", "chat": "C9", "message": "1.5", "thread": "1.5"}),
        ),
        ("slack", 200, r#"{"ok": false, "error": "channel_not_found"}"#, json!({"step": "failed", "last": true})),
        ("slack", 200, r#"{"ok": false, "error": "ratelimited"}"#, json!({"step": "failed", "last": false})),
        ("slack", 200, "<html>", json!({"step": "failed", "last": true})),
        ("slack", 503, "", json!({"step": "failed", "last": false})),
        (
            "telegram",
            200,
            r#"{"ok": true, "result": {"message_id": 8, "chat": {"id": -7}}}"#,
            json!({"step": "posted", "chat": "-7", "message": "8"}),
        ),
        (
            "telegram",
            403,
            r#"{"ok": false, "description": "bot was blocked"}"#,
            json!({"step": "failed", "last": true}),
        ),
        ("telegram", 429, r#"{"ok": false}"#, json!({"step": "failed", "last": false})),
        (
            "whatsapp",
            200,
            r#"{"messages": [{"id": "w1"}], "contacts": [{"wa_id": "43"}]}"#,
            json!({"step": "posted", "chat": "43", "message": "w1"}),
        ),
        ("whatsapp", 200, r#"{"error": {"message": "no"}}"#, json!({"step": "failed", "last": true})),
        ("discord", 404, r#"{"message": "Unknown Channel"}"#, json!({"step": "failed", "last": true})),
    ];
    for (provider, status, body, wanted) in cases {
        let replies = json!([{"status": status, "body": body}]);
        let step = post(provider, json!({"post_channel": "5"}), json!({"chat": "C1"}), "x", json!([]), replies);
        has(&step, wanted);
    }
    assert_eq!(post("whatsapp", json!({}), json!({"chat": "43"}), "x", json!([]), json!([]))["step"], "failed");
    assert_eq!(post("slack", json!({}), json!({"chat": "43"}), " ", json!([]), json!([]))["step"], "failed");
}

#[test]
fn teams_logs_in_first() {
    let (settings, to) = (json!({"tenant_id": "t-1"}), json!({"chat": "19:x", "thread": "9"}));
    let login = post("teams", settings.clone(), to.clone(), "x", json!([]), json!([]));
    assert_eq!((login["to"].clone(), login["path"][0]["text"].clone()), (json!("login"), json!("t-1")));
    assert_eq!(login["keep"], json!({"name": "access_token", "at": "/access_token", "seconds": "/expires_in"}));
    let refused = json!([{"status": 401, "body": "{\"error\": \"invalid_client\"}"}]);
    has(&post("teams", settings.clone(), to.clone(), "x", json!([]), refused), json!({"step": "failed", "last": true}));
    let step = post("teams", settings.clone(), to.clone(), "x", json!(["access_token"]), json!([]));
    has(&step, json!({"step": "request", "to": "service"}));
    assert_eq!(step["path"][2]["text"], "19:x;messageid=9");
    assert_eq!(step["headers"][0]["value"]["secret"], "access_token");
    let replies = json!([{"status": 201, "body": "{\"id\": \"m1\"}"}]);
    let done = post("teams", settings, to, "x", json!(["access_token"]), replies);
    assert_eq!(done, json!({"step": "posted", "chat": "19:x", "message": "m1", "thread": "9"}));
}
