//! Graphs that a node of another graph runs: their place in the journal, their questions, what they share.

use std::sync::Arc;

use crate::common::World;
use crate::common::journal::{before_the_end, journal_with, request};
use hotcell_engine::{Engine, Outcome, RunReport};
use hotcell_graph::conversation::{Speaker, message};
use hotcell_graph::ir::{
    Action, Arguments, AskAction, CallAction, CallTarget, Collect, Expression, Graph, GraphItems, Iterate, MapBody,
    Next, Node, NodeIds, Reduction, Results, Slot, Tool, ToolAction, ToolKind, Update,
};
use hotcell_graph::types::Type;
use hotcell_graph::value::parse_json;
use hotcell_graph::{Reducer, Value};
use hotcell_journal::{ClientCall, Fact, MemoryStore};
use tokio_util::sync::CancellationToken;

fn value(json: &str) -> Value {
    parse_json(json).unwrap()
}

fn key(name: &str) -> Expression {
    Expression::Key(name.into())
}

fn update(name: &str, value: Expression) -> Update {
    Update { key: name.into(), value }
}

/// A message of a model.
fn says(text: &str) -> Expression {
    Expression::Value(Value::Object(message(Speaker::Ai, text)))
}

fn node(id: &str, action: Action, next: Next) -> Node {
    Node { next, ..crate::common::node(&NodeIds::default(), id, action, &[], &[]) }
}

