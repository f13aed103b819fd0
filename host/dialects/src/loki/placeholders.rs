//! Placeholders of the language's own, `{{__os__}}` and its like: they stand for what is around a run, and for the tools of
//! whoever reads them.
//!
//! What an agent's tools and scripts find around them is a cell, so that is what a model is told.

use crate::surroundings::Surroundings;

/// The variable with the time at which the run began.
pub(super) const NOW: &str = "__now__";
/// The list of the tools.
const TOOLS: &str = "__tools__";
/// The folder in which they work.
const FOLDER: &str = "__cwd__";
/// What looks the same in every cell.
const CELL: [(&str, &str); 6] = [
    ("__os__", "linux"),
    ("__os_family__", "unix"),
    ("__os_distro__", "linux"),
    ("__arch__", "wasm32"),
    ("__shell__", "bash"),
    ("__locale__", "C.UTF-8"),
];

/// The text in the place of a reference that means the same wherever it stands.
pub(super) fn anywhere(name: &str) -> Option<String> {
    CELL.iter().find(|(placeholder, _)| *placeholder == name).map(|(_, text)| (*text).to_owned())
}

/// The text in the place of a reference in what a model with these tools is told; `built_in` are the names and descriptions of
/// those that belong to its loop.
pub(super) fn for_model(
    name: &str,
    tools: &[String],
    built_in: &[(String, String)],
    surroundings: &dyn Surroundings,
) -> Option<String> {
    match name {
        TOOLS => Some(list(tools, built_in, surroundings)),
        FOLDER => Some(surroundings.working_folder()),
        _ => anywhere(name),
    }
}

/// Whether a name has the form of a placeholder.
pub(super) fn is_placeholder(name: &str) -> bool {
    name.len() > 4 && name.starts_with("__") && name.ends_with("__")
}

/// Whether it is one that this program fills, for a model or for anybody.
pub(super) fn is_known(name: &str, for_model: bool) -> bool {
    name == NOW || anywhere(name).is_some() || for_model && matches!(name, TOOLS | FOLDER)
}

/// What to do about a placeholder that nothing fills.
pub(super) fn help(name: &str, for_model: bool) -> String {
    if !for_model && is_known(name, true) {
        return format!("`{{{{{name}}}}}` can stand in the `instructions` and the `prompt` of a model");
    }
    let all: Vec<&str> = CELL.iter().map(|(placeholder, _)| *placeholder).chain([NOW, TOOLS, FOLDER]).collect();
    match hotcell_graph::closest(name, all.iter().copied()) {
        Some(near) => format!("did you mean `{{{{{near}}}}}`?"),
        None => format!("the placeholders are `{}`", all.join("`, `")),
    }
}

fn list(tools: &[String], built_in: &[(String, String)], surroundings: &dyn Surroundings) -> String {
    let shown = |tool: &String| surroundings.shown_tool(tool).unwrap_or_else(|| (tool.clone(), String::new()));
    let all = tools.iter().map(shown).chain(built_in.iter().cloned());
    let line = |(place, (name, description)): (usize, (String, String))| match description.lines().next() {
        Some(first) => format!("{}. {name}: {first}", place + 1),
        None => format!("{}. {name}", place + 1),
    };
    all.enumerate().map(line).collect::<Vec<_>>().join("\n")
}
