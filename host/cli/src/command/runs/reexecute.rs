//! `hotcell runs reexecute`: recorded calls once more, to see that they do the same.

use hotcell_runtime::{EntryPath, ReexecuteError};

use super::{Context, HostArguments, wait};
use crate::command::again::Shown;
use crate::exit::{Exit, Failure};

pub(super) fn perform(context: &Context, run: &str, place: Option<String>, as_json: bool) -> Result<Exit, Failure> {
    let host = context.host(HostArguments::default())?;
    let record = wait(host.journal().find(run))?;
    let place = place.map(EntryPath::from);
    let mut shown = Shown::new(context, as_json, true);
    let work = async {
        let mut finder = host.finder();
        host.reexecute(&mut finder, &record.id, place.as_ref(), &mut |call| shown.call(&record.id, &call)).await
    };
    let done = super::super::on_threads(work)?;
    context.screen.worked();
    done.map_err(|error| match error {
        ReexecuteError::Journal(error) => error.into(),
        ReexecuteError::NothingRecorded(_) => Failure::refused(error.to_string())
            .help("calls are recorded unless `[record]` in `hotcell.toml` or your `config.toml` says `on = false`"),
        other => Failure::refused(other.to_string()),
    })?;
    shown.end()
}
