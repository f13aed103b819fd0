//! Questions that do not wait for ever: what counts when nobody answered, whether somebody works on the run or not, and that a
//! question has one outcome.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hotcell_engine::{Clock, Engine, ManualClock, Outcome, Ports, RunReport};
use hotcell_graph::Reducer;
use hotcell_graph::ir::{
    Action, AskAction, AskDeadline, Asked, CallAction, CallTarget, Expiry, Expression, Gives, Graph, Join, NodeIds,
};
use hotcell_graph::{Template, Value};
use hotcell_journal::{Entry, Fact, JournalError, MemoryStore, RunId, RunQuery, RunStore};
use tokio_util::sync::CancellationToken;

use crate::clock::Slow;
use crate::common::journal::{answer, before_the_end, entries, journal_with, open, request};
use crate::common::{World, end, graph, node, pass, script};

const HOUR: Duration = Duration::from_secs(3600);
const SOON: Duration = Duration::from_secs(60);

/// Asks, and waits for so many hours. Without a word that then counts its branch ends.
fn ask_for(hours: u32, then: Option<&str>) -> Action {
    let then = match then {
        Some(word) => Expiry::Answer(Expression::Value(word.into())),
        None => Expiry::EndBranch,
    };
    Action::Ask(AskAction {
        deadline: Some(Box::new(AskDeadline { after: HOUR * hours, then })),
        asked: Box::new(Asked { seat: Some("boss".into()), operator_ids: vec!["ann".into()], ..Asked::default() }),
        ..AskAction::new(Expression::Strict(Template::parse("Go?")), "answer")
    })
}

/// A question of so many hours, beside one of three hours after which nothing follows.
fn two(hours: u32, then: Option<&str>) -> Graph {
    let mut built = graph(&["split", "a", "b", "next", "done"], |ids| {
        let mut nodes = vec![
            pass(ids, "split", &[], &["a", "b"]),
            node(ids, "a", ask_for(hours, then), &[("said", "{{answer}}")], &["next"]),
            node(ids, "b", ask_for(3, Some("never mind")), &[("said", "{{answer}}")], &["next"]),
            pass(ids, "next", &[("log", "{{said}}")], &["done"]),
            end(ids, "done", "{{log}}"),
        ];
        nodes[3].join = Join::All;
        nodes
    });
    built.reducers.insert("said".into(), Reducer::Append);
    built
}

fn one(then: Option<&str>) -> Graph {
    graph(&["a", "done"], |ids| {
        vec![node(ids, "a", ask_for(1, then), &[("said", "{{answer}}")], &["done"]), end(ids, "done", "{{said}}")]
    })
}

struct Bench {
    clock: ManualClock,
    store: Arc<MemoryStore>,
    graph: Arc<Graph>,
}

impl Bench {
    fn new(graph: Graph) -> Self {
        let clock = ManualClock::at(SystemTime::UNIX_EPOCH + 1000 * HOUR);
        Bench { clock, store: Arc::default(), graph: Arc::new(graph) }
    }

    fn engine(&self) -> Engine {
        let scripts = Arc::new(Slow(self.clock.clone()));
        let ports = Ports { scripts, clock: Arc::new(self.clock.clone()), ..Arc::new(World::default()).ports() };
        Engine::new(ports, self.store.clone())
    }

    async fn start(&self) -> RunReport {
        self.engine().start(request(&self.graph), CancellationToken::new()).await.expect("it ran")
    }

    async fn resume(&self, run: &RunId) -> RunReport {
        self.engine().resume(run, self.graph.clone(), CancellationToken::new()).await.expect("it went on")
    }
}

fn completed(output: &str) -> Outcome {
    Outcome::Completed { output: output.into() }
}

#[tokio::test]
async fn a_run_that_rests_is_found_when_its_question_expires() {
    let bench = Bench::new(one(Some("no")));
    let report = bench.start().await;
    let Outcome::Waiting { questions } = &report.outcome else { panic!("{:?}", report.outcome) };
    let at = bench.clock.now() + HOUR;
    assert_eq!((questions[0].expires, questions[0].seat.as_deref()), (Some(at), Some("boss")));
    assert_eq!(questions[0].operator_ids, ["ann"]);
    assert_eq!(bench.clock.at_work(), 0, "nobody holds it");
    assert_eq!(bench.store.next_due(bench.clock.now()).await.expect("read"), Some(at));

    // Whoever goes on with it earlier changes nothing.
    bench.clock.advance(HOUR / 2);
    assert_eq!(bench.resume(&report.run).await.outcome, report.outcome);
    bench.clock.advance(HOUR / 2);
    assert_eq!(bench.store.due(bench.clock.now()).await.expect("read"), std::slice::from_ref(&report.run));
    let asked = open(&*bench.store, &report.run).await;
    let report = bench.resume(&report.run).await;
    assert_eq!(report.outcome, completed("no"));
    assert_eq!(bench.store.next_due(SystemTime::UNIX_EPOCH).await.expect("read"), None);

    let late = Fact::Answered { number: asked[0].number, text: "yes".into() };
    let refused = bench.store.send(&report.run, Entry { place: asked[0].place.clone(), fact: late }).await;
    assert!(matches!(refused, Err(JournalError::Ended { .. })), "{refused:?}");
}

#[tokio::test]
async fn an_answer_that_was_sent_in_time_counts_however_late_it_is_looked_at() {
    let bench = Bench::new(one(Some("no")));
    let report = bench.start().await;
    let asked = open(&*bench.store, &report.run).await;
    answer(&*bench.store, &report.run, &asked[0], "yes").await;
    bench.clock.advance(5 * HOUR);
    assert_eq!(bench.resume(&report.run).await.outcome, completed("yes"));
}

