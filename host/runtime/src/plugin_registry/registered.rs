//! A plugin within reach of an agent, and why it may not be used there.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use hotcell_cells::{Cell, Terms};
use hotcell_plugins::{Plugin, Standing};

use super::error::ComponentUnusable;
use crate::denials::Caller;

/// A plugin and whether it may be used.
pub(crate) struct RegisteredPlugin {
    pub(crate) file: PathBuf,
    pub(crate) plugin: Plugin,
    pub(crate) standing: Standing,
    pub(crate) terms: Terms,
    /// Whether the operator decided on what it asks for
    pub(crate) pinned: bool,
    /// The component, if it is not in the file any more
    pub(super) component: Option<Arc<[u8]>>,
    pub(super) cell: OnceLock<Result<Cell, ComponentUnusable>>,
}

impl RegisteredPlugin {
    /// What is run when it is called.
    pub(crate) fn caller(&self) -> Caller<'_> {
        Caller::Plugin(&self.plugin)
    }

    /// Why it may not be used, if it may not, and what to do about it.
    pub(crate) fn held(&self) -> Option<String> {
        let name = &self.plugin.description.name;
        let file = self.file.display();
        let list = |lines: &[String]| lines.iter().map(|line| format!("\n  - {line}")).collect::<String>();
        match &self.standing {
            Standing::Ready => None,
            Standing::Waiting { asks } => Some(format!(
                "plugin `{name}` (`{file}`) asks to{}\nand this has not been decided yet; review it with `hotcell plugin \
                 inspect {name}` and decide with `hotcell plugin grant {name}`",
                list(asks)
            )),
            Standing::Changed { more, .. } if more.is_empty() => Some(format!(
                "plugin `{name}` (`{file}`) is not the component that was granted something here; if the change is \
                 meant, run `hotcell plugin grant {name}`"
            )),
            Standing::Changed { more, .. } => Some(format!(
                "plugin `{name}` (`{file}`) was changed and now also asks to{}\nif that is all right, run `hotcell \
                 plugin grant {name}`",
                list(more)
            )),
            Standing::Refused { reason } => Some(format!("plugin `{name}` (`{file}`) is refused: {reason}")),
        }
    }
}
