//! Tokens of OpenID Connect: those that count, and all the ways in which one does not.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac as _};
use hotcell_runtime::CancellationToken;
use reqwest::Method;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::net::TcpListener;

use crate::clients::Port;
use crate::desk::{ok, problem, until_async};
use crate::site::{ACME, Premises, Setup, UMBRA};

const SAYS: &str =
    "name: says\nstart: done\nnodes:\n  done: { type: end, output: \"I was told {{initial_prompt}}\" }\n";
const FILES: [(&str, &str); 2] = [("acme/says/graph.yaml", SAYS), ("umbra/says/graph.yaml", SAYS)];

/// Somebody who issues tokens, with a key of each of two kinds.
struct Issuer {
    url: String,
    ed: Ed25519KeyPair,
    ec: EcdsaKeyPair,
    random: SystemRandom,
}

impl Issuer {
    async fn serve() -> Self {
        let random = SystemRandom::new();
        let ed = Ed25519KeyPair::generate_pkcs8(&random).expect("a key");
        let ed = Ed25519KeyPair::from_pkcs8(ed.as_ref()).expect("a key");
        let ec = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).expect("a key");
        let ec = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, ec.as_ref(), &random).expect("a key");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let point = ec.public_key().as_ref();
        let keys = json!({ "keys": [
            { "kty": "OKP", "crv": "Ed25519", "kid": "ed", "use": "sig", "x": encoded(ed.public_key()) },
            { "kty": "EC", "crv": "P-256", "kid": "ec", "alg": "ES256", "x": encoded(&point[1..33]), "y": encoded(&point[33..]) },
            { "kty": "oct", "kid": "shared", "k": encoded(b"shared") },
        ] });
        let configuration = json!({ "issuer": url, "jwks_uri": format!("{url}/jwks") });
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(move || async move { axum::Json(configuration) }))
            .route("/jwks", get(move || async move { axum::Json(keys) }));
        tokio::spawn(hotcell_http::serve(listener, router, hotcell_http::Limits::default(), CancellationToken::new()));
        Issuer { url, ed, ec, random }
    }

    /// What a token says that counts.
    fn claims(&self) -> Value {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_secs();
        json!({ "iss": self.url, "aud": "hotcell", "sub": "ada", "exp": now + 3600, "org": "acme-corp", "groups": ["users"] })
    }

    /// A token, signed as its header says.
    fn token(&self, header: &Value, claims: &Value) -> String {
        let signed = format!("{}.{}", encoded(header.to_string()), encoded(claims.to_string()));
        let hmac = |secret: &[u8]| {
            let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("a key");
            mac.update(signed.as_bytes());
            mac.finalize().into_bytes().to_vec()
        };
        let signature = match (header["alg"].as_str(), header["kid"].as_str()) {
            (Some("EdDSA"), _) => self.ed.sign(signed.as_bytes()).as_ref().to_vec(),
            (Some("ES256"), _) => self.ec.sign(&self.random, signed.as_bytes()).expect("signed").as_ref().to_vec(),
            (Some("HS256"), Some("ed")) => hmac(self.ed.public_key().as_ref()),
            (Some("HS256"), Some("ec")) => hmac(self.ec.public_key().as_ref()),
            (Some("HS256"), _) => hmac(b"shared"),
            _ => Vec::new(),
        };
        format!("{signed}.{}", encoded(signature))
    }

    /// A token that counts but for what is changed.
    fn changed(&self, changes: &[(&str, Value)]) -> String {
        let (mut header, mut claims) = (json!({ "alg": "EdDSA", "kid": "ed", "typ": "JWT" }), self.claims());
        for (name, value) in changes {
            let object =
                if ["alg", "kid", "typ", "crit", "jwk", "jku"].contains(name) { &mut header } else { &mut claims };
            match value.is_null() {
                true => drop(object.as_object_mut().expect("an object").remove(*name)),
                false => object[*name] = value.clone(),
            }
        }
        self.token(&header, &claims)
    }

    /// What is written of it in a server file.
    fn written(&self) -> String {
        format!(
            "[[oidc]]\nissuer = '{}'\naudience = ['hotcell', 'hotcell-test']\nalgorithms = ['EdDSA', 'ES256']\ntenant_claim = 'org'\n\
             tenants = {{ acme-corp = 'acme', umbra-inc = 'umbra' }}\nroles_claim = 'groups'\n\
             roles = {{ users = ['run', 'answer'], readers = ['answer'] }}\nclock_skew_seconds = 300\n",
            self.url
        )
    }
}

