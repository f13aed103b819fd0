//! Nodes of the reference runtime that take values out of texts and lists.

use hotcell_graph::ir::{
    Action, Collect, Drawn, Expression, GraphItems, Iterate, Node, Reduction, Rounds, SearchFlags, SearchPattern,
    ValuePath, WhichMatch,
};
use hotcell_graph::{Object, Value};

use super::site::Site;
use super::{ANSWER, Lowering};
use crate::agent_spec::model::{Component, Property};
use crate::agent_spec::wayflow::ITERATED;

/// The bits of the flags that patterns may have, as Python numbers them; 32 is what they have anyway.
const IGNORES_CASE: u64 = 2;
const BY_LINE: u64 = 8;
const DOT_IS_ALL: u64 = 16;
const UNICODE: u64 = 32;
const IS_VERBOSE: u64 = 64;

/// Paths into one text or list, which is read for each of them.
const MOST_PATHS: usize = 100;

impl<'c> Lowering<'c> {
    /// A node that searches a text for a pattern.
    pub(super) fn regex_node(&mut self, site: &Site<'_, 'c>) -> Option<Node> {
        let component = site.component;
        let written = component.value("regex_pattern")?;
        let entry = |name: &str| written.as_object().and_then(|object| object.get(name));
        let expression = written.as_text().or_else(|| entry("pattern")?.as_text()).unwrap_or_default();
        let bits = match entry("flags") {
            Some(Value::Number(number)) => number.to_f64() as u64,
            _ => 0,
        };
        if bits & !(IGNORES_CASE | BY_LINE | DOT_IS_ALL | UNICODE | IS_VERBOSE) != 0 {
            let problem = format!(
                "the flags {bits} of a pattern are not supported: those of `IGNORECASE` (2), `MULTILINE` (8), `DOTALL` (16) \
                 and `VERBOSE` (64) are"
            );
            self.refuse_field(component, "regex_pattern", problem);
            return None;
        }
        let flags = SearchFlags {
            ignores_case: bits & IGNORES_CASE != 0,
            by_line: bits & BY_LINE != 0,
            dot_is_all: bits & DOT_IS_ALL != 0,
            is_verbose: bits & IS_VERBOSE != 0,
        };
        let pattern = match SearchPattern::new(expression, flags) {
            Ok(pattern) => pattern,
            Err(problem) => {
                self.refuse_field(
                    component,
                    "regex_pattern",
                    format!("`regex_pattern` cannot be used here: {problem}"),
                );
                return None;
            }
        };
        let all = matches!(component.value("return_first_match_only"), Some(Value::Bool(false)));
        let which = match entry("match").and_then(Value::as_text) {
            _ if all => WhichMatch::All,
            Some("last") => WhichMatch::Last,
            _ => WhichMatch::First,
        };
        let found = Expression::Drawn(Box::new(Drawn::Matches { text: site.input("text"), pattern, which }));
        Some(site.node(Action::Pass, site.outputs(&|_| found.clone())))
    }

    /// A node that takes values out of the JSON in a text.
    pub(super) fn extract_node(&mut self, site: &Site<'_, 'c>) -> Option<Node> {
        let component = site.component;
        if matches!(component.value("retry"), Some(Value::Bool(true))) {
            let problem = "`retry: true` is not supported: ask for the JSON again with an `LlmNode`, by a branch";
            self.refuse_field(component, "retry", problem);
            return None;
        }
        let values = component.value("output_values").and_then(Value::as_object)?;
        let paths = self.paths(component, "output_values", values)?;
        let text = site.input("text");
        let value = |property: &Property| {
            let name = site.unmapped("output_mapping", &property.title);
            match paths.iter().find(|(known, _)| **known == *name) {
                Some((_, path)) => {
                    Expression::Drawn(Box::new(Drawn::InJson { text: text.clone(), path: path.clone() }))
                }
                None => Expression::Key("".into()),
            }
        };
        Some(site.node(Action::Pass, site.outputs(&value)))
    }

