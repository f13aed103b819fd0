//! Entries as JSON text, the form in which they are stored.

use std::time::{Duration, SystemTime};

use hotcell_budget::Account;
use hotcell_graph::value::{Number, parse_kept_json};
use hotcell_graph::{Key, List, Object, Value};
use serde::Serialize;

use crate::entry::{ClientCall, Completed, Fact, Question, RunHeader, Write};

/// The kind and the body of a fact, as two columns.
pub(crate) fn encode(fact: &Fact) -> (&'static str, String) {
    let mut body = Body::default();
    let kind = match fact {
        Fact::Completed(completed) => {
            body.insert("node", completed.node.as_str());
            if !completed.writes.is_empty() {
                let writes = completed.writes.iter().map(|write| (&*write.key, &write.value));
                body.insert("writes", writes.collect::<Vec<(&str, &Value)>>());
            }
            if let Some(next) = &completed.next {
                body.insert("next", next);
            }
            if let Some(output) = &completed.output {
                body.insert("output", output.as_str());
            }
            if let Some(failure) = &completed.failure {
                body.insert("failure", failure.as_str());
                if let Some(kind) = &completed.failure_kind {
                    body.insert("failure_kind", kind.as_str());
                }
                if completed.handled {
                    body.insert("handled", true);
                }
            }
            body.insert("us", number(completed.elapsed.as_micros() as u64));
            body.insert_account(&completed.account);
            "completed"
        }
        Fact::Effect { number: count, kind, subject, answer, account } => {
            body.insert("number", *count);
            body.insert("kind", kind.as_str());
            if !subject.is_empty() {
                body.insert("subject", subject.as_str());
            }
            body.insert("answer", answer);
            body.insert_account(account);
            "effect"
        }
        Fact::Failed { number: count, error, account } => {
            if let Some(count) = count {
                body.insert("number", *count);
            }
            body.insert("error", error.as_str());
            body.insert_account(account);
            "failed"
        }
        Fact::Started(header) => {
            body.insert("graph", header.graph.as_str());
            body.insert("source", header.source.as_str());
            body.insert("digest", header.digest.as_str());
            if header.kept {
                body.insert("kept", true);
            }
            body.insert("given", Value::Object(header.given.clone()));
            "started"
        }
        Fact::Resumed => "resumed",
        Fact::Retried => "retried",
        Fact::Forked => "forked",
        Fact::Withheld { effect } => {
            body.insert("effect", effect.as_str());
            "withheld"
        }
        Fact::Revised { digest } => {
            body.insert("digest", digest.as_str());
            "revised"
        }
        Fact::Waiting => "waiting",
        Fact::PauseAsked => "pause-asked",
        Fact::Paused => "paused",
        Fact::Cancelled => "cancelled",
        Fact::Ended { result, node } => {
            match result {
                Ok(output) => body.insert("output", output.as_str()),
                Err(error) => body.insert("error", error.as_str()),
            }
            if let Some(node) = node {
                body.insert("node", node.as_str());
            }
            "ended"
        }
        Fact::Attempt { attempt, error, account } => {
            body.insert("number", *attempt);
            body.insert("error", error.as_str());
            body.insert_account(account);
            "attempt"
        }
        Fact::TimerSet { node, at } => {
            body.insert("node", node.as_str());
            body.insert("at", time(*at));
            "timer-set"
        }
        Fact::TimerFired { node } => {
            body.insert("node", node.as_str());
            "timer-fired"
        }
        Fact::Stopped { reason } => {
            body.insert("reason", reason.as_str());
            "stopped"
        }
        Fact::Asked { number: count, question } => {
            body.insert("number", *count);
            body.insert("node", question.node.as_str());
            body.insert("text", question.text.as_str());
            body.insert("options", &question.options);
            if let Some(default) = &question.default {
                body.insert("default", default.as_str());
            }
            if let Some(call) = &question.call {
                body.insert("tool", call.tool.as_str());
                body.insert("arguments", &call.arguments);
            }
            if let Some(seat) = &question.seat {
                body.insert("seat", seat.as_str());
            }
            if let Some(expires) = question.expires {
                body.insert("expires", time(expires));
            }
            if !question.operator_ids.is_empty() {
                body.insert("operators", &question.operator_ids);
            }
            if let Some(context) = &question.context {
                body.insert("context", context);
            }
            if let Some(denial) = &question.denial {
                body.insert("denial", denial);
            }
            "asked"
        }
        Fact::Expired { number: count } => {
            body.insert("number", *count);
            "expired"
        }
        Fact::Answered { number: count, text } => {
            body.insert("number", *count);
            body.insert("text", text.as_str());
            "answered"
        }
    };
    (kind, body.into_text())
}

