//! The form of `case.json` of the dialect `leafmesh`: what all cases have ([`CaseFile`]), and what is its own.

use std::fmt;
use std::path::Path;

use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::step::{Step, one_or_more};
use crate::case_file::{CaseFile, CaseFileError, RequestOrder};

/// Keys of its own.
const OWN: [&str; 5] = ["steps", "clock", "agents", "http", "auth"];
/// Keys of its own in `expect`.
const OWN_EXPECT: [&str; 12] = [
    "runs",
    "runs_exact",
    "inputs",
    "order",
    "events",
    "events_exclude",
    "max_concurrent",
    "http_requests",
    "http_requests_order",
    "http_requests_include",
    "http_requests_exclude",
    "warnings_exclude",
];

/// A case.
#[derive(Debug)]
pub struct MeshCase {
    /// What all cases have. Its model has no replies where no step is played
    pub common: CaseFile,
    /// What is of this dialect
    pub own: Own,
    /// What has to come out, of this dialect
    pub expect: MeshExpect,
}

/// What a case has of its own.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Own {
    /// What is done, in order; none where the file is only loaded
    pub steps: Option<Vec<Step>>,
    /// Where the clock stands at the beginning, RFC 3339
    pub clock: Option<String>,
    /// What the functions of agents do
    pub agents: IndexMap<String, Behaviour>,
    /// Scripted outside servers
    pub http: Vec<Exchange>,
    /// The keys that the server knows
    pub auth: Option<Auth>,
}

/// The keys that the server knows.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Auth {
    /// Keys of people who use the mesh
    pub keys: Vec<String>,
    /// Keys of administrators
    #[serde(default)]
    pub admin_keys: Vec<String>,
}

/// What the function of an agent does.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "behaviour", rename_all = "snake_case", deny_unknown_fields)]
pub enum Behaviour {
    /// Its input is its output
    Echo {},
    /// Always this
    Constant {
        /// The output
        value: Value,
    },
    /// The n-th run gives the n-th value, the last one again and again
    Sequence {
        /// The outputs
        values: Vec<Value>,
    },
    /// Fails
    Fail {
        /// With this
        message: String,
    },
    /// Fails so often, and gives the value then
    FailFirst {
        /// How often
        times: u64,
        /// With this
        message: String,
        /// The output
        value: Value,
    },
    /// Takes its time on the mesh's clock
    Slow {
        /// Milliseconds
        ms: u64,
        /// The output
        value: Value,
    },
    /// Takes values out of its input
    Pick {
        /// Output name to dotted path
        fields: IndexMap<String, String>,
    },
}

/// Conditions on a request to an outside server, and what it gets.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    /// The method
    pub method: Option<String>,
    /// The path
    pub path: Option<String>,
    /// All parameters of the query
    pub query: Option<IndexMap<String, String>>,
    /// Headers that the request has, each a text or a text matcher
    pub headers: Option<IndexMap<String, Value>>,
    /// A subset of the JSON body
    pub json: Option<Value>,
    /// The body as a form
    pub form: Option<IndexMap<String, String>>,
    /// The body as text
    pub text: Option<Value>,
    /// What is kept of the JSON body: name to dotted path
    #[serde(default)]
    pub save: IndexMap<String, String>,
    /// What is answered, one after the other; an expectation has none
    #[serde(default, deserialize_with = "one_or_more")]
    pub reply: Vec<Reply>,
}

impl fmt::Display for Exchange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Exchange { method, path, query, headers, json, form, text, .. } = self;
        let mut line = format!("{} {}", method.as_deref().unwrap_or("any"), path.as_deref().unwrap_or("request"));
        for (what, pairs) in [("query", query), ("form", form)] {
            if let Some(pairs) = pairs {
                line += &format!(" {what} {pairs:?}");
            }
        }
        for (name, value) in headers.iter().flatten() {
            line += &format!(" {name}: {value}");
        }
        for body in json.iter().chain(text) {
            line += &format!(" {body}");
        }
        formatter.write_str(&line)
    }
}

