//! Why a build did not work, in words for the author of the plugin.

use std::io;
use std::path::PathBuf;

use crate::component::ComponentError;
use crate::manifest::ManifestError;

/// Why there is no component.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The folder has no plugin.
    #[error("`{}` has neither a `plugin.toml` nor a `Cargo.toml`; `hotcell plugin new` makes a project", directory.display())]
    NotAProject {
        /// The folder.
        directory: PathBuf,
    },
    /// `plugin.toml` cannot be used.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The file that `source` names is not there.
    #[error("`source` in `plugin.toml` names `{}`, which is not there", path.display())]
    NoSource {
        /// The file.
        path: PathBuf,
    },
    /// The project has no SDK.
    #[error(
        "the SDK is not in `{}`; copy the folder `sdk` from a project that `hotcell plugin new` made, or set `sdk` in \
         `plugin.toml`",
        path.display()
    )]
    NoSdk {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// A tool of the language is missing.
    #[error("{tool} is missing; {install}")]
    MissingTool {
        /// What is missing.
        tool: String,
        /// What installs it, with the command in backticks.
        install: String,
    },
    /// A program does not start.
    #[error("cannot start `{}` {purpose}: {source}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// What it was for.
        purpose: &'static str,
        /// Why.
        source: io::Error,
    },
    /// A program ended with a failure.
    #[error("`{}` failed {purpose} ({status}):\n{output}", program.display())]
    Failed {
        /// The program.
        program: PathBuf,
        /// What it was for.
        purpose: &'static str,
        /// How it ended.
        status: String,
        /// The end of what it printed.
        output: String,
    },
    /// Cargo built something other than one component.
    #[error("cargo built {found} components in `{}`; a plugin is one package with `crate-type = [\"cdylib\"]` under `[lib]`", directory.display())]
    Artifacts {
        /// How many.
        found: usize,
        /// The project.
        directory: PathBuf,
    },
    /// The code uses a capability that the plugin does not ask for.
    #[error("the code uses `{capability}`; ask for it with `{line}` under `capabilities` in `plugin!`")]
    NotRequested {
        /// Its key.
        capability: &'static str,
        /// What to write.
        line: &'static str,
    },
    /// Cases of this language are played in a cell only.
    #[error(
        "cases of plugins in {language} are played in a cell only, because building one takes a moment; leave `--fast` out"
    )]
    NotFast {
        /// The language.
        language: &'static str,
    },
    /// The project's copy of the SDK cannot do what a newer one does.
    #[error("the SDK in `{}` is of an older hotcell and cannot play cases without a cell; put the folder `sdk` of a new project (`hotcell plugin new`) in its place", path.display())]
    OldSdk {
        /// The folder.
        path: PathBuf,
    },
    /// The interfaces of the contract cannot be used.
    #[error("the interfaces in `{}` cannot be used: {message}", path.display())]
    Interfaces {
        /// The folder.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// What was compiled cannot be made a component.
    #[error("the compiled code cannot be made a component: {message}")]
    Componentize {
        /// What is wrong.
        message: String,
    },
    /// What was built is not a component.
    #[error("what was built cannot be used: {0}")]
    Component(#[from] ComponentError),
    /// The description does not fit the plugin.
    #[error("the plugin cannot be described: {message}")]
    Description {
        /// What is wrong and what to do.
        message: String,
    },
    /// There is not exactly one description.
    #[error("the component has {found} custom sections `hotcell:description`; it has to have one")]
    Descriptions {
        /// How many.
        found: usize,
    },
    /// A file cannot be read or written.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        /// What was tried: `read`, `write`, `create`, …
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl BuildError {
    /// The command that installs what is missing, if it is one command that can be typed as it stands.
    #[must_use]
    pub fn install_command(&self) -> Option<&str> {
        let Self::MissingTool { install, .. } = self else { return None };
        let command = ["install it with ", "install one with "].iter().find_map(|start| install.strip_prefix(start))?;
        let (_, rest) = command.split_once('`')?;
        rest.split_once('`').map(|(command, _)| command)
    }

    pub(super) fn missing(tool: &str, install: &str) -> Self {
        Self::MissingTool { tool: tool.to_owned(), install: install.to_owned() }
    }
}
