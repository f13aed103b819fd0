//! Redacted values reach nothing outside of a run, and the run goes on with them all the same.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use hotcell_budget::Account;
use hotcell_engine::{
    Engine, ForkOrigin, ForkRequest, Outcome, PluginNodeAnswer, PluginNodeCall, PluginNodeReport, PluginNodes,
    PortError, RedactionKey, RedactionKeys, RunInput, RunRequest, kept_answer,
};
use hotcell_graph::ir::{Action, Expression, Graph, PluginNodeAction, PluginNodeKind, Redacted};
use hotcell_graph::value::parse_json;
use hotcell_graph::{Object, Template, Value};
use hotcell_journal::{CALLBACK, CallbackState, Entry, Fact, MemoryStore, RunStore, callback_state};
use tokio_util::sync::CancellationToken;

use crate::common::journal::{answer, before_the_end, entries, journal_with, open, request};
use crate::common::{ScriptBehaviour, World, ask, end, graph, node, script, shown};

const KEY: &str = "sk-\"quoted\"-5f2a";
const TOKEN: &str = "tok-8831";

/// Logs in with a key, asks a person, and uses what the login gave.
fn login() -> Arc<Graph> {
    let mut built = graph(&["login", "sure", "use", "done"], |ids| {
        vec![
            script(ids, "login", "login", &[("note", "logged in with {{api_key}}")], &["sure"]),
            node(ids, "sure", ask("use {{session}}?"), &[("said", "{{answer}}")], &["use"]),
            script(ids, "use", "use", &[], &["done"]),
            end(ids, "done", "{{note}}, {{copy}}, {{said}}"),
        ]
    });
    built.initial_state = vec![("api_key".into(), KEY.into())];
    built.is_open = true;
    built.log_state = true;
    built.redacted.add("session").unwrap();
    built.redacted.add("*_key").unwrap();
    Arc::new(built)
}