fn integer() -> Arc<Type> {
    Arc::new(Type::of_schema(&value(r#"{"type": "integer"}"#)).unwrap())
}

fn finished(nodes: Vec<Node>, start: &str) -> Graph {
    let mut graph = Graph::new("part", nodes, start).unwrap();
    graph.conversation = Some("talk".into());
    graph.reducers.insert("talk".into(), Reducer::Converse);
    graph.results = Some(Results { outputs: "outputs".into(), branch: "branch".into() });
    graph
}

/// Says something, asks the person, and gives back the answer with the item.
fn asking() -> Arc<Graph> {
    let ids = NodeIds::new(["greet", "ask", "end"]);
    let to = |id: &str| Next::To(vec![ids.get(id).unwrap()]);
    let ask = AskAction::new(Expression::Joined(vec![Expression::Value("what about ".into()), key("item")]), "answer");
    let outputs = Expression::Object(vec![("said".into(), key("heard")), ("number".into(), key("item"))]);
    Arc::new(finished(
        vec![
            Node { updates: vec![update("talk", says("hello"))], ..node("greet", Action::Pass, to("ask")) },
            Node { updates: vec![update("heard", key("answer"))], ..node("ask", Action::Ask(ask), to("end")) },
            Node {
                updates: vec![update("outputs", outputs), update("branch", Expression::Value("done".into()))],
                ..node("end", Action::End { output: key("outputs") }, Next::To(Vec::new()))
            },
        ],
        "greet",
    ))
}

/// Calls the part once, then once for each of two items, and says what came of it.
fn outer() -> Arc<Graph> {
    let ids = NodeIds::new(["once", "each", "end", "lost"]);
    let at = |id: &str| ids.get(id).unwrap();
    let target = CallTarget::Graph {
        graph: asking(),
        inputs: vec![("item".into(), Expression::Value(Value::from(7)))],
        conversation: Some("talk".into()),
        inherits: false,
        gives: hotcell_graph::ir::Gives::Outputs,
    };
    let once = CallAction { target, contract: None, failure_prefix: None, bind: "answer" };
    let each = GraphItems {
        graph: asking(),
        inputs: vec![Iterate {
            key: "item".into(),
            value: Expression::Value(value("[1, 2]")),
            ty: integer(),
            name: "items".into(),
            rounds: None,
        }],
        collect: vec![
            Collect { output: "said".into(), into: "all".into(), how: Reduction::Append, default: None },
            Collect { output: "number".into(), into: "sum".into(), how: Reduction::Sum, default: None },
        ],
        conversation: Some("talk".into()),
        bind: "answer",
    };
    let entry = |name: &str| Expression::Entry(Box::new(key("answer")), name.into());
    let routes = vec![("done".to_owned(), at("each")), ("other".to_owned(), at("lost"))];
    let end = Expression::Object(vec![
        ("first".into(), key("first")),
        ("all".into(), key("all")),
        ("sum".into(), key("sum")),
    ]);
    let mut graph = finished(
        vec![
            Node {
                updates: vec![update("first", entry("said"))],
                ..node("once", Action::Call(Box::new(once)), Next::ByAnswer { routes, otherwise: at("lost") })
            },
            Node {
                updates: vec![update("all", entry("all")), update("sum", entry("sum"))],
                ..node("each", Action::Map(each.at_a_time(Some(1))), Next::To(vec![at("end")]))
            },
            node("end", Action::End { output: end }, Next::To(Vec::new())),
            node("lost", Action::Fail("the branch was lost".into()), Next::To(Vec::new())),
        ],
        "once",
    );
    graph.initial_state.push(("talk".into(), value("[]")));
    Arc::new(graph)
}

const RESULT: &str = r#"{"first":"seven","all":["one","two"],"sum":3}"#;

fn world(answers: &[&str]) -> Arc<World> {
    let world = World::default();
    *world.answers.lock().unwrap() = answers.iter().map(|answer| (*answer).to_owned()).collect();
    Arc::new(world)
}

fn talk(report: &RunReport) -> Vec<String> {
    let messages = report.state.get("talk").and_then(Value::as_list).cloned().unwrap_or_default();
    messages
        .iter()
        .map(|message| message.as_object().unwrap().get("content").unwrap().to_display().into_owned())
        .collect()
}

#[tokio::test]
async fn parts_share_the_conversation_and_give_outputs_and_a_branch() {
    let world = world(&["seven", "one", "two"]);
    let engine = Engine::new(world.ports(), Arc::new(MemoryStore::default()));
    let report = engine.start(request(&outer()), CancellationToken::new()).await.unwrap();
    assert_eq!(report.outcome, Outcome::Completed { output: RESULT.into() });
    assert_eq!(talk(&report), ["hello", "hello", "hello"]);
}

#[tokio::test]
async fn a_part_that_waits_shows_what_it_said_and_asks_in_the_name_of_its_node() {
    let journal = Arc::new(MemoryStore::default());
    let engine = Engine::new(world(&[]).ports(), journal.clone());
    let report = engine.start(request(&outer()), CancellationToken::new()).await.unwrap();
    let Outcome::Waiting { questions } = &report.outcome else { panic!("{:?}", report.outcome) };
    assert_eq!(questions.len(), 1);
    assert_eq!((questions[0].node.as_str(), questions[0].text.as_str()), ("once", "what about 7"));
    assert_eq!(talk(&report), ["hello"]);
}

#[tokio::test]
async fn a_run_goes_on_from_every_entry_of_its_journal() {
    let whole = Arc::new(MemoryStore::default());
    let engine = Engine::new(world(&["seven", "one", "two"]).ports(), whole.clone());
    let run = engine.start(request(&outer()), CancellationToken::new()).await.unwrap().run;
    let entries = before_the_end(&*whole, &run).await;
    for kept in 1..=entries.len() {
        let answered = entries[..kept].iter().filter(|entry| matches!(entry.fact, Fact::Answered { .. })).count();
        let left: Vec<&str> = ["seven", "one", "two"].into_iter().skip(answered).collect();
        let world = world(&left);
        let (journal, run) = journal_with(&entries[..kept]).await;
        let engine = Engine::new(world.ports(), journal);
        let report = engine.resume(&run, outer(), CancellationToken::new()).await.unwrap();
        assert_eq!(report.outcome, Outcome::Completed { output: RESULT.into() }, "after {kept} entries");
        assert_eq!(talk(&report), ["hello", "hello", "hello"], "after {kept} entries");
        assert!(world.answers.lock().unwrap().is_empty(), "a question was put twice after {kept} entries");
    }
}

#[tokio::test]
async fn lists_of_different_lengths_name_the_inputs() {
    let mut graph = Graph::clone(&outer());
    let each = graph.find("each").unwrap();
    let Action::Map(action) = &graph.node(each).action else { panic!("a node that iterates") };
    let MapBody::Graph(mut items) = action.body.clone() else { panic!("over a graph") };
    let longer = Iterate {
        key: "more".into(),
        value: Expression::Value(value("[1, 2, 3]")),
        name: "more".into(),
        ..items.inputs[0].clone()
    };
    items.inputs.push(longer);
    graph = finished(vec![node("each", Action::Map(items.at_a_time(None)), Next::To(Vec::new()))], "each");
    let engine = Engine::new(world(&[]).ports(), Arc::new(MemoryStore::default()));
    let report = engine.start(request(&Arc::new(graph)), CancellationToken::new()).await.unwrap();
    let Outcome::Failed { error, .. } = report.outcome else { panic!("{:?}", report.outcome) };
    assert_eq!(
        error,
        "node `each` failed: the lists have to be equally long: input `items` has 2 items and input `more` has 3"
    );
}

#[tokio::test]
async fn an_input_that_there_is_not_is_refused_with_those_that_there_are() {
    let graph = |inputs: &[&str]| {
        let mut graph = Graph::clone(&outer());
        graph.open_state = inputs.iter().map(|input| (*input).into()).chain(["talk".into()]).collect();
        Arc::new(graph)
    };
    for (inputs, problem) in [
        (&["days", "city"][..], "there is no input `dayz`; did you mean `days`?"),
        (&["city", "name"], "there is no input `dayz`; its inputs are `city`, `name`"),
        (&[], "there is no input `dayz`; it takes no inputs"),
    ] {
        let mut request = request(&graph(inputs));
        request.given.state.insert("dayz", 3.into());
        let engine = Engine::new(world(&[]).ports(), Arc::new(MemoryStore::default()));
        let error = engine.start(request, CancellationToken::new()).await.unwrap_err();
        assert_eq!(error.to_string(), problem);
    }
}

/// Has the client measure, and gives back what it says as an integer.
fn measuring() -> Arc<Graph> {
    let slot =
        Slot { name: "room".into(), schema: value(r#"{"type": "string"}"#), ty: Arc::new(Type::text()), default: None };
    let tool = Tool {
        name: "measure".into(),
        spoken: "measure".into(),
        description: String::new(),
        inputs: vec![slot],
        kind: ToolKind::Client,
        confirm: false,
    };
    let inputs = Expression::Object(vec![("room".into(), Expression::Value("kitchen".into()))]);
    let action = Action::Tool(Box::new(ToolAction {
        tool: Arc::new(tool),
        inputs,
        arguments: Arguments::AsTheyAre,
        bind: "answer",
    }));
    let ids = NodeIds::new(["ask", "end"]);
    let outputs = Expression::Object(vec![("is".into(), key("is"))]);
    Arc::new(finished(
        vec![
            Node {
                updates: vec![update("is", key("answer"))],
                ..node("ask", action, Next::To(vec![ids.get("end").unwrap()]))
            },
            node("end", Action::End { output: outputs }, Next::To(Vec::new())),
        ],
        "ask",
    ))
}

#[tokio::test]
async fn a_client_is_asked_for_a_call_and_hands_in_its_result() {
    for (answer, expected) in [
        (ClientCall::answer(Ok(value("[21.5]"))), Ok(r#"{"is":[21.5]}"#)),
        ("21.5".to_owned(), Ok(r#"{"is":21.5}"#)),
        ("warm".to_owned(), Ok(r#"{"is":"warm"}"#)),
        (r#"{"result": {"error": "is a value"}}"#.to_owned(), Ok(r#"{"is":{"error":"is a value"}}"#)),
        (ClientCall::answer(Err("no sensor".into())), Err("node `ask` failed: tool `measure`: no sensor")),
    ] {
        let journal = Arc::new(MemoryStore::default());
        let waiting = Engine::new(world(&[]).ports(), journal.clone());
        let report = waiting.start(request(&measuring()), CancellationToken::new()).await.unwrap();
        let Outcome::Waiting { questions } = &report.outcome else { panic!("{:?}", report.outcome) };
        let call = questions[0].call.as_ref().unwrap();
        assert_eq!((call.tool.as_str(), call.arguments.to_json().as_str()), ("measure", r#"{"room":"kitchen"}"#));

        let engine = Engine::new(world(&[&answer]).ports(), journal);
        let report = engine.resume(&report.run, measuring(), CancellationToken::new()).await.unwrap();
        match (report.outcome, expected) {
            (Outcome::Completed { output }, Ok(expected)) => assert_eq!(output, expected),
            (Outcome::Failed { error, .. }, Err(expected)) => assert_eq!(error, expected),
            (outcome, _) => panic!("{answer}: {outcome:?}"),
        }
    }
}
