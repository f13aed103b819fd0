//! Calls that a model makes of what a graph defines: tools of the client, and the one by which it hands in.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use hotcell_budget::Account;
use hotcell_engine::{CallReport, Engine, Outcome, Ports, RunReport, ToolCall, Tools};
use hotcell_graph::ir::{Action, AnswerCallsAction, CallLimits, Callable, Graph, Slot, Submit, Tool, ToolKind};
use hotcell_graph::types::Type;
use hotcell_graph::value::parse_json;
use hotcell_graph::{Key, Reducer, Value};
use hotcell_journal::{Entry, Fact, MemoryStore, RunStore};
use hotcell_models::ToolSpec;
use serde_json::{Value as Json, json};
use tokio_util::sync::CancellationToken;

use crate::common::journal::{answer, entries, open, request};
use crate::common::{World, end, graph, node};

fn slot(name: &str, schema: &Json) -> Slot {
    let schema = parse_json(&schema.to_string()).unwrap();
    let ty = Arc::new(Type::of_schema(&schema).unwrap());
    Slot { name: name.into(), schema, ty, default: None }
}

fn client(name: &str) -> Callable {
    client_asking(name, false)
}

/// The same; a person may have to allow it.
fn client_asking(name: &str, confirm: bool) -> Callable {
    Callable::Defined(Arc::new(Tool {
        name: name.into(),
        spoken: name.to_owned(),
        description: String::new(),
        inputs: vec![slot("room", &json!({ "type": "string" }))],
        kind: ToolKind::Client,
        confirm,
    }))
}

/// A graph that answers these calls of a model.
fn answering(calls: &[(&str, &str)]) -> Arc<Graph> {
    answering_with(None, calls, Vec::new())
}

/// The same with more tools, which keeps under `kept` what is handed in before all of it is there.
fn answering_with(kept: Option<&str>, calls: &[(&str, &str)], more: Vec<Callable>) -> Arc<Graph> {
    let outputs = vec![slot("celsius", &json!({ "type": "integer" })), slot("rooms", &json!({ "type": "array" }))];
    let mut tools = vec![
        client("measure"),
        client("look"),
        Callable::Submit(Arc::new(Submit {
            name: "hand_in".to_owned(),
            description: None,
            outputs,
            key: "filled".into(),
            kept: kept.map(Key::from),
        })),
    ];
    tools.extend(more);
    let conversation = Key::from("talk");
    let action = AnswerCallsAction {
        conversation: conversation.clone(),
        tools,
        tool_failure_is_fatal: false,
        limits: CallLimits::default(),
        counted: None,
    };
    let mut graph = graph(&["answer", "done"], |ids| {
        vec![node(ids, "answer", Action::AnswerCalls(action.clone()), &[], &["done"]), end(ids, "done", "done")]
    });
    let call = |(place, (name, arguments)): (usize, &(&str, &str))| json!({ "id": format!("call {place}"), "name": name, "arguments": arguments });
    let calls: Vec<Json> = calls.iter().enumerate().map(call).collect();
    let said = json!([{ "type": "ai", "content": "", "tool_calls": calls }]);
    graph.reducers.insert(conversation.clone(), Reducer::Converse);
    graph.initial_state.push((conversation.clone(), parse_json(&said.to_string()).unwrap()));
    graph.conversation = Some(conversation);
    Arc::new(graph)
}

fn engine(world: &Arc<World>, journal: &Arc<MemoryStore>) -> Engine {
    Engine::new(world.ports(), journal.clone())
}

async fn start(engine: &Engine, graph: &Arc<Graph>) -> RunReport {
    engine.start(request(graph), CancellationToken::new()).await.unwrap()
}

/// What the tools said, in order.
fn told(report: &RunReport) -> Vec<String> {
    let messages = report.state.get("talk").and_then(Value::as_list).cloned().unwrap_or_default();
    let entry = |message: &Value, key: &str| message.as_object().unwrap().get(key).cloned().unwrap_or_default();
    let of_tools = messages.iter().filter(|message| entry(message, "type") == "tool".into());
    of_tools.map(|message| entry(message, "content").to_display().into_owned()).collect()
}

