//! Meshes that run: files of `leafmesh/runs`, and those shared cases whose steps are only calls of entry points, played against the
//! engine with functions, models and people that are scripted.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use hotcell_budget::Cost;
use hotcell_dialects::leafmesh;
use hotcell_dialects::{
    AgentFolder, ComponentState, DeclaredServer, FileState, KnowledgeBase, OwnTool, PluginNodeState, ServerState,
    Surroundings, ToolState, Unavailable,
};
use hotcell_engine::{
    CallReport, Clock, Engine, ManualClock, Meter, Outcome, People, Ports, RunInput, RunRequest, Tally, ToolCall,
    Tools, Used,
};
use hotcell_graph::diagnostic::{SourceFile, render};
use hotcell_graph::ir::Graph;
use hotcell_graph::{Object, Value};
use hotcell_journal::{MemoryStore, Question};
use hotcell_models::{Message, Model, ModelError, OnText, Reply, Request, ToolCallRequest, ToolSpec};
use serde_json::{Value as Json, json};
use tokio_util::sync::CancellationToken;

use crate::playing::ports;
use crate::surroundings::Fake;

/// The world of a case: functions of agents and tools of models by name, and a person.
#[derive(Default)]
struct Stage {
    behaviours: BTreeMap<String, Json>,
    tools: BTreeMap<String, Json>,
    runs: Mutex<HashMap<String, usize>>,
    /// Who was called with what, in order
    calls: Mutex<Vec<(String, Json)>>,
    answers: Mutex<VecDeque<String>>,
    questions: Mutex<Vec<Question>>,
    time: Time,
}

/// A clock that stands still until nothing goes on without it.
struct Time(ManualClock);

impl Default for Time {
    fn default() -> Self {
        Time(ManualClock::at(SystemTime::UNIX_EPOCH + Duration::from_secs(1_780_000_000)))
    }
}

/// What the front end may ask: the functions are tools.
struct World<'a>(&'a Stage);

impl Surroundings for World<'_> {
    fn tool(&self, name: &str) -> ToolState {
        if self.0.behaviours.contains_key(name) || self.0.tools.contains_key(name) {
            ToolState::Usable
        } else {
            ToolState::Missing
        }
    }

    fn script(&self, path: &str) -> FileState {
        Fake.script(path)
    }

    fn documents(&self, path: &str) -> FileState {
        Fake.documents(path)
    }

    fn plugin_node(&self, name: &str) -> PluginNodeState {
        Fake.plugin_node(name)
    }

    fn component(&self, plugin: &str, component_type: &str) -> ComponentState {
        Fake.component(plugin, component_type)
    }

    fn own_tools(&self) -> Result<Vec<OwnTool>, Unavailable> {
        Fake.own_tools()
    }

    fn model(&self, name: &str) -> Option<bool> {
        Fake.model(name)
    }

    fn mcp_server(&self, name: &str) -> ServerState {
        Fake.mcp_server(name)
    }

    fn note_server(&self, server: &DeclaredServer) {
        Fake.note_server(server);
    }

    fn agent(&self, name: &str) -> AgentFolder {
        Fake.agent(name)
    }

    fn knowledge_base(&self, node: &str) -> KnowledgeBase {
        Fake.knowledge_base(node)
    }

    fn read(&self, path: &str, within: Option<&str>) -> Result<Arc<str>, Unavailable> {
        Fake.read(path, within)
    }

    fn variable(&self, name: &str) -> Option<String> {
        Fake.variable(name)
    }

    fn hook(&self, name: &str) -> bool {
        Fake.hook(name)
    }
}

#[async_trait]
impl Tools for Stage {
    fn describe(&self, name: &str) -> Option<ToolSpec> {
        if let Some(tool) = self.tools.get(name) {
            let parameters = tool["parameters"].clone();
            return Some(ToolSpec { name: name.to_owned(), description: String::new(), parameters });
        }
        self.behaviours.contains_key(name).then(|| ToolSpec {
            name: name.to_owned(),
            description: String::new(),
            parameters: json!({"type": "object"}),
        })
    }

