//! Makes the Python cell with `componentize-py`, which starts CPython and keeps the memory it leaves.
//!
//! Its image is not in the repository: it differs each time it is made, so nobody could verify it. What is pinned is
//! the tool, by the digests in `requirements.txt`; where it is missing, it is installed below `target`.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::kept::Kept;

/// Installs the tool; also named where that could not be done.
const SETUP: &str = "plugins/interpreters/python/setup";
/// The version of the tool, and the digests of what is installed.
const REQUIREMENTS: &str = "plugins/interpreters/python/requirements.txt";
/// The modules of the cell; nothing else of its directory gets into the image.
const MODULES: [&str; 3] = ["cell.py", "connections.py", "surface.py"];

/// The Python cell as a component; none where it cannot be made, which is a warning.
pub(crate) fn component(root: &Path, wit: &Path, kept: &Kept) -> Result<Option<Vec<u8>>, Box<dyn Error>> {
    println!("cargo::rerun-if-env-changed=HOTCELL_PYTHON");
    if env::var_os("HOTCELL_PYTHON").is_some_and(|value| value == "off") {
        println!("cargo::warning=the Python cell is left out, because HOTCELL_PYTHON is off");
        return Ok(None);
    }
    let tool = match find(root).map_or_else(|| install(root), Ok) {
        Ok(tool) => tool,
        Err(reason) => {
            println!(
                "cargo::warning=the Python cell is left out: {reason}; mend that and build again, or run `{SETUP}` yourself"
            );
            return Ok(None);
        }
    };
    let version = tool.command().arg("--version").output()?.stdout;
    let source = root.join("plugins/interpreters/python");
    let mut inputs = vec![version, fs::read(wit.join("cell.wit"))?];
    for file in MODULES {
        inputs.push(fs::read(source.join(file))?);
    }
    let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    kept.or_make("python.wasm", &inputs, || make(&tool, &source, wit)).map(Some)
}

fn make(tool: &Tool, source: &Path, wit: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let output = out.join("python.component.wasm");
    // A directory of its own: nothing but the cell's modules may be found.
    let staging = out.join("python");
    fs::create_dir_all(&staging)?;
    for file in MODULES {
        fs::copy(source.join(file), staging.join(file))?;
    }
    let mut command = tool.command();
    command
        .arg("--wit-path")
        .arg(wit.join("cell.wit"))
        .args(["--world", "interpreter", "--quiet", "componentize", "--python-path"])
        .arg(&staging)
        .args(["cell", "--output"])
        .arg(&output);
    let status = command.status().map_err(|error| format!("{command:?} does not start: {error}"))?;
    if !status.success() {
        return Err(format!("cannot build the Python cell: {command:?} ended with {status}").into());
    }
    Ok(fs::read(&output)?)
}

/// `componentize-py`, and where its Python package is when that is not where Python looks by itself.
struct Tool {
    program: PathBuf,
    package: Option<PathBuf>,
}

impl Tool {
    /// Whether it is of the version that `requirements.txt` names.
    fn is_pinned(&self, root: &Path) -> bool {
        let pinned = fs::read_to_string(root.join(REQUIREMENTS)).unwrap_or_default();
        let Some(pinned) = pinned.lines().find_map(|line| line.strip_prefix("componentize-py==")) else { return true };
        let pinned = pinned.split_whitespace().next().unwrap_or_default();
        let output = self.command().arg("--version").output();
        output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).split_whitespace().any(|word| word == pinned))
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        if let Some(package) = &self.package {
            command.env("PYTHONPATH", package);
        }
        // A virtual environment of the surroundings must not get into the image.
        command.env_remove("VIRTUAL_ENV");
        command
    }
}

fn find(root: &Path) -> Option<Tool> {
    let tools = root.join("target/python-tools");
    let own = Tool { program: tools.join("bin/componentize-py"), package: Some(tools) };
    if own.program.exists() {
        // One of another version is installed anew.
        return own.is_pinned(root).then_some(own);
    }
    let path = env::var_os("PATH")?;
    let program =
        env::split_paths(&path).map(|directory| directory.join("componentize-py")).find(|tool| tool.is_file())?;
    Some(Tool { program, package: None })
}

/// Has the tool installed; the error says what is missing, in the words of whoever found out.
fn install(root: &Path) -> Result<Tool, String> {
    if env::var_os("CARGO_NET_OFFLINE").is_some_and(|value| value == "true") {
        return Err("it needs `componentize-py`, which is not installed while cargo is offline".to_owned());
    }
    let output = Command::new(root.join(SETUP)).output().map_err(|error| format!("{SETUP} does not start: {error}"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let last = stderr.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it says nothing");
        return Err(format!("it needs Python 3.9 or newer with pip, to install `componentize-py`: {last}"));
    }
    find(root).ok_or_else(|| format!("{SETUP} installed nothing"))
}
