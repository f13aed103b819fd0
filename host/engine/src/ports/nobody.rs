//! Whoever has nothing to offer.

use std::sync::Arc;

use async_trait::async_trait;
use hotcell_budget::{Account, BudgetScope};
use hotcell_graph::Object;
use hotcell_journal::Question;

use super::{
    Agents, CallError, Callee, Found, Knowledge, Lookup, People, PluginNodeCall, PluginNodeReport, PluginNodes,
    PortError, Web, WebCall, WebReport,
};
use crate::call_site::CallSite;
use crate::event::{Event, Observer};
use crate::hook::{HookPoint, HookVerdict, Hooks};

/// Nobody is there.
pub struct Nobody;

#[async_trait]
impl People for Nobody {
    async fn ask(&self, _question: &Question) -> Option<String> {
        None
    }
}

#[async_trait]
impl Hooks for Nobody {
    fn listens(&self, _: HookPoint) -> bool {
        false
    }

    async fn tell(&self, _: HookPoint, _: Object, _: &Arc<BudgetScope>, _: &CallSite) -> (HookVerdict, Account) {
        (HookVerdict::Proceed, Account::default())
    }
}

#[async_trait]
impl PluginNodes for Nobody {
    async fn take(&self, call: PluginNodeCall<'_>) -> PluginNodeReport {
        let error = CallError::Failed(format!("there is no `{}`", call.plugin_node));
        PluginNodeReport { result: Err(error), account: Account::default() }
    }
}

impl Agents for Nobody {
    fn find(&self, _name: &str) -> Result<Callee, PortError> {
        Err(PortError::new("it is not there"))
    }
}

#[async_trait]
impl Knowledge for Nobody {
    async fn look_up(&self, lookup: Lookup<'_>) -> Result<Found, PortError> {
        Err(PortError::new(format!("there is no knowledge base `{}`", lookup.base)))
    }
}

#[async_trait]
impl Web for Nobody {
    async fn send(&self, call: WebCall, _purse: Arc<BudgetScope>) -> WebReport {
        let error = PortError::new(format!("`{}` cannot be reached from here", call.url));
        WebReport { result: Err(error.into()), account: Account::default() }
    }
}

impl Observer for Nobody {
    fn event(&self, _event: &Event<'_>) {}
}
