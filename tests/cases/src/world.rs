//! The place where a case is played: a scratch copy of its files with its tools installed the way an operator would.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use indexmap::IndexMap;
use tempfile::TempDir;
use thiserror::Error;

use hotcell_runtime::plugins::{AgentFolder, GrantOrder, Plugin, Trust};

use crate::case_file::{CaseFile, Tool};
use crate::tools;

/// A scratch copy. It is removed when it is dropped.
#[derive(Debug)]
pub struct World {
    scratch: TempDir,
    entry: PathBuf,
    servers: IndexMap<String, Tools>,
}

/// Tools by their names.
type Tools = IndexMap<String, Tool>;

/// Why a case has no place to be played in.
#[derive(Debug, Error)]
pub enum WorldError {
    /// A file could not be copied or written
    #[error("cannot {doing} `{}`: {source}", path.display())]
    File {
        /// What was attempted
        doing: &'static str,
        /// The file
        path: PathBuf,
        /// Why it failed
        source: io::Error,
    },
    /// The entry leads out of the case
    #[error("`entry` has to be a path within the case, not `{0}`")]
    Entry(String),
    /// The case has a `hotcell.toml` that cannot be extended
    #[error("the `hotcell.toml` of the case cannot be read: {0}")]
    Settings(String),
}

impl World {
    /// Copies the case in `directory` and installs its tools.
    ///
    /// # Errors
    /// When files cannot be copied or written, or the entry leads out of the case.
    pub fn build(case: &CaseFile, directory: &Path) -> Result<Self, WorldError> {
        let within =
            Path::new(&case.entry).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if case.entry.is_empty() || !within {
            return Err(WorldError::Entry(case.entry.clone()));
        }
        let scratch = tempfile::Builder::new().prefix("hotcell-").tempdir().map_err(|source| WorldError::File {
            doing: "create",
            path: std::env::temp_dir(),
            source,
        })?;
        // A folder of its own, under a name that says nothing, so that no name of the case can turn up in an error
        // by accident and nothing else lies beside it.
        let copy = scratch.path().join("case");
        copy_folder(directory, &copy, true)?;
        let mut world = World { entry: copy.join(&case.entry), scratch, servers: IndexMap::new() };
        let (of_servers, global): (Tools, Tools) = case
            .tools
            .iter()
            .map(|(name, tool)| (name.clone(), tool.clone()))
            .partition(|(_, tool)| tool.server.is_some());
        for folder in world.agent_folders() {
            if !global.is_empty() {
                install(&folder, &global)?;
            }
        }
        if ["sherma", "agentloom"].contains(&&*case.dialect) {
            world.let_files_meet(&copy)?;
        }
        for (name, tool) in of_servers {
            if let Some(server) = tool.server.clone() {
                world.servers.entry(server).or_default().insert(name, tool);
            }
        }
        Ok(world)
    }

