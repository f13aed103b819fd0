//! Comparing two runs by place: what happened there in one and not, or otherwise, in the other.
//!
//! Places are those of the journal, so that branches that were done in another order, or at other times, make no difference.

use std::collections::{BTreeMap, HashMap};

use hotcell_budget::Usage;
use hotcell_engine::{BEGUN, used};
use hotcell_graph::{Object, Value};
use hotcell_journal::{CALLBACK, Entry, Fact, RunRecord};
use serde::Serialize;
use serde_json::json;

use crate::host::{Host, HostError};

/// How many differences are told.
const MOST: usize = 1000;
/// Bytes of a value that are told; of a larger one, only how large it is.
const SHOWN: usize = 16 << 10;

/// How two runs differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunDiff {
    /// The first run
    pub a: ComparedRun,
    /// The second run
    pub b: ComparedRun,
    /// Where they first did something else; none if they did the same everywhere
    pub first: Option<PlaceDiff>,
    /// Every place where they did something else, in the order of the first run and then of the second; 1000 at most
    pub places: Vec<PlaceDiff>,
    /// Whether there are more than that
    pub more: bool,
    /// What differs in the states that they came to, by key
    pub state: Vec<ValueDiff>,
    /// What nodes used differently that did the same otherwise
    pub used: Vec<UsageDiff>,
}

/// One of the runs that are compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedRun {
    /// Its name
    pub run_id: String,
    /// How it stands
    pub standing: &'static str,
    /// The beginning of its result, or why it has none
    pub outcome: Option<String>,
    /// How many entries it has
    pub entries: u64,
    /// Everything that was used for it
    pub used: Spent,
}

/// What was used: what costs money, and what a sealed call is measured by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spent {
    /// Fuel of sealed calls
    pub fuel: u64,
    /// Requests to models
    pub model_requests: u64,
    /// Tokens that models read
    pub input_tokens: u64,
    /// Tokens that models wrote
    pub output_tokens: u64,
    /// What that costs by the price table, in US dollars
    pub cost_usd: f64,
}

/// A place where two runs did something else.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlaceDiff {
    /// The place, as in the entries; empty for the run itself
    pub place: String,
    /// What is compared there: `input`, `turn`, `effect 0`, `question 1` or `end`
    pub what: String,
    /// The node, where that is known
    pub node: Option<String>,
    /// What the first run has there; none if it did nothing there
    pub a: Option<serde_json::Value>,
    /// What the second run has there
    pub b: Option<serde_json::Value>,
}

/// A value of the state that differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ValueDiff {
    /// Its key
    pub key: String,
    /// In the first run; none if it is not there
    pub a: Option<serde_json::Value>,
    /// In the second run
    pub b: Option<serde_json::Value>,
}

/// What a place used in each of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UsageDiff {
    /// The place
    pub place: String,
    /// The node
    pub node: String,
    /// In the first run
    pub a: Spent,
    /// In the second run
    pub b: Spent,
}

impl From<&Usage> for Spent {
    fn from(usage: &Usage) -> Self {
        Spent {
            fuel: usage.fuel.0,
            model_requests: usage.model_requests,
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cost_usd: usage.cost.to_usd(),
        }
    }
}

/// Where something is that is compared: its place and what it is there, in words.
type Spot = (String, String);

/// What a run did, in the order in which it first did it.
#[derive(Default)]
struct Deeds {
    order: Vec<Spot>,
    at: HashMap<Spot, serde_json::Value>,
    nodes: HashMap<String, String>,
    used: BTreeMap<String, (String, Spent)>,
}

impl Deeds {
    fn of(entries: &[Entry]) -> Self {
        let mut deeds = Deeds::default();
        for Entry { place, fact } in entries {
            let Some((what, value)) = told(fact) else { continue };
            let place = place.to_string();
            match fact {
                Fact::Completed(completed) => {
                    deeds.nodes.insert(place.clone(), completed.node.clone());
                    let spent = Spent::from(&completed.account.total());
                    deeds.used.insert(place.clone(), (completed.node.clone(), spent));
                }
                Fact::Asked { question, .. } => {
                    deeds.nodes.insert(place.clone(), question.node.clone());
                }
                _ => {}
            }
            let spot = (place, what);
            // What was begun again after a failure counts as it was done last.
            if deeds.at.insert(spot.clone(), value).is_none() {
                deeds.order.push(spot);
            }
        }
        deeds
    }
}