/// What an outside server answers.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reply {
    /// 200 where it is absent
    pub status: Option<u16>,
    /// A JSON body
    pub json: Option<Value>,
    /// A text body
    pub text: Option<String>,
    /// Further headers
    #[serde(default)]
    pub headers: IndexMap<String, String>,
    /// How late it comes, on the mesh's clock
    #[serde(default)]
    pub delay_ms: u64,
}

/// What has to come out, of this dialect.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MeshExpect {
    /// How often agents ran
    pub runs: IndexMap<String, usize>,
    /// Whether all others did not run
    pub runs_exact: bool,
    /// What agents were given
    pub inputs: Vec<ExpectInput>,
    /// The order in which agents began
    pub order: Vec<String>,
    /// What the mesh said in this order
    pub events: Vec<Value>,
    /// What it did not say
    pub events_exclude: Vec<String>,
    /// How many runs of an agent were under way at once
    pub max_concurrent: IndexMap<String, usize>,
    /// What outside servers are asked: exactly this
    pub http_requests: Option<Vec<Exchange>>,
    /// Whether the order of these counts
    pub http_requests_order: Option<RequestOrder>,
    /// What they are asked in this order, among others
    pub http_requests_include: Vec<Exchange>,
    /// What they are not asked
    pub http_requests_exclude: Vec<Exchange>,
    /// What no warning of loading says
    pub warnings_exclude: Vec<String>,
}

/// What an agent was given.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectInput {
    /// The agent
    pub agent: String,
    /// Which of its runs, from 1
    #[serde(default = "first")]
    pub nth: usize,
    /// A subset of its input
    pub input: Value,
    /// Keys that it has not
    #[serde(default)]
    pub excludes: Vec<String>,
}

fn first() -> usize {
    1
}

/// Reads the case of a directory.
///
/// # Errors
/// As [`CaseFile::read`].
pub fn read(directory: &Path) -> Result<MeshCase, CaseFileError> {
    parse(&std::fs::read_to_string(directory.join("case.json"))?)
}

/// Reads a case from its text.
///
/// # Errors
/// As [`CaseFile::parse`].
pub fn parse(text: &str) -> Result<MeshCase, CaseFileError> {
    let mut whole: Map<String, Value> = serde_json::from_str(text)?;
    let own: Own = serde_json::from_value(taken(&mut whole, &OWN))?;
    let expect = whole.get_mut("expect").and_then(Value::as_object_mut);
    let expect = expect.map(|expect| taken(expect, &OWN_EXPECT)).unwrap_or_else(|| Value::Object(Map::new()));
    let expect: MeshExpect = serde_json::from_value(expect)?;
    if own.steps.is_none() {
        // Nobody is asked.
        whole.remove("model");
    }
    let common = CaseFile::parse(&Value::Object(whole).to_string())?;
    Ok(MeshCase { common, own, expect })
}

