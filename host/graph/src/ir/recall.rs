//! Items of lists that are worth recalling: the newest, those that fit a text best, or both by weight.

use std::collections::{HashMap, HashSet};

use super::composed::list_of;
use super::{Expression, NoValue};
use crate::template::Lookup;
use crate::types::to_text;
use crate::value::{Key, List, Value};

/// How much a word that occurs again counts, and how much the length of a text.
const SATURATION: f64 = 1.2;
const LENGTH: f64 = 0.75;
/// Seconds of an hour.
const HOUR: f64 = 3600.0;

/// Which items of lists are worth recalling for a text. Those of the first list come before those of the next.
#[derive(Clone, Debug, PartialEq)]
pub struct Recall {
    /// The lists, each in the order in which its items came
    pub lists: Vec<Expression>,
    /// The text
    pub text: Expression,
    /// How many there are at most
    pub most: usize,
    /// How much it counts that an item is new
    pub recency: f64,
    /// How much it counts that it fits the text
    pub relevance: f64,
    /// After how many hours the first falls to about a third
    pub decay_hours: f64,
    /// The entry with the time of an item, in seconds since 1970. One without it is as new as the newest
    pub time: Key,
}

impl Recall {
    pub(super) fn evaluate(&self, scope: &dyn Lookup) -> Result<Value, NoValue> {
        let text = to_text(&self.text.evaluate(scope)?);
        let lists = self.lists.iter().map(|list| list_of(list, scope)).collect::<Result<Vec<List>, _>>()?;
        let items: Vec<&Value> = lists.iter().flat_map(List::iter).collect();
        let fits = if self.relevance > 0.0 { fitting(&text, &items) } else { vec![0.0; items.len()] };
        let times: Vec<Option<f64>> = items.iter().map(|item| self.time_of(item)).collect();
        let now = times.iter().flatten().copied().fold(f64::MIN, f64::max);
        let score = |place: usize| {
            let age = times[place].map_or(0.0, |time| (now - time).max(0.0) / HOUR);
            let newness = (-age / self.decay_hours.max(f64::MIN_POSITIVE)).exp();
            (self.relevance * fits[place] + self.recency * newness) / (self.relevance + self.recency)
        };
        let mut chosen: Vec<&Value> = Vec::new();
        let mut before = 0;
        for list in &lists {
            let mut ranked: Vec<(usize, f64)> =
                (before..before + list.len()).map(|place| (place, score(place))).collect();
            // Of what counts the same the newest comes first.
            ranked.sort_by(|(left, one), (right, other)| other.total_cmp(one).then(right.cmp(left)));
            chosen.extend(ranked.into_iter().map(|(place, _)| items[place]));
            before += list.len();
        }
        Ok(Value::List(chosen.into_iter().take(self.most).cloned().collect()))
    }

    fn time_of(&self, item: &Value) -> Option<f64> {
        match item.as_object()?.get(&self.time)? {
            Value::Number(number) => Some(number.to_f64()),
            _ => None,
        }
    }
}

/// How well items fit a text, the best one 1: by the words that they share, of which the rare ones count more (Okapi BM25).
fn fitting(text: &str, items: &[&Value]) -> Vec<f64> {
    let asked: HashSet<String> = words(text).into_iter().collect();
    // How often each word that is asked for is in an item, and how many words that has: each item is read once, however long the text.
    let counted: Vec<(HashMap<String, f64>, f64)> = items
        .iter()
        .map(|item| {
            let (mut times, words) = (HashMap::new(), words(&item.to_display()));
            let length = words.len() as f64;
            for word in words.into_iter().filter(|word| asked.contains(word)) {
                *times.entry(word).or_default() += 1.0;
            }
            (times, length)
        })
        .collect();
    let mut occurs: HashMap<&str, f64> = HashMap::new();
    for (times, _) in &counted {
        times.keys().for_each(|word| *occurs.entry(word).or_default() += 1.0);
    }
    let count = items.len() as f64;
    let usual = counted.iter().map(|(_, length)| length).sum::<f64>() / count.max(1.0);
    let score = |(times, length): &(HashMap<String, f64>, f64)| {
        let length = 1.0 - LENGTH + LENGTH * length / usual.max(1.0);
        // In an order of their own, so that the same sum is made each time.
        let mut parts: Vec<f64> = times
            .iter()
            .map(|(word, times)| {
                let with = occurs[word.as_str()];
                let rare = (1.0 + (count - with + 0.5) / (with + 0.5)).ln();
                rare * times * (SATURATION + 1.0) / (times + SATURATION * length)
            })
            .collect();
        parts.sort_by(f64::total_cmp);
        parts.into_iter().sum::<f64>()
    };
    let scores: Vec<f64> = counted.iter().map(score).collect();
    let best = scores.iter().copied().fold(0.0, f64::max);
    scores.into_iter().map(|score| if best > 0.0 { score / best } else { 0.0 }).collect()
}

fn words(text: &str) -> Vec<String> {
    text.split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::State;
    use crate::value::parse_json;

    #[test]
    fn what_is_new_and_what_fits_is_recalled() {
        let posts = r#"{"own": [
            {"say": "Guest Lindqvist ordered smoked trout", "at": 0},
            {"say": "The oven door was repaired", "at": 3600},
            {"say": "The guest left", "at": 7200}
        ], "other": [{"say": "smoked ham"}], "none": []}"#;
        let Ok(Value::Object(posts)) = parse_json(posts) else { panic!("no object") };
        let state = State::from_object(&posts);
        let key = |name: &str| Expression::Key(name.into());
        let recall = |lists: &[&str], (recency, relevance): (f64, f64), most| Recall {
            lists: lists.iter().map(|list| key(list)).collect(),
            text: Expression::Value("{\"message\": \"smoked trout for Lindqvist\"}".into()),
            most,
            recency,
            relevance,
            decay_hours: 24.0,
            time: "at".into(),
        };
        let says = |recall: Recall| {
            let Value::List(list) = recall.evaluate(&state).unwrap() else { panic!("no list") };
            let say = |item: &Value| item.as_object()?.get("say")?.as_text().map(|say| say[..8].to_owned());
            list.iter().filter_map(say).collect::<Vec<_>>()
        };
        assert_eq!(says(recall(&["own"], (1.0, 0.0), 2)), ["The gues", "The oven"]);
        assert_eq!(says(recall(&["own"], (0.0, 1.0), 1)), ["Guest Li"]);
        assert_eq!(says(recall(&["own"], (0.4, 0.6), 1)), ["Guest Li"]);
        // Nothing that fits: the newest first.
        let nothing = Recall { text: Expression::Value("zebra".into()), ..recall(&["own"], (0.0, 1.0), 2) };
        assert_eq!(says(nothing), ["The gues", "The oven"]);
        // One list comes before the next, whatever fits.
        assert_eq!(says(recall(&["own", "other"], (0.0, 1.0), 4))[3], "smoked h");
        assert_eq!(says(recall(&["none", "other"], (1.0, 1.0), 4)), ["smoked h"]);
        assert!(says(recall(&["none"], (1.0, 1.0), 4)).is_empty());
    }
}
