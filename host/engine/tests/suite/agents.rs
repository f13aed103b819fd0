//! Agents that nodes call: a part of the run that calls them, with a state, limits and a depth of their own.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;

use crate::common::journal::{answer, before_the_end, journal_with, open, request};
use crate::common::{World, ask, each, end, graph, node, script};
use hotcell_engine::{
    Agents, CallReport, Callee, Engine, Nobody, Outcome, PortError, Ports, RunError, RunReport, ScriptCall, Scripts,
};
use hotcell_graph::ir::{Action, CallAction, CallTarget, Expression, Gives, Graph, NodeIds, Variable};
use hotcell_graph::value::parse_json;
use hotcell_graph::{Template, Value};
use hotcell_journal::{Entry, Fact, MemoryStore, RunStatus, RunStore};
use tokio_util::sync::CancellationToken;

fn call(agent: &str, prompt: &str) -> Action {
    let prompt = Expression::Strict(Template::parse(prompt));
    Action::Call(Box::new(CallAction::agent(agent.into(), prompt, "output")))
}

/// Runs a script, asks a person and answers with both.
fn inner() -> Graph {
    let mut graph = graph(&["work", "ask", "done"], |ids| {
        vec![
            script(ids, "work", "work", &[], &["ask"]),
            node(ids, "ask", ask("{{prompt}}: go on?"), &[("said", "{{answer}}")], &["done"]),
            end(ids, "done", "{{prompt}}/{{made}}/{{said}}"),
        ]
    });
    graph.input_key = Some("prompt".into());
    graph
}

/// Hands on to another agent and wraps what it says.
fn middle() -> Graph {
    let mut graph = graph(&["hand", "done"], |ids| {
        vec![
            node(ids, "hand", call("inner", "m-{{prompt}}"), &[("said", "{{output}}")], &["done"]),
            end(ids, "done", "({{said}})"),
        ]
    });
    graph.input_key = Some("prompt".into());
    graph
}

