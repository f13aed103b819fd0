//! The form of the steps of a case.

use std::fmt;

use indexmap::IndexMap;
use serde::Deserialize;
use serde::de::{self, Deserializer};
use serde_json::Value;

/// A step, with exactly one of the first seven keys.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenStep {
    request: Option<Request>,
    parallel: Option<Vec<Step>>,
    stream: Option<Stream>,
    settle: Option<Settle>,
    advance_s: Option<f64>,
    restart: Option<Restart>,
    note: Option<String>,
    expect: Option<ExpectReply>,
    save: Option<IndexMap<String, String>>,
    expect_any_order: Option<Vec<ExpectReply>>,
    expect_events: Option<Vec<ExpectEvent>>,
    until: Option<String>,
    disconnect_after: Option<String>,
    down_s: Option<f64>,
}

/// What is done.
#[derive(Debug)]
pub enum Step {
    /// One request
    Request {
        /// What is sent
        request: Box<Request>,
        /// What has to come back
        expect: ExpectReply,
        /// What is kept of the reply: name to dotted path
        save: IndexMap<String, String>,
    },
    /// Several requests at the same time
    Parallel {
        /// The requests
        steps: Vec<Step>,
        /// Each matches another one of the replies
        expect_any_order: Vec<ExpectReply>,
    },
    /// Server-sent events
    Stream {
        /// What is sent
        stream: Stream,
        /// What has to come in this order
        expect: Vec<ExpectEvent>,
        /// The event after which nothing more is read
        until: Option<String>,
        /// The event after which the client goes away
        disconnect_after: Option<String>,
    },
    /// Waits until nothing is in flight, or a session has a status
    Settle(Settle),
    /// Moves the clock on by so many seconds
    Advance(f64),
    /// Stops the server and starts it again
    Restart {
        /// Whether it is killed
        is_kill: bool,
        /// How long it is down, on the mesh's clock
        down_s: f64,
    },
    /// A comment
    Note,
}

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Step::of(WrittenStep::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

impl Step {
    fn of(written: WrittenStep) -> Result<Self, String> {
        let WrittenStep { request, parallel, stream, settle, advance_s, restart, note, .. } = written;
        let kinds = [
            ("request", request.is_some()),
            ("parallel", parallel.is_some()),
            ("stream", stream.is_some()),
            ("settle", settle.is_some()),
            ("advance_s", advance_s.is_some()),
            ("restart", restart.is_some()),
            ("note", note.is_some()),
        ];
        let there: Vec<&str> = kinds.iter().filter(|(_, is_there)| *is_there).map(|(kind, _)| *kind).collect();
        let [kind] = there[..] else {
            let all: Vec<&str> = kinds.iter().map(|(kind, _)| *kind).collect();
            return Err(format!("a step has exactly one of {}, and here is {there:?}", all.join(", ")));
        };
        let beside = [
            ("expect", written.expect.is_some(), "request"),
            ("save", written.save.is_some(), "request"),
            ("expect_any_order", written.expect_any_order.is_some(), "parallel"),
            ("expect_events", written.expect_events.is_some(), "stream"),
            ("until", written.until.is_some(), "stream"),
            ("disconnect_after", written.disconnect_after.is_some(), "stream"),
            ("down_s", written.down_s.is_some(), "restart"),
        ];
        if let Some((key, _, of)) = beside.iter().find(|(_, is_there, of)| *is_there && *of != kind) {
            return Err(format!("`{key}` belongs to a step `{of}`, not to `{kind}`"));
        }
        Ok(match (request, parallel, stream, settle, advance_s, restart) {
            (Some(request), ..) => {
                if request.json.is_some() && request.text.is_some() {
                    return Err("a request has `json` or `text`, not both".to_owned());
                }
                let expect = written.expect.ok_or("a step `request` needs `expect`")?;
                Step::Request { request: Box::new(request), expect, save: written.save.unwrap_or_default() }
            }
            (_, Some(steps), ..) => {
                if steps.iter().any(|step| !matches!(step, Step::Request { .. })) {
                    return Err("`parallel` has requests and nothing else".to_owned());
                }
                Step::Parallel { steps, expect_any_order: written.expect_any_order.unwrap_or_default() }
            }
            (_, _, Some(stream), ..) => Step::Stream {
                stream,
                expect: written.expect_events.unwrap_or_default(),
                until: written.until,
                disconnect_after: written.disconnect_after,
            },
            (_, _, _, Some(settle), ..) => Step::Settle(settle),
            (_, _, _, _, Some(seconds), _) if seconds >= 0.0 => Step::Advance(seconds),
            (_, _, _, _, Some(_), _) => return Err("the clock is not set back".to_owned()),
            (_, _, _, _, _, Some(restart)) => {
                Step::Restart { is_kill: restart.is_kill, down_s: written.down_s.unwrap_or_default().max(0.0) }
            }
            _ => Step::Note,
        })
    }
}

/// A request to the mesh's server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// `POST` where it is absent
    pub method: Option<String>,
    /// Path and query, or a whole address of this server
    pub path: String,
    /// Headers
    #[serde(default)]
    pub headers: IndexMap<String, String>,
    /// A JSON body
    pub json: Option<Value>,
    /// A text body
    pub text: Option<String>,
    /// How it is signed
    pub signed: Option<Signed>,
    /// The value of `X-API-Key`
    pub key: Option<String>,
}