    /// The MCP servers of the case, each as a folder with its tools as a plugin.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn servers(&self) -> Result<Vec<(String, PathBuf)>, WorldError> {
        let folder_of = |(name, tools): (&String, &Tools)| {
            let folder = self.scratch.path().join("servers").join(name);
            install(&folder, tools)?;
            Ok((name.clone(), folder))
        };
        self.servers.iter().map(folder_of).collect()
    }

    /// Makes servers known to every agent of the case, by name and address, the way an operator would.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn connect(&self, servers: &[(String, String)]) -> Result<(), WorldError> {
        let entries: serde_json::Map<String, serde_json::Value> =
            servers.iter().map(|(name, url)| (name.clone(), serde_json::json!({ "url": url }))).collect();
        for folder in self.agent_folders() {
            let file = serde_json::json!({ "mcpServers": entries }).to_string();
            write(&folder.join("mcp.json"), file.as_bytes())?;
            let mut settings = read_settings(&folder)?;
            let grants = settings.entry("grants").or_insert_with(|| toml::Table::new().into());
            let toml::Value::Table(grants) = grants else {
                return Err(WorldError::Settings("`grants` is not a table".to_owned()));
            };
            for (name, url) in servers {
                let origin = url.split('/').take(3).collect::<Vec<_>>().join("/");
                let granted = toml::Table::from_iter([("http".to_owned(), vec![origin].into())]);
                grants.insert(format!("mcp:{name}"), granted.into());
            }
            write(&folder.join("hotcell.toml"), settings.to_string().as_bytes())?;
        }
        Ok(())
    }

    /// Puts the port of the case's web server into its files, and lets its agent ask it.
    ///
    /// # Errors
    /// When a file cannot be read or written.
    pub fn prepare_for_web(&self, port: u16) -> Result<(), WorldError> {
        let folder = self.entry.parent().unwrap_or(&self.entry);
        let failed = |doing, path: &Path| {
            let path = path.to_owned();
            move |source| WorldError::File { doing, path, source }
        };
        for entry in fs::read_dir(folder).map_err(failed("read", folder))?.flatten() {
            let path = entry.path();
            // What is no text has no such place.
            if let Ok(text) = fs::read_to_string(&path)
                && text.contains("{HTTP_PORT}")
            {
                write(&path, text.replace("{HTTP_PORT}", &port.to_string()).as_bytes())?;
            }
        }
        let mut settings = read_settings(folder)?;
        let grants = settings.entry("grants").or_insert_with(|| toml::Table::new().into());
        if let toml::Value::Table(grants) = grants {
            let server: Vec<toml::Value> = vec![format!("http://127.0.0.1:{port}").into()];
            grants.insert("agent".to_owned(), toml::Table::from_iter([("http".to_owned(), server.into())]).into());
        }
        write(&folder.join("hotcell.toml"), settings.to_string().as_bytes())
    }

    /// Has components ask the case's web server in the place of their vendors'.
    ///
    /// # Errors
    /// When a file cannot be read or written.
    pub fn stand_in_for(&self, vendors: &[&str], port: u16) -> Result<(), WorldError> {
        let folder = self.entry.parent().unwrap_or(&self.entry);
        let mut settings = read_settings(folder)?;
        if let toml::Value::Table(plugins) = settings.entry("plugins").or_insert_with(|| toml::Table::new().into()) {
            for vendor in vendors {
                let base = toml::Table::from_iter([("base_url".to_owned(), format!("http://127.0.0.1:{port}").into())]);
                plugins
                    .insert((*vendor).to_owned(), toml::Table::from_iter([("config".to_owned(), base.into())]).into());
            }
        }
        write(&folder.join("hotcell.toml"), settings.to_string().as_bytes())
    }

    /// Installs the functions of agents, which ask a server of this machine what to do, and tools that tell it of their calls.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn install_functions(&self, agents: &[&String], offered: &Tools, port: u16) -> Result<(), WorldError> {
        if agents.is_empty() && offered.is_empty() {
            return Ok(());
        }
        let folder = self.entry.parent().unwrap_or(&self.entry);
        let bytes = tools::functions(agents, offered, port);
        install_plugin(folder, tools::FUNCTIONS, &bytes, tools::functions_settings(offered, port))
    }

    /// Lets the file of the entry name files of the case outside of its folder, as an operator would.
    fn let_files_meet(&self, case: &Path) -> Result<(), WorldError> {
        let folder = self.entry.parent().unwrap_or(&self.entry);
        if folder == case || !folder.is_dir() {
            return Ok(());
        }
        let mut settings = read_settings(folder)?;
        let grants = settings.entry("grants").or_insert_with(|| toml::Table::new().into());
        let agent =
            grants.as_table_mut().map(|grants| grants.entry("agent").or_insert_with(|| toml::Table::new().into()));
        let Some(agent) = agent.and_then(toml::Value::as_table_mut) else {
            return Err(WorldError::Settings("`grants` is not a table".to_owned()));
        };
        let directory = toml::Table::from_iter([
            ("host".to_owned(), case.display().to_string().into()),
            ("guest".to_owned(), "/case".to_owned().into()),
        ]);
        agent.entry("fs").or_insert_with(|| toml::Value::Array(vec![directory.into()]));
        write(&folder.join("hotcell.toml"), settings.to_string().as_bytes())
    }

    /// A place for a file that does not belong to the case.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// Installs the plugins that a case names.
    ///
    /// # Errors
    /// When there is no such plugin, or it cannot be written.
    pub fn install_plugins(&self, names: &[String]) -> Result<(), WorldError> {
        let folder = self.entry.parent().unwrap_or(&self.entry).join("plugins");
        for name in names {
            if name != tools::TEST_PLUGIN {
                return Err(WorldError::Settings(format!("there is no plugin `{name}` for cases")));
            }
            fs::create_dir_all(&folder).map_err(|source| WorldError::File {
                doing: "create",
                path: folder.clone(),
                source,
            })?;
            write(&folder.join(format!("{name}.wasm")), &tools::test_plugin())?;
        }
        Ok(())
    }

    /// The folder of the entry, and those of the agents beside it.
    fn agent_folders(&self) -> Vec<PathBuf> {
        let own = self.entry.parent().unwrap_or(&self.entry).to_owned();
        let beside = own.parent().filter(|parent| parent.starts_with(self.scratch.path().join("case")));
        let entries = beside.and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
        let agents = entries
            .map(|entry| entry.path())
            .filter(|path| *path != own && ["graph.yaml", "config.yaml"].iter().any(|file| path.join(file).is_file()));
        std::iter::once(own.clone()).chain(agents).collect()
    }

    /// The configuration file to load.
    pub fn entry(&self) -> &Path {
        &self.entry
    }

    /// The text without the path of the scratch copy, which is different every time.
    pub fn shorten(&self, text: &str) -> String {
        let mut text = text.to_owned();
        let canonical = fs::canonicalize(self.scratch.path()).unwrap_or_else(|_| self.scratch.path().to_owned());
        for root in [canonical.as_path(), self.scratch.path()] {
            let copy = root.join("case").display().to_string();
            text = text.replace(&format!("{copy}{}", std::path::MAIN_SEPARATOR), "").replace(&copy, ".");
        }
        text
    }
}

