//! From a checked workflow to a graph.
//!
//! A step is a node. It waits for all that it depends on and is left out when one of them does not come: a router takes the edge
//! to its target alone, and what failed ends its branch. All steps share one state.

use std::collections::{BTreeSet, HashMap};

use hotcell_budget::{Cost, CostCap, RunBudget};
use hotcell_graph::ir::{
    Action, Arrived, Edge, Ends, Expression, FailedNodes, FailureRecord, Graph, Join, JoinWhen, Next, Node, NodeIds,
    OnFailure, Redacted, Scheduling, Sharing, Unmet,
};
use hotcell_graph::{Key, Place, Reducer, Value};

use super::lower_step::{self, Lowered};
use super::lowering::Context;
use super::schema::{Body, Config, STEPS, Step, Workflow};

/// The node with which a workflow begins. No step can have this id in a path.
const START: &str = "(start)";
/// How many steps run at once where nothing is said.
const CONCURRENCY: u32 = 10;

/// The graph of a workflow; what it does not say itself is taken from `around`.
pub(super) fn workflow(workflow: &Workflow, around: &Config) -> Option<Graph> {
    let config = within(&workflow.config, around);
    let parts = parts(workflow);
    let context = Context { workflow, config: &config, parts: &parts };
    let ids: Vec<&str> = [START].into_iter().chain(workflow.steps.iter().map(|step| &*step.id.value)).collect();
    let ids = NodeIds::new(ids.iter().copied());
    let dependents = dependents(workflow);
    let edges = |step: Option<&Step>| {
        let after = step.map_or_else(
            || workflow.steps.iter().filter(|step| step.depends_on.is_empty()).collect::<Vec<_>>(),
            |step| dependents.get(&*step.id.value).cloned().unwrap_or_default(),
        );
        let edge = |next: &Step| {
            let chosen = step.filter(|step| matches!(step.body, Body::Router { .. }));
            let condition = chosen.map(|step| {
                let given = Expression::Entry(Box::new(Expression::Key(STEPS.into())), step.id.value.clone());
                let output = Expression::Entry(Box::new(given), "output".into());
                Expression::Is(Box::new(output), Value::Text(next.id.value.clone()))
            });
            Some(Edge { condition, target: ids.get(&next.id)? })
        };
        Next::Open(after.into_iter().filter_map(edge).collect())
    };
    let mut nodes = vec![Node {
        implied_by: Some(workflow.name.value.clone()),
        ..Node::new(START, "start", Action::Pass, edges(None), &workflow.name.span)
    }];
    for step in &workflow.steps {
        let child = match &step.body {
            Body::Subworkflow(child) => Some(self::workflow(&child.workflow, &config)?),
            _ => None,
        };
        let Lowered { action, retry, updates } = lower_step::lower(step, child, &context)?;
        let on_failure = if config.goes_on { OnFailure::Continue } else { OnFailure::EndBranch };
        let arrived = step.depends_on.iter().filter_map(|name| ids.get(name)).map(Arrived::From).collect();
        let join = match step.depends_on.len() {
            0 | 1 => Join::Each,
            _ => Join::When(JoinWhen { condition: Arrived::All(arrived), deadline: None, unmet: Unmet::Skip }),
        };
        nodes.push(Node {
            updates,
            retry,
            join,
            on_failure,
            timeout: step.timeout,
            ..Node::new(&step.id, step.kind, action, edges(Some(step)), &step.id.span)
        });
    }
    let mut graph = Graph::new(&*workflow.name, nodes, START)?;
    graph.redacted = redacted(workflow, &graph);
    graph.description = workflow.description.clone();
    graph.initial_state = workflow.state.clone();
    graph.is_open = true;
    graph.failure_record = FailureRecord::ByNode(STEPS.into());
    graph.reducers.insert(STEPS.into(), Reducer::Merge);
    graph.reducers.extend(parts.iter().map(|key| (key.clone(), Reducer::Place)));
    graph.scheduling = Scheduling {
        ends: Ends::WhenQuiet { output: Box::new(result(workflow)) },
        sharing: Sharing::Shared,
        failed_nodes: FailedNodes::FailTheRun,
        brought: None,
    };
    graph.limits.concurrency = config.concurrency.unwrap_or(CONCURRENCY) as usize;
    graph.limits.deadline = workflow.config.timeout;
    let cap = |most| CostCap { most: Cost::from_usd(most), setting: "budget_usd", is_strict: false };
    graph.limits.budget = RunBudget { cost: workflow.config.budget_usd.map(cap), ..RunBudget::default() };
    Some(graph)
}

/// What is redacted in a workflow: what it names, and what the workflows name that it runs.
fn redacted(workflow: &Workflow, graph: &Graph) -> Redacted {
    let mut redacted = workflow.redacted.clone();
    for (_, node) in graph.nodes() {
        if let Action::Call(call) = &node.action
            && let Some(child) = call.target.graph()
        {
            redacted.extend(&child.redacted);
        }
    }
    redacted
}

/// The settings of a workflow, with what it does not say about models taken from the one that runs it.
fn within(own: &Config, around: &Config) -> Config {
    let mut config = own.clone();
    if config.provider.is_none() {
        config.provider = around.provider;
        config.recording = config.recording.or_else(|| around.recording.clone());
        config.model = config.model.or_else(|| around.model.clone());
    }
    config
}

/// The steps that wait for each, in their order.
fn dependents(workflow: &Workflow) -> HashMap<&str, Vec<&Step>> {
    let mut dependents: HashMap<&str, Vec<&Step>> = HashMap::new();
    for step in &workflow.steps {
        for name in &step.depends_on {
            let waiting = dependents.entry(&**name).or_default();
            if !waiting.iter().any(|known| known.id == step.id) {
                waiting.push(step);
            }
        }
    }
    dependents
}

/// The places that a step writes.
fn targets(step: &Step) -> impl Iterator<Item = &Place> {
    let conversation = match &step.body {
        Body::Agent(agent) => agent.conversation.as_ref(),
        _ => None,
    };
    step.output.iter().chain(conversation).map(|target| &target.place)
}

/// The entries of the state of which a step writes a part.
fn parts(workflow: &Workflow) -> BTreeSet<Key> {
    let of_parts = |place: &&Place| !place.inner().is_empty();
    workflow.steps.iter().flat_map(targets).filter(of_parts).map(|place| place.root().clone()).collect()
}

/// The result of a workflow: the state, without what every step gave.
fn result(workflow: &Workflow) -> Expression {
    let written = workflow.steps.iter().flat_map(targets).map(|place| place.root().clone());
    let mut keys: Vec<Key> = Vec::new();
    for key in workflow.state.iter().map(|(key, _)| key.clone()).chain(written) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let entry = |key: Key| {
        let place = Place::parse(&key).map_or_else(|_| Expression::Key(key.clone()), Expression::At);
        (key, place)
    };
    Expression::Object(keys.into_iter().map(entry).collect())
}
