//! Providers without an address of their own: they are asked where a request says, with the operator's key.

use std::{fs, path::Path};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hotcell_models::{Message, Model, Providers, Request, Server};
use ring::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
use serde_json::{Value, json};

use crate::support::{Answer, Canned, name};

fn reply() -> Answer {
    let reply = json!({
        "id": "c1", "object": "chat.completion", "created": 1, "model": "small",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "done"}}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4},
    });
    Answer::json(200, &reply)
}

fn asking(server: &Canned, provider: &str) -> Request {
    Request {
        server: Some(Server::ProviderAt {
            provider: provider.to_owned(),
            address: format!("{}/v1", server.url()),
            is_private: true,
        }),
        ..Request::new(name("small"), vec![Message::user("hi")])
    }
}

#[tokio::test]
async fn a_server_is_asked_with_the_key_of_its_provider() {
    let server = Canned::start(vec![reply()]);
    let nothing = Providers::from_environment(&|_| None).expect("an environment");
    for (provider, text) in [
        ("foundry", "provider `foundry` needs a key; set `AZURE_FOUNDRY_API_KEY`"),
        ("vertex", "provider `vertex` needs a key; set `GOOGLE_APPLICATION_CREDENTIALS`"),
        ("foundary", "there is no provider `foundary`"),
    ] {
        let refused = nothing.complete(asking(&server, provider), None).await.expect_err(provider).to_string();
        assert!(refused.contains(text), "{refused}");
    }
    let model = Providers::from_environment(&|variable| match variable {
        "AZURE_FOUNDRY_TOKEN" => Some("t0ken".to_owned()),
        "OPENAI_API_KEY" => Some("another".to_owned()),
        _ => None,
    })
    .expect("an environment");
    assert_eq!(model.own_key_variable("foundry"), Some("AZURE_FOUNDRY_TOKEN"));
    assert_eq!(model.complete(asking(&server, "foundry"), None).await.expect("a reply").content, "done");
    let seen = server.only();
    assert_eq!((seen.target.as_str(), seen.header("authorization")), ("/v1/chat/completions", "Bearer t0ken"));
    assert_eq!(seen.body["model"], "small");
}

/// A file with an account whose tokens this server gives.
fn account(folder: &Path, key: &str, tokens: &str) -> String {
    let file = folder.join("account.json");
    let account = json!({
        "type": "service_account", "client_email": "mill@plant.iam.gserviceaccount.com", "private_key": key,
        "token_uri": tokens,
    });
    fs::write(&file, account.to_string()).expect("a file");
    file.to_str().expect("a path").to_owned()
}

fn with_account(file: String) -> Providers {
    Providers::from_environment(&move |variable| (variable == "GOOGLE_APPLICATION_CREDENTIALS").then(|| file.clone()))
        .expect("an environment")
}

#[tokio::test]
async fn a_service_account_signs_for_a_token_and_uses_it_until_it_ends() {
    const KEY: &str = include_str!("service-account.pem");
    let folder = tempfile::tempdir().expect("a folder");
    let token = |text: &str, seconds: u64| Answer::json(200, &json!({"access_token": text, "expires_in": seconds}));
    // The second token is good for no longer than it is used before its end.
    let answers = vec![token("one", 3599), reply(), reply(), token("two", 60), reply(), token("three", 3599), reply()];
    let server = Canned::start(answers);
    let tokens = format!("{}/token", server.url());
    let model = with_account(account(folder.path(), KEY, &tokens));
    for _ in 0..2 {
        assert_eq!(model.complete(asking(&server, "vertex"), None).await.expect("a reply").content, "done");
    }
    let another = with_account(account(folder.path(), KEY, &tokens));
    for _ in 0..2 {
        another.complete(asking(&server, "vertex"), None).await.expect("a reply");
    }
    let seen = server.seen();
    let bearers: Vec<&str> = seen.iter().map(|seen| seen.header("authorization")).collect();
    assert_eq!(bearers, ["", "Bearer one", "Bearer one", "", "Bearer two", "", "Bearer three"]);

    assert_eq!(
        (seen[0].target.as_str(), seen[0].header("content-type")),
        ("/token", "application/x-www-form-urlencoded")
    );
    let fields: Vec<(String, String)> = url::form_urlencoded::parse(seen[0].text.as_bytes()).into_owned().collect();
    assert_eq!(fields[0], ("grant_type".to_owned(), "urn:ietf:params:oauth:grant-type:jwt-bearer".to_owned()));
    let (name, assertion) = &fields[1];
    assert_eq!(name, "assertion");
    let (signed, signature) = assertion.rsplit_once('.').expect("three parts");
    let der: String = KEY.lines().filter(|line| !line.starts_with('-')).collect();
    let der = base64::engine::general_purpose::STANDARD.decode(der).expect("a key");
    let key = RsaKeyPair::from_pkcs8(&der).expect("a key");
    let signature = URL_SAFE_NO_PAD.decode(signature).expect("a signature");
    UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key.public_key().as_ref())
        .verify(signed.as_bytes(), &signature)
        .expect("signed by the account");
    let part = |place: usize| -> Value {
        let part = URL_SAFE_NO_PAD.decode(signed.split('.').nth(place).expect("a part")).expect("base64");
        serde_json::from_slice(&part).expect("JSON")
    };
    assert_eq!(part(0)["alg"], "RS256");
    let claims = part(1);
    assert_eq!(
        (claims["iss"].as_str(), claims["aud"].as_str()),
        (Some("mill@plant.iam.gserviceaccount.com"), Some(tokens.as_str()))
    );
    assert_eq!(claims["exp"].as_u64().expect("a time") - claims["iat"].as_u64().expect("a time"), 3600);
}

#[tokio::test]
async fn what_is_wrong_with_an_account_is_told_without_its_key() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Canned::start(vec![Answer::json(400, &json!({"error": "invalid_grant"}))]);
    let tokens = format!("{}/token", server.url());
    let told = async |file: String| {
        let refused =
            with_account(file).complete(asking(&server, "vertex"), None).await.expect_err("refused").to_string();
        assert!(!refused.contains("MIIE"), "{refused}");
        refused
    };
    let missing = told(folder.path().join("nowhere.json").to_str().expect("a path").to_owned()).await;
    assert!(missing.contains("nowhere.json"), "{missing}");
    let no_key =
        told(account(folder.path(), "-----BEGIN PRIVATE KEY-----\nMIIEx\n-----END PRIVATE KEY-----\n", &tokens)).await;
    assert!(no_key.contains("`private_key`"), "{no_key}");
    let refused = told(account(folder.path(), include_str!("service-account.pem"), &tokens)).await;
    assert!(refused.contains("400") && refused.contains("invalid_grant"), "{refused}");
    let other = folder.path().join("other.json");
    fs::write(&other, r#"{"type": "authorized_user"}"#).expect("a file");
    let other = told(other.to_str().expect("a path").to_owned()).await;
    assert!(other.contains("`authorized_user`"), "{other}");
}
