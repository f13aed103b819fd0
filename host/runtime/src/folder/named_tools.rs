//! Tools that a file names and leaves to the host: any name, for which there is a tool of a plugin or a function of a Python
//! file here; and files of the project that are one tool each.

use hotcell_dialects::{FileState, Imported, ServerState, Surroundings, ToolState, normal_name};

use super::AgentSurroundings;
use super::imports::python_function;

/// The Python file beside an agent whose functions are tools, before all others.
const TOOLS_FILE: &str = "tools.py";
/// What the full name of a function of an MCP server begins with.
const SERVER: &str = "mcp:";
/// Where a project has files that are one tool each, named after it.
const TOOL_FILES: &str = "functions/tools";
/// Their extensions, the first of which goes before the others.
const TOOL_EXTENSIONS: [&str; 3] = ["sh", "py", "ts"];
/// Letters that the name of such a tool may have, as models take no more.
const MAX_NAME: usize = 64;
/// How many Python files beside an agent are looked at.
const MOST_FILES: usize = 100;

impl AgentSurroundings<'_> {
    /// What the operator says that the name means; else the tool of that name; else the only one with the name in normal
    /// form (see [`normal_name`]): of a plugin, of `tools.py`, of another Python file beside the agent.
    pub(super) fn find_named_tool(&self, name: &str) -> Imported {
        let normal = normal_name(name);
        if let Some(said) = self.reach.settings.import(name) {
            return self.said_tool(name, said, &normal);
        }
        match self.tool(name) {
            ToolState::Usable => return Imported::Usable(name.to_owned()),
            ToolState::Unusable(reason) => return Imported::Unusable(reason),
            ToolState::Missing => {}
        }
        let offered = self.reach.tools.functions().names();
        let known = self.reach.registry.tool_names().chain(offered);
        let mut alike: Vec<&str> = known.filter(|known| normal_name(known) == normal).collect();
        alike.sort_unstable();
        alike.dedup();
        match alike[..] {
            [] => {}
            [one] => match self.tool(one) {
                ToolState::Unusable(reason) => return Imported::Unusable(reason),
                _ => return Imported::Usable(one.to_owned()),
            },
            _ => return several(name, &alike),
        }
        self.python_function_named(name, &normal)
    }

    /// The tool of the file `functions/tools/NAME` of the project, in the folder of the agent or the nearest root above it.
    pub(super) fn find_tool_file(&self, name: &str) -> Imported {
        let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
        let files = TOOL_EXTENSIONS.map(|extension| format!("{TOOL_FILES}/{name}.{extension}"));
        let is_name = !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(fits);
        let found = files.iter().filter(|_| is_name).find_map(|file| self.modules.file(file));
        let Some(file) = found else {
            return Imported::Missing { searched: files.iter().map(|file| format!("`{file}`")).collect() };
        };
        let file = self.path_in_project(&file);
        match self.reach.python.file_tool(&self.place(Some(name)), &file, name) {
            Ok(full_name) => Imported::Usable(full_name),
            Err(error) => Imported::Unusable(error.to_string()),
        }
    }

    /// The tool that the operator means.
    fn said_tool(&self, name: &str, said: &str, normal: &str) -> Imported {
        let wrong =
            |what: String| Imported::Unusable(format!("`[imports]` says that `{name}` is `{said}`, and {what}"));
        if let Some(named) = said.strip_prefix(SERVER) {
            let Some((server, function)) = named.split_once('/') else {
                return wrong("a function of an MCP server is written `mcp:SERVER/FUNCTION`".to_owned());
            };
            return match self.mcp_server(server) {
                ServerState::NotStarted => Imported::Usable(said.to_owned()),
                ServerState::Usable(functions) if functions.iter().any(|known| known == function) => {
                    Imported::Usable(said.to_owned())
                }
                ServerState::Usable(functions) => {
                    wrong(format!("the MCP server `{server}` has no such function, only `{}`", functions.join("`, `")))
                }
                ServerState::Missing => wrong(format!("there is no MCP server `{server}` in `mcp.json`")),
                ServerState::Unusable(reason) => wrong(format!("the MCP server `{server}` cannot be used: {reason}")),
            };
        }
        if let Some((file, function)) = python_function(said, "") {
            let of_file = || self.defined(&file, &[name, normal]).unwrap_or(normal.to_owned());
            let function = if function.is_empty() { of_file() } else { function.to_owned() };
            return match self.script(&file) {
                FileState::Present => self.python_tool(&file, &function),
                FileState::Missing => wrong("there is no such file".to_owned()),
                FileState::Outside => wrong("that is outside of the folder".to_owned()),
            };
        }
        match self.tool(said) {
            ToolState::Usable => Imported::Usable(said.to_owned()),
            ToolState::Missing => wrong("no plugin here has such a tool".to_owned()),
            ToolState::Unusable(reason) => Imported::Unusable(reason),
        }
    }

    fn python_function_named(&self, name: &str, normal: &str) -> Imported {
        let names = [name, normal];
        let mut files = self.python_files();
        // A file that is there for tools goes before others.
        if let Some(function) = self.defined(TOOLS_FILE, &names) {
            return self.python_tool(TOOLS_FILE, &function);
        }
        files.retain(|file| file != TOOLS_FILE);
        let found: Vec<(&String, String)> =
            files.iter().filter_map(|file| Some((file, self.defined(file, &names)?))).collect();
        match &found[..] {
            [] => {
                let shown = if name == normal { format!("`{name}`") } else { format!("`{name}` or `{normal}`") };
                let python = format!("a function {shown} in `{TOOLS_FILE}` or another Python file beside this one");
                Imported::Missing { searched: vec![self.plugins("the tool", normal), python] }
            }
            [(file, function)] => self.python_tool(file, function),
            several_files => {
                let all: Vec<String> =
                    several_files.iter().map(|(file, function)| format!("{file}:{function}")).collect();
                several(name, &all.iter().map(String::as_str).collect::<Vec<_>>())
            }
        }
    }

    /// The Python files beside the agent, in the order of their names.
    fn python_files(&self) -> Vec<String> {
        let mut files = self.context.sources().files_ending(self.folder, ".py");
        files.retain(|name| !name.starts_with('.'));
        files.truncate(MOST_FILES);
        files
    }

    /// Which of these functions a file defines at its outermost level, as far as its text shows that.
    fn defined(&self, file: &str, names: &[&str]) -> Option<String> {
        if self.script(file) != FileState::Present {
            return None;
        }
        let text = self.read(file, Some(".")).ok()?;
        let is_defined = |name: &str| {
            text.lines().any(|line| {
                let line = line.strip_prefix("async ").map_or(line, str::trim_start);
                let rest = line.strip_prefix("def ").map(str::trim_start).and_then(|rest| rest.strip_prefix(name));
                rest.is_some_and(|rest| rest.trim_start().starts_with('('))
            })
        };
        names.iter().find(|name| !name.is_empty() && is_defined(name)).map(|name| (*name).to_owned())
    }
}

fn several(name: &str, all: &[&str]) -> Imported {
    Imported::Unusable(format!(
        "several tools here could be `{name}`: `{}`; say which one it is below `[imports]` in `hotcell.toml`: `\"{name}\" = \"{}\"`",
        all.join("`, `"),
        all.first().copied().unwrap_or_default()
    ))
}
