//! What a plugin declares. The macros fill these in at compile time; nobody writes them by hand.

use crate::connector::{ReceiveFunction, SendFunction};
use crate::node::NodeFunction;
use crate::schema::Schema;
use crate::{Error, Json, Outcome, Reply, Request, Verdict};

/// A whole plugin, as `plugin!` declares it.
///
/// Its functions do what the component does with each call, from JSON to JSON: tests of plugins call them.
#[derive(Clone, Copy)]
pub struct Plugin {
    /// Its name.
    pub name: &'static str,
    /// Its version, empty for none.
    pub version: &'static str,
    /// What it is for, empty for nothing.
    pub description: &'static str,
    /// Its tools.
    pub tools: &'static [Tool],
    /// Its node types.
    pub nodes: &'static [Node],
    /// Its hooks.
    pub hooks: &'static [Hook],
    /// What it does as a script.
    pub script: Option<fn() -> Result<Json, Error>>,
    /// What it connects to.
    pub connector: Option<Connector>,
    /// What it asks the operator for: a JSON object, or empty.
    pub capabilities: &'static str,
}

/// One tool.
#[derive(Clone, Copy)]
pub struct Tool {
    /// The name it is called by.
    pub name: &'static str,
    /// What it does.
    pub description: &'static str,
    /// Whether a call changes nothing anywhere.
    pub read_only: bool,
    /// The form of its arguments.
    pub parameters: &'static Schema,
    /// The form of its result.
    pub returns: &'static Schema,
    /// Calls it.
    pub call: fn(Json) -> Result<Json, Error>,
}

/// One node type.
#[derive(Clone, Copy)]
pub struct Node {
    /// The name of the type.
    pub name: &'static str,
    /// What it does.
    pub description: &'static str,
    /// The form of what the author writes on the node.
    pub fields: &'static Schema,
    /// The form of what flows in.
    pub inputs: &'static Schema,
    /// The form of what flows out.
    pub outputs: &'static Schema,
    /// The branches it may leave by.
    pub branches: &'static [&'static str],
    /// Runs it.
    pub run: NodeFunction,
}

/// One function at one or several points.
#[derive(Clone, Copy)]
pub struct Hook {
    /// The points.
    pub points: &'static [&'static str],
    /// What it does there.
    pub description: &'static str,
    /// Tells it of an event.
    pub on: fn(&str, Json) -> Result<Verdict, Error>,
}

/// A connection to another system.
#[derive(Clone, Copy)]
pub struct Connector {
    /// What it connects to.
    pub description: &'static str,
    /// `sync`, `callback` or both.
    pub modes: &'static [&'static str],
    /// The form of its settings.
    pub config: &'static Schema,
    /// Hands a request over.
    pub send: SendFunction,
    /// Reads what came by the callback.
    pub receive: Option<ReceiveFunction>,
}

impl Plugin {
    /// The description as JSON text, the same that stands in the component.
    pub fn description(&self) -> String {
        String::from_utf8_lossy(&crate::render::rendered(self)).into_owned()
    }

    /// Calls the tool called `name`.
    ///
    /// # Errors
    /// `invalid-input` where there is no such tool or the arguments do not fit; what the tool itself fails with.
    pub fn call_tool(&self, name: &str, arguments: Json) -> Result<Json, Error> {
        match self.tools.iter().find(|tool| tool.name == name) {
            Some(tool) => (tool.call)(arguments),
            None => Err(unknown("tool", name, self.tools.iter().map(|tool| tool.name))),
        }
    }

    /// Runs the script.
    ///
    /// # Errors
    /// `other` where the plugin has none; what the script fails with.
    pub fn run_script(&self) -> Result<Json, Error> {
        self.script.map_or_else(|| Err(Error::other("this plugin has no script")), |run| run())
    }

    /// Runs the node type called `name`.
    ///
    /// # Errors
    /// `invalid-input` where there is no such type or something does not fit it; what the type itself fails with;
    /// `other` where it leaves by a branch that it did not declare.
    pub fn run_node(&self, name: &str, fields: Json, inputs: Json) -> Result<Outcome<Json>, Error> {
        match self.nodes.iter().find(|node| node.name == name) {
            Some(node) => crate::node::run(node, fields, inputs),
            None => Err(unknown("node type", name, self.nodes.iter().map(|node| node.name))),
        }
    }

