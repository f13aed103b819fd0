//! Tenants know nothing of each other.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::StreamExt as _;
use reqwest::{Method, RequestBuilder};
use serde_json::{Map, Value, json};

use crate::desk::{ok, problem};
use crate::site::{ACME, MARK, Premises, Setup, UMBRA};

const SAYS: &str = "name: says\ndescription: mine\nstart: done\nnodes:\n  done: { type: end, output: \"I was told {{initial_prompt}}\" }\n";
const ASKS: &str = "name: desk\ndescription: the nightshade desk\nstart: name\nnodes:\n  name:\n    type: input\n    question: \"Who is nightshade?\"\n    \
                    state_updates: { name: \"{{input}}\" }\n    next: done\n  done: { type: end, output: \"nightshade {{name}}\" }\n";
/// Shows a variable that is granted to it.
const LOOKS: &str = "name: look\nstart: look\nnodes:\n  look: { type: script, script: look.sh, next: done }\n  \
                     done: { type: end, output: \"{{said}}\" }\n";
const LOOK: &str = "echo \"{\\\"said\\\": \\\"[$DESK_SECRET]\\\"}\"";
const GRANTED: &str = "[grants.'look.sh']\nenv = ['DESK_SECRET']\n";

const FILES: [(&str, &str); 8] = [
    ("acme/says/graph.yaml", SAYS),
    ("acme/look/graph.yaml", LOOKS),
    ("acme/look/look.sh", LOOK),
    ("acme/look/hotcell.toml", GRANTED),
    ("umbra/desk/graph.yaml", ASKS),
    ("umbra/look/graph.yaml", LOOKS),
    ("umbra/look/look.sh", LOOK),
    ("umbra/look/hotcell.toml", GRANTED),
];

/// What `umbra` has, by what requests name it by.
struct Theirs {
    run: String,
    thread: String,
    question: String,
}

impl Theirs {
    /// A thread with a run that waits for an answer, and a run that has ended.
    async fn begin(premises: &Premises, key: &str) -> Self {
        let told = format!("the {MARK} file");
        let thread = json!({ "thread_id": "case", "metadata": { "about": told } });
        ok(premises.post("/threads", key, thread)).await;
        let begun = json!({ "agent_id": "desk", "input": {}, "thread_id": "case", "metadata": { "about": told } });
        let run = ok(premises.post("/runs/wait", key, begun)).await["run"]["run_id"].as_str().unwrap().to_owned();
        let inbox = ok(premises.get("/inbox", key)).await;
        let question = inbox["items"][0]["id"].as_str().map(str::to_owned);
        let question = question.unwrap_or_else(|| panic!("{inbox}"));
        Theirs { run, thread: "case".to_owned(), question }
    }

    /// Everything that `umbra` can see of that.
    async fn seen(&self, premises: &Premises, key: &str) -> Vec<Value> {
        let mut seen = Vec::new();
        for path in ["/runs", "/inbox", &format!("/runs/{}", self.run), &format!("/runs/{}/entries", self.run)] {
            seen.push(ok(premises.get(path, key)).await);
        }
        for path in ["/threads/case", "/threads/case/state", "/threads/case/runs"] {
            seen.push(ok(premises.get(path, key)).await);
        }
        seen.push(ok(premises.post("/threads/search", key, json!({}))).await);
        seen
    }

    /// What a request says that is called that.
    fn named(&self, name: &str) -> Option<&str> {
        match name {
            "run_id" | "task_id" => Some(&self.run),
            "thread_id" | "session_id" | "context_id" => Some(&self.thread),
            "agent_id" | "assistant_id" | "agent" | "entry_point" | "graph_id" | "model" => Some("desk"),
            "question_id" | "interrupt_id" | "request_id" => Some(&self.question),
            _ => None,
        }
    }