/// Puts tools into a folder as a plugin with its settings.
fn install(folder: &Path, offered: &Tools) -> Result<(), WorldError> {
    install_plugin(folder, tools::PLUGIN, &tools::component(offered), tools::settings(offered))
}

/// Puts a plugin into a folder with its settings, and grants it what it asks for.
fn install_plugin(folder: &Path, name: &str, bytes: &[u8], own: toml::Table) -> Result<(), WorldError> {
    let plugins = folder.join("plugins");
    fs::create_dir_all(&plugins).map_err(|source| WorldError::File {
        doing: "create",
        path: plugins.clone(),
        source,
    })?;
    let component = plugins.join(format!("{name}.wasm"));
    write(&component, bytes)?;

    let mut settings = read_settings(folder)?;
    let plugins = settings.entry("plugins").or_insert_with(|| toml::Table::new().into());
    let toml::Value::Table(plugins) = plugins else {
        return Err(WorldError::Settings("`plugins` is not a table".to_owned()));
    };
    plugins.insert(name.to_owned(), own.into());
    write(&folder.join("hotcell.toml"), settings.to_string().as_bytes())?;

    // Whoever runs the case lets its tools do what the case needs them for.
    let failed = |error: String| WorldError::Settings(error);
    let mut said = AgentFolder::open(folder, &Trust::Everything).map_err(|error| failed(error.to_string()))?;
    let plugin = Plugin::read(&component).map_err(|error| failed(error.to_string()))?;
    let grants = GrantOrder::default().grants(name, &plugin.description.capabilities, None);
    let granted = grants.and_then(|grants| said.grant(&plugin, &grants, &Trust::Everything));
    granted.map_err(|error| failed(error.to_string()))
}

