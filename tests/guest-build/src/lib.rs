//! Builds a component of the workspace `tests/guests`, for the build script of a program that carries it.
#![expect(clippy::print_stdout, reason = "a build script speaks to cargo on standard output")]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};

const TARGET: &str = "wasm32-wasip2";

/// The `main` of a build script: builds `package` and gives the path of its component to the crate as the environment
/// variable `variable`.
pub fn carry(package: &str, variable: &str) -> ExitCode {
    carry_all(&[(package, variable)])
}

/// The same for several packages, each with its variable.
pub fn carry_all(packages: &[(&str, &str)]) -> ExitCode {
    for (package, variable) in packages {
        match build(package) {
            Ok(component) => println!("cargo::rustc-env={variable}={}", component.display()),
            Err(problem) => {
                println!("cargo::error={problem}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

fn build(package: &str) -> Result<PathBuf, String> {
    let directory = |name: &str| env::var_os(name).map(PathBuf::from).ok_or(format!("cargo did not set `{name}`"));
    let guests = directory("CARGO_MANIFEST_DIR")?.join("../guests");
    // One target folder for all of them: what they share is compiled once.
    let target = guests.join("target");
    for watched in ["Cargo.toml", "Cargo.lock", "../../wit"] {
        println!("cargo::rerun-if-changed={}", guests.join(watched).display());
    }
    let members = fs::read_dir(&guests).map_err(|error| format!("cannot read `{}`: {error}", guests.display()))?;
    for member in members.flatten().map(|entry| entry.path()).filter(|path| path.join("Cargo.toml").is_file()) {
        println!("cargo::rerun-if-changed={}", member.display());
    }
    add_target()?;
    let mut cargo = command("CARGO", "cargo");
    cargo
        .args(["build", "--release", "--locked", "--quiet", "--package", package, "--target", TARGET])
        .arg("--target-dir")
        .arg(&target)
        .current_dir(&guests);
    run(cargo, &format!("build `{package}`"))?;
    let built = target.join(TARGET).join("release").join(format!("{}.wasm", package.replace('-', "_")));
    if !built.is_file() {
        return Err(format!("`{}` was not built", built.display()));
    }
    Ok(built)
}

/// The standard library for guests comes with the pinned toolchain; where it was left out, it is fetched.
fn add_target() -> Result<(), String> {
    let output = command("RUSTC", "rustc")
        .args(["--print", "target-libdir", "--target", TARGET])
        .output()
        .map_err(|error| format!("cannot ask rustc for `{TARGET}`: {error}"))?;
    let library = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let is_there =
        output.status.success() && fs::read_dir(Path::new(&library)).is_ok_and(|mut files| files.next().is_some());
    if is_there {
        return Ok(());
    }
    let mut rustup = Command::new("rustup");
    rustup.args(["target", "add", TARGET]);
    run(rustup, "add the target `wasm32-wasip2`")
}

/// A program of the toolchain, without what the outer build says about flags, wrappers and folders.
fn command(variable: &str, default: &str) -> Command {
    let mut command = Command::new(env::var_os(variable).unwrap_or_else(|| default.into()));
    let meant_for_the_outer_build = |name: &str| {
        name.starts_with("CARGO_ENCODED_")
            || name.starts_with("CARGO_PROFILE_")
            || name.starts_with("CARGO_BUILD_")
            || name.starts_with("CARGO_FEATURE_")
            || matches!(
                name,
                "CARGO_TARGET_DIR"
                    | "RUSTFLAGS"
                    | "RUSTC_WRAPPER"
                    | "RUSTC_WORKSPACE_WRAPPER"
                    | "RUSTDOCFLAGS"
                    | "CARGO_MAKEFLAGS"
                    | "MAKEFLAGS"
                    | "TARGET"
                    | "HOST"
                    | "OUT_DIR"
            )
    };
    for (name, _) in env::vars() {
        if meant_for_the_outer_build(&name) {
            command.env_remove(name);
        }
    }
    command
}

fn run(mut command: Command, purpose: &str) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("cannot {purpose}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let end: Vec<&str> = stderr.lines().rev().take(20).collect();
    let end: Vec<&str> = end.into_iter().rev().collect();
    Err(format!("cannot {purpose}: {}", end.join(" / ")))
}
