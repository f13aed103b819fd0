//! From a checked configuration to graphs.
//!
//! A flow and an agent become a graph each; a node that runs one calls it. Where data flows by names, a name is a state
//! key. Where it flows by edges, an output is a key of its own (`node.output`), and an input that several edges feed is
//! one too (`node.input`), which the node that was executed last has written.

mod agent;
mod certificates;
mod data;
mod datastores;
mod decide;
mod extract;
mod flow;
mod framing;
mod model;
mod node;
mod retries;
mod site;
mod steps;
mod store;
mod team;
mod template;
mod told;
mod tool;
mod toolbox;
mod transforms;
mod variables;
mod wayflow;

use std::collections::HashMap;
use std::sync::Arc;

use hotcell_graph::diagnostic::{Diagnostic, Span};
use hotcell_graph::ir::{Action, Graph, Results, Retry};
use hotcell_graph::{Key, Reducer, Value};

use super::model::{Component, ComponentId, Configuration, Field, Property};
use super::names;
use super::problems::article;
use super::schema::Schema;
use crate::remote::Remote;
use crate::surroundings::Surroundings;
use team::Member;

/// The name under which the updates of a node see what its action answered.
const ANSWER: &str = "answer";

/// What a configuration becomes.
#[derive(Debug)]
pub(super) struct Lowered {
    pub(super) graph: Graph,
    /// The agents of the configuration that others of its agents may ask, by the names by which they do
    pub(super) members: Vec<(Key, Arc<Graph>)>,
    /// The agents at other addresses
    pub(super) remotes: Vec<Remote>,
}

/// The graph of a configuration; none, with the reasons, if it is nothing that can be run.
pub(super) fn graph(
    configuration: &Configuration,
    surroundings: &dyn Surroundings,
) -> Result<Lowered, Vec<Diagnostic>> {
    let mut lowering = Lowering {
        configuration,
        surroundings,
        graphs: HashMap::new(),
        servers: HashMap::new(),
        retries: HashMap::new(),
        members: Vec::new(),
        remotes: Vec::new(),
        is_alone: false,
        within: None,
        problems: Vec::new(),
    };
    let root = configuration.component(configuration.root);
    let graph = match &*root.component_type {
        kind if Schema::get().is_in(kind, "AgenticComponent") => lowering.callable(configuration.root),
        other => {
            let error = Diagnostic::error(format!(
                "`{}` is {} `{other}`, which cannot be run by itself",
                root.shown,
                article(other)
            ));
            return Err(vec![
                error.at(&root.span).help("what can be run is a flow, an agent, or several agents together"),
            ]);
        }
    };
    let members = lowering.lower_members();
    if lowering.problems.is_empty() {
        let graph = Arc::try_unwrap(graph).unwrap_or_else(|shared| (*shared).clone());
        let remotes = lowering.remotes.into_iter().map(|(_, remote)| remote).collect();
        Ok(Lowered { graph, members, remotes })
    } else {
        Err(lowering.problems)
    }
}

struct Lowering<'c> {
    configuration: &'c Configuration,
    surroundings: &'c dyn Surroundings,
    /// What was lowered before: a component that is used twice is one graph
    graphs: HashMap<(ComponentId, bool), Arc<Graph>>,
    /// The agents that others may ask, each with its graph once it is lowered
    members: Vec<(Key, Member, Option<Arc<Graph>>)>,
    /// The agents at other addresses
    remotes: Vec<(ComponentId, Remote)>,
    /// Whether what is lowered works where nobody can be asked
    is_alone: bool,
    /// The names under which MCP servers are known, by their transports
    servers: HashMap<ComponentId, String>,
    /// How often the functions of MCP servers are called that have a policy of their own, by their full names
    retries: HashMap<String, Option<Retry>>,
    /// The node of the entry flow that is being lowered
    within: Option<ComponentId>,
    problems: Vec<Diagnostic>,
}

