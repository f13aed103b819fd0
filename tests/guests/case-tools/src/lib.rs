//! The tools of the test cases: one component that has every behaviour a case can give to a tool.
//!
//! Which tool has which behaviour is the operator's configuration (`behaviour.NAME`, and `value.NAME` for a
//! constant), so that the same component serves every case under whatever names the case invents. It must not know
//! any case, and must do nothing that the table of behaviours does not say.

mod behaviour;

use contract::exports::hotcell::plugin::call_tool::{Error, Guest, Json};
use contract::hotcell::plugin::types::Failure;
use contract::hotcell::plugin::{ask, config, log};

mod contract {
    wit_bindgen::generate!({
        path: "../../../wit",
        world: "tools",
    });
}

struct CaseTools;

impl Guest for CaseTools {
    fn call(name: String, arguments: Json) -> Result<Json, Error> {
        log::log(log::Level::Debug, &format!("{name} {arguments}"));
        let setting = |kind: &str| config::get(&format!("{kind}.{name}"));
        let behaviour = setting("behaviour")
            .ok_or_else(|| Error::InvalidInput(failure(format!("`behaviour.{name}` is not configured"))))?;
        behaviour::perform(&behaviour, &arguments, setting("value"))
    }
}

fn failure(message: String) -> Failure {
    Failure { message, metadata: Vec::new() }
}

contract::export!(CaseTools with_types_in contract);
