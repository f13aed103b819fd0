//! Everything outside the graphs of the golden files: it answers by rules, and keeps what it was asked.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use hotcell_budget::{Account, Usage};
use hotcell_engine::{
    Agents, CallError, CallReport, Callee, Nobody, PortError, Ports, ScriptCall, Scripts, SystemClock, ToolCall, Tools,
};
use hotcell_models::{Finish, Model, ModelError, OnText, Reply, Request, Role, TokenUsage, ToolCallRequest, ToolSpec};

use super::graphs::reporter;

/// What a run may ask for.
#[derive(Default)]
pub(crate) struct World {
    /// What was asked, in order
    pub(crate) asked: Mutex<Vec<String>>,
    /// What gets no answer, ever: what a process was at when it died
    pub(crate) hangs: &'static [&'static str],
    /// Which request the model refuses
    pub(crate) refuses: &'static str,
    /// Whether the program `break` fails
    pub(crate) is_broken: bool,
}

impl World {
    pub(crate) fn ports(self: &Arc<Self>) -> Ports {
        Ports {
            hooks: Arc::new(Nobody),
            plugin_nodes: Arc::new(Nobody),
            knowledge: Arc::new(Nobody),
            web: Arc::new(Nobody),
            agents: Arc::new(Reporter(self.clone())),
            scripts: self.clone(),
            tools: self.clone(),
            model: self.clone(),
            default_model: None,
            prices: Arc::default(),
            people: Arc::new(Nobody),
            observer: Arc::new(Nobody),
            clock: Arc::new(SystemClock::default()),
            meter: Arc::new(hotcell_engine::Tally::default()),
        }
    }

    /// What was asked, in the order of texts.
    pub(crate) fn sorted(&self) -> Vec<String> {
        let mut asked = self.asked.lock().expect("whole").clone();
        asked.sort();
        asked
    }

    async fn asked(&self, what: String) {
        let hangs = self.hangs.contains(&what.as_str());
        self.asked.lock().expect("whole").push(what);
        if hangs {
            pending::<()>().await;
        }
    }
}

/// Knows the agent `reporter`.
struct Reporter(Arc<World>);

impl Agents for Reporter {
    fn find(&self, name: &str) -> Result<Callee, PortError> {
        if name != "reporter" {
            return Err(PortError::new("it is not there"));
        }
        Ok(Callee {
            graph: reporter(),
            scripts: self.0.clone(),
            tools: self.0.clone(),
            plugin_nodes: Arc::new(Nobody),
            knowledge: Arc::new(Nobody),
            hooks: Arc::new(Nobody),
            web: Arc::new(Nobody),
            agents: None,
            at_once: None,
        })
    }
}

fn used(usage: Usage) -> Account {
    Account::of("world", usage)
}

#[async_trait]
impl Scripts for World {
    async fn run(&self, call: ScriptCall) -> CallReport {
        let file = call.file.as_str();
        let json = |key: &str| call.state.get(key).unwrap_or_default();
        let text = |key: &str| serde_json::from_str::<String>(&json(key)).unwrap_or_default();
        let of = match file {
            "one" => json("x"),
            "turn" => json("n"),
            "fetch" | "write" => text("prompt"),
            _ => String::new(),
        };
        self.asked(format!("{file} {of}").trim().to_owned()).await;
        let result = match file {
            "one" => Ok(format!(r#"{{"output":{of}0}}"#)),
            "turn" => Ok(match of.parse::<i64>().unwrap_or_default() {
                n if n < 2 => format!(r#"{{"n":{},"_next":"turn"}}"#, n + 1),
                _ => r#"{"n":3}"#.to_owned(),
            }),
            "fetch" => Ok(format!(r#"{{"made":"aus {of}"}}"#)),
            "write" => Ok(format!(r#"{{"text":"Bericht {} ✓"}}"#, text("made"))),
            "count" => Ok(r#"{"turns":1}"#.to_owned()),
            "break" if self.is_broken => Err(CallError::Failed("die Platte ist voll 💾".into())),
            _ => Ok("{}".to_owned()),
        };
        CallReport { result, account: used(Usage { calls: 1, ..Usage::default() }), notices: Vec::new() }
    }
}

#[async_trait]
impl Tools for World {
    fn describe(&self, name: &str) -> Option<ToolSpec> {
        let parameters = serde_json::json!({ "type": "object" });
        Some(ToolSpec { name: name.into(), description: name.into(), parameters })
    }

    async fn call(&self, call: ToolCall<'_>) -> CallReport {
        self.asked(format!("{} {}{}", call.name, call.arguments, call.answers.concat())).await;
        let result = match (call.name, call.answers) {
            ("weather", _) => Ok(r#""22 °C ☀""#.to_owned()),
            (_, [answer]) => Ok(serde_json::to_string(answer).expect("JSON")),
            _ => Err(CallError::Asks("Wirklich löschen? ⚠".into())),
        };
        CallReport { result, account: used(Usage { calls: 1, ..Usage::default() }), notices: Vec::new() }
    }
}

#[async_trait]
impl Model for World {
    /// Calls the tool `weather` for one place after the other, or the tool `confirm` once, and then says what it heard.
    async fn complete(&self, request: Request, _on_text: Option<OnText<'_>>) -> Result<Reply, ModelError> {
        let told: Vec<&str> = request
            .messages
            .iter()
            .filter(|message| message.role == Role::Tool)
            .map(|message| message.content.as_str())
            .collect();
        let tool = request.tools[0].name.as_str();
        let what = format!("model with {} results of {tool}", told.len());
        let is_first = !self.asked.lock().expect("whole").contains(&what);
        self.asked(what.clone()).await;
        if is_first && what == self.refuses {
            return Err(ModelError::Status { status: 429, message: "später".into() });
        }
        let arguments = match (tool, told.len()) {
            ("weather", 0) => Some(r#"{"place":"Málaga"}"#),
            ("weather", 1) => Some(r#"{"place":"Łódź"}"#),
            ("confirm", 0) => Some("{}"),
            _ => None,
        };
        let usage = TokenUsage { input: 10, output: 5 };
        Ok(match arguments {
            Some(arguments) => {
                let call = ToolCallRequest {
                    id: format!("call-{}", told.len()),
                    name: tool.into(),
                    arguments: arguments.into(),
                };
                Reply { tool_calls: vec![call], finish: Finish::ToolCalls, usage, ..Reply::text("") }
            }
            None => {
                let heard: BTreeSet<&str> = told.into_iter().collect();
                let heard: Vec<&str> = heard.into_iter().collect();
                Reply { usage, ..Reply::text(format!("gehört: {}", heard.join(", "))) }
            }
        })
    }
}
