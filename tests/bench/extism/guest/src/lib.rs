//! The tool of the benchmarks as a plugin of Extism: arguments and result are JSON texts, as in hotcell.

use extism_pdk::{Error, FnResult, plugin_fn};

/// Calls the tool.
#[plugin_fn]
pub fn call(arguments: String) -> FnResult<String> {
    Ok(hotcell_bench_work::call(&arguments).map_err(Error::msg)?)
}