    async fn call(&self, call: ToolCall<'_>) -> CallReport {
        let input: Json = serde_json::from_str(call.arguments).unwrap();
        if let Some(tool) = self.tools.get(call.name) {
            self.calls.lock().unwrap().push((call.name.to_owned(), input.clone()));
            let result = match tool["behaviour"].as_str().unwrap() {
                "add" => json!(input["a"].as_f64().unwrap() + input["b"].as_f64().unwrap()).to_string(),
                "lookup" => json!(format!("no entry for {}", input["key"])).to_string(),
                "fail" => return CallReport::failed(format!("tool failed: {}", input["reason"])),
                "slow" => {
                    self.time.0.pause(Duration::from_secs(30)).await;
                    "1".to_owned()
                }
                other => panic!("there is no behaviour `{other}`"),
            };
            return CallReport { result: Ok(result), ..CallReport::failed("") };
        }
        let run = {
            self.calls.lock().unwrap().push((call.name.to_owned(), input.clone()));
            let mut runs = self.runs.lock().unwrap();
            let run = runs.entry(call.name.to_owned()).or_default();
            *run += 1;
            *run
        };
        let told = &self.behaviours[call.name];
        let failed = || CallReport::failed(told["message"].as_str().unwrap_or("it failed"));
        let value = match told["behaviour"].as_str().unwrap() {
            "echo" => input,
            "constant" => told["value"].clone(),
            "sequence" => {
                let values = told["values"].as_array().unwrap();
                values[(run - 1).min(values.len() - 1)].clone()
            }
            "fail" => return failed(),
            "fail_first" if run <= told["times"].as_u64().unwrap() as usize => return failed(),
            "fail_first" => told["value"].clone(),
            "slow" => {
                self.time.0.pause(Duration::from_millis(told["ms"].as_u64().unwrap())).await;
                told["value"].clone()
            }
            "pick" => {
                let pick = |path: &Json| {
                    let pointer = format!("/{}", path.as_str().unwrap().replace('.', "/"));
                    input.pointer(&pointer).cloned().unwrap_or_default()
                };
                told["fields"].as_object().unwrap().iter().map(|(name, path)| (name.clone(), pick(path))).collect()
            }
            other => panic!("there is no behaviour `{other}`"),
        };
        CallReport { result: Ok(value.to_string()), ..CallReport::failed("") }
    }
}

#[async_trait]
impl People for Stage {
    async fn ask(&self, question: &Question) -> Option<String> {
        self.questions.lock().unwrap().push(question.clone());
        self.answers.lock().unwrap().pop_front()
    }
}

/// A run of a mesh: what it is given, and what came of it.
struct Ran {
    word: &'static str,
    text: String,
    /// What kinds of failures there were
    kinds: Vec<Json>,
    feed: Json,
}

