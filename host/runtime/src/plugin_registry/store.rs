//! The data that a plugin keeps from one call to the next, and what it may have kept before.

use std::path::Path;
use std::sync::Arc;

use hotcell_cells::KeyValueStore;
use hotcell_graph::diagnostic::Diagnostic;
use hotcell_plugins::{Former, Owner, StoresError};

use crate::context::LoadContext;

/// How many stores are named that may have been a plugin's before; `hotcell plugin store list` shows all.
const MOST_FORMER: usize = 3;

/// A plugin's store; what keeps it from having one, or what it may have had before, is a warning.
pub(super) fn store(
    context: &LoadContext,
    folder: &Path,
    file: &Path,
    plugin: &str,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Arc<dyn KeyValueStore>> {
    let mut open = || -> Result<Arc<dyn KeyValueStore>, StoresError> {
        let stores = context.stores()?;
        let owner = context.owner(folder, file, plugin)?;
        diagnostics.extend(stores.former(&owner)?.iter().take(MOST_FORMER).map(|former| tell(&owner, folder, former)));
        Ok(stores.of(owner))
    };
    match open() {
        Ok(store) => Some(store),
        Err(error) => {
            diagnostics.push(Diagnostic::warning(format!("plugin `{plugin}`: {error}")));
            None
        }
    }
}

/// What a plugin that begins without data may have had before.
fn tell(owner: &Owner, folder: &Path, former: &Former) -> Diagnostic {
    let plugin = owner.plugin();
    match former {
        Former::Unclaimed(amount) => Diagnostic::warning(format!(
            "plugin `{plugin}` begins with an empty store: there is data of a plugin of that name ({amount}), written \
             when stores did not belong to projects"
        ))
        .help({
            let project = owner.project().unwrap_or(folder).display();
            // The user's plugins are found without being told where.
            let place = owner.folder().filter(|_| owner.project().is_some());
            let place = place.map(|place| format!(" --plugins {}", place.display())).unwrap_or_default();
            format!("if it is this plugin's, run `hotcell plugin store adopt {plugin} --in {project}{place}`")
        }),
        Former::Moved { from, to, amount } => Diagnostic::warning(format!(
            "plugin `{plugin}` begins with an empty store: there is one of `{}` ({amount}), which is not there any more",
            from.display()
        ))
        .help(format!(
            "if that folder is this one now, run `hotcell plugin store move {} {}`",
            from.display(),
            to.display()
        )),
    }
}
