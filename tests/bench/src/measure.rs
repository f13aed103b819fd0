//! Times and what is made of them.

use std::time::Duration;

/// Times of one way of doing a piece of work.
pub(crate) struct Samples {
    pub(crate) label: String,
    times: Vec<Duration>,
}

impl Samples {
    pub(crate) fn new(label: impl Into<String>) -> Self {
        Samples { label: label.into(), times: Vec::new() }
    }

    pub(crate) fn add(&mut self, time: Duration) {
        self.times.push(time);
    }

    fn quantile(&self, part: f64) -> Duration {
        let mut times = self.times.clone();
        times.sort_unstable();
        let last = times.len().saturating_sub(1);
        times.get((last as f64 * part).round() as usize).copied().unwrap_or_default()
    }

    pub(crate) fn median(&self) -> Duration {
        self.quantile(0.5)
    }

    pub(crate) fn p99(&self) -> Duration {
        self.quantile(0.99)
    }

    pub(crate) fn count(&self) -> usize {
        self.times.len()
    }
}

/// One row of a result.
pub(crate) struct Row {
    pub(crate) label: String,
    pub(crate) value: Value,
    /// How this row compares with another, in words with a number
    pub(crate) ratio: Option<(String, f64)>,
    /// The target it is held against, if there is one, and whether it is met
    pub(crate) target: Option<(String, bool)>,
}

pub(crate) enum Value {
    Time {
        median: Duration,
        p99: Duration,
        count: usize,
    },
    Bytes(u64),
    /// Nothing was measured, for this reason
    LeftOut,
}

impl Row {
    pub(crate) fn time(samples: &Samples) -> Self {
        let value = Value::Time { median: samples.median(), p99: samples.p99(), count: samples.count() };
        Row { label: samples.label.clone(), value, ratio: None, target: None }
    }

    /// How many times faster than `slower` this is, and whether that reaches `target`.
    pub(crate) fn faster_than(mut self, own: &Samples, slower: &Samples, target: f64) -> Self {
        self = self.compared_with(own, slower);
        let met = self.ratio.as_ref().is_some_and(|(_, ratio)| *ratio >= target);
        self.target = Some((format!(">= {target} times"), met));
        self
    }

    /// How many times faster than `slower` this is.
    pub(crate) fn compared_with(mut self, own: &Samples, slower: &Samples) -> Self {
        let ratio = slower.median().as_secs_f64() / own.median().as_secs_f64().max(1e-9);
        self.ratio = Some((format!("times faster than {}", slower.label), ratio));
        self
    }

    /// Says what was not measured, and why.
    pub(crate) fn left_out(reason: &str) -> Self {
        Row { label: reason.to_owned(), value: Value::LeftOut, ratio: None, target: None }
    }

    /// How many times the time of `other` this takes, and whether that is at most `target`.
    pub(crate) fn no_slower_than(mut self, own: &Samples, other: &Samples, target: f64) -> Self {
        let ratio = own.median().as_secs_f64() / other.median().as_secs_f64().max(1e-9);
        self.ratio = Some((format!("times {}", other.label), ratio));
        self.target = Some((format!("<= {target} times"), ratio <= target));
        self
    }

    /// An amount of memory.
    pub(crate) fn bytes(label: impl Into<String>, bytes: u64) -> Self {
        Row { label: label.into(), value: Value::Bytes(bytes), ratio: None, target: None }
    }

    /// How many times less than `other` bytes this is, and whether that reaches `target`.
    pub(crate) fn times_less_than(mut self, other: u64, whose: &str, target: f64) -> Self {
        let Value::Bytes(own) = self.value else { return self };
        let ratio = other as f64 / own.max(1) as f64;
        self.ratio = Some((format!("times less than {whose}"), ratio));
        self.target = Some((format!(">= {target} times"), ratio >= target));
        self
    }

    /// How many times the time of `other` this takes.
    pub(crate) fn beside(mut self, own: &Samples, other: &Samples) -> Self {
        let ratio = own.median().as_secs_f64() / other.median().as_secs_f64().max(1e-9);
        self.ratio = Some((format!("times {}", other.label), ratio));
        self
    }

    pub(crate) fn at_most(mut self, own: &Samples, limit: Duration) -> Self {
        self.target = Some((format!("<= {limit:?}"), own.median() <= limit));
        self
    }
}
