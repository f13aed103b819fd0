//! Keys of the state of a mesh's graph that whoever serves the mesh sets or reads.

/// The node with which a mesh begins: where it leads to an agent, no agent calls another. No agent can have this name.
pub const START: &str = "(entry)";
/// What an entry point is called in errors.
pub(super) const ENTRY_NOUN: &str = "entry point";
/// The entry point that is called
pub const ENTRY_POINT: &str = "entry_point";
/// What its agent is given
pub const DATA: &str = "data";
/// The session
pub const SESSION_ID: &str = "session_id";
/// The call of one agent in place of an entry point: an object with the entries [`CALLED`], [`CALLED_WITH`] and perhaps
/// [`CALLED_AGAIN`]
pub const CALL: &str = "(call)";
/// The agent that is called
pub const CALLED: &str = "agent";
/// What it is given
pub const CALLED_WITH: &str = "input";
/// `true` for one that counts like a call by another agent
pub const CALLED_AGAIN: &str = "again";
/// How many calls of agents by others there were before the run that count as those of the run do
pub const CALLS_BEFORE: &str = "(calls before)";
/// What was said before in the session, the oldest first: objects with `role` and `content`
pub const HISTORY: &str = "(history)";
/// What the last agent gave; in [`BROUGHT`], what the one before gave
pub const OUTPUT: &str = "output";
/// What all agents gave, by their names
pub const OUTPUTS: &str = "outputs";
/// Why agents failed, by their names
pub const ERRORS: &str = "errors";
/// What a branch brings along: an object with the entries [`OUTPUT`] and [`FROM`], and [`CAME`] for an agent that is called at once
pub const BROUGHT: &str = "(brought)";
/// The agent that gave it
pub const FROM: &str = "from";
/// What others had given to an agent that is called at once, by their names
pub const CAME: &str = "came";
/// Posts that agents may remember, the oldest first: those of earlier runs of the session and, where an agent remembers them, of
/// other sessions. They are what [`FEED`] was, with [`POST_TIME`]
pub const EARLIER_FEED: &str = "(feed)";
/// What was posted in the run: objects
pub const FEED: &str = "feed";
/// The agent that a post is about
pub const POST_AGENT: &str = "agent";
/// The session that it belongs to
pub const POST_SESSION: &str = "session_id";
/// When it was posted, in seconds since 1970. Whoever keeps posts adds it
pub const POST_TIME: &str = "at";
/// What older servers said that models had used: runs that they began have it, and nothing reads it.
pub(super) const SPENT_BEFORE: &str = "(spent)";

/// The node at which what an agent gave is posted: where it leads to others, they are called because the post names them.
pub fn post_node(agent: &str) -> String {
    format!("({agent} is posted)")
}

/// The entry of an input that says that the agent woke up by itself
pub const WAKE_UP_TRIGGER: &str = "wake_up_trigger";
/// What whoever serves the mesh says of itself, for connectors: an object with [`CALLBACKS`] and [`SCOPE`]
pub const SERVED: &str = "(served)";
/// The address below which results of connectors arrive: `/AGENT/TOKEN` is added
pub const CALLBACKS: &str = "callbacks";
/// What sets a session apart from all others, whoever began them
pub const SCOPE: &str = "scope";

/// The kind of failure of an agent whose connector takes too long
pub const CONNECTOR_TIMEOUT: &str = "ConnectorTimeout";
/// The kind of failure of an agent that does not give what it declares, after all its attempts
pub const CONTRACT: &str = "YieldContractFailure";
/// The kind of failure of an agent that waits for others in vain
pub const FAN_IN: &str = "FanInTimeout";
/// The kind of failure of an agent whose budget is used up
pub const BUDGET: &str = "BudgetExhausted";

/// The entry of a person's answer that says what was decided
pub(super) const HUMAN_DECISION: &str = "human_decision";

/// What is left out of what agents always call: texts of [`left_out`] with the values of the agent's flags, each after a `;`
pub const LEFT_OUT: &str = "(left out)";

/// That an agent does not call another one, as the beginning of an item of [`LEFT_OUT`].
pub fn left_out(agent: &str, target: &str) -> String {
    format!("{agent} {target}")
}
