//! `hotcell trust`: whether the `hotcell.toml` that lies in a folder may grant what it says.

use hotcell_runtime::plugins::{FolderError, SETTINGS_FILE};

use super::{Context, HostArguments, print};
use crate::arguments::Trust;
use crate::exit::{Exit, Failure};
use crate::untrusted::{lines, one_line};

pub(super) fn perform(context: &Context, arguments: &Trust) -> Result<Exit, Failure> {
    let host = context.host(HostArguments { without_runs: true, ..HostArguments::default() })?;
    let shown = arguments.folder.display();
    if arguments.forget {
        host.trust().forget(&arguments.folder).map_err(|error| Failure::failed(error.to_string()))?;
        print(&format!("the `{SETTINGS_FILE}` of `{shown}` grants nothing any more"))?;
        return Ok(Exit::Done);
    }
    let mut folder = host.agent_folder(&arguments.folder)?;
    if folder.is_trusted() {
        print(&match folder.wishes().is_empty() {
            true => format!("there is nothing in `{shown}` that would have to be trusted"),
            false => format!("the `{SETTINGS_FILE}` of `{shown}` is trusted already"),
        })?;
        return Ok(Exit::Done);
    }
    for (name, wishes) in folder.wishes() {
        context.screen.line(&match name.is_empty() {
            true => "for all plugins".to_owned(),
            false => format!("`{}` may", one_line(&name, 200)),
        });
        for wish in wishes {
            context.screen.line(&format!("  - {}", one_line(&wish, 500)));
        }
    }
    for (name, digest) in folder.pins() {
        let (name, digest) = (one_line(name, 200), one_line(digest, 100));
        context.screen.line(&format!("grants to `{name}` count for the component {digest}"));
    }
    if !arguments.yes {
        context.confirm(&format!("Trust the `{SETTINGS_FILE}` of `{shown}` with this?"))?;
    }
    folder.trust(host.trust())?;
    print(&format!("the `{SETTINGS_FILE}` of `{shown}` is trusted, as it is now"))?;
    Ok(Exit::Done)
}

impl From<FolderError> for Failure {
    fn from(error: FolderError) -> Self {
        Failure::refused(lines(&error.to_string()))
    }
}