/// What is compared of an entry. Times, and who used what, are not; who works on a run is nothing that it does.
fn told(fact: &Fact) -> Option<(String, serde_json::Value)> {
    let shown_value = |value: &Value| shown(value.into());
    Some(match fact {
        Fact::Started(header) => {
            let given = ["input", "variables", "state"].map(|name| (name, header.given.get(name).map(shown_value)));
            ("input".to_owned(), json!(given.into_iter().collect::<BTreeMap<_, _>>()))
        }
        Fact::Completed(completed) => {
            let writes: serde_json::Map<String, serde_json::Value> =
                completed.writes.iter().map(|write| (write.key.to_string(), shown_value(&write.value))).collect();
            let told = json!({
                "node": completed.node, "writes": writes, "next": completed.next, "output": completed.output,
                "failure": completed.failure,
            });
            ("turn".to_owned(), told)
        }
        // What makes a callback hard to guess, and when something began, is another one in each run.
        Fact::Effect { kind, .. } if kind == CALLBACK || kind == BEGUN => return None,
        Fact::Effect { number, kind, subject, answer, .. } => {
            let told = json!({ "effect": kind, "subject": subject, "answer": shown_value(answer) });
            (format!("effect {number}"), told)
        }
        Fact::Failed { number: Some(number), error, .. } => (format!("effect {number}"), json!({ "failed": error })),
        Fact::Failed { number: None, error, .. } => ("turn".to_owned(), json!({ "failed": error })),
        Fact::Withheld { effect } => ("withheld".to_owned(), json!({ "withheld": effect })),
        Fact::Asked { number, question } => (format!("question {number}"), json!({ "asked": question.text })),
        Fact::Answered { number, text } => (format!("answer {number}"), json!({ "answer": text })),
        Fact::Expired { number } => (format!("answer {number}"), json!({ "expired": true })),
        Fact::TimerFired { node } => (format!("timer {node}"), json!({ "fired": true })),
        Fact::Ended { result: Ok(output), .. } => ("end".to_owned(), json!({ "output": output })),
        Fact::Ended { result: Err(error), .. } => ("end".to_owned(), json!({ "error": error })),
        Fact::Stopped { reason } => ("end".to_owned(), json!({ "stopped": reason })),
        Fact::Cancelled => ("end".to_owned(), json!({ "cancelled": true })),
        _ => return None,
    })
}

/// A value, or how large it is.
fn shown(value: serde_json::Value) -> serde_json::Value {
    let bytes = value.to_string().len();
    if bytes <= SHOWN {
        return value;
    }
    let digest = hotcell_cells::digest(value.to_string().as_bytes());
    json!({ "left_out": { "bytes": bytes, "sha256": digest } })
}

/// The places where two runs did something else; whether there are more.
fn places(a: &Deeds, b: &Deeds) -> (Vec<PlaceDiff>, bool) {
    let only_in_b = b.order.iter().filter(|spot| !a.at.contains_key(*spot));
    let differs = |spot: &&Spot| a.at.get(*spot) != b.at.get(*spot);
    let mut all = a.order.iter().chain(only_in_b).filter(differs).map(|spot| {
        let (place, what) = spot.clone();
        // A step belongs to the node around it.
        let mut around = place.as_str();
        let node = loop {
            if let Some(node) = a.nodes.get(around).or_else(|| b.nodes.get(around)) {
                break Some(node.clone());
            }
            match around.rsplit_once('.') {
                Some((before, _)) => around = before,
                None => break None,
            }
        };
        PlaceDiff { place, what, node, a: a.at.get(spot).cloned(), b: b.at.get(spot).cloned() }
    });
    let places: Vec<PlaceDiff> = all.by_ref().take(MOST).collect();
    let more = all.next().is_some();
    (places, more)
}

/// The place that differs and that either of them came to first.
fn first(a: &Deeds, b: &Deeds, places: &[PlaceDiff]) -> Option<PlaceDiff> {
    let when = |deeds: &Deeds| -> HashMap<Spot, usize> {
        deeds.order.iter().enumerate().map(|(when, spot)| (spot.clone(), when)).collect()
    };
    let (in_a, in_b) = (when(a), when(b));
    let key = |diff: &&PlaceDiff| {
        let spot = (diff.place.clone(), diff.what.clone());
        in_a.get(&spot).into_iter().chain(in_b.get(&spot)).min().copied()
    };
    places.iter().min_by_key(key).cloned()
}

fn values(a: &Object, b: &Object) -> Vec<ValueDiff> {
    let value = |value: Option<&Value>| value.map(|value| shown(value.into()));
    let only_in_b = b.iter().filter(|(key, _)| a.get(key).is_none());
    let all = a.iter().chain(only_in_b).map(|(key, _)| key);
    all.filter(|key| a.get(key) != b.get(key))
        .take(MOST)
        .map(|key| ValueDiff { key: key.to_string(), a: value(a.get(key)), b: value(b.get(key)) })
        .collect()
}

impl Host {
    /// Compares two runs by place: where they first did something else, the states that they came to, and what they used.
    ///
    /// # Errors
    /// When the entries of one are damaged, or what it was loaded from is gone.
    pub async fn compare(&self, a: &RunRecord, b: &RunRecord) -> Result<RunDiff, HostError> {
        let entries_a = self.journal().history(&a.id).await?.whole()?;
        let entries_b = self.journal().history(&b.id).await?.whole()?;
        let (deeds_a, deeds_b) = (Deeds::of(&entries_a), Deeds::of(&entries_b));
        let (places, more) = places(&deeds_a, &deeds_b);
        let of_a = |(place, (node, a)): (&String, &(String, Spent))| {
            let (_, b) = deeds_b.used.get(place).filter(|(other, b)| other == node && a != b)?;
            Some(UsageDiff { place: place.clone(), node: node.clone(), a: *a, b: *b })
        };
        let compared = |record: &RunRecord, entries: &[Entry]| ComparedRun {
            run_id: record.id.to_string(),
            standing: record.status.as_str(),
            outcome: record.outcome.clone(),
            entries: entries.len() as u64,
            used: Spent::from(&used(entries)),
        };
        Ok(RunDiff {
            a: compared(a, &entries_a),
            b: compared(b, &entries_b),
            first: first(&deeds_a, &deeds_b, &places),
            places,
            more,
            state: values(&self.state_of(a).await?, &self.state_of(b).await?),
            used: deeds_a.used.iter().filter_map(of_a).take(MOST).collect(),
        })
    }
}