/// With `later` seconds the time of questions that nobody answers is over.
async fn run(graph: Arc<Graph>, stage: &Arc<Stage>, model: &Arc<Script>, given: &Json, later: Option<u64>) -> Ran {
    let clock = stage.time.0.clone();
    let meter = Tally::default();
    for (agent, spent) in given["(spent)"].as_object().into_iter().flatten() {
        let cost = Cost::from_usd(spent["cost_usd"].as_f64().unwrap_or_default());
        meter.add(agent, Used { tokens: spent["tokens"].as_u64().unwrap_or_default(), cost }).unwrap();
    }
    let ports = Ports { clock: Arc::new(clock.clone()), meter: Arc::new(meter), ..ports(stage, model.clone()) };
    let (input, state) = match given.as_str() {
        Some(text) => (Some(text.to_owned()), Object::default()),
        None => (None, Value::from(given).as_object().cloned().unwrap_or_default()),
    };
    let given = RunInput { input, state, ..RunInput::default() };
    let (source, digest) = ("test".into(), "test".into());
    let request = RunRequest { graph: graph.clone(), source, digest, kept: false, given, follows: None };
    let engine = Engine::new(ports, Arc::new(MemoryStore::default()));
    let starting = engine.clone();
    let started = tokio::spawn(async move { starting.start(request, CancellationToken::new()).await });
    if later.is_none() {
        loop {
            assert!(clock.settled(Duration::from_secs(60)).await, "{clock:?}");
            let Some(next) = clock.next_due() else { break };
            clock.advance_to(next);
        }
    }
    let mut report = started.await.unwrap().unwrap();
    if let Some(later) = later {
        clock.advance(Duration::from_secs(later));
        report = engine.resume(&report.run, graph, CancellationToken::new()).await.unwrap();
    }
    let (word, text) = match report.outcome {
        Outcome::Completed { output } => ("completed", output),
        Outcome::Failed { error, .. } => ("failed", error),
        Outcome::Stopped { reason } => ("stopped", reason),
        other => ("other", format!("{other:?}")),
    };
    let kinds = report.failures.iter().map(|failure| json!(failure.kind)).collect();
    let feed = report.state.get("feed").map(Json::from).unwrap_or_default();
    Ran { word, text, kinds, feed }
}

/// Whether a JSON value has everything that another one has; `{"absent": true}` stands for nothing.
fn has(whole: Option<&Json>, part: &Json) -> bool {
    if *part == json!({"absent": true}) {
        return whole.is_none_or(Json::is_null);
    }
    match (whole, part) {
        (Some(Json::Object(whole)), Json::Object(part)) => part.iter().all(|(key, part)| has(whole.get(key), part)),
        (Some(Json::Array(whole)), Json::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(whole, part)| has(Some(whole), part))
        }
        (Some(Json::Number(whole)), Json::Number(part)) => whole.as_f64() == part.as_f64(),
        (whole, part) => whole == Some(part),
    }
}

/// What a run says that is refused for what the mesh has.
const REFUSED: &str = "hotcell does not run yet what this mesh has";

/// A scripted reply: a text, calls of tools, or a refusal.
fn reply(told: &Json) -> Result<Reply, ModelError> {
    if let Some(status) = told["status"].as_u64() {
        let message = told["error"].as_str().unwrap_or_default().to_owned();
        return Err(ModelError::Status { status: status as u16, message });
    }
    let calls = told["tool_calls"].as_array().into_iter().flatten().enumerate();
    let call = |(place, call): (usize, &Json)| ToolCallRequest {
        id: format!("c{place}"),
        name: call["name"].as_str().unwrap().to_owned(),
        arguments: call["arguments"].to_string(),
    };
    let text = told["content"].as_str().unwrap_or_default();
    Ok(Reply { tool_calls: calls.map(call).collect(), ..Reply::text(text) })
}

/// Replies to requests: those that are reserved for requests with a text, the others in their order.
struct Script {
    replies: Mutex<Vec<Json>>,
    requests: Mutex<Vec<Request>>,
}

impl Script {
    fn new(replies: Vec<Json>) -> Self {
        Script { replies: Mutex::new(replies), requests: Mutex::default() }
    }

    fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    fn unserved(&self) -> usize {
        self.replies.lock().unwrap().len()
    }
}

#[async_trait]
impl Model for Script {
    async fn complete(&self, request: Request, _: Option<OnText<'_>>) -> Result<Reply, ModelError> {
        self.requests.lock().unwrap().push(request.clone());
        let mut replies = self.replies.lock().unwrap();
        let wants = |reply: &Json| reply["when"].as_str().map(str::to_owned);
        let has = |text: &str| request.messages.iter().any(|message| message.content.contains(text));
        let place = replies.iter().position(|reply| wants(reply).is_some_and(|text| has(&text)));
        let place = place.or_else(|| replies.iter().position(|reply| wants(reply).is_none()));
        let place = place.ok_or(ModelError::Status { status: 400, message: "no reply is left".to_owned() })?;
        reply(&replies.remove(place))
    }
}

