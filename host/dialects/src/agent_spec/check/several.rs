//! Components that put several flows or agents together.

use std::collections::HashMap;

use hotcell_graph::diagnostic::Diagnostic;
use hotcell_graph::{Object, Value};

use super::super::generated::{CAUGHT, DEFAULT_EXCEPTION, EXCEPTION_OUTPUTS};
use super::super::model::{Component, ComponentId, Piece, Property};
use super::super::schema::Schema;
use super::super::wayflow::empty_value;
use super::Checker;
use crate::document::MAX_DIAGNOSTICS;

/// What an agent of the reference runtime says first if nobody says otherwise.
const USUAL_MESSAGES: &[&str] = &["Hi! How can I help you?", "N/A", ""];

impl Checker<'_> {
    /// Checks flows that run side by side: what they give has different names, what they take under one name has one type.
    pub(super) fn side_by_side(&mut self, id: ComponentId) {
        let node = self.component(id);
        let flows = node.children("subflows").or_else(|| node.children("flows")).unwrap_or_default();
        let mut errors = Vec::new();
        // Each is compared with the first that gives or takes something of that name.
        let mut gives: HashMap<&str, &Component> = HashMap::new();
        let mut takes: HashMap<&str, (&Component, &Property)> = HashMap::new();
        for flow in flows.iter().map(|flow| self.component(*flow)) {
            if errors.len() >= MAX_DIAGNOSTICS {
                break;
            }
            for output in &flow.outputs {
                match gives.get(&*output.title) {
                    Some(other) => errors.push(format!(
                        "the flows `{}` and `{}` run side by side and both give `{}`: rename one of the outputs",
                        other.shown, flow.shown, output.title
                    )),
                    None => {
                        gives.insert(&*output.title, flow);
                    }
                }
            }
            for input in &flow.inputs {
                let (other, same) = *takes.entry(&*input.title).or_insert((flow, input));
                if !same.ty.is_same_as(&input.ty) {
                    errors.push(format!(
                        "the flows `{}` and `{}` run side by side and take `{}` as {} and as {}",
                        other.shown, flow.shown, input.title, same.ty, input.ty
                    ));
                }
            }
        }
        for error in errors {
            self.report(id, Diagnostic::error(error).at(self.span(id, "subflows")));
        }
    }

    /// Checks a node that catches failures: every output has a value then, and no name of it is taken.
    pub(super) fn catches(&mut self, id: ComponentId) {
        let node = self.component(id);
        let Some(flow) = node.child("subflow").or_else(|| node.child("flow")).map(|flow| self.component(flow)) else {
            return;
        };
        let is_plugin = &*node.component_type == "PluginCatchExceptionNode";
        let catches = node.branches.iter().any(|branch| matches!(&**branch, CAUGHT | DEFAULT_EXCEPTION));
        let of_classes = node.value("except_on").and_then(Value::as_object).into_iter().flat_map(Object::iter);
        let of_classes: Vec<&str> = of_classes.filter_map(|(_, branch)| branch.as_text()).collect();
        let said = if &*node.component_type == "CatchExceptionNode" {
            &EXCEPTION_OUTPUTS[..1]
        } else {
            &EXCEPTION_OUTPUTS[1..]
        };
        let mut errors = Vec::new();
        for title in said.iter().filter(|title| flow.output(title).is_some()) {
            let message = format!("the flow `{}` has an output `{title}`, which the node itself gives", flow.shown);
            errors.push(Diagnostic::error(message).at(self.span(id, "subflow")).help("rename the output of the flow"));
        }
        for output in node.outputs.iter().filter(|_| catches) {
            let is_said = said.iter().any(|title| **title == *output.title);
            // The reference runtime gives what is empty of its type.
            let has_value = output.default.is_some() || (is_plugin && empty_value(&output.ty).is_some());
            if !has_value && !is_said {
                let message =
                    format!("the output `{}` needs a default, which it has when a failure is caught", output.title);
                errors.push(Diagnostic::error(message).at(&output.span).help("write the `default` in `outputs`"));
            }
        }
        let branches = |end: &&ComponentId| {
            let is_taken = |name: &str| matches!(name, CAUGHT | DEFAULT_EXCEPTION) || of_classes.contains(&name);
            self.component(**end).text("branch_name").is_some_and(is_taken)
        };
        for end in flow.children("nodes").unwrap_or_default().iter().filter(branches) {
            let name = self.component(*end).text("branch_name").unwrap_or_default();
            let message =
                format!("the flow `{}` can be left by `{name}`, which is the branch of a caught failure", flow.shown);
            errors.push(
                Diagnostic::error(message).at(self.span(*end, "branch_name")).help("give the EndNode another branch"),
            );
        }
        for error in errors {
            self.report(id, error);
        }
    }

    /// Checks a manager and its workers.
    pub(super) fn team(&mut self, id: ComponentId) {
        let team = self.component(id);
        let workers = team.children("workers").unwrap_or_default();
        if workers.is_empty() {
            let error = Diagnostic::error("there is no worker").at(self.span(id, "workers"));
            self.report(id, error.help("add one, or write the manager alone: an `Agent`"));
        }
        if team.child("group_manager").is_some_and(|manager| workers.contains(&manager)) {
            let error = Diagnostic::error("the manager is one of the workers").at(self.span(id, "workers"));
            self.report(id, error.help("take it out of `workers`"));
        }
    }

    /// Warns of what the agent of the reference runtime has and means nothing here.
    pub(super) fn extended_agent(&mut self, id: ComponentId) {
        let agent = self.component(id);
        let is_true = |field: &str| matches!(agent.value(field), Some(Value::Bool(true)));
        let mut warnings = Vec::new();
        if agent.text("initial_message").is_some_and(|text| !USUAL_MESSAGES.contains(&text)) {
            warnings.push(("initial_message", "is not said: an agent here speaks after its user"));
        }
        if is_true("can_finish_conversation") {
            warnings.push(("can_finish_conversation", "changes nothing: an agent here is done when it has answered"));
        }
        if is_true("strict_output_validation") {
            warnings
                .push(("strict_output_validation", "changes nothing: outputs are converted as the specification says"));
        }
        let template = agent.value("agent_template").and_then(Value::as_object);
        if template.is_some_and(|template| template.get("native_tool_calling") == Some(&Value::Bool(false))) {
            warnings.push((
                "agent_template",
                "describes calls of tools as texts, which is left out: tools are called through the interface of the \
                 provider",
            ));
        }
        for (field, problem) in warnings {
            self.report(id, Diagnostic::warning(format!("`{field}` {problem}")).at(self.span(id, field)));
        }
    }

    /// Checks who may turn to whom.
    pub(super) fn swarm(&mut self, id: ComponentId) {
        let swarm = self.component(id);
        let pairs = match (swarm.pieces.get("relationships"), swarm.value("relationships")) {
            (Some(Piece::List(pairs)), _) => pairs.as_slice(),
            (_, Some(Value::List(list))) if list.is_empty() => &[],
            _ => {
                let error = Diagnostic::error("`relationships` must be written in the configuration itself");
                self.report(id, error.at(self.span(id, "relationships")));
                return;
            }
        };
        let mut errors = Vec::new();
        for (place, pair) in pairs.iter().enumerate() {
            let agents = pair.components();
            let are_agents = agents
                .iter()
                .all(|agent| Schema::get().is_in(&self.component(*agent).component_type, "AgenticComponent"));
            if agents.len() != 2 || !are_agents {
                errors.push(format!("relationship {} does not name two agents: who asks, and who is asked", place + 1));
            }
        }
        if pairs.is_empty() {
            errors
                .push("no agent may turn to another: write who may in `relationships`, or write an `Agent`".to_owned());
        }
        for error in errors {
            self.report(id, Diagnostic::error(error).at(self.span(id, "relationships")));
        }
    }
}
