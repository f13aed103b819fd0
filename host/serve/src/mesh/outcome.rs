//! What a run of a mesh has come to, as its entries say it.

use hotcell_graph::{Object as GraphObject, Value as GraphValue};
use hotcell_runtime::leafmesh::state::{ERRORS, OUTPUT, OUTPUTS};
use hotcell_runtime::{Entry, Fact};
use serde_json::{Value, json};

/// What a run has come to so far.
#[derive(Default)]
pub(super) struct Come {
    output: Option<Value>,
    outputs: GraphObject,
    errors: GraphObject,
    /// Why the run itself failed
    failure: Option<String>,
}

impl Come {
    /// Adds what an entry says.
    pub(super) fn add(&mut self, entry: &Entry) {
        match &entry.fact {
            // What agents do within is theirs.
            Fact::Completed(completed) if entry.place.around().is_none() => {
                for write in &completed.writes {
                    let merge = |into: &mut GraphObject| {
                        for (name, value) in write.value.as_object().into_iter().flat_map(|object| object.iter()) {
                            into.insert(name.clone(), value.clone());
                        }
                    };
                    match &*write.key {
                        OUTPUT => self.output = Some((&write.value).into()),
                        OUTPUTS => merge(&mut self.outputs),
                        ERRORS => merge(&mut self.errors),
                        _ => {}
                    }
                }
            }
            Fact::Ended { result: Err(error), .. } => self.failure = Some(error.clone()),
            _ => {}
        }
    }

    /// What the last agent gave.
    pub(super) fn output(&self) -> Option<&Value> {
        self.output.as_ref()
    }

    /// The reply to whoever called an entry point.
    pub(super) fn reply(&self, session: &str, run: &str, status: &str) -> Value {
        let mut errors: Vec<Value> = self
            .errors
            .iter()
            .map(|(agent, message)| json!({ "agent": &**agent, "message": Value::from(message) }))
            .collect();
        if let (true, Some(failure)) = (errors.is_empty(), &self.failure) {
            errors.push(json!({ "message": failure }));
        }
        json!({
            "session_id": session, "run_id": run, "status": status, "output": self.output,
            "outputs": Value::from(&GraphValue::Object(self.outputs.clone())), "errors": errors,
        })
    }
}
