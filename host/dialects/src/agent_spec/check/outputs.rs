//! What a flow exposes of its ends.

use std::collections::HashMap;

use hotcell_graph::closest;
use hotcell_graph::diagnostic::Diagnostic;

use super::super::generated::end_nodes;
use super::super::model::{Component, ComponentId, Property};
use super::{Checker, names};
use crate::document::MAX_DIAGNOSTICS;

impl Checker<'_> {
    /// Checks the outputs of a flow against those of its EndNodes.
    pub(super) fn flow_outputs(&mut self, id: ComponentId) {
        let flow = self.component(id);
        let find = |id| self.component(id);
        let ends: Vec<&Component> = end_nodes(flow, &find).collect();
        let outputs: Vec<HashMap<&str, &Property>> =
            ends.iter().map(|end| end.outputs.iter().map(|output| (&*output.title, output)).collect()).collect();
        let mut errors = Vec::new();
        let mut first: HashMap<&str, (&Component, &Property)> = HashMap::new();
        for (end, output) in ends.iter().flat_map(|end| end.outputs.iter().map(move |output| (*end, output))) {
            if errors.len() >= MAX_DIAGNOSTICS {
                break;
            }
            let (other, same) = *first.entry(&*output.title).or_insert((end, output));
            if !same.ty.is_same_as(&output.ty) {
                let message = format!(
                    "the output `{}` is of the type {} in the EndNode `{}` and of the type {} in `{}`",
                    output.title, same.ty, other.shown, output.ty, end.shown
                );
                let error = Diagnostic::error(message).at(&output.span).related(&same.span, "the other one");
                errors.push(error.help("give both the same type, or one of them another title"));
            }
        }
        for output in &flow.outputs {
            if errors.len() >= MAX_DIAGNOSTICS {
                break;
            }
            let title = &output.title;
            let having: Vec<_> =
                ends.iter().zip(&outputs).filter_map(|(end, own)| Some((end, own.get(&**title)?))).collect();
            let lacking =
                || ends.iter().zip(&outputs).filter(|(_, own)| !own.contains_key(&**title)).map(|(end, _)| &*end.shown);
            if having.is_empty() && !ends.is_empty() {
                let mut known: Vec<&str> =
                    ends.iter().flat_map(|end| end.outputs.iter().map(|output| &*output.title)).collect();
                known.sort_unstable();
                known.dedup();
                let error =
                    Diagnostic::error(format!("no EndNode of the flow `{}` has the output `{title}`", flow.shown));
                let help = match closest(title, known.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("the outputs of its EndNodes are {}", names(known)),
                };
                errors.push(error.at(&output.span).help(help));
            } else if having.len() < ends.len() && output.default.is_none() {
                let message = format!(
                    "the output `{title}` of the flow `{}` needs a default: {} lacks it",
                    flow.shown,
                    names(lacking())
                );
                let error = Diagnostic::error(message).at(&output.span);
                errors.push(error.help("write the `default` in the `outputs` of the flow"));
            }
            for (end, own) in having.iter().filter(|(_, own)| !own.ty.converts_to(&output.ty)) {
                let message = format!(
                    "the output `{title}` of the flow `{}` is of the type {}, and the EndNode `{}` gives {}",
                    flow.shown, output.ty, end.shown, own.ty
                );
                errors.push(Diagnostic::error(message).at(&output.span).related(&own.span, "this one"));
            }
        }
        for error in errors {
            self.report(id, error);
        }
    }
}
