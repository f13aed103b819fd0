//! What one call may consume.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Bytes, Fuel};

/// The limits of one call into a cell. Every call carries one.
///
/// [`Budget::default`] is for plugins, [`Budget::interpreter`] for scripts that run in a bundled interpreter. A
/// partial table deserialises over the default, times are given in milliseconds:
///
/// ```
/// use hotcell_budget::Budget;
///
/// let budget: Budget = serde_json::from_str(r#"{ "wall_clock_ms": 250, "log_lines": 3 }"#)?;
/// assert_eq!(budget.wall_clock.as_millis(), 250);
/// assert_eq!(budget.memory, Budget::default().memory);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// Work of the guest, instantiation included. Trips as `out-of-fuel`.
    pub fuel: Fuel,
    /// Time from the start of instantiation to the end of the call, host calls included. Trips as `deadline`.
    #[serde(rename = "wall_clock_ms", with = "milliseconds")]
    pub wall_clock: Duration,
    /// Sum over all linear memories and tables of the call. Trips as `out-of-memory`.
    pub memory: Bytes,
    /// Handles and resources open at once. Trips as `too-many-handles`.
    pub handles: u32,
    /// Bytes a guest may hand to the host in one host call or result, before they are copied. Trips as
    /// `output-too-large`.
    pub transfer: Bytes,
    /// The result: standard output of a command, JSON of a plugin. Trips as `output-too-large`.
    pub output: Bytes,
    /// Lines kept of what a guest logs; further ones are only counted.
    pub log_lines: u32,
    /// Bytes kept of each log line; the rest is cut off with a mark.
    pub log_line_bytes: Bytes,
    /// Bytes kept of an error text and of the end of standard error.
    pub error_bytes: Bytes,
    /// HTTP requests. Trips as `egress`.
    pub http_requests: u32,
    /// HTTP bytes, counted for each direction on its own, headers included. Trips as `egress`.
    pub http_bytes: Bytes,
    /// Bytes written to files of granted directories. Trips as `files`.
    pub file_bytes: Bytes,
    /// Files, directories and links made in granted directories. Trips as `files`.
    pub files: u32,
    /// Calls from plugin to host to plugin. Trips as `too-deep`.
    pub depth: u32,
    /// Nesting of a JSON value that a guest returns. Trips as `too-deep`.
    pub json_depth: u32,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            fuel: Fuel(200_000_000),
            wall_clock: Duration::from_secs(5),
            memory: Bytes::mib(64),
            handles: 1_000,
            transfer: Bytes::mib(4),
            output: Bytes::mib(1),
            log_lines: 256,
            log_line_bytes: Bytes::kib(4),
            error_bytes: Bytes::kib(4),
            http_requests: 16,
            http_bytes: Bytes::mib(8),
            file_bytes: Bytes::mib(256),
            files: 10_000,
            depth: 8,
            json_depth: 128,
        }
    }
}

impl Budget {
    /// The limits of a script in a bundled interpreter.
    ///
    /// An interpreter spends some hundred units of fuel on one step of the script, and starts from a large image:
    /// hence 50 G fuel (several seconds of work; the wall clock, which the node sets, usually strikes first),
    /// 256 MiB of memory and 16 MiB of output.
    pub fn interpreter() -> Self {
        Self {
            fuel: Fuel(50_000_000_000),
            wall_clock: Duration::from_secs(30),
            memory: Bytes::mib(256),
            output: Bytes::mib(16),
            ..Self::default()
        }
    }

    /// A ceiling that clamps nothing.
    pub fn unlimited() -> Self {
        Self {
            fuel: Fuel(u64::MAX),
            wall_clock: Duration::MAX,
            memory: Bytes(u64::MAX),
            handles: u32::MAX,
            transfer: Bytes(u64::MAX),
            output: Bytes(u64::MAX),
            log_lines: u32::MAX,
            log_line_bytes: Bytes(u64::MAX),
            error_bytes: Bytes(u64::MAX),
            http_requests: u32::MAX,
            http_bytes: Bytes(u64::MAX),
            file_bytes: Bytes(u64::MAX),
            files: u32::MAX,
            depth: u32::MAX,
            json_depth: u32::MAX,
        }
    }

    /// This budget with every limit cut to the operator's `ceiling`.
    #[must_use]
    pub fn clamp(&self, ceiling: &Self) -> Self {
        Self {
            fuel: self.fuel.min(ceiling.fuel),
            wall_clock: self.wall_clock.min(ceiling.wall_clock),
            memory: self.memory.min(ceiling.memory),
            handles: self.handles.min(ceiling.handles),
            transfer: self.transfer.min(ceiling.transfer),
            output: self.output.min(ceiling.output),
            log_lines: self.log_lines.min(ceiling.log_lines),
            log_line_bytes: self.log_line_bytes.min(ceiling.log_line_bytes),
            error_bytes: self.error_bytes.min(ceiling.error_bytes),
            http_requests: self.http_requests.min(ceiling.http_requests),
            http_bytes: self.http_bytes.min(ceiling.http_bytes),
            file_bytes: self.file_bytes.min(ceiling.file_bytes),
            files: self.files.min(ceiling.files),
            depth: self.depth.min(ceiling.depth),
            json_depth: self.json_depth.min(ceiling.json_depth),
        }
    }
}

/// Durations as whole milliseconds; one that does not fit is cut to the largest number.
mod milliseconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_millis)
    }
}

#[cfg(test)]
mod tests {
    use super::Budget;

    /// The defaults are documented limits: changing one has to be a decision.
    #[test]
    fn defaults_are_the_documented_table() -> Result<(), serde_json::Error> {
        let plugin = r#"{"fuel":200000000,"wall_clock_ms":5000,"memory":67108864,"handles":1000,"transfer":4194304,"output":1048576,"log_lines":256,"log_line_bytes":4096,"error_bytes":4096,"http_requests":16,"http_bytes":8388608,"file_bytes":268435456,"files":10000,"depth":8,"json_depth":128}"#;
        assert_eq!(serde_json::to_string(&Budget::default())?, plugin);
        let interpreter = Budget::interpreter();
        assert_eq!((interpreter.memory.0, interpreter.fuel.0), (268_435_456, 50_000_000_000));
        Ok(())
    }

    #[test]
    fn a_ceiling_cuts_every_limit_and_raises_none() -> Result<(), serde_json::Error> {
        let zero = r#"{"fuel":0,"wall_clock_ms":0,"memory":0,"handles":0,"transfer":0,"output":0,"log_lines":0,"log_line_bytes":0,"error_bytes":0,"http_requests":0,"http_bytes":0,"file_bytes":0,"files":0,"depth":0,"json_depth":0}"#;
        let zero: Budget = serde_json::from_str(zero)?;
        assert_eq!(Budget::default().clamp(&zero), zero);
        assert_eq!(zero.clamp(&Budget::unlimited()), zero);
        assert_eq!(Budget::default().clamp(&Budget::unlimited()), Budget::default());
        Ok(())
    }

    #[test]
    fn an_unknown_limit_is_refused() {
        let error = serde_json::from_str::<Budget>(r#"{ "fule": 1 }"#).map_err(|error| error.to_string());
        assert!(error.is_err_and(|text| text.contains("unknown field `fule`")));
    }
}
