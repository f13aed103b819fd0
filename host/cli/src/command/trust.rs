//! `hotcell trust`: whether the `hotcell.toml` that lies in a folder may grant what it says.

use hotcell_runtime::plugins::{FolderError, SETTINGS_FILE};

use super::{Context, HostArguments, print};
use crate::arguments::Trust;
use crate::exit::{Exit, Failure};
use crate::untrusted::{lines, one_line};

pub(super) fn perform(context: &Context, arguments: &Trust) -> Result<Exit, Failure> {
    let host = context.host(HostArguments { without_runs: true, ..HostArguments::default() })?;
    let shown = one_line(&arguments.folder.to_string_lossy(), usize::MAX);
    if arguments.forget {
        host.trust().forget(&arguments.folder).map_err(|error| Failure::failed(error.to_string()))?;
        print(&format!("the `{SETTINGS_FILE}` of `{shown}` is no longer trusted and grants nothing"))?;
        return Ok(Exit::Done);
    }
    if !arguments.folder.is_dir() {
        return Err(Failure::refused(format!("there is no folder `{shown}`")));
    }
    let mut folder = host.agent_folder(&arguments.folder)?;
    if folder.is_trusted_by_operator() {
        print(&format!("`{shown}` is already trusted in its current state"))?;
        return Ok(Exit::Done);
    }
    let screen = &context.screen;
    // Nothing of what is decided on is cut.
    let all = |text: &str| one_line(text, usize::MAX);
    if !folder.changes().is_empty() {
        screen.line("since it was trusted:");
        folder.changes().iter().for_each(|change| screen.line(&format!("  - {}", all(change))));
    }
    for (name, wishes) in folder.wishes() {
        screen.line(&match name.is_empty() {
            true => "for all plugins".to_owned(),
            false => format!("`{}` may", all(&name)),
        });
        wishes.iter().for_each(|wish| screen.line(&format!("  - {}", all(wish))));
    }
    for (name, digest) in folder.pins() {
        screen.line(&format!("the grants to `{}` apply to the component {}", all(name), all(digest)));
    }
    folder.pinned_in_words().iter().for_each(|line| screen.line(&all(line)));
    screen.line("its agent may call the agents in the folders beside it, with their grants");
    if !arguments.yes {
        context.confirm(&format!("Trust `{shown}` in its current state, with these grants?"))?;
    }
    folder.trust(host.trust())?;
    print(&format!("`{shown}` is trusted in its current state"))?;
    Ok(Exit::Done)
}

impl From<FolderError> for Failure {
    fn from(error: FolderError) -> Self {
        Failure::refused(lines(&error.to_string()))
    }
}
