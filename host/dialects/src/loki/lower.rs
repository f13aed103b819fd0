//! From a checked file to the IR.

use std::collections::HashSet;
use std::sync::Arc;

use hotcell_graph::Value;
use hotcell_graph::diagnostic::Span;
use hotcell_graph::ir::{
    Action, CallAction, CallTarget, CapOrigin, Ends, Expression, Gives, Graph, Join, Next, Node as IrNode, NodeIds,
    RunLimits, Update, Variable, VisitCap,
};
use indexmap::IndexMap;

use super::branches::{self, Branches};
use super::lower_node::lower;
use super::schema::{Body, Map, Node, Source};
use super::{INPUT_KEY, placeholders, start_time};
use crate::document::SourceText;
use crate::surroundings::Surroundings;

/// What a node gives is called so in its own updates, and where a map does not say what it collects.
const OUTPUT: &str = "output";

/// The graph of a file that has no errors. None if something is missing after all.
pub(super) fn graph(source: &Source, surroundings: &dyn Surroundings) -> Option<Graph> {
    let all: Vec<&Node> = source.nodes.iter().collect();
    let known = Branches::of(source);
    let maps: Vec<(&Node, &Map, &[&Node])> = source
        .nodes
        .iter()
        .filter_map(|node| match &node.body {
            Body::Map(map) => Some((node, map, known.chain(map)?)),
            _ => None,
        })
        .collect();
    let of_branches: Vec<String> = maps.iter().map(|(node, ..)| branches::id(source, node)).collect();
    let mut nodes = nodes_of(source, &all, &of_branches, surroundings)?;
    for ((_, map, chain), id) in maps.iter().zip(&of_branches) {
        nodes.push(branch(source, map, chain, id, surroundings)?);
    }
    let mut graph = Graph::new(&*source.name.as_ref()?.value, nodes, source.start.as_ref()?)?;
    graph.description = source.description.as_deref().map(str::to_owned);
    graph.initial_state = source.initial_state.iter().map(|(key, value)| (key.value.clone(), value.clone())).collect();
    graph.input_key = Some(INPUT_KEY.into());
    graph.variables = source
        .variables
        .iter()
        .map(|variable| Variable {
            name: Arc::clone(&variable.name.value),
            description: variable.description.to_string(),
            default: variable.default.as_deref().map(str::to_owned),
        })
        .collect();
    if needs_start_time(source) {
        graph.variables.push(start_time());
        graph.start_time = Some(placeholders::NOW.into());
    }
    settle(&mut graph, source);
    graph.limits.wall_clock = source.settings.timeout;
    graph.limits.budget = source.settings.budget.clone();
    Some(graph)
}

/// The settings of a file for a graph of it.
fn settle(graph: &mut Graph, source: &Source) {
    let visits =
        VisitCap { visits: source.settings.max_loop_iterations, origin: CapOrigin::Setting("max_loop_iterations") };
    graph.limits = RunLimits {
        visits_per_node: Some(visits),
        concurrency: source.settings.max_concurrency,
        agent_depth: source.agent_depth,
        ..graph.limits.clone()
    };
    graph.reducers = source.reducers.iter().map(|(key, reducer)| (key.value.clone(), *reducer)).collect();
    graph.model = source.model.settings();
    graph.log_state = source.settings.log_state_snapshots;
}

/// Nodes of a file, and those that stand for names of none; nodes with the other ids are added to them.
fn nodes_of(
    source: &Source,
    written: &[&Node],
    others: &[String],
    surroundings: &dyn Surroundings,
) -> Option<Vec<IrNode>> {
    // With `validate_before_run: false` a name may be that of no node. It then leads to a node that says so.
    let known: HashSet<&str> = written.iter().map(|node| &*node.id.value).collect();
    let mut absent: IndexMap<&str, &Span> = IndexMap::new();
    for target in written.iter().flat_map(|node| targets(node)) {
        if !known.contains(&**target) {
            absent.entry(&**target).or_insert(&target.span);
        }
    }
    let ids = written.iter().map(|node| &*node.id.value).chain(absent.keys().copied());
    let ids = NodeIds::new(ids.chain(others.iter().map(String::as_str)));
    let mut nodes = written.iter().map(|node| lower(source, node, &ids, surroundings)).collect::<Option<Vec<_>>>()?;
    nodes.extend(absent.iter().map(|(name, span)| absent_node(name, span)));
    Some(nodes)
}

/// What a map runs for each item where its branch goes on from one node to others: a graph of these, on the state of the item.
fn branch(source: &Source, map: &Map, chain: &[&Node], id: &str, surroundings: &dyn Surroundings) -> Option<IrNode> {
    let first = chain.first()?;
    let output_key = Arc::<str>::from(map.output_key());
    let mut nodes = nodes_of(source, chain, &[], surroundings)?;
    for (node, lowered) in chain.iter().zip(&mut nodes) {
        if node.next.is_empty() && !matches!(node.body, Body::End(_)) {
            lowered.next = Next::Open(Vec::new());
        }
        let writes_it = node.updates.iter().any(|update| *update.key.value == *output_key);
        if *output_key == *OUTPUT && node.scoped_name() == Some(OUTPUT) && !writes_it {
            lowered.updates.push(Update { key: output_key.clone(), value: Expression::Key(OUTPUT.into()) });
        }
    }
    let mut graph = Graph::new(&*first.id.value, nodes, &first.id.value)?;
    settle(&mut graph, source);
    // The graph lies between the agent and those that it calls.
    graph.limits.agent_depth += 1;
    graph.scheduling.ends = Ends::WhenQuiet { output: Box::new(Expression::Value(Value::from(""))) };
    let target = CallTarget::Graph {
        graph: Arc::new(graph),
        inputs: Vec::new(),
        conversation: None,
        inherits: true,
        gives: Gives::Entries(vec![output_key.clone()]),
    };
    let action = CallAction { target, contract: None, failure_prefix: None, bind: OUTPUT };
    let collected = Expression::Entry(Box::new(Expression::Key(OUTPUT.into())), output_key.clone());
    let action = Action::Call(Box::new(action));
    let mut node = IrNode::new(id, first.body.kind(), action, Next::To(Vec::new()), &first.id.span);
    node.updates = vec![Update { key: output_key, value: collected }];
    node.implied_by = Some(first.id.value.clone());
    Some(node)
}

/// Whether a text of the graph names the time at which the run began. Agents that it calls may.
fn needs_start_time(source: &Source) -> bool {
    let names_it = |node: &Node| {
        let texts = node.templates().into_iter().chain(node.updates.iter().map(|update| &update.value));
        texts.into_iter().any(|text| text.contains(placeholders::NOW))
    };
    source.nodes.iter().any(|node| matches!(node.body, Body::Agent(_)) || names_it(node))
}

/// Every name of a node that a node needs.
fn targets(node: &Node) -> Vec<&SourceText> {
    let mut targets: Vec<&SourceText> = node.fallback().into_iter().collect();
    match &node.body {
        Body::Approval(approval) => {
            targets.extend(approval.routes.iter().map(|route| &route.target));
            targets.extend(&approval.on_other);
        }
        Body::End(_) => {}
        Body::PluginNode(plugin_node) => {
            targets.extend(plugin_node.routes.iter().map(|route| &route.target));
            targets.extend(&node.next);
        }
        Body::Map(map) => targets.extend(node.next.iter().chain(&map.branch)),
        _ => targets.extend(&node.next),
    }
    targets
}

fn absent_node(name: &str, span: &Span) -> IrNode {
    IrNode { join: Join::All, ..IrNode::new(name, "missing", Action::Absent, Next::To(Vec::new()), span) }
}
