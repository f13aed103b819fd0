//! `hotcell plugin add`, `revoke` and `remove`

use std::path::Path;

use hotcell_runtime::plugins::{Owner, Plugin as Component, Standing, install, uninstall};

use super::{Context, Desk, explained, print, quoted, word};
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

pub(super) fn remove(
    context: &Context,
    name: &str,
    folders: &PluginFolders,
    purge: bool,
    yes: bool,
) -> Result<Exit, Failure> {
    let mut desk = Desk::new(context, folders)?;
    let file = match desk.find(name) {
        Ok((file, _)) => file.to_owned(),
        Err(missing) if purge => return purge_alone(context, &desk, name, yes, missing),
        Err(missing) => return Err(missing),
    };
    let own = folders.folder.join("plugins");
    if !file.starts_with(&own) {
        return Err(Failure::refused(format!("`{name}` lies in `{}`, not in `{}`", file.display(), own.display()))
            .help("delete the file there, if you want it gone from there too"));
    }
    let owner = desk.host.owner(desk.folder.path(), &file, name)?;
    let stores = desk.host.stores()?;
    let kept = stores.amount_of(&owner)?;
    if purge && kept.keys > 0 && !yes {
        context.confirm(&format!("Delete all that `{name}` has stored here ({kept})?"))?;
    }
    if desk.folder.knows(name) {
        let trust = desk.host.trust().clone();
        desk.folder.revoke(name, &trust)?;
    }
    uninstall(&file).map_err(|error| Failure::failed(format!("cannot delete `{}`: {error}", file.display())))?;
    let stores = desk.host.stores()?;
    match (purge, kept.keys) {
        (_, 0) => print(&format!("removed `{name}`"))?,
        (true, _) => {
            stores.purge(&owner)?;
            print(&format!("removed `{name}` and its data ({kept})"))?;
        }
        (false, _) => {
            print(&format!("removed `{name}`"))?;
            let mut command = vec!["hotcell plugin remove".to_owned(), quoted(name), "--purge".to_owned()];
            if folders.folder != Path::new(".") {
                command.push(format!("--in {}", quoted(&folders.folder.to_string_lossy())));
            }
            context.screen.line(&format!("its data stays ({kept}): a plugin of that name finds it here again"));
            context.screen.line(&format!("delete it with: {}", command.join(" ")));
        }
    }
    Ok(Exit::Done)
}

/// Deletes the data of a plugin that is not there any more.
fn purge_alone(context: &Context, desk: &Desk, name: &str, yes: bool, missing: Failure) -> Result<Exit, Failure> {
    let owner = Owner::of_project(desk.folder.path(), name)?;
    let stores = desk.host.stores()?;
    let kept = stores.amount_of(&owner)?;
    if kept.keys == 0 {
        return Err(missing);
    }
    if !yes {
        context.confirm(&format!("Delete all that `{name}` has stored here ({kept})?"))?;
    }
    stores.purge(&owner)?;
    print(&format!("deleted the data of `{name}` ({kept})"))?;
    Ok(Exit::Done)
}
