//! Programs of other people: where they are, and running them with their output kept for the case that they fail.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::failure::BuildError;
use crate::shared::{Shared, is_complete};

/// Characters of a program's output that an error shows, from its end.
const SHOWN_OUTPUT: usize = 8_000;

/// Where the languages' tools are looked for.
#[derive(Clone, Debug)]
pub struct Tools {
    path: OsString,
    wasi_sdk: Option<PathBuf>,
    /// Where tools are that all projects share.
    shared: Option<PathBuf>,
}

impl Tools {
    /// As the environment says: `PATH`, and `WASI_SDK_PATH` for C.
    #[must_use]
    pub fn from_environment() -> Self {
        let wasi_sdk = env::var_os("WASI_SDK_PATH").filter(|path| !path.is_empty()).map(PathBuf::from);
        Self { path: env::var_os("PATH").unwrap_or_default(), wasi_sdk, shared: None }
    }

    /// In these folders only, separated as in `PATH`.
    #[must_use]
    pub fn in_path(path: impl Into<OsString>) -> Self {
        Self { path: path.into(), wasi_sdk: None, shared: None }
    }

    /// The same, and those that [`setup`](crate::setup) installed below `folder` for all projects.
    #[must_use]
    pub fn with_shared(mut self, folder: impl Into<PathBuf>) -> Self {
        self.shared = Some(folder.into());
        self
    }

    /// Where the shared tools of a language go; none where there is no place for them.
    pub(crate) fn place_of(&self, language: Shared) -> Option<PathBuf> {
        self.shared.as_ref().map(|folder| folder.join(language.folder()))
    }

    /// Where the shared tools of a language are; none as long as something of them is missing.
    pub(crate) fn shared(&self, language: Shared) -> Option<PathBuf> {
        self.place_of(language).filter(|folder| is_complete(folder))
    }

    pub(crate) fn wasi_sdk(&self) -> Option<&Path> {
        self.wasi_sdk.as_deref()
    }

    /// The first of these programs that is there.
    pub(crate) fn find(&self, names: &[&str]) -> Option<PathBuf> {
        if self.path.is_empty() {
            return None;
        }
        // The current folder plays no part: only what `PATH` names is run.
        names.iter().find_map(|name| which::which_in_global(name, Some(&self.path)).ok()?.next())
    }

    /// A command in `directory` that finds other programs in the same folders. What it says when it fails is for authors: no
    /// stack of the program itself.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>, directory: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(directory).env("PATH", &self.path).env("RUST_BACKTRACE", "0").stdin(Stdio::null());
        command
    }
}

/// Runs a command to its end and gives its standard output.
pub(crate) fn run(command: &mut Command, purpose: &'static str) -> Result<Vec<u8>, BuildError> {
    run_showing(command, purpose, |output| [output.stdout, output.stderr].concat())
}

/// The same for a program whose standard output is for other programs: what people read is on standard error.
pub(crate) fn run_quietly(command: &mut Command, purpose: &'static str) -> Result<Vec<u8>, BuildError> {
    run_showing(command, purpose, |output| output.stderr)
}

fn run_showing(
    command: &mut Command,
    purpose: &'static str,
    shown: impl FnOnce(Output) -> Vec<u8>,
) -> Result<Vec<u8>, BuildError> {
    let program = PathBuf::from(command.get_program());
    let output = match command.output() {
        Ok(output) => output,
        Err(source) => return Err(BuildError::Start { program, purpose, source }),
    };
    if output.status.success() {
        return Ok(output.stdout);
    }
    let status = output.status.to_string();
    Err(BuildError::Failed { program, purpose, status, output: end_of(&shown(output)) })
}

/// What a command prints on standard output; none where it does not end well.
pub(crate) fn output(command: &mut Command) -> Option<String> {
    let output = command.output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether a command ends well; what it prints is of no interest.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

fn end_of(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    let text = text.trim();
    match text.char_indices().rev().nth(SHOWN_OUTPUT) {
        Some((start, _)) => format!("…{}", &text[start..]),
        None => text.to_owned(),
    }
}