fn encoded(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_good_for_its_tenant_and_its_roles() {
    let issuer = Issuer::serve().await;
    let premises = Premises::set_up(Setup { server: &issuer.written(), files: &FILES, ..Setup::default() }).await;
    let begin = |token: &str| premises.post("/runs", token, json!({ "agent_id": "says", "input": "x" }));
    let seen = async |token: &str| {
        let runs = ok(premises.get("/runs", token)).await;
        runs["runs"].as_array().map(Vec::len)
    };
    let ada = issuer.changed(&[]);
    ok(begin(&ada)).await;
    for same in [
        issuer.changed(&[("alg", json!("ES256")), ("kid", json!("ec"))]),
        // Of each kind there is one key.
        issuer.changed(&[("kid", Value::Null)]),
        issuer.changed(&[("aud", json!(["somebody else", "hotcell-test"]))]),
        // The clocks may be five minutes apart.
        issuer.changed(&[("exp", json!(now() - 10)), ("nbf", json!(now() + 10))]),
    ] {
        assert_eq!(seen(&same).await, Some(1));
    }
    // The other tenant sees nothing of it, whatever address is asked.
    let eve = issuer.changed(&[("org", json!("umbra-inc")), ("sub", json!("eve"))]);
    assert_eq!(seen(&eve).await, Some(0));
    assert_eq!(problem(premises.get("/tenants/acme/runs", &eve)).await["status"], 401);
    // One without the role is known, and refused.
    let reader = issuer.changed(&[("groups", json!(["readers", "strangers"]))]);
    assert_eq!(problem(begin(&reader)).await["status"], 403);
    ok(premises.get("/inbox", &reader)).await;
    let nothing = issuer.changed(&[("groups", Value::Null)]);
    assert_eq!(problem(premises.get("/inbox", &nothing)).await["status"], 403);
    // Keys count beside tokens.
    ok(premises.get("/runs", &premises.key(UMBRA))).await;
    let text = std::fs::read_to_string(premises.folder().join("state/server.audit.jsonl")).expect("a log");
    let first: Value = serde_json::from_str(text.lines().next().expect("a line")).expect("JSON");
    assert_eq!((first["tenant"].as_str(), first["subject"].as_str()), (Some(ACME), Some("ada")), "{first}");
    assert_eq!((first["issuer"].as_str(), first["key"].as_str()), (Some(&*issuer.url), None), "{first}");
    assert!(!text.contains(ada.rsplit('.').next().expect("a signature")), "no token is in the log");
}

/// Asks two groups.
const PRESS: (&str, &str) = (
    "acme/press/mesh.yaml",
    "name: press
manager: {enabled: false}
agents:
  draft: {agent_type: llm, communication_type: chain, model: gpt-4o-mini, prompt: Draft it., can_call: [{agent: chief}]}
  chief: {agent_type: human, human_interface: default, operator_ids: ['group:finance', 'group:audit']}
entry_points:
  - {name: story, target: draft}
",
);

#[tokio::test(flavor = "multi_thread")]
async fn a_token_says_to_which_groups_somebody_belongs() {
    let issuer = Issuer::serve().await;
    let server = format!("{}groups_claim = '/realm/teams'\n", issuer.written());
    let (acme, files) = ("groups = { audit = ['ann'] }\n", [FILES[0], FILES[1], PRESS]);
    let premises = Premises::set_up(Setup { server: &server, acme, files: &files, ..Setup::default() }).await;
    premises.model.answers(1);
    let key = premises.key(ACME);
    let call = json!({ "entry_point": "story", "data": {}, "session_id": "s" });
    let asked = ok(premises.post("/api/mesh/request", &key, call)).await;
    assert_eq!(asked["status"], "waiting_human", "{asked}");
    let run = asked["run_id"].as_str().expect("a run");
    let path = format!("/runs/{run}");
    until_async("it waits", async || ok(premises.get(&path, &key)).await["standing"] == "waiting").await;
    let item = ok(premises.get("/inbox", &key)).await["items"][0].clone();
    assert_eq!((&item["groups"], &item["undefined_groups"]), (&json!(["finance", "audit"]), &json!([])));
    let answers = format!("/runs/{run}/answers");
    let yes = json!({ "answer": { "decision": "yes" } });
    let mine = async |token: &str| {
        let items = ok(premises.get("/inbox?mine=true", token)).await["items"].take();
        items.as_array().map(Vec::len)
    };
    let token =
        |subject: &str, teams: Value| issuer.changed(&[("sub", json!(subject)), ("realm", json!({ "teams": teams }))]);
    // As many as a token has room for.
    let many: Vec<String> = (0..800).map(|number| format!("team-{number}")).collect();
    for (subject, teams) in [
        ("eve", json!([])),
        ("eve", Value::Null),
        ("eve", json!(["marketing", "Finance", "group:finance"])),
        ("eve", json!("audit finance")),
        ("eve", json!([["finance"], { "name": "finance" }, 7])),
        ("eve", json!({ "finance": true })),
        ("eve", json!(many)),
        ("group:finance", json!([])),
        ("finance", json!([])),
    ] {
        let other = token(subject, teams.clone());
        assert_eq!(mine(&other).await, Some(0), "{subject} {teams}");
        let refused = problem(premises.post(&answers, &other, yes.clone())).await;
        assert_eq!(refused["status"], 403, "{subject} {teams}: {refused}");
    }
    let teams = many.into_iter().chain(["finance".to_owned()]).collect::<Vec<_>>();
    let (bob, ann) = (token("bob", json!(teams)), token("ann", json!([])));
    assert_eq!((mine(&bob).await, mine(&ann).await), (Some(1), Some(1)));
    // What his token says of him is known to nobody who does not show it.
    for (token, sessions) in [(&bob, 1), (&ann, 0), (&key, 0)] {
        let open = ok(premises.get("/api/sessions/hitl?operator_id=bob", token)).await;
        assert_eq!(open["sessions"].as_array().map(Vec::len), Some(sessions), "{open}");
    }
    let in_her_name = json!({ "answer": { "decision": "yes" }, "operator_id": "ann" });
    assert_eq!(problem(premises.post(&answers, &bob, in_her_name)).await["status"], 403);
    let in_his_name = json!({ "answer": { "decision": "yes" }, "operator_id": "bob" });
    assert_eq!(problem(premises.post(&answers, &key, in_his_name)).await["status"], 403);
    ok(premises.post(&answers, &bob, yes.clone())).await;
    ok(premises.get(&format!("{path}/wait"), &key)).await;
    assert_eq!(problem(premises.post(&answers, &ann, yes)).await["status"], 409);
    let decided = &ok(premises.get("/inbox/decisions", &key)).await["items"][0];
    assert_eq!(
        (&decided["decided_by"], &decided["operator_id"], &decided["group"]),
        (&json!(format!("{} bob", issuer.url)), &json!("bob"), &json!("finance"))
    );
}

/// Clients of MCP learn where they get a token.
#[tokio::test(flavor = "multi_thread")]
async fn who_issues_tokens_is_told_to_those_for_whom_they_count() {
    let issuer = Issuer::serve().await;
    let own = "https://login.umbra.example";
    let written = format!("{}[[oidc]]\nissuer = '{own}'\naudience = ['hotcell']\ntenant = 'umbra'\n", issuer.written());
    let premises = Premises::set_up(Setup { server: &written, files: &FILES, ..Setup::default() }).await;
    let told = async |tenant: &str| {
        let path = format!("{tenant}/.well-known/oauth-protected-resource/mcp");
        ok(premises.ask(reqwest::Method::GET, &path, None)).await["authorization_servers"].take()
    };
    for general in ["", "/tenants/acme", "/tenants/nobody"] {
        assert_eq!(told(general).await, json!([issuer.url]), "{general}");
    }
    assert_eq!(told("/tenants/umbra").await, json!([issuer.url, own]));
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_secs()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_not_good_is_refused_however_it_is_made() {
    let (issuer, stranger) = (Issuer::serve().await, Issuer::serve().await);
    let premises = Premises::set_up(Setup { server: &issuer.written(), files: &FILES, ..Setup::default() }).await;
    let good = issuer.changed(&[]);
    ok(premises.get("/runs", &good)).await;
    let change = |changes: &[(&str, Value)]| issuer.changed(changes);
    let parts: Vec<&str> = good.split('.').collect();
    let other_claims = {
        let mut claims = issuer.claims();
        claims["org"] = json!("umbra-inc");
        encoded(claims.to_string())
    };
    let mut bits = URL_SAFE_NO_PAD.decode(parts[2]).expect("a signature");
    bits[0] ^= 1;
    let own_jwk = json!({ "kty": "OKP", "crv": "Ed25519", "x": encoded(stranger.ed.public_key()) });
    let forged = |header: Value| stranger.token(&header, &issuer.claims());
    for (what, token) in [
        ("expired", change(&[("exp", json!(now() - 360))])),
        ("without an end", change(&[("exp", Value::Null)])),
        ("with an end that is no time", change(&[("exp", json!("never"))])),
        ("not yet", change(&[("nbf", json!(now() + 3600)), ("exp", json!(now() + 7200))])),
        ("for another", change(&[("aud", json!("somebody else"))])),
        ("for others", change(&[("aud", json!(["a", "b"]))])),
        ("for nobody", change(&[("aud", Value::Null)])),
        ("of another issuer", change(&[("iss", json!("https://id.example.com"))])),
        ("of several issuers", change(&[("iss", json!([issuer.url, "https://id.example.com"]))])),
        ("of nobody", change(&[("iss", Value::Null)])),
        ("of an issuer that looks alike", change(&[("iss", json!(format!("{}/", issuer.url)))])),
        ("about nobody", change(&[("sub", Value::Null)])),
        ("about somebody without a name", change(&[("sub", json!(""))])),
        ("about somebody with a long name", change(&[("sub", json!("x".repeat(256)))])),
        ("about a number", change(&[("sub", json!(7))])),
        ("without a tenant", change(&[("org", Value::Null)])),
        ("of an unknown tenant", change(&[("org", json!("strangers"))])),
        ("of a tenant by its own name", change(&[("org", json!("acme"))])),
        ("of two tenants", change(&[("org", json!(["acme-corp", "umbra-inc"]))])),
        ("with an unknown key", change(&[("kid", json!("other"))])),
        ("with a key of another kind", change(&[("kid", json!("ec"))])),
        ("for something else", change(&[("typ", json!("logout+jwt"))])),
        ("with an extension", change(&[("crit", json!(["exp"]))])),
        ("unsigned", change(&[("alg", json!("none"))])),
        ("unsigned in capitals", change(&[("alg", json!("None")), ("kid", Value::Null)])),
        ("signed by the public key as a secret", change(&[("alg", json!("HS256"))])),
        ("signed by the other public key as a secret", change(&[("alg", json!("HS256")), ("kid", json!("ec"))])),
        ("signed by a secret that is published", change(&[("alg", json!("HS256")), ("kid", json!("shared"))])),
        ("signed in a way that is not allowed", change(&[("alg", json!("RS256"))])),
        (
            "with another algorithm in its header",
            format!("{}.{}.{}", encoded(r#"{"alg":"ES256","kid":"ec"}"#), parts[1], parts[2]),
        ),
        ("signed by a stranger", forged(json!({ "alg": "EdDSA", "kid": "ed" }))),
        ("signed by a stranger who shows a key", forged(json!({ "alg": "EdDSA", "kid": "ed", "jwk": own_jwk }))),
        (
            "signed by a stranger who says where the key is",
            forged(json!({ "alg": "EdDSA", "kid": "ed", "jku": format!("{}/jwks", stranger.url) })),
        ),
        ("with other claims", format!("{}.{other_claims}.{}", parts[0], parts[2])),
        ("with another signature", format!("{}.{}.{}", parts[0], parts[1], encoded(bits))),
        ("without a signature", format!("{}.{}.", parts[0], parts[1])),
        ("without the last part", format!("{}.{}", parts[0], parts[1])),
        ("with a further part", format!("{good}.x")),
        ("with something behind it", format!("{good}=")),
        ("that is long", change(&[("more", json!("x".repeat(20_000)))])),
        ("of points", "..".to_owned()),
        ("that is none", "a.b.c".to_owned()),
    ] {
        for path in ["/runs", "/tenants/acme/runs"] {
            let refused = problem(premises.get(path, &token)).await;
            assert_eq!(refused["status"], 401, "a token {what}: {refused}");
        }
        // Nor is it a key where clients of LangGraph show one.
        let shown = premises.ask(Method::GET, "/runs", None).header("x-api-key", &token);
        assert_eq!(problem(shown).await["status"], 401, "a token {what}");
    }
    let both = premises.get("/runs", &good).header("x-api-key", premises.key(ACME));
    assert_eq!(problem(both).await["status"], 401, "which of them is meant is not guessed");
    ok(premises.get("/runs", &good)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_issuer_that_does_not_answer_closes_nothing_but_its_tokens() {
    let (issuer, nobody) = (Issuer::serve().await, Port::reserve());
    let place = format!("http://127.0.0.1:{}", nobody.number());
    let written = issuer.written().replace(&issuer.url, &place);
    let premises = Premises::set_up(Setup { server: &written, files: &FILES, ..Setup::default() }).await;
    let refused = problem(premises.get("/runs", &issuer.changed(&[("iss", json!(place))]))).await;
    assert_eq!(refused["status"], 503, "{refused}");
    assert!(!refused.to_string().contains(&place), "{refused}");
    ok(premises.get("/runs", &premises.key(ACME))).await;
}

/// A provider that somebody else wrote.
struct Provider {
    child: Child,
    url: String,
    tokens: Vec<String>,
}

impl Provider {
    /// None if it is not installed.
    fn start() -> Option<Self> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = here.join("../../target/serve-clients/oidc");
        if !folder.join("node_modules/oidc-provider").is_dir() {
            return None;
        }
        let script = here.join("tests/clients/oidc.mjs");
        let mut command = Command::new("node");
        command.arg(script).arg(&folder).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("node");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let mut line = || lines.next().expect("a line").expect("text");
        let url = line();
        let tokens = vec![line(), line(), line()];
        Some(Provider { child, url, tokens })
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
#[allow(clippy::print_stderr)] // says why nothing was tested
async fn tokens_of_oidc_provider_count() {
    let Some(provider) = tokio::task::spawn_blocking(Provider::start).await.expect("no panic") else {
        eprintln!("oidc-provider is not installed: run host/serve/tests/clients/install.sh");
        return;
    };
    let written = format!(
        "[[oidc]]\nissuer = '{}'\naudience = ['hotcell']\ntenant_claim = 'org'\nroles_claim = 'scope'\n",
        provider.url
    );
    let premises = Premises::set_up(Setup { server: &written, files: &FILES, ..Setup::default() }).await;
    let run = |token: &str| premises.post("/runs/wait", token, json!({ "agent_id": "says", "input": "x" }));
    let [all, answers, of_another] = &provider.tokens[..] else { panic!("three tokens") };
    assert_eq!(ok(run(all)).await["output"], "I was told x");
    assert_eq!(problem(run(answers)).await["status"], 403);
    ok(premises.get("/inbox", answers)).await;
    assert_eq!(problem(run(of_another)).await["status"], 401);
}
