//! `hotcell plugin verify`

use hotcell_runtime::plugins::{check_keys, signer_of};

use super::{Context, Desk, explained, print, word};
use crate::arguments::PluginFolders;
use crate::exit::{Exit, Failure};
use crate::untrusted::one_line;

pub(super) fn perform(
    context: &Context,
    only: Option<&str>,
    folders: &PluginFolders,
    keys: &[String],
) -> Result<Exit, Failure> {
    check_keys(keys).map_err(|error| Failure::refused(one_line(&error.to_string(), 500)))?;
    let desk = Desk::new(context, folders)?;
    if let Some(name) = only {
        desk.find(name)?;
    }
    let mut wrong = 0;
    for found in desk.catalogue.found() {
        let plugin = match &found.plugin {
            Ok(plugin) if only.is_none_or(|only| only == plugin.description.name) => plugin,
            Err(reason) if only.is_none() => {
                wrong += 1;
                print(&format!("{}: broken: {}", found.file.display(), one_line(&reason.to_string(), 500)))?;
                continue;
            }
            _ => continue,
        };
        let name = &plugin.description.name;
        let standing = desk.standing(&found.file, plugin);
        let mut problems = explained(name, &standing, folders);
        let bytes = hotcell_files::read(&found.file, hotcell_files::MAX_COMPONENT)
            .map_err(|error| Failure::failed(format!("cannot read `{}`: {error}", found.file.display())))?;
        if let Err(error) = desk.host.check_component(name, &bytes) {
            problems.push(one_line(&error.to_string(), 500));
        }
        context.screen.worked();
        if !keys.is_empty()
            && let Err(error) = signer_of(&found.file, &bytes, keys)
        {
            problems.push(error.to_string());
        }
        if problems.is_empty() {
            print(&format!("{name}: ok, sha256 {}", plugin.survey.digest))?;
            continue;
        }
        wrong += 1;
        print(&format!("{name}: {}\n  {}", word(&standing), problems.join("\n  ")))?;
    }
    Ok(if wrong > 0 { Exit::Refused } else { Exit::Done })
}
