//! Node types and connectors of plugins as the engine and front ends see them.

use std::sync::Arc;

use async_trait::async_trait;
use hotcell_budget::Account;
use hotcell_cells::{CellError, ConnectorCall, ConnectorMode, ConnectorReply, NodeCall, Report};
use hotcell_dialects::{CALLBACK, ComponentState, ComponentType, DeclaredNode, PluginNodeState, SYNC};
use hotcell_engine::{CallError, PluginNodeAnswer, PluginNodeCall, PluginNodeReport, PluginNodes};
use hotcell_graph::Value;
use hotcell_graph::ir::PluginNodeKind;

use crate::plugin_registry::{
    CALLBACK_URL, FoundPluginNode, NoPluginNode, PluginNode, PluginRegistry, RegisteredPlugin,
};
use crate::scripts::StateOfRun;
use crate::settle::into_report;
use crate::tools::AgentTools;

/// What a front end is told of a plugin node.
pub(crate) fn state(registry: &PluginRegistry, name: &str) -> PluginNodeState {
    match registry.plugin_node(name) {
        Ok(FoundPluginNode { plugin_node, .. }) => PluginNodeState::Usable(match plugin_node {
            PluginNode::Node(node) => DeclaredNode {
                kind: PluginNodeKind::Node,
                with: Value::from(&node.fields),
                inputs: Value::from(&node.inputs),
                branches: node.branches.clone(),
                modes: Vec::new(),
            },
            PluginNode::Tool(tool) => DeclaredNode {
                kind: PluginNodeKind::Tool,
                with: nothing(),
                inputs: Value::from(&tool.parameters),
                branches: Vec::new(),
                modes: Vec::new(),
            },
            PluginNode::Connector(connector) => DeclaredNode {
                kind: PluginNodeKind::Connector,
                with: Value::from(&connector.config),
                inputs: Value::Object(Default::default()),
                branches: Vec::new(),
                modes: connector.modes.iter().map(|mode| mode_name(*mode)).collect(),
            },
        }),
        Err(NoPluginNode::Missing(near)) => PluginNodeState::Missing(near),
        Err(NoPluginNode::Held(reason)) => PluginNodeState::Unusable(reason),
    }
}

/// What a front end is told of a component type that a plugin provides.
pub(crate) fn component(registry: &PluginRegistry, plugin: &str, component_type: &str) -> ComponentState {
    match registry.plugin_node(&format!("{plugin}/{component_type}")) {
        Ok(FoundPluginNode { plugin_node, registered }) => {
            let version = registered.plugin.description.metadata.get("version").and_then(|version| version.as_str());
            let version = version.unwrap_or_default().to_owned();
            match plugin_node {
                PluginNode::Node(node) => ComponentState::Usable(Box::new(ComponentType {
                    kind: PluginNodeKind::Node,
                    version,
                    fields: Value::from(&node.fields),
                    inputs: Value::from(&node.inputs),
                    outputs: Value::from(&node.outputs),
                    branches: node.branches.clone(),
                })),
                PluginNode::Tool(tool) => ComponentState::Usable(Box::new(ComponentType {
                    kind: PluginNodeKind::Tool,
                    version,
                    fields: nothing(),
                    inputs: Value::from(&tool.parameters),
                    outputs: Value::Object(Default::default()),
                    branches: Vec::new(),
                })),
                PluginNode::Connector(_) => ComponentState::Missing(None),
            }
        }
        Err(NoPluginNode::Held(reason)) => ComponentState::Unusable(reason),
        Err(NoPluginNode::Missing(near)) => {
            let provides = |registered: &&RegisteredPlugin| {
                let description = &registered.plugin.description;
                let node = description.nodes.iter().any(|node| node.node_type == component_type);
                node || description.tools.iter().any(|tool| tool.name == component_type)
            };
            let other = registry.plugins().find(|(_, registered)| provides(registered));
            match other {
                Some((name, _)) => ComponentState::WrongPlugin(name.to_owned()),
                None => {
                    let near = near.as_deref().and_then(|near| near.rsplit_once('/')).map(|(_, own)| own.to_owned());
                    ComponentState::Missing(near.filter(|near| near != component_type))
                }
            }
        }
    }
}

