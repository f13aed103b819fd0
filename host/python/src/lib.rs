//! The Python package `hotcell`, for programs that run agents: its native half, the module `hotcell._hotcell`.
//!
//! It knows hosts, agents, and runs that are under way, takes and gives JSON as text, and releases the interpreter's lock wherever it waits.
//! Everything that a Python program sees (types, iterators, `await`) is made of that by the package's own Python, in `python/hotcell`.

mod agent;
mod compile;
mod errors;
mod feed;
mod function;
mod host;
mod people;
mod report;
mod running;
mod work;

use pyo3::prelude::*;

#[pymodule]
mod _hotcell {
    #[pymodule_export]
    use crate::agent::NativeAgent;
    #[pymodule_export]
    use crate::function::Call;
    #[pymodule_export]
    use crate::host::NativeHost;
    #[pymodule_export]
    use crate::report::Report;
    #[pymodule_export]
    use crate::work::Work;

    #[pymodule_export]
    use crate::compile::{compile, compile_in_processes};

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