/// What differs between a request to a model and what is expected of it.
fn differs(request: &Request, wanted: &Json) -> Option<String> {
    if let Some(model) = wanted["model"].as_str()
        && request.model.as_str() != model
    {
        return Some(format!("it asks `{}` and not `{model}`", request.model));
    }
    if let Some(tools) = wanted["tools"].as_array() {
        let offered: Vec<&str> = request.tools.iter().map(|tool| &*tool.name).collect();
        if offered.len() != tools.len() || tools.iter().any(|tool| !offered.contains(&tool.as_str().unwrap())) {
            return Some(format!("it offers {offered:?}"));
        }
    }
    let mut messages = request.messages.iter();
    for part in wanted["messages_include"].as_array().into_iter().flatten() {
        let parts = match &part["content"] {
            Json::String(text) => vec![text.as_str()],
            content => match &content["contains"] {
                Json::String(text) => vec![text.as_str()],
                texts => texts.as_array().into_iter().flatten().filter_map(Json::as_str).collect(),
            },
        };
        let role =
            |message: &Message| part["role"].is_null() || serde_json::to_value(message.role).unwrap() == part["role"];
        if !messages.any(|message| role(message) && parts.iter().all(|part| message.content.contains(part))) {
            return Some(format!("it has no message {part}: {:?}", request.messages));
        }
    }
    let all = format!("{:?}", request.messages);
    let excluded = wanted["excludes"].as_array().into_iter().flatten().filter_map(Json::as_str);
    excluded.into_iter().find(|part| all.contains(part)).map(|part| format!("it has `{part}`: {all}"))
}

enum Played {
    Through,
    /// The mesh has something that is refused by name
    Refused,
}

