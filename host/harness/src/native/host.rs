//! What the host would answer, by the same policy as in a cell.

use std::collections::BTreeSet;
use std::sync::Arc;

use hotcell_cells::policy::{Decision, Request, decide, decide_url};
use hotcell_cells::{Capability, HttpExchange, HttpTape, KeyValueStore, StateView};
use serde_json::{Map, Value, json};
use url::Url;

use super::files;
use crate::case::{Call, Case};
use crate::play::State;
use crate::replies::{Replies, Store};

/// Keys of a store that are listed at once.
const MOST_KEYS: usize = 1_000;

/// What becomes of a call of the host.
pub(super) enum Answer {
    Value(Value),
    /// The kind of the contract's error, and its message
    Error(&'static str, String),
    /// The question has no answer yet
    Suspends(String),
}

/// The host of one case.
pub(super) struct Host<'a> {
    case: &'a Case,
    replies: Arc<Replies>,
    store: Store,
    state: State,
    answered: usize,
    denied: BTreeSet<String>,
}

impl<'a> Host<'a> {
    pub(super) fn new(case: &'a Case, replies: Arc<Replies>, call: &Call) -> Self {
        let state = match call {
            Call::Script(state) => state.clone(),
            _ => Map::new(),
        };
        let (store, state) = (Store::new(&case.kv), State(state));
        Self { case, replies, store, state, answered: 0, denied: BTreeSet::new() }
    }

    /// The capabilities that were wanted and not granted.
    pub(super) fn denied(&self) -> &BTreeSet<String> {
        &self.denied
    }

    /// Answers a call of a function by its interface and name, such as `kv.get`.
    pub(super) fn answer(&mut self, function: &str, arguments: &Value) -> Answer {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
        let (interface, _) = function.split_once('.').unwrap_or((function, ""));
        let allowed = match interface {
            "kv" => self.allows(&Request::KeyValue),
            "secrets" => self.allows(&Request::Secret { name: text("name") }),
            "llm" => self.allows(&Request::Model),
            "other_tools" => self.allows(&Request::Tool { name: text("name") }),
            "ask" => self.allows(&Request::Ask),
            "http" => match Url::parse(text("url"))
                .ok()
                .and_then(|url| decide_url(self.case.grants(), &url, text("method")))
            {
                Some(decision) => self.decided(decision),
                None => return Answer::Error("invalid-input", format!("`{}` is not a URL of a server", text("url"))),
            },
            _ => Ok(()),
        };
        if let Err(denied) = allowed {
            return denied;
        }
        match function {
            "config.get" => Answer::Value(json!(self.case.config.get(text("key")))),
            "state.get" => Answer::Value(json!(self.state.get(text("path")))),
            "state.all" => Answer::Value(json!(&*self.state.all())),
            "secrets.placeholder" => Answer::Value(json!(format!("<secret {}>", text("name")))),
            "ask.ask" => self.ask(text("question")),
            "llm.complete" => served(self.replies.complete_now(text("request"))),
            "other_tools.call" => served(self.replies.call_tool_now(text("name"), text("arguments"))),
            "files.read" | "files.write" | "files.entries" | "files.make_directory" | "files.remove" => {
                match files::perform(&self.case.grants().fs, function.trim_start_matches("files."), arguments) {
                    Ok(value) => Answer::Value(value),
                    Err((kind, message)) => Answer::Error(kind, message),
                }
            }
            "http.send" => self.send(arguments),
            "kv.get" | "kv.set" | "kv.delete" | "kv.keys" => self.keep(function, arguments),
            other => Answer::Error("other", format!("the host has no function `{other}`")),
        }
    }

    fn allows(&mut self, request: &Request<'_>) -> Result<(), Answer> {
        self.decided(decide(self.case.grants(), request))
    }

    fn decided(&mut self, decision: Decision) -> Result<(), Answer> {
        let Decision::Deny(capability) = decision else { return Ok(()) };
        Err(self.deny(&capability))
    }

    fn deny(&mut self, capability: &Capability) -> Answer {
        self.denied.insert(capability.to_string());
        Answer::Error("denied", format!("{capability} is not granted"))
    }

    fn ask(&mut self, question: &str) -> Answer {
        match self.case.answers.get(self.answered) {
            Some(answer) => {
                self.answered += 1;
                Answer::Value(json!(answer))
            }
            None => Answer::Suspends(question.to_owned()),
        }
    }

    fn send(&mut self, arguments: &Value) -> Answer {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let headers = arguments.get("headers").and_then(Value::as_object).into_iter().flatten();
        let headers = headers.map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()));
        let exchange = HttpExchange {
            method: text("method"),
            url: text("url"),
            headers: headers.collect(),
            body: text("body").into_bytes(),
        };
        match self.replies.reply(&exchange) {
            Ok(reply) => {
                let headers: Map<String, Value> =
                    reply.headers.into_iter().map(|(name, value)| (name, Value::from(value))).collect();
                let body = String::from_utf8_lossy(&reply.body).into_owned();
                Answer::Value(json!({ "status": reply.status, "headers": headers, "body": body }))
            }
            Err(message) => Answer::Error("unavailable", message),
        }
    }

    /// The store: values are lists of bytes.
    fn keep(&mut self, function: &str, arguments: &Value) -> Answer {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
        let done = match function {
            "kv.get" => self.store.get(text("key")).map(|found| json!(found)),
            "kv.set" => {
                let bytes: Vec<u8> = serde_json::from_value(arguments["value"].clone()).unwrap_or_default();
                self.store.set(text("key"), &bytes).map(|()| Value::Null)
            }
            "kv.delete" => self.store.delete(text("key")).map(|()| Value::Null),
            _ => self.store.keys(text("prefix"), MOST_KEYS).map(|keys| json!(keys)),
        };
        done.map_or_else(
            |error| Answer::Error("unavailable", format!("the store does not work: {error:?}")),
            Answer::Value,
        )
    }
}

fn served(result: Result<Value, String>) -> Answer {
    match result {
        Ok(value) => Answer::Value(json!(value.to_string())),
        Err(message) => Answer::Error("unavailable", message),
    }
}
