//! The versions of the specification.

use std::fmt;

/// A version of the specification that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// 25.4.1, the first
    V25_4_1,
    /// 25.4.2
    V25_4_2,
    /// 26.1.0
    V26_1_0,
    /// 26.1.2
    V26_1_2,
    /// 26.2.0
    V26_2_0,
    /// 26.3.1
    V26_3_1,
}

impl Version {
    /// All known versions, the oldest first.
    pub const ALL: [Version; 6] =
        [Version::V25_4_1, Version::V25_4_2, Version::V26_1_0, Version::V26_1_2, Version::V26_2_0, Version::NEWEST];

    /// The newest, which a text that names none is written for.
    pub const NEWEST: Version = Version::V26_3_1;

    /// The version of that name.
    pub fn of_name(name: &str) -> Option<Version> {
        Version::ALL.into_iter().find(|version| version.name() == name)
    }

    /// Its name, as `agentspec_version` has it.
    pub fn name(self) -> &'static str {
        match self {
            Version::V25_4_1 => "25.4.1",
            Version::V25_4_2 => "25.4.2",
            Version::V26_1_0 => "26.1.0",
            Version::V26_1_2 => "26.1.2",
            Version::V26_2_0 => "26.2.0",
            Version::V26_3_1 => "26.3.1",
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
