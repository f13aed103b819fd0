//! Numbers: what was counted and measured, for whoever reads it as Prometheus text or sends it over OTLP.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use crate::instrument::Kind;
use crate::names::{INSTRUMENTS, Measure};

/// How many combinations of labels an instrument may have. What comes after that is counted as [`OTHER`], so that nobody who
/// thinks of names decides how much is kept.
const MOST_SERIES: usize = 1000;
/// Stands for all that has no place of its own.
const OTHER: &str = "other";
/// Characters of a label that are kept.
const MOST_CHARACTERS: usize = 100;
/// Stands between labels in a key, and in no label.
const BETWEEN: char = '\u{1f}';

/// All numbers.
pub(crate) struct Meter {
    families: Vec<RwLock<HashMap<Box<str>, Arc<Series>>>>,
    pub(crate) begun: SystemTime,
}

/// The numbers of one combination of labels.
pub(crate) struct Series {
    measure: Measure,
    /// The number of a counter or gauge, the sum of a histogram
    sum: AtomicU64,
    /// How many of what a histogram was told are within each of its bounds and in none before, and above all
    buckets: Box<[AtomicU64]>,
}

/// What a series had at a moment.
pub(crate) struct Reading {
    pub(crate) labels: Vec<String>,
    pub(crate) sum: u64,
    pub(crate) buckets: Vec<u64>,
}

impl Series {
    fn new(measure: Measure) -> Self {
        let buckets = match measure.instrument().kind {
            Kind::Histogram(bounds) => bounds.len() + 1,
            Kind::Counter | Kind::Gauge => 0,
        };
        Series { measure, sum: AtomicU64::new(0), buckets: (0..buckets).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Adds to a counter.
    pub(crate) fn add(&self, number: u64) {
        self.sum.fetch_add(number, Ordering::Relaxed);
    }

    /// Takes one away from a gauge.
    pub(crate) fn less(&self) {
        self.sum.fetch_sub(1, Ordering::Relaxed);
    }

    /// Sets a gauge.
    pub(crate) fn set(&self, number: u64) {
        self.sum.store(number, Ordering::Relaxed);
    }

    /// Tells a histogram a number.
    pub(crate) fn observe(&self, number: u64) {
        let instrument = self.measure.instrument();
        let Kind::Histogram(bounds) = instrument.kind else { return self.add(number) };
        let scaled = scaled(number, instrument.scale);
        let bucket = bounds.partition_point(|bound| *bound < scaled);
        if let Some(bucket) = self.buckets.get(bucket) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.add(number);
    }

    /// Tells a histogram of seconds how long something took.
    pub(crate) fn took(&self, time: Duration) {
        self.observe(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }
}

/// A number that is kept, in the unit of its instrument.
pub(crate) fn scaled(number: u64, scale: f64) -> f64 {
    // Counters of more than 2^53 are inexact in every system that reads them.
    number as f64 * scale
}

impl Meter {
    pub(crate) fn new() -> Self {
        Meter { families: INSTRUMENTS.iter().map(|_| RwLock::default()).collect(), begun: SystemTime::now() }
    }

    fn family(&self, measure: Measure) -> &RwLock<HashMap<Box<str>, Arc<Series>>> {
        // One for each.
        &self.families[measure as usize]
    }

    /// The series with these labels, as many as the instrument has.
    pub(crate) fn series(&self, measure: Measure, labels: &[&str]) -> Arc<Series> {
        let key = key(labels);
        let known = self.family(measure).read().unwrap_or_else(PoisonError::into_inner);
        if let Some(series) = known.get(&*key) {
            return series.clone();
        }
        let is_full = known.len() >= MOST_SERIES;
        drop(known);
        let key = if is_full { self::key(&vec![OTHER; labels.len()]) } else { key };
        let mut family = self.family(measure).write().unwrap_or_else(PoisonError::into_inner);
        family.entry(key.into_boxed_str()).or_insert_with(|| Arc::new(Series::new(measure))).clone()
    }

    /// Everything that an instrument has, in the order of the labels.
    pub(crate) fn read(&self, measure: Measure) -> Vec<Reading> {
        let family = self.family(measure).read().unwrap_or_else(PoisonError::into_inner);
        let mut series: Vec<(&str, &Arc<Series>)> = family.iter().map(|(labels, series)| (&**labels, series)).collect();
        series.sort_unstable_by_key(|(labels, _)| *labels);
        let reading = |(labels, series): (&str, &Arc<Series>)| Reading {
            labels: labels.split(BETWEEN).map(str::to_owned).collect(),
            sum: series.sum.load(Ordering::Relaxed),
            buckets: series.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).collect(),
        };
        series.into_iter().map(reading).collect()
    }
}

/// Labels as one text: short ones, without control characters.
fn key(labels: &[&str]) -> String {
    let mut key = String::with_capacity(labels.iter().map(|label| label.len() + 1).sum());
    for (number, label) in labels.iter().enumerate() {
        if number > 0 {
            key.push(BETWEEN);
        }
        // Nearly all of them are like this.
        if label.len() <= MOST_CHARACTERS && label.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            key.push_str(label);
            continue;
        }
        key.extend(label.chars().take(MOST_CHARACTERS).map(|c| if c.is_control() { '\u{fffd}' } else { c }));
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_what_is_below_it() {
        let meter = Meter::new();
        let series = meter.series(Measure::RunModelCalls, &["a"]);
        [0, 1, 3, 4, 1_000_000].into_iter().for_each(|number| series.observe(number));
        let read = meter.read(Measure::RunModelCalls);
        // Not above 0, 1, 2, 4, and above all.
        assert_eq!((&read[0].buckets[..4], read[0].buckets.last()), (&[1, 1, 0, 2][..], Some(&1)));
        assert_eq!(read[0].sum, 1_000_008);
    }

    #[test]
    fn whoever_thinks_of_names_does_not_decide_how_much_is_kept() {
        let meter = Meter::new();
        for number in 0..5 * MOST_SERIES {
            meter.series(Measure::ToolSeconds, &["agent", &format!("{number}"), ""]).observe(1);
        }
        let read = meter.read(Measure::ToolSeconds);
        assert_eq!(read.len(), MOST_SERIES + 1);
        let other = read.iter().find(|reading| reading.labels == [OTHER; 3]).expect("the others");
        assert_eq!(other.sum, 4 * MOST_SERIES as u64);
        let long = meter.series(Measure::RunsStarted, &[&format!("a\u{1f}b\n{}", "x".repeat(10_000))]);
        long.add(1);
        let labels = &meter.read(Measure::RunsStarted)[0].labels;
        assert!(
            labels.len() == 1 && labels[0].starts_with("a\u{fffd}b\u{fffd}x") && labels[0].len() < 200,
            "{labels:?}"
        );
    }
}
