//! Times as RFC 3339 has them.

use std::time::SystemTime;

/// A time as RFC 3339 has it.
pub(crate) fn time(at: SystemTime) -> String {
    jiff::Timestamp::try_from(at).unwrap_or_default().to_string()
}
