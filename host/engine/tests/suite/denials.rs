//! Capabilities that calls are denied and that whoever runs the graph grants while the run waits.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use hotcell_engine::{
    CallReport, CallSite, Denied, Engine, ForkError, ForkOrigin, ForkRequest, Outcome, People, PortError, Ports,
    RunError, RunReport, ScriptCall, ToolCall, Tools,
};
use hotcell_graph::Value;
use hotcell_graph::ir::Graph;
use hotcell_journal::{Entry, Fact, MemoryStore, Question, RunId, RunStore};
use hotcell_models::ToolSpec;
use tokio_util::sync::CancellationToken;

use crate::common::journal::{answer, before_the_end, entries, journal_with, open, request};
use crate::common::{ScriptBehaviour, World, end, graph, script};

/// Where calls are denied what nobody granted.
struct Gate {
    world: Arc<World>,
    asks: bool,
    /// What whoever runs this says, one after the other; nobody is there if they say nothing
    says: Mutex<Vec<&'static str>>,
    /// What was written down
    kept: Mutex<Vec<Value>>,
    /// Whether anything can be written down
    keeps: bool,
}

#[async_trait]
impl Tools for Gate {
    fn describe(&self, _name: &str) -> Option<ToolSpec> {
        None
    }

    async fn call(&self, call: ToolCall<'_>) -> CallReport {
        CallReport::failed(format!("no tool `{}`", call.name))
    }

    fn asks_denials(&self) -> bool {
        self.asks
    }

    async fn keep_grant(&self, denial: &Value) -> Result<(), PortError> {
        if !self.keeps {
            return Err(PortError::new("the disk is full"));
        }
        self.kept.lock().unwrap().push(denial.clone());
        Ok(())
    }
}

#[async_trait]
impl People for Gate {
    async fn ask(&self, question: &Question) -> Option<String> {
        assert_eq!(question.options, ["once", "run", "always", "refuse"]);
        let mut says = self.says.lock().unwrap();
        (!says.is_empty()).then(|| says.remove(0).to_owned())
    }

    fn may_grant(&self) -> bool {
        true
    }
}

/// Whether a call may do something, as whoever made it looks.
fn may(site: &CallSite, what: &str) -> bool {
    let denial = Value::text(what);
    if site.permits().iter().any(|permit| permit.denial == denial) {
        return true;
    }
    site.deny(Denied { text: format!("it asks for {what}"), denial });
    false
}

/// Goes through the door, if it may.
fn go(call: &ScriptCall) -> Result<String, String> {
    let came = if may(&call.site, "door") { "went" } else { "denied" };
    Ok(format!("{{\"{}\":\"{came}\"}}", call.file))
}

/// Wants ten things, and others than its neighbours.
fn greedy(call: &ScriptCall) -> Result<String, String> {
    for number in 0..10 {
        may(&call.site, &format!("{} {number}", call.file));
    }
    Ok("{}".to_owned())
}

/// Does something outside before it wants to go through the door.
fn hasty(call: &ScriptCall) -> Result<String, String> {
    call.site.acted();
    go(call)
}

