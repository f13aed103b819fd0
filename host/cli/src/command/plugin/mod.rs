//! `hotcell plugin`: what authors make, and what the operator of a folder sees and decides of its plugins.

mod attack;
mod author;
mod call;
mod cases;
mod change;
mod grant;
mod inspect;
mod list;
mod replay;
mod sign;
mod store;
mod verify;

use std::io::ErrorKind;
use std::ops::{Deref, DerefMut};
use std::path::Path;

use hotcell_runtime::PluginDesk;
use hotcell_runtime::plugins::{Plugin as Component, Standing};

use super::{Context, HostArguments, print, quoted};
use crate::arguments::{Plugin, PluginFolders};
use crate::exit::{Exit, Failure};
use crate::untrusted::one_line;

pub(super) fn perform(context: &Context, arguments: Plugin) -> Result<Exit, Failure> {
    match arguments {
        Plugin::New(arguments) => author::new(context, &arguments),
        Plugin::Setup { lang } => author::setup(context, &lang),
        Plugin::Build { project } => author::build(context, &project),
        Plugin::Test(arguments) => cases::test(context, &arguments),
        Plugin::Bench(arguments) => cases::bench(context, &arguments),
        Plugin::Replay(arguments) => replay::perform(context, &arguments),
        Plugin::Call(arguments) => call::perform(context, arguments),
        Plugin::List { folders, json } => list::perform(context, &folders, json),
        Plugin::Inspect { plugin, folders, json } => inspect::perform(context, &plugin, &folders, json),
        Plugin::Add { file, folders, replace } => change::add(context, &file, &folders, replace),
        Plugin::Grant(arguments) => grant::perform(context, &arguments),
        Plugin::Revoke { plugin, folders } => change::revoke(context, &plugin, &folders),
        Plugin::Remove { plugin, folders, purge, yes } => change::remove(context, &plugin, &folders, purge, yes),
        Plugin::Store(arguments) => store::perform(context, &arguments),
        Plugin::Verify { plugin, folders, keys } => verify::perform(context, plugin.as_deref(), &folders, &keys),
        Plugin::Attack { hostile, folders } => attack::perform(context, hostile.as_deref(), &folders),
        Plugin::Sign { file, key } => sign::sign(context, &file, &key),
        Plugin::Keygen { file } => sign::keygen(context, &file),
    }
}

/// Whether a folder is that of a plugin project.
fn is_project(folder: &Path) -> bool {
    ["plugin.toml", "Cargo.toml"].iter().any(|file| folder.join(file).is_file())
}

/// The plugin in a file that somebody named.
fn component_in(file: &Path) -> Result<Component, Failure> {
    let name = one_line(&file.to_string_lossy(), 500);
    if file.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        return Err(Failure::refused(format!("there is no file `{name}`")));
    }
    Component::read(file)
        .map_err(|reason| Failure::refused(format!("`{name}` is not a plugin: {}", one_line(&reason.to_string(), 500))))
}

/// A folder with its plugins and what was said about them.
struct Desk(PluginDesk);

impl Deref for Desk {
    type Target = PluginDesk;

    fn deref(&self) -> &PluginDesk {
        &self.0
    }
}

impl DerefMut for Desk {
    fn deref_mut(&mut self) -> &mut PluginDesk {
        &mut self.0
    }
}

impl Desk {
    fn new(context: &Context, folders: &PluginFolders) -> Result<Self, Failure> {
        Desk::with_model(context, folders, None)
    }

    /// The same where plugins may ask a model.
    fn with_model(context: &Context, folders: &PluginFolders, model: Option<String>) -> Result<Self, Failure> {
        let plugins = folders.more.plugins.clone();
        let arguments = HostArguments { plugins, model, without_runs: true, ..HostArguments::default() };
        Ok(Desk(context.host(arguments)?.plugin_desk(&folders.folder)?))
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
            return Err(Failure::refused(format!(
                "`{}` is broken: {}",
                file.display(),
                one_line(&reason.to_string(), 500)
            )));
        }
        let names: Vec<&str> = self.catalogue.plugins().map(|(_, plugin)| plugin.description.name.as_str()).collect();
        let help = match hotcell_graph::closest(name, names.iter().copied()) {
            Some(near) => format!("did you mean `{}`?", one_line(near, 100)),
            None if names.is_empty() => "this folder has no plugins; `hotcell plugin add FILE` installs one".to_owned(),
            None => "`hotcell plugin list` lists the plugins".to_owned(),
        };
        Err(Failure::refused(format!("there is no plugin `{}`", one_line(name, 100))).help(help))
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
fn plugin_nodes(plugin: &Component) -> String {
    let description = &plugin.description;
    let mut plugin_nodes: Vec<String> = description.tools.iter().map(|tool| tool.name.clone()).collect();
    plugin_nodes.extend(description.nodes.iter().map(|node| format!("node type {}", node.node_type)));
    plugin_nodes.extend(description.hooks.iter().map(|hook| format!("hook {}", hook.point)));
    if description.connector.is_some() {
        plugin_nodes.push("connector".to_owned());
    }
    one_line(&plugin_nodes.join(", "), 100)
}

/// The command that decides on a plugin, as the person would write it from where they are.
fn grant_command(name: &str, folders: &PluginFolders) -> String {
    let mut command = format!("hotcell plugin grant {}", quoted(name));
    if folders.folder != Path::new(".") {
        command.push_str(&format!(" --in {}", quoted(&folders.folder.to_string_lossy())));
    }
    for folder in &folders.more.plugins {
        command.push_str(&format!(" --plugins {}", quoted(&folder.to_string_lossy())));
    }
    command
}

/// What a standing means and what to do about it, one line each.
fn explained(name: &str, standing: &Standing, folders: &PluginFolders) -> Vec<String> {
    let list = |lines: &[String]| lines.iter().map(|line| format!("  - {}", one_line(line, 500))).collect::<Vec<_>>();
    let command = grant_command(name, folders);
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