/// Plays a case; the error says what differs.
async fn play(case: &Json, mesh: (&str, &str), given: &[Json]) -> Result<Played, String> {
    let behaviours = case["agents"].as_object().into_iter().flatten();
    let answers = case["answers"].as_array().into_iter().flatten().map(|answer| answer.as_str().unwrap().to_owned());
    let stage = Arc::new(Stage {
        behaviours: behaviours.map(|(name, told)| (name.clone(), told.clone())).collect(),
        tools: case["tools"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, tool)| (name.clone(), tool.clone()))
            .collect(),
        answers: Mutex::new(answers.collect()),
        ..Stage::default()
    });
    let replies = case["model"].as_array().into_iter().flatten();
    let model = Arc::new(Script::new(replies.cloned().collect()));
    let file = Arc::new(SourceFile { name: mesh.0.to_owned(), text: mesh.1.to_owned() });
    let loaded = leafmesh::load(&file, &World(&stage));
    let graph = loaded.graph.map(Arc::new).ok_or_else(|| render(&loaded.diagnostics, false))?;
    let mut ran = Vec::new();
    // What a server keeps of each session.
    let mut said: HashMap<String, Vec<Json>> = HashMap::new();
    let mut posted: Vec<Json> = Vec::new();
    for given in given {
        let session = given["session_id"].as_str().map(str::to_owned);
        let mut whole = given.clone();
        if whole.is_object() && given.get("(feed)").is_none() {
            whole["(feed)"] = json!(posted);
        }
        if let Some(history) = session.as_ref().and_then(|session| said.get(session)) {
            whole["(history)"] = json!(history);
        }
        let one = run(graph.clone(), &stage, &model, &whole, case["later_s"].as_u64()).await;
        if let Some(session) = session {
            let turns = said.entry(session).or_default();
            turns.push(json!({"role": "user", "content": given["data"].to_string()}));
            turns.push(json!({"role": "assistant", "content": one.text}));
        }
        posted.extend(one.feed.as_array().into_iter().flatten().cloned());
        ran.push(one);
    }
    if case.get("mesh").is_none() && ran.iter().any(|ran| ran.text.contains(REFUSED)) {
        return Ok(Played::Refused);
    }
    let expect = &case["expect"];
    let last = ran.last().ok_or("nothing was run")?;
    if let Some(outcome) = expect["outcome"].as_str()
        && outcome != last.word
    {
        return Err(format!("it {} and not {outcome}: {}", last.word, last.text));
    }
    for part in expect["says"].as_array().into_iter().flatten().filter_map(Json::as_str) {
        if !last.text.contains(part) {
            return Err(format!("`{part}` is not in: {}", last.text));
        }
    }
    if let Some(kinds) = expect["kinds"].as_array()
        && last.kinds != *kinds
    {
        return Err(format!("the failures are {:?}", last.kinds));
    }
    if !expect["has_kind"].is_null() && !last.kinds.contains(&expect["has_kind"]) {
        return Err(format!("the failures are {:?}", last.kinds));
    }
    if !expect["feed"].is_null() && !has(Some(&last.feed), &expect["feed"]) {
        return Err(format!("the feed is {}", last.feed));
    }
    let output = serde_json::from_str::<Json>(&last.text).ok();
    if !expect["output"].is_null() && !has(output.as_ref(), &expect["output"]) {
        return Err(format!("the output is {}", last.text));
    }
    let calls = stage.calls.lock().unwrap();
    let count = |agent: &str| calls.iter().filter(|(name, _)| name == agent).count();
    for (agent, runs) in expect["runs"].as_object().into_iter().flatten() {
        // What has no function is not counted here.
        if stage.behaviours.contains_key(agent) && runs.as_u64() != Some(count(agent) as u64) {
            return Err(format!("`{agent}` ran {} times and not {runs}; {}", count(agent), last.text));
        }
    }
    for wanted in expect["inputs"].as_array().into_iter().flatten() {
        let (agent, nth) = (wanted["agent"].as_str().unwrap(), wanted["nth"].as_u64().unwrap_or(1) as usize);
        if !stage.behaviours.contains_key(agent) {
            continue;
        }
        let Some((_, input)) = calls.iter().filter(|(name, _)| name == agent).nth(nth - 1) else {
            return Err(format!("`{agent}` did not run {nth} times"));
        };
        if !has(Some(input), &wanted["input"]) {
            return Err(format!("run {nth} of `{agent}` was given {input}"));
        }
        let excluded = wanted["excludes"].as_array().into_iter().flatten().filter_map(Json::as_str);
        if let Some(key) = excluded.into_iter().find(|key| input.get(key).is_some()) {
            return Err(format!("run {nth} of `{agent}` was given `{key}`: {input}"));
        }
    }
    let mut began = calls.iter().map(|(name, _)| name.as_str());
    for agent in expect["order"].as_array().into_iter().flatten().filter_map(Json::as_str) {
        if !began.any(|name| name == agent) {
            return Err(format!("`{agent}` did not begin in that order"));
        }
    }
    let asked = stage.questions.lock().unwrap();
    for (place, part) in expect["questions"].as_array().into_iter().flatten().enumerate() {
        if !asked.get(place).is_some_and(|question| question.text.contains(part.as_str().unwrap())) {
            return Err(format!("question {place} was not about {part}: {asked:?}"));
        }
    }
    for (place, part) in expect["asked"].as_array().into_iter().flatten().enumerate() {
        let asked = asked.get(place).map(|question| {
            let context = question.context.as_ref().map(Json::from);
            json!({"seat": question.seat, "operator_ids": question.operator_ids, "context": context})
        });
        if !has(asked.as_ref(), part) {
            return Err(format!("question {place} is {asked:?}"));
        }
    }
    let requests = model.requests();
    for (place, wanted) in expect["model_requests"].as_array().into_iter().flatten().enumerate() {
        let problem = requests.get(place).map_or(Some("it is missing".to_owned()), |request| differs(request, wanted));
        if let Some(problem) = problem {
            return Err(format!("request {place} to a model: {problem}"));
        }
    }
    if let Some(wanted) = expect["tool_calls"].as_array() {
        let called = calls.iter().filter(|(name, _)| stage.tools.contains_key(name)).count();
        if called != wanted.len() {
            return Err(format!("tools were called {called} times and not {}", wanted.len()));
        }
    }
    for (place, parts) in expect["told"].as_array().into_iter().flatten().enumerate() {
        let told = requests.get(place).map(|request| format!("{:?}", request.messages)).unwrap_or_default();
        for part in parts.as_array().into_iter().flatten().filter_map(Json::as_str) {
            if !told.contains(part) {
                return Err(format!("request {place} has no `{part}`: {told}"));
            }
        }
    }
    for (place, parts) in expect["not_told"].as_array().into_iter().flatten().enumerate() {
        let told = requests.get(place).map(|request| format!("{:?}", request.messages)).unwrap_or_default();
        for part in parts.as_array().into_iter().flatten().filter_map(Json::as_str) {
            if told.contains(part) {
                return Err(format!("request {place} has `{part}`: {told}"));
            }
        }
    }
    match model.unserved() {
        0 => Ok(Played::Through),
        left => Err(format!("{left} replies were not asked for")),
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.sort();
    files
}

