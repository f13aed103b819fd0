//! Work that somebody outside does and that takes its time.

use std::time::Duration;

use super::Expression;
use crate::value::Key;

/// Has work done by somebody outside: it is begun, asked for until it is done, and called off when it takes too long. What does
/// all that are tools of the host, which know how it is done; each of their calls is committed, so that what was begun is never begun
/// again.
///
/// - `begin` is given `job` (a text that no other job has), `settings`, `arguments`, and perhaps `callback` (an object with `url`);
/// - `poll` is given `job`, `settings` and `state`, as the call before it gave that;
/// - `receive` is given `job`, `settings` and `body`: what came by the callback;
/// - `cancel` is given `job`, `settings`, perhaps `state`, and `reason`: `timeout` or `cancelled`.
///
/// Each gives an object with one entry: `done` (what came of it), `again` (an object with the `state` for `poll`, and `after_ms`),
/// `accepted` (an object, perhaps with a `state`: it is done when the callback comes), or `failed` (an object with `error_type` and
/// `message`).
#[derive(Clone, Debug, PartialEq)]
pub struct JobAction {
    /// In whose name it is done; a callback says it
    pub name: Key,
    /// What stands before the names of the tools
    pub tools: String,
    /// An object: how it is set up
    pub settings: Expression,
    /// An object: what is to be done
    pub arguments: Expression,
    /// How long one call of a tool may take
    pub step: Duration,
    /// How long all of it may take
    pub deadline: Duration,
    /// The address below which callbacks arrive; none where it is asked for until it is done
    pub callback: Option<Expression>,
    /// What kind of failure it is that it takes too long
    pub late: &'static str,
    /// The name under which updates see what came of it
    pub bind: &'static str,
}