/// How a request is signed.
#[derive(Clone, Debug, Default)]
pub struct Signed {
    /// With the older scheme, over the body alone
    pub is_legacy: bool,
    /// Another secret than the case's
    pub secret: Option<String>,
    /// How far its time is from now
    pub timestamp_offset_s: i64,
    /// What is used once; absent means something new
    pub nonce: Option<String>,
    /// Whether the body is changed afterwards
    pub tamper: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSigned {
    scheme: Option<String>,
    secret: Option<String>,
    #[serde(default)]
    timestamp_offset_s: i64,
    nonce: Option<String>,
    #[serde(default)]
    tamper: bool,
}

impl<'de> Deserialize<'de> for Signed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        if value == Value::Bool(true) {
            return Ok(Signed::default());
        }
        let written: WrittenSigned = serde_json::from_value(value).map_err(de::Error::custom)?;
        let is_legacy = match written.scheme.as_deref() {
            None | Some("v2") => false,
            Some("legacy") => true,
            Some(other) => return Err(de::Error::custom(format!("there is no scheme `{other}`"))),
        };
        let WrittenSigned { secret, timestamp_offset_s, nonce, tamper, .. } = written;
        Ok(Signed { is_legacy, secret, timestamp_offset_s, nonce, tamper })
    }
}

/// A request whose reply is a stream of events.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// Path and query
    pub path: String,
    /// The JSON body
    pub json: Value,
}

/// What has to come back.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectReply {
    /// One of these
    #[serde(deserialize_with = "one_or_more")]
    pub status: Vec<u16>,
    /// A subset of the JSON body
    pub json: Option<Value>,
    /// A text matcher of the body
    pub text: Option<Value>,
    /// Headers, each a text or a text matcher
    #[serde(default)]
    pub headers: IndexMap<String, Value>,
}

impl fmt::Display for ExpectReply {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status: Vec<String> = self.status.iter().map(u16::to_string).collect();
        let mut line = status.join(" or ");
        for (name, value) in &self.headers {
            line += &format!(" {name}: {value}");
        }
        for body in self.json.iter().chain(&self.text) {
            line += &format!(" {body}");
        }
        formatter.write_str(&line)
    }
}

/// An event of a stream.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectEvent {
    /// Its name
    pub event: String,
    /// A subset of its data
    pub data: Option<Value>,
}

/// What is waited for.
#[derive(Clone, Debug)]
pub enum Settle {
    /// Nothing is in flight
    All,
    /// A session has one of these statuses
    Session(String, Vec<String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSettle {
    session: String,
    #[serde(deserialize_with = "one_or_more")]
    status: Vec<String>,
}

impl<'de> Deserialize<'de> for Settle {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Bool(true) => Ok(Settle::All),
            other => {
                let WrittenSettle { session, status } = serde_json::from_value(other).map_err(de::Error::custom)?;
                Ok(Settle::Session(session, status))
            }
        }
    }
}

/// How the server goes down.
#[derive(Debug)]
struct Restart {
    is_kill: bool,
}

impl<'de> Deserialize<'de> for Restart {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Bool(true) => Ok(Restart { is_kill: false }),
            Value::String(word) if word == "kill" => Ok(Restart { is_kill: true }),
            other => Err(de::Error::custom(format!("`restart` is true or \"kill\", not {other}"))),
        }
    }
}

/// A list, or one item in place of it.
pub(super) fn one_or_more<'de, T: de::DeserializeOwned, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let items = match Value::deserialize(deserializer)? {
        Value::Array(items) if items.is_empty() => return Err(de::Error::custom("a list with nothing in it")),
        Value::Array(items) => items,
        one => vec![one],
    };
    let items = items.into_iter().map(serde_json::from_value).collect::<Result<_, _>>();
    items.map_err(de::Error::custom)
}
