//! The nodes of the reference runtime's plugins that take values out of others, decide or remember: what follows from their
//! configuration.

use std::sync::Arc;

use hotcell_graph::types::Type;
use hotcell_graph::{List, Object, Value};
use indexmap::IndexSet;

use super::generated::{DEFAULT, Find, Generated, NEXT, ends, list_schema};
use super::model::{Component, Property};
use super::properties::{described, of_schema, text};
use super::{datastores, prompts, templates};

/// The branch of a node that tries a flow again and again, when none of its tries succeeded.
pub(super) const FAILURE: &str = "failure";
/// What such a node says of its tries.
pub(super) const TRIES: &str = "retry_step_num_retries";
pub(super) const SUCCEEDED: &str = "retry_step_success";
/// What a node gives that has a model choose its branch.
pub(super) const SELECTED: &str = "selected_choice";
pub(super) const SAID: &str = "llm_output";
/// What a node gives that looks at the conversation.
pub(super) const HISTORY: &str = "chat_history";
/// The input of a map of the reference runtime over whose items it runs.
pub(super) const ITERATED: &str = "iterated_input";
/// How often a flow is tried, and the most.
const USUAL_TRIES: usize = 5;
const MOST_TRIES: usize = 20;

/// Fields without which the reference runtime does not read a component, although they may be `null`.
pub(super) fn always_written(component_type: &str) -> &'static [&'static str] {
    match component_type {
        "PluginDatastoreListNode" => &["where", "limit", "unpack_single_entity_from_list"],
        "PluginInputMessageNode" => &["message_template"],
        _ => &[],
    }
}

/// What the configuration of such a node implies; none if a component is no such node.
pub(super) fn generated<'c>(component: &Component, find: &Find<'c>) -> Option<Generated> {
    let next = || Some(vec![Arc::from(NEXT)]);
    let texts = |names: &[&str]| Some(names.iter().map(|name| text(name, &component.span)).collect());
    let child = |field: &str| component.child(field).map(find);
    Some(match &*component.component_type {
        "PluginRegexNode" => {
            let all = matches!(component.value("return_first_match_only"), Some(Value::Bool(false)));
            let outputs = of_schema(
                "output",
                &if all { list_schema(&typed("string"), "") } else { typed("string") },
                &component.span,
            );
            Generated { inputs: texts(&["text"]), outputs: Some(outputs.into_iter().collect()), branches: next() }
                .outside(component)
        }
        "PluginExtractNode" => {
            let values = component.value("output_values").and_then(Value::as_object).into_iter().flat_map(Object::iter);
            let outputs = values.filter_map(|(name, _)| of_schema(name, &any(), &component.span).ok()).collect();
            Generated { inputs: texts(&["text"]), outputs: Some(outputs), branches: next() }.outside(component)
        }
        "PluginReadVariableNode" | "PluginWriteVariableNode" | "PluginVariableNode" => Generated {
            inputs: Some(variables(component, "write_variables", "PluginWriteVariableNode")),
            outputs: Some(variables(component, "read_variables", "PluginReadVariableNode")),
            branches: next(),
        }
        .outside(component),
        "ExtendedMapNode" | "ExtendedParallelMapNode" => {
            let unpacked = component.value("unpack_input").and_then(Value::as_object);
            let inputs = child("flow").zip(unpacked).map(|(flow, unpacked)| {
                let same = flow.inputs.iter().filter(|input| unpacked.get(&input.title).is_none()).cloned();
                same.chain(of_schema(ITERATED, &any(), &component.span)).collect()
            });
            Generated { inputs, outputs: None, branches: next() }.outside(component)
        }
        "PluginRetryNode" => {
            let flow = child("flow");
            let success = component.text("success_condition").unwrap_or_default();
            let given = flow.map(|flow| flow.outputs.iter().filter(move |output| *output.title != *success).cloned());
            let said = [(TRIES, "integer"), (SUCCEEDED, "boolean")];
            let said = said.into_iter().filter_map(|(title, ty)| of_schema(title, &typed(ty), &component.span).ok());
            let branches = flow.map(|flow| ends(flow, find)).into_iter().flatten().chain([Arc::from(FAILURE)]);
            Generated {
                inputs: flow.map(|flow| flow.inputs.clone()),
                outputs: Some(given.into_iter().flatten().chain(said).collect()),
                branches: Some(branches.collect()),
            }
            .outside(component)
        }
        "PluginChoiceNode" => {
            let template = component.text("prompt_template").filter(|text| !text.is_empty());
            let inputs = templates::inputs(template.unwrap_or(prompts::CHOICE), true, &component.span);
            let inputs = inputs.into_iter().filter(|input| &*input.title != prompts::CHOICES).collect();
            let choices = prompts::choices(component).into_iter().map(|choice| choice.branch).chain([DEFAULT]);
            let branches: IndexSet<&str> = choices.collect();
            let branches: Vec<Arc<str>> = branches.into_iter().map(Arc::from).collect();
            Generated { inputs: Some(inputs), outputs: texts(&[SELECTED, SAID]), branches: Some(branches) }
                .outside(component)
        }
        "PluginGetChatHistoryNode" => {
            let template = component.text("output_template").unwrap_or_default();
            let inputs = templates::inputs(template, true, &component.span);
            let inputs = inputs.into_iter().filter(|input| &*input.title != HISTORY).collect();
            let is_list = component.value("output_template") == Some(&Value::Null);
            let schema = if is_list { list_schema(&any(), "") } else { typed("string") };
            let outputs = of_schema(HISTORY, &schema, &component.span).into_iter().collect();
            Generated { inputs: Some(inputs), outputs: Some(outputs), branches: next() }.outside(component)
        }
        _ => return datastores::generated(component),
    })
}