impl<'c> Lowering<'c> {
    fn component(&self, id: ComponentId) -> &'c Component {
        self.configuration.component(id)
    }

    /// The graph of a flow or an agent.
    fn callable(&mut self, id: ComponentId) -> Arc<Graph> {
        if let Some(graph) = self.graphs.get(&(id, self.is_alone)) {
            return graph.clone();
        }
        let component = self.component(id);
        let graph = match &*component.component_type {
            "Flow" => self.flow(component),
            "ExtendedFlow" => self.extended_flow(component),
            "Agent" | "ExtendedAgent" | "SpecializedAgent" => self.agent(id),
            "ManagerWorkers" | "PluginManagerWorkers" => self.team(id),
            "Swarm" | "PluginSwarm" => self.swarm(id),
            "A2AAgent" => self.far_agent(id),
            other => {
                self.refuse(component, format!("`{other}` cannot be run here: hotcell has no client for it"));
                None
            }
        };
        // What cannot be lowered has said why; the graph is not run.
        let graph = Arc::new(graph.unwrap_or_else(|| empty(component)));
        self.graphs.insert((id, self.is_alone), graph.clone());
        graph
    }

    /// Says that something cannot be run.
    fn refuse(&mut self, component: &Component, problem: impl std::fmt::Display) {
        self.refuse_at(component, &component.span, problem);
    }

    /// The same for what a field of the component says, at its place.
    fn refuse_field(&mut self, component: &Component, field: &str, problem: impl std::fmt::Display) {
        let span = match component.fields.get(field) {
            Some(Field::Value { span, .. }) => span,
            _ => &component.span,
        };
        self.refuse_at(component, span, problem);
    }

    fn refuse_at(&mut self, component: &Component, span: &Span, problem: impl std::fmt::Display) {
        let problem = problem.to_string();
        let node = names::of_diagnostic(&component.shown, Some(&component.id));
        // A component is refused once, however many use it.
        let is_known = |known: &Diagnostic| known.span.as_ref() == Some(span) && known.message.starts_with(&problem);
        if self.problems.iter().any(is_known) {
            return;
        }
        let within = self.within.map(|node| self.component(node)).filter(|node| node.id != component.id);
        let within = within.map(|node| format!(" (inside of the node `{}`)", node.shown)).unwrap_or_default();
        self.problems.push(Diagnostic::error(format!("{problem}{within}")).at(span).node(node));
    }
}

fn empty(component: &Component) -> Graph {
    let node = site::bare("-", "StartNode", hotcell_graph::ir::Action::Pass, component);
    Graph::new(&*component.name, vec![node], "-").expect("a graph of one node")
}

/// The keys that belong to a graph and to none of its names.
#[derive(Clone, Debug)]
struct OwnKeys {
    conversation: Key,
    results: Results,
    /// What an agent was handed in
    filled: Key,
    /// What it was handed in while something was missing
    partly: Key,
    /// What an agent is told that asks where nobody answers
    reminder: Key,
    /// Whose turn it is among several agents
    turn: Key,
    /// What a node decided its branch by
    decided: Key,
}

impl OwnKeys {
    /// Keys that are none of the names.
    fn beside<'n>(names: impl Iterator<Item = &'n str> + Clone) -> Self {
        let free = |wanted: &str| {
            let mut key = wanted.to_owned();
            while names.clone().any(|name| name == key) {
                key.push('_');
            }
            Key::from(key)
        };
        OwnKeys {
            conversation: free("conversation"),
            results: Results { outputs: free("outputs"), branch: free("branch") },
            filled: free("filled"),
            partly: free("partly"),
            reminder: free("reminder"),
            turn: free("turn"),
            decided: free("decided"),
        }
    }

    /// Makes them those of a graph with these inputs and outputs.
    fn give_to(&self, graph: &mut Graph, inputs: &[Property], outputs: &[Property], kept: Vec<Key>) {
        graph.conversation = Some(self.conversation.clone());
        graph.reducers.insert(self.conversation.clone(), Reducer::Converse);
        graph.initial_state.push((self.conversation.clone(), Value::List(Default::default())));
        graph.open_state = inputs.iter().map(|input| input.title.clone()).collect();
        let optional = inputs.iter().filter(|input| input.default.is_some());
        graph.optional = optional.map(|input| input.title.clone()).collect();
        graph.open_state.push(self.conversation.clone());
        graph.results = Some(self.results.clone());
        graph.output_schema = (!outputs.is_empty()).then(|| {
            let mut schema = node::object_of(outputs);
            let names = outputs.iter().map(|output| Value::from(&*output.title)).collect();
            schema.insert("required", Value::List(names));
            Value::Object(schema)
        });
        let condensed: Vec<Key> = graph
            .nodes()
            .flat_map(|(_, node)| match &node.action {
                Action::Converse(converse) => converse.condense.iter().map(|condense| condense.key.clone()).collect(),
                _ => Vec::new(),
            })
            .collect();
        graph.initial_state.extend(condensed.iter().map(|key| (key.clone(), Value::Null)));
        graph.kept = Some(kept.into_iter().chain(condensed).chain([self.conversation.clone()]).collect());
    }
}
