//! What a call consumed.

use std::ops::AddAssign;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Bytes, Cost, Fuel};

/// What one call used, or, after adding, what several calls used together.
///
/// It is reported for every call, failed ones included. Adding sums everything but the peaks, of which it keeps
/// the larger, and never overflows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Calls that this covers.
    pub calls: u64,
    /// Fuel burnt, instantiation included.
    pub fuel: Fuel,
    /// Time from the start of instantiation to the end of the call.
    #[serde(rename = "wall_clock_us", with = "microseconds")]
    pub wall_clock: Duration,
    /// Largest sum over memories and tables that existed at one time.
    pub peak_memory: Bytes,
    /// Bytes of the result.
    pub output: Bytes,
    /// Bytes the guest wrote to standard error, kept or not.
    pub stderr: Bytes,
    /// Lines the guest logged, kept or not.
    pub log_lines: u64,
    /// HTTP requests that were let through.
    pub http_requests: u64,
    /// HTTP bytes sent, headers included.
    pub http_sent: Bytes,
    /// HTTP bytes received, headers included.
    pub http_received: Bytes,
    /// Bytes written to files.
    #[serde(skip_serializing_if = "is_none")]
    pub file_bytes: Bytes,
    /// Files, directories and links made.
    #[serde(skip_serializing_if = "is_zero")]
    pub files: u64,
    /// Requests to models.
    #[serde(skip_serializing_if = "is_zero")]
    pub model_requests: u64,
    /// Tokens that models read.
    #[serde(skip_serializing_if = "is_zero")]
    pub input_tokens: u64,
    /// Tokens that models wrote.
    #[serde(skip_serializing_if = "is_zero")]
    pub output_tokens: u64,
    /// What requests to models cost, by the price table.
    #[serde(rename = "cost_nano_usd", skip_serializing_if = "is_free")]
    pub cost: Cost,
}

fn is_free(cost: &Cost) -> bool {
    *cost == Cost(0)
}

fn is_none(bytes: &Bytes) -> bool {
    *bytes == Bytes(0)
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.fuel += other.fuel;
        self.wall_clock = self.wall_clock.saturating_add(other.wall_clock);
        self.peak_memory = self.peak_memory.max(other.peak_memory);
        self.output += other.output;
        self.stderr += other.stderr;
        self.log_lines = self.log_lines.saturating_add(other.log_lines);
        self.http_requests = self.http_requests.saturating_add(other.http_requests);
        self.http_sent += other.http_sent;
        self.http_received += other.http_received;
        self.file_bytes += other.file_bytes;
        self.files = self.files.saturating_add(other.files);
        self.model_requests = self.model_requests.saturating_add(other.model_requests);
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cost += other.cost;
    }
}

/// Durations as whole microseconds.
mod microseconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_micros)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Usage;
    use crate::{Bytes, Fuel};

    #[test]
    fn adding_sums_and_keeps_the_larger_peak() {
        let one = Usage {
            calls: 1,
            fuel: Fuel(10),
            wall_clock: Duration::from_micros(3),
            peak_memory: Bytes(100),
            output: Bytes(1),
            stderr: Bytes(2),
            log_lines: 3,
            http_requests: 4,
            http_sent: Bytes(5),
            http_received: Bytes(6),
            file_bytes: Bytes(10),
            files: 11,
            model_requests: 7,
            input_tokens: 8,
            output_tokens: 9,
            cost: crate::Cost(9),
        };
        let mut total = one.clone();
        total += Usage { peak_memory: Bytes(70), ..one.clone() };
        let expected = Usage {
            calls: 2,
            fuel: Fuel(20),
            wall_clock: Duration::from_micros(6),
            peak_memory: Bytes(100),
            output: Bytes(2),
            stderr: Bytes(4),
            log_lines: 6,
            http_requests: 8,
            http_sent: Bytes(10),
            http_received: Bytes(12),
            file_bytes: Bytes(20),
            files: 22,
            model_requests: 14,
            input_tokens: 16,
            output_tokens: 18,
            cost: crate::Cost(18),
        };
        assert_eq!(total, expected);
        total += Usage { fuel: Fuel(u64::MAX), wall_clock: Duration::MAX, ..Usage::default() };
        assert_eq!((total.fuel, total.wall_clock), (Fuel(u64::MAX), Duration::MAX));
    }
}
