//! Jobs that are asked for until they are done: a process that finds one goes on where the one before stopped.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use hotcell_budget::Account;
use hotcell_engine::{CallReport, Engine, ManualClock, Outcome, Ports, ToolCall, Tools};
use hotcell_graph::Object;
use hotcell_graph::ir::{Action, Expression, Graph, JobAction};
use hotcell_journal::{Entry, Fact, MemoryStore, RunQuery, RunStore};
use hotcell_models::ToolSpec;
use tokio_util::sync::CancellationToken;

use crate::common::journal::{entries, journal_with, request};
use crate::common::{World, end, graph, node};

const HOUR: Duration = Duration::from_secs(3600);

/// The tools of a job that is not done for so many polls.
struct Elsewhere {
    polls: usize,
    called: Mutex<Vec<String>>,
}

impl Elsewhere {
    fn new(polls: usize) -> Arc<Self> {
        Arc::new(Elsewhere { polls, called: Mutex::default() })
    }

    fn engine(self: &Arc<Self>, journal: Arc<MemoryStore>, clock: &ManualClock) -> Engine {
        let world = Arc::new(World::default());
        Engine::new(Ports { tools: self.clone(), clock: Arc::new(clock.clone()), ..world.ports() }, journal)
    }

    fn called(&self) -> Vec<String> {
        self.called.lock().expect("nobody panics with it").clone()
    }
}

#[async_trait]
impl Tools for Elsewhere {
    fn describe(&self, _name: &str) -> Option<ToolSpec> {
        None
    }

    async fn call(&self, call: ToolCall<'_>) -> CallReport {
        let polls = {
            let mut called = self.called.lock().expect("nobody panics with it");
            called.push(call.name.to_owned());
            called.iter().filter(|name| *name == "job/poll").count()
        };
        let result = match polls < self.polls {
            true => r#"{"again":{"state":"begun","after_ms":60000}}"#,
            false => r#"{"done":"seven"}"#,
        };
        CallReport { result: Ok(result.to_owned()), account: Account::default(), notices: Vec::new() }
    }
}

fn polling() -> Arc<Graph> {
    Arc::new(graph(&["job", "done"], |ids| {
        let nothing = || Expression::Value(Object::default().into());
        let job = JobAction {
            name: "job".into(),
            tools: "job/".to_owned(),
            settings: nothing(),
            arguments: nothing(),
            step: Duration::from_secs(60),
            deadline: HOUR,
            callback: None,
            late: "late",
            bind: "came",
        };
        vec![
            node(ids, "job", Action::Job(Box::new(job)), &[("came", "{{came}}")], &["done"]),
            end(ids, "done", "it came: {{came}}"),
        ]
    }))
}

fn is_poll(entry: &Entry) -> bool {
    matches!(&entry.fact, Fact::Effect { subject, .. } if subject.starts_with("job/poll"))
}

/// The entries of a run up to the end of its second poll.
async fn polled_twice(graph: &Arc<Graph>) -> Vec<Entry> {
    let (journal, clock) = (Arc::new(MemoryStore::default()), ManualClock::at(SystemTime::UNIX_EPOCH));
    let engine = Elsewhere::new(9).engine(journal.clone(), &clock);
    let graph = graph.clone();
    let running = tokio::spawn(async move { engine.start(request(&graph), CancellationToken::new()).await });
    let run = loop {
        let page = journal.list(&RunQuery { limit: 1, ..RunQuery::default() }).await.expect("listed");
        if let Some(run) = page.runs.into_iter().next() {
            break run.id;
        }
        tokio::task::yield_now().await;
    };
    loop {
        let known = entries(&*journal, &run).await;
        let polls: Vec<usize> = (0..known.len()).filter(|place| is_poll(&known[*place])).collect();
        if let [_, second, ..] = polls[..] {
            running.abort();
            return known[..=second].to_vec();
        }
        if let Some(due) = clock.next_due() {
            clock.advance_to(due);
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_job_that_is_found_after_its_time_is_called_off() {
    let graph = polling();
    let (journal, run) = journal_with(&polled_twice(&graph).await).await;
    let (elsewhere, clock) = (Elsewhere::new(9), ManualClock::at(SystemTime::UNIX_EPOCH + 2 * HOUR));
    let engine = elsewhere.engine(journal, &clock);
    let report = engine.resume(&run, graph, CancellationToken::new()).await.expect("it fits");
    let Outcome::Failed { error, .. } = report.outcome else { panic!("{:?}", report.outcome) };
    assert!(error.contains("it was not done within 3600 s"), "{error}");
    assert_eq!(elsewhere.called(), ["job/cancel"]);
}

#[tokio::test]
async fn what_was_waited_for_before_is_not_waited_for_again() {
    let graph = polling();
    let (journal, run) = journal_with(&polled_twice(&graph).await).await;
    let begin = SystemTime::UNIX_EPOCH + Duration::from_secs(600);
    let (elsewhere, clock) = (Elsewhere::new(1), ManualClock::at(begin));
    let engine = elsewhere.engine(journal, &clock);
    let resuming = tokio::spawn(async move { engine.resume(&run, graph, CancellationToken::new()).await });
    while !resuming.is_finished() {
        if let Some(due) = clock.next_due() {
            clock.advance_to(due);
        }
        tokio::task::yield_now().await;
    }
    let report = resuming.await.expect("no panic").expect("it goes on");
    assert_eq!(report.outcome, Outcome::Completed { output: "it came: seven".into() });
    assert_eq!(elsewhere.called(), ["job/poll"]);
    let waited = hotcell_engine::Clock::now(&clock).duration_since(begin).expect("it is not set back");
    assert_eq!(waited, Duration::from_secs(60), "between the second poll and the third");
}
