//! The data edges of a flow, written or by name, and the inputs that they feed.

use std::collections::{HashMap, HashSet};

use hotcell_graph::closest;
use hotcell_graph::diagnostic::Diagnostic;

use super::super::model::{ComponentId, Property};
use super::control::Control;
use super::{Checker, names};

/// Steps that a node counts for which is kept for an input.
const KEPT: usize = 10;

/// Which nodes can feed an input.
type Feeders<'c> = HashMap<(ComponentId, &'c str), Vec<ComponentId>>;

impl<'c> Checker<'c> {
    /// Checks the data flow of a flow.
    pub(super) fn data(&mut self, flow: ComponentId, control: &Control) {
        let by_name = self.component(flow).children("data_flow_connections").is_none();
        let mut mistaken = HashSet::new();
        let feeders = if by_name { self.by_name(control) } else { self.by_edges(flow, control, &mut mistaken) };
        let start = self.component(flow).child("start_node");
        for &id in control.nodes.iter().filter(|id| Some(**id) != start && !mistaken.contains(*id)) {
            for input in self.component(id).inputs.iter().filter(|input| input.default.is_none()) {
                let sources = feeders.get(&(id, &*input.title)).map(Vec::as_slice).unwrap_or_default();
                self.is_fed(id, input, sources, start, control, by_name);
            }
        }
    }

    fn is_fed(
        &mut self,
        id: ComponentId,
        input: &Property,
        sources: &[ComponentId],
        start: Option<ComponentId>,
        control: &Control,
        by_name: bool,
    ) {
        let by_start = start.is_some_and(|start| sources.contains(&start));
        let is_idle = !control.is_reachable(id);
        let is_known = sources.is_empty() || by_start || is_idle;
        if self.is_full() || !is_known && !self.takes(id, control.steps() + sources.len()) {
            return;
        }
        let is_fed = !sources.is_empty() && (by_start || is_idle || control.follows_any(id, sources));
        if is_fed {
            return;
        }
        let (node, title) = (self.name(id), &input.title);
        let how = if by_name { "no node before it has an output of that name" } else { "no data edge leads to it" };
        let mut message = format!("nothing feeds the input `{title}` of the node `{node}`: {how}");
        if !sources.is_empty() {
            let names = names(sources.iter().map(|source| &**self.name(*source)));
            message = format!("nothing feeds the input `{title}` of the node `{node}`: {names} cannot run before it");
        }
        let help = if by_name {
            "give it a default, or the name of an output of a node before it"
        } else {
            "give it a default, or add an edge to `data_flow_connections`"
        };
        self.report(id, Diagnostic::error(message).at(&input.span).help(help));
    }

    /// The edges that are written. Nodes to which an edge leads that is wrong are `mistaken`: it was probably meant for the
    /// input that nothing feeds.
    fn by_edges(&mut self, flow: ComponentId, control: &Control, mistaken: &mut HashSet<ComponentId>) -> Feeders<'c> {
        let mut feeders = Feeders::new();
        let start = self.component(flow).child("start_node");
        for &id in self.component(flow).children("data_flow_connections").unwrap_or_default() {
            let edge = self.component(id);
            let (Some(source), Some(destination)) = (edge.child("source_node"), edge.child("destination_node")) else {
                continue;
            };
            if !self.edge_stays_inside(id, control, [("source_node", source), ("destination_node", destination)]) {
                mistaken.insert(destination);
                continue;
            }
            let (from, to) = (self.component(source), self.component(destination));
            let output_name = edge.text("source_output").unwrap_or_default();
            let input_name = edge.text("destination_input").unwrap_or_default();
            let output = from.output(output_name);
            let input = to.input(input_name);
            if output.is_none() {
                self.no_property(id, "source_output", "output", source, output_name, &from.outputs);
            }
            if input.is_none() {
                self.no_property(id, "destination_input", "input", destination, input_name, &to.inputs);
            }
            let (Some(output), Some(input)) = (output, input) else {
                mistaken.insert(destination);
                continue;
            };
            feeders.entry((destination, &*input.title)).or_default().push(source);
            if !output.ty.converts_to(&input.ty) {
                let error = self.mismatch((source, output), (destination, input));
                self.report(id, error.at(&self.written(id).id));
            }
            if Some(destination) == start {
                let message = format!("a data edge leads to the start node `{}`, which runs once and first", to.shown);
                self.report(id, Diagnostic::warning(message).at(&self.written(id).id));
            }
        }
        feeders
    }

    fn no_property(
        &mut self,
        edge: ComponentId,
        field: &str,
        what: &str,
        node: ComponentId,
        name: &str,
        known: &[Property],
    ) {
        if self.is_full() {
            return;
        }
        let known = || known.iter().map(|property| &*property.title);
        let message = format!("the node `{}` has no {what} `{name}`", self.name(node));
        let error = Diagnostic::error(message).at(self.component(edge).span_of(field));
        let error = match closest(name, known()) {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None => error.help(format!("its {what}s are {}", names(known()))),
        };
        self.report(edge, error);
    }

    fn mismatch(&self, from: (ComponentId, &Property), to: (ComponentId, &Property)) -> Diagnostic {
        Diagnostic::error(format!(
            "the output `{}` of `{}` ({}) cannot feed the input `{}` of `{}` ({})",
            from.1.title,
            self.name(from.0),
            from.1.ty,
            to.1.title,
            self.name(to.0),
            to.1.ty
        ))
        .help("a value of the one type cannot be converted to the other")
    }

    /// Every output feeds the inputs of its name.
    fn by_name(&mut self, control: &Control) -> Feeders<'c> {
        let mut outputs: HashMap<&str, Vec<(ComponentId, &Property)>> = HashMap::new();
        for &id in &control.nodes {
            for output in &self.component(id).outputs {
                outputs.entry(&*output.title).or_default().push((id, output));
            }
        }
        let mut feeders = Feeders::new();
        for &id in &control.nodes {
            for input in &self.component(id).inputs {
                let sources = outputs.get(&*input.title).map(Vec::as_slice).unwrap_or_default();
                if !self.takes(id, KEPT * sources.len()) {
                    return feeders;
                }
                feeders.insert((id, &*input.title), sources.iter().map(|(source, _)| *source).collect());
                for &(source, output) in sources {
                    if output.ty.converts_to(&input.ty) || self.is_full() || !self.takes(id, control.steps()) {
                        continue;
                    }
                    if control.follows_any(id, &[source]) {
                        let error = self.mismatch((source, output), (id, input));
                        let error = error.at(&input.span).help(
                            "without `data_flow_connections` equal names are connected: rename one, or write the edges",
                        );
                        self.report(id, error);
                    }
                }
            }
        }
        feeders
    }
}