    /// Every request that the document describes, as somebody would make it who knows all of these names.
    fn requests(&self, document: &Value) -> Vec<(Method, String, Option<Value>)> {
        let mut all = Vec::new();
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                let parameters = path.split(['{', '}']).skip(1).step_by(2);
                let mut address = path.clone();
                for name in parameters {
                    let value = self.named(name).unwrap_or("1");
                    address = address.replace(&format!("{{{name}}}"), value);
                }
                let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
                let body = (!schema.is_null()).then(|| self.body(document, schema, 0));
                all.push((method.to_uppercase().parse().unwrap(), address, body));
            }
        }
        all
    }

    /// A value that fits a schema.
    fn body(&self, document: &Value, schema: &Value, depth: usize) -> Value {
        if let Some(name) = schema["$ref"].as_str() {
            let described = document.pointer(name.trim_start_matches('#')).unwrap_or(&Value::Null);
            return self.body(document, described, depth + 1);
        }
        for several in ["oneOf", "anyOf", "allOf"] {
            if let Some(first) = schema[several].as_array().and_then(|all| all.iter().find(|one| one["type"] != "null"))
            {
                return self.body(document, first, depth + 1);
            }
        }
        let kind = schema["type"].as_str().or_else(|| schema["type"].as_array()?.first()?.as_str());
        match kind {
            _ if depth > 6 => Value::Null,
            Some("string") => schema["enum"].as_array().map_or(json!("x"), |all| all[0].clone()),
            Some("integer" | "number") => json!(1),
            Some("boolean") => json!(false),
            Some("array") => json!([]),
            _ => {
                let required: Vec<&str> =
                    schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
                let mut object = Map::new();
                for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                    if let Some(named) = self.named(name) {
                        object.insert(name.clone(), named.into());
                    } else if required.contains(&name.as_str()) || name == "input" {
                        object.insert(name.clone(), self.body(document, property, depth + 1));
                    }
                }
                Value::Object(object)
            }
        }
    }
}

