//! Scripts, node types, hooks and connectors, called as the host calls them.

use hotcell_plugin::testing::Surroundings;
use hotcell_plugin::{
    Callback, Error, Failure, Json, Outcome, Reply, Request, State, Value, Verdict, connector, hook, json, node,
    plugin, script,
};

plugin! {
    script: greet,
    nodes: [divide, plain],
    hooks: [check, observe],
    connector: hand_over,
}

#[derive(Value)]
struct Person {
    name: String,
    age: Option<u8>,
}

/// Greets.
#[script]
fn greet(state: Person) -> Result<Json, Error> {
    Ok(match state.age {
        _ if state.name.is_empty() => json!("nobody"),
        Some(age) => json!({ "greeting": format!("{}, {age}", state.name) }),
        None => json!({ "greeting": state.name }),
    })
}

#[derive(Value)]
struct Fields {
    by: f64,
}

#[derive(Value)]
struct Quotient {
    quotient: Option<f64>,
}

/// Divides the number at `input.number` of the state.
#[node(branches = ["divided", "impossible"])]
fn divide(fields: &Fields, state: &State) -> Result<Outcome<Quotient>, Error> {
    let number: f64 = state.get("input.numbers.0")?;
    if fields.by == 0.0 {
        return Ok(Outcome::by("impossible", Quotient { quotient: None }));
    }
    if number < 0.0 {
        return Ok(Outcome::by("elsewhere", Quotient { quotient: None }));
    }
    Ok(Outcome::by("divided", Quotient { quotient: Some(number / fields.by) }))
}

/// Gives what it is given.
#[node]
fn plain(inputs: Json) -> Result<Outcome<Json>, Error> {
    Ok(Outcome::new(inputs))
}

#[derive(Value)]
#[value(open)]
struct ToolCall {
    tool: String,
}

/// Refuses one tool.
#[hook("before-tool-call")]
fn check(event: ToolCall) -> Result<Verdict, Error> {
    Ok(if event.tool == "rm" { Verdict::refuse("not that one") } else { Verdict::Proceed })
}

/// Marks.
#[hook("before-node", "after-node")]
fn observe(point: &str, event: Json) -> Result<Verdict, Error> {
    let mut event = event;
    event["seen"] = point.into();
    Ok(Verdict::Change(event))
}

#[derive(Value)]
struct Config {
    queue: String,
}

/// Hands over.
#[connector(modes = ["sync", "callback"], receive = take)]
fn hand_over(request: Request<Json, Config>) -> Result<Reply<String>, Error> {
    Ok(match request.callback {
        Some(_) => Reply::Accepted,
        None => Reply::Done(request.config.queue),
    })
}

fn take(request: Request<Json, Config>, body: Json) -> Result<String, Error> {
    Ok(format!("{} {}", request.config.queue, body["text"]))
}

#[test]
fn a_script_reads_what_it_declares_and_gives_an_object() {
    let run = |state: Json| Surroundings::new().state(state).run(|| PLUGIN.run_script()).result;
    assert_eq!(run(json!({ "name": "Ann", "age": 7, "other": [] })), Ok(json!({ "greeting": "Ann, 7" })));
    assert_eq!(run(json!({ "name": "Ann" })), Ok(json!({ "greeting": "Ann" })));
    let message = |state: Json| run(state).map_err(|error| error.to_string());
    assert_eq!(message(json!({})), Err("invalid-input: state value `name` is missing; it must be a text".to_owned()));
    assert!(message(json!({ "name": "" })).is_err_and(|message| message.contains("not an object")));
}

#[test]
fn a_node_leaves_by_a_branch_that_it_declares() {
    let run = |by: Json, number: f64| {
        let state = json!({ "input": { "numbers": [number] } });
        Surroundings::new().state(state).run(|| PLUGIN.run_node("divide", json!({ "by": by }), json!({}))).result
    };
    assert_eq!(run(json!(4), 2.0), Ok(Outcome::by("divided", json!({ "quotient": 0.5 }))));
    assert_eq!(run(json!(0), 2.0), Ok(Outcome::by("impossible", json!({ "quotient": null }))));
    assert!(run(json!(1), -1.0).is_err_and(|error| {
        error.message().contains("left by the branch `elsewhere`; it declares `divided`, `impossible`")
    }));
    let text = run(json!("x"), 1.0).map_err(|error| error.to_string());
    assert_eq!(text, Err("invalid-input: field `by` must be a number; it is the text `x`".to_owned()));
    assert_eq!(PLUGIN.run_node("plain", json!({}), json!({ "a": 1 })), Ok(Outcome::new(json!({ "a": 1 }))));
    assert!(
        PLUGIN.run_node("plain", json!({}), json!([])).is_err_and(|error| error.message().contains("not an object"))
    );
    assert!(PLUGIN.run_node("other", json!({}), json!({})).is_err_and(|error| error.kind() == "invalid-input"));
}

#[test]
fn a_hook_answers_at_its_points() {
    let refused = PLUGIN.on("before-tool-call", json!({ "node": "a", "tool": "rm" }));
    assert_eq!(refused, Ok(Verdict::Refuse(Failure::new("not that one"))));
    assert_eq!(PLUGIN.on("before-tool-call", json!({ "node": "a", "tool": "ls" })), Ok(Verdict::Proceed));
    assert_eq!(
        PLUGIN.on("after-node", json!({ "node": "a" })),
        Ok(Verdict::Change(json!({ "node": "a", "seen": "after-node" })))
    );
    assert_eq!(PLUGIN.on("after-run", json!({})), Ok(Verdict::Proceed));
}

#[test]
fn a_connector_answers_at_once_or_later() {
    let callback = || Callback { url: "https://h.example".to_owned(), session: "s".to_owned() };
    let request =
        |callback| Request { input: json!({}), config: json!({ "queue": "q" }), callback, metadata: Vec::new() };
    assert_eq!(PLUGIN.send(request(None)), Ok(Reply::Done(json!("q"))));
    assert_eq!(PLUGIN.send(request(Some(callback()))), Ok(Reply::Accepted));
    assert_eq!(PLUGIN.receive(request(Some(callback())), json!({ "text": 1 })), Ok(json!("q 1")));
    let bare = Request { config: json!({}), ..request(None) };
    assert!(PLUGIN.send(bare).is_err_and(|error| error.message() == "setting `queue` is missing; it must be a text"));
}
