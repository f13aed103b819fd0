//! Builds the interpreters that hotcell carries, starts each of them once and embeds the started image; and embeds the
//! plugin that reads documents as it is.
//!
//! Three steps a guest: compile it to a component, run its `init` and snapshot the memory it leaves, compile that
//! ahead of time with the engine the host uses. Every step is kept under the digest of what goes into it, in
//! `plugins/interpreters/target/interpreters`, so that a change elsewhere costs nothing and a change back is free.
#![expect(clippy::print_stdout, reason = "a build script speaks to cargo on standard output")]

mod components;
mod kept;
mod snapshot;

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use components::Component;

fn main() -> Result<(), Box<dyn Error>> {
    let manifest = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let root = manifest.ancestors().nth(2).ok_or("this crate lies in `host/interpreters` of the repository")?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    refuse_foreign_target()?;

    let engine_source = root.join("host/cells/src/engine.rs");
    let wit = root.join("host/cells/wit");
    for path in [
        &engine_source,
        &wit,
        &root.join("plugins/interpreters/Cargo.toml"),
        &root.join("plugins/interpreters/Cargo.lock"),
        &root.join("plugins/Cargo.lock"),
        &root.join("plugins/documents"),
        &root.join("sdk/rust/hotcell-plugin"),
        &root.join("sdk/rust/hotcell-plugin-macros"),
    ] {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    for guest in ["javascript", "output", "shell", "python"] {
        println!("cargo::rerun-if-changed={}", root.join("plugins/interpreters").join(guest).display());
    }
    println!("cargo::rerun-if-changed={}", manifest.join("build").display());

    let kept = kept::Kept::open(root.join("plugins/interpreters/target/interpreters"))?;
    let engine = fs::read(&engine_source)?;
    let components = components::build_all(root, &wit, &kept)?;
    let mut items = String::new();
    for component in [&components.javascript, &components.shell] {
        let name = component.name.to_uppercase();
        let interpreter = embed(component, &engine, &kept, &out)?;
        writeln!(items, "pub(crate) static {name}: Interpreter = {interpreter};")?;
    }
    let python = match &components.python {
        Some(component) => format!("Some({})", embed(component, &engine, &kept, &out)?),
        None => "None".to_owned(),
    };
    writeln!(items, "pub(crate) static PYTHON: Option<Interpreter> = {python};")?;
    // A plugin like any other: it is loaded as such, and compiled when the first document needs it.
    fs::write(out.join("documents.wasm"), &components.documents)?;
    fs::write(out.join("embedded.rs"), items)?;
    Ok(())
}

/// Snapshots and compiles one component, puts the result into `out` and gives the expression that embeds it.
fn embed(component: &Component, engine: &[u8], kept: &kept::Kept, out: &Path) -> Result<String, Box<dyn Error>> {
    let name = component.name;
    let image = match component.started {
        true => component.wasm.clone(),
        false => kept.or_make(&format!("{name}.image.wasm"), &[&component.wasm, snapshot::VERSION], || {
            snapshot::take(&component.wasm).map_err(|error| format!("cannot start the {name} cell: {error:#}").into())
        })?,
    };
    let compiled = kept.or_make(&format!("{name}.cwasm"), &[&image, engine, snapshot::VERSION], || {
        hotcell_cells::precompile(&image).map_err(|error| format!("the {name} cell: {error}").into())
    })?;
    let file = out.join(format!("{name}.cwasm"));
    fs::write(&file, compiled)?;
    let mut digest = String::new();
    for byte in Sha256::digest(&image) {
        write!(digest, "{byte:02x}")?;
    }
    let extensions = component.extensions;
    let file = format!("concat!(env!(\"OUT_DIR\"), \"/{name}.cwasm\")");
    Ok(format!(
        "Interpreter {{ name: {name:?}, wasm_digest: {digest:?}, cwasm: include_bytes!({file}), extensions: &{extensions:?} }}"
    ))
}

/// The artefacts are machine code of the machine that builds; another architecture needs a build of its own.
fn refuse_foreign_target() -> Result<(), Box<dyn Error>> {
    let (host, target) = (env::var("HOST")?, env::var("TARGET")?);
    let architecture = |triple: &str| triple.split('-').next().map(str::to_owned);
    if architecture(&host) != architecture(&target) {
        return Err(format!(
            "the interpreters are compiled for `{host}`, which builds, and cannot be embedded into a `{target}` \
             binary; build hotcell on the architecture it is for"
        )
        .into());
    }
    Ok(())
}
