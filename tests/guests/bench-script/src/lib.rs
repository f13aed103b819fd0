//! Reads one text from the state, parses it, and answers with its upper-case form and its length.

use contract::exports::hotcell::plugin::run_script::{Error, Guest, Json};
use contract::hotcell::plugin::state;
use contract::hotcell::plugin::types::Failure;

mod contract {
    wit_bindgen::generate!({
        path: "../../../wit",
        world: "script",
    });
}

struct BenchScript;

impl Guest for BenchScript {
    fn run() -> Result<Json, Error> {
        let refuse = |message: &str| Error::Other(Failure { message: message.to_owned(), metadata: Vec::new() });
        let text = state::get("text").ok_or_else(|| refuse("`text` is not in state"))?;
        let text: String = serde_json::from_str(&text).map_err(|_| refuse("`text` is not a text"))?;
        Ok(hotcell_bench_work::answer(&text))
    }
}

contract::export!(BenchScript with_types_in contract);
