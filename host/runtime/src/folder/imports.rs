//! What import paths of Python mean around an agent: tools of plugins, functions of Python files, and files of other agents.

use hotcell_dialects::{FileState, Imported, Surroundings as _, ToolState};

use super::{AGENT_FILE, AgentSurroundings};

impl AgentSurroundings<'_> {
    pub(super) fn import_tool(&self, path: &str) -> Imported {
        let (module, function) = path.rsplit_once(['.', ':']).unwrap_or(("", path));
        let said = self.reach.settings.import(path);
        let name = said.unwrap_or(function);
        if let Some((file, function)) = said.and_then(|said| python_function(said, function)) {
            return self.python_tool(&file, function);
        }
        match self.tool(name) {
            ToolState::Usable => return Imported::Usable(name.to_owned()),
            ToolState::Unusable(reason) => return Imported::Unusable(reason),
            ToolState::Missing => {}
        }
        let mut searched = vec![self.plugins("the tool", name)];
        if said.is_some() {
            return Imported::Missing { searched };
        }
        // As Python finds it, from the root of the project; else by the end of its name, beside the agent.
        if let Some(found) = self.modules.find(module).filter(|found| found.file.ends_with(".py")) {
            return self.python_function(&found.file, Some(module), function);
        }
        searched.extend(self.modules.searched(module));
        for file in files_of(module, ".py").skip(1) {
            if self.script(&file) == FileState::Present {
                return self.python_tool(&file, function);
            }
            searched.push(format!("`{file}`"));
        }
        searched.dedup();
        Imported::Missing { searched }
    }

    pub(super) fn python_tool(&self, file: &str, function: &str) -> Imported {
        self.python_function(file, None, function)
    }

    pub(super) fn python_function(&self, file: &str, module: Option<&str>, function: &str) -> Imported {
        let file = self.path_in_project(file);
        match self.reach.python.tool(&self.place(module), &file, function) {
            Ok(name) => Imported::Usable(name),
            Err(error) => Imported::Unusable(error.to_string()),
        }
    }

    pub(super) fn import_agent(&self, path: &str) -> Imported {
        let candidates: Vec<String> = match self.reach.settings.import(path) {
            Some(said) => vec![said.to_owned()],
            None => {
                let own = path.rsplit('.').next().unwrap_or(path);
                let beside = [format!("{own}/{AGENT_FILE}"), format!("../{own}/{AGENT_FILE}")];
                files_of(path, ".yaml").chain(beside).collect()
            }
        };
        match candidates.iter().find(|file| self.is_file(file)) {
            Some(file) => Imported::Usable(file.clone()),
            None => Imported::Missing { searched: candidates.iter().map(|file| format!("`{file}`")).collect() },
        }
    }
}

/// The files that a dotted path may mean, the nearest to what it says first: `a.b` is `a/b.py`, or `b.py`.
fn files_of(path: &str, extension: &str) -> impl Iterator<Item = String> {
    let parts: Vec<&str> = path.split(['.', ':']).filter(|part| !part.is_empty()).collect();
    let files: Vec<String> = (0..parts.len()).map(|from| format!("{}{extension}", parts[from..].join("/"))).collect();
    files.into_iter()
}

/// The file and the function that an operator's words mean: `tools.py`, or `tools.py:function`.
pub(super) fn python_function<'s>(said: &'s str, function: &'s str) -> Option<(String, &'s str)> {
    let (file, function) = match said.rsplit_once(':') {
        Some((file, function)) => (file, function),
        None => (said, function),
    };
    file.ends_with(".py").then(|| (file.to_owned(), function))
}
