//! Agents that are sent to the server.

use std::fs;

use hotcell_runtime::plugins::Trust;
use hotcell_serve::{Keys, Role};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::desk::{ASK, COUNT, Desk, ECHO, ok, problem};
use crate::site::{ACME, Premises, Setup, UMBRA};

/// A tar archive of files.
fn bundle(files: &[(&str, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, text) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, text.as_bytes()).expect("added");
    }
    builder.into_inner().expect("an archive")
}

fn says(text: &str) -> String {
    format!("name: says\nstart: done\nnodes:\n  done: {{ type: end, output: \"{text}\" }}\n")
}

impl Desk {
    fn send(&self, method: Method, path: &str, bundle: Vec<u8>) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.url));
        request.header("content-type", "application/x-tar").body(bundle)
    }

    fn upload(&self, id: &str, files: &[(&str, &str)]) -> RequestBuilder {
        self.send(Method::POST, &format!("/agents?agent_id={id}"), bundle(files))
    }

    async fn output(&self, agent: &str) -> Value {
        ok(self.post("/runs/wait", json!({ "agent_id": agent, "input": "x" }))).await["output"].clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_sent_replaced_and_removed_and_what_is_under_way_ends_as_it_began() {
    let desk = Desk::with(&[ECHO]).await;
    let sent =
        ok(desk.upload("mine", &[("mine/graph.yaml", &says("one")), ("mine/flows/graph.yaml", &says("below"))])).await;
    let ids: Vec<&str> = sent.as_array().unwrap().iter().map(|agent| agent["agent_id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["mine", "mine.flows"]);
    assert_eq!(sent[0]["metadata"]["origin"], "sent");
    assert_eq!((desk.output("mine").await, desk.output("mine.flows").await), (json!("one"), json!("below")));
    let again = problem(desk.upload("mine", &[("graph.yaml", &says("thief"))])).await;
    assert_eq!(again["type"], "urn:hotcell:problem:agent-exists");

    let put = |id: &str, files: &[(&str, &str)]| desk.send(Method::PUT, &format!("/agents/{id}"), bundle(files));
    ok(put("mine", &[("graph.yaml", ASK.1)])).await;
    assert_eq!(problem(desk.get("/agents/mine.flows")).await["status"], 404);
    let run = desk.begin(json!({ "agent_id": "mine" })).await;
    desk.stands(&run, "waiting").await;
    // What cannot be loaded changes nothing.
    let broken = problem(put("mine", &[("graph.yaml", "name: x\nstart: nowhere\nnodes:\n  a: { type: end }\n")])).await;
    assert_eq!(
        (broken["status"].clone(), broken["type"].clone()),
        (json!(422), json!("urn:hotcell:problem:agent-broken"))
    );
    assert!(
        broken["errors"][0].as_str().is_some_and(|text| text.contains("nowhere") && !text.contains("/tmp")),
        "{broken}"
    );
    assert_eq!(ok(desk.get("/agents/mine")).await["name"], "ask");

    let desk = desk.again().await;
    assert_eq!(ok(desk.get("/agents/mine")).await["name"], "ask", "it is there after another start");
    ok(desk.send(Method::PUT, "/agents/mine", bundle(&[("graph.yaml", &says("three"))]))).await;
    assert_eq!(desk.output("mine").await, "three");
    ok(desk.delete("/agents/mine")).await;
    assert_eq!(problem(desk.get("/agents/mine")).await["status"], 404);
    assert_eq!(problem(desk.delete("/agents/mine")).await["status"], 404);
    ok(desk.post(&format!("/runs/{run}/answers"), json!({ "answer": "Ada" }))).await;
    assert_eq!(ok(desk.get(&format!("/runs/{run}/wait"))).await["output"], "hello Ada");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_agent_or_has_no_name_changes_nothing() {
    let desk = Desk::with(&[ECHO]).await;
    let good = || bundle(&[("graph.yaml", &says("one"))]);
    let post = |id: &str, body: Vec<u8>| desk.send(Method::POST, &format!("/agents?agent_id={id}"), body);
    for (request, status) in [
        (post("echo", good()), 409),
        (post("a.b", good()), 422),
        (post("..%2Fescape", good()), 422),
        (post(&"n".repeat(65), good()), 422),
        (desk.send(Method::POST, "/agents", good()), 422),
        (post("x", b"PK\x03\x04".to_vec()), 415),
        (post("x", b"nothing".to_vec()), 415),
        (post("x", bundle(&[("notes.txt", "no agent")])), 422),
        (post("x", vec![0; (16 << 20) + 1]), 413),
        (desk.post("/agents?agent_id=x", json!({})), 415),
        (desk.send(Method::PUT, "/agents/echo", good()), 409),
        (desk.send(Method::PUT, "/agents/none", good()), 404),
        (desk.delete("/agents/echo"), 409),
        (post("x&more=1", good()), 400),
    ] {
        assert_eq!(problem(request).await["status"], status);
    }
    let left: Vec<_> = fs::read_dir(desk.folder().join("runs.serve.agents")).expect("read").collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(ok(desk.post("/agents/search", json!({}))).await.as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_takes_the_name_of_no_other_agent_also_where_files_have_several() {
    let (head, counter) = COUNT.1.split_once("  counter:").expect("an agent");
    let both = format!("{head}  first:{counter}  second:{counter}");
    let desk = Desk::with(&[ECHO, ("team/agent.yaml", both.as_str())]).await;
    ok(desk.get("/agents/team.first")).await;
    let refused = problem(desk.upload("team", &[("agent.yaml", both.as_str())])).await;
    assert_eq!(refused["type"], "urn:hotcell:problem:agent-exists", "{refused}");
    // A server does not begin where two agents have one name.
    let desk = desk.again().await;
    ok(desk.get("/agents/team.second")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_that_was_sent_has_only_so_many_files() {
    let desk = Desk::with(&[ECHO]).await;
    ok(desk.upload("one", &[("graph.yaml", &says("one"))])).await;
    let full = desk.folder().join("runs.serve.agents/full");
    fs::create_dir(&full).expect("made");
    for number in 0..20_000 {
        fs::write(full.join(format!("{number}")), "").expect("written");
    }
    let refused = problem(desk.upload("two", &[("graph.yaml", &says("two"))])).await;
    assert_eq!((refused["status"].clone(), refused["limit"].clone()), (json!(409), json!(20_000)), "{refused}");
    fs::remove_dir_all(&full).expect("removed");
    ok(desk.upload("two", &[("graph.yaml", &says("two"))])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_bundle_brings_grants_nothing_until_somebody_who_runs_the_server_trusts_it() {
    let graph = "name: reads\nstart: work\nnodes:\n  work: { type: script, script: scripts/work.js, next: done }\n  done: { type: end, output: \"{{said}}\" }\n";
    let script = "console.log(JSON.stringify({ said: process.env.DESK_SECRET ?? 'nothing' }))";
    let granted = "[grants.'scripts/work.js']\nenv = ['DESK_SECRET']\n";
    let files = [("graph.yaml", graph), ("scripts/work.js", script), ("hotcell.toml", granted)];
    // Everything that somebody named may grant.
    let desk = Desk::with(&[
        ECHO,
        ("named/graph.yaml", graph),
        ("named/scripts/work.js", script),
        ("named/hotcell.toml", granted),
    ])
    .await;
    assert_eq!(desk.output("named").await, crate::desk::SECRET);
    ok(desk.upload("sent", &files)).await;
    assert_eq!(desk.output("sent").await, "nothing");
    let desk = desk.again().await;
    assert_eq!(desk.output("sent").await, "nothing", "also after another start");

    // Where folders are listed that are trusted, whoever runs the server may list this one; another bundle is another folder.
    let list = desk.folder().join("trust.toml");
    let trust = Trust::Listed(list.clone());
    let desk = desk.trusting(trust.clone()).await;
    assert_eq!(desk.output("sent").await, "nothing");
    let place = desk.folder().join("runs.serve.agents/sent");
    hotcell_runtime::plugins::AgentFolder::open(&place, &trust).expect("opened").trust(&trust).expect("trusted");
    crate::desk::until_async("it counts", async || desk.output("sent").await == crate::desk::SECRET).await;
    ok(desk.send(Method::PUT, "/agents/sent", bundle(&files))).await;
    assert_eq!(desk.output("sent").await, "nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_whoever_administers_sends_agents() {
    let desk = Desk::with(&[ECHO]).await;
    let keys = Keys::open(&desk.folder().join("runs.serve.db")).expect("keys");
    let key = |role: Role| keys.add("test", None, &[role], None).expect("a key").reveal().to_string();
    let (operate, administer) = (key(Role::Operate), key(Role::Administer));
    let files = [("graph.yaml", &*says("one"))];
    assert_eq!(problem(desk.upload("x", &files).bearer_auth(&operate)).await["status"], 403);
    ok(desk.upload("x", &files).bearer_auth(&administer)).await;
    assert_eq!(problem(desk.delete("/agents/x").bearer_auth(&operate)).await["status"], 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_sends_agents_for_itself() {
    let files = [("acme/echo/graph.yaml", ECHO.1), ("umbra/echo/graph.yaml", ECHO.1)];
    let premises = Premises::set_up(Setup { files: &files, ..Setup::default() }).await;
    let (acme, umbra) = (premises.key(ACME), premises.key(UMBRA));
    let sent = premises.ask(Method::POST, "/agents?agent_id=mine", Some(&acme));
    let one = says("one");
    ok(sent.header("content-type", "application/x-tar").body(bundle(&[("graph.yaml", one.as_str())]))).await;
    let run = json!({ "agent_id": "mine", "input": "x" });
    assert_eq!(ok(premises.post("/runs/wait", &acme, run.clone())).await["output"], "one");
    assert_eq!(problem(premises.post("/runs/wait", &umbra, run.clone())).await["status"], 404);
    let premises = premises.again().await;
    assert_eq!(ok(premises.post("/runs/wait", &acme, run)).await["output"], "one");
}
