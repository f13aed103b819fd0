//! Attempts that fail, budgets and cancelling, across processes: nothing is done twice, forgotten or taken for something
//! else.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use hotcell_budget::{Account, Usage};
use hotcell_engine::{CallError, CallReport, Engine, Outcome, Ports, RunError, RunReport, ToolCall, Tools, used};
use hotcell_graph::Template;
use hotcell_graph::conversation::Speaker;
use hotcell_graph::ir::{Action, Expression, Graph, PromptPart};
use hotcell_journal::{
    Completed, Entry, EntryPath, Fact, JournalError, MemoryStore, RunQuery, RunStatus, RunStore, SqliteStore,
};
use hotcell_models::{Model, ModelError, OnText, Reply, Request, ToolCallRequest, ToolSpec};
use tokio_util::sync::CancellationToken;

use crate::common::journal::{before_the_end, entries, header, journal_with, request};
use crate::common::{World, end, graph, model_loop, node, pass, script};

/// A model that wants `pay` to be called and says what it was told, on a bad line: the first request of each kind gets
/// a 429. And the tool, which may ask a person first.
#[derive(Default)]
struct Shop {
    refused: Mutex<HashMap<usize, usize>>,
    /// How many times each kind of request is refused
    refusals: usize,
    requests: AtomicUsize,
    payments: AtomicUsize,
    asks: bool,
}

#[async_trait]
impl Model for Shop {
    async fn complete(&self, request: Request, _: Option<OnText<'_>>) -> Result<Reply, ModelError> {
        self.requests.fetch_add(1, Ordering::SeqCst);
        let refused = {
            let mut refused = self.refused.lock().expect("nobody panics with it");
            let refused = refused.entry(request.messages.len()).or_default();
            *refused += 1;
            *refused
        };
        if refused <= self.refusals {
            return Err(ModelError::Status { status: 429, message: String::new() });
        }
        let last = request.messages.last().map(|message| message.content.clone()).unwrap_or_default();
        if request.messages.len() > 1 {
            return Ok(Reply::text(format!("the tool said {last}")));
        }
        let call = ToolCallRequest { id: "1".into(), name: "pay".into(), arguments: r#"{"sum":7}"#.into() };
        Ok(Reply { tool_calls: vec![call], ..Reply::text("") })
    }
}

#[async_trait]
impl Tools for Shop {
    fn describe(&self, name: &str) -> Option<ToolSpec> {
        Some(ToolSpec { name: name.into(), description: String::new(), parameters: serde_json::json!({}) })
    }