fn read_settings(folder: &Path) -> Result<toml::Table, WorldError> {
    let file = folder.join("hotcell.toml");
    match fs::read_to_string(&file) {
        Ok(text) => toml::from_str(&text).map_err(|error| WorldError::Settings(error.to_string())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(toml::Table::new()),
        Err(source) => Err(WorldError::File { doing: "read", path: file, source }),
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), WorldError> {
    fs::write(path, bytes).map_err(|source| WorldError::File { doing: "write", path: path.to_owned(), source })
}

/// Copies a folder with everything in it; links stay links. `case.json` of the case itself is no file of the user's.
fn copy_folder(from: &Path, to: &Path, is_case: bool) -> Result<(), WorldError> {
    let failed = |doing, path: &Path| {
        let path = path.to_owned();
        move |source| WorldError::File { doing, path, source }
    };
    fs::create_dir_all(to).map_err(failed("create", to))?;
    for entry in fs::read_dir(from).map_err(failed("read", from))? {
        let entry = entry.map_err(failed("read", from))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if is_case && entry.file_name() == "case.json" {
            continue;
        }
        let kind = entry.file_type().map_err(failed("read", &source))?;
        if kind.is_dir() {
            copy_folder(&source, &target, false)?;
        } else if kind.is_symlink() {
            copy_link(&source, &target).map_err(failed("copy", &source))?;
        } else {
            fs::copy(&source, &target).map_err(failed("copy", &source))?;
        }
    }
    Ok(())
}

#[cfg(unix)]
fn copy_link(from: &Path, to: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(fs::read_link(from)?, to)
}

#[cfg(not(unix))]
fn copy_link(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to).map(drop)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::{World, WorldError};
    use crate::case_file::CaseFile;

    fn case(entry: &str, tools: serde_json::Value) -> CaseFile {
        let case = json!({
            "title": "t", "dialect": "loki", "covers": [], "entry": entry, "why": "w", "tools": tools,
            "expect": {"status": "completed"},
        });
        CaseFile::parse(&case.to_string()).expect("a case")
    }

    #[test]
    fn the_copy_has_everything_but_the_expectations() {
        let original = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(original.path().join("front/scripts")).expect("written");
        fs::write(original.path().join("case.json"), "{}").expect("written");
        fs::write(original.path().join("front/graph.yaml"), "name: x").expect("written");
        fs::write(original.path().join("front/case.json"), "data").expect("written");
        let tools = json!({"sum": {"description": "Adds.", "parameters": {"type": "object"}, "behaviour": "add"}});
        let world = World::build(&case("front/graph.yaml", tools), original.path()).expect("a world");

        assert_eq!(fs::read_to_string(world.entry()).expect("there"), "name: x");
        let folder = world.entry().parent().expect("a folder");
        assert!(folder.join("case.json").is_file());
        assert!(folder.join("scripts").is_dir());
        assert!(!folder.with_file_name("case.json").exists());
        assert!(folder.join("plugins/case-tools.wasm").is_file());
        let settings = fs::read_to_string(folder.join("hotcell.toml")).expect("there");
        assert!(settings.contains("behaviour.sum"), "{settings}");
        let error = format!("{}:1:1: error in {}", world.entry().display(), folder.with_file_name("").display());
        assert_eq!(world.shorten(&error), "front/graph.yaml:1:1: error in ");
        assert!(!original.path().join("front/plugins").exists());
    }

    #[test]
    fn an_entry_outside_is_refused() {
        for entry in ["", "../graph.yaml", "/graph.yaml"] {
            let original = tempfile::tempdir().expect("a folder");
            let world = World::build(&case(entry, json!({})), original.path());
            assert!(matches!(world, Err(WorldError::Entry(_))), "{entry}");
        }
    }
}
