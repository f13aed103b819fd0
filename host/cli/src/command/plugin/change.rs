//! `hotcell plugin add`, `revoke` and `remove`

use std::path::Path;

use hotcell_runtime::plugins::{Owner, Plugin as Component, Standing, install, install_bytes};
use hotcell_runtime::{RemoveError, shipped_plugins};

use super::{Context, Desk, component_in, explained, print, quoted, word};
use crate::arguments::PluginFolders;
use crate::exit::{Exit, Failure};
use crate::untrusted::one_line;

/// What is added.
enum Added<'a> {
    File(&'a Path),
    /// A plugin that ships with hotcell
    Shipped(Vec<u8>),
}

/// The component that is meant: a file, or one that ships with hotcell.
fn meant(file: &Path) -> Result<(Added<'_>, Component), Failure> {
    let name = file.to_string_lossy();
    if file.exists() || name.contains(['/', '.']) {
        return Ok((Added::File(file), component_in(file)?));
    }
    let unreadable = |error: &dyn std::fmt::Display| Failure::failed(error.to_string());
    let shipped = shipped_plugins().map_err(|error| unreadable(&error))?;
    let names: Vec<&str> = shipped.iter().map(|plugin| plugin.name.as_str()).collect();
    let Some(found) = shipped.iter().find(|plugin| plugin.name == name) else {
        let help = match hotcell_graph::closest(&name, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("name a component file, or one of {}", names.join(", ")),
        };
        let name = one_line(&name, 100);
        return Err(Failure::refused(format!(
            "there is no file `{name}`, and no plugin of that name ships with hotcell"
        ))
        .help(help));
    };
    let component = Component::of_bytes(&found.component).map_err(|reason| unreadable(&reason))?;
    Ok((Added::Shipped(found.component.clone()), component))
}

pub(super) fn add(context: &Context, file: &Path, folders: &PluginFolders, replace: bool) -> Result<Exit, Failure> {
    let (added, component) = meant(file)?;
    let desk = Desk::new(context, folders)?;
    let name = &component.description.name;
    if let Some((there, other)) = desk.catalogue.find(name) {
        if other.survey.digest == component.survey.digest {
            print(&format!("`{name}` is here already, as `{}`", there.display()))?;
            return Ok(Exit::Done);
        }
        if !replace {
            return Err(Failure::refused(format!("there is a plugin `{name}` already, `{}`", there.display()))
                .help("pass `--replace` to replace it"));
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
    match &added {
        Added::File(file) => install(file, &place),
        Added::Shipped(component) => install_bytes(component, &place),
    }
    .map_err(|error| Failure::failed(format!("cannot write `{}`: {error}", place.display())))?;
    let standing = desk.folder.standing(&place, &component, desk.host.signatures());
    print(&format!("added `{name}` as `{}`: {}", place.display(), word(&standing)))?;
    for line in explained(name, &standing, folders) {
        context.screen.line(&line);
    }
    Ok(Exit::Done)
}

pub(super) fn revoke(context: &Context, name: &str, folders: &PluginFolders) -> Result<Exit, Failure> {
    let mut desk = Desk::new(context, folders)?;
    if !desk.revoke(name)? {
        desk.find(name)?;
        print(&format!("`{name}` was granted nothing"))?;
        return Ok(Exit::Done);
    }
    print(&format!("`{name}` has no grants any more"))?;
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
    desk.check_own(&file, name)?;
    let kept = desk.kept(&file, name)?;
    if purge && kept.keys > 0 && !yes {
        context.confirm(&format!("Delete all that `{name}` has stored here ({kept})?"))?;
    }
    desk.remove(&file, name, purge)?;
    match (purge, kept.keys) {
        (_, 0) => print(&format!("removed `{name}`"))?,
        (true, _) => print(&format!("removed `{name}` and its data ({kept})"))?,
        (false, _) => {
            print(&format!("removed `{name}`"))?;
            let mut command = vec!["hotcell plugin remove".to_owned(), quoted(name), "--purge".to_owned()];
            if folders.folder != Path::new(".") {
                command.push(format!("--in {}", quoted(&folders.folder.to_string_lossy())));
            }
            context.screen.line(&format!("its data is kept ({kept}) for a plugin of the same name"));
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

impl From<RemoveError> for Failure {
    fn from(error: RemoveError) -> Self {
        match error {
            RemoveError::Elsewhere { .. } => {
                Failure::refused(error.to_string()).help("delete the file there, if you want it gone from there too")
            }
            RemoveError::Grant(error) => error.into(),
            RemoveError::Stores(error) => error.into(),
            RemoveError::File { .. } => Failure::failed(error.to_string()),
        }
    }
}