    /// Tells the hook for `point` of an event; without such a hook it goes on.
    ///
    /// # Errors
    /// What the hook fails with; `invalid-input` where the event does not fit its parameter.
    pub fn on(&self, point: &str, event: Json) -> Result<Verdict, Error> {
        match self.hooks.iter().find(|hook| hook.points.contains(&point)) {
            Some(hook) => (hook.on)(point, event),
            None => Ok(Verdict::Proceed),
        }
    }

    /// Hands a request to the other system.
    ///
    /// # Errors
    /// `other` where the plugin has no connector; what the connector fails with.
    pub fn send(&self, request: Request<Json, Json>) -> Result<Reply<Json>, Error> {
        match self.connector {
            Some(connector) => (connector.send)(request),
            None => Err(Error::other("this plugin has no connector")),
        }
    }

    /// Reads what came by the callback.
    ///
    /// # Errors
    /// `other` where the plugin has no connector with the mode `callback`; what its function fails with.
    pub fn receive(&self, request: Request<Json, Json>, body: Json) -> Result<Json, Error> {
        match self.connector.and_then(|connector| connector.receive) {
            Some(receive) => receive(request, body),
            None => Err(Error::other("this plugin takes nothing by a callback")),
        }
    }

    /// Fails the build where two tools, node types or hooks would answer to the same name.
    pub const fn check(&self) {
        let mut first = 0;
        while first < self.tools.len() {
            let mut second = first + 1;
            while second < self.tools.len() {
                let same = self.tools[first].name.eq_ignore_ascii_case(self.tools[second].name);
                assert!(!same, "two tools of this plugin have the same name; names differ in more than their case");
                second += 1;
            }
            first += 1;
        }
        let mut first = 0;
        while first < self.nodes.len() {
            let mut second = first + 1;
            while second < self.nodes.len() {
                let same = self.nodes[first].name.eq_ignore_ascii_case(self.nodes[second].name);
                assert!(
                    !same,
                    "two node types of this plugin have the same name; names differ in more than their case"
                );
                second += 1;
            }
            first += 1;
        }
        let mut first = 0;
        while first < self.hooks.len() {
            let mut second = first + 1;
            while second < self.hooks.len() {
                let shared = share_a_point(self.hooks[first].points, self.hooks[second].points);
                assert!(!shared, "two hooks of this plugin are for the same point; make them one function");
                second += 1;
            }
            first += 1;
        }
    }
}

fn unknown(what: &str, name: &str, known: impl Iterator<Item = &'static str>) -> Error {
    Error::invalid_input(format!("there is no {what} `{name}` here; known: {}", crate::schema::listed(known)))
}

const fn share_a_point(left: &[&str], right: &[&str]) -> bool {
    let mut first = 0;
    while first < left.len() {
        let mut second = 0;
        while second < right.len() {
            if left[first].eq_ignore_ascii_case(right[second]) {
                return true;
            }
            second += 1;
        }
        first += 1;
    }
    false
}

/// What `#[tool]` makes of a function.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    note = "put `#[tool]` on the function and name it in `plugin! {{ tools: [...] }}`"
)]
pub trait DeclaresTool {
    /// The tool.
    const TOOL: Tool;
}

/// What `#[node]` makes of a function.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a node type",
    note = "put `#[node]` on the function and name it in `plugin! {{ nodes: [...] }}`"
)]
pub trait DeclaresNode {
    /// The node type.
    const NODE: Node;
}

/// What `#[hook]` makes of a function.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a hook",
    note = "put `#[hook(\"POINT\")]` on the function and name it in `plugin! {{ hooks: [...] }}`"
)]
pub trait DeclaresHook {
    /// The hook.
    const HOOK: Hook;
}

/// What `#[connector]` makes of a function.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a connector",
    note = "put `#[connector(modes = [...])]` on the function and name it in `plugin! {{ connector: ... }}`"
)]
pub trait DeclaresConnector {
    /// The connector.
    const CONNECTOR: Connector;
}

/// What `#[script]` makes of a function.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a script",
    note = "put `#[script]` on the function and name it in `plugin! {{ script: ... }}`"
)]
pub trait DeclaresScript {
    /// Runs the script on the state of the graph.
    const RUN: fn() -> Result<Json, Error>;
}
