//! The state of the graph of one agent: keys that its steps share.

/// What it is called with, and what it gives.
pub(super) const INPUT: &str = "(input)";
pub(super) const OUTPUT: &str = "(output)";
/// What an agent is given that works again: why, and what was wrong.
pub(super) const RERUN: &str = "_rerun_context";
/// What it gave, before that was looked at.
pub(super) const RAW: &str = "(raw)";
/// What it remembers.
pub(super) const MEMORY: &str = "(memory)";
/// The name under which updates see an answer.
pub(super) const ANSWER: &str = "answer";
