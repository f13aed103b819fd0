//! Where nodes lead: a way that depends on a value is a node of its own.

use hotcell_graph::formula::Membership;
use hotcell_graph::ir::{Action, Expression, Next, Node, NodeIndex};
use hotcell_graph::types::to_text;
use serde_json::{Map, Value as Json, json};

use super::slots::Slot;
use super::{Exporter, Target, component, free};
use crate::agent_spec::generated::DEFAULT;

/// What is wrong with ways that a flow does not have.
const NOWHERE: &str = "leads nowhere, and every branch of a flow leads to a node";
const SIDE_BY_SIDE: &str = "leads to several nodes side by side, and a flow runs one after the other";

/// Where a value leads that is one of these texts.
type Route = (Vec<String>, Target);

impl<'g> Exporter<'g> {
    /// Where a node goes on; none, with a problem, if a flow cannot go there.
    pub(super) fn way(&mut self, node: &'g Node, next: &'g Next) -> Option<Target> {
        match next {
            Next::To(targets) => match &targets[..] {
                [only] => return Some(Target::Node(*only)),
                [] => self.problem(node, NOWHERE),
                _ => self.problem(node, SIDE_BY_SIDE),
            },
            // What offers tools is refused for that; the rest of its way is looked at all the same.
            Next::When { condition: Expression::AsksForTools(_), otherwise, .. } => {
                self.way(node, otherwise);
            }
            Next::When { .. } => match membership(next) {
                Some(first) => return self.compared(node, next, first),
                None => self.conditional(node),
            },
            Next::Open(edges) => match &edges[..] {
                [] => self.problem(node, NOWHERE),
                [only] if only.condition.is_some() => self.conditional(node),
                [_] => {
                    self.problem(node, "leads to a node that waits for others, and a flow goes from one to the next")
                }
                _ => self.problem(node, SIDE_BY_SIDE),
            },
            Next::Each(_) => self.problem(node, SIDE_BY_SIDE),
            Next::ByAnswer { .. } | Next::ByValue { .. } => self.conditional(node),
        }
        None
    }

    fn conditional(&mut self, node: &Node) {
        self.problem(node, "chooses its way by a condition, and a flow compares a text with fixed ones only");
    }

    /// Conditions that compare one place with fixed values, one after the other.
    fn compared(&mut self, node: &'g Node, next: &'g Next, first: Membership) -> Option<Target> {
        let slot = self.slot(node, &first.place, true);
        let mut routes = Vec::new();
        let mut rest = next;
        while let (Next::When { then, otherwise, .. }, Some(test)) = (rest, membership(rest)) {
            let is_next = test.place == first.place && is_of_one_kind(&test, &first);
            if !is_next || (!test.holds && !routes.is_empty()) {
                break;
            }
            let (within, without) = if test.holds { (then, otherwise) } else { (otherwise, then) };
            let target = self.way(node, within);
            routes.push((test.values.iter().map(to_text).collect::<Vec<_>>(), target));
            rest = without;
        }
        let otherwise = self.way(node, rest);
        let routes: Option<Vec<Route>> = routes.into_iter().map(|(texts, target)| Some((texts, target?))).collect();
        Some(Target::Made(self.branching(node, "value", slot?, routes?, otherwise?)))
    }

    /// Branches by what a person answered.
    pub(super) fn by_answer(
        &mut self,
        node: &'g Node,
        exit: &str,
        routes: &[(String, NodeIndex)],
        otherwise: NodeIndex,
    ) {
        let Action::Ask(ask) = &node.action else {
            self.problem(
                node,
                "chooses its way by what it answers, and only the answer of a person can be branched on",
            );
            return;
        };
        let slot = self.answer_of(node, &self.output_name(node, ask.bind));
        let routes = routes.iter().map(|(answer, target)| (vec![answer.clone()], Target::Node(*target))).collect();
        let gate = self.branching(node, "answer", slot, routes, Target::Node(otherwise));
        self.control.push((exit.to_owned(), None, Target::Made(gate)));
    }

    /// A node that compares a text with fixed ones.
    fn branching(&mut self, node: &Node, input: &str, slot: Slot, routes: Vec<Route>, otherwise: Target) -> String {
        let id = self.fresh(&format!("{}_routes", node.id));
        let mut mapping = Map::new();
        let mut branches = vec![DEFAULT.to_owned()];
        for (texts, target) in routes {
            let wanted = texts.first().filter(|text| !text.is_empty()).map_or("empty", |text| text.as_str());
            let branch = free(wanted, |name| branches.iter().any(|known| known == name));
            for text in texts {
                // The first condition that is true counts.
                mapping.entry(text).or_insert_with(|| Json::from(branch.as_str()));
            }
            // Without a text that leads there, a branch would be none.
            if mapping.values().any(|known| *known == branch) {
                self.control.push((id.clone(), Some(branch.clone()), target));
                branches.push(branch);
            }
        }
        self.control.push((id.clone(), Some(DEFAULT.to_owned()), otherwise));
        branches.rotate_left(1);
        let fields = json!({
            "inputs": [{"title": input, "type": "string"}], "outputs": [], "branches": branches, "mapping": mapping,
        });
        self.nodes.push(component("BranchingNode", &id, fields));
        self.read(&id, input, slot);
        id
    }
}

/// What a condition compares, if that is all it does.
fn membership(next: &Next) -> Option<Membership> {
    match next {
        Next::When { condition: Expression::Formula(formula), .. } => formula.membership(),
        _ => None,
    }
}

/// Whether values of two conditions have the same text only where they are the same.
fn is_of_one_kind(one: &Membership, other: &Membership) -> bool {
    let kind = |test: &Membership| test.values.first().map(|value| value.kind());
    kind(one) == kind(other)
}
