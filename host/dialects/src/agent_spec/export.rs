//! From a graph of any language to a configuration, as far as the specification can say what the graph does.
//!
//! The state of a graph becomes data edges: a node that reads a key is fed by all nodes that write it, of which the one that
//! ran last wins, as it does in the state. A conversation is no such key. A graph that is one model in a conversation is an
//! agent; elsewhere the first and the last message and the last reply are, which flow like other values.

mod agent;
mod branches;
mod flow;
mod nodes;
mod prompt;
mod slots;
mod text_loop;
mod tools;
mod values;
mod writes;

use std::collections::{BTreeSet, HashMap, VecDeque};

use hotcell_graph::ir::{Action, CallTarget, Expression, Graph, Join, Next, Node, NodeIndex, OnFailure, Sharing};
use hotcell_graph::{Key, Value};
use serde_json::{Value as Json, json};

use self::slots::{Read, Slot};
use super::generated::NEXT;
use super::versions::Version;

pub use tools::{DescribedTool, Found};

/// A graph as a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// The JSON text of a configuration of 25.4.1
    pub text: String,
    /// Where it behaves in another way than the graph: each a sentence
    pub differences: Vec<String>,
}

/// The flow or the agent that does what a graph does. What is a matter of whoever runs it (limits, repeated requests) and
/// what only shows in special cases is left out of it and told as a difference. `tools` describes the tool of a name.
///
/// # Errors
/// What the specification cannot express: each a sentence that names the node and what it does.
pub fn export(graph: &Graph, tools: &dyn Fn(&str) -> Option<DescribedTool>) -> Result<Exported, Vec<String>> {
    let mut exporter = Exporter::new(graph);
    let made = match agent::shape(graph) {
        Some(shape) => exporter.agent(&shape, tools),
        None => exporter.flow(),
    };
    if !exporter.problems.is_empty() {
        return Err(exporter.problems);
    }
    // A JSON value has only text keys and finite numbers, so writing it cannot fail.
    let text = serde_json::to_string_pretty(&made).expect("a JSON value can always be written") + "\n";
    Ok(Exported { text, differences: exporter.differences })
}

/// The output by which a flow gives the result of a graph.
const RESULT: &str = "result";

struct Exporter<'g> {
    graph: &'g Graph,
    /// What the graph becomes
    made: &'static str,
    problems: Vec<String>,
    differences: Vec<String>,
    ids: BTreeSet<String>,
    start: String,
    nodes: Vec<Json>,
    /// From which branch of which node to which
    control: Vec<(String, Option<String>, Target)>,
    /// The nodes of the flow where nodes of the graph begin that are not called as these are
    entries: HashMap<Key, String>,
    /// The nodes that write something, and the output by which they do
    writers: HashMap<Slot, Vec<(String, String)>>,
    readers: Vec<Read>,
    models: Vec<(Json, String)>,
}

/// Where an edge of the flow leads.
#[derive(Clone)]
enum Target {
    /// To a node of the graph
    Node(NodeIndex),
    /// To a node that only the flow has
    Made(String),
}

impl<'g> Exporter<'g> {
    fn new(graph: &'g Graph) -> Self {
        let mut exporter = Exporter {
            graph,
            made: "a flow",
            problems: Vec::new(),
            differences: Vec::new(),
            ids: graph.nodes().map(|(_, node)| node.id.to_string()).collect(),
            start: String::new(),
            nodes: Vec::new(),
            control: Vec::new(),
            entries: HashMap::new(),
            writers: HashMap::new(),
            readers: Vec::new(),
            models: Vec::new(),
        };
        exporter.start = exporter.fresh("start");
        exporter
    }

    /// An id that nothing has yet.
    fn fresh(&mut self, wanted: &str) -> String {
        let id = free(wanted, |id| self.ids.contains(id));
        self.ids.insert(id.clone());
        id
    }

    fn problem(&mut self, node: &Node, what: impl AsRef<str>) {
        self.problems.push(format!("{} {}", named(node), what.as_ref()));
    }

