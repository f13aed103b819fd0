//! Compiles the guests to components: three with cargo, the Python one with `componentize-py`.

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::kept::Kept;

const TARGET: &str = "wasm32-wasip2";
/// Installs what the Python cell needs; also named in the warning when it is missing.
const PYTHON_SETUP: &str = "plugins/interpreters/python/setup";
/// The modules of the Python cell; nothing else of its directory gets into the image.
const PYTHON_MODULES: [&str; 3] = ["cell.py", "connections.py", "surface.py"];

/// A guest as a component.
pub(crate) struct Component {
    pub(crate) name: &'static str,
    /// File extensions of its scripts, without the dot.
    pub(crate) extensions: &'static [&'static str],
    pub(crate) wasm: Vec<u8>,
    /// Whether its interpreter is started already.
    pub(crate) started: bool,
}

/// All guests.
pub(crate) struct Components {
    pub(crate) javascript: Component,
    pub(crate) shell: Component,
    /// Missing where `componentize-py` is.
    pub(crate) python: Option<Component>,
    /// The plugin that reads documents, which hotcell itself uses.
    pub(crate) documents: Vec<u8>,
}

/// Builds all of them.
pub(crate) fn build_all(root: &Path, wit: &Path, kept: &Kept) -> Result<Components, Box<dyn Error>> {
    let built = build_rust(&root.join("plugins/interpreters"), &[])?;
    let plugins = build_rust(&root.join("plugins"), &["--package", "documents"])?;
    let read_from = |path: PathBuf| fs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()));
    let read = |file: &str| read_from(built.join(file));
    let python = build_python(root, wit, kept)?;
    Ok(Components {
        javascript: Component {
            name: "javascript",
            extensions: &["js", "ts", "mjs", "mts", "cjs", "cts"],
            wasm: read("hotcell_javascript.wasm")?,
            started: false,
        },
        shell: Component { name: "shell", extensions: &["sh"], wasm: read("hotcell_shell.wasm")?, started: false },
        python: python.map(|wasm| Component { name: "python", extensions: &["py"], wasm, started: true }),
        documents: read_from(plugins.join("documents.wasm"))?,
    })
}

/// Runs cargo in a workspace and gives the directory of what it made.
fn build_rust(workspace: &Path, selection: &[&str]) -> Result<PathBuf, Box<dyn Error>> {
    let target_directory = workspace.join("target");
    add_target()?;
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .current_dir(workspace)
        .args(["build", "--release", "--locked", "--target", TARGET, "--target-dir"])
        .arg(&target_directory)
        .args(selection);
    // The outer cargo's settings are for this machine, not for the guests.
    for (name, _) in env::vars_os() {
        if belongs_to_outer_build(&name) {
            cargo.env_remove(&name);
        }
    }
    run(&mut cargo, &format!("the guests in `{}`", workspace.display()))?;
    Ok(target_directory.join(TARGET).join("release"))
}

fn belongs_to_outer_build(name: &OsString) -> bool {
    let Some(name) = name.to_str() else { return false };
    match name {
        "CARGO_HOME" => false,
        "RUSTFLAGS"
        | "RUSTC"
        | "RUSTDOC"
        | "RUSTDOCFLAGS"
        | "RUSTC_WORKSPACE_WRAPPER"
        | "TARGET"
        | "HOST"
        | "PROFILE"
        | "OPT_LEVEL"
        | "DEBUG"
        | "OUT_DIR"
        | "NUM_JOBS"
        | "CLIPPY_ARGS"
        | "__CARGO_FIX_PLZ" => true,
        _ => name.starts_with("CARGO") && !name.starts_with("CARGO_REGISTR") && !name.starts_with("CARGO_NET"),
    }
}

fn add_target() -> Result<(), Box<dyn Error>> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let sysroot = Command::new(rustc).args(["--print", "sysroot"]).output()?;
    let sysroot = PathBuf::from(String::from_utf8(sysroot.stdout)?.trim());
    if sysroot.join("lib/rustlib").join(TARGET).exists() {
        return Ok(());
    }
    run(Command::new("rustup").args(["target", "add", TARGET]), "the target of the guests")
}

fn build_python(root: &Path, wit: &Path, kept: &Kept) -> Result<Option<Vec<u8>>, Box<dyn Error>> {
    let Some((tool, python_path)) = find_componentize(root) else {
        println!(
            "cargo::warning=the Python cell is left out, because `componentize-py` is missing; run `{PYTHON_SETUP}` once"
        );
        return Ok(None);
    };
    let command = || {
        let mut command = Command::new(&tool);
        if let Some(python_path) = &python_path {
            command.env("PYTHONPATH", python_path);
        }
        // A virtual environment of the surroundings must not get into the image.
        command.env_remove("VIRTUAL_ENV");
        command
    };
    let version = command().arg("--version").output()?.stdout;
    let source = root.join("plugins/interpreters/python");
    let mut inputs = vec![version, fs::read(wit.join("cell.wit"))?];
    for file in PYTHON_MODULES {
        inputs.push(fs::read(source.join(file))?);
    }
    let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    let wasm = kept.or_make("python.wasm", &inputs, || {
        let output = PathBuf::from(env::var("OUT_DIR")?).join("python.component.wasm");
        // A directory of its own: nothing but the cell's modules may be found.
        let staging = PathBuf::from(env::var("OUT_DIR")?).join("python");
        fs::create_dir_all(&staging)?;
        for file in PYTHON_MODULES {
            fs::copy(source.join(file), staging.join(file))?;
        }
        run(
            command()
                .arg("--wit-path")
                .arg(wit.join("cell.wit"))
                .args(["--world", "interpreter", "--quiet", "componentize", "--python-path"])
                .arg(&staging)
                .args(["cell", "--output"])
                .arg(&output),
            "the Python cell",
        )?;
        Ok(fs::read(&output)?)
    })?;
    Ok(Some(wasm))
}

/// The tool, and where its Python package is when that is not where Python looks by itself.
fn find_componentize(root: &Path) -> Option<(PathBuf, Option<PathBuf>)> {
    let tools = root.join("target/python-tools");
    let own = tools.join("bin/componentize-py");
    if own.exists() {
        return Some((own, Some(tools)));
    }
    let path = env::var_os("PATH")?;
    let found =
        env::split_paths(&path).map(|directory| directory.join("componentize-py")).find(|tool| tool.is_file())?;
    Some((found, None))
}

fn run(command: &mut Command, what: &str) -> Result<(), Box<dyn Error>> {
    let shown = format!("{command:?}");
    let status = command.status().map_err(|error| format!("cannot build {what}: {shown} does not start: {error}"))?;
    if !status.success() {
        return Err(format!("cannot build {what}: {shown} ended with {status}").into());
    }
    Ok(())
}
