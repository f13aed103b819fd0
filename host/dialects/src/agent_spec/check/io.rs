//! Declared inputs, outputs and branches against those that follow from a component's configuration.

use std::collections::BTreeSet;
use std::sync::Arc;

use hotcell_graph::diagnostic::Diagnostic;

use super::super::model::{Component, ComponentId, Property};
use super::super::problems::article;
use super::super::templates::{self, are_jinja};
use super::super::versions::Version;
use super::{Checker, names};

/// One of the two lists of properties.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Inputs,
    Outputs,
}

impl Side {
    fn field(self) -> &'static str {
        match self {
            Side::Inputs => "inputs",
            Side::Outputs => "outputs",
        }
    }
}

impl Checker<'_> {
    /// Checks what a component declares of itself.
    pub(super) fn io(&mut self, id: ComponentId) {
        let component = self.component(id);
        let generated = &self.written(id).generated;
        let is_a = |name: &str| &*component.component_type == name;
        // Of two lists that have to be equal one is compared with the other.
        if let Some(inputs) = generated.inputs.as_ref().filter(|_| !is_a("StartNode")) {
            match self.meant_as_jinja(component, inputs) {
                Some(field) => {
                    let error = Diagnostic::error(format!("`inputs` are those of `{field}` only where that is Jinja"))
                        .at(self.span(id, "inputs"))
                        .help(
                            "write `jinja = true` below `[compat]` in `hotcell.toml`, which renders prompts and messages as WayFlow \
                             does",
                        );
                    self.report(id, error);
                }
                None => self.side(id, Side::Inputs, &component.inputs, inputs),
            }
        }
        // A flow may expose less than its ends have.
        if let Some(outputs) =
            generated.outputs.as_ref().filter(|_| !is_a("EndNode") && !is_a("Flow") && !is_a("ExtendedFlow"))
        {
            self.side(id, Side::Outputs, &component.outputs, outputs);
        }
        if let Some(branches) = &generated.branches {
            self.branches(id, &component.branches, branches);
        }
    }

    /// The template whose names, were it rendered, are what a component declares in place of what is implied without that.
    fn meant_as_jinja(&self, component: &Component, implied: &[Property]) -> Option<&'static str> {
        if are_jinja(&component.component_type, self.surroundings.renders_jinja()) {
            return None;
        }
        let titles = |properties: &[Property]| properties.iter().map(|one| one.title.clone()).collect::<BTreeSet<_>>();
        let declared = titles(&component.inputs);
        if declared == titles(implied) {
            return None;
        }
        let is_it = |field: &&&str| {
            let text = component.text(field);
            text.is_some_and(|text| titles(&templates::inputs(text, true, &component.span)) == declared)
        };
        templates::FIELDS.iter().find(is_it).copied()
    }

    fn side(&mut self, id: ComponentId, side: Side, declared: &[Property], generated: &[Property]) {
        let field = side.field();
        let component = self.component(id);
        if let Some(number) = self.wrong_number(id, side, declared) {
            let of = format!("exactly one property in `{field}`");
            let all = names(declared.iter().map(|property| &*property.title));
            let kind = &*component.component_type;
            let message = format!("{} `{kind}` has {of}{number}, and here are {all}", article(kind));
            let error = Diagnostic::error(message).at(self.span(id, field));
            self.report(id, error);
            return;
        }
        for wanted in generated {
            let Some(given) = declared.iter().find(|property| property.title == wanted.title) else {
                let error = Diagnostic::error(format!("`{}` is missing in `{field}`", wanted.title))
                    .at(self.span(id, field))
                    .help(format!("{} implies it; declare it, or leave `{field}` out", self.source(id, side)));
                self.report(id, error);
                continue;
            };
            self.types(id, side, given, wanted);
        }
        for extra in declared.iter().filter(|given| !generated.iter().any(|wanted| wanted.title == given.title)) {
            if self.is_full() {
                return;
            }
            let error = Diagnostic::error(format!("`{}` in `{field}` is not one of its {field}", extra.title))
                .at(&extra.span)
                .help(format!(
                    "{} implies {}",
                    self.source(id, side),
                    names(generated.iter().map(|property| &*property.title))
                ));
            self.report(id, error);
        }
    }

    /// Why the number of properties is wrong where there has to be one of any name: words to add to the message.
    fn wrong_number(&self, id: ComponentId, side: Side, declared: &[Property]) -> Option<String> {
        let component = self.component(id);
        let one = match (&*component.component_type, side) {
            ("LlmNode", Side::Outputs) => declared.is_empty() || self.written(id).version == Version::V25_4_1,
            ("InputMessageNode" | "PluginInputMessageNode", Side::Outputs) | ("BranchingNode", Side::Inputs) => true,
            _ => false,
        };
        let is_llm = &*component.component_type == "LlmNode" && declared.len() > 1;
        let added = if is_llm { format!(" in {}", Version::V25_4_1) } else { String::new() };
        (one && declared.len() != 1).then_some(added)
    }

    fn types(&mut self, id: ComponentId, side: Side, given: &Property, wanted: &Property) {
        let mirrored = matches!(&*self.component(id).component_type, "StartNode" | "EndNode");
        let fits = match side {
            _ if mirrored => given.ty.is_same_as(&wanted.ty),
            // What flows in has the declared type; it has to become the one that is implied.
            Side::Inputs => wanted.ty.converts_to(&given.ty) || given.ty.converts_to(&wanted.ty),
            Side::Outputs => wanted.ty.converts_to(&given.ty),
        };
        if fits {
            return;
        }
        let implied = if mirrored { "it has to be the same" } else { "it cannot be converted" };
        let error = Diagnostic::error(format!(
            "`{}` in `{}` has the type {}, and {} implies {}: {implied}",
            given.title,
            side.field(),
            given.ty,
            self.source(id, side),
            wanted.ty
        ))
        .at(&given.span);
        self.report(id, error);
    }

    /// What implies the properties of a component.
    fn source(&self, id: ComponentId, side: Side) -> String {
        let component = self.component(id);
        let child = |field: &str, what: &str| match component.child(field) {
            Some(child) => format!("the {what} `{}`", self.name(child)),
            None => format!("its {what}"),
        };
        match (&*component.component_type, side) {
            ("ToolNode", _) => child("tool", "tool"),
            ("AgentNode", _) => child("agent", "agent"),
            ("FlowNode" | "MapNode" | "ParallelMapNode" | "CatchExceptionNode", _) => child("subflow", "flow"),
            ("PluginCatchExceptionNode" | "PluginRetryNode" | "ExtendedMapNode" | "ExtendedParallelMapNode", _) => {
                child("flow", "flow")
            }
            ("ExtendedLlmNode", Side::Inputs) if component.value("prompt_template_object").is_some() => {
                "`prompt_template_object`".to_owned()
            }
            ("PluginChoiceNode", Side::Inputs) => "`prompt_template`".to_owned(),
            ("ExtendedToolNode", _) => child("tool", "tool"),
            ("ExtendedAgentNode", _) => child("agent", "agent"),
            ("Flow" | "ExtendedFlow", _) => child("start_node", "StartNode"),
            ("StartNode" | "EndNode", Side::Inputs) => "the list of its outputs".to_owned(),
            ("StartNode" | "EndNode", Side::Outputs) => "the list of its inputs".to_owned(),
            ("Agent" | "ExtendedAgent", _) => "`system_prompt`".to_owned(),
            ("LlmNode" | "ExtendedLlmNode", Side::Inputs) => "`prompt_template`".to_owned(),
            ("InputMessageNode" | "OutputMessageNode", Side::Inputs) => "`message`".to_owned(),
            (component_type, _) => format!("the type `{component_type}`"),
        }
    }

    fn branches(&mut self, id: ComponentId, declared: &[Arc<str>], generated: &[Arc<str>]) {
        let is_same = declared.len() == generated.len() && generated.iter().all(|branch| declared.contains(branch));
        if is_same {
            return;
        }
        let implied = names(generated.iter().map(|branch| &**branch));
        let error = Diagnostic::error(format!(
            "its `branches` are {implied}, and {} are written",
            names(declared.iter().map(|branch| &**branch))
        ))
        .at(self.span(id, "branches"))
        .help("leave `branches` out, or write these");
        self.report(id, error);
    }
}
