//! `hotcell plugin list`

use serde_json::json;

use super::{Context, Desk, explained, plugin_nodes, print, word};
use crate::arguments::PluginFolders;
use crate::events;
use crate::exit::{Exit, Failure};
use crate::screen::STRONG;
use crate::table::{Align, Table};
use crate::untrusted::one_line;

pub(super) fn perform(context: &Context, folders: &PluginFolders, as_json: bool) -> Result<Exit, Failure> {
    let desk = Desk::new(context, folders)?;
    if as_json {
        return lines(&desk);
    }
    let found = desk.catalogue.found();
    if found.is_empty() {
        context.screen.line("there are no plugins here; `hotcell plugin add FILE` puts one here");
        return Ok(Exit::Done);
    }
    let mut table = Table::new([
        ("PLUGIN", Align::Left),
        ("VERSION", Align::Left),
        ("STATUS", Align::Left),
        ("OFFERS", Align::Left),
        ("FILE", Align::Left),
    ]);
    let mut notes = Vec::new();
    for found in found {
        let file = found.file.display().to_string();
        match &found.plugin {
            Ok(plugin) => {
                let standing = desk.standing(&found.file, plugin);
                let name = &plugin.description.name;
                let version = plugin.description.version.clone().unwrap_or_default();
                table.row([
                    name.clone(),
                    one_line(&version, 40),
                    word(&standing).to_owned(),
                    plugin_nodes(plugin),
                    file,
                ]);
                let said = explained(name, &standing, folders);
                if !said.is_empty() {
                    notes.push(format!("{name}: {}", said.join("\n  ")));
                }
            }
            Err(reason) => {
                let stem = found.file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
                table.row([one_line(&stem, 60), String::new(), "broken".to_owned(), String::new(), file]);
                notes.push(format!("{}: {}", one_line(&stem, 60), one_line(&reason.to_string(), 500)));
            }
        }
    }
    table.fit_terminal();
    let colour = context.colours_output();
    let heading = |text: &str| if colour { format!("{STRONG}{text}{STRONG:#}") } else { text.to_owned() };
    print(&table.lines(0, heading).join("\n"))?;
    for note in notes {
        print(&format!("\n{note}"))?;
    }
    Ok(Exit::Done)
}

fn lines(desk: &Desk) -> Result<Exit, Failure> {
    for found in desk.catalogue.found() {
        let file = found.file.display().to_string();
        match &found.plugin {
            Ok(plugin) => {
                let standing = desk.standing(&found.file, plugin);
                events::line(&json!({
                    "file": file,
                    "name": plugin.description.name,
                    "version": plugin.description.version,
                    "standing": word(&standing),
                    "asks": plugin.description.capabilities.in_words().into_iter().chain(plugin.hooks_in_words()).collect::<Vec<_>>(),
                    "digest": plugin.survey.digest,
                    "size": plugin.survey.size,
                    "tools": plugin.description.tools.iter().map(|tool| &tool.name).collect::<Vec<_>>(),
                    "nodes": plugin.description.nodes.iter().map(|node| &node.node_type).collect::<Vec<_>>(),
                    "hooks": plugin.description.hooks.iter().map(|hook| &hook.point).collect::<Vec<_>>(),
                    "connector": plugin.description.connector.is_some(),
                }))?;
            }
            Err(reason) => events::line(&json!({ "file": file, "standing": "broken", "reason": reason.to_string() }))?,
        }
    }
    Ok(Exit::Done)
}
