//! From a graph of any language to a configuration, as far as the specification can say what the graph does.
//!
//! The state of a graph becomes data edges: a node that reads a key is fed by all nodes that write it, of which the one that
//! ran last wins, as it does in the state.

mod flow;
mod nodes;

use std::collections::{BTreeSet, HashMap, VecDeque};

use hotcell_graph::ir::{Action, Expression, Graph, Next, Node, NodeIndex, OnFailure};
use hotcell_graph::{Key, Template};
use serde_json::{Map, Value as Json, json};

use super::generated::{DEFAULT, NEXT};
use super::placeholders;

/// A graph as a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// The JSON text of a configuration of 25.4.1
    pub text: String,
    /// Where the flow behaves in another way than the graph: each a sentence
    pub differences: Vec<String>,
}

/// The flow that does what a graph does. What is a matter of whoever runs a flow (limits, repeated requests) and what only
/// shows in special cases is left out of it and told as a difference.
///
/// # Errors
/// What the specification cannot express: each a sentence that names the node and what it does.
pub fn export(graph: &Graph) -> Result<Exported, Vec<String>> {
    let mut exporter = Exporter::new(graph);
    exporter.graph();
    if exporter.problems.is_empty() {
        let flow = exporter.flow();
        if exporter.problems.is_empty() {
            // A JSON value has only text keys and finite numbers, so writing it cannot fail.
            let text = serde_json::to_string_pretty(&flow).expect("a JSON value can always be written") + "\n";
            return Ok(Exported { text, differences: exporter.differences });
        }
    }
    Err(exporter.problems)
}

/// The output by which a flow gives the result of a graph.
const RESULT: &str = "result";

struct Exporter<'g> {
    graph: &'g Graph,
    problems: Vec<String>,
    differences: Vec<String>,
    ids: BTreeSet<String>,
    start: String,
    nodes: Vec<Json>,
    /// From which branch of which node to which
    control: Vec<(String, Option<String>, NodeIndex)>,
    /// The nodes that write a key, and the output by which they do
    writers: HashMap<Key, Vec<(String, String)>>,
    /// Which input of which node reads which key
    readers: Vec<(String, String, Key)>,
    models: Vec<(Json, String)>,
}

impl<'g> Exporter<'g> {
    fn new(graph: &'g Graph) -> Self {
        let mut exporter = Exporter {
            graph,
            problems: Vec::new(),
            differences: Vec::new(),
            ids: graph.nodes().map(|(_, node)| node.id.to_string()).collect(),
            start: String::new(),
            nodes: Vec::new(),
            control: Vec::new(),
            writers: HashMap::new(),
            readers: Vec::new(),
            models: Vec::new(),
        };
        exporter.start = exporter.fresh("start");
        exporter
    }

    /// An id that nothing has yet.
    fn fresh(&mut self, wanted: &str) -> String {
        let mut id = wanted.to_owned();
        let mut number = 1;
        while !self.ids.insert(id.clone()) {
            number += 1;
            id = format!("{wanted}_{number}");
        }
        id
    }

    fn problem(&mut self, node: &Node, what: impl AsRef<str>) {
        self.problems.push(format!("{} {}", named(node), what.as_ref()));
    }

    fn difference(&mut self, node: &Node, what: &str) {
        self.differences.push(format!("{} {what}", named(node)));
    }

    fn graph(&mut self) {
        let limits = &self.graph.limits;
        if limits.visits_per_node.is_some() || limits.rounds.is_some() || limits.wall_clock.is_some() {
            let limits = "the graph limits its runs, and the limits of a flow are those of whoever runs it";
            self.differences.push(limits.to_owned());
        }
        if self.graph.conversation.is_some() {
            self.problems.push("the graph keeps a conversation in its state, which a flow does not have".to_owned());
        }
        if self.graph.skills.is_some() {
            self.problems.push("the graph has skills, which the specification does not know".to_owned());
        }
        let mut seen = BTreeSet::new();
        let mut open = VecDeque::from([self.graph.start]);
        while let Some(index) = open.pop_front() {
            if !seen.insert(index) {
                continue;
            }
            let node = self.graph.node(index);
            self.node(node);
            open.extend(self.graph.successors(index));
        }
    }

