//! Agents and skills at other addresses: nothing is reached without a grant, and what an agent asks reaches the person.

use std::sync::{Arc, Mutex};

use hotcell_loopback::tls::{certificates, in_front_of};
use hotcell_loopback::{Loopback, Script, Site, WebAnswer, WebRequest, WebServer};
use hotcell_runtime::{
    Entry, Fact, ForkOrigin, ForkRequest, Host, HostOptions, JournalChoice, Nobody, Outcome, Outward, RevisionChoice,
    RunInput,
};
use serde_json::{Value, json};

use crate::declarative::talker;
use crate::desk::{Desk, Says, calls, error, output, told};

/// What the agent was sent, in order.
type Sent = Arc<Mutex<Vec<Value>>>;

/// A desk with an agent over there, which does with a text what `act` says: the result of `message/send`, by the text
/// and how many messages came before.
fn desk(act: impl Fn(&str, usize) -> Value + Send + Sync + 'static) -> (Desk, Site, Sent) {
    let sent: Sent = Arc::default();
    let seen = sent.clone();
    let answer = move |path: &str, body: &[u8]| match path {
        "/agents/clerk/.well-known/agent-card.json" => {
            Some(json!({ "name": "clerk", "url": "/rpc", "preferredTransport": "JSONRPC" }).to_string())
        }
        "/rpc" => {
            let request: Value = serde_json::from_slice(body).unwrap();
            let mut seen = seen.lock().unwrap();
            let text = request["params"]["message"]["parts"][0]["text"].as_str().unwrap_or_default();
            let mut answer = act(text, seen.len());
            seen.push(request.clone());
            answer["jsonrpc"] = "2.0".into();
            answer["id"] = request["id"].clone();
            Some(answer.to_string())
        }
        _ => None,
    };
    let site = Site::start(answer).unwrap();
    let declared = format!("sub_agents: [{{id: clerk, url: '{}/agents/clerk'}}]", site.origin());
    let text = talker(&declared).replace("use_tools_from_registry: true", "use_sub_agents_as_tools: true");
    (Desk::of("agent.yaml", &text), site, sent)
}

fn task(state: &str, text: &str) -> Value {
    let message =
        json!({ "kind": "message", "role": "agent", "messageId": "x", "parts": [{ "kind": "text", "text": text }] });
    json!({ "result": { "kind": "task", "id": "t1", "contextId": "c1", "status": { "state": state, "message": message } } })
}

fn granted(desk: &Desk, site: &Site) {
    desk.settings(&format!("[grants.agent]\nhttp = ['{}']", site.origin()));
}