fn world(answers: &[&str]) -> Arc<World> {
    let login: ScriptBehaviour = |call| match call.state.get("api_key").as_deref() {
        Some(key) if key == parse_json(&Value::text(KEY).to_json()).unwrap().to_json() => {
            Ok(format!(r#"{{"session": {{"token": "{TOKEN}", "pin": 7}}, "same": {{"token": "{TOKEN}", "pin": 7}}}}"#))
        }
        other => Err(format!("the script sees {other:?}")),
    };
    let uses: ScriptBehaviour = |call| match call.state.get("session") {
        Some(session) if session.contains(TOKEN) => Ok(format!(r#"{{"copy": {session}}}"#)),
        other => Err(format!("the script sees {other:?} of {TOKEN}")),
    };
    Arc::new(World {
        scripts: [("login", login), ("use", uses)].into(),
        answers: Mutex::new(answers.iter().map(|answer| (*answer).to_owned()).collect()),
        ..World::default()
    })
}

struct Keys(RedactionKey);

impl RedactionKeys for Keys {
    fn key(&self) -> Result<RedactionKey, PortError> {
        Ok(self.0.clone())
    }
}

fn keys() -> Arc<Keys> {
    Arc::new(Keys(RedactionKey::random()))
}

fn engine(world: &Arc<World>, journal: &Arc<MemoryStore>, keys: &Arc<Keys>) -> Engine {
    Engine::new(world.ports(), journal.clone()).sealing_with(keys.clone())
}

/// Nothing of what is redacted is in these texts.
fn assert_hidden(texts: impl IntoIterator<Item = String>) {
    for text in texts {
        for hidden in [TOKEN, "5f2a", r#""pin":7"#, r#"pin": 7"#] {
            assert!(!text.contains(hidden), "`{hidden}` is in {text}");
        }
    }
}

fn written(entries: &[Entry]) -> impl Iterator<Item = String> {
    entries.iter().map(|entry| format!("{entry:?}"))
}

#[tokio::test]
async fn redacted_values_are_in_no_entry_and_no_event() {
    let (journal, keys, world) = (Arc::new(MemoryStore::default()), keys(), world(&["yes"]));
    let report = engine(&world, &journal, &keys).start(request(&login()), CancellationToken::new()).await.unwrap();
    let Outcome::Completed { output } = &report.outcome else { panic!("{:?}", report.outcome) };
    assert!(output.starts_with("logged in with <REDACTED>, ") && output.ends_with(", yes"), "{output}");
    assert_hidden(written(&entries(&*journal, &report.run).await));
    let record = journal.find(report.run.as_str()).await.unwrap();
    assert_hidden([format!("{record:?}"), output.clone()]);
    assert_hidden(world.events.lock().unwrap().iter().cloned());
    let asked = world.asked.lock().unwrap().clone();
    assert!(asked.len() == 1 && asked[0].contains("<REDACTED>"), "{asked:?}");
    assert_hidden(asked);
    for key in ["api_key", "session"] {
        assert_eq!(shown(&report.state, key), r#""<REDACTED>""#);
    }
    assert_eq!(shown(&report.state, "said"), r#""yes""#);
    let state = engine(&world, &journal, &keys).state_of(&report.run, login()).await.unwrap();
    assert_hidden([format!("{state:?}")]);
}

#[tokio::test]
async fn a_run_goes_on_with_redacted_values_from_every_entry() {
    let (journal, keys, first) = (Arc::new(MemoryStore::default()), keys(), world(&["yes"]));
    let whole = engine(&first, &journal, &keys).start(request(&login()), CancellationToken::new()).await.unwrap();
    let entries = before_the_end(&*journal, &whole.run).await;
    assert!(entries.len() > 4, "{}", entries.len());
    for length in 1..=entries.len() {
        let (journal, run) = journal_with(&entries[..length]).await;
        let again = world(&["yes"]);
        let report = engine(&again, &journal, &keys).resume(&run, login(), CancellationToken::new()).await.unwrap();
        assert_eq!(report.outcome, whole.outcome, "after {length} entries");
        assert_hidden(again.events.lock().unwrap().iter().cloned());
    }
}

#[tokio::test]
async fn a_fork_of_every_entry_goes_on_with_redacted_values_and_keeps_them_sealed() {
    let (journal, keys, first) = (Arc::new(MemoryStore::default()), keys(), world(&["yes"]));
    let whole = engine(&first, &journal, &keys).start(request(&login()), CancellationToken::new()).await.unwrap();
    let before = before_the_end(&*journal, &whole.run).await;
    let fork = async |at: usize, set: Object| {
        let again = world(&["yes"]);
        let origin = ForkOrigin { run: whole.run.to_string(), at: at as u64, ..ForkOrigin::default() };
        let wanted = ForkRequest { origin, set, ..ForkRequest::default() };
        let report = engine(&again, &journal, &keys).fork(login(), wanted, None, CancellationToken::new()).await;
        let report = report.unwrap_or_else(|error| panic!("at {at}: {error}"));
        let of_fork = entries(&*journal, &report.run).await;
        assert_hidden(written(&of_fork));
        assert_hidden(again.events.lock().unwrap().iter().cloned());
        (report, of_fork)
    };
    for at in 1..=before.len() {
        let (report, of_fork) = fork(at, Object::default()).await;
        assert_eq!(report.outcome, whole.outcome, "from entry {at} on");
        assert_eq!(of_fork[1..at], before[1..at], "what is copied is sealed as it was");
        // A fork is taken up like every run, by whoever has the key.
        let state = engine(&world(&[]), &journal, &keys).whole_state_of(&report.run, login()).await.unwrap();
        assert_eq!(shown(&state, "api_key"), hotcell_graph::Value::text(KEY).to_json());
    }
    let logged_in = before.iter().position(|entry| matches!(entry.fact, Fact::Completed(_))).unwrap() + 1;
    let set = [("note".into(), format!("it was {TOKEN}").as_str().into())].into_iter().collect();
    let (report, _) = fork(logged_in, set).await;
    let Outcome::Completed { output } = &report.outcome else { panic!("{:?}", report.outcome) };
    assert!(output.starts_with("it was <REDACTED>, "), "{output}");
}

#[tokio::test]
async fn what_a_fork_redacts_and_its_run_did_not_is_sealed_in_what_it_has_of_it() {
    let (journal, keys) = (Arc::new(MemoryStore::default()), keys());
    let mut plain = Graph::clone(&login());
    plain.redacted = Redacted::default();
    let plain = Arc::new(plain);
    let whole =
        engine(&world(&["yes"]), &journal, &keys).start(request(&plain), CancellationToken::new()).await.unwrap();
    let before = before_the_end(&*journal, &whole.run).await;
    assert!(written(&before).any(|text| text.contains(TOKEN)));
    let origin = ForkOrigin { run: whole.run.to_string(), at: before.len() as u64, ..ForkOrigin::default() };
    let wanted = ForkRequest { origin, ..ForkRequest::default() };
    let forked =
        engine(&world(&[]), &journal, &keys).fork(login(), wanted, None, CancellationToken::new()).await.unwrap();
    assert_hidden(written(&entries(&*journal, &forked.run).await));
}

#[tokio::test]
async fn what_waits_for_a_person_shows_nothing_and_goes_on() {
    let (journal, keys) = (Arc::new(MemoryStore::default()), keys());
    let asking = world(&[]);
    let report = engine(&asking, &journal, &keys).start(request(&login()), CancellationToken::new()).await.unwrap();
    let Outcome::Waiting { questions } = &report.outcome else { panic!("{:?}", report.outcome) };
    assert_hidden([questions[0].text.clone()]);
    let asked = open(&*journal, &report.run).await;
    answer(&*journal, &report.run, &asked[0], "yes").await;
    let report = engine(&world(&[]), &journal, &keys).resume(&report.run, login(), CancellationToken::new()).await;
    assert!(matches!(report.unwrap().outcome, Outcome::Completed { .. }));
    assert_hidden(written(&entries(&*journal, &journal.find("").await.unwrap().id).await));
}

#[tokio::test]
async fn the_next_run_of_a_thread_has_the_values() {
    let (journal, keys, world) = (Arc::new(MemoryStore::default()), keys(), world(&["yes", "yes"]));
    let engine = engine(&world, &journal, &keys);
    let first = engine.start(request(&login()), CancellationToken::new()).await.unwrap();
    let given = RunInput { after: Some(first.run.to_string()), depth: 1, ..RunInput::default() };
    let earlier = engine.whole_state_of(&first.run, login()).await.unwrap().to_object();
    let given = RunInput { earlier: Some(earlier), ..given };
    let next = engine.start(RunRequest { given, ..request(&login()) }, CancellationToken::new()).await.unwrap();
    assert!(matches!(next.outcome, Outcome::Completed { .. }), "{:?}", next.outcome);
}

#[tokio::test]
async fn without_its_key_a_run_is_refused_and_not_changed() {
    let (journal, keys_of_run, asking) = (Arc::new(MemoryStore::default()), keys(), world(&[]));
    let report = engine(&asking, &journal, &keys_of_run).start(request(&login()), CancellationToken::new()).await;
    let run = report.unwrap().run;
    let before = entries(&*journal, &run).await;
    let other = engine(&world(&["yes"]), &journal, &keys());
    let error = other.resume(&run, login(), CancellationToken::new()).await.unwrap_err().to_string();
    assert!(error.contains("were kept with another key"), "{error}");
    assert_eq!(before, entries(&*journal, &run).await);

    let none = Engine::new(world(&["yes"]).ports(), journal.clone());
    let error = none.start(request(&login()), CancellationToken::new()).await.unwrap_err().to_string();
    assert!(error.contains("the graph redacts values, and the key"), "{error}");
}

/// Asks a person for a password, and says what was pasted into the state.
fn password() -> Arc<Graph> {
    let mut built = graph(&["sure", "done"], |ids| {
        vec![
            node(ids, "sure", ask("The password?"), &[("password", "{{answer}}")], &["done"]),
            end(ids, "done", "{{pasted}} {{password}}"),
        ]
    });
    built.initial_state = vec![("pasted".into(), "nothing".into())];
    built.is_open = true;
    built.redacted.add("password").unwrap();
    Arc::new(built)
}

#[tokio::test]
async fn an_answer_is_in_no_entry_whoever_gives_it() {
    let (journal, keys) = (Arc::new(MemoryStore::default()), keys());
    let here = world(&[TOKEN]);
    let report = engine(&here, &journal, &keys).start(request(&password()), CancellationToken::new()).await.unwrap();
    assert_eq!(report.outcome, Outcome::Completed { output: "nothing <REDACTED>".into() });
    assert_hidden(written(&entries(&*journal, &report.run).await));

    let engine = engine(&world(&[]), &journal, &keys);
    let run = engine.start(request(&password()), CancellationToken::new()).await.unwrap().run;
    let header = journal.find(run.as_str()).await.unwrap().header;
    let asked = open(&*journal, &run).await;
    answer(&*journal, &run, &asked[0], &kept_answer(&header, &*keys, TOKEN).unwrap()).await;
    assert_hidden(written(&entries(&*journal, &run).await));
    let report = engine.resume(&run, password(), CancellationToken::new()).await.unwrap();
    assert_eq!(report.outcome, Outcome::Completed { output: "nothing <REDACTED>".into() });
    let state = engine.whole_state_of(&run, password()).await.unwrap();
    assert_eq!(shown(&state, "password"), format!("\"{TOKEN}\""));

    let other = kept_answer(&header, &Keys(RedactionKey::random()), TOKEN).unwrap_err().to_string();
    assert!(other.contains("were kept with another key"), "{other}");
}

/// A connector that takes what it is handed, and answers by the callback.
struct Later;

#[async_trait]
impl PluginNodes for Later {
    async fn take(&self, call: PluginNodeCall<'_>) -> PluginNodeReport {
        let answer = match call.callback.and_then(|callback| callback.body) {
            None => PluginNodeAnswer::Accepted,
            Some(body) => PluginNodeAnswer::RunInput { outputs: body.to_owned(), branch: None },
        };
        PluginNodeReport { result: Ok(answer), account: Account::default() }
    }
}

/// Waits for what another system issues.
fn issued() -> Arc<Graph> {
    let text = |text: &str| Expression::Strict(Template::parse(text));
    let mut built = graph(&["issue", "done"], |ids| {
        let action = Action::PluginNode(Box::new(PluginNodeAction {
            plugin_node: "acme/issue".to_owned(),
            kind: PluginNodeKind::Callback,
            with: text("x"),
            inputs: text("x"),
            branches: Vec::new(),
            keys: None,
            bind: "issued",
        }));
        vec![
            node(ids, "issue", action, &[("password", "{{issued}}")], &["done"]),
            end(ids, "done", "it is {{password}}"),
        ]
    });
    built.is_open = true;
    built.redacted.add("password").unwrap();
    Arc::new(built)
}

#[tokio::test]
async fn what_comes_by_a_callback_finds_its_run_and_is_in_no_entry() {
    let (journal, keys) = (Arc::new(MemoryStore::default()), keys());
    let mut ports = world(&[]).ports();
    ports.plugin_nodes = Arc::new(Later);
    let engine = Engine::new(ports, journal.clone()).sealing_with(keys.clone());
    let run = engine.start(request(&issued()), CancellationToken::new()).await.unwrap().run;
    let session = entries(&*journal, &run).await.into_iter().find_map(|entry| match entry.fact {
        Fact::Effect { kind, answer, .. } if kind == CALLBACK => answer.as_text().map(str::to_owned),
        _ => None,
    });
    let session = session.expect("a session");
    assert!(session.starts_with(run.as_str()), "{session}");
    let CallbackState::Open(open) = callback_state(&entries(&*journal, &run).await, &session) else {
        panic!("the run does not wait for its callback")
    };
    let header = journal.find(run.as_str()).await.unwrap().header;
    let body = Value::text(TOKEN).to_json();
    answer(&*journal, &run, &open, &kept_answer(&header, &*keys, &body).unwrap()).await;
    assert_hidden(written(&entries(&*journal, &run).await));
    let report = engine.resume(&run, issued(), CancellationToken::new()).await.unwrap();
    assert_eq!(report.outcome, Outcome::Completed { output: "it is <REDACTED>".into() });
    assert_hidden(written(&entries(&*journal, &run).await));
    let state = engine.whole_state_of(&run, issued()).await.unwrap();
    assert_eq!(shown(&state, "password"), format!("\"{TOKEN}\""));
}

#[tokio::test]
async fn a_seal_that_somebody_pastes_is_not_opened() {
    let (journal, keys) = (Arc::new(MemoryStore::default()), keys());
    let engine = engine(&world(&[]), &journal, &keys);
    let first = engine.start(request(&login()), CancellationToken::new()).await.unwrap().run;
    let header = journal.find(first.as_str()).await.unwrap().header;
    // What everybody sees who looks at the run; it holds a word.
    let seal = header.given.get("redaction").and_then(Value::as_text).unwrap().to_owned();
    let given = RunInput {
        state: [("pasted".into(), Value::text(seal.as_str()))].into_iter().collect(),
        ..RunInput::default()
    };
    let run = engine.start(RunRequest { given, ..request(&password()) }, CancellationToken::new()).await.unwrap().run;
    let asked = open(&*journal, &run).await;
    let header = journal.find(run.as_str()).await.unwrap().header;
    answer(&*journal, &run, &asked[0], &kept_answer(&header, &*keys, "it").unwrap()).await;
    let report = engine.resume(&run, password(), CancellationToken::new()).await.unwrap();
    assert_eq!(report.outcome, Outcome::Completed { output: format!("{seal} it") });
}

#[tokio::test]
async fn what_others_look_for_in_a_run_keeps_its_name() {
    let (journal, keys) = (Arc::new(MemoryStore::default()), keys());
    let engine = engine(&world(&[]), &journal, &keys);
    let mut built = (*password()).clone();
    built.redacted.add("*").unwrap();
    let origin = [("ticket".into(), Value::text("31415"))].into_iter().collect();
    let given = RunInput { thread: Some("tea".into()), origin, ..RunInput::default() };
    let request = RunRequest { given, ..request(&Arc::new(built)) };
    let run = engine.start(request, CancellationToken::new()).await.unwrap().run;
    let given = journal.find(run.as_str()).await.unwrap().header.given;
    assert_eq!(given.get("thread").and_then(Value::as_text), Some("tea"));
    let origin = given.get("origin").and_then(Value::as_object).unwrap();
    assert_eq!(origin.get("ticket").and_then(Value::as_text), Some("31415"));
}
