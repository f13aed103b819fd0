//! Installing the tools of a language once for all plugins of this machine, in a folder of hotcell's own.
//!
//! What makes components of JavaScript is 400 MB; a project that has it in its own `node_modules` or `.venv` uses that. A virtual
//! environment knows where it is, so it is made where it stays, under a lock, and counts once it is complete.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::failure::BuildError;
use crate::shared::{
    COMPLETE, COMPONENTIZE_JS, COMPONENTIZE_PY, ESBUILD, Shared, TYPESCRIPT, ZIGLANG, environment_pythons, is_complete,
};
use crate::tools::{Tools, run};

/// Something that a person who waits may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetupEvent {
    /// A program starts; it may take a while.
    Running {
        /// The command, as a person would type it.
        command: String,
    },
    /// Another process installs the same tools; this one waits until it has ended.
    Waiting,
}

/// Installs what projects of a language share, and gives the folder; none for Rust, whose toolchain has its own.
/// Where it is there already, nothing is done. Several processes may do it at once: one installs, and the others wait for it.
///
/// # Errors
///
/// [`BuildError`] says which program is missing or what it said when it failed. What is half done is done again the next
/// time.
pub fn setup(shared: Shared, tools: &Tools, events: &mut dyn FnMut(SetupEvent)) -> Result<Option<PathBuf>, BuildError> {
    if shared == Shared::Rust {
        let rustup =
            tools.find(&["rustup"]).ok_or_else(|| missing("rustup", "install Rust with `rustup` (rustup.rs)"))?;
        installer(&rustup, &["target", "add", "wasm32-wasip2"], Path::new("."), tools, events)?;
        return Ok(None);
    }
    let Some(folder) = tools.place_of(shared) else {
        return Err(missing("a folder for shared tools", "set `HOME`, or `XDG_DATA_HOME`"));
    };
    if is_complete(&folder) {
        return Ok(Some(folder));
    }
    let failed = |action, source| BuildError::Io { action, path: folder.clone(), source };
    if let Some(around) = folder.parent() {
        fs::create_dir_all(around).map_err(|source| failed("create", source))?;
    }
    let lock = folder.with_file_name(format!("{}.lock", shared.folder()));
    let _lock = exclusive(&lock, events).map_err(|source| BuildError::Io { action: "lock", path: lock, source })?;
    // Whoever had the lock before may have installed everything.
    if is_complete(&folder) {
        return Ok(Some(folder));
    }
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|source| failed("remove", source))?;
    }
    fs::create_dir(&folder).map_err(|source| failed("create", source))?;
    match shared {
        Shared::JavaScript => packages(&folder, tools, events)?,
        Shared::Python => environment(&folder, &format!("componentize-py=={COMPONENTIZE_PY}"), tools, events)?,
        Shared::C | Shared::Rust => environment(&folder, &format!("ziglang=={ZIGLANG}"), tools, events)?,
    }
    fs::write(folder.join(COMPLETE), "").map_err(|source| failed("write", source))?;
    Ok(Some(folder))
}

/// Waits until nobody else has the lock, which is the operating system's and ends with the process that has it. Its file stays:
/// whoever waits has opened it.
fn exclusive(path: &Path, events: &mut dyn FnMut(SetupEvent)) -> io::Result<File> {
    let file = hotcell_files::open_own(path)?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::WouldBlock) => events(SetupEvent::Waiting),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    file.lock()?;
    Ok(file)
}

fn environment(
    folder: &Path,
    package: &str,
    tools: &Tools,
    events: &mut dyn FnMut(SetupEvent),
) -> Result<(), BuildError> {
    let python = tools.find(&["python3", "python"]);
    let python = python.ok_or_else(|| missing("`python3`", "install Python 3.11 or newer"))?;
    installer(&python, &["-m", "venv", "."], folder, tools, events)?;
    let own = environment_pythons(folder).into_iter().find(|path| path.is_file());
    let own = own.ok_or_else(|| missing("`python3` in a new virtual environment", "install Python with its `venv`"))?;
    installer(&own, &["-m", "pip", "install", "--disable-pip-version-check", package], folder, tools, events)
}

fn packages(folder: &Path, tools: &Tools, events: &mut dyn FnMut(SetupEvent)) -> Result<(), BuildError> {
    let npm = tools.find(&["npm"]);
    let npm = npm.ok_or_else(|| missing("`npm`", "install Node.js 20 or newer with npm (nodejs.org)"))?;
    let manifest = json!({
        "private": true,
        "dependencies": {
            "@bytecodealliance/componentize-js": COMPONENTIZE_JS, "esbuild": ESBUILD, "typescript": TYPESCRIPT,
        },
    });
    let path = folder.join("package.json");
    let written = fs::write(&path, manifest.to_string());
    written.map_err(|source| BuildError::Io { action: "write", path, source })?;
    installer(&npm, &["install", "--no-audit", "--no-fund"], folder, tools, events)
}

fn installer(
    program: &Path,
    arguments: &[&str],
    folder: &Path,
    tools: &Tools,
    events: &mut dyn FnMut(SetupEvent),
) -> Result<(), BuildError> {
    let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy();
    events(SetupEvent::Running { command: format!("{name} {}", arguments.join(" ")) });
    run(tools.command(program, folder).args(arguments), "to install the tools").map(drop)
}

fn missing(tool: &str, install: &str) -> BuildError {
    BuildError::missing(tool, install)
}