    /// The paths in an object; none, with a reason, if one is more than a path.
    fn paths<'v>(
        &mut self,
        component: &Component,
        field: &str,
        object: &'v Object,
    ) -> Option<Vec<(&'v str, ValuePath)>> {
        if object.len() > MOST_PATHS {
            self.refuse_field(component, field, format!("`{field}` has more than {MOST_PATHS} paths"));
            return None;
        }
        let mut paths = Vec::new();
        for (name, text) in object.iter() {
            let text = text.as_text().unwrap_or_default();
            let Some(path) = ValuePath::parse(text) else {
                let problem = format!(
                    "`{text}` in `{field}` is not supported: a path such as `.a.b[0]` is, and nothing else of jq"
                );
                self.refuse_field(component, field, problem);
                return None;
            };
            paths.push((&**name, path));
        }
        Some(paths)
    }

    /// A node that runs a flow for each item of a list, with parts of the item as inputs.
    pub(super) fn extended_map_node(&mut self, site: &Site<'_, 'c>) -> Option<Node> {
        let component = site.component;
        let id = component.child("flow")?;
        let flow = self.component(id);
        let unpacked = component.value("unpack_input").and_then(Value::as_object).filter(|object| !object.is_empty());
        let Some(unpacked) = unpacked else {
            let problem = "`unpack_input` says nothing: write which part of an item is which input of the flow, such as \
                           `{\"name\": \".\"}`";
            self.refuse(component, problem);
            return None;
        };
        let paths = self.paths(component, "unpack_input", unpacked)?;
        if let Some((name, _)) = paths.iter().find(|(name, _)| flow.input(name).is_none()) {
            let problem = format!("`unpack_input` names `{name}`, and the flow `{}` has no such input", flow.shown);
            self.refuse_field(component, "unpack_input", problem);
            return None;
        }
        let unknown = component.outputs.iter().find(|output| {
            let name = site.unmapped("output_mapping", &output.title);
            flow.output(&name).is_none()
        });
        if let Some(output) = unknown {
            let problem = format!("`{}` is not an output of the flow `{}`: declare it there", output.title, flow.shown);
            self.refuse(component, problem);
            return None;
        }
        let graph = self.callable(id);
        let list = site.input(ITERATED);
        let mut inputs = Vec::new();
        for input in &flow.inputs {
            let (value, rounds, name) = match paths.iter().find(|(name, _)| **name == *input.title) {
                Some((_, path)) => {
                    let each = Drawn::Each { list: list.clone(), path: path.clone() };
                    (Expression::Drawn(Box::new(each)), Rounds::Each, ITERATED.into())
                }
                // What nothing gives has the default of the flow.
                None if component.input(&site.mapped("input_mapping", &input.title)).is_none() => continue,
                None => (site.input(&input.title), Rounds::Same, input.title.clone()),
            };
            inputs.push(Iterate { key: input.title.clone(), value, ty: input.ty.clone(), name, rounds: Some(rounds) });
        }
        let collect = component.outputs.iter().map(|output| {
            let output = site.unmapped("output_mapping", &output.title);
            Collect { output: output.clone(), into: output, how: Reduction::Append, default: None }
        });
        let items = GraphItems {
            graph,
            inputs,
            collect: collect.collect(),
            conversation: Some(site.frame.keys.conversation.clone()),
            bind: ANSWER,
        };
        let is_parallel = &*component.component_type == "ExtendedParallelMapNode"
            || matches!(component.value("parallel_execution"), Some(Value::Bool(true)));
        let workers = match component.value("max_workers") {
            Some(Value::Number(number)) => Some(number.to_f64() as usize),
            _ => None,
        };
        let at_a_time = if is_parallel { workers } else { Some(1) };
        Some(site.node(Action::Map(items.at_a_time(at_a_time)), site.outputs(&site.entries())))
    }
}
