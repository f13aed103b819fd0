//! `hotcell runs fork`: another run from an entry of one on.

use hotcell_graph::{Object, Value};
use hotcell_runtime::{ForkOrigin, ForkRequest, Outward, RunRecord, UserKey};

use super::{Context, HostArguments, wait};
use crate::arguments::{Fork, RunWith, Session};
use crate::command::drive::Drive;
use crate::command::origin;
use crate::exit::{Exit, Failure};

pub(super) fn perform(context: &Context, arguments: Fork) -> Result<Exit, Failure> {
    let Fork { run, at, set, input, answer, question, prompts, model, revision, allow_effects, .. } = arguments;
    let session = Session {
        with: RunWith { model: None, more: arguments.more, trust: arguments.trust },
        json: arguments.json,
        quiet: arguments.quiet,
        no_input: arguments.no_input,
        ..Session::default()
    };
    let record = wait(context.host(HostArguments::default())?.journal().find(&run))?;
    let allowed = match allow_effects {
        None => Vec::new(),
        Some(kinds) if kinds.is_empty() => Outward::ALL.to_vec(),
        Some(kinds) => kinds,
    };
    let request = ForkRequest {
        origin: ForkOrigin {
            run: record.id.to_string(),
            at,
            allowed,
            model,
            prompts: prompts.into_iter().map(|(node, text)| (node.into(), text)).collect(),
        },
        input,
        set: set.into_iter().map(|(key, value)| (key.into(), value)).collect(),
        answer: answer.map(|answer| (question, answer)),
        id: None,
        kept: kept(&record),
    };
    let drive = Drive::new(context, origin::restored(&record, session, &UserKey::of_user()))?;
    drive.go(drive.is_strict(), |host, session| async move { host.fork(request, &revision, session).await })
}

/// How the run was started counts for its fork, too. Of one that a server began, the fork is the person's.
fn kept(record: &RunRecord) -> Object {
    let mut origin = record.header.given.get("origin").and_then(Value::as_object).cloned().unwrap_or_default();
    origin.remove("serve");
    origin
}
