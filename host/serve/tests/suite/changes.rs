//! Files of agents that change while the server works.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use hotcell_serve::Watching;
use serde_json::{Value, json};

use crate::desk::{ASK, Desk, ECHO, SLOW, ok, problem, until_async};

/// A graph that says something.
fn says(text: &str) -> String {
    format!("name: says\nstart: done\nnodes:\n  done: {{ type: end, output: \"{text}\" }}\n")
}

impl Desk {
    fn file(&self, name: &str) -> PathBuf {
        self.folder().join("agents").join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.file(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    }

    async fn ids(&self) -> Vec<String> {
        let all = ok(self.post("/agents/search", json!({ "limit": 1000 }))).await;
        all.as_array()
            .expect("agents")
            .iter()
            .map(|agent| agent["agent_id"].as_str().expect("text").to_owned())
            .collect()
    }

    async fn serves(&self, id: &str) {
        until_async(&format!("`{id}` is served"), async || self.ids().await.iter().any(|served| served == id)).await;
    }

    async fn said(&self, agent: &str) -> Value {
        ok(self.post("/runs/wait", json!({ "agent_id": agent, "input": "x" }))).await["output"].clone()
    }

    async fn comes_to_say(&self, agent: &str, text: &str) {
        until_async(&format!("`{agent}` says `{text}`"), async || self.said(agent).await == text).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_changed_or_removed_file_counts_and_what_is_under_way_ends_as_it_began() {
    let desk = Desk::with(&[ASK, ECHO]).await;
    let run = desk.begin(json!({ "agent_id": "ask" })).await;
    desk.stands(&run, "waiting").await;
    let before = ok(desk.get("/agents/ask")).await["metadata"]["revision"].clone();

    desk.write("new/deep/graph.yaml", &says("hello"));
    desk.serves("new.deep").await;
    assert_eq!(desk.said("new.deep").await, "hello");

    desk.write("ask/graph.yaml", &ASK.1.replace("hello {{name}}", "good evening {{name}}"));
    until_async("it has a new revision", async || ok(desk.get("/agents/ask")).await["metadata"]["revision"] != before)
        .await;
    let later = desk.begin(json!({ "agent_id": "ask" })).await;
    desk.stands(&later, "waiting").await;

    fs::remove_dir_all(desk.file("ask")).expect("removed");
    until_async("it is gone", async || !desk.ids().await.contains(&"ask".to_owned())).await;
    let gone = problem(desk.post("/runs", json!({ "agent_id": "ask" }))).await;
    assert_eq!(gone["type"], "urn:hotcell:problem:unknown-agent");
    // People see what it asked, also after another start, and each run ends with what it began with.
    let desk = desk.again().await;
    assert_eq!(ok(desk.get("/inbox")).await["items"].as_array().expect("questions").len(), 2);
    for (run, output) in [(run, "hello Ada"), (later, "good evening Ada")] {
        ok(desk.post(&format!("/runs/{run}/answers"), json!({ "answer": "Ada" }))).await;
        assert_eq!(ok(desk.get(&format!("/runs/{run}/wait"))).await["output"], output);
    }
    desk.write("ask/graph.yaml", ASK.1);
    desk.serves("ask").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_loaded_leaves_what_was_served_and_says_why() {
    let desk = Desk::with(&[ECHO, SLOW, ("says/graph.yaml", &says("one"))]).await;
    desk.write("says/graph.yaml", "name: says\nstart: nowhere\nnodes:\n  done: { type: end }\n");
    until_async("that is said", async || ok(desk.get("/agents/says")).await["load_error"] != Value::Null).await;
    let agent = ok(desk.get("/agents/says")).await;
    let detail = agent["load_error"]["detail"].as_str().expect("text");
    assert!(detail.contains("nowhere") && !detail.contains(&*desk.folder().to_string_lossy()), "{detail}");
    assert_eq!(desk.said("says").await, "one");
    // What looks like no agent any more is half of one.
    desk.write("says/graph.yaml", "");
    desk.write("first/graph.yaml", &says("barrier"));
    desk.serves("first").await;
    assert_eq!(desk.said("says").await, "one");
    desk.write("says/graph.yaml", &says("two"));
    desk.comes_to_say("says", "two").await;
    assert_eq!(ok(desk.get("/agents/says")).await["load_error"], Value::Null);

    // One that never could be loaded says why, too, and what it lacks may come.
    desk.write("late/graph.yaml", "name: late\nstart: work\nnodes:\n  work: { type: script, script: scripts/work.js, next: done }\n  done: { type: end, output: \"{{said}}\" }\n");
    until_async("it is known", async || {
        problem(desk.get("/agents/late")).await["type"] == "urn:hotcell:problem:agent-broken"
    })
    .await;
    desk.write("late/scripts/work.js", "console.log(JSON.stringify({ said: 'at last' }))");
    desk.serves("late").await;
    assert_eq!(desk.said("late").await, "at last");
    // A name that another one has is not taken from it.
    desk.write("says.yaml", &says("thief"));
    until_async("that is said", async || ok(desk.get("/agents/says")).await["load_error"] != Value::Null).await;
    assert_eq!(desk.said("says").await, "two");
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_somebody_is_not_done_with_is_not_served() {
    let desk = Desk::with(&[ECHO, ("says/graph.yaml", &says("one"))]).await;
    // What is written before the server watches was told to nobody.
    desk.write("zeroth/graph.yaml", &says("barrier"));
    desk.serves("zeroth").await;
    // Half of it is an agent of its own.
    let half = says("half");
    let mut file = fs::File::create(desk.file("says/graph.yaml")).expect("opened");
    file.write_all(half.as_bytes()).expect("written");
    file.sync_all().expect("on disk");
    for barrier in ["first", "second"] {
        desk.write(&format!("{barrier}/graph.yaml"), &says("barrier"));
        desk.serves(barrier).await;
        assert_eq!(desk.said("says").await, "one");
    }
    file.write_all(b"description: And this belongs to it\n").expect("written");
    drop(file);
    desk.comes_to_say("says", "half").await;
    assert_eq!(ok(desk.get("/agents/says")).await["description"], "And this belongs to it");
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_leaves_the_folder_brings_nothing() {
    let desk = Desk::with(&[ECHO]).await;
    let outside = desk.folder().join("outside");
    fs::create_dir(&outside).expect("made");
    fs::write(outside.join("graph.yaml"), says("outside")).expect("written");
    std::os::unix::fs::symlink(&outside, desk.file("linked")).expect("linked");
    fs::create_dir(desk.file("file")).expect("made");
    std::os::unix::fs::symlink(outside.join("graph.yaml"), desk.file("file/graph.yaml")).expect("linked");
    desk.write("last/graph.yaml", &says("barrier"));
    desk.serves("last").await;
    // An agent that is replaced by a link to somewhere else is not that.
    fs::remove_file(desk.file("last/graph.yaml")).expect("removed");
    std::os::unix::fs::symlink(outside.join("graph.yaml"), desk.file("last/graph.yaml")).expect("linked");
    desk.write("end/graph.yaml", &says("barrier"));
    desk.serves("end").await;
    assert!(!desk.ids().await.iter().any(|id| ["linked", "file"].contains(&&**id)), "{:?}", desk.ids().await);
    let body = serde_json::json!({ "agent_id": "last", "input": "x" });
    let reply = desk.post("/runs/wait", body).send().await.expect("a reply").text().await.expect("text");
    assert!(!reply.contains("outside"), "{reply}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_changes_ends_with_what_is_there_and_keeps_nobody_waiting() {
    let desk = Desk::with(&[ECHO, ("says/graph.yaml", &says("0"))]).await;
    let folder = desk.file("");
    let flood = tokio::task::spawn_blocking(move || {
        for number in 1..=300 {
            // Each is longer than the one before: a file system may not tell two times apart that are a few milliseconds apart.
            fs::write(folder.join("says/graph.yaml"), says(&"x".repeat(number))).expect("written");
            for file in 0..10 {
                fs::write(folder.join(format!("says/{number}-{file}.txt")), "noise").expect("written");
            }
        }
    });
    while !flood.is_finished() {
        assert_eq!(desk.said("echo").await, "you said x");
    }
    flood.await.expect("written");
    desk.comes_to_say("says", &"x".repeat(300)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_vanishes_is_served_as_it_was_and_says_so() {
    let desk = Desk::with(&[ECHO, ("says/graph.yaml", &says("one"))]).await;
    let (folder, away) = (desk.file(""), desk.folder().join("away"));
    fs::rename(&folder, &away).expect("moved");
    until_async("that is said", async || ok(desk.get("/agents/says")).await["load_error"] != Value::Null).await;
    let agent = ok(desk.get("/agents/says")).await;
    assert!(agent["load_error"]["detail"].as_str().is_some_and(|text| text.contains("not there")), "{agent}");
    assert_eq!((desk.said("says").await, desk.said("echo").await), (json!("one"), json!("you said x")));
    fs::write(away.join("says/graph.yaml"), says("two")).expect("written");
    fs::rename(&away, &folder).expect("moved");
    desk.comes_to_say("says", "two").await;
    assert_eq!(ok(desk.get("/agents/says")).await["load_error"], Value::Null);
    // It was made anew, and is watched all the same.
    desk.write("late/graph.yaml", &says("late"));
    desk.serves("late").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_the_system_tells_nothing_it_is_looked() {
    let every = Watching::Every(Duration::from_millis(10));
    let desk = Desk::set_up(&[("says/graph.yaml", &says("one"))], |settings| settings.watching = every).await;
    desk.write("says/graph.yaml", &says("two"));
    desk.comes_to_say("says", "two").await;
}

/// Asks a model, and then does what a script says.
const LATER: &str = "name: later\nstart: ask\nnodes:\n  ask: { type: llm, prompt: go, next: work }\n  work: { type: script, script: scripts/work.js, next: done }\n  done: { type: end, output: \"{{said}}\" }\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_that_is_revoked_stops_the_next_call_of_a_run_that_is_under_way() {
    let script = "console.log(JSON.stringify({ said: process.env.DESK_SECRET ?? 'nothing' }))";
    let granted = "[grants.'scripts/work.js']\nenv = ['DESK_SECRET']\n";
    let files = [("later/graph.yaml", LATER), ("later/scripts/work.js", script), ("later/hotcell.toml", granted)];
    let desk = Desk::with(&files).await;
    desk.model.answers(1);
    assert_eq!(desk.said("later").await, crate::desk::SECRET);
    let run = desk.begin(json!({ "input": "x" })).await;
    desk.model.was_asked(2).await;
    desk.write("later/hotcell.toml", "");
    desk.model.answers(1);
    assert_eq!(ok(desk.get(&format!("/runs/{run}/wait"))).await["output"], "nothing");
    desk.model.answers(10_000);
    desk.comes_to_say("later", "nothing").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_file_of_a_mesh_wins_over_what_was_changed_of_its_agents() {
    let desk = Desk::with(&[crate::mesh::MESH]).await;
    let path = "/api/yaml/agents/draft";
    let request = desk.client.patch(format!("{}{path}", desk.url)).json(&json!({ "prompt": "Over HTTP." }));
    ok(request).await;
    let prompt = async || {
        desk.model.answers(1);
        ok(desk.post("/api/mesh/request", json!({ "entry_point": "story", "data": { "about": "rain" } }))).await;
        desk.model.requests().last().expect("asked").to_string()
    };
    assert!(prompt().await.contains("Over HTTP."));
    // Something else that it may be loaded from: the change stays.
    desk.write("press/mcp.json", "{\"mcpServers\": {}}");
    desk.write("first/graph.yaml", &says("barrier"));
    desk.serves("first").await;
    assert!(prompt().await.contains("Over HTTP."));
    desk.write("press/mesh.yaml", &crate::mesh::MESH.1.replace("Draft it.", "From the file."));
    until_async("the file counts", async || prompt().await.contains("From the file.")).await;
    // A mesh that comes and goes.
    fs::remove_file(desk.file("press/mesh.yaml")).expect("removed");
    until_async("it is gone", async || desk.get("/api/system/status").send().await.expect("a reply").status() == 404)
        .await;
    desk.write("other/mesh.yaml", crate::mesh::MESH.1);
    until_async("it is there", async || desk.get("/api/system/status").send().await.expect("a reply").status() == 200)
        .await;
}