/// Reads back what [`encode`] wrote.
pub(crate) fn decode(kind: &str, body: &str) -> Result<Fact, String> {
    let body = parse_kept_json(body).map_err(|error| error.to_string())?;
    let body = body.as_object().ok_or("the body is not an object")?;
    let text = |name: &str| body.get(name).and_then(Value::as_text).map(str::to_owned);
    let count = || match body.get("number") {
        Some(Value::Number(Number::Int(count))) => u32::try_from(*count).map_err(|_| "a number is out of range"),
        _ => Err("a number is missing"),
    };
    let account = || match body.get("usage") {
        Some(usage) => serde_json::from_value::<Account>(usage.into()).map_err(|error| error.to_string()),
        None => Ok(Account::default()),
    };
    match kind {
        "completed" => {
            let writes = body.get("writes").and_then(Value::as_list);
            let writes = writes.map_or(Ok(Vec::new()), |list| list.iter().map(write).collect())?;
            let elapsed = match body.get("us") {
                Some(Value::Number(Number::Int(us))) => Duration::from_micros(u64::try_from(*us).unwrap_or(0)),
                _ => Duration::ZERO,
            };
            Ok(Fact::Completed(Completed {
                node: text("node").ok_or("the node is missing")?,
                writes,
                next: body.get("next").and_then(Value::as_list).map(text_list).transpose()?,
                output: text("output"),
                failure: text("failure"),
                failure_kind: text("failure_kind"),
                handled: body.get("handled").is_some_and(|handled| *handled == true.into()),
                elapsed,
                account: account()?,
            }))
        }
        "effect" => Ok(Fact::Effect {
            number: count()?,
            kind: text("kind").ok_or("the kind is missing")?,
            subject: text("subject").unwrap_or_default(),
            answer: body.get("answer").cloned().unwrap_or_default(),
            account: account()?,
        }),
        "failed" => Ok(Fact::Failed {
            number: body.get("number").is_some().then(count).transpose()?,
            error: text("error").ok_or("the error is missing")?,
            account: account()?,
        }),
        "started" => Ok(Fact::Started(RunHeader {
            graph: text("graph").ok_or("the graph is missing")?,
            source: text("source").ok_or("the source is missing")?,
            digest: text("digest").ok_or("the digest is missing")?,
            kept: body.get("kept") == Some(&Value::Bool(true)),
            given: body.get("given").and_then(Value::as_object).cloned().unwrap_or_default(),
        })),
        "resumed" => Ok(Fact::Resumed),
        "retried" => Ok(Fact::Retried),
        "forked" => Ok(Fact::Forked),
        "withheld" => Ok(Fact::Withheld { effect: text("effect").ok_or("the effect is missing")? }),
        "revised" => Ok(Fact::Revised { digest: text("digest").ok_or("the digest is missing")? }),
        "waiting" => Ok(Fact::Waiting),
        "pause-asked" => Ok(Fact::PauseAsked),
        "paused" => Ok(Fact::Paused),
        "cancelled" => Ok(Fact::Cancelled),
        "ended" => Ok(Fact::Ended {
            result: match (text("output"), text("error")) {
                (Some(output), _) => Ok(output),
                (None, Some(error)) => Err(error),
                (None, None) => return Err("the result is missing".to_owned()),
            },
            node: text("node"),
        }),
        "attempt" => Ok(Fact::Attempt {
            attempt: count()?,
            error: text("error").ok_or("the error is missing")?,
            account: account()?,
        }),
        "timer-set" => Ok(Fact::TimerSet {
            node: text("node").ok_or("the node is missing")?,
            at: read_time(body, "at").ok_or("the time is missing")?,
        }),
        "timer-fired" => Ok(Fact::TimerFired { node: text("node").ok_or("the node is missing")? }),
        "stopped" => Ok(Fact::Stopped { reason: text("reason").ok_or("the reason is missing")? }),
        "asked" => Ok(Fact::Asked {
            number: count()?,
            question: Question {
                id: String::new(),
                node: text("node").ok_or("the node is missing")?,
                text: text("text").ok_or("the text is missing")?,
                options: body.get("options").and_then(Value::as_list).map(text_list).transpose()?.unwrap_or_default(),
                default: text("default"),
                call: text("tool")
                    .map(|tool| ClientCall { tool, arguments: body.get("arguments").cloned().unwrap_or_default() }),
                seat: text("seat"),
                expires: read_time(body, "expires"),
                operator_ids: body
                    .get("operators")
                    .and_then(Value::as_list)
                    .map(text_list)
                    .transpose()?
                    .unwrap_or_default(),
                context: body.get("context").cloned(),
                denial: body.get("denial").cloned(),
            },
        }),
        "expired" => Ok(Fact::Expired { number: count()? }),
        "answered" => Ok(Fact::Answered { number: count()?, text: text("text").ok_or("the text is missing")? }),
        other => Err(format!("`{other}` is not a kind of entry")),
    }
}