/// The status and the text of a reply; of a stream of events, what of it comes at once.
async fn reply(request: RequestBuilder) -> (u16, String) {
    let response = request.send().await.expect("a reply");
    let status = response.status().as_u16();
    let kind = response.headers().get("content-type");
    if !kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream")) {
        return (status, response.text().await.unwrap_or_default());
    }
    let mut stream = std::pin::pin!(futures::stream::unfold(response, async |mut response| {
        let chunk = response.chunk().await.ok().flatten()?;
        Some((chunk, response))
    }));
    let mut text = Vec::new();
    while let Ok(Some(chunk)) = tokio::time::timeout(Duration::from_secs(2), stream.next()).await {
        text.extend(chunk);
    }
    (status, String::from_utf8_lossy(&text).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_route_shows_or_changes_anything_of_another_tenant() {
    let premises = Premises::set_up(Setup { files: &FILES, ..Setup::default() }).await;
    let (acme, umbra) = (premises.key(ACME), premises.key(UMBRA));
    let theirs = Theirs::begin(&premises, &umbra).await;
    let document = ok(premises.get("/openapi.json", &acme)).await;
    let requests = theirs.requests(&document);
    assert!(requests.len() > 60, "{}", requests.len());
    // Whoever it belongs to sees it by the same requests: what is asked for is there.
    let mut shown = BTreeSet::new();
    for (method, path, _) in
        requests.iter().filter(|(method, path, _)| method == Method::GET && !path.ends_with("stream"))
    {
        let (status, text) = reply(premises.ask(method.clone(), path, Some(&umbra))).await;
        if status == 200 && text.contains(MARK) {
            shown.insert(path.clone());
        }
    }
    assert!(shown.len() >= 10, "{shown:?}");
    let before = theirs.seen(&premises, &umbra).await;
    let mut asked = 0;
    for prefix in ["", "/tenants/acme", "/tenants/umbra", "/tenants/nobody"] {
        for key in [Some(&*acme), None] {
            for (method, path, body) in &requests {
                let request = premises.ask(method.clone(), &format!("{prefix}{path}"), key);
                let request = match body {
                    Some(body) => request.json(body),
                    None => request,
                };
                let (status, text) = reply(request).await;
                assert!(!text.contains(MARK), "{method} {prefix}{path} with {key:?}: {status} {text}");
                let is_for_nobody = operation_is_open(&document, method, path, &theirs);
                let is_own = prefix.is_empty() || prefix == "/tenants/acme";
                if !(is_for_nobody || is_own && key.is_some()) {
                    assert!(status == 401 || status == 429, "{method} {prefix}{path} with {key:?}: {status} {text}");
                }
                asked += 1;
            }
        }
    }
    assert_eq!(asked, requests.len() * 8);
    assert_eq!(theirs.seen(&premises, &umbra).await, before, "nothing of it was changed");
    // The one question is still open for whom it was put to.
    let answer = json!({ "answer": "me", "question_id": theirs.question });
    ok(premises.post(&format!("/runs/{}/answers", theirs.run), &umbra, answer)).await;
}

/// Whether a route needs no role.
fn operation_is_open(document: &Value, method: &Method, address: &str, theirs: &Theirs) -> bool {
    document["paths"].as_object().unwrap().iter().any(|(path, item)| {
        let mut written = path.clone();
        for name in path.split(['{', '}']).skip(1).step_by(2) {
            written = written.replace(&format!("{{{name}}}"), theirs.named(name).unwrap_or("1"));
        }
        let security = &item[method.as_str().to_lowercase()]["security"];
        written == address
            && security.as_array().is_some_and(|all| all.iter().any(|one| one.as_object().unwrap().is_empty()))
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_leads_to_its_tenant_and_to_nothing_where_that_is_gone() {
    let premises = Premises::set_up(Setup { files: &FILES, ..Setup::default() }).await;
    let (acme, umbra) = (premises.key(ACME), premises.key(UMBRA));
    let names = async |key: &str| -> Vec<String> {
        let found = ok(premises.post("/agents/search", key, json!({}))).await;
        found.as_array().unwrap().iter().map(|agent| agent["agent_id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        (names(&acme).await, names(&umbra).await),
        (vec!["look".into(), "says".into()], vec!["desk".into(), "look".into()])
    );
    ok(premises.get("/tenants/acme/runs", &acme)).await;
    // Of no tenant, of one that is not there any more, and of one that a key cannot have.
    let gone =
        premises.keys().add("old", Some(&"gone".parse().unwrap()), &hotcell_serve::Role::ALL, None).unwrap().reveal();
    let whose = premises.keys().add("whose", None, &hotcell_serve::Role::ALL, None).unwrap().reveal();
    for key in [&gone, &whose] {
        for path in ["/runs", "/tenants/acme/runs", "/tenants/gone/runs", "/tenants//runs"] {
            assert_eq!(problem(premises.get(path, key)).await["status"], 401, "{path}");
        }
    }
    // Without any key, too, nobody is local here.
    for path in ["/runs", "/tenants/acme/runs", "/tenants/%61cme/runs", "/tenants/../runs"] {
        assert_eq!(problem(premises.ask(Method::GET, path, None)).await["status"], 401, "{path}");
    }
    for path in ["/health", "/ready", "/openapi.json", "/tenants/acme/health", "/tenants/nobody/health"] {
        ok(premises.ask(Method::GET, path, None)).await;
    }
    // The audit log says whose request it was.
    ok(premises.post("/runs/wait", &acme, json!({ "agent_id": "says", "input": "x" }))).await;
    let text = std::fs::read_to_string(premises.folder().join("state/server.audit.jsonl")).unwrap();
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!((last["tenant"].as_str(), last["path"].as_str()), (Some(ACME), Some("/runs/wait")), "{last}");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_clients_of_mcp_get_in_has_the_tenant_that_they_named_and_says_nothing_of_others() {
    let premises = Premises::set_up(Setup { files: &FILES, ..Setup::default() }).await;
    for name in [ACME, "nobody"] {
        let base = format!("{}/tenants/{name}", premises.url);
        let path = format!("/tenants/{name}/.well-known/oauth-protected-resource/mcp");
        let resource = ok(premises.ask(Method::GET, &path, None)).await;
        assert_eq!(resource["resource"], format!("{base}/mcp"), "{resource}");
        let post = premises.ask(Method::POST, &format!("/tenants/{name}/mcp"), None).json(&json!({}));
        let refused = post.send().await.unwrap();
        let challenge = refused.headers()["www-authenticate"].to_str().unwrap();
        let metadata = format!("resource_metadata=\"{base}/.well-known/oauth-protected-resource/mcp\"");
        assert!(challenge.contains(&metadata), "{challenge}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_agents_of_one_name_keep_no_other_tenant_from_being_served() {
    let files = [("acme/graph.yaml", SAYS), ("acme/acme/graph.yaml", SAYS), ("umbra/desk/graph.yaml", ASKS)];
    let premises = Premises::set_up(Setup { files: &files, ..Setup::default() }).await;
    for (tenant, agent) in [(ACME, "acme"), (UMBRA, "desk")] {
        let agents = ok(premises.post("/agents/search", &premises.key(tenant), json!({}))).await;
        let ids: Vec<&Value> = agents.as_array().unwrap().iter().map(|agent| &agent["agent_id"]).collect();
        assert_eq!(ids, [agent], "{agents}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_administers_a_tenant_grants_nothing_that_reaches_beyond_it() {
    let premises = Premises::set_up(Setup { files: &FILES, ..Setup::default() }).await;
    let acme = premises.key(ACME);
    let theirs = premises.folder().join("state/tenants/umbra").display().to_string();
    let grant = |more: Value| {
        let mut body = json!({ "agent_id": "says", "digest": "0" });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        premises.post("/plugins/none/grants", &acme, body)
    };
    for more in [
        json!({ "fs": [{ "guest": "/data", "host": theirs }] }),
        json!({ "fs": [{ "guest": "/data", "host": "/nowhere" }] }),
        // What counts as older is the same for all tenants.
        json!({ "allow_older": true }),
    ] {
        let refused = problem(grant(more.clone())).await;
        assert_eq!(
            (refused["status"].clone(), refused["type"].clone()),
            (json!(403), json!("urn:hotcell:problem:beyond-tenant")),
            "{more}"
        );
    }
    assert_eq!(problem(grant(json!({}))).await["type"], "urn:hotcell:problem:unknown-plugin");
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_belong_to_a_tenant() {
    let premises = Premises::set_up(Setup { files: &FILES, ..Setup::default() }).await;
    let (acme, umbra) = (premises.key(ACME), premises.key(UMBRA));
    for (key, secret) in [(&acme, "of acme"), (&umbra, MARK)] {
        let run = ok(premises.post("/runs/wait", key, json!({ "agent_id": "look", "input": {} }))).await;
        assert_eq!(run["output"], format!("[{secret}]"), "{run}");
    }
    // Journals, stores and threads are in folders of their own.
    for tenant in [ACME, UMBRA] {
        let folder = premises.folder().join("state/tenants").join(tenant);
        assert!(folder.join("runs.db").is_file() && folder.join("serve.db").is_file());
    }
    let bytes = std::fs::read(premises.folder().join("state/tenants/acme/runs.db")).unwrap();
    assert!(!bytes.windows(MARK.len()).any(|window| window == MARK.as_bytes()));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_busy_keeps_no_other_one_from_working() {
    const SLOW: &str = crate::desk::SLOW.1;
    let files = [("acme/slow/graph.yaml", SLOW), ("umbra/slow/graph.yaml", SLOW), ("umbra/desk/graph.yaml", ASKS)];
    let premises = Premises::set_up(Setup { files: &files, acme: "max_runs = 2", ..Setup::default() }).await;
    let (acme, umbra) = (premises.key(ACME), premises.key(UMBRA));
    let begin = json!({ "agent_id": "slow", "input": "x" });
    let runs = [premises.begin(&acme, begin.clone()).await, premises.begin(&acme, begin.clone()).await];
    let refused = problem(premises.post("/runs", &acme, begin.clone())).await;
    assert_eq!(
        (refused["status"].clone(), refused["type"].clone()),
        (json!(503), json!("urn:hotcell:problem:too-many-runs"))
    );
    ok(premises.post("/runs/wait", &umbra, json!({ "agent_id": "desk", "input": {} }))).await;
    premises.begin(&umbra, begin).await;
    premises.model.answers(6);
    for run in runs {
        ok(premises.get(&format!("/runs/{run}/wait"), &acme)).await;
    }
    // What waits goes on after the server was started again, each with its own.
    let premises = premises.again().await;
    let waiting = ok(premises.get("/inbox", &umbra)).await;
    assert_eq!(waiting["items"].as_array().map(Vec::len), Some(1), "{waiting}");
    assert_eq!(ok(premises.get("/inbox", &acme)).await["items"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_calls_no_agent_in_a_folder_of_another_tenant() {
    let calls = |agent: &str| {
        format!(
            "name: calls\nstart: a\nnodes:\n  a: {{ type: agent, agent: {agent}, prompt: hello, state_updates: {{ said: \"{{{{output}}}}\" }}, next: done }}\n  \
             done: {{ type: end, output: \"{{{{said}}}}\" }}\n"
        )
    };
    let (own, other) = (calls("says"), calls("umbra"));
    let secret = format!("name: umbra\nstart: done\nnodes:\n  done: {{ type: end, output: {MARK} }}\n");
    // The folders of the tenants lie side by side, as those of agents do that call each other.
    let files = [
        ("acme/graph.yaml", other.as_str()),
        ("acme/says/graph.yaml", SAYS),
        ("acme/calls/graph.yaml", own.as_str()),
        ("umbra/graph.yaml", secret.as_str()),
        ("umbra/hotcell.toml", "[callers]\nallow = ['../acme']\n"),
        ("pyproject.toml", ""),
    ];
    let premises = Premises::set_up(Setup { files: &files, ..Setup::default() }).await;
    let (acme, umbra) = (premises.key(ACME), premises.key(UMBRA));
    let run = async |key: &str, agent: &str| {
        reply(premises.post("/runs/wait", key, json!({ "agent_id": agent, "input": "x" }))).await
    };
    let agents = ok(premises.post("/agents/search", &acme, json!({}))).await;
    for agent in agents.as_array().unwrap() {
        let id = agent["agent_id"].as_str().unwrap();
        let (status, text) = run(&acme, id).await;
        assert!(!text.contains(MARK), "{id}: {text}");
        assert!(id != "calls" || (status == 200 && text.contains("I was told hello")), "{id}: {text}");
    }
    let agents = ok(premises.post("/agents/search", &umbra, json!({}))).await;
    let (_, text) = run(&umbra, agents[0]["agent_id"].as_str().unwrap()).await;
    assert!(text.contains(MARK), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn forks_items_and_the_keys_of_requests_belong_to_a_tenant() {
    let premises = Premises::set_up(Setup { files: &FILES, ..Setup::default() }).await;
    let (acme, umbra) = (premises.key(ACME), premises.key(UMBRA));
    let run = Theirs::begin(&premises, &umbra).await.run;
    let own = premises.begin(&acme, json!({ "agent_id": "says", "input": "x" })).await;
    let fork = json!({ "at": 1 });
    for request in [
        premises.get(&format!("/runs/diff?a={run}&b={run}"), &acme),
        premises.get(&format!("/runs/diff?a={own}&b={run}"), &acme),
        premises.post(&format!("/runs/{run}/fork"), &acme, fork.clone()),
        premises.post(&format!("/runs/{run}/reexecute"), &acme, json!({})),
        premises.post("/threads/case/copy", &acme, json!(null)),
        premises.post("/threads/case/state", &acme, json!({ "values": { "name": "x" } })),
    ] {
        assert_eq!(problem(request).await["status"], 404);
    }
    ok(premises.get(&format!("/runs/diff?a={run}&b={run}"), &umbra)).await;
    ok(premises.post(&format!("/runs/{run}/fork"), &umbra, fork)).await;

    let item = json!({ "namespace": ["notes"], "key": "k", "value": { "said": MARK } });
    let put = premises.ask(Method::PUT, "/store/items", Some(&umbra)).json(&item).send().await.expect("a reply");
    assert_eq!(put.status(), 204);
    assert_eq!(problem(premises.get("/store/items?namespace=notes&key=k", &acme)).await["status"], 404);
    assert_eq!(ok(premises.post("/store/items/search", &acme, json!({}))).await["items"], json!([]));
    assert_eq!(ok(premises.post("/store/namespaces", &acme, json!({}))).await["namespaces"], json!([]));
    assert_eq!(ok(premises.get("/store/items?namespace=notes&key=k", &umbra)).await["value"]["said"], MARK);

    // What one tenant has done with a key is not done for another one.
    let begin = |key: &str| premises.post("/threads", key, json!({})).header("Idempotency-Key", "same");
    let (of_acme, of_umbra) = (ok(begin(&acme)).await, ok(begin(&umbra)).await);
    assert_ne!(of_acme["thread_id"], of_umbra["thread_id"]);
    assert_eq!(ok(begin(&acme)).await, of_acme);
}
