//! The tool that the benchmarks call: the upper-case form of a text and its length. Under any other name it counts, as the function of
//! an agent.

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
    fn call(name: String, arguments: Json) -> Result<Json, Error> {
        let work = if name == "measure" { hotcell_bench_work::call } else { hotcell_bench_work::count };
        work(&arguments).map_err(|message| Error::InvalidInput(Failure { message, metadata: Vec::new() }))
    }
}

contract::export!(BenchTool with_types_in contract);
