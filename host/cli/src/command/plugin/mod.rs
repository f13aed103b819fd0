//! `hotcell plugin`: what authors make, and what the operator of a folder sees and decides of its plugins.

mod attack;
mod author;
mod cases;
mod change;
mod grant;
mod inspect;
mod list;
mod sign;
mod store;
mod verify;

use std::path::Path;

use hotcell_runtime::Host;
use hotcell_runtime::plugins::{AgentFolder, Catalogue, Plugin as Component, Standing};

use super::{Context, HostArguments, print, quoted};
use crate::arguments::{Plugin, Shelf};
use crate::exit::{Exit, Failure};
use crate::untrusted::one_line;

pub(super) fn perform(context: &Context, arguments: Plugin) -> Result<Exit, Failure> {
    match arguments {
        Plugin::New(arguments) => author::new(context, &arguments),
        Plugin::Build { project } => author::build(context, &project),
        Plugin::Test(arguments) => cases::test(context, &arguments),
        Plugin::Bench(arguments) => cases::bench(context, &arguments),
        Plugin::List { shelf, json } => list::perform(context, &shelf, json),
        Plugin::Inspect { plugin, shelf, json } => inspect::perform(context, &plugin, &shelf, json),
        Plugin::Add { file, shelf, replace } => change::add(context, &file, &shelf, replace),
        Plugin::Grant(arguments) => grant::perform(context, &arguments),
        Plugin::Revoke { plugin, shelf } => change::revoke(context, &plugin, &shelf),
        Plugin::Remove { plugin, shelf } => change::remove(context, &plugin, &shelf),
        Plugin::Store(arguments) => store::perform(context, &arguments),
        Plugin::Verify { plugin, shelf, keys } => verify::perform(context, plugin.as_deref(), &shelf, &keys),
        Plugin::Attack { hostile, shelf } => attack::perform(context, hostile.as_deref(), &shelf),
        Plugin::Sign { file, key } => sign::sign(context, &file, &key),
        Plugin::Keygen { file } => sign::keygen(context, &file),
    }
}

/// A folder with its plugins and what was said about them.
struct Desk {
    host: Host,
    folder: AgentFolder,
    catalogue: Catalogue,
}

impl Desk {
    fn new(context: &Context, shelf: &Shelf) -> Result<Self, Failure> {
        let arguments =
            HostArguments { plugins: shelf.plugins.clone(), without_runs: true, ..HostArguments::default() };
        let host = context.host(arguments)?;
        let folder = host.agent_folder(&shelf.folder)?;
        let catalogue = host.catalogue(&shelf.folder);
        Ok(Desk { host, folder, catalogue })
    }

    /// The plugin of that name.
    fn find(&self, name: &str) -> Result<(&Path, &Component), Failure> {
        if let Some(found) = self.catalogue.find(name) {
            return Ok(found);
        }
        let broken = self.catalogue.found().iter().find(|found| {
            found.plugin.is_err() && found.file.file_stem().is_some_and(|stem| stem.to_string_lossy() == name)
        });
        if let Some((file, Err(reason))) = broken.map(|found| (&found.file, &found.plugin)) {
            return Err(Failure::refused(format!("`{}` is broken: {}", file.display(), one_line(reason, 500))));
        }
        let names: Vec<&str> = self.catalogue.plugins().map(|(_, plugin)| plugin.description.name.as_str()).collect();
        let help = match hotcell_graph::closest(name, names.iter().copied()) {
            Some(near) => format!("did you mean `{}`?", one_line(near, 100)),
            None if names.is_empty() => "put its component there with `hotcell plugin add FILE`".to_owned(),
            None => "`hotcell plugin list` shows those there are".to_owned(),
        };
        Err(Failure::refused(format!("there is no plugin `{}`", one_line(name, 100))).help(help))
    }

    fn standing(&self, file: &Path, plugin: &Component) -> Standing {
        self.folder.standing(file, plugin, self.host.signatures())
    }
}

/// How a plugin stands, in one word.
fn word(standing: &Standing) -> &'static str {
    match standing {
        Standing::Ready => "ready",
        Standing::Waiting { .. } => "waiting",
        Standing::Changed { .. } => "changed",
        Standing::Refused { .. } => "refused",
    }
}

/// What a plugin offers, in a few words.
fn offers(plugin: &Component) -> String {
    let description = &plugin.description;
    let mut offers: Vec<String> = description.tools.iter().map(|tool| tool.name.clone()).collect();
    offers.extend(description.nodes.iter().map(|node| format!("node type {}", node.node_type)));
    offers.extend(description.hooks.iter().map(|hook| format!("hook {}", hook.point)));
    if description.connector.is_some() {
        offers.push("connector".to_owned());
    }
    one_line(&offers.join(", "), 100)
}

/// The command that decides on a plugin, as the person would write it from where they are.
fn grant_command(name: &str, shelf: &Shelf) -> String {
    let mut command = format!("hotcell plugin grant {}", quoted(name));
    if shelf.folder != Path::new(".") {
        command.push_str(&format!(" --in {}", quoted(&shelf.folder.to_string_lossy())));
    }
    for folder in &shelf.plugins {
        command.push_str(&format!(" --plugins {}", quoted(&folder.to_string_lossy())));
    }
    command
}

/// What a standing means and what to do about it, one line each.
fn explained(name: &str, standing: &Standing, shelf: &Shelf) -> Vec<String> {
    let list = |lines: &[String]| lines.iter().map(|line| format!("  - {}", one_line(line, 500))).collect::<Vec<_>>();
    let command = grant_command(name, shelf);
    match standing {
        Standing::Ready => Vec::new(),
        Standing::Waiting { asks } => {
            let mut said = vec!["it asks to".to_owned()];
            said.extend(list(asks));
            said.push(format!("decide with: {command}"));
            said
        }
        Standing::Changed { more, less } => {
            let mut said = vec!["it is not the component that was granted something here".to_owned()];
            said.extend(more.iter().map(|line| format!("  + now also asks to {}", one_line(line, 500))));
            said.extend(less.iter().map(|line| format!("  - no longer asks to {}", one_line(line, 500))));
            said.push(format!("decide with: {command}"));
            said
        }
        Standing::Refused { reason } => vec![one_line(reason, 1_000)],
    }
}