#[tokio::test]
async fn meshes_run_as_the_cases_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/leafmesh/runs");
    let mut wrong = Vec::new();
    let files = files(&folder);
    assert!(files.len() > 10, "the cases are not there");
    for path in files {
        let case: Json = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let mesh = case["mesh"].to_string();
        let given = [case["given"].clone()];
        if let Err(problem) = play(&case, ("mesh.json", &mesh), &given).await {
            wrong.push(format!("{}: {problem}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The calls of entry points that a shared case consists of; none if it has other steps, or needs what is not here.
fn calls_of(case: &Json) -> Option<Vec<Json>> {
    // Nobody turns the clock here.
    let takes_time = case["agents"].to_string().contains("slow") || case["steps"].to_string().contains("advance_s");
    let is_foreign = takes_time || ["clock", "auth", "prices", "http", "env"].iter().any(|key| case.get(key).is_some());
    if is_foreign {
        return None;
    }
    let mut calls = Vec::new();
    for step in case["steps"].as_array()? {
        if ["settle", "note"].iter().any(|key| step.get(key).is_some()) {
            continue;
        }
        let request = step.get("request").filter(|request| request["path"] == "/api/mesh/request")?;
        // Those that are refused are for who serves them.
        let accepted = match &step["expect"]["status"] {
            Json::Null => true,
            Json::Array(all) => all.iter().any(|status| *status == 200),
            status => *status == 200,
        };
        calls.push(request.get("json").filter(|_| accepted)?.clone());
    }
    Some(calls)
}

#[tokio::test]
async fn shared_cases_of_entry_points_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/cases/leafmesh");
    let (mut wrong, mut played, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    for directory in files(&folder) {
        let Ok(case) = std::fs::read_to_string(directory.join("case.json")) else { continue };
        let case: Json = serde_json::from_str(&case).unwrap();
        let Some(given) = calls_of(&case) else { continue };
        let mesh = std::fs::read_to_string(directory.join(case["entry"].as_str().unwrap())).unwrap();
        let name = directory.file_name().unwrap().to_string_lossy().into_owned();
        match play(&case, ("mesh.yaml", &mesh), &given).await {
            Ok(Played::Through) => played.push(name),
            Ok(Played::Refused) => refused.push(name),
            Err(problem) => wrong.push(format!("{name}: {problem}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let all = format!("played: {}\nrefused: {}", played.join(" "), refused.join(" "));
    assert!(!folder.exists() || played.len() > 50, "{all}");
}
