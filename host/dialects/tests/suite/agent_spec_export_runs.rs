//! What is exported does what the graph did: both are run with the same replies, answers and tools.

use std::cell::RefCell;
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use hotcell_dialects::agent_spec;
use hotcell_engine::{CallReport, Engine, Outcome, People, RunInput, RunRequest, ToolCall, Tools};
use hotcell_graph::diagnostic::{SourceFile, render};
use hotcell_graph::ir::Graph;
use hotcell_graph::{Object, Value};
use hotcell_journal::{MemoryStore, Question};
use hotcell_models::{Reply, Request, Scripted, ToolCallRequest, ToolSpec};
use serde_json::{Value as Json, json};
use tokio_util::sync::CancellationToken;

use crate::configurations::World;
use crate::exporting::{cases, described, graph_of, shared_graphs};
use crate::playing::ports;

/// A person and tools that answer as they are told to, and keep what they were asked.
#[derive(Default)]
struct Stage {
    answers: Mutex<VecDeque<String>>,
    questions: Mutex<Vec<String>>,
    calls: Mutex<Vec<Json>>,
}

#[async_trait]
impl People for Stage {
    async fn ask(&self, question: &Question) -> Option<String> {
        self.questions.lock().unwrap().push(question.text.clone());
        self.answers.lock().unwrap().pop_front()
    }
}

#[async_trait]
impl Tools for Stage {
    fn describe(&self, name: &str) -> Option<ToolSpec> {
        // Where the agent runs, the tool is known by the name that the model calls it.
        let known = if name == "search_books" { "search" } else { name };
        let tool = described(known)?;
        Some(ToolSpec { name: tool.name, description: tool.description, parameters: tool.parameters })
    }

    async fn call(&self, call: ToolCall<'_>) -> CallReport {
        let mut arguments: Json = serde_json::from_str(call.arguments).unwrap();
        // Who leaves it out means the default, whether that is put in before or here.
        arguments.as_object_mut().unwrap().entry("most").or_insert(json!(5));
        self.calls.lock().unwrap().push(arguments);
        CallReport { result: Ok(json!({"found": ["a", "b"]}).to_string()), ..CallReport::failed("") }
    }
}

/// What can be seen of a run from outside.
#[derive(Debug, PartialEq)]
struct Seen {
    outcome: String,
    requests: Vec<Json>,
    questions: Vec<String>,
    calls: Vec<Json>,
}

fn object(json: &Json) -> Object {
    Value::from(json).as_object().cloned().unwrap_or_default()
}

