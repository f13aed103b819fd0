//! Loops of agents that are the work of one node: whatever a process dies in, what was committed is not done again, and
//! nobody is told of steps.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use hotcell_budget::{Account, BudgetScope};
use hotcell_engine::{
    Agents, CallError, CallReport, CallSite, Callee, Engine, HookPoint, HookVerdict, Hooks, Outcome, People, PortError,
    Ports, RunReport, ToolCall, Tools,
};
use hotcell_graph::conversation::Speaker;
use hotcell_graph::ir::{
    Action, AgentLoop, AtCap, CallAction, CallTarget, Callable, Contract, Expression, Graph, KeptArguments,
    ModelSettings, NodeIds, OnFailure, Pattern, PromptPart, RequestCap, Retry, RetryOn,
};
use hotcell_graph::value::parse_json;
use hotcell_graph::{Object, Template, Value};
use hotcell_journal::{Entry, EntryPath, Fact, MemoryStore, Question};
use hotcell_models::{Model, ModelError, OnText, Reply, Request, Role, ToolCallRequest, ToolSpec};
use tokio_util::sync::CancellationToken;

use crate::common::journal::{answer, before_the_end, entries, journal_with, open, request};
use crate::common::{World, end, graph, node, shown};

/// The outside of loops: a model that has `look` and `pay` called and says what it was told, a tool that asks before it
/// pays, an agent, hooks, and a person.
#[derive(Default)]
struct Shop {
    /// What was asked for, in order
    asked: Mutex<Vec<String>>,
    /// Requests that were refused once
    refused: Mutex<HashSet<String>>,
    /// Models that are down
    down: &'static [&'static str],
    /// Hooks that were told
    told: Mutex<Vec<String>>,
    has_hooks: bool,
    /// Whether somebody is there to answer
    is_silent: bool,
    world: Arc<World>,
}

impl Shop {
    fn ports(self: &Arc<Self>) -> Ports {
        Ports {
            model: self.clone(),
            tools: self.clone(),
            people: self.clone(),
            hooks: self.clone(),
            agents: self.clone(),
            default_model: Some("test:model".parse().expect("a name")),
            ..self.world.ports()
        }
    }

    fn note(&self, what: String) {
        self.asked.lock().expect("whole").push(what);
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("whole").clone()
    }
}

