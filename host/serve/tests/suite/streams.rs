//! Streams of events.

use serde_json::{Value, json};

use crate::desk::{ASK, Desk, Events, SLOW, Told, kind, ok, problem};

fn entries(events: &[Told]) -> Vec<Value> {
    events.iter().filter(|event| event.event == "entry").map(|event| event.data.clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_committed_comes_while_it_happens_and_what_comes_last_is_the_run() {
    let desk = Desk::with(&[SLOW]).await;
    let mut events = Events::of(desk.post("/runs/stream", json!({ "input": "x" }))).await;
    let mut seen = Vec::new();
    let mut next = async |events: &mut Events, wanted: &str| loop {
        let event = events.next().await.expect("more");
        let found = if event.event == "entry" {
            kind(&event.data)
        } else {
            event.data["event"].as_str().unwrap_or_default().to_owned()
        };
        seen.push(event);
        if found == wanted {
            return;
        }
    };
    next(&mut events, "started").await;
    desk.model.was_asked(1).await;
    desk.model.answers(1);
    next(&mut events, "completed@1").await;
    desk.model.was_asked(2).await;
    desk.model.answers(1);
    next(&mut events, "ended").await;
    let rest = events.all().await;
    let end = rest.last().expect("an end").clone();
    assert_eq!((end.event.as_str(), end.data["standing"].clone(), end.id.clone()), ("end", json!("completed"), None));
    let run = end.data["run_id"].as_str().unwrap();
    seen.extend(rest);
    let numbers: Vec<u64> = entries(&seen).iter().map(|entry| entry["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    let ids: Vec<String> = seen.iter().filter_map(|event| event.id.clone()).collect();
    assert_eq!(ids, numbers.iter().map(|number| format!("{run}:{number}")).collect::<Vec<_>>());
    // Pieces of the model's text are told as they come, and need no place in the sequence.
    let text: String = seen
        .iter()
        .filter(|event| event.event == "live" && event.data["event"] == "model_text")
        .map(|event| event.data["text"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(text, "reply1reply2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_comes_back_misses_nothing_and_gets_nothing_twice() {
    let desk = Desk::with(&[SLOW]).await;
    let run = desk.begin(json!({ "input": "x" })).await;
    let path = format!("/runs/{run}/stream");
    let mut seen: Vec<Value> = Vec::new();
    let mut last: Option<String> = None;
    // It breaks after each event.
    loop {
        let mut request = desk.get(&path);
        if let Some(id) = &last {
            request = request.header("Last-Event-ID", id);
        }
        desk.model.answers(1);
        let mut events = Events::of(request).await;
        let event = loop {
            let event = events.next().await.expect("an entry or the end");
            if event.event != "live" {
                break event;
            }
        };
        assert_eq!(event.event, "entry");
        let is_end = event.data["kind"] == "ended";
        last.clone_from(&event.id);
        seen.push(event.data);
        if is_end {
            break;
        }
    }
    let all = ok(desk.get(&format!("/runs/{run}/entries?limit=1000"))).await;
    assert_eq!(Value::Array(seen), all["entries"]);
    // Of a run that is over there is nothing left, which tells a browser not to come again.
    let reply = desk.get(&path).header("Last-Event-ID", last.unwrap()).send().await.unwrap();
    assert_eq!(reply.status(), 204);
    let whole = Events::of(desk.get(&path)).await.all().await;
    assert_eq!(Value::Array(entries(&whole)), all["entries"]);
    let part = Events::of(desk.get(&format!("{path}?after=2"))).await.all().await;
    assert_eq!(entries(&part)[0]["seq"], 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_at_a_question_and_the_next_one_goes_on_behind_it() {
    let desk = Desk::with(&[ASK]).await;
    let run = desk.begin(json!({})).await;
    let path = format!("/runs/{run}/stream");
    let events = Events::of(desk.get(&path)).await.all().await;
    assert_eq!(events.last().unwrap().data["standing"], "waiting");
    let last = events.iter().filter_map(|event| event.id.clone()).next_back().unwrap();
    assert_eq!(kind(&events[events.len() - 2].data), "waiting");
    ok(desk.post(&format!("/runs/{run}/answers"), json!({ "answer": "me" }))).await;
    // The answer was taken: the stream does not end where the run waited.
    let rest = Events::of(desk.get(&path).header("Last-Event-ID", last)).await.all().await;
    assert_eq!(rest.last().unwrap().data["standing"], "completed");
    assert_eq!(entries(&rest).last().unwrap()["data"]["output"], "hello me");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_follow_one_run_and_one_that_does_not_read_costs_the_others_nothing() {
    let desk = Desk::with(&[SLOW]).await;
    let run = desk.begin(json!({ "input": "x" })).await;
    let path = format!("/runs/{run}/stream");
    let stuck = desk.get(&path).send().await.unwrap();
    let mut readers = Vec::new();
    for _ in 0..20 {
        readers.push(Events::of(desk.get(&path)).await);
    }
    desk.model.answers(2);
    let mut all = Vec::new();
    for reader in readers {
        all.push(entries(&reader.all().await));
    }
    assert!(all.iter().all(|entries| *entries == all[0] && entries.last().unwrap()["kind"] == "ended"));
    drop(stuck);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_last_event_is_refused() {
    let desk = Desk::with(&[ASK]).await;
    let run = desk.begin(json!({})).await;
    let path = format!("/runs/{run}/stream");
    for id in ["x", "other:1", "-1", ":", "1.5", &format!("{run}:x"), &"9".repeat(40)] {
        let refused = problem(desk.get(&path).header("Last-Event-ID", id)).await;
        assert_eq!(refused["status"], 400, "{id}: {refused}");
    }
    assert_eq!(problem(desk.get(&format!("{path}?after=1")).header("Last-Event-ID", "1")).await["status"], 400);
    assert_eq!(problem(desk.get("/runs/nobody/stream")).await["status"], 404);
}
