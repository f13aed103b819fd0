//! The interpreters that hotcell carries, ready to be loaded: JavaScript with TypeScript, shell, and Python.
//!
//! Each is a component of the private world `hotcell:cell/interpreter`, snapshotted after its start and compiled for
//! this architecture when hotcell was built. Hand one to `Cells::load_precompiled`. Nothing is executed or parsed
//! here; a script's text goes into the cell as it is.

/// An embedded interpreter.
#[derive(Clone, Copy, Debug)]
pub struct Interpreter {
    /// What it is called in messages: `javascript`, `shell` or `python`.
    pub name: &'static str,
    /// The SHA-256 digest of its WebAssembly, in hexadecimal.
    pub wasm_digest: &'static str,
    /// The component, compiled ahead of time by the engine of `hotcell-cells`.
    pub cwasm: &'static [u8],
    /// File extensions of the scripts it runs, without the dot, in lower case.
    pub extensions: &'static [&'static str],
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

/// The JavaScript and TypeScript cell.
pub fn javascript() -> &'static Interpreter {
    &embedded::JAVASCRIPT
}

/// The shell cell.
pub fn shell() -> &'static Interpreter {
    &embedded::SHELL
}

/// The Python cell, where hotcell was built with it.
pub fn python() -> Option<&'static Interpreter> {
    embedded::PYTHON.as_ref()
}

/// The plugin that reads documents, which hotcell itself uses: a component with the tool `read_document`.
pub fn documents() -> &'static [u8] {
    include_bytes!(concat!(env!("OUT_DIR"), "/documents.wasm"))
}

/// The interpreter for a file extension, which is compared without regard to case.
pub fn for_extension(extension: &str) -> Lookup {
    let extension = extension.to_ascii_lowercase();
    let built = [Some(javascript()), Some(shell()), python()];
    let found = built.into_iter().flatten().find(|one| one.extensions.contains(&extension.as_str()));
    match found {
        Some(interpreter) => Lookup::Found(interpreter),
        None if extension == "py" => Lookup::NotBuilt { name: "python", setup: "plugins/interpreters/python/setup" },
        None => Lookup::Unknown,
    }
}
