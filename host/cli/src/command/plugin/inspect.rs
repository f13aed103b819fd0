//! `hotcell plugin inspect`

use std::path::Path;

use hotcell_runtime::plugins::Plugin as Component;
use serde_json::json;

use super::{Context, Desk, component_in, explained, print, word};
use crate::arguments::PluginFolders;
use crate::events;
use crate::exit::{Exit, Failure};
use crate::untrusted::{lines, one_line};

pub(super) fn perform(
    context: &Context,
    plugin: &str,
    folders: &PluginFolders,
    as_json: bool,
) -> Result<Exit, Failure> {
    let desk = Desk::new(context, folders)?;
    let (file, component) = match Path::new(plugin) {
        path if path.extension().is_some_and(|extension| extension == "wasm") => (path.to_owned(), component_in(path)?),
        _ => desk.find(plugin).map(|(file, component)| (file.to_owned(), component.clone()))?,
    };
    if as_json {
        let granted = desk.folder.settings().grants(&component.description.name);
        events::line(&json!({
            "file": file.display().to_string(),
            "digest": component.survey.digest,
            "size": component.survey.size,
            "standing": word(&desk.standing(&file, &component)),
            "description": component.description,
            "imports": component.survey.imports,
            "exports": component.survey.exports,
            "granted": *granted,
        }))?;
        return Ok(Exit::Done);
    }
    print(&described(&desk, &file, &component, folders).join("\n"))?;
    Ok(Exit::Done)
}

fn described(desk: &Desk, file: &Path, component: &Component, folders: &PluginFolders) -> Vec<String> {
    let description = &component.description;
    let name = &description.name;
    let standing = desk.standing(file, component);
    let version = description.version.as_ref().map(|version| format!(" {}", one_line(version, 40)));
    let mut said = vec![format!("{name}{}: {}", version.unwrap_or_default(), word(&standing))];
    let indented = |text: &str| lines(text).lines().map(|line| format!("  {line}")).collect::<Vec<_>>();
    said.extend(indented(&description.description));
    let mut section = |title: &str, items: Vec<String>| {
        if !items.is_empty() {
            said.push(format!("\n{title}"));
            said.extend(items);
        }
    };
    // Paragraphs become one: a line break is no news in a list.
    let flowing = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let item = |name: &str, text: &str| format!("  {name}: {}", one_line(&flowing(text), 300));
    let tools = description.tools.iter().map(|tool| {
        let mut shown = item(&tool.name, &tool.description);
        shown.push_str(&format!("\n    {}", one_line(&tool.parameters.to_string(), 1_000)));
        shown
    });
    section("tools", tools.collect());
    let nodes = description.nodes.iter().map(|node| {
        let branches =
            if node.branches.is_empty() { String::new() } else { format!(" ({})", node.branches.join(", ")) };
        item(&format!("{name}/{}{branches}", node.node_type), &node.description)
    });
    section("node types", nodes.collect());
    section("hooks", description.hooks.iter().map(|hook| item(&hook.point, &hook.description)).collect());
    section(
        "connector",
        description.connector.iter().map(|connector| item("takes", &connector.config.to_string())).collect(),
    );
    let list = |lines: Vec<String>| lines.iter().map(|line| format!("  - {}", one_line(line, 500))).collect::<Vec<_>>();
    section(
        "asks to",
        list(description.capabilities.in_words().into_iter().chain(component.hooks_in_words()).collect()),
    );
    section("may", list(desk.folder.settings().grants(name).in_words()));
    section("standing", explained(name, &standing, folders).into_iter().map(|line| format!("  {line}")).collect());
    section(
        "component",
        vec![
            format!("  file      {}", file.display()),
            format!("  size      {} bytes", component.survey.size),
            format!("  sha256    {}", component.survey.digest),
            format!("  contract  {}", one_line(&description.contract, 40)),
            format!("  exports   {}", one_line(&component.survey.exports.join(", "), 500)),
            format!("  imports   {}", one_line(&component.survey.imports.join(", "), 1_000)),
        ],
    );
    said
}
