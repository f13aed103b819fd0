//! Python: `componentize-py` puts the interpreter and the code into a component; the SDK says what the code offers.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{BuildError, Job, parse_offered, read_file, world, write_file};
use crate::project::Kind;
use crate::tools::{Tools, run};

const INSTALL: &str = "install it with `python3 -m pip install componentize-py==0.25.1`";
/// The generation of `componentize-py` whose bindings the SDK knows.
const GENERATION: &str = "0.25.";
const SAY_VERSION: &str = "import componentize_py, importlib.metadata as m; print(m.version('componentize-py'))";
const COMPONENTIZE: &str =
    "import sys; from componentize_py import script; sys.argv[0] = 'componentize-py'; sys.exit(script())";
/// The name of the module that brings the code and the SDK together.
const APP: &str = "hotcell_app";

/// Gives the component and what the code offers.
pub(super) fn build(job: &mut Job<'_>) -> Result<(Vec<u8>, Value), BuildError> {
    let python = find_python(job.tools, job.directory)?;
    let source = job.source();
    let (Some(folder), Some(module)) = (source.parent(), source.file_stem().and_then(|stem| stem.to_str())) else {
        return Err(BuildError::NoSource { path: source });
    };
    job.says(&python, "to describe the plugin");
    let mut describe = job.tools.command(&python, job.directory);
    describe.args(["-m", "hotcell_plugin.describe", module]).arg(folder);
    describe.env("PYTHONPATH", &job.sdk).env("PYTHONDONTWRITEBYTECODE", "1");
    let offered = parse_offered(&run(&mut describe, "to describe the plugin")?, "what the Python SDK printed")?;

    write_file(&job.work.join(format!("{APP}.py")), app(job.manifest.kinds(), module).as_bytes())?;
    let output = job.work.join("plugin.wasm");
    job.says(&python, "to make the component (`componentize-py`)");
    let mut componentize = job.tools.command(&python, job.directory);
    componentize.args(["-c", COMPONENTIZE, "--wit-path"]).arg(&job.world.folder);
    componentize.args(["--world", world::NAME, "--quiet", "componentize", APP]);
    for folder in [&job.work, folder, &job.sdk] {
        componentize.arg("--python-path").arg(folder);
    }
    componentize.arg("--output").arg(&output).env("PYTHONDONTWRITEBYTECODE", "1");
    run(&mut componentize, "to make the component")?;
    Ok((read_file(&output)?, offered))
}

/// A Python that has `componentize-py`: the project's own in `.venv`, or one in `PATH`.
pub(super) fn find_python(tools: &Tools, directory: &Path) -> Result<PathBuf, BuildError> {
    let own = [".venv/bin/python3", ".venv/Scripts/python.exe"].map(|path| directory.join(path));
    let mut candidates: Vec<PathBuf> = own.into_iter().filter(|path| path.is_file()).collect();
    candidates.extend(["python3", "python"].iter().filter_map(|name| tools.find(&[name])));
    if candidates.is_empty() {
        return Err(BuildError::missing(
            "`python3`, which builds plugins in Python,",
            &format!("install Python 3.11 or newer, and then `componentize-py`: {INSTALL}"),
        ));
    }
    let mut other_version = None;
    for python in candidates {
        match version(tools, directory, &python) {
            Some(found) if found.starts_with(GENERATION) => return Ok(python),
            Some(found) => other_version = Some(found),
            None => {}
        }
    }
    Err(match other_version {
        Some(found) => BuildError::MissingTool {
            tool: format!("`componentize-py` {GENERATION}x (version {found} is there)"),
            install: INSTALL.to_owned(),
        },
        None => BuildError::missing("`componentize-py`, which makes components of Python,", INSTALL),
    })
}

fn version(tools: &Tools, directory: &Path, python: &Path) -> Option<String> {
    let output = tools.command(python, directory).args(["-c", SAY_VERSION]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The module that `componentize-py` is given: it imports the code, and has the classes that the world wants.
fn app(kinds: &[Kind], module: &str) -> String {
    let mut text = format!("import {module}\n");
    for kind in kinds {
        let class = match kind {
            Kind::Tool => "CallTool",
            Kind::Script => "RunScript",
            Kind::Connector => "Connect",
            Kind::Hooks => "Hook",
            Kind::Node => "RunNode",
        };
        // Writing to a text cannot fail.
        let _ = writeln!(text, "from hotcell_plugin.exports import {class}");
    }
    text
}