    fn difference(&mut self, node: &Node, what: &str) {
        self.differences.push(format!("{} {what}", named(node)));
    }

    /// What belongs to the graph and to none of its nodes.
    fn whole(&mut self) {
        let (graph, made) = (self.graph, self.made);
        if graph.scheduling.sharing == Sharing::Shared {
            let problem =
                format!("all nodes of the graph share one state while they run side by side, which {made} cannot");
            self.problems.push(problem);
        }
        let limits = &graph.limits;
        if limits.visits_per_node.is_some() || limits.rounds.is_some() || limits.wall_clock.is_some() {
            let limits = format!("the limits of the graph are left out: {made} has none of its own");
            self.differences.push(limits);
        }
        if graph.input_schema.is_some() {
            self.problems.push(format!("the graph checks what it is given by a schema, which {made} does not"));
        }
        if graph.skills.is_some() {
            self.problems.push("the graph has skills, which the specification does not know".to_owned());
        }
        let begins_with = |(key, value): &(Key, Value)| Some(key) == graph.conversation.as_ref() && !is_empty(value);
        if graph.initial_state.iter().any(begins_with) {
            self.problems.push(format!("the graph begins with messages, and {made} begins with none of its own"));
        }
    }

    /// The component that the whole graph becomes.
    fn root(&mut self, component_type: &str, fields: Json) -> Json {
        let name = self.graph.name.clone();
        let id = self.fresh(if name.is_empty() { "graph" } else { &name });
        let mut root = component(component_type, &id, json!({"description": self.graph.description}));
        if let (Json::Object(root), Json::Object(fields)) = (&mut root, fields) {
            root.extend(fields);
            root.insert("name".to_owned(), Json::from(if name.is_empty() { id } else { name }));
            root.insert("agentspec_version".to_owned(), Json::from(Version::V25_4_1.name()));
        }
        root
    }

    /// Makes the nodes of the flow, from the first one on.
    fn graph_nodes(&mut self) {
        let mut seen = BTreeSet::new();
        let mut open = VecDeque::from([self.graph.start]);
        while let Some(index) = open.pop_front() {
            if !seen.insert(index) {
                continue;
            }
            self.node(self.graph.node(index));
            open.extend(self.graph.successors(index));
        }
    }

    /// What every kind of node may have.
    fn common(&mut self, node: &Node) {
        match node.on_failure {
            OnFailure::Fail => {}
            OnFailure::Continue => {
                let ends = format!("goes on without its result when it fails, and {} ends there", self.made);
                self.difference(node, &ends);
            }
            OnFailure::EndBranch => {
                self.problem(node, format!("ends its branch alone when it fails, and {} ends there", self.made));
            }
            OnFailure::To(_) => {
                self.problem(node, format!("goes to another node when it fails, and {} ends there", self.made));
            }
        }
        if node.join != Join::All {
            self.problem(node, format!("says what it waits for, which {} does not", self.made));
        }
        if node.retry.is_some() {
            self.problem(node, format!("is tried again when it fails, which {} does not have", self.made));
        }
        // Also where nobody wrote it: some languages have one for every node.
        if let Some(limit) = node.timeout {
            let ended = format!("is ended after {} s here, and {} has no timeouts", limit.as_secs_f64(), self.made);
            self.difference(node, &ended);
        }
    }

    fn node(&mut self, node: &'g Node) {
        self.common(node);
        let exit = match &node.action {
            Action::Pass if node.updates.is_empty() => return self.passage(node),
            Action::Pass => self.set(node),
            Action::Spread(spread) => self.spread(node, spread),
            Action::End { output } => return self.end(node, output),
            Action::Call(call) if matches!(call.target, CallTarget::Loop(_)) => self.call(node, call),
            Action::Converse(converse) => self.converse(node, converse),
            Action::Ask(ask) => self.ask(node, ask),
            Action::PluginNode(plugin_node) => self.plugin_node(node, plugin_node),
            Action::Map(map) => match map.of_node() {
                Some(items) => self.map(node, items),
                None => {
                    self.problem(node, inexpressible(&node.action));
                    node.id.to_string()
                }
            },
            other => {
                let reason = inexpressible(other);
                self.problem(node, reason);
                node.id.to_string()
            }
        };
        match &node.next {
            Next::ByAnswer { routes, otherwise } => self.by_answer(node, &exit, routes, *otherwise),
            next => {
                if let Some(target) = self.way(node, next) {
                    self.control.push((exit, None, target));
                }
            }
        }
    }