fn mode_name(mode: ConnectorMode) -> &'static str {
    match mode {
        ConnectorMode::Sync => SYNC,
        ConnectorMode::Callback => CALLBACK,
    }
}

/// A schema that nothing fits but the empty object.
fn nothing() -> Value {
    Value::from(&serde_json::json!({ "type": "object", "additionalProperties": false }))
}

#[async_trait]
impl PluginNodes for AgentTools {
    async fn take(&self, call: PluginNodeCall<'_>) -> PluginNodeReport {
        let failed =
            |reason: String| PluginNodeReport { result: Err(CallError::Failed(reason)), account: Account::default() };
        let found = match self.registry().plugin_node(call.plugin_node) {
            Ok(found) => found,
            Err(NoPluginNode::Missing(_)) => return failed(format!("there is no `{}`", call.plugin_node)),
            Err(NoPluginNode::Held(reason)) => return failed(reason),
        };
        let plugin = found.registered.plugin.description.name.clone();
        let told = (&call.hooks, &call.site);
        let (cell, terms) = match self.prepare(found.registered, 0, &call.budget_scope, told) {
            Ok(prepared) => prepared,
            Err(error) => return failed(error.to_string()),
        };
        let (caller, granted) = (found.registered.caller(), terms.grants.clone());
        let cells = self.registry().cells();
        let (with, inputs) = (call.with.to_owned(), call.inputs.to_owned());
        match found.plugin_node {
            PluginNode::Node(node) => {
                let state = Arc::new(StateOfRun(call.state.clone()));
                let node_type = node.node_type.clone();
                let answers = call.answers.to_vec();
                let call_of_node = NodeCall { node_type, fields: with, inputs, state, answers, terms };
                let report = cells.run_node(&cell, call_of_node).await;
                self.registry().permissions().tell_denials(caller, &granted, &report, &call.site);
                let branch = report.result.as_ref().ok().and_then(|outcome| outcome.branch.clone());
                answer(&plugin, report.map(|outcome| outcome.outputs), branch, &call)
            }
            PluginNode::Connector(_) => {
                let body = call.callback.and_then(|callback| callback.body).map(str::to_owned);
                let url = self.registry().callback_url();
                if call.callback.is_some() && body.is_none() && url.is_none() {
                    return failed(format!(
                        "nobody has said where its answer can be sent; set `{CALLBACK_URL}` to the address at which \
                         `hotcell runs listen` is reached"
                    ));
                }
                let callback =
                    call.callback.map(|callback| (url.unwrap_or_default().to_owned(), callback.session.to_owned()));
                let waits = callback.is_some() && body.is_none();
                let request = ConnectorCall { input: inputs, config: with, callback, body, terms };
                let mut report = cells.call_connector(&cell, request).await;
                self.registry().permissions().tell_denials(caller, &granted, &report, &call.site);
                let accepted = matches!(report.result, Ok(ConnectorReply::Accepted));
                if accepted && !waits {
                    let message = "it took the request and answers later, and nothing waits for that here; write `mode: callback` \
                                   on the node to have the run wait";
                    report.result = Err(CellError::WrongKind { message: message.to_owned() });
                }
                let text = |reply| match reply {
                    ConnectorReply::Done(text) => text,
                    ConnectorReply::Accepted => String::new(),
                };
                let mut report = answer(&plugin, report.map(text), None, &call);
                if accepted && waits {
                    report.result = Ok(PluginNodeAnswer::Accepted);
                }
                report
            }
            PluginNode::Tool(_) => failed(format!("`{}` is a tool, which is called as one", call.plugin_node)),
        }
    }
}

fn answer(plugin: &str, report: Report<String>, branch: Option<String>, call: &PluginNodeCall<'_>) -> PluginNodeReport {
    let report = into_report(plugin, report, &call.budget_scope, &call.site);
    PluginNodeReport {
        result: report.result.map(|outputs| PluginNodeAnswer::RunInput { outputs, branch }),
        account: report.account,
    }
}
