//! A plugin that does what it is told, good or bad: a tool that uses each capability, and hooks that its settings
//! steer. Tests use it to see that the host lets through what was granted, and nothing else.

use contract::exports::hotcell::plugin::call_tool::{Error, Guest as Tools, Json};
use contract::exports::hotcell::plugin::connect::{Guest as Connect, Reply, Request};
use contract::exports::hotcell::plugin::hook::{Guest as Hook, Verdict};
use contract::exports::hotcell::plugin::run_node::{Guest as Node, Outcome};
use contract::hotcell::plugin::types::Failure;
use contract::hotcell::plugin::{ask, config, kv, llm, log, other_tools, secrets};
use serde_json::{Value, json};

mod contract {
    wit_bindgen::generate!({
        inline: "package test:probe; world probe {
            include hotcell:plugin/tools@0.2.0;
            include hotcell:plugin/hooks@0.2.0;
            include hotcell:plugin/node@0.2.0;
            include hotcell:plugin/connector@0.2.0;
        }",
        path: "../../../wit",
        generate_all,
    });
}

struct Probe;

impl Tools for Probe {
    /// Does the one thing that the arguments name, and answers with what came of it.
    fn call(_: String, arguments: Json) -> Result<Json, Error> {
        let arguments: Value = serde_json::from_str(&arguments).map_err(|error| invalid(&error.to_string()))?;
        let text = |key: &str| arguments[key].as_str().unwrap_or_default().to_owned();
        match text("do").as_str() {
            "say" => Ok(arguments["text"].to_string()),
            "put out" => Ok(text("text")),
            "model" => llm::complete(&json!({ "messages": [{ "role": "user", "content": text("text") }] }).to_string()),
            "tool" => other_tools::call(&text("tool"), &arguments["arguments"].to_string()),
            "ask" => ask::ask(&text("text")).map(|answer| json!(answer).to_string()),
            "secret" => secrets::placeholder(&text("name")).map(|placeholder| json!(placeholder).to_string()),
            "remember" => {
                let before = kv::get("k")?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
                kv::set("k", text("text").as_bytes())?;
                Ok(json!(before).to_string())
            }
            // Calls a tool between a look at its store and a change of it.
            "remember around" => {
                kv::set("k", b"before")?;
                let called = other_tools::call(&text("tool"), &arguments["arguments"].to_string())?;
                let after = kv::get("k")?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
                kv::set("k", b"at the end")?;
                Ok(json!([called, after]).to_string())
            }
            "loop" => endless(),
            "flood" => loop {
                log::log(log::Level::Error, &"flood ".repeat(1_000));
            },
            other => Err(invalid(&format!("there is nothing to do like `{other}`"))),
        }
    }
}

impl Hook for Probe {
    /// Does what the setting with the point's name says: nothing, `refuse`, `trap`, `loop`, or the change of one key
    /// as a JSON object.
    fn on(point: String, event: Json) -> Result<Verdict, Error> {
        log::log(log::Level::Info, &format!("{point} {event}"));
        match config::get(&point).as_deref() {
            None => Ok(Verdict::Proceed),
            Some("refuse") => Ok(Verdict::Refuse(failure(&format!("not at {point}")))),
            Some("trap") => panic!("told to"),
            Some("loop") => endless(),
            Some(change) => {
                let mut event: Value = serde_json::from_str(&event).map_err(|error| invalid(&error.to_string()))?;
                let change: Value = serde_json::from_str(change).map_err(|error| invalid(&error.to_string()))?;
                merge(&mut event, &change);
                Ok(Verdict::Change(event.to_string()))
            }
        }
    }
}

impl Node for Probe {
    /// Answers with its fields and inputs, asks first if an input `ask` says so, and leaves by the input `branch`.
    fn run(_: String, fields: Json, inputs: Json) -> Result<Outcome, Error> {
        let parse = |text: &str| serde_json::from_str::<Value>(text).map_err(|error| invalid(&error.to_string()));
        let (fields, inputs) = (parse(&fields)?, parse(&inputs)?);
        let answer = match inputs["ask"].as_str() {
            Some(question) => Some(ask::ask(question)?),
            None => None,
        };
        Ok(Outcome {
            outputs: json!({ "fields": fields, "inputs": inputs, "answer": answer }).to_string(),
            branch: inputs["branch"].as_str().map(str::to_owned),
            metadata: Vec::new(),
        })
    }
}

impl Connect for Probe {
    /// Takes what contains `later` and says where it expects the answer; answers everything else at once.
    fn send(request: Request) -> Result<Reply, Error> {
        if request.input.contains("later") {
            if let Some(callback) = &request.callback {
                log::log(log::Level::Info, &format!("callback {} {}", callback.url, callback.session));
            }
            return Ok(Reply::Accepted);
        }
        Ok(Reply::Done(format!("{{\"sent\":{},\"config\":{}}}", request.input, request.config)))
    }

    /// Answers with what came and with what it had been sent for.
    fn receive(request: Request, body: Json) -> Result<Json, Error> {
        match body.as_str() {
            "\"nonsense\"" => Err(invalid("this is no answer")),
            _ => Ok(format!("{{\"received\":{body},\"for\":{}}}", request.input)),
        }
    }
}

/// Puts what `change` names into `value`, key by key and entry by entry.
fn merge(value: &mut Value, change: &Value) {
    match (value, change) {
        (Value::Object(value), Value::Object(change)) => {
            for (key, change) in change {
                merge(value.entry(key.clone()).or_insert(Value::Null), change);
            }
        }
        (Value::Array(value), Value::Array(change)) => {
            value.iter_mut().zip(change).for_each(|(value, change)| merge(value, change));
        }
        (value, change) => *value = change.clone(),
    }
}

fn endless() -> ! {
    loop {
        std::hint::black_box(0);
    }
}

fn failure(message: &str) -> Failure {
    Failure { message: message.to_owned(), metadata: Vec::new() }
}

fn invalid(message: &str) -> Error {
    Error::InvalidInput(failure(message))
}

contract::export!(Probe with_types_in contract);
