//! Python: `componentize-py` puts the interpreter and the code into a component; the SDK says what the code offers.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::{BuildError, Job, Made, files_read, parse_offered, read_file, world, write_file};
use crate::project::Kind;
use crate::shared::{Shared, environment_pythons};
use crate::tools::{Tools, output, run};

const INSTALL: &str = "install it with `hotcell plugin setup python`, once for all plugins";
/// The generation of `componentize-py` whose bindings the SDK knows.
const GENERATION: &str = "0.25.";
const SAY_VERSIONS: &str = "import componentize_py, importlib.metadata as m, sys\n\
print(m.version('componentize-py'))\nprint(sys.version.replace('\\n', ' '))";
const COMPONENTIZE: &str =
    "import sys; from componentize_py import script; sys.argv[0] = 'componentize-py'; sys.exit(script())";
/// The name of the module that brings the code and the SDK together.
const APP: &str = "hotcell_app";

/// A Python that has `componentize-py`.
pub(super) struct Python {
    pub(super) program: PathBuf,
    /// The version of `componentize-py`.
    tool: String,
    /// What Python says of itself.
    version: String,
}

impl Python {
    pub(super) fn versions(&self) -> Vec<String> {
        vec![format!("{} {}", self.program.display(), self.version), format!("componentize-py {}", self.tool)]
    }
}

/// Gives the component and what the code offers.
pub(super) fn build(job: &mut Job<'_>, python: &Python) -> Result<Made, BuildError> {
    let python = &python.program;
    let source = job.source();
    let (Some(folder), Some(module)) = (source.parent(), source.file_stem().and_then(|stem| stem.to_str())) else {
        return Err(BuildError::NoSource { path: source });
    };
    let read = job.work.join("read.json");
    job.says(python, "to describe the plugin");
    let mut describe = job.tools.command(python, job.directory);
    describe.args(["-m", "hotcell_plugin.describe", module]).arg(folder);
    describe.env("PYTHONPATH", &job.sdk).env("PYTHONDONTWRITEBYTECODE", "1").env("HOTCELL_MODULES", &read);
    describe.env("HOTCELL_INTERFACES", job.world.imports.join(","));
    let offered = parse_offered(&run(&mut describe, "to describe the plugin")?, "what the Python SDK printed")?;

    let shown = job.manifest.source.parent().unwrap_or(Path::new("")).to_string_lossy().replace('\\', "/");
    write_file(&job.work.join(format!("{APP}.py")), app(job.manifest.kinds(), module, &shown).as_bytes())?;
    let component = job.work.join("plugin.wasm");
    job.says(python, "to make the component (`componentize-py`)");
    let mut componentize = job.tools.command(python, job.directory);
    componentize.args(["-c", COMPONENTIZE, "--wit-path"]).arg(&job.world.folder);
    componentize.args(["--world", world::NAME, "--quiet", "componentize", APP]);
    for folder in [&job.work, folder, &job.sdk] {
        componentize.arg("--python-path").arg(folder);
    }
    componentize.arg("--output").arg(&component).env("PYTHONDONTWRITEBYTECODE", "1");
    run(&mut componentize, "to make the component")?;
    Ok(Made { component: read_file(&component)?, offered, read: files_read(&read) })
}

/// Finds a Python that has `componentize-py`: the project's own in `.venv`, one in `PATH`, or the one that all projects
/// share.
pub(super) fn find(tools: &Tools, directory: &Path) -> Result<Python, BuildError> {
    let mut other_version = None;
    for program in candidates(tools, directory)? {
        match versions(tools, directory, &program) {
            Some((tool, version)) if tool.starts_with(GENERATION) => return Ok(Python { program, tool, version }),
            Some((tool, _)) => other_version = Some(tool),
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

/// Finds a Python that runs the code of a plugin as it is: the one that builds it, or else the first that there is.
pub(super) fn find_interpreter(tools: &Tools, directory: &Path) -> Result<PathBuf, BuildError> {
    match find(tools, directory) {
        Ok(python) => Ok(python.program),
        Err(missing) => candidates(tools, directory)?.into_iter().next().ok_or(missing),
    }
}

/// The Pythons that there are, those first that belong to the project.
fn candidates(tools: &Tools, directory: &Path) -> Result<Vec<PathBuf>, BuildError> {
    let own = environment_pythons(&directory.join(".venv"));
    let mut candidates: Vec<PathBuf> = own.into_iter().filter(|path| path.is_file()).collect();
    candidates.extend(["python3", "python"].iter().filter_map(|name| tools.find(&[name])));
    if candidates.is_empty() {
        return Err(BuildError::missing(
            "`python3`, which builds plugins in Python,",
            "install Python 3.11 or newer, and then run `hotcell plugin setup python`",
        ));
    }
    let shared = tools.shared(Shared::Python).map(|folder| environment_pythons(&folder));
    candidates.extend(shared.into_iter().flatten().filter(|path| path.is_file()));
    Ok(candidates)
}

/// The versions of `componentize-py` and of Python itself.
fn versions(tools: &Tools, directory: &Path, python: &Path) -> Option<(String, String)> {
    let said = output(tools.command(python, directory).args(["-c", SAY_VERSIONS]))?;
    let (tool, version) = said.trim().split_once('\n').unwrap_or((said.trim(), ""));
    Some((tool.trim().to_owned(), version.trim().to_owned()))
}

/// The module that `componentize-py` is given: it imports the code, and has the classes that the world wants.
fn app(kinds: &[Kind], module: &str, folder: &str) -> String {
    // A text of JSON is one of Python.
    let folder = serde_json::Value::from(folder);
    // In a cell, the folder with the code has the name of its place among those that `componentize-py` is given.
    let mut text = format!(
        "try:\n    from hotcell_plugin._places import authored\nexcept ImportError:\n    pass\nelse:\n    \
         authored(\"/1\", {folder})\nimport {module}\n"
    );
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
