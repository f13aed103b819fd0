//! A plugin as a program of this machine, which makes one call: for an author who wants to know at once what an edit did.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{BuildError, BuildEvent, Job, fs, javascript, python};
use crate::manifest::FILE;
use crate::project::Language;
use crate::tools::Tools;

/// A program that takes a call as a line of JSON on standard input, and says on standard output what came of it and what it
/// asks of the host. It runs as the person does: nothing is sealed.
#[derive(Clone, Debug)]
pub struct Native {
    program: PathBuf,
    arguments: Vec<String>,
    variables: Vec<(&'static str, PathBuf)>,
    directory: PathBuf,
    tools: Tools,
}

impl Native {
    /// The program, to be started once for each call.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = self.tools.command(&self.program, &self.directory);
        command.args(&self.arguments).envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// Makes a program of the plugin in `directory`, without a component.
///
/// # Errors
///
/// Those of a build, [`BuildError::NotFast`] for a language whose components take no time to build, and
/// [`BuildError::OldSdk`] where the project's SDK is older than this.
pub fn native(directory: &Path, tools: &Tools, events: &mut dyn FnMut(BuildEvent)) -> Result<Native, BuildError> {
    let directory = match fs::canonicalize(directory) {
        Ok(directory) => directory,
        Err(source) => return Err(BuildError::Io { action: "open", path: directory.to_owned(), source }),
    };
    if !directory.join(FILE).is_file() {
        return Err(match directory.join("Cargo.toml").is_file() {
            true => BuildError::NotFast { language: "Rust" },
            false => BuildError::NotAProject { directory },
        });
    }
    let mut job = Job::begin(&directory, "fast", tools, events)?;
    let has_runner = |job: &Job<'_>, file: &str| match job.sdk.join(file).is_file() {
        true => Ok(()),
        false => Err(BuildError::OldSdk { path: job.sdk.clone() }),
    };
    let (program, arguments, variables) = match job.manifest.language {
        Language::Python => {
            has_runner(&job, "hotcell_plugin/native.py")?;
            let python = python::find_interpreter(tools, &directory)?;
            let source = job.source();
            let (Some(folder), Some(module)) = (source.parent(), source.file_stem()) else {
                return Err(BuildError::NoSource { path: source });
            };
            let text = |part: &std::ffi::OsStr| part.to_string_lossy().into_owned();
            let module = [text(module), text(folder.as_os_str()), job.world.imports.join(",")];
            let arguments = ["-m", "hotcell_plugin.native"].map(str::to_owned).into_iter().chain(module).collect();
            let variables = vec![("PYTHONPATH", job.sdk.clone()), ("PYTHONDONTWRITEBYTECODE", PathBuf::from("1"))];
            (python, arguments, variables)
        }
        Language::JavaScript | Language::TypeScript => {
            has_runner(&job, "hotcell-plugin/native.js")?;
            let node = javascript::find(tools, &directory, javascript::BUNDLES)?;
            let bundle = javascript::build_native(&mut job, &node)?;
            (node.program, vec![bundle.to_string_lossy().into_owned()], Vec::new())
        }
        Language::C | Language::Rust => return Err(BuildError::NotFast { language: "C" }),
    };
    let tools = tools.clone();
    Ok(Native { program, arguments, variables, directory, tools })
}
