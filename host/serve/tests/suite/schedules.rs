//! Schedules: runs that begin by themselves, each of their times once.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hotcell_runtime::ManualClock;
use hotcell_serve::{Keys, Role};
use serde_json::{Value, json};

use crate::desk::{Desk, ECHO, ok, opened, problem, until_async};
use crate::hours::{HOUR, PATIENCE, until};
use crate::site::{ACME, Premises, Setup};

const MORNING: (&str, &str) = (
    "echo/hotcell.toml",
    "[[schedule]]\nname = 'morning'\ncron = '0 9 * * *'\nzone = 'Europe/Berlin'\ninput = 'wake'\n",
);

impl Desk {
    /// What all runs came to, the newest first.
    async fn outputs(&self) -> Vec<Value> {
        let page = ok(self.get("/runs?limit=1000")).await;
        page["runs"].as_array().expect("runs").iter().map(|run| run["outcome"].clone()).collect()
    }

    /// Waits until so many runs have ended, and gives what they came to, the newest first. There are no more of them.
    async fn ended(&self, count: usize) -> Vec<Value> {
        let are_over = |outputs: &[Value]| outputs.len() >= count && outputs.iter().all(Value::is_string);
        until_async(&format!("{count} runs have ended"), async || are_over(&self.outputs().await)).await;
        let outputs = self.outputs().await;
        assert_eq!(outputs.len(), count, "{outputs:?}");
        outputs
    }

    async fn schedule(&self, id: &str) -> Value {
        ok(self.get(&format!("/schedules/{id}"))).await
    }

