//! What plugins of a language share on a machine: the tools, their versions, and where they are.

use std::path::{Path, PathBuf};

use crate::project::Language;

pub(crate) const COMPONENTIZE_PY: &str = "0.25.1";
pub(crate) const COMPONENTIZE_JS: &str = "0.23.0";
pub(crate) const ESBUILD: &str = "0.28.2";
pub(crate) const TYPESCRIPT: &str = "7.0.2";
pub(crate) const ZIGLANG: &str = "0.17.1";

/// What is in a folder of tools when everything is.
pub(crate) const COMPLETE: &str = "complete";

/// Whether everything is in a folder of tools.
pub(crate) fn is_complete(folder: &Path) -> bool {
    folder.join(COMPLETE).is_file()
}

/// Tools that projects share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shared {
    /// `componentize-py`, in a virtual environment.
    Python,
    /// `componentize-js`, `esbuild` and `typescript`, which make components of TypeScript as well.
    JavaScript,
    /// A C compiler for WASI (zig), in a virtual environment.
    C,
    /// The target of the Rust toolchain, which rustup shares by itself.
    Rust,
}

impl Shared {
    /// What projects of a language share.
    #[must_use]
    pub fn of(language: Language) -> Self {
        match language {
            Language::Rust => Self::Rust,
            Language::Python => Self::Python,
            Language::JavaScript | Language::TypeScript => Self::JavaScript,
            Language::C => Self::C,
        }
    }

    /// The name of the folder, which tells versions apart: another version of hotcell may want another one.
    pub(crate) fn folder(self) -> String {
        match self {
            Self::Python => format!("python-{COMPONENTIZE_PY}"),
            Self::JavaScript => format!("javascript-{COMPONENTIZE_JS}-{ESBUILD}-{TYPESCRIPT}"),
            Self::C => format!("c-{ZIGLANG}"),
            Self::Rust => "rust".to_owned(),
        }
    }
}

/// Where the Python of a virtual environment is, on different systems.
pub(crate) fn environment_pythons(folder: &Path) -> [PathBuf; 2] {
    ["bin/python3", "Scripts/python.exe"].map(|path| folder.join(path))
}
