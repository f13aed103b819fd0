//! The tool that the benchmarks call: the upper-case form of a text and its length.

use contract::exports::hotcell::plugin::call_tool::{Error, Guest, Json};
use contract::hotcell::plugin::types::Failure;

mod contract {
    wit_bindgen::generate!({
        path: "../../../wit",
        world: "tools",
    });
}

struct BenchTool;

impl Guest for BenchTool {
    fn call(_name: String, arguments: Json) -> Result<Json, Error> {
        hotcell_bench_work::call(&arguments)
            .map_err(|message| Error::InvalidInput(Failure { message, metadata: Vec::new() }))
    }
}

contract::export!(BenchTool with_types_in contract);
