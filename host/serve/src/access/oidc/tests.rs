use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use hotcell_runtime::CancellationToken;
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use url::Url;

use super::keys::Keys;
use super::{OidcSettings, TenantOf, claims, with_groups_of_tokens};
use crate::groups::Groups;
use crate::jwt::{ALGORITHMS, Algorithm};
use crate::role::Role;

fn eddsa() -> Algorithm {
    ALGORITHMS.into_iter().find(|known| known.name == "EdDSA").expect("it is known")
}

/// Somebody who says where keys are and what they are, and counts how often that is asked for.
#[derive(Clone)]
struct Issuer {
    url: Url,
    says: Arc<Mutex<Says>>,
}

#[derive(Default)]
struct Says {
    configuration: Value,
    keys: Value,
    asked: usize,
    fails: bool,
}

impl Issuer {
    async fn serve() -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url: Url = format!("http://{}", listener.local_addr().expect("an address")).parse().expect("an address");
        let says = Says { keys: json!({ "keys": [] }), ..Says::default() };
        let issuer = Issuer { url, says: Arc::new(Mutex::new(says)) };
        let own = json!({ "issuer": issuer.name(), "jwks_uri": format!("{}keys", issuer.url) });
        issuer.says.lock().expect("one").configuration = own;
        let router = Router::new().fallback(answer).with_state(issuer.clone());
        tokio::spawn(hotcell_http::serve(listener, router, hotcell_http::Limits::default(), CancellationToken::new()));
        issuer
    }

    /// As its tokens would say it: with a path, which belongs to it.
    fn name(&self) -> String {
        format!("{}realm", self.url)
    }

    fn reader(&self, place: Option<Url>) -> Keys {
        let address = self.name().parse().expect("an address");
        Keys::new(&address, &self.name(), place, None).expect("a client")
    }

    fn change(&self, change: impl FnOnce(&mut Says)) {
        change(&mut self.says.lock().expect("one"));
    }

    fn has_keys(&self, kids: &[&str]) {
        let key = |kid: &&str| json!({ "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo", "kid": kid });
        self.change(|says| says.keys = json!({ "keys": kids.iter().map(key).collect::<Vec<_>>() }));
    }

    fn asked(&self) -> usize {
        self.says.lock().expect("one").asked
    }
}

