//! `hotcell plugin add`, `revoke` and `remove`

use std::path::Path;

use hotcell_runtime::plugins::{Plugin as Component, Standing, install, uninstall};

use super::{Context, Desk, explained, print, word};
use crate::arguments::PluginFolders;
use crate::exit::{Exit, Failure};
use crate::untrusted::one_line;

pub(super) fn add(context: &Context, file: &Path, folders: &PluginFolders, replace: bool) -> Result<Exit, Failure> {
    let component = Component::read(file)
        .map_err(|reason| Failure::refused(format!("`{}` is no plugin: {}", file.display(), one_line(&reason, 500))))?;
    let desk = Desk::new(context, folders)?;
    let name = &component.description.name;
    if let Some((there, other)) = desk.catalogue.find(name) {
        if other.survey.digest == component.survey.digest {
            print(&format!("`{name}` is here already, as `{}`", there.display()))?;
            return Ok(Exit::Done);
        }
        if !replace {
            return Err(Failure::refused(format!("there is a plugin `{name}` already, `{}`", there.display()))
                .help("give `--replace` to put this one in its place"));
        }
    }
    let place = match desk.catalogue.find(name) {
        Some((there, _)) => there.to_owned(),
        None => folders.folder.join("plugins").join(format!("{}.wasm", name.replace(':', "-"))),
    };
    if place.exists() && desk.catalogue.find(name).is_none() && !replace {
        return Err(Failure::refused(format!("there is a file `{}` already, which is not `{name}`", place.display()))
            .help("move it away, or give `--replace` to overwrite it"));
    }
    install(file, &place).map_err(|error| Failure::failed(format!("cannot write `{}`: {error}", place.display())))?;
    let standing = desk.folder.standing(&place, &component, desk.host.signatures());
    print(&format!("added `{name}` as `{}`: {}", place.display(), word(&standing)))?;
    for line in explained(name, &standing, folders) {
        context.screen.line(&line);
    }
    Ok(Exit::Done)
}

pub(super) fn revoke(context: &Context, name: &str, folders: &PluginFolders) -> Result<Exit, Failure> {
    let mut desk = Desk::new(context, folders)?;
    if !desk.folder.knows(name) {
        desk.find(name)?;
        print(&format!("`{name}` was granted nothing"))?;
        return Ok(Exit::Done);
    }
    let trust = desk.host.trust().clone();
    desk.folder.revoke(name, &trust)?;
    print(&format!("`{name}` may do nothing any more"))?;
    if let Some((file, plugin)) = desk.catalogue.find(name)
        && let Standing::Waiting { .. } = desk.standing(file, plugin)
    {
        context.screen.line("it cannot be used until you decide again");
    }
    Ok(Exit::Done)
}

pub(super) fn remove(context: &Context, name: &str, folders: &PluginFolders) -> Result<Exit, Failure> {
    let mut desk = Desk::new(context, folders)?;
    let file = desk.find(name)?.0.to_owned();
    let own = folders.folder.join("plugins");
    if !file.starts_with(&own) {
        return Err(Failure::refused(format!("`{name}` lies in `{}`, not in `{}`", file.display(), own.display()))
            .help("delete the file there, if you want it gone from there too"));
    }
    if desk.folder.knows(name) {
        let trust = desk.host.trust().clone();
        desk.folder.revoke(name, &trust)?;
    }
    uninstall(&file).map_err(|error| Failure::failed(format!("cannot delete `{}`: {error}", file.display())))?;
    print(&format!("removed `{name}`"))?;
    Ok(Exit::Done)
}
