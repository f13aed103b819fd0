//! What `hotcell.toml` says of what an agent does not have: most often it is misspelt.

use hotcell_graph::diagnostic::Diagnostic;
use hotcell_graph::{Courtesy, closest};
use hotcell_plugins::{SETTINGS_FILE, Settings};
use indexmap::IndexSet;

use crate::knowledge::GRANT_PREFIX;
use crate::permissions::FILE_GRANTS;
use crate::servers::PREFIX;

/// What is told of one file of settings. It may be a stranger's, and name any number of things.
const MOST_TOLD: usize = 200;
/// Import paths that are looked for in the text of an agent's file.
const MOST_IMPORTS: usize = 1000;

/// What an agent has that settings may be about.
pub(crate) struct Known<'a> {
    /// Script paths, files with tools, plugins
    pub(crate) names: Vec<&'a str>,
    pub(crate) servers: Vec<String>,
    /// The nodes with knowledge bases
    pub(crate) knowledge: Vec<&'a str>,
    /// The plugins with hooks
    pub(crate) hooks: Vec<&'a str>,
    /// The text of the agent's file
    pub(crate) text: &'a str,
}

/// What the settings say of what the agent does not have, each with the name that they have for it; the first of these, if there are many.
pub(crate) fn unmatched<'s>(settings: &'s Settings, known: &Known<'_>) -> Vec<(&'s str, Diagnostic)> {
    let _courtesy = Courtesy::for_a_file();
    let mut found = Vec::new();
    for (kind, name) in settings.entries() {
        let (what, all, prefix): (&str, Vec<&str>, &str) = match name {
            FILE_GRANTS => continue,
            _ if name.starts_with(PREFIX) => {
                ("there is no MCP server", known.servers.iter().map(String::as_str).collect(), PREFIX)
            }
            _ if name.starts_with(GRANT_PREFIX) => {
                ("there is no knowledge base", known.knowledge.clone(), GRANT_PREFIX)
            }
            _ => ("this agent has no script or plugin", known.names.clone(), ""),
        };
        let own = name.strip_prefix(prefix).unwrap_or(name);
        if all.contains(&own) {
            continue;
        }
        if found.len() == MOST_TOLD {
            break;
        }
        let warning =
            Diagnostic::warning(format!("`{}` in `{SETTINGS_FILE}` has no effect: {what} `{own}`", table(kind, name)));
        let help = match closest(own, all.iter().copied()) {
            Some(near) => format!("did you mean `{}`?", table(kind, &format!("{prefix}{near}"))),
            None if prefix.is_empty() => {
                "names are script paths as the graph writes them, or names of plugins".to_owned()
            }
            None => format!("`hotcell explain {kind}` says which names there are"),
        };
        found.push((name, warning.help(help)));
    }
    for name in settings.optional_hooks().filter(|name| !known.hooks.contains(name)).take(MOST_TOLD) {
        let warning = Diagnostic::warning(format!(
            "`optional` under `[hooks]` in `{SETTINGS_FILE}` names `{name}`, and there is no hook plugin of that name"
        ));
        found.push((name, with_near(warning, name, known.hooks.iter().copied())));
    }
    let (sources, granted) = settings.secret_names();
    let granted: IndexSet<&str> = granted.collect();
    for name in sources.filter(|name| !granted.contains(name)).take(MOST_TOLD) {
        let warning = Diagnostic::warning(format!(
            "`[secrets]` in `{SETTINGS_FILE}` says where `{name}` comes from, and nothing is granted that secret"
        ));
        found.push((name, with_near(warning, name, granted.iter().copied())));
    }
    for path in settings.imports().take(MOST_IMPORTS).filter(|path| !known.text.contains(path)).take(MOST_TOLD) {
        let warning = format!("`[imports]` in `{SETTINGS_FILE}` names `{path}`, which this file does not import");
        let warning = Diagnostic::warning(warning);
        found.push((path, warning.help("write import paths as they are in the file")));
    }
    for (written, path) in settings.directories().filter(|(_, path)| !path.is_dir()).take(MOST_TOLD) {
        let what = if path.exists() { "is not a directory" } else { "does not exist" };
        let warning = format!("the granted directory `{written}` in `{SETTINGS_FILE}` {what}");
        found.push((written, Diagnostic::warning(warning).help(format!("it would be `{}`", path.display()))));
    }
    found.truncate(MOST_TOLD);
    found
}

fn with_near<'a>(warning: Diagnostic, name: &str, all: impl IntoIterator<Item = &'a str>) -> Diagnostic {
    match closest(name, all) {
        Some(near) => warning.help(format!("did you mean `{near}`?")),
        None => warning,
    }
}

/// The heading of a table: `[grants."a.py"]`, `[budget.weather]`.
fn table(kind: &str, name: &str) -> String {
    let is_bare = name.chars().all(|character| character.is_ascii_alphanumeric() || matches!(character, '-' | '_'));
    if is_bare { format!("[{kind}.{name}]") } else { format!("[{kind}.\"{}\"]", name.escape_default()) }
}
