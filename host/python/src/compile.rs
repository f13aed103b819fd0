//! Compiling what strangers wrote in processes with limits of their own, which are Python interpreters that load this module and nothing else.

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;

/// Compiles in such processes from now on: `program` is started with these arguments, and has to call [`compile`] with those that follow.
#[pyfunction]
pub(crate) fn compile_in_processes(program: PathBuf, arguments: Vec<OsString>) {
    hotcell_runtime::compile_in_processes_of(program, arguments);
}

/// Compiles what comes from standard input, in a process that was started for that. Gives its exit code; `None` where the arguments ask
/// for nothing of the kind.
#[pyfunction]
pub(crate) fn compile(py: Python<'_>, arguments: Vec<OsString>) -> Option<i32> {
    py.detach(|| hotcell_runtime::compile_if_asked(arguments.into_iter()))
}
