//! Documents that questions and answers refer to.

use std::time::Duration;

use hotcell_serve::Role;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::access::key;
use crate::desk::{Desk, ok, problem};
use crate::site::{ACME, Premises, Setup, UMBRA};

/// Asks a person about what it is told, and repeats the answer.
const REVIEW: (&str, &str) = (
    "review/graph.yaml",
    "name: review\nstart: ask\nnodes:\n  ask: { type: input, question: \"Is this right? {{initial_prompt}}\", \
     state_updates: { said: \"{{input}}\" }, next: done }\n  done: { type: end, output: \"{{said}}\" }\n",
);

impl Desk {
    /// Sends a document.
    fn attach(&self, query: &str, media_type: &str, bytes: &[u8]) -> RequestBuilder {
        let request = self.client.post(format!("{}/attachments{query}", self.url)).body(bytes.to_vec());
        request.header("content-type", media_type)
    }

    /// Sends a document, and gives what a text refers to it by.
    async fn attached(&self, bytes: &[u8]) -> String {
        let kept = ok(self.attach("", "text/plain", bytes)).await;
        kept["reference"].as_str().expect("a reference").to_owned()
    }

    /// Whether the document of a reference is still there.
    async fn has(&self, reference: &str) -> bool {
        let reply = self.get(&address(reference)).send().await.expect("a reply");
        assert!([200, 404].contains(&reply.status().as_u16()), "{}", reply.status());
        reply.status() == 200
    }

    /// Begins a review that waits for an answer.
    async fn review(&self, input: &str) -> String {
        self.review_with(json!({ "input": input })).await
    }

    /// The same in a thread.
    async fn review_in(&self, thread: &str, input: &str) -> String {
        self.review_with(json!({ "input": input, "thread_id": thread, "if_not_exists": "create" })).await
    }

    async fn review_with(&self, body: Value) -> String {
        let run = self.begin(body).await;
        self.stands(&run, "waiting").await;
        run
    }

    /// Answers a run, which ends with it.
    async fn answer(&self, run: &str, answer: &str) {
        ok(self.post(&format!("/runs/{run}/answers"), json!({ "answer": answer }))).await;
        self.stands(run, "completed").await;
    }

    async fn remove(&self, run: &str) {
        ok(self.delete(&format!("/runs/{run}"))).await;
    }
}

/// Where the document of a reference is.
fn address(reference: &str) -> String {
    format!("/attachments/{}", reference.strip_prefix("attachment:").expect("a reference"))
}

