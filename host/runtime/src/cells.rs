//! The cells of a process, and the interpreters that the binary carries, loaded when the first script needs them.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use hotcell_cells::{Cell, Cells, CellsError, CellsOptions, CompileEvent, LoadError};
use hotcell_interpreters::{Interpreter, Lookup, for_extension};
use thiserror::Error;

/// Is told when a component is compiled.
pub(crate) type OnCompile = Arc<dyn Fn(&CompileEvent) + Send + Sync>;

/// Why a cell that hotcell itself carries cannot be used.
#[derive(Clone, Debug, Error)]
pub enum CarriedError {
    /// This hotcell was built without it
    #[error("this hotcell was built without its {name} cell; run `{setup}` in its source and build it again")]
    NotBuilt {
        /// Its name
        name: &'static str,
        /// The command that sets up its build
        setup: &'static str,
    },
    /// No interpreter runs files of that kind
    #[error("files ending in `.{extension}` are not scripts; use .js, .ts, .py, .sh or .wasm")]
    NoScript {
        /// The extension of the file
        extension: String,
    },
    /// It cannot be unpacked
    #[error(transparent)]
    Unpack(Arc<io::Error>),
    /// It cannot be loaded
    #[error(transparent)]
    Load(Arc<LoadError>),
}

impl From<io::Error> for CarriedError {
    fn from(error: io::Error) -> Self {
        CarriedError::Unpack(Arc::new(error))
    }
}

impl From<LoadError> for CarriedError {
    fn from(error: LoadError) -> Self {
        CarriedError::Load(Arc::new(error))
    }
}

/// One WebAssembly engine and its interpreters, shared by all hosts of a process.
#[derive(Clone)]
pub(crate) struct CellRuntime {
    cells: Cells,
    interpreters: Arc<Mutex<HashMap<&'static str, Cell>>>,
}

impl CellRuntime {
    pub(crate) fn new(cache_dir: Option<PathBuf>, on_compile: Option<OnCompile>) -> Result<Self, CellsError> {
        let cells = Cells::new(CellsOptions { cache_dir, on_compile, ..CellsOptions::default() })?;
        Ok(CellRuntime { cells, interpreters: Arc::default() })
    }

    /// The same for a host that shares the cells with others, by a weight of its own or with all that have none.
    pub(crate) fn sharing(&self, weight: Option<u32>) -> Self {
        CellRuntime { cells: self.cells.sharing(weight), interpreters: self.interpreters.clone() }
    }

    pub(crate) fn cells(&self) -> &Cells {
        &self.cells
    }

    /// The interpreter for files of that extension. The error names what is supported or missing.
    pub(crate) fn interpreter(&self, extension: &str) -> Result<Cell, CarriedError> {
        match for_extension(extension) {
            Lookup::Found(interpreter) => self.load(interpreter),
            Lookup::NotBuilt { name, setup } => Err(CarriedError::NotBuilt { name, setup }),
            Lookup::Unknown => Err(CarriedError::NoScript { extension: extension.to_owned() }),
        }
    }

    /// What this hotcell carries that has this digest: an interpreter. None if it carries nothing of the kind.
    pub(crate) fn carried(&self, digest: &str) -> Option<Result<Cell, CarriedError>> {
        let interpreter = hotcell_interpreters::all().iter().find(|one| one.wasm_digest == digest)?;
        Some(self.load(interpreter))
    }

    fn load(&self, interpreter: &'static Interpreter) -> Result<Cell, CarriedError> {
        let mut loaded = self.interpreters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cell) = loaded.get(interpreter.name) {
            return Ok(cell.clone());
        }
        let cell = self.cells.load_carried(interpreter.name, interpreter.wasm_digest, || interpreter.unpack())?;
        loaded.insert(interpreter.name, cell.clone());
        Ok(cell)
    }

    /// The cell that reads documents which have to be parsed.
    pub(crate) fn documents(&self) -> Result<Cell, CarriedError> {
        Ok(self.cells.load("documents", &hotcell_interpreters::documents()?)?)
    }
}
