//! Single nodes and tools, and the headers of requests.

use std::collections::HashSet;

use hotcell_graph::closest;
use hotcell_graph::diagnostic::Diagnostic;
use hotcell_graph::{Object, Value};

use super::super::model::ComponentId;
use super::{Checker, names};
use crate::surroundings::{Imported, normal_name};

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
                let message =
                    format!("`reducers` names `{output}`, and the flow `{}` has no such output", subflow.shown);
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

    /// Checks that no header is said twice: only one of the values would be meant.
    pub(super) fn headers(&mut self, id: ComponentId) {
        let component = self.component(id);
        let of = |field: &str| component.value(field).and_then(Value::as_object);
        let (Some(headers), Some(secrets)) = (of("headers"), of("sensitive_headers")) else { return };
        // Servers read the names of headers without regard to case.
        let secrets: HashSet<String> = secrets.iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
        for (name, _) in headers.iter().filter(|(name, _)| secrets.contains(&name.to_ascii_lowercase())) {
            let error = Diagnostic::error(format!("the header `{name}` is in `headers` and in `sensitive_headers`"))
                .at(self.span(id, "headers"))
                .help("remove it from one of them");
            self.report(id, error);
        }
    }

    /// Checks that a tool of the host is there.
    pub(super) fn server_tool(&mut self, id: ComponentId) {
        let name = &self.component(id).name;
        let error = match self.surroundings.named_tool(name) {
            Imported::Usable(_) => return,
            Imported::Missing { searched } => {
                let function = match normal_name(name) {
                    normal if normal.is_empty() => "lookup".to_owned(),
                    normal => normal,
                };
                Diagnostic::error(format!("there is no tool `{name}` here: searched {}", searched.join(", "))).help(
                    format!(
                        "write a function `{function}` in `tools.py` beside this file, install a plugin with a tool \
                     `{function}`, or say below `[imports]` in `hotcell.toml` which tool it is: \
                     `\"{name}\" = \"plugin/tool\"` or `\"{name}\" = \"file.py:function\"`"
                    ),
                )
            }
            Imported::Unusable(reason) => Diagnostic::error(reason),
        };
        self.report(id, error.at(self.span(id, "name")));
    }
}