impl Gate {
    fn of(says: &[&'static str]) -> Self {
        let scripts: [(&str, ScriptBehaviour); 3] = [("one", go), ("two", go), ("hasty", hasty)];
        let many = ["a", "b", "c", "d", "e"].map(|name| (name, greedy as ScriptBehaviour));
        let world = Arc::new(World { scripts: scripts.into_iter().chain(many).collect(), ..World::default() });
        Gate { world, asks: true, says: Mutex::new(says.to_vec()), kept: Mutex::default(), keeps: true }
    }

    fn engine(self: &Arc<Self>, journal: Arc<MemoryStore>) -> Engine {
        let ports = Ports { tools: self.clone(), people: self.clone(), ..self.world.ports() };
        Engine::new(ports, journal)
    }

    async fn start(self: &Arc<Self>, graph: &Arc<Graph>) -> (RunReport, Arc<MemoryStore>) {
        let journal = Arc::new(MemoryStore::default());
        let report = self.engine(journal.clone()).start(request(graph), CancellationToken::new()).await.unwrap();
        (report, journal)
    }
}

/// Two scripts, one after the other.
fn chain(one: &str, two: &str) -> Arc<Graph> {
    Arc::new(graph(&["first", "second", "done"], |ids| {
        vec![
            script(ids, "first", one, &[], &["second"]),
            script(ids, "second", two, &[], &["done"]),
            end(ids, "done", &format!("{{{{{one}}}}} {{{{{two}}}}}")),
        ]
    }))
}

fn output(report: &RunReport) -> &str {
    match &report.outcome {
        Outcome::Completed { output } => output,
        other => panic!("{other:?}"),
    }
}

async fn asked(store: &dyn RunStore, run: &RunId) -> usize {
    entries(store, run).await.iter().filter(|entry| matches!(entry.fact, Fact::Asked { .. })).count()
}

#[tokio::test]
async fn what_is_granted_counts_as_long_as_was_said() {
    for (says, expected, questions) in [
        (&["once", "once"][..], "went went", 2),
        (&["once", "refuse"], "went denied", 2),
        (&["run"], "went went", 1),
        (&["always"], "went went", 1),
        // What was refused is not asked for again.
        (&["refuse"], "denied denied", 1),
        // What is no decision grants nothing.
        (&["yes, please"], "denied denied", 1),
    ] {
        let gate = Arc::new(Gate::of(says));
        let (report, journal) = gate.start(&chain("one", "two")).await;
        assert_eq!(output(&report), expected, "{says:?}");
        assert_eq!(asked(&*journal, &report.run).await, questions, "{says:?}");
        let kept = if says == ["always"] { vec![Value::text("door")] } else { Vec::new() };
        assert_eq!(*gate.kept.lock().unwrap(), kept, "{says:?}");
    }
}

#[tokio::test]
async fn every_prefix_of_a_run_that_was_granted_something_leads_to_the_same_end() {
    for (says, expected) in [
        (&["run"][..], "went went"),
        (&["once", "refuse"], "went denied"),
        (&["refuse"], "denied denied"),
        (&["always"], "went went"),
    ] {
        let graph = chain("one", "two");
        let (report, whole) = Arc::new(Gate::of(says)).start(&graph).await;
        assert_eq!(output(&report), expected);
        let before = before_the_end(&*whole, &report.run).await;
        for length in 1..=before.len() {
            let (journal, run) = journal_with(&before[..length]).await;
            let is_answer = |entry: &&Entry| matches!(entry.fact, Fact::Answered { .. });
            let answered = before[..length].iter().filter(is_answer).count();
            let is_kept = before[..length]
                .iter()
                .any(|entry| matches!(&entry.fact, Fact::Effect { kind, .. } if kind == "grant"));
            let gate = Arc::new(Gate::of(&says[answered..]));
            let report =
                gate.engine(journal.clone()).resume(&run, graph.clone(), CancellationToken::new()).await.unwrap();
            assert_eq!(output(&report), expected, "{says:?} after {length} entries");
            assert!(gate.says.lock().unwrap().is_empty(), "{says:?}: a question was put twice after {length} entries");
            let kept = usize::from(says == ["always"] && !is_kept);
            assert_eq!(gate.kept.lock().unwrap().len(), kept, "{says:?} after {length} entries");
        }
    }
}

#[tokio::test]
async fn a_run_waits_for_whoever_runs_it_and_nobody_else_is_asked() {
    let gate = Arc::new(Gate::of(&[]));
    let graph = chain("one", "two");
    let journal = Arc::new(MemoryStore::default());
    // People who may not grant anything are not shown the question.
    let ports = Ports { tools: gate.clone(), ..gate.world.ports() };
    gate.world.answers.lock().unwrap().push("always".to_owned());
    let engine = Engine::new(ports, journal.clone());
    let report = engine.start(request(&graph), CancellationToken::new()).await.unwrap();
    assert!(matches!(report.outcome, Outcome::Waiting { .. }), "{:?}", report.outcome);
    assert!(gate.world.asked.lock().unwrap().is_empty());
    let questions = open(&*journal, &report.run).await;
    assert_eq!(questions[0].question.denial, Some(Value::text("door")));
    assert_eq!(questions[0].question.text, "it asks for door");
    answer(&*journal, &report.run, &questions[0], "run").await;
    let report = engine.resume(&report.run, graph, CancellationToken::new()).await.unwrap();
    assert_eq!(output(&report), "went went");
    // The script that was denied once is not run again to ask the same.
    assert_eq!(*gate.world.ran.lock().unwrap(), ["one", "one", "two"]);
}

#[tokio::test]
async fn nobody_is_asked_where_that_is_not_wanted_and_after_a_call_that_acted() {
    let mut quiet = Gate::of(&[]);
    quiet.asks = false;
    let (report, journal) = Arc::new(quiet).start(&chain("one", "two")).await;
    assert_eq!((output(&report), asked(&*journal, &report.run).await), ("denied denied", 0));
    let (report, journal) = Arc::new(Gate::of(&[])).start(&chain("hasty", "hasty")).await;
    assert_eq!((output(&report), asked(&*journal, &report.run).await), ("denied denied", 0));
}

#[tokio::test]
async fn a_guest_does_not_decide_how_often_somebody_is_asked() {
    let graph = Arc::new(graph(&["a", "b", "c", "d", "e", "done"], |ids| {
        let names = ["a", "b", "c", "d", "e", "done"];
        let mut nodes: Vec<_> = names.windows(2).map(|pair| script(ids, pair[0], pair[0], &[], &[pair[1]])).collect();
        nodes.push(end(ids, "done", "done"));
        nodes
    }));
    let gate = Arc::new(Gate::of(&["refuse"; 60]));
    let (report, journal) = gate.start(&graph).await;
    assert_eq!(output(&report), "done");
    // Eight for each call, and 32 for the run.
    assert_eq!(asked(&*journal, &report.run).await, 32);
    let events = gate.world.events.lock().unwrap();
    let told = events.iter().filter(|event| event.contains("a run asks for 32 capabilities at most")).count();
    assert_eq!(told, 8, "{events:?}");
}

#[tokio::test]
async fn what_cannot_be_written_down_is_granted_to_the_call_and_said() {
    let mut gate = Gate::of(&["always"]);
    gate.keeps = false;
    let gate = Arc::new(gate);
    let (report, _) = gate.start(&chain("one", "two")).await;
    assert_eq!(output(&report), "went went");
    let events = gate.world.events.lock().unwrap();
    assert!(events.iter().any(|event| event.contains("granted for this call alone: the disk is full")), "{events:?}");
}

#[tokio::test]
async fn a_fork_asks_for_itself_and_brings_no_decision_along() {
    let graph = chain("one", "two");
    let (report, journal) = Arc::new(Gate::of(&["run"])).start(&graph).await;
    let entries = entries(&*journal, &report.run).await;
    let first = entries.iter().position(|entry| matches!(entry.fact, Fact::Completed(_))).unwrap();
    let fork = async |at: usize, answer: Option<&str>, says: &[&'static str]| {
        let origin = ForkOrigin { run: report.run.to_string(), at: at as u64, ..ForkOrigin::default() };
        let answer = answer.map(|answer| (None, answer.to_owned()));
        let wanted = ForkRequest { origin, answer, ..ForkRequest::default() };
        let gate = Arc::new(Gate::of(says));
        gate.engine(journal.clone()).fork(graph.clone(), wanted, None, CancellationToken::new()).await
    };
    let forked = fork(first + 1, None, &["refuse"]).await.unwrap();
    assert_eq!(output(&forked), "went denied");
    // Where the other run was just granted something, the fork asks for that.
    let answered = entries.iter().position(|entry| matches!(entry.fact, Fact::Answered { .. })).unwrap();
    let forked = fork(answered + 1, None, &["refuse"]).await.unwrap();
    assert_eq!(output(&forked), "denied denied");
    for at in [answered, answered + 1] {
        let refused = fork(at, Some("always"), &[]).await;
        assert!(matches!(refused, Err(RunError::Fork(ForkError::Answer(_)))), "{refused:?}");
    }
}
