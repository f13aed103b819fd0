//! What graphs are run with in tests: people and tools that are scripted, and nobody behind everything else.

use std::sync::Arc;

use async_trait::async_trait;
use hotcell_engine::{CallReport, Nobody, People, Ports, ScriptCall, Scripts, SystemClock, Tally, Tools};
use hotcell_models::Model;

/// The scripts of graphs that have none.
struct NoScripts;

#[async_trait]
impl Scripts for NoScripts {
    async fn run(&self, call: ScriptCall) -> CallReport {
        CallReport::failed(format!("there is no script `{}`", call.file))
    }
}

/// The ports of a run whose people and tools are on this stage.
pub(crate) fn ports<S: People + Tools + 'static>(stage: &Arc<S>, model: Arc<dyn Model>) -> Ports {
    let nobody = Arc::new(Nobody);
    Ports {
        scripts: Arc::new(NoScripts),
        tools: stage.clone(),
        people: stage.clone(),
        model,
        default_model: None,
        prices: Arc::default(),
        observer: nobody.clone(),
        hooks: nobody.clone(),
        plugin_nodes: nobody.clone(),
        knowledge: nobody.clone(),
        agents: nobody.clone(),
        web: nobody,
        clock: Arc::new(SystemClock::default()),
        meter: Arc::new(Tally::default()),
    }
}
