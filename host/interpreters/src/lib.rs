//! The interpreters that hotcell carries, ready to be loaded: JavaScript with TypeScript, shell, and Python.
//!
//! Each is a component of the private world `hotcell:cell/interpreter`, snapshotted after its start, compiled for
//! this architecture when hotcell was built, and compressed. Hand one to `Cells::load_carried`. Nothing is executed or
//! parsed here; a script's text goes into the cell as it is.

use std::io;

/// An embedded interpreter.
#[derive(Clone, Copy, Debug)]
pub struct Interpreter {
    /// What it is called in messages: `javascript`, `shell` or `python`.
    pub name: &'static str,
    /// The SHA-256 digest of its WebAssembly, in hexadecimal.
    pub wasm_digest: &'static str,
    /// File extensions of the scripts it runs, without the dot, in lower case.
    pub extensions: &'static [&'static str],
    compressed: &'static [u8],
}

impl Interpreter {
    /// The component, compiled ahead of time by the engine of `hotcell-cells`: 27 to 55 MB, unpacked anew by each
    /// call in 50 to 100 ms. Keep what you get.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn unpack(&self) -> io::Result<Vec<u8>> {
        zstd::decode_all(self.compressed)
    }
}

/// What there is for a file extension.
#[derive(Clone, Copy, Debug)]
pub enum Lookup {
    /// This interpreter runs it.
    Found(&'static Interpreter),
    /// hotcell can run it, but was built without the interpreter.
    NotBuilt {
        /// The interpreter's name.
        name: &'static str,
        /// The command that sets up its build.
        setup: &'static str,
    },
    /// No interpreter runs it.
    Unknown,
}

mod embedded {
    use super::Interpreter;

    include!(concat!(env!("OUT_DIR"), "/embedded.rs"));
}

/// The plugin that reads documents, which hotcell itself uses: a component with the tool `read_document`.
///
/// # Errors
/// When there is no memory for it.
pub fn documents() -> io::Result<Vec<u8>> {
    const COMPRESSED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/documents.wasm.zst"));
    zstd::decode_all(COMPRESSED)
}

/// A plugin that ships with hotcell.
#[derive(Clone, Debug)]
pub struct ShippedPlugin {
    /// What it is called
    pub name: String,
    /// Its component
    pub component: Vec<u8>,
}

/// The plugins that ship with hotcell, in the order of their names: unpacked anew by each call, in a few hundredths of a second.
///
/// # Errors
/// When there is no memory for them.
pub fn plugins() -> io::Result<Vec<ShippedPlugin>> {
    const COMPRESSED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/plugins.zst"));
    let archive = zstd::decode_all(COMPRESSED)?;
    let broken = || io::Error::new(io::ErrorKind::InvalidData, "the plugins that hotcell carries cannot be read");
    // A line for each, `NAME SIZE`, an empty line, and the components one after the other.
    let end = archive.windows(2).position(|two| two == b"\n\n").ok_or_else(broken)?;
    let index = str::from_utf8(&archive[..end]).map_err(|_| broken())?;
    let mut at = end + 2;
    let mut plugins = Vec::new();
    for line in index.lines() {
        let (name, size) = line.split_once(' ').ok_or_else(broken)?;
        let size: usize = size.parse().map_err(|_| broken())?;
        let component = archive.get(at..at + size).ok_or_else(broken)?.to_vec();
        plugins.push(ShippedPlugin { name: name.to_owned(), component });
        at += size;
    }
    Ok(plugins)
}

/// All interpreters that were built in.
pub fn all() -> &'static [Interpreter] {
    embedded::INTERPRETERS
}

/// The interpreter for a file extension, which is compared without regard to case.
pub fn for_extension(extension: &str) -> Lookup {
    let extension = extension.to_ascii_lowercase();
    let found = embedded::INTERPRETERS.iter().find(|one| one.extensions.contains(&extension.as_str()));
    match found {
        Some(interpreter) => Lookup::Found(interpreter),
        None if extension == "py" => Lookup::NotBuilt { name: "python", setup: "plugins/interpreters/python/setup" },
        None => Lookup::Unknown,
    }
}