/// The body of an entry as it is written: a JSON object.
#[derive(Default)]
struct Body(Vec<u8>);

impl Body {
    /// Writes one more entry; its name has nothing in it that would have to be escaped.
    fn insert(&mut self, name: &'static str, value: impl Serialize) {
        self.0.push(if self.0.is_empty() { b'{' } else { b',' });
        self.0.push(b'"');
        self.0.extend_from_slice(name.as_bytes());
        self.0.extend_from_slice(b"\":");
        // An entry without it would be another one. Texts, finite numbers and objects whose keys are texts can always be written.
        serde_json::to_writer(&mut self.0, &value).expect("what an entry has can always be written");
    }

    fn insert_account(&mut self, account: &Account) {
        if !account.is_empty() {
            self.insert("usage", account);
        }
    }

    fn into_text(mut self) -> String {
        if self.0.is_empty() {
            self.0.push(b'{');
        }
        self.0.push(b'}');
        String::from_utf8(self.0).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }
}

fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A time, in microseconds.
fn time(at: SystemTime) -> i64 {
    number(at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_micros() as u64)
}

fn read_time(body: &Object, key: &str) -> Option<SystemTime> {
    match body.get(key) {
        Some(Value::Number(Number::Int(at))) => {
            Some(SystemTime::UNIX_EPOCH + Duration::from_micros(u64::try_from(*at).unwrap_or(0)))
        }
        _ => None,
    }
}

fn text_list(list: &List) -> Result<Vec<String>, &'static str> {
    list.iter().map(|item| item.as_text().map(str::to_owned).ok_or("a text is missing")).collect()
}

fn write(value: &Value) -> Result<Write, &'static str> {
    let pair = value.as_list().ok_or("a write is not a pair")?;
    match (pair.get(0), pair.get(1)) {
        (Some(Value::Text(key)), Some(value)) => Ok(Write { key: Key::clone(key), value: value.clone() }),
        _ => Err("a write is not a pair"),
    }
}