    async fn call(&self, call: ToolCall<'_>) -> CallReport {
        let result = match call.answers {
            [] if self.asks => Err(CallError::Asks("pay?".into())),
            _ => {
                self.payments.fetch_add(1, Ordering::SeqCst);
                Ok(r#""paid""#.to_owned())
            }
        };
        CallReport { result, account: Account::default(), notices: Vec::new() }
    }
}

impl Shop {
    fn ports(self: &Arc<Self>, world: &Arc<World>) -> Ports {
        let default_model = Some("test:model".parse().expect("a name"));
        Ports { model: self.clone(), tools: self.clone(), default_model, ..world.ports() }
    }
}

fn asks_model(prompt: &str, attempts: u32) -> Action {
    let prompt = PromptPart::text("`prompt`", Speaker::Human, Expression::Strict(Template::parse(prompt)));
    Action::Call(Box::new(model_loop(vec![prompt], "pay", (5, attempts))))
}

fn shop(prompt: &str) -> Graph {
    graph(&["ask", "done"], |ids| {
        vec![
            node(ids, "ask", asks_model(prompt, 9), &[("said", "{{output}}")], &["done"]),
            end(ids, "done", "{{said}}"),
        ]
    })
}

async fn start(engine: &Engine, graph: &Arc<Graph>) -> RunReport {
    engine.start(request(graph), CancellationToken::new()).await.expect("it starts")
}

#[tokio::test]
async fn a_refused_request_is_repeated_alone_and_every_prefix_leads_to_the_same_end() {
    let graph = Arc::new(shop("buy"));
    let world = Arc::new(World::default());
    let journal = Arc::new(MemoryStore::default());
    let first = Arc::new(Shop { refusals: 1, ..Shop::default() });
    let report = start(&Engine::new(first.ports(&world), journal.clone()), &graph).await;
    let result = Outcome::Completed { output: "the tool said paid".into() };
    assert_eq!(report.outcome, result);
    // Both requests were refused once; what came before the second refusal was not done again.
    assert_eq!((first.requests.load(Ordering::SeqCst), first.payments.load(Ordering::SeqCst)), (4, 1));

    let entries = before_the_end(&*journal, &report.run).await;
    for length in 1..=entries.len() {
        let (journal, run) = journal_with(&entries[..length]).await;
        // The line is still bad.
        let again = Arc::new(Shop { refusals: 1, ..Shop::default() });
        let engine = Engine::new(again.ports(&world), journal);
        let report = engine.resume(&run, graph.clone(), CancellationToken::new()).await.expect("it goes on");
        assert_eq!(report.outcome, result, "after {length} entries");
        let kinds: Vec<&str> = entries[..length]
            .iter()
            .filter_map(|entry| match &entry.fact {
                Fact::Effect { kind, .. } => Some(kind.as_str()),
                _ => None,
            })
            .collect();
        let paid = kinds.iter().filter(|kind| **kind == "tool").count();
        assert_eq!(again.payments.load(Ordering::SeqCst), 1 - paid, "after {length} entries");
    }
}

#[tokio::test]
async fn what_would_be_done_now_must_be_what_was_done() {
    let world = Arc::new(World::default());
    let journal = Arc::new(MemoryStore::default());
    let before = Arc::new(shop("buy"));
    let report = start(&Engine::new(Arc::new(Shop::default()).ports(&world), journal.clone()), &before).await;
    let entries = before_the_end(&*journal, &report.run).await;
    // The process died after the first reply; the prompt is another one now.
    let (journal, run) = journal_with(&entries[..2]).await;
    let changed = Arc::new(shop("sell"));
    let now = Arc::new(Shop::default());
    let engine = Engine::new(now.ports(&world), journal.clone());
    let error = engine.resume(&run, changed, CancellationToken::new()).await.expect_err("it does not guess");
    assert!(matches!(&error, RunError::Mismatch { .. }), "{error}");
    assert!(error.to_string().contains("the journal has `model messages "), "{error}");
    assert_eq!(now.requests.load(Ordering::SeqCst), 0);
    // Nothing is lost: with what it was started with, it goes on.
    let report = engine.resume(&run, before, CancellationToken::new()).await.expect("it goes on");
    assert!(matches!(report.outcome, Outcome::Completed { .. }));
}

#[tokio::test]
async fn a_budget_goes_on_across_processes() {
    let mut limited = shop("buy");
    limited.limits.budget.model_requests = Some(1);
    let graph = Arc::new(limited);
    let journal = Arc::new(MemoryStore::default());
    let world = Arc::new(World::default());
    let shop = Arc::new(Shop { asks: true, ..Shop::default() });
    let report = start(&Engine::new(shop.ports(&world), journal.clone()), &graph).await;
    assert!(matches!(report.outcome, Outcome::Waiting { .. }));
    assert_eq!(report.account.total().model_requests, 1);

    let answering = Arc::new(World { answers: Mutex::new(vec!["yes".into()]), ..World::default() });
    let engine = Engine::new(shop.ports(&answering), journal.clone());
    let report = engine.resume(&report.run, graph, CancellationToken::new()).await.expect("it goes on");
    let Outcome::Failed { error, .. } = &report.outcome else { panic!("{:?}", report.outcome) };
    assert!(error.contains("budget.model_requests"), "{error}");
    assert_eq!(shop.requests.load(Ordering::SeqCst), 1);
    // What was used before is in the account, once.
    assert_eq!(report.account.total().model_requests, 1);
}

#[tokio::test]
async fn a_failed_run_can_be_retried_from_where_it_failed() {
    let graph = Arc::new(graph(&["first", "ask", "done"], |ids| {
        vec![
            script(ids, "first", "first", &[], &["ask"]),
            node(ids, "ask", asks_model("buy", 3), &[("said", "{{output}}")], &["done"]),
            end(ids, "done", "{{said}}"),
        ]
    }));
    let journal = Arc::new(MemoryStore::default());
    let world = Arc::new(World::default());
    // Three attempts, all refused.
    let down = Arc::new(Shop { refusals: 3, ..Shop::default() });
    let engine = Engine::new(down.ports(&world), journal.clone());
    let report = start(&engine, &graph).await;
    assert!(matches!(&report.outcome, Outcome::Failed { node, .. } if node.as_deref() == Some("ask")));
    let run = report.run;
    let error = engine.resume(&run, graph.clone(), CancellationToken::new()).await.expect_err("it has ended");
    assert!(matches!(error, RunError::Ended { .. }));

    // The reply comes now; then the model is down again, for the next request.
    let report = engine.retry(&run, graph.clone(), CancellationToken::new()).await.expect("it is retried");
    assert!(matches!(report.outcome, Outcome::Failed { .. }));
    assert_eq!(down.payments.load(Ordering::SeqCst), 1);
    let report = engine.retry(&run, graph.clone(), CancellationToken::new()).await.expect("it is retried");
    assert_eq!(report.outcome, Outcome::Completed { output: "the tool said paid".into() });
    assert_eq!((down.requests.load(Ordering::SeqCst), down.payments.load(Ordering::SeqCst)), (8, 1));
    assert_eq!(world.ran.lock().expect("not poisoned").len(), 1);
    let error = engine.retry(&run, graph, CancellationToken::new()).await.expect_err("it has ended");
    assert!(error.to_string().contains("only failed runs can"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_is_final_whatever_the_run_is_at() {
    let folder = tempfile::tempdir().expect("a folder");
    let journals: [Arc<dyn RunStore>; 2] = [
        Arc::new(MemoryStore::default()),
        Arc::new(SqliteStore::open(&folder.path().join("runs.db")).expect("opened")),
    ];
    for journal in journals {
        // Quick nodes one after the other: there is always something that was just finished.
        let again: crate::common::ScriptBehaviour = |_| Ok(r#"{"_next":"quick"}"#.into());
        let mut endless =
            graph(&["quick", "done"], |ids| vec![script(ids, "quick", "q", &[], &["done"]), end(ids, "done", "")]);
        endless.limits.visits_per_node = None;
        let world = Arc::new(World { scripts: [("q", again)].into(), ..World::default() });
        let engine = Engine::new(world.ports(), journal.clone());
        let graph = Arc::new(endless);
        let running = tokio::spawn(async move { engine.start(request(&graph), CancellationToken::new()).await });
        let run = loop {
            tokio::time::sleep(Duration::from_millis(5)).await;
            let page = journal.list(&RunQuery { limit: 1, ..RunQuery::default() }).await.expect("listed");
            if let Some(run) = page.runs.into_iter().next() {
                break run.id;
            }
        };
        journal.send(&run, Entry::of_run(Fact::Cancelled)).await.expect("cancelled");
        let report = running.await.expect("no panic").expect("no error");
        assert_eq!(report.outcome, Outcome::Cancelled);
        let committed = entries(&*journal, &run).await;
        assert_eq!(committed.last().map(|last| &last.fact), Some(&Fact::Cancelled));
        assert_eq!(journal.find(run.as_str()).await.expect("found").status, RunStatus::Cancelled);
        for fact in [Fact::Resumed, Fact::Retried] {
            let error = journal.take(&run, fact).await.err().expect("it is final");
            assert!(matches!(error, JournalError::Cancelled(_)), "{error}");
        }
        journal.send(&run, Entry::of_run(Fact::Cancelled)).await.expect("saying so once more changes nothing");
        assert_eq!(entries(&*journal, &run).await.len(), committed.len());
    }
}

#[tokio::test]
async fn what_has_ended_cannot_be_cancelled() {
    let graph =
        Arc::new(graph(&["only", "done"], |ids| vec![pass(ids, "only", &[], &["done"]), end(ids, "done", "x")]));
    let folder = tempfile::tempdir().expect("a folder");
    let journals: [Arc<dyn RunStore>; 2] = [
        Arc::new(MemoryStore::default()),
        Arc::new(SqliteStore::open(&folder.path().join("runs.db")).expect("opened")),
    ];
    for journal in journals {
        let engine = Engine::new(Arc::new(World::default()).ports(), journal.clone());
        let run = start(&engine, &graph).await.run;
        let error = journal.send(&run, Entry::of_run(Fact::Cancelled)).await.expect_err("it has ended");
        assert!(matches!(error, JournalError::Ended { status: RunStatus::Completed, .. }), "{error}");
        assert_eq!(journal.find(run.as_str()).await.expect("found").status, RunStatus::Completed);
    }
}

#[tokio::test]
async fn a_journal_is_the_same_by_whatever_name_it_is_opened() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, link) = (folder.path().join("runs.db"), folder.path().join("link.db"));
    let journal = SqliteStore::open(&file).expect("opened");
    std::os::unix::fs::symlink(&file, &link).expect("linked");
    let same = SqliteStore::open(&link).expect("opened");
    let writer = journal.create(&header(), None).await.expect("created");
    let taken = same.take(writer.run(), Fact::Resumed).await;
    assert!(matches!(taken.err(), Some(JournalError::Busy(_))));

    let hard = folder.path().join("hard.db");
    std::fs::hard_link(&file, &hard).expect("linked");
    let error = SqliteStore::open(&hard).err().expect("refused").to_string();
    assert!(error.contains("2 names (hard links)"), "{error}");
}

#[test]
fn what_a_part_used_counts_also_where_whoever_waited_for_it_gave_up() {
    let account = |input_tokens| Account::of("model", Usage { input_tokens, ..Usage::default() });
    let completed = |place: &EntryPath, input_tokens| {
        let completed = Completed {
            node: "node".into(),
            writes: Vec::new(),
            next: None,
            output: None,
            failure: None,
            failure_kind: None,
            handled: false,
            elapsed: Duration::ZERO,
            account: account(input_tokens),
        };
        Entry { place: place.clone(), fact: Fact::Completed(completed) }
    };
    let turn = EntryPath::of_turn(1);
    let step = turn.of_loop().within(1);
    let failed = Fact::Attempt { attempt: 1, error: "late".into(), account: account(0) };
    let failed = Entry { place: turn.clone(), fact: failed };
    for (entries, counted) in [
        (vec![completed(&step, 7), completed(&turn, 9)], 9),
        // The node took longer than it may, and was not told what its loop had used.
        (vec![completed(&step, 7), completed(&turn, 0)], 7),
        (vec![completed(&step, 7), failed, completed(&turn, 9)], 16),
    ] {
        assert_eq!(used(&entries).input_tokens, counted);
    }
}
