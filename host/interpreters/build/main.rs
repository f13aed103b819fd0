//! Compiles the interpreters that hotcell carries ahead of time for this architecture, compresses and embeds them.
//!
//! The JavaScript and shell cells, the plugin that reads documents, and the plugins that ship with hotcell come from images in
//! the repository, which `hotcell-interpreter-images` makes and checks. The Python cell is made here by `componentize-py`. What a step gives
//! is kept under the digest of what went into it, in `plugins/interpreters/target/interpreters`, so that a change
//! elsewhere costs nothing and a change back is free.
#![expect(clippy::print_stdout, reason = "a build script speaks to cargo on standard output")]

mod kept;
mod python;
mod sources;

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use kept::Kept;
use sources::{SOURCES, Source};

/// Of zstd. Level 19 takes a minute of each build to save another tenth.
const COMPRESSION: i32 = 12;

/// A cell as an image: a component whose interpreter is started.
struct Image {
    name: &'static str,
    /// File extensions of its scripts, without the dot.
    extensions: &'static [&'static str],
    wasm: Vec<u8>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let manifest = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let root = manifest.ancestors().nth(2).ok_or("this crate lies in `host/interpreters` of the repository")?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    refuse_foreign_target()?;

    let engine_source = root.join("host/cells/src/engine.rs");
    let wit = root.join("host/cells/wit");
    for path in [&engine_source, &wit, &root.join("plugins/interpreters/python"), &manifest.join("build")] {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    println!("cargo::rerun-if-changed={}", root.join(sources::DIRECTORY).display());
    for input in SOURCES.iter().flat_map(|source| source.inputs) {
        println!("cargo::rerun-if-changed={}", root.join(input).display());
    }

    let kept = Kept::open(root.join("plugins/interpreters/target/interpreters"))?;
    let [javascript, shell, documents, plugins] = &SOURCES;
    let mut images = vec![
        Image {
            name: "javascript",
            extensions: &["js", "ts", "mjs", "mts", "cjs", "cts"],
            wasm: carried(root, javascript)?,
        },
        Image { name: "shell", extensions: &["sh"], wasm: carried(root, shell)? },
    ];
    let python = python::component(root, &wit, &kept)?;
    images.extend(python.map(|wasm| Image { name: "python", extensions: &["py"], wasm }));

    let engine = fs::read(&engine_source)?;
    let compiled: Vec<Result<String, String>> = thread::scope(|scope| {
        let (engine, kept, out) = (&engine, &kept, &out);
        let threads: Vec<_> = images
            .iter()
            .map(|image| scope.spawn(move || embed(image, engine, kept, out).map_err(|error| error.to_string())))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err("a compilation panicked".into())))
            .collect()
    });
    let mut items = String::new();
    writeln!(items, "pub(crate) static INTERPRETERS: &[Interpreter] = &[")?;
    for interpreter in compiled {
        writeln!(items, "{},", interpreter?)?;
    }
    writeln!(items, "];")?;
    // A plugin like any other: it is loaded as such, and compiled when the first document needs it.
    carried(root, documents)?;
    fs::copy(sources::image_path(root, documents.name), out.join("documents.wasm.zst"))?;
    carried(root, plugins)?;
    fs::copy(sources::image_path(root, plugins.name), out.join("plugins.zst"))?;
    fs::write(out.join("embedded.rs"), items)?;
    Ok(())
}

/// The image of the repository, which has to be the one that the manifest names. That its sources have changed since is
/// a warning: whoever works on them makes the image when they are done.
fn carried(root: &Path, source: &Source) -> Result<Vec<u8>, Box<dyn Error>> {
    let entry = sources::entry(root, source.name)?;
    let path = sources::image_path(root, source.name);
    let compressed = fs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let image = zstd::decode_all(compressed.as_slice())?;
    if sources::sha256(&image) != entry.image {
        return Err(format!(
            "{} is not the image that {} names; restore both, or run `{}`",
            path.display(),
            sources::MANIFEST,
            sources::REBUILD
        )
        .into());
    }
    if source.digest(root)? != entry.sources {
        println!(
            "cargo::warning=the sources of the {} image have changed since it was made; run `{}` to have them in hotcell",
            source.name,
            sources::REBUILD
        );
    }
    Ok(image)
}

/// Compiles one cell, puts the compressed result into `out` and gives the expression that embeds it.
fn embed(image: &Image, engine: &[u8], kept: &Kept, out: &Path) -> Result<String, Box<dyn Error>> {
    let name = image.name;
    let compressed =
        kept.or_make(&format!("{name}.cwasm.zst"), &[&image.wasm, engine, &[COMPRESSION as u8]], || {
            let compiled =
                hotcell_cells::precompile(&image.wasm).map_err(|error| format!("the {name} cell: {error}"))?;
            Ok(zstd::encode_all(compiled.as_slice(), COMPRESSION)?)
        })?;
    fs::write(out.join(format!("{name}.cwasm.zst")), compressed)?;
    let digest = sources::sha256(&image.wasm);
    let extensions = image.extensions;
    let file = format!("concat!(env!(\"OUT_DIR\"), \"/{name}.cwasm.zst\")");
    Ok(format!(
        "Interpreter {{ name: {name:?}, wasm_digest: {digest:?}, compressed: include_bytes!({file}), \
         extensions: &{extensions:?} }}"
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
