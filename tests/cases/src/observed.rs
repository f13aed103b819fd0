//! What a case did, in a form that belongs to no dialect: the input of the check.

use hotcell_graph::Value;
use hotcell_loopback::{Loopback, ModelRequest, RequestMessage, WebRequest};
use hotcell_runtime::ClientCall;

use crate::case_file::Status;

/// Everything that was observed of one case.
#[derive(Clone, Debug)]
pub struct Observed {
    /// How it ended
    pub status: Status,
    /// The error it ended with
    pub error: Option<String>,
    /// The warnings of loading, one a line
    pub warnings: String,
    /// The dialect's own word for how it ended
    pub detail: Option<String>,
    /// How each node ended that ran: `success`, `failed`, `timeout`, `paused`
    pub nodes: Vec<(String, String)>,
    /// The final reply
    pub output: Option<String>,
    /// The state at the end, an object; empty where nothing ran
    pub state: Value,
    /// Ids of the nodes that ran, in order
    pub visited: Vec<String>,
    /// Every pause, in order
    pub interrupts: Vec<Pause>,
    /// The calls that reached a tool
    pub tool_calls: Vec<ToolInvocation>,
    /// What the model was asked
    pub exchange: ModelExchange,
    /// How many connections the canary saw
    pub canary_connections: usize,
    /// What there is beside, where the case is one of the dialect `agent-spec`
    pub flow: Option<FlowObserved>,
}

/// What a flow or an agent left.
#[derive(Clone, Debug, Default)]
pub struct FlowObserved {
    /// The values of its outputs
    pub outputs: Value,
    /// The branch by which it ended
    pub branch: Option<String>,
    /// The messages of its conversation
    pub messages: Vec<RequestMessage>,
    /// What the web server was asked
    pub web: Vec<WebRequest>,
    /// Requests that no entry of the case answers
    pub unanswered: Vec<WebRequest>,
}

/// What the scripted model server saw.
#[derive(Clone, Debug, Default)]
pub struct ModelExchange {
    /// Every request, in the order of arrival
    pub requests: Vec<ModelRequest>,
    /// Requests for which no reply was left
    pub unexpected: Vec<ModelRequest>,
    /// Replies that nobody asked for
    pub unserved: Vec<serde_json::Value>,
    /// What went wrong with the exchange itself
    pub problems: Vec<String>,
}

impl ModelExchange {
    /// What the server saw until now.
    pub(crate) fn of(model: &Loopback) -> Self {
        ModelExchange {
            requests: model.requests(),
            unexpected: model.unexpected(),
            unserved: model.unserved(),
            problems: model.problems(),
        }
    }
}

/// A question to the human.
#[derive(Clone, Debug, PartialEq)]
pub struct Pause {
    /// The node that asks
    pub node: String,
    /// What the human is shown
    pub value: String,
    /// The answers that are offered
    pub options: Vec<String>,
    /// The call of a client tool that is asked for
    pub call: Option<ClientCall>,
}

/// A call that reached a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolInvocation {
    /// The tool
    pub name: String,
    /// Its arguments, an object
    pub arguments: Value,
}
