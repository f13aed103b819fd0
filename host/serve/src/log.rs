//! What the log says about the request that is being answered. Where nobody reads the log, this does nothing.

use tracing::Span;

use crate::access::Caller;

/// Which run it is about.
pub(crate) fn about_run(run: &str, agent: Option<&str>) {
    let span = Span::current();
    span.record("run_id", run);
    span.record("agent", agent);
}

/// Whose key it came with: its id, which opens nothing.
pub(crate) fn caller(caller: &Caller) {
    let id = caller.id();
    if !id.is_empty() {
        Span::current().record("key", id);
    }
}