/// Takes these entries out of an object.
fn taken(object: &mut Map<String, Value>, keys: &[&str]) -> Value {
    keys.iter().filter_map(|key| object.remove(*key).map(|value| ((*key).to_owned(), value))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::parse;

    fn case(add: &[(&str, Value)]) -> Value {
        let mut case = json!({
            "title": "t", "dialect": "leafmesh", "covers": [], "entry": "mesh.yaml", "why": "w", "steps": [],
            "expect": {"status": "completed"},
        });
        for (key, value) in add {
            case[key] = value.clone();
        }
        case
    }

    fn refused(add: &[(&str, Value)], by: &str) {
        let error = parse(&case(add).to_string()).expect_err(by).to_string();
        assert!(error.contains(by), "{error}");
    }

    #[test]
    fn what_is_documented_is_read() {
        let request = json!({"path": "/x", "json": {}, "signed": {"scheme": "legacy", "tamper": true}, "key": "k"});
        let steps = json!([
            {"request": request, "expect": {"status": [200, 202], "json": {}, "text": {"contains": "a"}, "headers": {"x": {"absent": true}}}, "save": {"A": "b.c"}},
            {"parallel": [{"request": {"path": "/x", "signed": true, "text": "a"}, "expect": {"status": 200}}], "expect_any_order": [{"status": 409}]},
            {"stream": {"path": "/s", "json": {}}, "expect_events": [{"event": "start", "data": {}}], "until": "result"},
            {"settle": true}, {"settle": {"session": "s", "status": "completed"}}, {"advance_s": 1.5},
            {"restart": true, "down_s": 5}, {"restart": "kill"}, {"note": "n"},
        ]);
        let agents = json!({
            "a": {"behaviour": "echo"}, "b": {"behaviour": "fail_first", "times": 1, "message": "m", "value": {}},
            "c": {"behaviour": "pick", "fields": {"a": "b.c"}}, "d": {"behaviour": "slow", "ms": 5, "value": {}},
        });
        let http = json!([{"path": "/x", "headers": {"a": {"contains": "b"}}, "save": {"R": "id"},
            "reply": [{"json": {}, "delay_ms": 3, "headers": {"a": "b"}}, {"status": 500}]}]);
        let expect = json!({
            "status": "completed", "runs": {"a": 1}, "runs_exact": true, "inputs": [{"agent": "a", "input": {}}],
            "order": ["a"], "events": [{"type": "AGENT_ERROR"}], "events_exclude": ["X"], "max_concurrent": {"a": 1},
            "http_requests": [], "http_requests_order": "any", "http_requests_include": [{"path": "/x"}],
            "http_requests_exclude": [{}], "warnings_exclude": ["w"], "warnings_contain": [], "model_calls": 0,
        });
        let read = parse(
            &case(&[
                ("steps", steps),
                ("agents", agents),
                ("http", http),
                ("expect", expect),
                ("clock", json!("2026-01-01T00:00:00Z")),
                ("auth", json!({"keys": ["a"]})),
                ("model", json!([{"content": "x"}])),
            ])
            .to_string(),
        )
        .expect("a case");
        assert_eq!(read.own.steps.map(|steps| steps.len()), Some(9));
        assert_eq!(read.own.http[0].reply.len(), 2);
        assert_eq!(read.common.expect.model_calls, Some(0));
    }

    #[test]
    fn what_is_not_documented_is_refused_by_its_name() {
        let step = |step: Value| [("steps", json!([step]))];
        refused(&step(json!({"request": {"path": "/x"}, "settle": true})), "exactly one of");
        refused(&step(json!({"sleep": 5})), "unknown field `sleep`");
        refused(&step(json!({"request": {"path": "/x"}})), "needs `expect`");
        refused(
            &step(json!({"request": {"path": "/x", "body": 1}, "expect": {"status": 200}})),
            "unknown field `body`",
        );
        refused(
            &step(json!({"request": {"path": "/x"}, "expect": {"status": 200, "body": 1}})),
            "unknown field `body`",
        );
        refused(&step(json!({"request": {"path": "/x"}, "expect": {"status": []}})), "nothing in it");
        refused(&step(json!({"settle": true, "save": {}})), "`save` belongs to a step `request`");
        refused(&step(json!({"settle": "now"})), "invalid type");
        refused(&step(json!({"restart": "gently"})), "`restart` is true or");
        refused(&step(json!({"advance_s": -1})), "not set back");
        refused(&step(json!({"parallel": [{"settle": true}]})), "requests and nothing else");
        let signed = json!({"request": {"path": "/x", "signed": {"scheme": "v3"}}, "expect": {"status": 200}});
        refused(&step(signed), "no scheme `v3`");
        refused(&[("agents", json!({"a": {"behaviour": "dance"}}))], "unknown variant `dance`");
        refused(&[("agents", json!({"a": {"behaviour": "echo", "value": {}}}))], "unknown field `value`");
        refused(&[("http", json!([{"url": "/x"}]))], "unknown field `url`");
        refused(&[("expect", json!({"status": "completed", "ran": {}}))], "unknown field `ran`");
        refused(&[("expect", json!({"status": "completed", "inputs": [{"agent": "a"}]}))], "missing field `input`");
        refused(&[("stages", json!([]))], "unknown field `stages`");
    }
}