    /// A node that does nothing: where it leads is where it begins.
    fn passage(&mut self, node: &'g Node) {
        if let Some(Target::Made(id)) = self.way(node, &node.next) {
            self.entries.insert(node.id.clone(), id);
        }
    }

    fn end(&mut self, node: &'g Node, output: &Expression) {
        if !node.updates.is_empty() {
            let id = self.fresh(&format!("{}_writes", node.id));
            self.update(node, &id);
            self.control.push((id.clone(), None, Target::Made(node.id.to_string())));
            self.entries.insert(node.id.clone(), id);
        }
        let property = self.result(node, output);
        let outputs = json!([property]);
        self.nodes.push(component(
            "EndNode",
            &node.id,
            json!({
                "inputs": outputs, "outputs": outputs, "branches": [], "branch_name": NEXT,
            }),
        ));
    }
}

/// Why an action has no node in a flow.
fn inexpressible(action: &Action) -> String {
    match action {
        Action::Call(call) if matches!(call.target, CallTarget::Agent { .. }) => {
            "calls an agent that is in another file"
        }
        Action::Script(_) => "runs a script, and a configuration contains no code",
        Action::AnswerCalls(_) => "answers the calls of a model, which in the specification only agents do",
        Action::LookUp(_) => "looks something up in documents, for which the specification has no node",
        Action::LoadSkills(_) => "loads skills, which the specification does not know",
        Action::Fail(reason) => return format!("can only fail: {reason}"),
        Action::Absent => "is named by other nodes and does not exist",
        _ => "is of a configuration already, which is written as it was read",
    }
    .to_owned()
}

/// A node as messages call it: one that nobody wrote is called by the one that implies it.
fn named(node: &Node) -> String {
    match &node.implied_by {
        Some(id) if *id == node.id => format!("the node `{id}`, which is implied,"),
        Some(id) => format!("the node `{id}` (`{}`)", node.kind),
        None => format!("the node `{}` (`{}`)", node.id, node.kind),
    }
}

/// A title for a key: others than letters, digits and `_` are not allowed everywhere.
fn title(key: &str) -> String {
    key.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect()
}

/// The wanted name, or it with the first number with which it is not taken.
fn free(wanted: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let numbered = (2..).map(|number: u32| format!("{wanted}_{number}"));
    std::iter::once(wanted.to_owned()).chain(numbered).find(|name| !is_taken(name)).unwrap_or_default()
}

fn is_empty(value: &Value) -> bool {
    value.as_list().is_some_and(|list| list.is_empty())
}

fn component(component_type: &str, id: &str, fields: Json) -> Json {
    let mut component = json!({"component_type": component_type, "id": id, "name": id});
    if let (Json::Object(component), Json::Object(fields)) = (&mut component, fields) {
        component.extend(fields);
    }
    component
}

fn reference(id: &str) -> Json {
    json!({"$component_ref": id})
}

fn control_edge(from: &str, branch: Option<&str>, to: &str) -> Json {
    let id = format!("{from}[{}]->{to}", branch.unwrap_or(NEXT));
    let fields = json!({"from_node": reference(from), "from_branch": branch, "to_node": reference(to)});
    component("ControlFlowEdge", &id, fields)
}

fn data_edge(source: &str, output: &str, destination: &str, input: &str) -> Json {
    let fields = json!({
        "source_node": reference(source), "source_output": output,
        "destination_node": reference(destination), "destination_input": input,
    });
    component("DataFlowEdge", &format!("{source}.{output}->{destination}.{input}"), fields)
}
