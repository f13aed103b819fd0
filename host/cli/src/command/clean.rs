//! `hotcell clean`: compiled code that takes room and can be made again.

use hotcell_runtime::{Cleaned, cells_cache, clean_cells};

use super::{Context, print};
use crate::arguments::Clean;
use crate::exit::{Exit, Failure};
use crate::narration::counted;

pub(super) fn perform(context: &Context, arguments: &Clean) -> Result<Exit, Failure> {
    let Some(folder) = cells_cache() else {
        return Err(Failure::refused("there is no home folder, so there is no cache"));
    };
    let failed = |error: std::io::Error| Failure::failed(format!("cannot clean `{}`: {error}", folder.display()));
    let Cleaned { entries, bytes, left } =
        clean_cells(&folder, arguments.unused_for, arguments.dry_run).map_err(failed)?;
    let done = if arguments.dry_run { "would remove" } else { "removed" };
    let (gone, left) = (indicatif::HumanBytes(bytes), indicatif::HumanBytes(left));
    print(&format!("{done} {} ({gone}); {left} left", counted(entries, "compiled component")))?;
    context.screen.line(&format!("the cache is `{}`", folder.display()));
    Ok(Exit::Done)
}