/// Runs a graph on a stage of its own.
async fn run(graph: Graph, played: &Json, text: Option<&str>, state: Object) -> Seen {
    let texts = |key: &str| -> Vec<String> {
        played[key].as_array().into_iter().flatten().map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let stage = Arc::new(Stage { answers: Mutex::new(texts("answers").into()), ..Stage::default() });
    let model = Arc::new(Scripted::new(played["replies"].as_array().into_iter().flatten().map(reply).map(Ok)));
    let ports = ports(&stage, model.clone());
    let given = RunInput { input: text.map(str::to_owned), state, ..RunInput::default() };
    let request = RunRequest {
        graph: Arc::new(graph),
        source: "test".into(),
        digest: "test".into(),
        kept: false,
        given,
        follows: None,
    };
    let engine = Engine::new(ports, Arc::new(MemoryStore::default()));
    let report = engine.start(request, CancellationToken::new()).await.unwrap();
    let outcome = match report.outcome {
        Outcome::Completed { output } => output,
        // In which words a node says that it failed is its own matter.
        Outcome::Failed { .. } => "failed".to_owned(),
        other => format!("{other:?}"),
    };
    assert_eq!(model.unserved(), 0, "{outcome}");
    let (questions, calls) = (stage.questions.lock().unwrap().clone(), stage.calls.lock().unwrap().clone());
    let asked = model.requests();
    let seen = |request: &Request| json!([request.messages, request.tools.iter().map(told).collect::<Vec<_>>()]);
    Seen { outcome, requests: asked.iter().map(seen).collect(), questions, calls }
}

/// A reply: a text, or the arguments of a call of the tool.
fn reply(reply: &Json) -> Reply {
    match reply.as_str() {
        Some(text) => Reply::text(text),
        None => Reply::calls(vec![ToolCallRequest {
            id: "1".to_owned(),
            name: "search_books".to_owned(),
            arguments: reply.to_string(),
        }]),
    }
}

/// What a model is told about a tool, without what means nothing: titles, and whether other arguments are refused.
fn told(tool: &ToolSpec) -> Json {
    let mut parameters = tool.parameters.clone();
    parameters.as_object_mut().unwrap().remove("additionalProperties");
    for property in parameters["properties"].as_object_mut().unwrap().values_mut() {
        property.as_object_mut().unwrap().remove("title");
    }
    json!([tool.name, tool.description, parameters])
}

/// `agent_spec/export/*.runs.json` are lists of runs: what they are given (`text`, `state`), what models reply and people
/// answer, and the result.
#[tokio::test]
async fn what_is_exported_does_what_the_graph_did() {
    let (folder, stems) = cases();
    let mut count = 0;
    for stem in stems {
        let Ok(runs) = std::fs::read_to_string(folder.join(format!("{stem}.runs.json"))) else { continue };
        let runs: Vec<Json> = serde_json::from_str(&runs).unwrap();
        for played in &runs {
            compare(&stem, &graph_of(&folder, &stem), played).await;
            count += 1;
        }
    }
    assert!(count > 10, "only {count} runs are there");
    for (name, graph, case) in shared_graphs() {
        if let Some(played) = as_run(&case).filter(|_| agent_spec::export(&graph, &described).is_ok()) {
            compare(&name, &graph, &played).await;
        }
    }
}

/// A shared case as a run, if its models only say something and its people say it without white space around it.
fn as_run(case: &Json) -> Option<Json> {
    let all = |key: &str| case[key].as_array().cloned().unwrap_or_default();
    let replies: Option<Vec<Json>> = all("model").iter().map(|reply| reply.get("content").cloned()).collect();
    let is_plain = |answer: &Json| answer.as_str().is_some_and(|answer| answer == answer.trim());
    let fits = case["expect"]["status"] == "completed" && all("answers").iter().all(is_plain);
    let result = &case["expect"]["output"];
    let replies = replies.filter(|_| fits)?;
    Some(json!({"text": case["input"], "replies": replies, "answers": all("answers"), "result": result}))
}

/// Runs a graph and what it becomes.
async fn compare(name: &str, graph: &Graph, played: &Json) {
    let exported = agent_spec::export(graph, &described).unwrap();
    let here = run(graph.clone(), played, played["text"].as_str(), object(&played["state"])).await;
    let mut there = exported_run(&exported.text, played).await;
    // A flow gives its result by name.
    let outputs = serde_json::from_str::<Json>(&there.outcome).ok();
    if let Some(result) = outputs.as_ref().and_then(|outputs| outputs.get("result")) {
        there.outcome = Value::from(result).to_display().into_owned();
    }
    if let Some(result) = played["result"].as_str() {
        assert_eq!(here.outcome, result, "{name}: {played}");
    }
    assert_eq!(here, there, "{name}: {played}");
}

/// Runs what a graph became. A flow takes the text among its inputs.
async fn exported_run(configuration: &str, played: &Json) -> Seen {
    let world = World { tools: None, plugins: BTreeSet::new(), servers: RefCell::default() };
    let file = Arc::new(SourceFile { name: "exported.json".to_owned(), text: configuration.to_owned() });
    let loaded = agent_spec::load(&file, &[], &world);
    let graph = loaded.graph.unwrap_or_else(|| panic!("{}", render(&loaded.diagnostics, false)));
    let document: Json = serde_json::from_str(configuration).unwrap();
    let mut state = object(&played["state"]);
    let text = played["text"].as_str();
    let takes_it = |title: &&str| document["inputs"].as_array().unwrap().iter().any(|input| input["title"] == **title);
    if let (Some(title), Some(text)) = (["message", "initial_prompt"].iter().find(|title| takes_it(title)), text) {
        state.insert(*title, text.into());
    }
    let text = text.filter(|_| document["component_type"] == "Agent");
    run(graph, played, text, state).await
}
