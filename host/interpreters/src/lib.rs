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
