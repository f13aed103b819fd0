//! What the specification requires beyond the JSON schema.

mod control;
mod data;
mod io;
mod nodes;
mod outputs;
mod secrets;
mod several;
mod templates;

use std::sync::Arc;

use hotcell_graph::diagnostic::{Diagnostic, Severity, Span};

use super::ids::Written;
use super::model::{Component, ComponentId, Configuration};
use super::names as shown;
use crate::document::has_room;
use crate::surroundings::Surroundings;

/// Steps that may be taken to find out which outputs feed which inputs.
const MAX_STEPS: usize = 100_000_000;

/// Checks a configuration whose components are valid one by one.
pub(super) fn check(
    configuration: &Configuration,
    written: &[Written],
    surroundings: &dyn Surroundings,
) -> Vec<Diagnostic> {
    let mut checker = Checker { configuration, written, surroundings, diagnostics: Vec::new(), steps_left: MAX_STEPS };
    for (id, component) in configuration.components() {
        checker.io(id);
        match &*component.component_type {
            "Flow" | "ExtendedFlow" => {
                let control = checker.control(id);
                checker.data(id, &control);
                checker.flow_outputs(id);
            }
            "MapNode" | "ParallelMapNode" => checker.reducers(id),
            "ServerTool" | "BuiltinTool" => checker.server_tool(id),
            "ParallelFlowNode" | "ExtendedParallelFlowNode" => checker.side_by_side(id),
            "CatchExceptionNode" | "PluginCatchExceptionNode" => checker.catches(id),
            "ManagerWorkers" | "PluginManagerWorkers" => checker.team(id),
            "ExtendedAgent" => checker.extended_agent(id),
            "Swarm" | "PluginSwarm" => checker.swarm(id),
            _ => {}
        }
        checker.headers(id);
        checker.secrets(id);
        checker.templates(id);
    }
    checker.diagnostics
}

struct Checker<'c> {
    configuration: &'c Configuration,
    written: &'c [Written],
    surroundings: &'c dyn Surroundings,
    diagnostics: Vec<Diagnostic>,
    steps_left: usize,
}

impl<'c> Checker<'c> {
    /// Whether no error is taken any more.
    fn is_full(&self) -> bool {
        !has_room(&self.diagnostics, Severity::Error)
    }

    /// Takes so many steps. If there are not so many left, nothing more is compared, and the configuration is refused.
    fn takes(&mut self, about: ComponentId, steps: usize) -> bool {
        let before = self.steps_left;
        let rest = before.checked_sub(steps);
        self.steps_left = rest.unwrap_or_default();
        if rest.is_none() && before > 0 {
            let error =
                Diagnostic::error("the configuration is too large to be checked: too many ways lead through it")
                    .at(&self.written(about).id)
                    .help("write `data_flow_connections`, or split the flow into several");
            self.report(about, error);
        }
        rest.is_some()
    }

    fn component(&self, id: ComponentId) -> &'c Component {
        self.configuration.component(id)
    }

    fn written(&self, id: ComponentId) -> &'c Written {
        &self.written[id.0 as usize]
    }

    /// What a component is called in messages.
    fn name(&self, id: ComponentId) -> &'c Arc<str> {
        &self.component(id).shown
    }

    /// The place of a field, or of the component's id where the field is not written.
    fn span(&self, id: ComponentId, field: &str) -> &'c Span {
        let written = self.written(id);
        written.fields.get(field).unwrap_or(&written.id)
    }

    /// Reports something about a component, which is named, with the node of the entry flow in which it is.
    fn report(&mut self, about: ComponentId, mut diagnostic: Diagnostic) {
        if !has_room(&self.diagnostics, diagnostic.severity) {
            return;
        }
        diagnostic.node = Some(shown::of_diagnostic(self.name(about), Some(&self.component(about).id)));
        if let Some(entry) = self.written(about).within {
            diagnostic.message.push_str(&format!(" (inside of the node `{}`)", self.name(entry)));
        }
        self.diagnostics.push(diagnostic);
    }
}

/// Names in backticks, separated by commas.
fn names<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let quoted: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    if quoted.is_empty() { "none".to_owned() } else { quoted.join(", ") }
}
