//! What a model keeps while it works: a to-do list that it is told to go on with, and work that it gives to other agents. Whatever a
//! process dies in, it goes on with the same list, and no work is done twice.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use hotcell_engine::{Agents, Callee, Engine, Outcome, PortError, Ports};
use hotcell_graph::TodoTool;
use hotcell_graph::conversation::Speaker;
use hotcell_graph::ir::{
    Action, AgentLoop, CallAction, CallTarget, Callable, Continuation, DelegateTool, Expression, Graph, PromptPart,
    Team,
};
use hotcell_journal::{Entry, Fact, MemoryStore};
use hotcell_models::{Model, ModelError, OnText, Reply, Request, Role, ToolCallRequest};
use tokio_util::sync::CancellationToken;

use crate::common::journal::{before_the_end, journal_with, request};
use crate::common::{World, end, graph, node};

/// A model that plans, has others work, stops halfway and is told to go on, and the agents that it has.
#[derive(Default)]
struct Office {
    requests: Mutex<usize>,
    world: Arc<World>,
}

impl Office {
    fn ports(self: &Arc<Self>) -> Ports {
        Ports {
            model: self.clone(),
            agents: self.clone(),
            default_model: Some("test:model".parse().expect("a name")),
            ..self.world.ports()
        }
    }
}

#[async_trait]
impl Model for Office {
    async fn complete(&self, request: Request, _: Option<OnText<'_>>) -> Result<Reply, ModelError> {
        *self.requests.lock().expect("whole") += 1;
        let last = &request.messages[request.messages.len() - 1];
        let heard: Vec<&str> =
            request.messages.iter().filter(|one| one.role == Role::Tool).map(|one| one.content.as_str()).collect();
        let calls = |all: &[(&str, &str)]| {
            let call = |(place, (name, arguments)): (usize, &(&str, &str))| ToolCallRequest {
                id: format!("{}.{place}", heard.len()),
                name: (*name).into(),
                arguments: (*arguments).into(),
            };
            Reply { tool_calls: all.iter().enumerate().map(call).collect(), ..Reply::text("") }
        };
        Ok(match (heard.len(), last.role) {
            (0, _) => calls(&[
                ("add", r#"{"task":"ask around"}"#),
                ("give", r#"{"agent":"helper","prompt":"help"}"#),
                ("give", r#"{"agent":"nobody","prompt":"help"}"#),
            ]),
            (3, Role::Tool) => Reply::text("A start is made."),
            (3, _) => calls(&[("result", r#"{"id":"helper_1"}"#), ("done", r#"{"id":1}"#)]),
            _ => Reply::text(format!("{} / {}", heard.join(" / "), last.content.len())),
        })
    }
}

impl Agents for Office {
    fn find(&self, _: &str) -> Result<Callee, PortError> {
        Ok(self.world.helper())
    }
}

fn planning() -> Arc<Graph> {
    let todo = |tool, name: &str| Callable::Todo { tool, name: name.into(), list: "(list)".into() };
    let team = Arc::new(Team { agents: vec!["helper".into()], needed: true, work: "(work)".into() });
    let delegate = |tool, name: &str| Callable::Delegate { tool, name: name.into(), team: team.clone() };
    let agent = AgentLoop {
        prompt: vec![PromptPart::text("`prompt`", Speaker::Human, Expression::Value("plan".into()))],
        tools: vec![
            todo(TodoTool::Add, "add"),
            todo(TodoTool::Done, "done"),
            delegate(DelegateTool::Start, "give"),
            delegate(DelegateTool::Result, "result"),
        ],
        continuation: Some(Continuation { list: "(list)".into(), times: 1, words: "Go on.".into() }),
        ..AgentLoop::default()
    };
    let target = CallTarget::Loop(Arc::new(agent.into_graph()));
    let call = CallAction { target, contract: None, failure_prefix: None, bind: "output" };
    Arc::new(graph(&["talk", "end"], |ids| {
        vec![
            node(ids, "talk", Action::Call(Box::new(call.clone())), &[("said", "{{output}}")], &["end"]),
            end(ids, "end", "{{said}}"),
        ]
    }))
}

/// What was done by effects that are in a journal.
fn done(entries: &[Entry]) -> Vec<String> {
    let effect = |entry: &Entry| match &entry.fact {
        Fact::Effect { kind, subject, .. } => Some(format!("{} {kind} {subject}", entry.place)),
        _ => None,
    };
    entries.iter().filter_map(effect).collect()
}

#[tokio::test]
async fn every_prefix_of_planned_work_leads_to_the_same_end() {
    let graph = planning();
    let office = Arc::new(Office::default());
    let journal = Arc::new(MemoryStore::default());
    let engine = Engine::new(office.ports(), journal.clone());
    let report = engine.start(request(&graph), CancellationToken::new()).await.expect("it starts");
    let Outcome::Completed { output } = &report.outcome else { panic!("{:?}", report.outcome) };
    let parts: Vec<&str> = output.split(" / ").collect();
    assert_eq!(parts[0], "task 1 is added");
    assert!(parts[1].contains("`helper_1`") && parts[1].contains("done"), "{output}");
    // Whom the team has not, nobody is asked for.
    assert!(parts[2].starts_with("error") && parts[2].contains("nobody"), "{output}");
    assert_eq!(parts[3..5], ["helped", "task 1 is done, and so are all others"]);
    assert_eq!(*office.requests.lock().expect("whole"), 4);

    let entries = before_the_end(&*journal, &report.run).await;
    assert!(entries.len() > 8, "{}", entries.len());
    for length in 1..=entries.len() {
        let (journal, run) = journal_with(&entries[..length]).await;
        let later = Arc::new(Office::default());
        let engine = Engine::new(later.ports(), journal.clone());
        let resumed = engine.resume(&run, graph.clone(), CancellationToken::new()).await.expect("it goes on");
        assert_eq!(resumed.outcome, report.outcome, "after {length} entries");
        assert_eq!(done(&before_the_end(&*journal, &run).await), done(&entries), "after {length} entries");
    }
}
