//! Names of runs, and of the places in them that entries are about.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

/// The part of a path under which the steps of a loop are.
const LOOP: &str = "loop";
/// The part of a path under which the steps of an extraction are.
const EXTRACTION: &str = "extract";

/// The name of a run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct RunId(String);

impl RunId {
    /// A new random name of eight letters and digits that are hard to mistake for each other.
    pub fn random() -> Self {
        const ALPHABET: &[u8] = b"23456789abcdefghjkmnpqrstvwxyz";
        RunId((0..8).map(|_| ALPHABET[fastrand::usize(..ALPHABET.len())] as char).collect())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for RunId {
    fn from(text: String) -> Self {
        RunId(text)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What an entry is about: the run itself (the empty path), the turn of a node (`7`), a part of it that has effects of its own
/// (`7.2`), the turn of a node of a graph that was called there (`7.agent0.3`), or a step of the node's own work (`7.loop.2`).
/// Clones are the same text: a turn has a dozen of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntryPath(Arc<str>);

impl EntryPath {
    /// The run itself.
    pub fn of_run() -> Self {
        EntryPath::default()
    }

    /// The turn of a node of the run's own graph.
    pub fn of_turn(turn: u64) -> Self {
        EntryPath(turn.to_string().into())
    }

    /// A part of what this path is about.
    pub fn within(&self, part: impl fmt::Display) -> Self {
        EntryPath(format!("{}.{part}", self.0).into())
    }

    /// Where the steps of an agent's loop are that is the work of a node.
    pub fn of_loop(&self) -> Self {
        self.within(LOOP)
    }

    /// Where the steps are by which a model makes a value of the text that a node got.
    pub fn of_extraction(&self) -> Self {
        self.within(EXTRACTION)
    }

    /// Whether this is about a step of a node's own work, which is no node that somebody wrote.
    pub fn is_step(&self) -> bool {
        let mut parts = self.0.rsplit('.');
        matches!((parts.next(), parts.next()), (Some(_), Some(LOOP | EXTRACTION)))
    }

    /// The path of which this is a part; none for the turn of a run's own node.
    pub fn around(&self) -> Option<Self> {
        self.0.rsplit_once('.').map(|(around, _)| EntryPath(around.into()))
    }

    /// The part of this path that is within another one.
    pub fn strip(&self, around: &EntryPath) -> Option<&str> {
        self.0.strip_prefix(around.as_str())?.strip_prefix('.')
    }

    /// The turn of the run's own node that this belongs to; none for the run itself.
    pub fn turn(&self) -> Option<u64> {
        self.0.split('.').next().and_then(|turn| turn.parse().ok())
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What paths are compared by where the order of their numbers counts: the word and the number of each part.
    pub(crate) fn order(&self) -> Vec<(String, u64)> {
        let part = |part: &str| {
            let word = part.trim_end_matches(|c: char| c.is_ascii_digit());
            (word.to_owned(), part[word.len()..].parse().unwrap_or_default())
        };
        self.0.split('.').map(part).collect()
    }
}

impl From<String> for EntryPath {
    fn from(text: String) -> Self {
        EntryPath(text.into())
    }
}

impl fmt::Display for EntryPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