/// A reference to what nobody sent.
fn unknown() -> String {
    format!("attachment:sha256:{}", "0".repeat(64))
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_asked_sees_the_documents_of_a_question_and_may_answer_with_one() {
    let mut desk = Desk::with(&[REVIEW]).await;
    let contract = b"%PDF-1.7 \xff\x00 <script>alert(1)</script>";
    let kept = ok(desk.attach("?name=The%20contract%20%C3%BC.pdf", "application/pdf; version=1.7", contract)).await;
    let reference = kept["reference"].as_str().unwrap();
    assert_eq!(reference, format!("attachment:{}", kept["digest"].as_str().unwrap()));
    assert_eq!(
        (kept["name"].clone(), kept["media_type"].clone(), kept["bytes"].clone()),
        (json!("The contract ü.pdf"), json!("application/pdf"), json!(contract.len()))
    );
    let run = desk.review(&format!("It is {reference}, not {}.", &reference["attachment:".len()..])).await;
    desk.stop().await;
    let desk = desk.again().await;
    let inbox = ok(desk.get("/inbox")).await;
    assert_eq!(inbox["items"][0]["attachments"], json!([kept]), "{inbox}");
    let reply = desk.get(&address(reference)).send().await.unwrap();
    let header = |name: &str| reply.headers()[name].to_str().expect("text").to_owned();
    assert_eq!(reply.status(), 200);
    assert_eq!(header("content-type"), "application/octet-stream");
    assert_eq!(header("content-disposition"), "attachment; filename*=UTF-8''The%20contract%20%C3%BC.pdf");
    assert_eq!(header("x-content-type-options"), "nosniff");
    assert!(header("content-security-policy").ends_with("sandbox"));
    assert_eq!(reply.bytes().await.unwrap(), &contract[..]);
    let signed = desk.attached(b"signed").await;
    ok(desk.post(&format!("/runs/{run}/answers"), json!({ "answer": { "signed": signed, "ok": true } }))).await;
    let output = ok(desk.get(&format!("/runs/{run}/wait"))).await["output"].clone();
    let output: Value = serde_json::from_str(output.as_str().unwrap()).unwrap();
    assert_eq!(output, json!({ "signed": signed, "ok": true }));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_document_is_kept_once_under_its_first_name() {
    let desk = Desk::with(&[REVIEW]).await;
    let send = |query: &str| desk.attach(query, "text/plain", b"same");
    let first = send("?name=one.txt").header("Idempotency-Key", "k").send().await.unwrap();
    assert_eq!(first.status(), 201);
    let first: Value = first.json().await.unwrap();
    let again = send("?name=one.txt").header("Idempotency-Key", "k").send().await.unwrap();
    assert_eq!((again.status().as_u16(), again.headers().contains_key("idempotency-replayed")), (201, true));
    let digest = first["digest"].as_str().unwrap();
    let other = send(&format!("?name=two.txt&digest={digest}")).send().await.unwrap();
    assert_eq!(other.status(), 200);
    assert_eq!(other.json::<Value>().await.unwrap(), first);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_document_is_refused() {
    let desk = Desk::set_up(&[REVIEW], |settings| settings.largest_body = 1000).await;
    let digest = "0".repeat(64);
    let cases: &[(&str, &str, &[u8], u16)] = &[
        ("", "text/plain", b"", 422),
        ("", "text/plain", &[b'x'; 1001], 413),
        ("", "text", b"x", 415),
        ("", "text/plain/x", b"x", 415),
        ("", "multipart/form-data; boundary=x", b"x", 415),
        ("", "application/x-www-form-urlencoded", b"x", 415),
        ("?name=", "text/plain", b"x", 422),
        ("?name=..", "text/plain", b"x", 422),
        ("?name=..%2F..%2Fetc%2Fpasswd", "text/plain", b"x", 422),
        ("?name=a%5Cb", "text/plain", b"x", 422),
        ("?name=a%0D%0AX-Evil%3A%201", "text/plain", b"x", 422),
        ("?name=a%00", "text/plain", b"x", 422),
        ("?name=invoice%E2%80%AEfdp.exe", "text/plain", b"x", 422),
        (&format!("?name={}", "x".repeat(256)), "text/plain", b"x", 422),
        (&format!("?digest=sha256:{digest}"), "text/plain", b"x", 422),
        ("?digest=x", "text/plain", b"x", 422),
        ("?name=a&name=b", "text/plain", b"x", 400),
        ("?media_type=text%2Fhtml", "text/plain", b"x", 400),
    ];
    for (query, media_type, bytes, status) in cases {
        let refused = problem(desk.attach(query, media_type, bytes)).await;
        assert_eq!(refused["status"], *status, "{query} {media_type}: {refused}");
    }
    let kept = ok(desk.attach("", "text/plain", &[b'x'; 1000])).await;
    assert_eq!((kept["bytes"].clone(), kept["name"].clone()), (json!(1000), Value::Null));
    for digest in ["x", "sha256:x", "..%2F..%2Fetc%2Fpasswd", &format!("sha256:{digest}")] {
        assert_eq!(problem(desk.get(&format!("/attachments/{digest}"))).await["status"], 404, "{digest}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_refers_to_what_is_not_there() {
    let desk = Desk::with(&[REVIEW]).await;
    let is_unknown = |refused: Value| {
        let told = (refused["status"].clone(), refused["type"].clone(), refused["reference"].clone());
        assert_eq!(told, (json!(422), json!("urn:hotcell:problem:unknown-attachment"), json!(unknown())), "{refused}");
    };
    let begin = json!({ "input": format!("see {}", unknown()) });
    is_unknown(problem(desk.post("/runs", begin.clone())).await);
    assert_eq!(ok(desk.get("/runs")).await["runs"], json!([]), "nothing was begun");
    let run = desk.review("nothing").await;
    let answers = format!("/runs/{run}/answers");
    is_unknown(problem(desk.post(&answers, json!({ "answer": unknown() }))).await);
    is_unknown(problem(desk.post(&answers, json!({ "answer": { "files": [unknown()] } }))).await);
    let fork = format!("/runs/{run}/fork");
    is_unknown(problem(desk.post(&fork, json!({ "at": 1, "input": unknown() }))).await);
    let many: String = (0..101).map(|number| format!("attachment:sha256:{number:064x} ")).collect();
    let refused = problem(desk.post(&answers, json!({ "answer": many }))).await;
    assert_eq!((refused["status"].clone(), refused["limit"].clone()), (json!(422), json!(100)));
    // What looks nearly like a reference is a text like any other.
    let text = format!("{}0", unknown());
    ok(desk.post(&answers, json!({ "answer": text }))).await;
    assert_eq!(ok(desk.get(&format!("/runs/{run}/wait"))).await["output"], text);
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_belong_to_a_tenant() {
    let files = [("acme/review/graph.yaml", REVIEW.1), ("umbra/review/graph.yaml", REVIEW.1)];
    let premises = Premises::set_up(Setup { files: &files, ..Setup::default() }).await;
    let (acme, umbra) = (premises.key(ACME), premises.key(UMBRA));
    let sent = premises.ask(Method::POST, "/attachments", Some(&umbra)).body("of umbra");
    let reference = ok(sent).await["reference"].as_str().unwrap().to_owned();
    assert_eq!(premises.get(&address(&reference), &umbra).send().await.unwrap().status(), 200);
    // To others it is as if nobody had sent it.
    let of_umbra = problem(premises.get(&address(&reference), &acme)).await;
    let of_nobody = problem(premises.get(&address(&unknown()), &acme)).await;
    let without = |problem: &Value, reference: &str| problem.to_string().replace(reference, "it");
    let digest = |reference: &str| reference.replace("attachment:", "");
    assert_eq!(without(&of_umbra, &digest(&reference)), without(&of_nobody, &digest(&unknown())));
    let begin = |reference: &str| premises.post("/runs", &acme, json!({ "agent_id": "review", "input": reference }));
    let (of_umbra, of_nobody) = (problem(begin(&reference)).await, problem(begin(&unknown())).await);
    assert_eq!(without(&of_umbra, &reference), without(&of_nobody, &unknown()));
    for prefix in ["", "/tenants/umbra"] {
        let reply = premises.ask(Method::GET, &format!("{prefix}{}", address(&reference)), None).send().await.unwrap();
        assert_eq!(reply.status(), 401);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_only_looks_sends_nothing() {
    let desk = Desk::with(&[REVIEW]).await;
    let reference = desk.attached(b"x").await;
    let (operates, answers) = (key(&desk, &[Role::Operate]), key(&desk, &[Role::Answer]));
    assert_eq!(problem(desk.attach("", "text/plain", b"y").bearer_auth(&operates)).await["status"], 403);
    ok(desk.attach("", "text/plain", b"y").bearer_auth(&answers)).await;
    for key in [&operates, &answers] {
        let reply = desk.get(&address(&reference)).bearer_auth(key).send().await.unwrap();
        assert_eq!(reply.status(), 200);
    }
    assert_eq!(problem(desk.get(&address(&reference))).await["status"], 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_kept_as_long_as_a_run_needs_it_and_a_day_without_any() {
    let (mut desk, clock) = Desk::by_hand(&[REVIEW]).await;
    let mut references = Vec::new();
    // The last one is looked at after all others.
    for name in ["waits", "answer", "forked", "thread", "copied", "removed", "nobody"] {
        references.push(desk.attached(name.as_bytes()).await);
    }
    let [waits, answer, forked, thread, copied, removed, nobody] = &references[..] else { panic!("{references:?}") };
    // A later run goes on with what an earlier one was given, and needs nothing else of it: the agent is another one by now.
    let first = desk.review_in("a", thread).await;
    desk.answer(&first, "x").await;
    desk.stop().await;
    let file = desk.folder().join("agents").join(REVIEW.0);
    std::fs::write(file, format!("{}# changed\n", REVIEW.1)).expect("written");
    let desk = desk.again().await;
    desk.review_in("a", "y").await;
    desk.remove(&first).await;
    desk.review(waits).await;
    let other = desk.review("x").await;
    desk.answer(&other, answer).await;
    let source = desk.review(forked).await;
    let fork = ok(desk.post(&format!("/runs/{source}/fork"), json!({ "at": 1 }))).await;
    desk.stands(fork["run_id"].as_str().unwrap(), "waiting").await;
    let first = desk.review_in("b", copied).await;
    ok(desk.post("/threads/b/copy", json!(null))).await;
    let gone = desk.review(removed).await;
    for run in [source, first, gone] {
        desk.answer(&run, "x").await;
        desk.remove(&run).await;
    }
    for reference in &references {
        assert!(desk.has(reference).await, "{reference}");
    }
    let begun = std::time::Instant::now();
    let mut hours = 0;
    while desk.has(nobody).await {
        assert!(begun.elapsed() < Duration::from_secs(60), "it is kept");
        clock.advance(Duration::from_secs(60 * 60));
        hours += 1;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(hours > 24, "{hours} hours");
    let mut kept = Vec::new();
    for reference in [waits, answer, forked, thread, copied, removed] {
        kept.push(desk.has(reference).await);
    }
    assert_eq!(kept, [true, true, true, true, true, false]);
}
