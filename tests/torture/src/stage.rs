//! Where one run happens: a copy of the scenario's files beside a journal, and `hotcell` as a person calls it there.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use serde_json::Value;
use tempfile::TempDir;

use crate::scenario::Scenario;

/// What stands in a scenario's files for the address of the world.
const WORLD: &str = "{WORLD}";

/// The command under test and what its processes share.
pub(crate) struct Tools {
    pub(crate) hotcell: PathBuf,
    /// Compiled scripts, so that only the first process of all compiles them
    pub(crate) cache: PathBuf,
}

/// The folder of one run.
pub(crate) struct Stage<'a> {
    folder: TempDir,
    tools: &'a Tools,
    world: String,
}

impl<'a> Stage<'a> {
    pub(crate) fn set(tools: &'a Tools, scenario: &Scenario, world: &str) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix(&format!("hotcell-torture-{}-", scenario.name)).tempdir()?;
        copy(&scenario.directory, &folder.path().join("work"), world)?;
        Ok(Stage { folder, tools, world: world.to_owned() })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A text without what differs from stage to stage: the address of the world, and this folder.
    pub(crate) fn plain(&self, text: &str) -> String {
        text.replace(&self.world, WORLD).replace(&*self.folder.path().to_string_lossy(), "{STAGE}")
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.path("runs.db")
    }

    /// The command with these arguments, knowing nothing of the machine but the cache.
    pub(crate) fn hotcell(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.tools.hotcell);
        command
            .args(arguments)
            .current_dir(self.path("work"))
            .env_clear()
            .env("HOME", self.folder.path())
            .env("XDG_CACHE_HOME", &self.tools.cache)
            .env("HOTCELL_JOURNAL", self.journal())
            .env("HOTCELL_MODEL", "torture:small")
            .env("HOTCELL_MODEL_URL", format!("{}/v1", self.world))
            .env("RUST_LOG", "hotcell::graph=trace")
            .env("TZ", "UTC")
            .stdin(Stdio::null());
        command
    }

    /// How many runs the journal has, and the newest as `hotcell runs show --json` tells it.
    pub(crate) fn show(&self) -> Result<(usize, Value), String> {
        let listed = self.ask(&["runs", "list", "--json"])?;
        let Some(line) = listed.lines().next() else { return Ok((0, Value::Null)) };
        let name = json(line)?["run"].as_str().unwrap_or_default().to_owned();
        Ok((listed.lines().count(), json(&self.ask(&["runs", "show", &name, "--json"])?)?))
    }

    fn ask(&self, arguments: &[&str]) -> Result<String, String> {
        let output = self.hotcell(arguments).output().map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(format!("`hotcell {}` failed: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr)))
    }

    /// Leaves the folder where it is.
    pub(crate) fn keep(self) -> PathBuf {
        self.folder.keep()
    }
}

fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("`{text}` is not valid JSON: {error}"))
}

fn copy(from: &Path, to: &Path, world: &str) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target, world)?;
        } else if entry.file_name() != "scenario.json" {
            fs::write(target, fs::read_to_string(entry.path())?.replace(WORLD, world))?;
        }
    }
    Ok(())
}
