//! Makes the images of the interpreters that hotcell carries, of the plugin that reads documents, and of the plugins that ship
//! with hotcell, from their sources.
//!
//! The images lie in the repository (`plugins/interpreters/images`), because compiling a JavaScript engine, a shell and a
//! PDF reader for WebAssembly takes longer than all the rest of hotcell. They are no black boxes: this program makes them
//! again, byte for byte, on any machine with the pinned toolchain, and `--check` compares instead of writing. CI does so.
//!
//! Two things would make bytes depend on the machine, and are taken out: paths (every call of rustc has them replaced,
//! for which this program puts itself between cargo and rustc) and whatever `init` could see of the outside (see
//! [`snapshot`]).
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for the command line")]

mod build;
mod snapshot;
#[path = "../../interpreters/build/sources.rs"]
mod sources;

use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sources::{SOURCES, Source};

/// Of zstd. The images are compressed once and read for years.
const COMPRESSION: i32 = 19;

fn main() -> ExitCode {
    if let Some(root) = build::asked_as_wrapper() {
        return build::call_rustc(&root);
    }
    let check = match std::env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [] => false,
        [flag] if flag == "--check" => true,
        _ => {
            eprintln!("usage: hotcell-interpreter-images [--check]");
            return ExitCode::from(2);
        }
    };
    // `cargo run` names the folder of this crate; without it, the one that it was compiled in.
    let here = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    let root = here.ancestors().nth(2).unwrap_or(Path::new(".")).to_owned();
    let done = if check { compare(&root) } else { write(&root) };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Makes all images and says of each whether the repository has the same.
fn compare(root: &Path) -> Result<bool, Box<dyn Error>> {
    let built = build::all(root)?;
    let mut same = true;
    for source in &SOURCES {
        let made = image(source, &built)?;
        let path = sources::image_path(root, source.name);
        let compressed = fs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let carried = zstd::decode_all(compressed.as_slice())?;
        let entry = sources::entry(root, source.name)?;
        let (made_digest, carried_digest) = (sources::sha256(&made), sources::sha256(&carried));
        if made == carried && entry.image == made_digest && entry.sources == source.digest(root)? {
            println!("{}: {} bytes, the same ({made_digest})", source.name, made.len());
        } else {
            same = false;
            println!(
                "{}: NOT the same: {} bytes made here ({made_digest}), {} bytes in the repository ({carried_digest}), \
                 the manifest says {}",
                source.name,
                made.len(),
                carried.len(),
                entry.image
            );
        }
    }
    if !same {
        println!("if the sources were changed on purpose, run `{}` and commit what it writes", sources::REBUILD);
    }
    Ok(same)
}

/// Makes all images and writes them and their manifest.
fn write(root: &Path) -> Result<bool, Box<dyn Error>> {
    let built = build::all(root)?;
    let mut manifest = String::from(
        "# Name, SHA-256 of the image (uncompressed), digest of its sources. Written by `hotcell-interpreter-images`.\n",
    );
    for source in &SOURCES {
        let made = image(source, &built)?;
        let digest = sources::sha256(&made);
        fs::write(sources::image_path(root, source.name), zstd::encode_all(made.as_slice(), COMPRESSION)?)?;
        writeln!(manifest, "{} {digest} {}", source.name, source.digest(root)?)?;
        println!("{}: {} bytes ({digest})", source.name, made.len());
    }
    fs::write(sources::manifest_path(root), manifest)?;
    Ok(true)
}

/// One image: the component, started if it is an interpreter.
fn image(source: &Source, built: &build::Built) -> Result<Vec<u8>, Box<dyn Error>> {
    if source.name == "plugins" {
        return archive(built);
    }
    let path = built.component(source.name);
    let component = fs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    match source.name {
        "documents" => Ok(component),
        name => snapshot::take(&component).map_err(|error| format!("cannot start the {name} cell: {error:#}").into()),
    }
}

/// All plugins in one: a line for each with its name and size, an empty line, and the components.
fn archive(built: &build::Built) -> Result<Vec<u8>, Box<dyn Error>> {
    let (mut index, mut components) = (String::new(), Vec::new());
    for name in sources::PLUGINS {
        let path = built.plugin(name);
        let component = fs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        writeln!(index, "{name} {}", component.len())?;
        components.extend(component);
    }
    Ok([index.as_bytes(), b"\n", &components].concat())
}

#[cfg(test)]
mod tests {
    use std::error::Error;
    use std::path::Path;

    use super::sources::{self, SOURCES};

    /// That the sources really make the images is what `--check` shows; this only finds a forgotten image.
    #[test]
    fn the_images_were_made_from_the_sources_beside_them() -> Result<(), Box<dyn Error>> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for source in &SOURCES {
            let entry = sources::entry(&root, source.name)?;
            assert_eq!(entry.sources, source.digest(&root)?, "{}: run `{}`", source.name, sources::REBUILD);
        }
        Ok(())
    }
}
