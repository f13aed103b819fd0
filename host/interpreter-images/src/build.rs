//! Compiles the guests with cargo, so that the result does not depend on where that happens.

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::sources::PLUGINS;

const TARGET: &str = "wasm32-wasip2";
/// Tells this program that cargo calls it in place of rustc, and where the repository lies.
const WRAPPER: &str = "HOTCELL_IMAGES_ROOT";

/// Tells it that a crate of the repository is identified by its name alone.
const IDENTITY: &str = "HOTCELL_IMAGES_IDENTITY";

/// What cargo made.
pub(crate) struct Built {
    interpreters: PathBuf,
    plugins: PathBuf,
}

impl Built {
    /// The component of a plugin.
    pub(crate) fn plugin(&self, name: &str) -> PathBuf {
        self.plugins.join(format!("{name}.wasm"))
    }

    /// The component of an image.
    pub(crate) fn component(&self, name: &str) -> PathBuf {
        match name {
            "documents" => self.plugin("documents"),
            name => self.interpreters.join(format!("hotcell_{name}.wasm")),
        }
    }
}

/// Builds all guests.
pub(crate) fn all(root: &Path) -> Result<Built, Box<dyn Error>> {
    add_target()?;
    let interpreters = cargo(root, "plugins/interpreters", &[], false)?;
    // They depend on crates of `sdk`, outside of their workspace. One after the other: what features a crate has that several of
    // them use must not depend on which of them are built.
    let mut plugins = PathBuf::new();
    for name in ["documents"].iter().chain(&PLUGINS) {
        // By its manifest: a crate that a plugin uses may have the plugin's name.
        plugins = cargo(root, "plugins", &["--manifest-path", &format!("{name}/Cargo.toml")], true)?;
    }
    Ok(Built { interpreters, plugins })
}

/// Runs cargo in a workspace and gives the folder of what it made. `reaches_out` says that the workspace depends on folders
/// outside of it: cargo makes their paths a part of the crates' identity, and so of the code.
fn cargo(root: &Path, workspace: &str, selection: &[&str], reaches_out: bool) -> Result<PathBuf, Box<dyn Error>> {
    // Apart from the ordinary builds of these workspaces, whose paths are not replaced.
    let target = root.join("target/images").join(workspace.replace('/', "-"));
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .current_dir(root.join(workspace))
        .args(["build", "--release", "--locked", "--target", TARGET, "--target-dir"])
        .arg(&target)
        .args(selection);
    for (name, _) in env::vars_os() {
        if belongs_to_outer_build(&name) {
            command.env_remove(&name);
        }
    }
    command.env("RUSTC_WRAPPER", env::current_exe()?).env(WRAPPER, root);
    if reaches_out {
        command.env(IDENTITY, "name");
    }
    run(&mut command, &format!("the guests in `{workspace}`"))?;
    Ok(target.join(TARGET).join("release"))
}

/// The outer cargo's settings, and the user's own flags, are not for the guests.
fn belongs_to_outer_build(name: &OsString) -> bool {
    let Some(name) = name.to_str() else { return false };
    match name {
        "CARGO_HOME" => false,
        "RUSTFLAGS" | "RUSTC" | "RUSTDOC" | "RUSTDOCFLAGS" | "RUSTC_WORKSPACE_WRAPPER" => true,
        _ => name.starts_with("CARGO") && !name.starts_with("CARGO_REGISTR") && !name.starts_with("CARGO_NET"),
    }
}

fn add_target() -> Result<(), Box<dyn Error>> {
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output()?;
    let sysroot = PathBuf::from(String::from_utf8(sysroot.stdout)?.trim());
    if sysroot.join("lib/rustlib").join(TARGET).exists() {
        return Ok(());
    }
    run(Command::new("rustup").args(["target", "add", TARGET]), "the target of the guests")
}

fn run(command: &mut Command, what: &str) -> Result<(), Box<dyn Error>> {
    let shown = format!("{command:?}");
    let status = command.status().map_err(|error| format!("cannot build {what}: {shown} does not start: {error}"))?;
    if !status.success() {
        return Err(format!("cannot build {what}: {shown} ended with {status}").into());
    }
    Ok(())
}

/// The repository's root, if cargo called this program in place of rustc.
pub(crate) fn asked_as_wrapper() -> Option<PathBuf> {
    env::var_os(WRAPPER).map(PathBuf::from)
}

/// Calls rustc as cargo wants it, with paths of this machine replaced by ones that are the same everywhere.
pub(crate) fn call_rustc(root: &Path) -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    let Some(rustc) = arguments.next() else { return ExitCode::FAILURE };
    let mut command = Command::new(rustc);
    let identity = identity(root);
    for argument in arguments {
        match (&identity, argument.to_str()) {
            (Some(identity), Some(text)) if text.starts_with("metadata=") => {
                command.arg(format!("metadata={identity}"));
            }
            _ => {
                command.arg(argument);
            }
        }
    }
    for (path, replacement) in replacements(root) {
        let mut mapping = OsString::from("--remap-path-prefix=");
        mapping.push(path);
        mapping.push("=");
        mapping.push(replacement);
        command.arg(mapping);
    }
    match command.status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// What identifies a crate of the repository in place of cargo's hash of its path; none for all others.
fn identity(root: &Path) -> Option<String> {
    env::var_os(IDENTITY)?;
    let folder = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR")?);
    let is_ours = folder.starts_with(root.canonicalize().ok()?);
    is_ours.then(|| format!("hotcell-{}", env::var("CARGO_PKG_NAME").unwrap_or_default()))
}

/// The repository and the folders of unpacked crates, which are named after the registry that they came from.
fn replacements(root: &Path) -> Vec<(PathBuf, &'static str)> {
    let mut all = vec![(root.to_owned(), "/hotcell")];
    let home = env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| env::home_dir().map(|home| home.join(".cargo")))
        .unwrap_or_default();
    for registry in fs::read_dir(home.join("registry/src")).into_iter().flatten().flatten() {
        all.push((registry.path(), "/crates"));
    }
    all
}