    fn node(&mut self, node: &'g Node) {
        match node.on_failure {
            OnFailure::Fail => {}
            OnFailure::Continue => {
                self.difference(node, "goes on without its result when it fails, and the flow ends there")
            }
            OnFailure::To(_) => self.problem(node, "goes to another node when it fails, and a flow ends there"),
        }
        if node.timeout.is_some() {
            self.problem(node, "has a timeout, which nodes of a flow do not have");
        }
        match &node.action {
            Action::Pass if node.updates.is_empty() => {}
            Action::Pass => self.problem(node, "writes values by itself, for which there is no node"),
            Action::End { output } => self.end(node, output),
            Action::Model(model) => self.model(node, model),
            Action::Ask(ask) => self.ask(node, ask),
            Action::Offer(offer) => self.offer(node, offer),
            Action::Map(map) => self.map(node, map),
            Action::Agent(_) => self.problem(node, "calls an agent that is in another file"),
            Action::Script(_) => self.problem(node, "runs a script, and a configuration holds no code"),
            Action::Converse(_) => {
                self.problem(node, "asks a model about a conversation, and an LlmNode sends one prompt only")
            }
            Action::AnswerCalls(_) => {
                self.problem(node, "answers the calls of a model, which in the specification only agents do")
            }
            Action::Spread(_) => self.problem(node, "computes what it writes, and a configuration holds no code"),
            Action::LookUp(_) => self.problem(node, "looks something up in documents, for which there is no node"),
            Action::LoadSkills(_) => self.problem(node, "loads skills, which the specification does not know"),
            Action::Fail(reason) => self.problem(node, format!("can only fail: {reason}")),
            Action::Absent => self.problem(node, "is named by other nodes and does not exist"),
            Action::Call(_) | Action::CallEach(_) | Action::Tool(_) => {
                self.problem(node, "is of a configuration already, which is written as it was read")
            }
        }
        if matches!(node.action, Action::End { .. }) {
            return;
        }
        match &node.next {
            Next::To(targets) => match &targets[..] {
                [only] => self.control.push((node.id.to_string(), None, *only)),
                [] => self.problem(node, "leads nowhere, and every branch of a flow leads to a node"),
                _ => self.problem(node, "leads to several nodes side by side, and a flow runs one after the other"),
            },
            Next::ByAnswer { routes, otherwise } => self.routes(node, routes, *otherwise),
            Next::When { .. } | Next::ByValue { .. } | Next::Each(_) => {
                self.problem(node, "chooses its way by a condition, and a flow compares a text with fixed ones only");
            }
        }
    }

    /// Branches by what a person answered.
    fn routes(&mut self, node: &'g Node, routes: &[(String, NodeIndex)], otherwise: NodeIndex) {
        let Action::Ask(ask) = &node.action else {
            self.problem(
                node,
                "chooses its way by what it answers, and only the answer of a person can be branched on",
            );
            return;
        };
        let gate = self.fresh(&format!("{}_routes", node.id));
        if routes.iter().any(|(answer, _)| answer == DEFAULT) {
            self.problem(node, format!("has a route for the answer `{DEFAULT}`, which is the name of another branch"));
        }
        let mapping: Map<String, Json> =
            routes.iter().map(|(answer, _)| (answer.clone(), Json::from(answer.as_str()))).collect();
        let branches: Vec<&str> = routes.iter().map(|(answer, _)| answer.as_str()).chain([DEFAULT]).collect();
        let key = json!([{"title": "answer", "type": "string"}]);
        self.nodes.push(component(
            "BranchingNode",
            &gate,
            json!({
                "inputs": key, "outputs": [], "branches": branches, "mapping": mapping,
            }),
        ));
        // The answer flows there whether the state has it or not; such a key cannot be written by anything else.
        let hidden: Key = format!("{} {gate}", node.id).into();
        let output = self.output_name(node, ask.bind);
        self.writers.insert(hidden.clone(), vec![(node.id.to_string(), output)]);
        self.readers.push((gate.clone(), "answer".to_owned(), hidden));
        for (answer, target) in routes {
            self.control.push((gate.clone(), Some(answer.clone()), *target));
        }
        self.control.push((gate.clone(), Some(DEFAULT.to_owned()), otherwise));
        self.control.push((node.id.to_string(), Some(gate), otherwise));
    }