    fn patch(&self, path: &str, body: Value) -> reqwest::RequestBuilder {
        self.client.patch(format!("{}{path}", self.url)).json(&body)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_of_a_folder_begins_one_run_over_restarts_and_goes_by_the_file_as_it_is() {
    let (desk, clock) = Desk::by_hand(&[ECHO, MORNING]).await;
    until(&clock, 7).await;
    assert!(desk.outputs().await.is_empty());
    // Nine in Berlin was eight in UTC.
    until(&clock, 8).await;
    assert_eq!(desk.ended(1).await, ["you said wake"]);
    let shown = desk.schedule("echo:morning").await;
    assert_eq!((shown["origin"].clone(), shown["next_at"].clone()), (json!("file"), json!("1970-01-02T08:00:00Z")));
    assert_eq!(shown["firings"][0]["due"], "1970-01-01T08:00:00Z");
    assert!(shown["firings"][0]["run_id"].is_string(), "{shown}");
    let mut desk = desk.again().await;
    until(&clock, 9).await;
    assert_eq!(desk.outputs().await.len(), 1, "it was begun already");

    // Its time passes while there is no server, and the next one makes it good.
    desk.stop().await;
    clock.advance_to(SystemTime::UNIX_EPOCH + HOUR * 32 + Duration::from_secs(600));
    let desk = desk.again().await;
    until(&clock, 33).await;
    desk.ended(2).await;

    fs::write(desk.folder().join("agents").join(MORNING.0), MORNING.1.replace("0 9", "0 15")).expect("written");
    until_async("it counts", async || desk.schedule("echo:morning").await["cron"] == "0 15 * * *").await;
    until(&clock, 39).await;
    desk.ended(3).await;
    until(&clock, 48 + 9).await;
    assert_eq!(desk.outputs().await.len(), 3, "the earlier time is none any more");
    fs::write(desk.folder().join("agents").join(MORNING.0), "").expect("written");
    until_async("it is gone", async || ok(desk.get("/schedules")).await["items"] == json!([])).await;
    until(&clock, 100).await;
    assert_eq!(desk.outputs().await.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_times_that_were_missed_those_are_made_good_that_the_schedule_says() {
    let (mut desk, clock) = Desk::by_hand(&[ECHO]).await;
    for misfire in ["all", "last", "skip"] {
        let body = json!({
            "agent_id": "echo", "cron": "0 * * * *", "input": misfire, "misfire": misfire, "grace_seconds": 10 * 3600,
        });
        let made = ok(desk.post("/schedules", body)).await;
        assert_eq!((made["enabled"].clone(), made["next_at"].clone()), (json!(true), json!("1970-01-01T01:00:00Z")));
    }
    desk.stop().await;
    clock.advance_to(SystemTime::UNIX_EPOCH + HOUR * 3 + Duration::from_secs(1800));
    let desk = desk.again().await;
    desk.ended(4).await;
    assert!(clock.settled(PATIENCE).await, "{clock:?}");
    let mut outputs: Vec<String> =
        desk.ended(4).await.iter().map(|output| output.as_str().expect("text").to_owned()).collect();
    outputs.sort();
    assert_eq!(outputs, ["you said all", "you said all", "you said all", "you said last"]);
    until(&clock, 4).await;
    desk.ended(7).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_was_begun_before_that_was_noted_is_not_begun_again() {
    let (desk, clock) = Desk::by_hand(&[ECHO, MORNING]).await;
    until(&clock, 8).await;
    desk.ended(1).await;
    let mut desk = desk;
    desk.stop().await;
    // As if it had ended after the run was in the journal, and before anything else was noted.
    let file = opened(&desk.folder().join("runs.serve.db"));
    assert_eq!(file.execute("UPDATE schedule_firings SET run = NULL", []).expect("forgotten"), 1);
    assert_eq!(file.execute("UPDATE schedule_times SET done = 0", []).expect("forgotten"), 1);
    drop(file);
    let desk = desk.again().await;
    until_async("it is found", async || desk.schedule("echo:morning").await["firings"][0]["run_id"].is_string()).await;
    assert!(clock.settled(PATIENCE).await, "{clock:?}");
    assert_eq!(desk.outputs().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_schedule_was_changed_before_it_was_noted_is_not_begun_again() {
    let (desk, clock) = Desk::by_hand(&[ECHO]).await;
    let body = json!({ "agent_id": "echo", "cron": "0 2 * * *", "input": "x" });
    let id = ok(desk.post("/schedules", body)).await["schedule_id"].as_str().expect("an id").to_owned();
    until(&clock, 2).await;
    desk.ended(1).await;
    // As if it had been changed in between; the server is the same.
    let file = opened(&desk.folder().join("runs.serve.db"));
    assert_eq!(file.execute("UPDATE schedule_firings SET run = NULL", []).expect("forgotten"), 1);
    assert_eq!(file.execute("UPDATE schedule_times SET done = 0", []).expect("forgotten"), 1);
    drop(file);
    ok(desk.patch(&format!("/schedules/{id}"), json!({ "metadata": { "who": "me" } }))).await;
    until_async("it is found", async || desk.schedule(&id).await["firings"][0]["run_id"].is_string()).await;
    assert!(clock.settled(PATIENCE).await, "{clock:?}");
    assert_eq!(desk.outputs().await.len(), 1);
    // The same, where it comes at other times since, and the time is not looked at any more.
    let file = opened(&desk.folder().join("runs.serve.db"));
    assert_eq!(file.execute("UPDATE schedule_firings SET run = NULL", []).expect("forgotten"), 1);
    drop(file);
    let changed = ok(desk.patch(&format!("/schedules/{id}"), json!({ "cron": "0 3 * * *" }))).await;
    assert!(changed["firings"][0]["run_id"].is_string(), "{changed}");
    until(&clock, 3).await;
    desk.ended(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_at_which_a_tenant_may_begin_no_more_runs_is_made_good_within_its_grace() {
    const SAYS: &str = "name: says\nstart: done\nnodes:\n  done: { type: end, output: \"{{initial_prompt}}\" }\n";
    let clock = ManualClock::at(SystemTime::UNIX_EPOCH);
    let setup = Setup {
        files: &[("acme/says/graph.yaml", SAYS), ("umbra/says/graph.yaml", SAYS)],
        acme: "runs_per_minute = 1",
        clock: Some(Arc::new(clock.clone())),
        ..Setup::default()
    };
    let premises = Premises::set_up(setup).await;
    let acme = premises.key(ACME);
    for input in ["one", "two"] {
        let body = json!({ "agent_id": "says", "cron": "0 1 * * *", "input": input });
        ok(premises.post("/schedules", &acme, body)).await;
    }
    until(&clock, 1).await;
    let came = async || {
        let page = ok(premises.get("/runs", &acme)).await;
        let runs = page["runs"].as_array().expect("runs").iter();
        let mut came: Vec<String> = runs.filter_map(|run| run["outcome"].as_str()).map(str::to_owned).collect();
        came.sort_unstable();
        came
    };
    // A little at a time: what was refused is tried again some seconds after that, and nobody here knows when it was.
    until_async("both have ended", async || {
        clock.advance(Duration::from_secs(1));
        came().await == ["one", "two"]
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_is_changed_paused_and_deleted_and_says_why_nothing_was_begun() {
    let (desk, clock) = Desk::by_hand(&[ECHO, MORNING]).await;
    let body = json!({ "agent_id": "echo", "cron": "0 2 * * *", "input": "x", "metadata": { "who": "me" } });
    let id = ok(desk.post("/schedules", body)).await["schedule_id"].as_str().expect("an id").to_owned();
    let path = format!("/schedules/{id}");
    ok(desk.patch(&path, json!({ "enabled": false }))).await;
    until(&clock, 3).await;
    assert!(desk.outputs().await.is_empty());
    ok(desk.patch(&path, json!({ "enabled": true, "cron": "0 5 * * *", "ends_at": "1970-01-02T00:00:00Z" }))).await;
    until(&clock, 6).await;
    assert_eq!(desk.ended(1).await, ["you said x"], "what was missed while it was paused is not made good");
    let shown = desk.schedule(&id).await;
    assert_eq!(shown["next_at"], Value::Null, "it ends before: {shown}");
    let run = shown["firings"][0]["run_id"].as_str().expect("a run");
    assert_eq!(ok(desk.get(&format!("/runs/{run}"))).await["metadata"], json!({ "who": "me" }));

    let changed = ok(desk.patch(&path, json!({ "ends_at": null, "cron": "0 7 * * *", "input": null }))).await;
    assert_eq!((changed["ends_at"].clone(), changed["input"].clone()), (Value::Null, Value::Null));
    fs::remove_dir_all(desk.folder().join("agents/echo")).expect("removed");
    until_async("it is gone", async || ok(desk.post("/agents/search", json!({}))).await == json!([])).await;
    until(&clock, 10).await;
    until_async("it says why nothing was begun", async || {
        let reason = desk.schedule(&id).await["firings"][0]["reason"].clone();
        reason.as_str().is_some_and(|reason| reason.contains("no agent"))
    })
    .await;
    ok(desk.delete(&path)).await;
    assert_eq!(problem(desk.get(&path)).await["type"], "urn:hotcell:problem:unknown-schedule");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_schedule_is_refused_and_only_whoever_operates_makes_one() {
    let (desk, _) = Desk::by_hand(&[ECHO, MORNING]).await;
    for (body, status) in [
        (json!({ "agent_id": "echo", "cron": "0 25 * * *" }), 422),
        (json!({ "agent_id": "echo", "cron": "* * * * * *" }), 422),
        (json!({ "agent_id": "echo", "cron": "0 9 * * *", "zone": "Nowhere/Land" }), 422),
        (json!({ "agent_id": "echo", "cron": "0 9 * * *", "zone": "../../etc/passwd" }), 422),
        (json!({ "agent_id": "echo", "cron": "0 9 * * *", "grace_seconds": 99999999999u64 }), 422),
        (json!({ "agent_id": "echo", "cron": "0 9 * * *", "input": 7 }), 422),
        (json!({ "agent_id": "echo", "cron": "0 9 * * *", "thread_id": "a/b" }), 422),
        (json!({ "agent_id": "echo", "cron": "0 9 * * *", "ends_at": "tomorrow" }), 422),
        (json!({ "agent_id": "echo", "cron": "0 9 * * *", "every": 1 }), 422),
        (json!({ "agent_id": "nobody", "cron": "0 9 * * *" }), 404),
    ] {
        assert_eq!(problem(desk.post("/schedules", body.clone())).await["status"], status, "{body}");
    }
    assert_eq!(problem(desk.patch("/schedules/echo:morning", json!({ "enabled": false }))).await["status"], 409);
    assert_eq!(problem(desk.delete("/schedules/echo:morning")).await["status"], 409);
    assert_eq!(problem(desk.delete("/schedules/none")).await["status"], 404);
    // A folder whose schedule means nothing is served as it was.
    fs::write(desk.folder().join("agents").join(MORNING.0), MORNING.1.replace("0 9", "0 99")).expect("written");
    until_async("that is said", async || ok(desk.get("/agents/echo")).await["load_error"] != Value::Null).await;
    assert_eq!(desk.schedule("echo:morning").await["cron"], "0 9 * * *");

    let keys = Keys::open(&desk.folder().join("runs.serve.db")).expect("keys");
    let run = keys.add("test", None, &[Role::Run], None).expect("a key").reveal();
    let body = json!({ "agent_id": "echo", "cron": "0 9 * * *" });
    assert_eq!(problem(desk.post("/schedules", body).bearer_auth(run)).await["status"], 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_langgraph_make_crons() {
    let (desk, clock) = Desk::by_hand(&[ECHO]).await;
    ok(desk.post("/threads", json!({ "thread_id": "daily" }))).await;
    let wanted =
        json!({ "assistant_id": "echo", "schedule": "0 3 * * *", "timezone": "UTC", "input": { "prompt": "x" } });
    let cron = ok(desk.post("/threads/daily/runs/crons", wanted.clone())).await;
    assert_eq!(
        (cron["thread_id"].clone(), cron["next_run_date"].clone(), cron["schedule"].clone()),
        (json!("daily"), json!("1970-01-01T03:00:00Z"), json!("0 3 * * *"))
    );
    ok(desk.post("/runs/crons", wanted.clone())).await;
    assert_eq!(ok(desk.post("/runs/crons/count", json!({}))).await, 2);
    let found = ok(desk.post("/runs/crons/search", json!({ "thread_id": "daily" }))).await;
    assert_eq!(found.as_array().expect("crons").len(), 1);
    until(&clock, 4).await;
    desk.ended(2).await;
    assert_eq!(ok(desk.get("/threads/daily/runs")).await.as_array().expect("runs").len(), 1);
    let path = format!("/runs/crons/{}", cron["cron_id"].as_str().expect("an id"));
    let changed = ok(desk.patch(&path, json!({ "end_time": "1970-01-01T12:00:00", "metadata": { "a": 1 } }))).await;
    assert_eq!(
        (changed["end_time"].clone(), changed["next_run_date"].clone()),
        (json!("1970-01-01T12:00:00Z"), Value::Null)
    );
    let mut refused = wanted;
    refused["webhook"] = json!("https://example.org");
    assert_eq!(problem(desk.post("/runs/crons", refused)).await["status"], 422);
    assert_eq!(ok(desk.delete(&path)).await, json!({}));
    assert_eq!(ok(desk.post("/runs/crons/count", json!({}))).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_schedules_have_a_size_together() {
    let desk = Desk::with(&[ECHO]).await;
    let with =
        |bytes: usize| json!({ "agent_id": "echo", "cron": "0 0 1 1 *", "enabled": false, "input": "x".repeat(bytes) });
    for _ in 0..10 {
        ok(desk.post("/schedules", with(3 << 20))).await;
    }
    let refused = problem(desk.post("/schedules", with(3 << 20))).await;
    assert_eq!((&refused["status"], &refused["limit"]), (&json!(409), &json!(32 << 20)), "{refused}");
    ok(desk.post("/schedules", with(10))).await;
}