#[tokio::test]
async fn a_client_is_asked_for_all_calls_of_a_reply_at_once() {
    let journal = Arc::new(MemoryStore::default());
    let graph = answering(&[
        ("measure", r#"{"room": "kitchen"}"#),
        ("hand_in", r#"{"celsius": 20, "rooms": []}"#),
        ("look", r#"{"room": "hall"}"#),
    ]);
    let report = start(&engine(&Arc::default(), &journal), &graph).await;
    let Outcome::Waiting { questions } = &report.outcome else { panic!("{:?}", report.outcome) };
    let tools: Vec<&str> = questions.iter().map(|question| &*question.call.as_ref().unwrap().tool).collect();
    assert_eq!(tools, ["measure", "look"]);

    // The answers come one after the other, the second one first; each belongs to its own call.
    let asked = entries(&*journal, &report.run).await;
    let asked: Vec<_> = asked.iter().filter(|entry| matches!(entry.fact, Fact::Asked { .. })).collect();
    assert_eq!(asked.len(), 2, "a question that was put is not put again");
    for (place, answer, open) in [(1, "dark", 1), (0, "21.5", 0)] {
        let Fact::Asked { number, .. } = &asked[place].fact else { panic!("a question") };
        let fact = Fact::Answered { number: *number, text: answer.to_owned() };
        let entry = Entry { place: asked[place].place.clone(), fact };
        journal.send(&report.run, entry).await.unwrap();
        let engine = engine(&Arc::default(), &journal);
        let report = engine.resume(&report.run, graph.clone(), CancellationToken::new()).await.unwrap();
        match &report.outcome {
            Outcome::Waiting { questions } => assert_eq!((questions.len(), open), (1, 1)),
            outcome => {
                assert_eq!((outcome, open), (&Outcome::Completed { output: "done".into() }, 0));
                assert_eq!(told(&report), ["21.5", "taken", "dark"]);
            }
        }
    }
    let facts = entries(&*journal, &report.run).await;
    assert_eq!(facts.iter().filter(|entry| matches!(entry.fact, Fact::Asked { .. })).count(), 2);
}

#[tokio::test]
async fn a_person_who_is_there_answers_the_calls_in_their_order() {
    let world = World::default();
    *world.answers.lock().unwrap() = vec!["first".to_owned(), "second".to_owned()];
    let graph = answering(&[("look", r#"{"room": "a"}"#), ("measure", "{}"), ("measure", r#"{"room": "b"}"#)]);
    let report = start(&engine(&Arc::new(world), &Arc::default()), &graph).await;
    assert_eq!(told(&report), ["first", "error: the argument `room` is missing", "second"]);
}

#[tokio::test]
async fn what_is_handed_in_wrong_is_told_in_full_and_not_taken() {
    let or = "; ask the user, or hand in all results again";
    for (arguments, expected) in [
        (
            r#"{"celsius": "warm", "mood": 1}"#,
            "result `celsius`: `\"warm\"` is not an integer; the result `rooms` is missing; nobody asked for the \
             result `mood`; what is asked for is `celsius`, `rooms`",
        ),
        (
            r#"{"celsius": 20, "rooms": [], "mood": 1}"#,
            "nobody asked for the result `mood`; what is asked for is `celsius`, `rooms`",
        ),
        ("{", "the arguments of `hand_in` cannot be used: they are not JSON"),
        ("[]", "the arguments of `hand_in` cannot be used: they have to be an object, not a list"),
    ] {
        let report = start(&engine(&Arc::default(), &Arc::default()), &answering(&[("hand_in", arguments)])).await;
        let told = &told(&report)[0];
        assert!(told.starts_with(&format!("error: {expected}")) && told.ends_with(or), "{told}");
        assert_eq!(report.state.get("filled"), None);
    }
    let taken = answering(&[("hand_in", r#"{"celsius": 20.7, "rooms": ["a"]}"#)]);
    let report = start(&engine(&Arc::default(), &Arc::default()), &taken).await;
    assert_eq!(told(&report), ["taken"]);
    assert_eq!(report.state.get("filled").unwrap().to_json(), r#"{"celsius":20,"rooms":["a"]}"#);
}

#[tokio::test]
async fn what_is_handed_in_is_kept_until_the_rest_is_there() {
    let graph = answering_with(
        Some("partly"),
        &[("hand_in", r#"{"celsius": 20.7}"#), ("hand_in", r#"{"rooms": 1}"#), ("hand_in", r#"{"rooms": ["a"]}"#)],
        Vec::new(),
    );
    let report = start(&engine(&Arc::default(), &Arc::default()), &graph).await;
    let told = told(&report);
    let or = "; ask the user, or hand in what is missing or wrong";
    assert_eq!(told[0], format!("error: the result `rooms` is missing{or}"));
    assert!(told[1].starts_with("error: result `rooms`: ") && told[1].ends_with(or), "{}", told[1]);
    assert_eq!(told[2], "taken");
    assert_eq!(report.state.get("filled").unwrap().to_json(), r#"{"celsius":20,"rooms":["a"]}"#);
}

/// Tools that say their own names, and take note of who called.
#[derive(Default)]
struct Named(Mutex<Vec<String>>);

#[async_trait]
impl Tools for Named {
    fn describe(&self, name: &str) -> Option<ToolSpec> {
        Some(ToolSpec { name: name.into(), description: String::new(), parameters: json!({ "type": "object" }) })
    }

    async fn call(&self, call: ToolCall<'_>) -> CallReport {
        self.0.lock().unwrap().push(call.name.to_owned());
        let result = Ok(json!(call.name).to_string());
        CallReport { result, account: Account::default(), notices: Vec::new() }
    }
}

#[tokio::test]
async fn each_call_is_made_once_and_has_its_own_result_whichever_is_allowed_first() {
    let described = |name: &str, confirm| Callable::Described {
        tool: name.to_owned(),
        name: name.to_owned(),
        description: None,
        parameters: None,
        confirm,
    };
    let room = r#"{"room": "hall"}"#;
    let calls = [("plain", "{}"), ("pay", "{}"), ("buy", "{}"), ("lock", room), ("look", room)];
    let more =
        vec![described("plain", false), described("pay", true), described("buy", true), client_asking("lock", true)];
    let graph = answering_with(None, &calls, more);
    let (journal, tools) = (Arc::new(MemoryStore::default()), Arc::new(Named::default()));
    let engine = || {
        let ports = Ports { tools: tools.clone(), ..Arc::new(World::default()).ports() };
        Engine::new(ports, journal.clone())
    };
    let mut report = start(&engine(), &graph).await;
    // The last question is answered first, as long as there are some.
    while let Outcome::Waiting { .. } = report.outcome {
        let open = open(&*journal, &report.run).await;
        let last = open.last().expect("it waits for something");
        let text = match &last.question.call {
            Some(call) => format!("the client did {}", call.tool),
            None => "approved".to_owned(),
        };
        answer(&*journal, &report.run, last, &text).await;
        report = engine().resume(&report.run, graph.clone(), CancellationToken::new()).await.expect("it goes on");
    }
    assert_eq!(report.outcome, Outcome::Completed { output: "done".into() });
    assert_eq!(told(&report), ["plain", "pay", "buy", "the client did lock", "the client did look"]);
    assert_eq!(*tools.0.lock().unwrap(), ["plain", "pay", "buy"]);
}
