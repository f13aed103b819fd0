//! The plugin of the test cases: one type of node, `UppercaseNode`, which gives `text` in upper case and its own `suffix`
//! behind it.

use contract::exports::hotcell::plugin::run_node::{Error, Guest, Json, Outcome};
use contract::hotcell::plugin::types::Failure;
use serde_json::{Value, json};

mod contract {
    wit_bindgen::generate!({
        path: "../../../wit",
        world: "node",
    });
}

struct CasePlugin;

impl Guest for CasePlugin {
    fn run(node_type: String, fields: Json, inputs: Json) -> Result<Outcome, Error> {
        if node_type != "UppercaseNode" {
            return Err(invalid(format!("there is no type `{node_type}`")));
        }
        let read = |text: &str| serde_json::from_str::<Value>(text).map_err(|error| invalid(error.to_string()));
        let (fields, inputs) = (read(&fields)?, read(&inputs)?);
        let text = inputs["text"].as_str().ok_or_else(|| invalid("`text` is no text".to_owned()))?;
        let shout = text.to_uppercase() + fields["suffix"].as_str().unwrap_or_default();
        Ok(Outcome { outputs: json!({ "shout": shout }).to_string(), branch: None, metadata: Vec::new() })
    }
}

fn invalid(message: String) -> Error {
    Error::InvalidInput(Failure { message, metadata: Vec::new() })
}

contract::export!(CasePlugin with_types_in contract);
