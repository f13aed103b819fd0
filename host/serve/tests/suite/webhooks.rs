//! Others are told what becomes of runs.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use hotcell_runtime::CancellationToken;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::desk::{ASK, Desk, ECHO, ok, problem, until};
use crate::site::{ACME, Premises, Setup, UMBRA};

/// A server to which it is told.
#[derive(Clone, Default)]
struct Hook {
    told: Arc<Mutex<Vec<(HeaderMap, Value)>>>,
    /// What it answers with, the last one from then on
    answers: Arc<Mutex<Vec<u16>>>,
}

impl Hook {
    async fn serve(answers: &[u16]) -> (Self, String) {
        let hook = Hook { answers: Arc::new(Mutex::new(answers.to_vec())), ..Hook::default() };
        let router = Router::new().route("/hook", post(take)).with_state(hook.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/hook", listener.local_addr().expect("an address"));
        tokio::spawn(hotcell_http::serve(listener, router, hotcell_http::Limits::default(), CancellationToken::new()));
        (hook, url)
    }

    fn told(&self) -> Vec<(HeaderMap, Value)> {
        self.told.lock().unwrap().clone()
    }

    fn kinds(&self) -> Vec<String> {
        self.told().iter().map(|(_, body)| body["type"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

async fn take(State(hook): State<Hook>, headers: HeaderMap, body: String) -> StatusCode {
    let mut answers = hook.answers.lock().unwrap();
    let status = if answers.len() > 1 { answers.remove(0) } else { answers.first().copied().unwrap_or(200) };
    hook.told.lock().unwrap().push((headers, serde_json::from_str(&body).expect("JSON")));
    StatusCode::from_u16(status).expect("a status")
}

fn id(told: &(HeaderMap, Value)) -> String {
    told.0["webhook-id"].to_str().expect("text").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_told_that_a_run_asks_and_how_it_ended() {
    let (hook, url) = Hook::serve(&[200]).await;
    let desk = Desk::set_up(&[ASK], |settings| settings.webhooks.all = Some(url)).await;
    let run = desk.begin(json!({})).await;
    until("a question is told", || hook.told().len() == 1).await;
    let (headers, body) = &hook.told()[0];
    assert_eq!(body["type"], "question.opened");
    assert_eq!((body["data"]["run_id"].clone(), body["data"]["message"].clone()), (json!(run), json!("Who asks?")));
    assert!(headers["webhook-signature"].to_str().unwrap().starts_with("v1,"));
    assert!(headers["webhook-timestamp"].to_str().unwrap().parse::<u64>().is_ok());
    ok(desk.post(&format!("/runs/{run}/answers"), json!({ "answer": "me" }))).await;
    until("the end is told", || hook.told().len() == 2).await;
    let end = hook.told()[1].clone();
    assert_eq!((end.1["type"].clone(), end.1["data"]["outcome"].clone()), (json!("run.ended"), json!("hello me")));
    let second = desk.begin(json!({})).await;
    until("another question is told", || hook.told().len() == 3).await;
    ok(desk.post(&format!("/runs/{second}/cancel"), json!({}))).await;
    until("a cancellation is told", || hook.told().len() == 4).await;
    assert_eq!(hook.told()[3].1["data"]["standing"], "cancelled");
    // What would have been is nobody's business.
    let fork = ok(desk.post(&format!("/runs/{run}/fork"), json!({ "at": 1 }))).await;
    desk.stands(fork["run_id"].as_str().unwrap(), "waiting").await;
    // What comes after it is told, and so would be what comes of it.
    let third = desk.begin(json!({})).await;
    until("a third question is told", || hook.told().len() >= 5).await;
    assert_eq!(hook.told()[4].1["data"]["run_id"], json!(third));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_taken_is_told_again_also_by_the_next_server() {
    let (hook, url) = Hook::serve(&[500, 503, 200]).await;
    let (desk, clock) = Desk::by_hand_with(&[ECHO], |settings| settings.webhooks.all = Some(url.clone())).await;
    let run = desk.begin(json!({ "input": "x" })).await;
    // A receiver has seen an attempt before the server has heard that it failed and when the next one is due: time passes a
    // little at a time, so that it has to be heard at some moment, and never by as much as the next pause.
    let told = |times: usize| {
        let (hook, clock) = (&hook, &clock);
        move || {
            clock.advance(Duration::from_millis(100));
            hook.told().len() == times
        }
    };
    until("it is told once", told(1)).await;
    until("it is told twice", told(2)).await;
    let desk = desk.again_set_up(|settings| settings.webhooks.all = Some(url.clone())).await;
    until("it is told a third time", told(3)).await;
    let told = hook.told();
    assert!(told.iter().all(|told| told.1["data"]["run_id"] == json!(run)));
    assert_eq!(told.iter().map(id).collect::<std::collections::HashSet<_>>().len(), 1, "a post keeps its id");
    clock.advance(Duration::from_secs(24 * 60 * 60));
    desk.stands(&run, "completed").await;
    assert_eq!(hook.kinds(), ["run.ended"; 3], "it was taken");
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_may_have_it_told_where_the_operator_lets_them_and_nowhere_else() {
    let (hook, url) = Hook::serve(&[200]).await;
    let origin = url.trim_end_matches("/hook").to_owned();
    let desk = Desk::set_up(&[ECHO], |settings| settings.webhooks.servers = vec![origin]).await;
    let begin = |url: &str| desk.post("/runs", json!({ "input": "x", "webhook": url }));
    ok(begin(&url)).await;
    until("it is told", || hook.told().len() == 1).await;
    ok(desk.post("/runs/wait", json!({ "assistant_id": "echo", "input": "x", "webhook": url }))).await;
    until("clients of LangGraph are told", || hook.told().len() == 2).await;
    desk.begin(json!({ "input": "x" })).await;
    for wrong in [
        "",
        "x",
        "ftp://127.0.0.1/hook",
        "http://127.0.0.1:9/hook",
        "http://169.254.169.254/latest/meta-data",
        "http://localhost/hook",
        "http://me:secret@127.0.0.1/hook",
        &format!("http://127.0.0.1/{}", "x".repeat(3000)),
    ] {
        let refused = problem(begin(wrong)).await;
        assert_eq!(
            (refused["status"].clone(), refused["type"].clone()),
            (json!(422), json!("urn:hotcell:problem:webhook"))
        );
    }
    assert_eq!(ok(desk.get("/runs")).await["runs"].as_array().unwrap().len(), 3);
    assert_eq!(hook.told().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_leave_there_are_no_webhooks() {
    let desk = Desk::with(&[ECHO]).await;
    let refused = problem(desk.post("/runs", json!({ "input": "x", "webhook": "https://example.com/hook" }))).await;
    assert_eq!(refused["status"], 422);
    assert!(refused["detail"].as_str().unwrap().contains("--webhook-to"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_tenant_has_webhooks_of_its_own() {
    let (hook, url) = Hook::serve(&[200]).await;
    let origin = url.trim_end_matches("/hook");
    let acme = format!("env_file = 'acme.env'\nwebhook = '{url}'");
    let umbra = format!("env_file = 'umbra.env'\nwebhook_servers = ['{origin}']");
    let secret = |bytes: &str| format!("HOTCELL_WEBHOOK_SECRET=whsec_{bytes}\n");
    let (of_acme, of_umbra) = (secret("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), secret("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"));
    let files = [
        ("acme/echo/graph.yaml", ECHO.1),
        ("umbra/echo/graph.yaml", ECHO.1),
        ("acme.env", of_acme.as_str()),
        ("umbra.env", of_umbra.as_str()),
    ];
    let premises = Premises::set_up(Setup { acme: &acme, umbra: &umbra, files: &files, ..Setup::default() }).await;
    let (acme, umbra) = (premises.key(ACME), premises.key(UMBRA));
    let quiet = premises.begin(&umbra, json!({ "input": "x" })).await;
    ok(premises.get(&format!("/runs/{quiet}/wait"), &umbra)).await;
    let told = premises.begin(&acme, json!({ "input": "x" })).await;
    until("acme is told", || hook.told().len() == 1).await;
    assert_eq!(hook.told()[0].1["data"]["run_id"], json!(told));
    let asked = premises.begin(&umbra, json!({ "input": "x", "webhook": url })).await;
    until("umbra is told of the run that says so", || hook.told().len() == 2).await;
    assert_eq!(hook.told()[1].1["data"]["run_id"], json!(asked));
    let refused = problem(premises.post("/runs", &acme, json!({ "input": "x", "webhook": url }))).await;
    assert_eq!(refused["type"], "urn:hotcell:problem:webhook");
}
