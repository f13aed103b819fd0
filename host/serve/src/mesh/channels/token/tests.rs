use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::{Key, Token};

/// Tokens that were signed with a key which is thrown away, for `app-11`, at this time.
const TOKENS: &str = include_str!("tokens.json");
const NOW: u64 = 1_780_315_200;

fn tokens() -> Value {
    serde_json::from_str(TOKENS).expect("JSON")
}

fn key(kid: &str) -> Key {
    let key = json!({"kty": "RSA", "kid": kid, "n": tokens()["n"], "e": "AQAB", "endorsements": ["msteams"]});
    serde_json::from_value(key).expect("a key")
}

fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(NOW)
}

fn looked_at(token: &str, key: &Key, app: &str) -> Result<Option<String>, &'static str> {
    Token::parse(token).and_then(|token| token.claims(key, app, now())).map(|claims| claims.service_url)
}

#[test]
fn tokens_count_that_are_signed_and_meant_for_us_now() {
    let tokens = &tokens()["tokens"];
    let service = Some("https://smba.trafficmanager.net/emea/".to_owned());
    for good in ["good", "good384", "good512", "list", "just", "soon"] {
        let token = tokens[good].as_str().expect("a token");
        assert_eq!(looked_at(token, &key("k-1"), "app-11"), Ok(service.clone()), "{good}");
    }
    for bad in ["none", "hs", "kid", "nokid", "crit", "aud", "noaud", "iss", "expired", "early", "noexp"] {
        let token = tokens[bad].as_str().expect("a token");
        assert!(looked_at(token, &key("k-1"), "app-11").is_err(), "{bad}");
    }
    // What it says of the service is held against the post.
    let claims = |name: &str| looked_at(tokens[name].as_str().expect("a token"), &key("k-1"), "app-11");
    assert_eq!(claims("othersvc"), Ok(Some("https://evil.invalid/".to_owned())));
    assert_eq!(claims("nosvc"), Ok(None));
}

#[test]
fn a_token_with_one_sign_changed_is_none() {
    let tokens = tokens();
    let good = tokens["tokens"]["good"].as_str().expect("a token");
    for place in (0..good.len()).step_by(7) {
        let mut changed = good.as_bytes().to_vec();
        changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).expect("ASCII");
        // The last signs of a signature may say nothing.
        assert!(looked_at(&changed, &key("k-1"), "app-11").is_err() || place + 3 > good.len(), "{place}");
    }
    for broken in ["", ".", "..", "a.b.c", "a.b", "....", &good[1..], &format!("{good}.x"), &"a".repeat(20_000)] {
        assert!(looked_at(broken, &key("k-1"), "app-11").is_err(), "{broken:.40}");
    }
    let (signed, _) = good.rsplit_once('.').expect("three parts");
    assert!(looked_at(&format!("{signed}."), &key("k-1"), "app-11").is_err());
}

#[test]
fn only_keys_of_the_right_kind_sign() {
    let tokens = tokens();
    let good = tokens["tokens"]["good"].as_str().expect("a token");
    assert!(looked_at(good, &key("k-2"), "app-11").is_err());
    assert!(looked_at(good, &key("k-1"), "").is_err());
    for wrong in [
        json!({"kty": "oct", "kid": "k-1", "k": "AAAA"}),
        json!({"kty": "RSA", "kid": "k-1"}),
        json!({"kty": "RSA", "kid": "k-1", "n": "!", "e": "AQAB"}),
        json!({"kty": "RSA", "kid": "k-1", "n": "AQAB", "e": "AQAB"}),
        json!({"kty": "RSA", "n": tokens["n"], "e": "AQAB"}),
    ] {
        let key: Key = serde_json::from_value(wrong.clone()).expect("a key");
        assert!(looked_at(good, &key, "app-11").is_err(), "{wrong}");
        assert!(!key.endorses("msteams"));
    }
    assert!(key("k-1").endorses("msteams") && !key("k-1").endorses("webchat"));
}
