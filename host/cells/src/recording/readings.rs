//! The readings of the clocks of a call: a guest that waits in a loop reads the same time thousands of times.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The readings of both clocks, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Readings {
    #[serde(skip_serializing_if = "Series::is_empty")]
    pub(crate) wall: Series,
    #[serde(skip_serializing_if = "Series::is_empty")]
    pub(crate) monotonic: Series,
}

impl Readings {
    /// How much of a recording they take, roughly, in bytes.
    pub(super) fn size(&self) -> usize {
        (self.wall.0.len() + self.monotonic.0.len()) * 16
    }
}

/// Times in nanoseconds: how much later each is than the one before, and how often it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Series(Vec<(i64, u64)>);

impl Series {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a reading; `last` is the one before.
    pub(super) fn add(&mut self, last: &mut i64, reading: Duration) {
        let reading = i64::try_from(reading.as_nanos()).unwrap_or(i64::MAX);
        let later = reading - *last;
        match self.0.last_mut() {
            Some((_, times)) if later == 0 => *times += 1,
            _ => self.0.push((later, 1)),
        }
        *last = reading;
    }
}

/// Gives readings back in their order.
#[derive(Debug, Default)]
pub(super) struct Tape {
    series: Vec<(i64, u64)>,
    next: usize,
    read: u64,
    now: i64,
}

impl Tape {
    pub(super) fn new(series: Series) -> Self {
        Tape { series: series.0, ..Tape::default() }
    }

    /// The next reading. A guest that reads more often than it did finds that a millisecond has passed each time.
    pub(super) fn next(&mut self) -> Duration {
        match self.series.get(self.next) {
            Some((later, times)) => {
                if self.read == 0 {
                    self.now = self.now.saturating_add(*later);
                }
                self.read += 1;
                if self.read >= *times {
                    (self.next, self.read) = (self.next + 1, 0);
                }
            }
            None => self.now = self.now.saturating_add(1_000_000),
        }
        Duration::from_nanos(u64::try_from(self.now).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Series, Tape};

    #[test]
    fn readings_come_back_as_they_were_and_repetitions_cost_nothing() {
        let readings = [5, 5, 5, 9, 9, 8, 8].map(Duration::from_millis);
        let (mut series, mut last) = (Series::default(), 0);
        readings.iter().for_each(|reading| series.add(&mut last, *reading));
        assert_eq!(series.0, [(5_000_000, 3), (4_000_000, 2), (-1_000_000, 2)]);
        let mut tape = Tape::new(series);
        assert_eq!(readings.map(|_| tape.next()), readings);
        assert_eq!(tape.next(), Duration::from_millis(9));
    }
}
