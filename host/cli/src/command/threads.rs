//! The threads in which the work of a command goes on.

use tokio::runtime::{Builder, Runtime};

use crate::exit::Failure;

/// One thread for each core, and time and networks with them.
pub(super) fn start() -> Result<Runtime, Failure> {
    let runtime = Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|error| Failure::failed(format!("threads cannot be started: {error}")))
}
