//! `hotcell plugin store`

use std::path::Path;

use hotcell_runtime::plugins::{Amount, Owner, Standing, StoresError, TakeOverError};
use serde_json::json;

use super::{Context, Desk, HostArguments, explained, print};
use crate::arguments::{PluginFolders, PluginStore};
use crate::events;
use crate::exit::{Exit, Failure};
use crate::screen::STRONG;
use crate::table::{Align, Table};
use crate::untrusted::{lines, one_line};

pub(super) fn perform(context: &Context, arguments: &PluginStore) -> Result<Exit, Failure> {
    match arguments {
        PluginStore::List { json } => list(context, *json),
        PluginStore::Move { old, new, replace, yes } => relocate(context, old, new, *replace, *yes),
        PluginStore::Adopt { plugin, folders, replace, yes } => adopt(context, plugin, folders, *replace, *yes),
    }
}

fn list(context: &Context, as_json: bool) -> Result<Exit, Failure> {
    let host = context.host(HostArguments { without_runs: true, ..HostArguments::default() })?;
    let listing = host.stores()?.list()?;
    if as_json {
        for (owner, Amount { keys, bytes }) in &listing.stores {
            let (project, folder) = (owner.project(), owner.folder());
            events::line(&json!({
                "plugin": owner.plugin(), "project": project, "folder": folder, "keys": keys, "bytes": bytes,
            }))?;
        }
        for (plugin, Amount { keys, bytes }) in &listing.unclaimed {
            events::line(&json!({ "plugin": plugin, "unclaimed": true, "keys": keys, "bytes": bytes }))?;
        }
        return Ok(Exit::Done);
    }
    if listing.stores.is_empty() && listing.unclaimed.is_empty() {
        context.screen.line("no plugin keeps data");
        return Ok(Exit::Done);
    }
    let mut table = Table::new([
        ("PLUGIN", Align::Left),
        ("PROJECT", Align::Left),
        ("FROM", Align::Left),
        ("KEYS", Align::Right),
        ("BYTES", Align::Right),
    ]);
    for (owner, amount) in &listing.stores {
        let (project, folder) = places(owner);
        table.row([one_line(owner.plugin(), 60), project, folder, amount.keys.to_string(), amount.bytes.to_string()]);
    }
    for (plugin, amount) in &listing.unclaimed {
        let nobody = "nobody's yet (see `adopt`)".to_owned();
        table.row([one_line(plugin, 60), nobody, String::new(), amount.keys.to_string(), amount.bytes.to_string()]);
    }
    let colour = context.colours_output();
    let heading = |text: &str| if colour { format!("{STRONG}{text}{STRONG:#}") } else { text.to_owned() };
    print(&table.lines(0, heading).join("\n"))?;
    Ok(Exit::Done)
}

fn relocate(context: &Context, old: &Path, new: &Path, replace: bool, yes: bool) -> Result<Exit, Failure> {
    let host = context.host(HostArguments { without_runs: true, ..HostArguments::default() })?;
    let stores = host.stores()?;
    if !new.is_dir() {
        return Err(Failure::refused(format!("there is no folder `{}`", one_line(&new.to_string_lossy(), 500))));
    }
    let below = stores.below(old)?;
    if below.is_empty() {
        return Err(Failure::refused(format!("there is no store of `{}`", one_line(&old.to_string_lossy(), 500)))
            .help("`hotcell plugin store list` lists the stores"));
    }
    for (owner, amount) in &below {
        let (project, _) = places(owner);
        let plugin = one_line(owner.plugin(), 100);
        context.screen.line(&format!("  - `{plugin}` of {project}, {amount}"));
    }
    if !yes {
        let new = one_line(&new.to_string_lossy(), 500);
        context.confirm(&format!("Make these the stores of `{new}`?"))?;
    }
    let moved = stores.relocate(old, new, replace)?;
    print(&match moved {
        1 => "moved one store".to_owned(),
        moved => format!("moved {moved} stores"),
    })?;
    Ok(Exit::Done)
}

fn adopt(context: &Context, name: &str, folders: &PluginFolders, replace: bool, yes: bool) -> Result<Exit, Failure> {
    let desk = Desk::new(context, folders)?;
    let (file, plugin) = desk.find(name)?;
    let standing = desk.standing(file, plugin);
    // What was written under a name is not for any component that says it has that name.
    if standing != Standing::Ready || !desk.folder.settings().grants(name).kv {
        for line in explained(name, &standing, folders) {
            context.screen.line(&line);
        }
        return Err(Failure::refused(format!("`{name}` may not keep data here, so it is not given any"))
            .help("grant it `kv` first, with `hotcell plugin grant`"));
    }
    let owner = desk.host.owner(desk.folder.path(), file, name)?;
    let stores = desk.host.stores()?;
    if !yes {
        context.confirm(&format!("Give `{name}` all that was written under that name?"))?;
    }
    let adopted = stores.adopt(&owner, replace)?;
    print(&format!("`{name}` has {adopted} now"))?;
    Ok(Exit::Done)
}

/// Whose a store is, and from where its plugin comes if not from the project itself.
fn places(owner: &Owner) -> (String, String) {
    let shown = |path: &Path| one_line(&path.to_string_lossy(), 300);
    (owner.project().map_or_else(|| "the user".to_owned(), shown), owner.folder().map(shown).unwrap_or_default())
}

impl From<StoresError> for Failure {
    fn from(error: StoresError) -> Self {
        match &error {
            StoresError::File { .. } => Failure::failed(lines(&error.to_string())),
            StoresError::Folder { .. } => Failure::refused(lines(&error.to_string())),
        }
    }
}

impl From<TakeOverError> for Failure {
    fn from(error: TakeOverError) -> Self {
        match error {
            TakeOverError::Stores(error) => error.into(),
            TakeOverError::Nothing => {
                Failure::refused(error.to_string()).help("`hotcell plugin store list` lists the stores")
            }
            TakeOverError::Taken(..) => {
                Failure::refused(lines(&error.to_string())).help("pass `--replace` to delete it and use the other data")
            }
        }
    }
}