fn asks() -> Value {
    calls("clerk", json!({ "request": "book a room" }))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_at_an_address_is_called_once_it_is_granted() {
    let (desk, site, sent) = desk(|text, _| {
        let artifact = json!({ "artifactId": "a", "parts": [{ "kind": "text", "text": format!("did: {text}") }] });
        let mut answer = task("completed", "done");
        answer["result"]["artifacts"] = json!([artifact]);
        answer
    });
    let refused = desk.refusal();
    assert!(refused.contains("[grants.agent]") || refused.contains("[grants.\"agent\"]"), "{refused}");
    assert!(refused.contains(&site.origin()), "{refused}");
    granted(&desk, &site);
    let (report, model) = desk.run(asks()).await;
    assert_eq!((output(&report).as_str(), told(&model).as_str()), ("done", "did: book a room"));
    let request = sent.lock().unwrap()[0].clone();
    assert_eq!((&request["method"], &request["params"]["message"]["role"]), (&json!("message/send"), &json!("user")));
    assert!(report.account.iter().any(|(who, _)| who == "a2a:clerk"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_at_an_address_hears_nothing_of_a_fork_unless_that_is_allowed() {
    let (desk, site, sent) = desk(|text, _| task("completed", &format!("did: {text}")));
    granted(&desk, &site);
    let model = Loopback::start(Script::from_json(&asks()).unwrap()).unwrap();
    let host = desk.host(&model);
    let given = RunInput { input: Some("go".to_owned()), ..RunInput::default() };
    let run = desk.start(&host, given, Arc::new(Nobody)).await.unwrap().run;
    let entries = host.journal().history(&run).await.unwrap().whole().unwrap();
    let is_reply = |entry: &Entry| matches!(&entry.fact, Fact::Effect { kind, .. } if kind == "model");
    let at = entries.iter().position(is_reply).unwrap() as u64 + 1;
    let fork = async |allowed: &[Outward]| {
        let origin = ForkOrigin { run: run.to_string(), at, allowed: allowed.to_vec(), ..ForkOrigin::default() };
        let wanted = ForkRequest { origin, ..ForkRequest::default() };
        host.fork(wanted, &RevisionChoice::Own, Desk::session(Arc::new(Nobody))).await.unwrap()
    };
    let report = fork(&[]).await;
    let Outcome::Stopped { reason } = &report.outcome else { panic!("{:?}", report.outcome) };
    assert!(reason.contains("a message to the agent `clerk`"), "{reason}");
    assert_eq!(sent.lock().unwrap().len(), 1);
    fork(&[Outward::Http]).await;
    assert_eq!(sent.lock().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_at_an_address_asks_reaches_the_person_also_in_another_process() {
    let (desk, site, sent) = desk(|text, before| match before {
        0 => task("input-required", "For how many?"),
        _ => task("completed", &format!("a room for {text}")),
    });
    granted(&desk, &site);
    let (report, model) = desk.run_with(asks(), Arc::new(Says("four"))).await;
    assert_eq!((output(&report).as_str(), told(&model).as_str()), ("done", "a room for four"));
    let second = sent.lock().unwrap()[1].clone();
    let message = &second["params"]["message"];
    assert_eq!((&message["taskId"], &message["contextId"]), (&json!("t1"), &json!("c1")));

    sent.lock().unwrap().clear();
    let model = Loopback::start(Script::from_json(&asks()).unwrap()).unwrap();
    let journal = || JournalChoice::File(desk.path("runs.db"));
    let host = |first: &Host| first.beside(HostOptions { journal: journal(), ..desk.options(&model) }).unwrap();
    let engine = desk.host(&model);
    let given = RunInput { input: Some("go".to_owned()), ..RunInput::default() };
    let report = desk.start(&host(&engine), given, Arc::new(Nobody)).await.unwrap();
    let Outcome::Waiting { questions } = &report.outcome else { panic!("{:?}", report.outcome) };
    assert_eq!(questions[0].text, "For how many?");
    let later = host(&engine);
    later.answer(report.run.as_str(), None, "two").await.unwrap();
    let report = later.resume(report.run.as_str(), Desk::session(Arc::new(Nobody))).await.unwrap();
    assert_eq!((output(&report).as_str(), told(&model).as_str()), ("done", "a room for two"));
    assert_eq!(sent.lock().unwrap().len(), 2, "what was sent is not sent again");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_works_is_asked_until_it_is_done() {
    let (desk, site, sent) = desk(|_, before| match before {
        0 | 1 => task("working", ""),
        _ => task("completed", "there it is"),
    });
    granted(&desk, &site);
    let (_, model) = desk.run(asks()).await;
    assert_eq!(told(&model), "there it is");
    let methods: Vec<Value> = sent.lock().unwrap().iter().map(|request| request["method"].clone()).collect();
    assert_eq!(methods, ["message/send", "tasks/get", "tasks/get"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_fails_or_talks_nonsense_fails_its_caller() {
    let cases: [(Value, &str); 6] = [
        (
            task("failed", "no rooms"),
            "agent `clerk`: node `clerk` failed: `clerk` failed: its task is failed: no rooms",
        ),
        (task("auth-required", "who are you?"), "requires somebody to sign in first"),
        (json!({ "error": { "code": -32601, "message": "what?" } }), "refused `message/send`: what? (-32601)"),
        (json!({ "result": [] }), "neither a message nor a task"),
        (json!({ "result": {} }), "neither a message nor a task"),
        (
            json!({ "result": { "kind": "message", "role": "agent", "parts": [{ "kind": "file", "file": {} }] } }),
            "only texts and data are taken",
        ),
    ];
    for (answer, expected) in cases {
        let (desk, site, _) = desk(move |_, _| answer.clone());
        granted(&desk, &site);
        let (report, _) = desk.run(asks()).await;
        assert!(error(&report).contains(expected), "{expected}: {}", error(&report));
    }
}

/// Whoever answers could otherwise have more JSON read than was looked at, and nest it as deeply as they like.
#[tokio::test(flavor = "multi_thread")]
async fn data_of_an_agent_at_an_address_is_taken_as_it_was_written() {
    let data = json!({ "$serde_json::private::RawValue": "[1]" });
    let expected = data.to_string();
    let answer =
        json!({ "result": { "kind": "message", "role": "agent", "parts": [{ "kind": "data", "data": data }] } });
    let (desk, site, _) = desk(move |_, _| answer.clone());
    granted(&desk, &site);
    let (_, model) = desk.run(asks()).await;
    assert_eq!(told(&model), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_of_an_agent_at_an_address_has_an_end() {
    let (desk, site, _) = desk(|_, _| task("completed", &"x".repeat(17 << 20)));
    granted(&desk, &site);
    let (report, _) = desk.run(asks()).await;
    assert!(error(&report).contains("is used up"), "{}", error(&report));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_skill_at_an_address_is_read_once_it_is_granted() {
    let site = Site::start(|path, _| match path {
        "/skills/weather/card.json" => Some(
            json!({ "id": "weather", "name": "Weather", "description": "Knows", "files": ["SKILL.md", "references/units.md"] })
                .to_string(),
        ),
        "/skills/weather/SKILL.md" => Some("Look out of the window.".to_owned()),
        "/skills/weather/references/units.md" => Some("Degrees.".to_owned()),
        _ => None,
    })
    .unwrap();
    let url = format!("{}/skills/weather/card.json", site.origin());
    let desk = Desk::of("agent.yaml", &talker(&format!("skills: [{{id: weather, url: '{url}'}}]")));
    assert!(desk.refusal().contains(&site.origin()), "{}", desk.refusal());
    granted(&desk, &site);
    let (_, model) = desk.run(calls("load_skill_md", json!({ "skill_id": "weather" }))).await;
    assert_eq!(told(&model), "Look out of the window.");
    let wanted = json!({ "skill_id": "weather", "resource_path": "references/units.md" });
    let (_, model) = desk.run(calls("load_skill_resource", wanted)).await;
    assert_eq!(told(&model), "Degrees.");
}

#[test]
fn files_of_a_skill_at_an_address_stay_below_it() {
    let site = Site::start(|path, _| match path {
        "/skills/card.json" => Some(json!({ "id": "s", "files": ["../secret"] }).to_string()),
        "/skills/SKILL.md" | "/secret" => Some("text".to_owned()),
        _ => None,
    })
    .unwrap();
    let url = format!("{}/skills/card.json", site.origin());
    let desk = Desk::of("agent.yaml", &talker(&format!("skills: [{{id: s, url: '{url}'}}]")));
    granted(&desk, &site);
    assert!(desk.refusal().contains("it leads out of its folder"), "{}", desk.refusal());
}

/// An agent at an address, as a configuration of the Open Agent Specification names it.
fn configured(url: &str, connection: &Value) -> Desk {
    let mut connection = connection.clone();
    for (name, value) in [("component_type", "A2AConnectionConfig"), ("id", "way"), ("name", "way")] {
        connection[name] = value.into();
    }
    let agent = json!({
        "agentspec_version": "26.1.2", "component_type": "A2AAgent", "id": "clerk", "name": "clerk", "agent_url": url,
        "connection_config": connection,
    });
    Desk::of("agent.json", &agent.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_to_an_agent_at_an_address_are_made_as_its_connection_says() {
    let asked: Sent = Arc::default();
    let seen = asked.clone();
    let answer = move |request: &WebRequest| {
        let body = match &*request.path {
            "/clerk/.well-known/agent-card.json" => json!({ "name": "clerk", "url": "/rpc" }),
            "/away/.well-known/agent-card.json" => json!({ "url": "http://127.0.0.1:9/rpc" }),
            "/rpc" => {
                let mut seen = seen.lock().unwrap();
                seen.push(serde_json::from_slice(&request.body).unwrap());
                // Nothing there answers with the status 404.
                (seen.len() > 1).then(|| task("completed", "booked"))?
            }
            _ => return None,
        };
        Some(WebAnswer { status: 200, body: body.to_string(), is_json: true, headers: Vec::new() })
    };
    let site = WebServer::start(answer).unwrap();
    let origin = format!("http://127.0.0.1:{}", site.port());
    let model = || Loopback::start(Script::from_json(&json!([])).unwrap()).unwrap();
    let run = async |path: &str, connection: Value| {
        let desk = configured(&format!("{origin}/{path}"), &connection);
        desk.settings(&format!("[grants.agent]\nhttp = ['{origin}', 'http://127.0.0.1:9']"));
        let (model, given) = (model(), RunInput { input: Some("book a room".to_owned()), ..RunInput::default() });
        desk.start(&desk.host(&model), given, Arc::new(Nobody)).await.unwrap()
    };
    let policy = |statuses: Value| json!({ "max_attempts": 2, "initial_retry_delay": 0, "max_retry_delay": 0, "recoverable_statuses": statuses });

    let headers = json!({ "Authorization": "Bearer 0123456789" });
    let report = run("clerk", json!({ "headers": headers, "retry_policy": policy(json!({})) })).await;
    assert!(error(&report).contains("status 404"), "{}", error(&report));
    assert_eq!(asked.lock().unwrap().len(), 1, "nobody said that this may be tried again");
    asked.lock().unwrap().clear();
    let report = run("clerk", json!({ "headers": headers, "retry_policy": policy(json!({ "404": [] })) })).await;
    assert_eq!(output(&report), "booked");
    let sent = site.requests();
    let last = sent.last().unwrap();
    assert!(last.headers.contains(&("authorization".to_owned(), "Bearer 0123456789".to_owned())), "{last:?}");
    assert_eq!(asked.lock().unwrap().len(), 2);

    // What is written for one server goes to no other.
    let report = run("away", json!({ "headers": headers })).await;
    assert!(error(&report).contains("another server"), "{}", error(&report));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_wants_a_certificate_is_shown_the_right_one() {
    let site = WebServer::start(|request: &WebRequest| {
        let body = match &*request.path {
            "/clerk/.well-known/agent-card.json" => json!({ "name": "clerk", "url": "/rpc" }),
            "/rpc" => task("completed", "booked"),
            _ => return None,
        };
        Some(WebAnswer { status: 200, body: body.to_string(), is_json: true, headers: Vec::new() })
    })
    .unwrap();
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path()).unwrap();
    let port = in_front_of(folder.path(), ([127, 0, 0, 1], site.port()).into()).await.unwrap();
    let origin = format!("https://localhost:{port}");
    let connection = |folder: &str, client: &str| {
        json!({
            "ssl_ca_cert": format!("{folder}ca.pem"), "cert_file": format!("{folder}{client}.pem"),
            "key_file": format!("{folder}{client}.key"),
        })
    };
    for (client, expected) in [("client", Ok("booked")), ("stranger", Err("cannot be fetched"))] {
        let desk = configured(&format!("{origin}/clerk"), &connection("", client));
        for file in std::fs::read_dir(folder.path()).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), desk.path(file.file_name().to_str().unwrap())).unwrap();
        }
        desk.settings(&format!("[grants.agent]\nhttp = ['{origin}']"));
        let model = Loopback::start(Script::from_json(&json!([])).unwrap()).unwrap();
        let given = RunInput { input: Some("book a room".to_owned()), ..RunInput::default() };
        let report = desk.start(&desk.host(&model), given, Arc::new(Nobody)).await.unwrap();
        match expected {
            Ok(said) => assert_eq!(output(&report), said),
            Err(part) => assert!(error(&report).contains(part), "{}", error(&report)),
        }
    }

    // Keys outside of the folder are not for whoever wrote the configuration to choose.
    let outside = format!("{}/", folder.path().display());
    let desk = configured(&format!("{origin}/clerk"), &connection(&outside, "client"));
    desk.settings(&format!("[grants.agent]\nhttp = ['{origin}']"));
    let refused = desk.refusal();
    assert!(refused.contains("client.key` lies outside of the agent's folder"), "{refused}");
    assert!(refused.contains("[grants.agent]") || refused.contains("[grants.\"agent\"]"), "{refused}");
    let directory = format!("fs = [{{ host = \"{}\", guest = \"/keys\" }}]", folder.path().display());
    desk.settings(&directory);
    let model = Loopback::start(Script::from_json(&json!([])).unwrap()).unwrap();
    let given = RunInput { input: Some("book a room".to_owned()), ..RunInput::default() };
    assert_eq!(output(&desk.start(&desk.host(&model), given, Arc::new(Nobody)).await.unwrap()), "booked");
}
