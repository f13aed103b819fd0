//! The names of the limits, as they appear in messages, reports and journals.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A limit of the budget that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// The fuel is used up.
    OutOfFuel,
    /// The wall-clock time, host calls included, is over.
    Deadline,
    /// Memories and tables together would exceed the memory limit.
    OutOfMemory,
    /// Too many handles or resources are open at once.
    TooManyHandles,
    /// The output, or all that the guest hands to the host in one go, is too large.
    OutputTooLarge,
    /// Too many HTTP requests, or too many bytes in one direction.
    Egress,
    /// Too many bytes written to files, too many files made, or a directory or disk is full.
    Files,
    /// Calls or JSON values are nested too deeply, or the guest's stack overflowed.
    TooDeep,
}

impl Limit {
    /// Every limit, in declaration order.
    pub const ALL: [Self; 8] = [
        Self::OutOfFuel,
        Self::Deadline,
        Self::OutOfMemory,
        Self::TooManyHandles,
        Self::OutputTooLarge,
        Self::Egress,
        Self::Files,
        Self::TooDeep,
    ];

    /// The name used everywhere: `out-of-fuel`, `deadline`, …
    pub const fn name(self) -> &'static str {
        match self {
            Self::OutOfFuel => "out-of-fuel",
            Self::Deadline => "deadline",
            Self::OutOfMemory => "out-of-memory",
            Self::TooManyHandles => "too-many-handles",
            Self::OutputTooLarge => "output-too-large",
            Self::Egress => "egress",
            Self::Files => "files",
            Self::TooDeep => "too-deep",
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::Limit;

    #[test]
    fn names_are_the_serialised_form() -> Result<(), serde_json::Error> {
        for limit in Limit::ALL {
            let text = serde_json::to_string(&limit)?;
            assert_eq!(text, format!("\"{limit}\""));
            assert_eq!(serde_json::from_str::<Limit>(&text)?, limit);
        }
        Ok(())
    }
}
