//! Variables: what the nodes of a flow of the reference runtime write and read beside the data flow.

use hotcell_graph::ir::{Action, Drawn, Expression, Node, Update};
use hotcell_graph::{Key, List, Value, closest};

use super::Lowering;
use super::data::{Variable, typed};
use super::site::Site;
use crate::agent_spec::model::{Component, Property};
use crate::agent_spec::properties::described;

impl<'c> Lowering<'c> {
    /// The variables of a flow. Their keys are none of the `names`.
    pub(super) fn variables(&mut self, flow: &'c Component, names: &[&str]) -> Vec<Variable> {
        let mut variables: Vec<Variable> = Vec::new();
        for value in flow.value("state").and_then(Value::as_list).into_iter().flat_map(List::iter) {
            let property = match described(value, &flow.span) {
                Ok(property) => property,
                Err(problem) => {
                    self.refuse_field(flow, "state", format!("a variable in `state`: {problem}"));
                    continue;
                }
            };
            if variables.iter().any(|known| known.property.title == property.title) {
                self.refuse_field(flow, "state", format!("`state` has two variables `{}`", property.title));
                continue;
            }
            let mut key = format!("state.{}", property.title);
            while names.contains(&&*key) || variables.iter().any(|known| *known.key == *key) {
                key.push('\'');
            }
            variables.push(Variable { property, key: Key::from(key) });
        }
        variables
    }

    /// A node that writes variables and then reads some.
    pub(super) fn variable_node(&mut self, site: &Site<'_, 'c>) -> Option<Node> {
        let component = site.component;
        let is_one = &*component.component_type != "PluginVariableNode";
        let operations = component.value("write_operations").and_then(Value::as_object);
        let operation = |title: &str| match is_one {
            true => component.text("operation"),
            false => operations.and_then(|operations| operations.get(title)?.as_text()),
        };
        let (writes, reads) = match &*component.component_type {
            "PluginReadVariableNode" => (Vec::new(), self.accessed(site, "variable")?),
            "PluginWriteVariableNode" => (self.accessed(site, "variable")?, Vec::new()),
            _ => (self.accessed(site, "write_variables")?, self.accessed(site, "read_variables")?),
        };
        let mut updates: Vec<Update> = Vec::new();
        for variable in writes {
            let title = &variable.property.title;
            let name = if is_one { "value" } else { &**title };
            let current = || Expression::Key(variable.key.clone());
            let nothing = || Expression::Value(Value::List(List::default()));
            let input = site.input(name);
            let value = match operation(title) {
                Some("insert") => {
                    let list = Expression::Else(Box::new(current()), Box::new(nothing()));
                    Expression::Drawn(Box::new(Drawn::Appended(list, input)))
                }
                Some("merge") => {
                    let merged = Expression::Drawn(Box::new(Drawn::Merged(current(), input.clone())));
                    Expression::Else(Box::new(merged), Box::new(input))
                }
                Some(_) => input,
                None if is_one => input,
                None => {
                    let problem = format!(
                        "`write_operations` does not say how `{title}` is written: `overwrite`, `merge` or `insert`"
                    );
                    self.refuse(component, problem);
                    return None;
                }
            };
            updates.push(Update { key: variable.key.clone(), value: typed(&variable.property, "variable", value) });
        }
        // What is read is what was just written.
        let read = |property: &Property| {
            let name = site.unmapped("output_mapping", &property.title);
            let variable = reads.iter().find(|variable| is_one || variable.property.title == name);
            let key = variable.map(|variable| variable.key.clone()).unwrap_or_else(|| Key::from(""));
            let written = updates.iter().find(|update| update.key == key).map(|update| update.value.clone());
            written.unwrap_or(Expression::Key(key))
        };
        let outputs = site.outputs(&read);
        updates.extend(outputs);
        Some(site.node(Action::Pass, updates))
    }

    /// The variables of the flow that a field of a node names; none, with a reason, if there is not each of them.
    fn accessed<'f>(&mut self, site: &Site<'f, 'c>, field: &str) -> Option<Vec<&'f Variable>> {
        let named: Vec<&Value> = match site.component.value(field) {
            Some(Value::List(list)) => list.iter().collect(),
            Some(value) => vec![value],
            None => Vec::new(),
        };
        let mut variables = Vec::new();
        for value in named {
            let title = value.as_object().and_then(|value| value.get("title")?.as_text()).unwrap_or_default();
            let all = &site.frame.variables;
            match all.iter().find(|variable| &*variable.property.title == title) {
                Some(variable) => variables.push(variable),
                None => {
                    let near = closest(title, all.iter().map(|variable| &*variable.property.title));
                    let near = match near {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => "declare it in `state` of the `ExtendedFlow` in which the node is".to_owned(),
                    };
                    let problem = format!("the flow has no variable `{title}`: {near}");
                    self.refuse_field(site.component, field, problem);
                    return None;
                }
            }
        }
        Some(variables)
    }
}