/// Calls `middle` once for each of two items, then `inner` once more.
fn outer() -> Graph {
    let mut built = graph(&["each", "one", "last", "done"], |ids: &NodeIds| {
        let map = each(ids, "one", "output", "all", None);
        vec![
            node(ids, "each", map, &[], &["last"]),
            node(ids, "one", call("middle", "{{x}}"), &[], &[]),
            node(ids, "last", call("inner", "z"), &[("last", "{{output}}")], &["done"]),
            end(ids, "done", "{{all}} {{last}}"),
        ]
    });
    built.initial_state = vec![("xs".into(), parse_json(r#"["a","b"]"#).unwrap()), ("made".into(), "outer".into())];
    built
}

struct Table(Mutex<HashMap<&'static str, Callee>>);

impl Agents for Table {
    fn find(&self, name: &str) -> Result<Callee, PortError> {
        self.0.lock().unwrap().get(name).cloned().ok_or_else(|| PortError::new("it is not there"))
    }
}

fn ports(world: &Arc<World>, agents: &[(&'static str, Arc<Graph>)]) -> Ports {
    let callee = |graph: &Arc<Graph>| world.callee(graph.clone());
    let table = agents.iter().map(|(name, graph)| (*name, callee(graph))).collect();
    Ports { agents: Arc::new(Table(Mutex::new(table))), ..world.ports() }
}

fn both() -> [(&'static str, Arc<Graph>); 2] {
    [("inner", Arc::new(inner())), ("middle", Arc::new(middle()))]
}

fn world(answers: &[&str]) -> Arc<World> {
    let work: crate::common::ScriptBehaviour = |call| {
        let prompt: String = serde_json::from_str(&call.state.get("prompt").unwrap()).unwrap();
        Ok(format!(r#"{{"made":"made for {prompt}"}}"#))
    };
    let answers = answers.iter().map(|answer| (*answer).to_owned()).collect();
    Arc::new(World { scripts: [("work", work)].into(), answers: Mutex::new(answers), ..World::default() })
}

async fn start(ports: Ports, graph: Graph) -> Result<RunReport, RunError> {
    let engine = Engine::new(ports, Arc::new(MemoryStore::default()));
    engine.start(request(&Arc::new(graph)), CancellationToken::new()).await
}

const RESULT: &str = r#"["(m-a/made for m-a/yes)","(m-b/made for m-b/yes)"] z/made for z/yes"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_prefix_of_the_journal_leads_to_the_same_result_through_any_depth() {
    let graph = Arc::new(outer());
    let journal = Arc::new(MemoryStore::default());
    let first = world(&["yes", "yes", "yes"]);
    let engine = Engine::new(ports(&first, &both()), journal.clone());
    let report = engine.start(request(&graph), CancellationToken::new()).await.unwrap();
    assert_eq!(report.outcome, Outcome::Completed { output: RESULT.into() });
    assert_eq!(report.state.get("made"), Some(&Value::from("outer")), "an agent has a state of its own");
    let (calls, used) = (first.ran.lock().unwrap().len(), report.account.total());
    assert_eq!((calls, used.calls), (3, 3));

    let entries = before_the_end(&*journal, &report.run).await;
    assert!(entries.iter().any(|entry| entry.place.to_string().matches("agent").count() == 2), "{entries:?}");
    for length in 1..=entries.len() {
        let (journal, run) = journal_with(&entries[..length]).await;
        let again = world(&["yes", "yes", "yes"]);
        let engine = Engine::new(ports(&again, &both()), journal.clone());
        let report = engine.resume(&run, graph.clone(), CancellationToken::new()).await.unwrap();
        assert_eq!(report.outcome, Outcome::Completed { output: RESULT.into() }, "after {length} entries");
        // A script that was committed at any depth does not run again, and is not paid for twice.
        let worked = |entry: &&Entry| matches!(&entry.fact, Fact::Completed(completed) if completed.node == "work");
        let committed = entries[..length].iter().filter(worked).count();
        assert_eq!(again.ran.lock().unwrap().len(), calls - committed, "after {length} entries");
        assert_eq!(journal.find(run.as_str()).await.unwrap().status, RunStatus::Completed);
    }
}

#[tokio::test]
async fn a_question_of_an_agent_waits_and_is_answered_from_outside() {
    let graph = Arc::new(outer());
    let journal = Arc::new(MemoryStore::default());
    let nobody = world(&[]);
    let engine = Engine::new(ports(&nobody, &both()), journal.clone());
    let mut report = engine.start(request(&graph), CancellationToken::new()).await.unwrap();
    let mut asked = Vec::new();
    while let Outcome::Waiting { .. } = &report.outcome {
        let questions = open(&*journal, &report.run).await;
        asked.extend(questions.iter().map(|open| open.question.text.clone()));
        for question in &questions {
            answer(&*journal, &report.run, question, "yes").await;
        }
        report = engine.resume(&report.run, graph.clone(), CancellationToken::new()).await.unwrap();
    }
    assert_eq!(report.outcome, Outcome::Completed { output: RESULT.into() });
    asked.sort();
    assert_eq!(asked, ["m-a: go on?", "m-b: go on?", "z: go on?"]);
}

#[tokio::test]
async fn what_keeps_an_agent_from_answering_names_the_agent() {
    let calls = |agent: &'static str| {
        graph(&["a", "done"], |ids| vec![node(ids, "a", call(agent, "x"), &[], &["done"]), end(ids, "done", "")])
    };
    let failed = |report: RunReport| match report.outcome {
        Outcome::Failed { node, error } => (node.unwrap_or_default(), error),
        other => panic!("{other:?}"),
    };
    let world = world(&[]);
    let (node, error) = failed(start(ports(&world, &[]), calls("ghost")).await.unwrap());
    assert_eq!((node.as_str(), error.as_str()), ("a", "node `a` failed: agent `ghost`: it is not there"));

    // An agent that calls itself without end.
    let again = [("again", Arc::new(calls("again")))];
    let (_, error) = failed(start(ports(&world, &again), calls("again")).await.unwrap());
    assert!(error.contains("to a depth of 3") && error.matches("agent `again`").count() == 4, "{error}");

    // A node of the agent that fails.
    let broken = graph(&["b", "done"], |ids| vec![script(ids, "b", "b", &[("x", "1")], &[]), end(ids, "done", "")]);
    let (_, error) = failed(start(ports(&world, &[("broken", Arc::new(broken))]), calls("broken")).await.unwrap());
    assert!(error.starts_with("node `a` failed: agent `broken`: node `b` failed: "), "{error}");

    // An agent that has no time at all.
    let hurried = graph(&["a", "done"], |ids| {
        let mut calls = crate::common::node(ids, "a", call("slow", "x"), &[], &["done"]);
        calls.timeout = Some(std::time::Duration::ZERO);
        vec![calls, end(ids, "done", "")]
    });
    let slow = graph(&["b", "done"], |ids| {
        vec![script(ids, "b", "a-program-that-takes-its-time", &[], &["done"]), end(ids, "done", "")]
    });
    let (_, error) = failed(start(ports(&world, &[("slow", Arc::new(slow))]), hurried).await.unwrap());
    assert_eq!(error, "node `a` failed: agent `slow` timed out after 0 s");
}

#[tokio::test]
async fn an_agent_is_held_by_its_own_budget_and_by_the_run() {
    let looping: fn(u64) -> Graph = |cap| {
        let mut graph = graph(&["w", "x", "done"], |ids| {
            vec![script(ids, "w", "w", &[], &["x"]), script(ids, "x", "x", &[], &["done"]), end(ids, "done", "through")]
        });
        graph.limits.budget.calls = Some(cap);
        graph
    };
    let calls = |cap: Option<u64>| {
        let mut graph = graph(&["a", "b", "done"], |ids| {
            vec![
                node(ids, "a", call("looping", "x"), &[], &["b"]),
                node(ids, "b", call("looping", "x"), &[], &["done"]),
                end(ids, "done", "all"),
            ]
        });
        graph.limits.budget.calls = cap;
        graph
    };
    let outcome = |own: u64, whole: Option<u64>| {
        let agents = [("looping", Arc::new(looping(own)))];
        let world = Arc::new(World { charges: true, ..World::default() });
        let ports = ports(&world, &agents);
        async move { start(ports, calls(whole)).await.unwrap().outcome }
    };
    assert_eq!(outcome(2, None).await, Outcome::Completed { output: "all".into() });
    let Outcome::Failed { error, .. } = outcome(1, None).await else { panic!("the agent's own cap holds") };
    assert!(error.contains("node `a`") && error.contains("allows it as `budget.calls`"), "{error}");
    let Outcome::Failed { error, .. } = outcome(2, Some(3)).await else { panic!("the run's cap holds") };
    assert!(error.contains("node `b`") && error.contains("run-budget"), "{error}");
}

#[tokio::test]
async fn variables_of_agents_have_to_be_there_before_the_run_starts() {
    let mut needy = graph(&["done"], |ids| vec![end(ids, "done", "{{region}}")]);
    let variable = |name: &str, default: Option<&str>| Variable {
        name: name.into(),
        description: "where".into(),
        default: default.map(str::to_owned),
    };
    needy.variables = vec![variable("region", None)];
    let to = |agent: &'static str| {
        graph(&["a", "done"], |ids| {
            vec![node(ids, "a", call(agent, "x"), &[("said", "{{output}}")], &["done"]), end(ids, "done", "{{said}}")]
        })
    };
    let calls = || to("needy");
    let needy = [("needy", Arc::new(needy)), ("between", Arc::new(calls()))];
    let error = start(ports(&world(&[]), &needy), calls()).await.unwrap_err().to_string();
    assert!(error.starts_with("the variable `region` (where) of agent `needy` has no default"), "{error}");
    // A variable of the run is also that of an agent which declares it.
    let mut caller = calls();
    caller.variables = vec![variable("region", Some("north"))];
    let report = start(ports(&world(&[]), &needy), caller).await.unwrap();
    assert_eq!(report.outcome, Outcome::Completed { output: "north".into() });
    // One in between that does not declare it hands nothing on.
    let mut caller = to("between");
    caller.variables = vec![variable("region", Some("north"))];
    let world = world(&[]);
    let error = start(ports(&world, &needy), caller).await.unwrap_err().to_string();
    assert!(error.contains("of agent `needy`"), "{error}");
}

/// How many programs run at this moment, and how many did at most.
#[derive(Default)]
struct Crowd {
    now: AtomicUsize,
    most: AtomicUsize,
}

#[async_trait]
impl Scripts for Crowd {
    async fn run(&self, _: ScriptCall) -> CallReport {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        self.now.fetch_sub(1, Ordering::SeqCst);
        CallReport { result: Ok("{}".into()), account: Default::default(), notices: Vec::new() }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_is_worked_on_by_so_many_at_a_time_in_all_runs() {
    let agent =
        Arc::new(graph(&["work", "done"], |ids| vec![script(ids, "work", "w", &[], &["done"]), end(ids, "done", "x")]));
    let caller = Arc::new(graph(&["a", "done"], |ids| {
        vec![node(ids, "a", call("inner", "x"), &[], &["done"]), end(ids, "done", "x")]
    }));
    let crowd = Arc::new(Crowd::default());
    let at_once = Some(Arc::new(tokio::sync::Semaphore::new(2)));
    let world = Arc::new(World::default());
    let callee = Callee {
        graph: agent,
        scripts: crowd.clone(),
        tools: world.clone(),
        plugin_nodes: Arc::new(Nobody),
        knowledge: Arc::new(Nobody),
        hooks: Arc::new(Nobody),
        web: Arc::new(Nobody),
        agents: None,
        at_once,
    };
    let agents = Arc::new(Table(Mutex::new([("inner", callee)].into())));
    let engine = Engine::new(Ports { agents, ..world.ports() }, Arc::new(MemoryStore::default()));
    let mut runs = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (engine, caller) = (engine.clone(), caller.clone());
        runs.spawn(async move { engine.start(request(&caller), CancellationToken::new()).await });
    }
    while let Some(report) = runs.join_next().await {
        assert_eq!(report.unwrap().unwrap().outcome, Outcome::Completed { output: "x".into() });
    }
    assert_eq!(crowd.most.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_graph_that_is_called_twice_hides_no_agent_that_lacks_a_variable() {
    let mut needs = graph(&["done"], |ids| vec![end(ids, "done", "{{TOKEN}}")]);
    needs.variables = vec![Variable { name: "TOKEN".into(), description: "".into(), default: None }];
    let part = |graph: &Arc<Graph>| {
        let target = CallTarget::Graph {
            graph: graph.clone(),
            inputs: vec![],
            conversation: None,
            inherits: false,
            gives: Gives::Outputs,
        };
        Action::Call(Box::new(CallAction { target, contract: None, failure_prefix: None, bind: "output" }))
    };
    let plain = Arc::new(graph(&["done"], |ids| vec![end(ids, "done", "plain")]));
    let asking = Arc::new(graph(&["hand", "done"], |ids| {
        vec![node(ids, "hand", call("needs", "x"), &[], &["done"]), end(ids, "done", "{{output}}")]
    }));
    // Whatever the order in which they are looked at.
    for order in [[&asking, &plain, &plain], [&plain, &plain, &asking], [&plain, &asking, &plain]] {
        let outer = graph(&["a", "b", "c", "done"], |ids| {
            vec![
                node(ids, "a", part(order[0]), &[], &["b"]),
                node(ids, "b", part(order[1]), &[], &["c"]),
                node(ids, "c", part(order[2]), &[], &["done"]),
                end(ids, "done", "done"),
            ]
        });
        let started = start(ports(&world(&[]), &[("needs", Arc::new(needs.clone()))]), outer).await;
        assert!(matches!(started, Err(RunError::AgentVariables { .. })), "{started:?}");
    }
}
