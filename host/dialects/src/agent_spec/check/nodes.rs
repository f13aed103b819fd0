//! Single nodes and tools.

use hotcell_graph::closest;
use hotcell_graph::diagnostic::Diagnostic;
use hotcell_graph::{Object, Value};

use super::super::model::ComponentId;
use super::{Checker, names};
use crate::surroundings::ToolState;

impl Checker<'_> {
    /// Checks the reducers of a map.
    pub(super) fn reducers(&mut self, id: ComponentId) {
        let map = self.component(id);
        let Some(subflow) = map.child("subflow").map(|flow| self.component(flow)) else { return };
        let reducers = map.value("reducers").and_then(Value::as_object);
        for (output, reducer) in reducers.into_iter().flat_map(Object::iter) {
            let span = map.span_of("reducers");
            let Some(property) = subflow.output(output) else {
                let known = || subflow.outputs.iter().map(|output| &*output.title);
                let message = format!("`reducers` names `{output}`, and the flow `{}` has no such output", subflow.id);
                let help = match closest(output, known()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("its outputs are {}", names(known())),
                };
                self.report(id, Diagnostic::error(message).at(span).help(help));
                continue;
            };
            if reducer.as_text() != Some("append") && !property.ty.is_numeric() {
                let error = Diagnostic::error(format!(
                    "the reducer `{reducer}` is for integers and numbers, and `{output}` is of the type {}",
                    property.ty
                ))
                .at(span)
                .help("`append` is for all types");
                self.report(id, error);
            }
        }
    }

    /// Checks that a tool of the host is there.
    pub(super) fn server_tool(&mut self, id: ComponentId) {
        let name = &self.component(id).name;
        let error = match self.surroundings.tool(name) {
            ToolState::Usable => return,
            ToolState::Missing => Diagnostic::error(format!("there is no tool `{name}` here"))
                .help("the `name` of a ServerTool is that of a tool of the host; install it, or correct the name"),
            ToolState::Unusable(reason) => Diagnostic::error(reason),
        };
        self.report(id, error.at(self.span(id, "name")));
    }
}
