//! Keys of the state of a mesh's graph that whoever serves the mesh sets or reads.

/// What an entry point is called in errors.
pub(super) const ENTRY_NOUN: &str = "entry point";
/// The entry point that is called
pub const ENTRY_POINT: &str = "entry_point";
/// What its agent is given
pub const DATA: &str = "data";
/// The session
pub const SESSION_ID: &str = "session_id";
/// The call of one agent in place of an entry point: an object with the entries [`CALLED`] and [`CALLED_WITH`]
pub const CALL: &str = "(call)";
/// The agent that is called
pub const CALLED: &str = "agent";
/// What it is given
pub const CALLED_WITH: &str = "input";
/// What was said before in the session, the oldest first: objects with `role` and `content`
pub const HISTORY: &str = "(history)";
/// What the last agent gave; in [`BROUGHT`], what the one before gave
pub const OUTPUT: &str = "output";
/// What all agents gave, by their names
pub const OUTPUTS: &str = "outputs";
/// Why agents failed, by their names
pub const ERRORS: &str = "errors";
/// What a branch brings along: an object with the entries [`OUTPUT`] and [`FROM`]
pub const BROUGHT: &str = "(brought)";
/// The agent that gave it
pub const FROM: &str = "from";