/// How often a node tries its flow.
pub(super) fn tries(component: &Component) -> usize {
    match component.value("max_num_trials") {
        Some(Value::Number(number)) => (number.to_f64() as usize).clamp(1, MOST_TRIES),
        _ => USUAL_TRIES,
    }
}

/// The classes of exceptions that a node catches, each with its branch.
pub(super) fn classes(component: &Component) -> impl Iterator<Item = (&str, &str)> {
    let classes = component.value("except_on").and_then(Value::as_object).into_iter().flat_map(Object::iter);
    classes.filter_map(|(class, branch)| Some((&**class, branch.as_text()?)))
}

/// The value of a type that stands for nothing, where the reference runtime has one.
pub(super) fn empty_value(ty: &Type) -> Option<Value> {
    let empty = [
        Value::from(""),
        Value::from(0_i64),
        Value::Bool(false),
        Value::List(List::default()),
        Value::Object(Object::default()),
        Value::Null,
    ];
    empty.into_iter().find(|value| ty.fits(value))
}

/// The schema of anything.
fn any() -> Value {
    Value::Object(Object::default())
}

/// The schema of a type.
fn typed(name: &str) -> Value {
    Value::Object(std::iter::once((Arc::from("type"), name.into())).collect())
}

/// The variables that a node writes or reads, as its inputs or outputs. A node for one variable calls it `value`.
fn variables(component: &Component, field: &str, single: &str) -> Vec<Property> {
    let span = &component.span;
    if &*component.component_type != "PluginVariableNode" {
        let is_it = &*component.component_type == single;
        let variable = component.value("variable").filter(|_| is_it);
        let insert = component.text("operation") == Some("insert");
        let schema = variable.map(|variable| if insert { items_of(variable) } else { variable.clone() });
        return schema.and_then(|schema| of_schema("value", &schema, span).ok()).into_iter().collect();
    }
    let listed = component.value(field).and_then(Value::as_list).into_iter().flat_map(List::iter);
    let operations = component.value("write_operations").and_then(Value::as_object);
    let one = |variable: &Value| {
        let property = described(variable, span).ok()?;
        let operation = operations.and_then(|operations| operations.get(&property.title)?.as_text());
        let is_inserted = field == "write_variables" && operation == Some("insert");
        if is_inserted { of_schema(&property.title, &items_of(variable), span).ok() } else { Some(property) }
    };
    listed.filter_map(one).collect()
}

/// The schema of the items of a list.
fn items_of(schema: &Value) -> Value {
    schema.as_object().and_then(|schema| schema.get("items")).cloned().unwrap_or_else(any)
}
