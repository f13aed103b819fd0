//! An agent that is asked something in the protocol.

use std::sync::Arc;

use hotcell_runtime::{Agent, RunRecord};
use serde_json::Value;

use super::error::{A2aError, Kind};
use super::version::Version;
use crate::access::Asker;
use crate::problem::shown;
use crate::state::Server;

/// An agent that is asked something, and who asks.
pub(super) struct Asked {
    pub(super) server: Server,
    pub(super) caller: Asker,
    pub(super) version: Version,
    pub(super) agent: Arc<Agent>,
}

impl Asked {
    /// The run of this agent that a task is.
    pub(super) async fn run(&self, id: &str) -> Result<RunRecord, A2aError> {
        match self.server.runs().find(id).await {
            Ok(run) if run.header.source == self.agent.source() => Ok(run),
            Ok(_) => Err(no_task(id)),
            Err(problem) if problem.status == 404 => Err(no_task(id)),
            Err(problem) => Err(problem.into()),
        }
    }
}

/// Takes members that are null out of an object, apart from one of this name: in the JSON of the protocol, they say nothing.
pub(super) fn forget_nulls(value: &mut Value, but: &str) {
    if let Value::Object(members) = value {
        members.retain(|name, value| !value.is_null() || name == but);
    }
}

/// Reads the parameters of an operation.
pub(super) fn params<T: serde::de::DeserializeOwned>(mut params: Value) -> Result<T, A2aError> {
    forget_nulls(&mut params, "");
    serde_json::from_value(params).map_err(|error| A2aError::invalid(format!("the parameters cannot be used: {error}")))
}

fn no_task(id: &str) -> A2aError {
    A2aError::new(Kind::TaskNotFound, format!("there is no task `{}` of this agent", shown(id)))
}

/// Refuses a tenant of the protocol.
pub(super) fn no_tenant(tenant: &str) -> Result<(), A2aError> {
    match tenant {
        "" => Ok(()),
        _ => Err(A2aError::invalid("`tenant` is not supported")),
    }
}