async fn answer(State(issuer): State<Issuer>, uri: Uri) -> Response {
    let mut says = issuer.says.lock().expect("one");
    says.asked += 1;
    match uri.path() {
        _ if says.fails => StatusCode::BAD_GATEWAY.into_response(),
        "/realm/.well-known/openid-configuration" => axum::Json(says.configuration.clone()).into_response(),
        "/keys" => axum::Json(says.keys.clone()).into_response(),
        "/moved" => (StatusCode::FOUND, [("location", "/keys")]).into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

#[tokio::test]
async fn keys_are_read_seldom_and_follow_those_of_the_issuer() {
    let issuer = Issuer::serve().await;
    let (keys, begin) = (issuer.reader(None), Instant::now());
    let at = |seconds: u64| begin + Duration::from_secs(seconds);
    let is_there =
        async |kid: &str, seconds: u64| keys.find(Some(kid), eddsa(), at(seconds)).await.map(|key| key.is_some());
    issuer.has_keys(&["one"]);
    assert_eq!(is_there("one", 0).await, Ok(true));
    for _ in 0..50 {
        assert_eq!(is_there("one", 1).await, Ok(true));
        assert_eq!(is_there("made up", 1).await, Ok(false));
    }
    assert_eq!(issuer.asked(), 2, "the configuration and the keys, once");
    // A new key is found after a minute, and one that was taken back does not count after an hour.
    issuer.has_keys(&["two"]);
    assert_eq!((is_there("two", 59).await, is_there("two", 60).await), (Ok(false), Ok(true)));
    assert_eq!(is_there("one", 61).await, Ok(false));
    // While they cannot be read, those of before count for a day, and it is asked for every ten seconds at most.
    issuer.change(|says| says.fails = true);
    let asked = issuer.asked();
    for _ in 0..50 {
        assert_eq!(is_there("two", 60 + 3600).await, Ok(true));
    }
    assert_eq!(issuer.asked(), asked + 1);
    assert!(is_there("two", 60 + 24 * 3600).await.is_err());
    issuer.change(|says| says.fails = false);
    assert_eq!(is_there("two", 71 + 24 * 3600).await, Ok(true));
}

#[tokio::test]
async fn keys_come_from_the_issuer_and_from_nowhere_else() {
    let (issuer, other) = (Issuer::serve().await, Issuer::serve().await);
    other.has_keys(&["one"]);
    let read = async |place: Option<Url>| {
        let found = issuer.reader(place).find(Some("one"), eddsa(), Instant::now()).await;
        found.map(|key| key.is_some())
    };
    let own = json!({ "issuer": issuer.name(), "jwks_uri": format!("{}keys", issuer.url) });
    for (configuration, said) in [
        (json!({ "issuer": issuer.name(), "jwks_uri": format!("{}keys", other.url) }), "another server"),
        (json!({ "issuer": issuer.name(), "jwks_uri": "file:///etc/passwd" }), "another server"),
        (json!({ "issuer": issuer.url.as_str(), "jwks_uri": format!("{}keys", issuer.url) }), "another issuer"),
        (json!({ "issuer": issuer.name(), "jwks_uri": format!("{}moved", issuer.url) }), "status 302"),
        (json!({ "issuer": issuer.name() }), "jwks_uri"),
        (json!("x".repeat(2 << 20)), "more than"),
    ] {
        issuer.change(|says| says.configuration = configuration);
        let error = read(None).await.expect_err(said);
        assert!(error.contains(said), "{error}");
    }
    assert_eq!(other.asked(), 0);
    // The operator may say where they are.
    assert_eq!(read(Some(other.url.join("keys").expect("an address"))).await, Ok(true));
    // What is no public key for signatures is left out.
    issuer.change(|says| says.configuration = own);
    let ed =
        json!({ "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo", "kid": "one" });
    let with = |name: &str, value: Value| {
        let mut key = ed.clone();
        key[name] = value;
        key
    };
    for (key, counts) in [
        (ed.clone(), true),
        (with("alg", json!("EdDSA")), true),
        (with("alg", json!("RS256")), false),
        (with("use", json!("enc")), false),
        (with("key_ops", json!(["sign"])), false),
        (with("crv", json!("X25519")), false),
        (with("kid", json!("two")), false),
        (json!({ "kty": "oct", "k": "c2VjcmV0", "kid": "one" }), false),
        (json!({ "kty": "new", "kid": "one" }), false),
        (json!(1), false),
    ] {
        issuer.change(|says| says.keys = json!({ "keys": [key.clone()] }));
        assert_eq!(read(None).await, Ok(counts), "{key}");
    }
}

#[test]
fn claims_say_whose_a_token_is_and_what_it_allows() {
    let tenant = |name: &str| name.parse().expect("a name");
    let settings = |of: TenantOf, claim: &str, roles: &[(&str, &[Role])]| OidcSettings {
        issuer: String::new(),
        audiences: Vec::new(),
        algorithms: Vec::new(),
        keys: None,
        ca_file: None,
        clock_skew: Duration::ZERO,
        tenant: of,
        roles_claim: (!claim.is_empty()).then(|| claim.to_owned()),
        roles: roles.iter().map(|(word, roles)| ((*word).to_owned(), roles.to_vec())).collect(),
        default_roles: Vec::new(),
        groups_claim: None,
        groups: BTreeMap::new(),
    };
    let claim = |claim: &str, values: &[(&str, &str)]| TenantOf::Claim {
        claim: claim.to_owned(),
        values: values.iter().map(|(value, name)| ((*value).to_owned(), tenant(name))).collect(),
    };
    let claims: Map<String, Value> = serde_json::from_value(json!({
        "org": "acme", "orgs": ["acme", "umbra"], "teams": ["x", "acme-corp"], "https://x/org": "acme", "odd": "../umbra", "number": 7,
        "fans": "The acme fans", "mixed": ["acme", "The Others"], "twice": ["acme", "x-corp", "acme"],
        "scope": "openid run answer", "realm": { "roles": ["admin", "king"] }, "none": null,
    }))
    .expect("claims");
    for (of, whose) in [
        (TenantOf::Only(tenant("umbra")), Some("umbra")),
        (claim("org", &[]), Some("acme")),
        (claim("https://x/org", &[]), Some("acme")),
        (claim("/orgs/1", &[]), Some("umbra")),
        (claim("org", &[("other", "umbra")]), None),
        (claim("teams", &[("acme-corp", "acme")]), Some("acme")),
        (claim("orgs", &[]), None),
        (claim("odd", &[]), None),
        (claim("fans", &[]), None),
        (claim("fans", &[("acme", "acme")]), None),
        (claim("fans", &[("The acme fans", "umbra")]), Some("umbra")),
        (claim("mixed", &[]), None),
        (claim("mixed", &[("acme", "acme")]), Some("acme")),
        (claim("twice", &[("acme", "acme")]), Some("acme")),
        (claim("number", &[]), None),
        (claim("none", &[]), None),
        (claim("missing", &[]), None),
        (claim("/realm/none", &[]), None),
    ] {
        let settings = settings(of.clone(), "", &[]);
        assert_eq!(claims::tenant(&settings, &claims), whose.map(tenant), "{of:?}");
    }
    let roles = |claim: &str, words: &[(&str, &[Role])]| {
        claims::roles(&settings(TenantOf::Only(tenant("a")), claim, words), &claims)
    };
    assert_eq!(roles("scope", &[]), [Role::Run, Role::Answer]);
    assert_eq!(
        roles("/realm/roles", &[("admin", &[Role::Operate, Role::Administer])]),
        [Role::Operate, Role::Administer]
    );
    assert_eq!(roles("/realm/roles", &[]), []);
    assert_eq!(roles("", &[("admin", &[Role::Run])]), []);
    let groups = |claim: &str, names: &[(&str, &str)]| {
        let named = names.iter().map(|(value, group)| ((*value).to_owned(), (*group).to_owned())).collect();
        let settings = settings(TenantOf::Only(tenant("a")), "", &[]);
        claims::groups(&OidcSettings { groups_claim: Some(claim.to_owned()), groups: named, ..settings }, &claims)
    };
    assert_eq!(groups("mixed", &[]), ["acme", "The Others"]);
    assert_eq!(groups("fans", &[]), ["The acme fans"], "a text is one group, whatever its words are");
    assert_eq!(groups("/realm/roles", &[("admin", "finance"), ("other", "audit")]), ["finance"]);
    assert_eq!(groups("fans", &[("acme", "finance")]), [""; 0]);
    for nothing in ["number", "none", "missing", "/realm", "/realm/none"] {
        assert_eq!(groups(nothing, &[]), [""; 0], "{nothing}");
    }
    assert_eq!(claims::groups(&settings(TenantOf::Only(tenant("a")), "", &[]), &claims), [""; 0]);
    // A group that tokens of a tenant may name is one that the tenant has.
    let is_defined = |of: TenantOf, groups_claim: Option<&str>, names: &[(&str, &str)], whose: &str| {
        let groups = names.iter().map(|(value, group)| ((*value).to_owned(), (*group).to_owned())).collect();
        let groups_claim = groups_claim.map(str::to_owned);
        let own = OidcSettings { groups_claim, groups, ..settings(of, "", &[]) };
        with_groups_of_tokens(Groups::default(), &[own], &tenant(whose)).is_defined("finance")
    };
    let acme = || TenantOf::Only(tenant("acme"));
    assert!(is_defined(acme(), Some("g"), &[], "acme"));
    assert!(is_defined(acme(), Some("g"), &[("f", "finance")], "acme"));
    assert!(!is_defined(acme(), Some("g"), &[("finance", "audit")], "acme"));
    assert!(!is_defined(acme(), None, &[], "acme"));
    assert!(!is_defined(acme(), Some("g"), &[], "umbra"));
    assert!(is_defined(claim("org", &[]), Some("g"), &[], "umbra"));
    assert!(is_defined(claim("org", &[("x", "umbra")]), Some("g"), &[], "umbra"));
    assert!(!is_defined(claim("org", &[("x", "acme")]), Some("g"), &[], "umbra"));
}