    fn end(&mut self, node: &'g Node, output: &Expression) {
        if !node.updates.is_empty() {
            self.problem(node, "writes values by itself, for which there is no node");
        }
        let mut property = json!({"title": RESULT});
        match output {
            Expression::Value(value) => property["default"] = Json::from(value),
            Expression::Strict(template) | Expression::Lenient(template) => match single(template) {
                Some(key) => self.readers.push((node.id.to_string(), RESULT.to_owned(), key)),
                None if template.references().next().is_none() => property["default"] = Json::from(template.source()),
                None => self.problem(
                    node,
                    format!("makes a text of values, `{}`, and an EndNode gives values as they are", template.source()),
                ),
            },
            Expression::LastReply { .. } => {
                self.problem(node, "gives the last reply of a conversation, and an EndNode gives values as they are")
            }
            _ => self.problem(node, "computes its result, and an EndNode gives values as they are"),
        }
        let outputs = json!([property]);
        self.nodes.push(component(
            "EndNode",
            &node.id,
            json!({
                "inputs": outputs, "outputs": outputs, "branches": [], "branch_name": NEXT,
            }),
        ));
    }

    /// Notes which keys an output feeds. Each update has to write what the action gave, as it is.
    fn writes(&mut self, node: &'g Node, bind: &str, output: &str) {
        for update in &node.updates {
            let given = update.value.template().and_then(single);
            if given.as_deref() != Some(bind) {
                self.problem(node, format!("writes `{}` as something else than what it got", update.key));
                continue;
            }
            self.written(node, &update.key, &node.id, output);
        }
    }

    fn written(&mut self, node: &Node, key: &Key, by: &str, output: &str) {
        if self.graph.reducers.contains_key(key) {
            self.problem(
                node,
                format!("combines what it writes with the value of `{key}`, and a flow replaces values"),
            );
        }
        self.writers.entry(key.clone()).or_default().push((by.to_owned(), output.to_owned()));
    }

    /// The name of what a node gives: the first key that it writes, or how its updates call it.
    fn output_name(&self, node: &Node, bind: &str) -> String {
        title(node.updates.first().map_or(bind, |update| &*update.key))
    }

    /// The prompt or message behind an expression, and its placeholders as inputs of a node.
    fn prompt(&mut self, node: &'g Node, expression: &Expression) -> (String, Vec<String>) {
        let (template, default) = match expression {
            Expression::Value(value) => (Template::parse(&value.to_display()), None),
            Expression::Strict(template) => (template.clone(), None),
            Expression::Lenient(template) => (template.clone(), Some("")),
            _ => {
                self.problem(node, "computes its prompt, and a flow only fills in values");
                return (String::new(), Vec::new());
            }
        };
        let source = template.source();
        let names: Vec<String> = placeholders::names(&source).into_iter().map(str::to_owned).collect();
        for path in template.references().filter(|path| !names.iter().any(|name| name == path.as_str())) {
            let path = path.as_str();
            self.problem(
                node,
                format!("uses `{path}` in its prompt, and a placeholder is a name of letters and digits"),
            );
        }
        for name in names.iter().filter(|name| !template.references().any(|path| path.as_str() == **name)) {
            self.problem(
                node,
                format!("has `{{{{{name}}}}}` in its prompt as plain text, and there it is a placeholder"),
            );
        }
        if default.is_some() && !names.is_empty() {
            self.problem(node, "allows values of its prompt to be missing, and a placeholder needs its value");
        }
        (source, names)
    }
}

/// A node as messages call it: one that nobody wrote is called by the one that implies it.
fn named(node: &Node) -> String {
    match &node.implied_by {
        Some(id) if *id == node.id => format!("the node `{id}`, which is implied,"),
        Some(id) => format!("the node `{id}` (`{}`)", node.kind),
        None => format!("the node `{}` (`{}`)", node.id, node.kind),
    }
}

/// The key that a template is nothing but a reference to.
fn single(template: &Template) -> Option<Key> {
    let path = template.single_reference()?;
    path.root().filter(|root| *root == path.as_str()).map(Key::from)
}

/// A title for a key: others than letters, digits and `_` are not allowed everywhere.
fn title(key: &str) -> String {
    key.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect()
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
