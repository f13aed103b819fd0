//! What a flow exposes of its ends.

use hotcell_graph::closest;
use hotcell_graph::diagnostic::Diagnostic;

use super::super::generated::end_nodes;
use super::super::model::{Component, ComponentId};
use super::{Checker, names};

impl Checker<'_> {
    /// Checks the outputs of a flow against those of its EndNodes.
    pub(super) fn flow_outputs(&mut self, id: ComponentId) {
        let flow = self.component(id);
        let find = |id| self.component(id);
        let ends: Vec<&Component> = end_nodes(flow, &find).collect();
        let mut errors = Vec::new();
        for (index, end) in ends.iter().enumerate() {
            for output in &end.outputs {
                let other = ends[..index].iter().find_map(|other| Some((other, other.output(&output.title)?)));
                if let Some((other, same)) = other.filter(|(_, same)| !same.ty.is_same_as(&output.ty)) {
                    let message = format!(
                        "the output `{}` is of the type {} in the EndNode `{}` and of the type {} in `{}`",
                        output.title, same.ty, other.shown, output.ty, end.shown
                    );
                    let error = Diagnostic::error(message).at(&output.span).related(&same.span, "the other one");
                    errors.push(error.help("give both the same type, or one of them another title"));
                }
            }
        }
        for output in &flow.outputs {
            let title = &output.title;
            let having: Vec<_> = ends.iter().filter_map(|end| Some((end, end.output(title)?))).collect();
            let lacking = || ends.iter().filter(|end| end.output(title).is_none()).map(|end| &*end.shown);
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