#[async_trait]
impl Model for Shop {
    async fn complete(&self, request: Request, on_text: Option<OnText<'_>>) -> Result<Reply, ModelError> {
        let name = request.model.to_string();
        if self.down.contains(&name.as_str()) {
            self.note(format!("{name} is down"));
            return Err(ModelError::Status { status: 503, message: "overloaded".into() });
        }
        let first = &request.messages[0];
        let last = &request.messages[request.messages.len() - 1].content;
        let heard: Vec<&str> =
            request.messages.iter().filter(|one| one.role == Role::Tool).map(|one| one.content.as_str()).collect();
        let what = match first.role {
            Role::System => format!("extract {}", if last.contains("could not be used") { "again" } else { "once" }),
            _ => format!("{} after {} answers", first.content, heard.len()),
        };
        self.note(format!("model: {what}"));
        if self.refused.lock().expect("whole").insert(what.clone()) {
            return Err(ModelError::Status { status: 429, message: String::new() });
        }
        let call = |name: &str, arguments: &str| ToolCallRequest {
            id: format!("{name} {}", heard.len()),
            name: name.into(),
            arguments: arguments.into(),
        };
        let calls = |calls: Vec<ToolCallRequest>| Reply { tool_calls: calls, ..Reply::text("") };
        let reply = match (first.role, heard.len()) {
            (Role::System, _) if what.ends_with("again") => Reply::text(r#"{"sum": 7}"#),
            (Role::System, _) => Reply::text("seven"),
            _ if first.content.starts_with("endless") => calls(vec![call("look", "{}")]),
            (_, 0) if request.tools.iter().any(|tool| tool.name == "helper") => {
                calls(vec![call("helper", r#"{"request":"help"}"#), call("look", "{ }")])
            }
            (_, 0) => calls(vec![call("look", "{ }"), call("pay", r#"{"sum":7}"#)]),
            _ => Reply::text(format!("{} heard {}", first.content, heard.join(" and "))),
        };
        if let Some(on_text) = on_text {
            on_text(&reply.content);
        }
        Ok(reply)
    }
}

#[async_trait]
impl Tools for Shop {
    fn describe(&self, name: &str) -> Option<ToolSpec> {
        let parameters = serde_json::json!({ "type": "object" });
        Some(ToolSpec { name: name.into(), description: String::new(), parameters })
    }

    async fn call(&self, call: ToolCall<'_>) -> CallReport {
        self.note(format!("{} {}{}", call.name, call.arguments, call.answers.concat()));
        let result = match (call.name, call.answers) {
            ("pay", []) => Err(CallError::Asks("pay?".into())),
            // It sees the state of the node, and nothing of the loop.
            ("look", _) => Ok(call.state.all().to_string()),
            _ => Ok(r#""paid""#.to_owned()),
        };
        CallReport { result, account: Account::default(), notices: Vec::new() }
    }
}

#[async_trait]
impl People for Shop {
    async fn ask(&self, question: &Question) -> Option<String> {
        if self.is_silent {
            return None;
        }
        self.note(format!("{} asks {}", question.node, question.text));
        Some("yes".into())
    }
}

#[async_trait]
impl Hooks for Shop {
    fn listens(&self, _: HookPoint) -> bool {
        self.has_hooks
    }

    async fn tell(
        &self,
        point: HookPoint,
        event: Object,
        _: &Arc<BudgetScope>,
        _: &CallSite,
    ) -> (HookVerdict, Account) {
        let node = event.get("node").and_then(Value::as_text).unwrap_or_default();
        self.told.lock().expect("whole").push(format!("{} {node}", point.name()));
        let HookPoint::AfterToolCall = point else { return (HookVerdict::Proceed, Account::default()) };
        let mut changed = event.clone();
        changed.insert("result", "hooked".into());
        (HookVerdict::Change(changed), Account::default())
    }
}

impl Agents for Shop {
    fn find(&self, _: &str) -> Result<Callee, PortError> {
        Ok(self.world.helper())
    }
}

fn settings(model: &str) -> ModelSettings {
    ModelSettings { model: Some(model.into()), ..ModelSettings::default() }
}

fn prompt(text: &str) -> Vec<PromptPart> {
    vec![PromptPart::text("`prompt`", Speaker::Human, Expression::Strict(Template::parse(text)))]
}

/// A loop whose requests are made twice where they are refused.
fn agent_loop(text: &str, tools: &[&str]) -> AgentLoop {
    let helper = || Callable::Agent { agent: "helper".into(), name: "helper".into(), description: String::new() };
    let tool = |name: &&str| if *name == "helper" { helper() } else { Callable::Tool((*name).into()) };
    AgentLoop {
        prompt: prompt(text),
        tools: tools.iter().map(tool).collect(),
        retry: Retry { attempts: 9, on: RetryOn::Transient, pause: std::time::Duration::ZERO, ..Retry::default() },
        arguments: KeptArguments::Text,
        needs_text: true,
        cap: Some(RequestCap { requests: 4, then: AtCap::Fail("it still asks for tools".into()) }),
        ..AgentLoop::default()
    }
}

fn call(agent: AgentLoop) -> CallAction {
    let target = CallTarget::Loop(Arc::new(agent.into_graph()));
    CallAction { target, contract: None, failure_prefix: None, bind: "output" }
}

fn graph_of(call: CallAction) -> Arc<Graph> {
    let mut built = graph(&["talk", "done"], |ids| {
        vec![
            node(ids, "talk", Action::Call(Box::new(call.clone())), &[("said", "{{output}}")], &["done"]),
            end(ids, "done", "{{said}}"),
        ]
    });
    built.initial_state = vec![("city".into(), "Zürich".into())];
    Arc::new(built)
}

/// A loop with two tools, one of which asks, whose text becomes a value after one repair.
fn buys() -> Arc<Graph> {
    let schema = parse_json(r#"{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"]}"#);
    let settings = ModelSettings::default();
    let mut contract = Contract::new(schema.expect("JSON"), vec!["sum".into()], &settings, 1);
    // Its model is asked on the same bad line.
    contract.graph = contract.graph.as_deref().map(patient);
    let call = CallAction { contract: Some(Box::new(contract)), ..call(agent_loop("buy", &["look", "pay"])) };
    graph_of(call)
}

/// The graph of an extraction, whose requests are not repeated, with requests that are.
fn patient(graph: &Graph) -> Arc<Graph> {
    let nodes = graph.nodes().map(|(_, node)| {
        let mut node = node.clone();
        if let Action::Converse(action) = &mut node.action {
            action.retry = agent_loop("", &[]).retry;
        }
        node
    });
    let mut built = Graph::new("contract", nodes.collect(), "ask 0").expect("the same nodes");
    built.initial_state.clone_from(&graph.initial_state);
    built.scheduling = graph.scheduling.clone();
    Arc::new(built)
}

async fn start(shop: &Arc<Shop>, graph: &Arc<Graph>) -> (Arc<MemoryStore>, RunReport) {
    let journal = Arc::new(MemoryStore::default());
    let engine = Engine::new(shop.ports(), journal.clone());
    let report = engine.start(request(graph), CancellationToken::new()).await.expect("it starts");
    (journal, report)
}

/// What was done by effects that are in a journal, apart from requests that were refused.
fn done(entries: &[Entry]) -> Vec<String> {
    let is_refused = |answer: &Value| answer.as_object().is_some_and(|answer| answer.get("refused").is_some());
    let effect = |entry: &Entry| match &entry.fact {
        Fact::Effect { kind, subject, answer, .. } if !is_refused(answer) => Some(format!("{kind} {subject}")),
        _ => None,
    };
    let mut done: Vec<String> = entries.iter().filter_map(effect).collect();
    done.sort();
    done
}

/// Goes on from every prefix of a journal: the end is the same, and everything was done once.
async fn from_every_prefix(graph: &Arc<Graph>, entries: &[Entry], expected: &Outcome, has_hooks: bool) {
    for length in 1..=entries.len() {
        let (journal, run) = journal_with(&entries[..length]).await;
        let shop = Arc::new(Shop { has_hooks, ..Shop::default() });
        let engine = Engine::new(shop.ports(), journal.clone());
        let report = engine.resume(&run, graph.clone(), CancellationToken::new()).await.expect("it goes on");
        assert_eq!(&report.outcome, expected, "after {length} entries");
        let all = crate::common::journal::entries(&*journal, &run).await;
        assert_eq!(done(&all), done(entries), "after {length} entries");
        let paid = |entry: &&Entry| matches!(&entry.fact, Fact::Answered { .. });
        let answered = entries[..length].iter().filter(paid).count();
        let asked = shop.asked().iter().filter(|asked| asked.contains("asks pay?")).count();
        let questions = entries.iter().filter(paid).count();
        assert_eq!(asked, questions - answered, "after {length} entries");
    }
}

#[tokio::test]
async fn every_prefix_of_a_loop_leads_to_the_same_end() {
    for has_hooks in [false, true] {
        let graph = buys();
        let shop = Arc::new(Shop { has_hooks, ..Shop::default() });
        let (journal, report) = start(&shop, &graph).await;
        let expected = Outcome::Completed { output: r#"{"sum":7}"#.into() };
        assert_eq!(report.outcome, expected);
        assert_eq!(shown(&report.state, "sum"), "7");
        assert_eq!(
            shop.asked(),
            [
                "model: buy after 0 answers",
                "model: buy after 0 answers",
                "look { }",
                r#"pay {"sum":7}"#,
                "talk asks pay?",
                r#"pay {"sum":7}yes"#,
                "model: buy after 2 answers",
                "model: buy after 2 answers",
                "model: extract once",
                "model: extract once",
                "model: extract again",
                "model: extract again",
            ]
        );
        let entries = before_the_end(&*journal, &report.run).await;
        // Each request and the answers to each reply are turns of their own.
        let turns: Vec<&str> = entries
            .iter()
            .filter(|entry| matches!(entry.fact, Fact::Completed(_)) && entry.place.is_step())
            .map(|entry| entry.place.as_str())
            .collect();
        assert_eq!(
            turns,
            ["1.loop.1", "1.loop.2", "1.loop.3", "1.extract.1", "1.extract.2", "1.extract.3", "1.extract.4"]
        );
        from_every_prefix(&graph, &entries, &expected, has_hooks).await;
    }
}

/// What an older version wrote of the same run: everything is an effect of the node's own turn.
fn as_older_versions(entries: &[Entry]) -> Vec<Entry> {
    let mut number_there = 0;
    let mut asked = 0;
    let mut older = Vec::new();
    for Entry { place, fact } in entries {
        let is_within = place.turn() == Some(1) && place.as_str() != "1";
        let fact = match fact.clone() {
            fact if !is_within => {
                older.push(Entry { place: place.clone(), fact });
                continue;
            }
            Fact::Effect { kind, subject, answer, account, .. } => {
                Fact::Effect { number: number_there, kind, subject, answer, account }
            }
            Fact::Asked { question, .. } => {
                asked = number_there;
                Fact::Asked { number: number_there, question }
            }
            Fact::Answered { text, .. } => {
                older.push(Entry { place: EntryPath::of_turn(1), fact: Fact::Answered { number: asked, text } });
                continue;
            }
            _ => continue,
        };
        number_there += 1;
        older.push(Entry { place: EntryPath::of_turn(1), fact });
    }
    older
}

#[tokio::test]
async fn every_prefix_of_a_loop_that_an_older_version_wrote_goes_on() {
    let graph = buys();
    let (journal, report) = start(&Arc::new(Shop::default()), &graph).await;
    let older = as_older_versions(&before_the_end(&*journal, &report.run).await);
    assert!(older.len() > 10, "{older:?}");
    from_every_prefix(&graph, &older, &report.outcome, false).await;

    // The question that an older version asked is answered where it was asked.
    let asked = older.iter().position(|entry| matches!(entry.fact, Fact::Asked { .. })).expect("it asks");
    let (journal, run) = journal_with(&older[..=asked]).await;
    let silent = Arc::new(Shop { is_silent: true, ..Shop::default() });
    let engine = Engine::new(silent.ports(), journal.clone());
    let waits = engine.resume(&run, graph.clone(), CancellationToken::new()).await.expect("it goes on");
    assert!(matches!(waits.outcome, Outcome::Waiting { .. }));
    let questions = open(&*journal, &run).await;
    assert_eq!(questions.len(), 1);
    answer(&*journal, &run, &questions[0], "yes").await;
    let ends = engine.resume(&run, graph, CancellationToken::new()).await.expect("it goes on");
    assert_eq!(ends.outcome, report.outcome);
}

#[tokio::test]
async fn every_prefix_of_a_map_over_loops_that_call_agents_leads_to_the_same_end() {
    let each = call(agent_loop("{{x}}", &["helper", "look"]));
    let mut built = graph(&["each", "one", "done"], |ids: &NodeIds| {
        let map = crate::common::each(ids, "one", "output", "all", Some(1));
        vec![
            node(ids, "each", map, &[], &["done"]),
            node(ids, "one", Action::Call(Box::new(each.clone())), &[], &[]),
            end(ids, "done", "{{all}}"),
        ]
    });
    built.initial_state = vec![("xs".into(), parse_json(r#"["a","b"]"#).expect("JSON"))];
    let graph = Arc::new(built);
    let shop = Arc::new(Shop::default());
    let (journal, report) = start(&shop, &graph).await;
    let Outcome::Completed { output } = &report.outcome else { panic!("{:?}", report.outcome) };
    assert!(output.contains("a heard helped and {") && output.contains("b heard helped and {"), "{output}");
    assert!(!output.contains("(said)"), "tools see nothing of the loop: {output}");
    let entries = before_the_end(&*journal, &report.run).await;
    from_every_prefix(&graph, &entries, &report.outcome, false).await;
}

#[tokio::test]
async fn nobody_is_told_of_steps() {
    let shop = Arc::new(Shop { has_hooks: true, ..Shop::default() });
    let (_, report) = start(&shop, &buys()).await;
    assert!(matches!(report.outcome, Outcome::Completed { .. }));
    let told = shop.told.lock().expect("whole").clone();
    let of_nodes: Vec<&str> =
        told.iter().map(String::as_str).filter(|told| told.contains("e-node ") || told.contains("r-node ")).collect();
    assert_eq!(of_nodes, ["before-node talk", "after-node talk"], "the end is told of to nobody");
    assert!(told.iter().filter(|told| told.starts_with("before-model-call")).all(|told| told.ends_with(" talk")));
    let events = shop.world.events.lock().expect("whole").clone();
    let nodes: Vec<&String> = events.iter().filter(|event| event.contains("\"node_")).collect();
    assert!(nodes.iter().all(|event| event.contains("\"talk\"") || event.contains("\"done\"")), "{nodes:?}");
    assert_eq!(nodes.len(), 4, "{nodes:?}");
}

#[tokio::test]
async fn a_loop_fails_in_the_name_of_its_node() {
    let mut built = (*graph_of(CallAction {
        failure_prefix: Some("it failed: ".into()),
        ..call(AgentLoop { retry: Retry { attempts: 1, ..Retry::default() }, ..agent_loop("buy", &["look"]) })
    }))
    .clone();
    let (_, report) = start(&Arc::new(Shop::default()), &Arc::new(built.clone())).await;
    let Outcome::Failed { node, error } = &report.outcome else { panic!("{:?}", report.outcome) };
    assert_eq!((node.as_deref(), error.as_str()), (Some("talk"), "node `talk` failed: 429 Too Many Requests"));

    let (talk, done) = (built.find("talk").expect("a node"), built.find("done").expect("a node"));
    let nodes = built.nodes().map(|(index, node)| {
        let on_failure = if index == talk { OnFailure::To(done) } else { OnFailure::Fail };
        hotcell_graph::ir::Node { on_failure, ..node.clone() }
    });
    built = Graph::new("test", nodes.collect(), "talk").expect("the same nodes");
    let (_, report) = start(&Arc::new(Shop::default()), &Arc::new(built)).await;
    assert_eq!(report.outcome, Outcome::Completed { output: "it failed: 429 Too Many Requests".into() });
}

#[tokio::test]
async fn a_loop_ends_at_its_cap_before_tools_are_called() {
    let shop = Arc::new(Shop::default());
    let (_, report) = start(&shop, &graph_of(call(agent_loop("endless", &["look"])))).await;
    let Outcome::Failed { error, .. } = &report.outcome else { panic!("{:?}", report.outcome) };
    assert_eq!(error, "node `talk` failed: it still asks for tools");
    let looked = |shop: &Shop| shop.asked().iter().filter(|asked| asked.starts_with("look")).count();
    assert_eq!(looked(&shop), 3);

    let shop = Arc::new(Shop::default());
    let cap = Some(RequestCap { requests: 2, then: AtCap::Return });
    let (_, report) = start(&shop, &graph_of(call(AgentLoop { cap, ..agent_loop("endless", &["look"]) }))).await;
    assert_eq!((report.outcome, looked(&shop)), (Outcome::Completed { output: String::new() }, 1));
}

#[tokio::test]
async fn a_condition_ends_a_loop_after_calls() {
    let exit = Some(Expression::Has("city".into()));
    let shop = Arc::new(Shop::default());
    let (_, report) = start(&shop, &graph_of(call(AgentLoop { exit, ..agent_loop("endless", &["look"]) }))).await;
    assert_eq!(report.outcome, Outcome::Completed { output: String::new() });
    assert_eq!(shop.asked(), ["model: endless after 0 answers", "model: endless after 0 answers", "look {}"]);
}

#[tokio::test]
async fn another_model_is_asked_where_one_refuses_for_good() {
    let agent = AgentLoop {
        settings: settings("test:first"),
        fallbacks: vec![settings("test:second"), settings("test:third")],
        ..agent_loop("buy", &["look"])
    };
    let shop = Arc::new(Shop { down: &["test:first", "test:second"], ..Shop::default() });
    let graph = graph_of(call(agent));
    let (journal, report) = start(&shop, &graph).await;
    assert!(matches!(report.outcome, Outcome::Completed { .. }), "{:?}", report.outcome);
    assert_eq!(shop.asked()[..2], ["test:first is down", "test:second is down"]);
    // What refused is asked again in each step, and not when a step is repeated.
    let entries = before_the_end(&*journal, &report.run).await;
    for length in 1..=entries.len() {
        let (journal, run) = journal_with(&entries[..length]).await;
        let again = Arc::new(Shop { down: shop.down, ..Shop::default() });
        let engine = Engine::new(again.ports(), journal.clone());
        let resumed = engine.resume(&run, graph.clone(), CancellationToken::new()).await.expect("it goes on");
        assert_eq!(resumed.outcome, report.outcome, "after {length} entries");
    }
}

#[tokio::test]
async fn a_forbidden_text_is_neither_shown_nor_kept() {
    let patterns = vec![Pattern::new("(?i)HEARD").expect("a pattern")];
    let forbidden = hotcell_graph::ir::Forbidden { patterns, ..Default::default() };
    let shop = Arc::new(Shop::default());
    let (journal, report) =
        start(&shop, &graph_of(call(AgentLoop { forbidden, ..agent_loop("buy", &["look"]) }))).await;
    let Outcome::Failed { error, .. } = &report.outcome else { panic!("{:?}", report.outcome) };
    assert_eq!(error, "node `talk` failed: the model's reply has a text that is forbidden (`(?i)HEARD`)");
    let all = format!("{:?}", entries(&*journal, &report.run).await);
    assert!(!all.contains("buy heard"), "{all}");
    assert!(!shop.world.events.lock().expect("whole").iter().any(|event| event.contains("buy heard")));
}