#[tokio::test]
async fn a_question_expires_beside_one_that_waits_on() {
    let bench = Bench::new(two(1, Some("no")));
    let report = bench.start().await;
    assert!(matches!(&report.outcome, Outcome::Waiting { questions } if questions.len() == 2));
    let asked = open(&*bench.store, &report.run).await;
    bench.clock.advance(HOUR);
    let report = bench.resume(&report.run).await;
    let Outcome::Waiting { questions } = &report.outcome else { panic!("{:?}", report.outcome) };
    assert_eq!(questions.len(), 1);
    let late = Fact::Answered { number: asked[0].number, text: "yes".into() };
    let refused = bench.store.send(&report.run, Entry { place: asked[0].place.clone(), fact: late }).await;
    assert!(matches!(refused, Err(JournalError::Expired { .. })), "{refused:?}");
    let asked = open(&*bench.store, &report.run).await;
    answer(&*bench.store, &report.run, &asked[0], "yes").await;
    assert_eq!(bench.resume(&report.run).await.outcome, completed(r#"["no","yes"]"#));

    // Wherever the process died, the same comes of it.
    let all = before_the_end(&*bench.store, &report.run).await;
    for length in 1..all.len() {
        let (journal, run) = journal_with(&all[..length]).await;
        let again = Bench { store: journal, ..Bench::new((*bench.graph).clone()) };
        let mut report = again.resume(&run).await;
        while let Outcome::Waiting { .. } = report.outcome {
            let open = open(&*again.store, &run).await;
            if let Some(mine) = open.iter().find(|open| open.place.turn() == asked[0].place.turn()) {
                answer(&*again.store, &run, mine, "yes").await;
            }
            again.clock.advance(HOUR);
            report = again.resume(&run).await;
        }
        assert_eq!(report.outcome, completed(r#"["no","yes"]"#), "after {length} entries");
    }
}

#[tokio::test]
async fn a_question_expires_by_itself_while_others_work() {
    let mut built = graph(&["split", "a", "long", "next", "done"], |ids| {
        vec![
            pass(ids, "split", &[], &["a", "long"]),
            node(ids, "a", ask_for(1, Some("no")), &[("said", "{{answer}}")], &["next"]),
            script(ids, "long", "2", &[("said", "long")], &["next"]),
            pass(ids, "next", &[], &["done"]),
            end(ids, "done", "{{said}}"),
        ]
    });
    built.reducers.insert("said".into(), Reducer::Append);
    let bench = Bench::new(built);
    let (engine, graph) = (bench.engine(), bench.graph.clone());
    let run = tokio::spawn(async move { engine.start(request(&graph), CancellationToken::new()).await });
    assert!(bench.clock.settled(SOON).await, "{:?}", bench.clock);
    bench.clock.advance(HOUR);
    assert!(bench.clock.settled(SOON).await, "{:?}", bench.clock);
    let runs = bench.store.list(&RunQuery { limit: 9, ..RunQuery::default() }).await.expect("read");
    let known = entries(&*bench.store, &runs.runs[0].id).await;
    assert!(known.iter().any(|entry| matches!(entry.fact, Fact::Expired { .. })), "it has expired already");
    bench.clock.advance(HOUR);
    let report = run.await.expect("whole").expect("it ran");
    assert_eq!(report.outcome, completed(r#"["no","long"]"#));
}

/// A graph of one question within a node that needs its answer.
fn within(ids: &NodeIds, id: &str, inner: Graph) -> hotcell_graph::ir::Node {
    let target = CallTarget::Graph {
        graph: Arc::new(inner),
        inputs: Vec::new(),
        conversation: None,
        inherits: false,
        gives: Gives::Needed(vec!["said".into()]),
    };
    let call = CallAction { target, contract: None, failure_prefix: None, bind: "answer" };
    node(ids, id, Action::Call(Box::new(call)), &[("heard", "{{answer.said}}")], &["after"])
}

#[tokio::test]
async fn a_branch_that_got_no_answer_ends_and_nothing_has_failed() {
    use hotcell_graph::ir::{Ends, Next};
    let quiet = |mut built: Graph| {
        built.scheduling.ends = Ends::WhenQuiet { output: Box::new(Expression::Value("quiet".into())) };
        built
    };
    let inner = || {
        quiet(graph(&["a"], |ids| {
            let mut asks = node(ids, "a", ask_for(1, None), &[("said", "{{answer}}")], &[]);
            asks.next = Next::Open(Vec::new());
            vec![asks]
        }))
    };
    let built = quiet(graph(&["split", "seat", "other", "after"], |ids| {
        let mut after = pass(ids, "after", &[("came", "{{heard}}")], &[]);
        after.next = Next::Open(Vec::new());
        let mut other = pass(ids, "other", &[("other", "here")], &[]);
        other.next = Next::Open(Vec::new());
        vec![pass(ids, "split", &[], &["seat", "other"]), within(ids, "seat", inner()), other, after]
    }));
    let bench = Bench::new(built);
    let report = bench.start().await;
    bench.clock.advance(HOUR);
    let report = bench.resume(&report.run).await;
    assert_eq!((report.outcome, report.failures), (completed("quiet"), Vec::new()));
    assert_eq!(report.state.get("came"), None);
    let expired = entries(&*bench.store, &report.run).await;
    assert_eq!(expired.iter().filter(|entry| matches!(entry.fact, Fact::Expired { .. })).count(), 1);
    assert_eq!(report.state.get("heard"), None::<&Value>);
}
