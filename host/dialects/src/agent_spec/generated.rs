//! The inputs, outputs and branches that follow from a component's own configuration.

use std::collections::HashSet;
use std::sync::Arc;

use hotcell_graph::types::{Type, schema_at};
use hotcell_graph::{List, Object, Value};
use indexmap::IndexSet;

use super::model::{Component, ComponentId, Piece, Property};
use super::placeholders;
use super::prompts;
use super::properties::{of_schema, text};
use super::templates;
use super::versions::Version;

/// The branch of a node that just goes on, and the one that an end gives its flow where it says nothing.
pub(super) const NEXT: &str = "next";
/// The branch by which a node is left that caught a failure.
pub(super) const CAUGHT: &str = "caught_exception_branch";
/// The same of the node of the reference runtime.
pub(super) const DEFAULT_EXCEPTION: &str = "default_exception_branch";
/// What nodes that catch failures say of them.
pub(super) const EXCEPTION_OUTPUTS: &[&str] = &["caught_exception_info", "exception_name", "exception_payload_name"];
/// The branch of a branching node whose mapping has no entry for its input.
pub(super) const DEFAULT: &str = "default";

/// What a configuration implies; none where it implies nothing, so that whatever is declared is right.
#[derive(Clone, Debug, Default)]
pub(super) struct Generated {
    pub(super) inputs: Option<Vec<Property>>,
    pub(super) outputs: Option<Vec<Property>>,
    pub(super) branches: Option<Vec<Arc<str>>>,
}

/// Which of its properties a component declares.
#[derive(Clone, Copy, Debug)]
pub(super) struct Declared {
    pub(super) inputs: bool,
    pub(super) outputs: bool,
}

/// Finds other components, all of which are complete.
pub(super) type Find<'c> = dyn Fn(ComponentId) -> &'c Component + 'c;

/// What the configuration of a component of the specification implies. Its declared inputs and outputs are in it.
pub(super) fn of<'c>(
    component: &Component,
    declared: Declared,
    find: &Find<'c>,
    version: Version,
    renders_jinja: bool,
) -> Generated {
    let next = || Some(vec![Arc::from(NEXT)]);
    let texts = |names: Vec<&str>| Some(names.into_iter().map(|name| text(name, &component.span)).collect());
    let is_jinja = templates::are_jinja(&component.component_type, renders_jinja);
    let in_field =
        |field: &str| Some(templates::inputs(component.text(field).unwrap_or_default(), is_jinja, &component.span));
    // The single property may have any name.
    let one = |declared: &[Property], name: &str| match declared {
        [only] => Some(vec![text(&only.title, &component.span)]),
        _ => Some(vec![text(name, &component.span)]),
    };
    let child = |field: &str| component.child(field).map(find);
    match &*component.component_type {
        "Agent" | "ExtendedAgent" => Generated { inputs: in_field("system_prompt"), ..Generated::default() },
        "AgentSpecializationParameters" => {
            Generated { inputs: in_field("additional_instructions"), ..Generated::default() }
        }
        "SpecializedAgent" => {
            let parts = [child("agent"), child("agent_specialization_parameters")];
            let inputs = united(parts.into_iter().flatten().map(|part| &part.inputs[..]));
            Generated {
                inputs: Some(inputs),
                outputs: child("agent").map(|agent| agent.outputs.clone()),
                branches: None,
            }
        }
        "ManagerWorkers" | "PluginManagerWorkers" => {
            let manager = child("group_manager");
            let of_manager = |declared: bool, side: fn(&Component) -> &Vec<Property>| {
                (!declared).then(|| manager.map(|manager| side(manager).clone())).flatten()
            };
            Generated {
                inputs: of_manager(declared.inputs, |manager| &manager.inputs),
                outputs: of_manager(declared.outputs, |manager| &manager.outputs),
                branches: None,
            }
        }
        "Swarm" | "PluginSwarm" => {
            let pairs = component.pieces.get("relationships").map(Piece::components).unwrap_or_default();
            let agents = component.child("first_agent").into_iter().chain(pairs).map(find);
            let inputs = (!declared.inputs).then(|| united(agents.map(|agent| &agent.inputs[..])));
            Generated { inputs, ..Generated::default() }
        }
        "Flow" | "ExtendedFlow" => flow(component, find),
        "RemoteTool" => Generated { inputs: texts(request(component)), ..Generated::default() },
        "ApiNode" => Generated { inputs: texts(request(component)), branches: next(), ..Generated::default() },
        "LlmNode" => {
            let is_open = version > Version::V25_4_1 && declared.outputs && !component.outputs.is_empty();
            let outputs = if is_open { None } else { one(&component.outputs, "generated_text") };
            Generated { inputs: in_field("prompt_template"), outputs, branches: next() }
        }
        "AgentNode" => of_child(child("agent"), next()),
        "ToolNode" => of_child(child("tool"), next()),
        "FlowNode" => {
            let subflow = child("subflow");
            of_child(subflow, subflow.map(|flow| ends(flow, find)))
        }
        "MapNode" | "ParallelMapNode" => match child("subflow") {
            Some(subflow) => map(component, subflow),
            None => Generated { branches: next(), ..Generated::default() },
        },
        "StartNode" => Generated { branches: next(), ..mirrored(component, declared) },
        "EndNode" => Generated { branches: Some(Vec::new()), ..mirrored(component, declared) },
        "BranchingNode" => Generated {
            inputs: one(&component.inputs, "branching_mapping_key"),
            outputs: Some(Vec::new()),
            branches: Some(mapped(component)),
        },
        "InputMessageNode" => {
            Generated { inputs: in_field("message"), outputs: one(&component.outputs, "user_input"), branches: next() }
        }
        "ParallelFlowNode" | "ExtendedParallelFlowNode" => {
            let flows = component.children("subflows").or_else(|| component.children("flows")).unwrap_or_default();
            let flows: Vec<&Component> = flows.iter().map(|id| find(*id)).collect();
            Generated {
                inputs: Some(outside(component, "input_mapping", united(flows.iter().map(|flow| &flow.inputs[..])))),
                outputs: Some(outside(component, "output_mapping", united(flows.iter().map(|flow| &flow.outputs[..])))),
                branches: next(),
            }
        }
        "CatchExceptionNode" => catching(component, child("subflow"), find, &EXCEPTION_OUTPUTS[..1], &[CAUGHT]),
        "PluginCatchExceptionNode" => {
            let all = matches!(component.value("catch_all_exceptions"), Some(Value::Bool(true)));
            let mut branches: Vec<&str> = all.then_some(DEFAULT_EXCEPTION).into_iter().collect();
            // They are refused later under their own name, and not as branches that nobody knows.
            let of_classes = component.value("except_on").and_then(Value::as_object).into_iter().flat_map(Object::iter);
            for branch in of_classes.filter_map(|(_, branch)| branch.as_text()) {
                if !branches.contains(&branch) {
                    branches.push(branch);
                }
            }
            catching(component, child("flow"), find, &EXCEPTION_OUTPUTS[1..], &branches)
        }
        "ExtendedToolNode" => of_child(child("tool"), next()).outside(component),
        "ExtendedAgentNode" => {
            let mut generated = of_child(child("agent"), next()).outside(component);
            if declared.outputs {
                generated.outputs = None;
            }
            generated
        }
        "ExtendedLlmNode" => Generated {
            inputs: match component.value("prompt_template_object") {
                Some(object) => Some(prompts::inputs(object, &component.span)),
                None => in_field("prompt_template"),
            },
            outputs: if declared.outputs { None } else { one(&[], "output") },
            branches: next(),
        }
        .outside(component),
        "PluginInputMessageNode" => {
            let field = if component.text("message_template").is_some() { "message_template" } else { "message" };
            let outputs = one(&component.outputs, "user_provided_input");
            Generated { inputs: in_field(field), outputs, branches: next() }.outside(component)
        }
        "PluginOutputMessageNode" => {
            let field = if component.text("message").is_some() { "message" } else { "message_template" };
            let hidden = matches!(component.value("expose_message_as_output"), Some(Value::Bool(false)));
            let outputs = if hidden { Some(Vec::new()) } else { one(&component.outputs, "output_message") };
            Generated { inputs: in_field(field), outputs, branches: next() }.outside(component)
        }
        "PluginTemplateNode" => {
            let outputs = one(&component.outputs, "output");
            Generated { inputs: in_field("template"), outputs, branches: next() }.outside(component)
        }
        "PluginConstantValuesNode" => {
            let values = component.value("constant_values").and_then(Value::as_object);
            let outputs = values.into_iter().flat_map(Object::iter);
            let outputs = outputs.filter_map(|(name, value)| of_schema(name, &schema_of(value), &component.span).ok());
            Generated { inputs: Some(Vec::new()), outputs: Some(outputs.collect()), branches: next() }
                .outside(component)
        }
        "OutputMessageNode" => Generated { inputs: in_field("message"), outputs: Some(Vec::new()), branches: next() },
        _ => Generated::default(),
    }
}

/// Whether the output of an LlmNode is the reply as it is, and not what is read out of it.
pub(super) fn gives_text(llm_node: &Component, version: Version) -> bool {
    match &llm_node.outputs[..] {
        // The first version knows nothing else, also where the type has room for more than a text.
        [only] if version == Version::V25_4_1 => Type::text().converts_to(&only.ty),
        [only] => only.ty.is_text(),
        _ => false,
    }
}

impl Generated {
    /// With the names by which a node of the reference runtime shows them.
    pub(super) fn outside(self, component: &Component) -> Self {
        Generated {
            inputs: self.inputs.map(|inputs| outside(component, "input_mapping", inputs)),
            outputs: self.outputs.map(|outputs| outside(component, "output_mapping", outputs)),
            branches: self.branches,
        }
    }
}

/// Properties under the names that a mapping of a component gives them.
fn outside(component: &Component, mapping: &str, properties: Vec<Property>) -> Vec<Property> {
    let Some(mapping) = component.value(mapping).and_then(Value::as_object) else { return properties };
    let renamed = |property: Property| match mapping.get(&property.title).and_then(Value::as_text) {
        Some(name) => of_schema(name, &property.schema, &property.span).unwrap_or(property),
        None => property,
    };
    properties.into_iter().map(renamed).collect()
}

/// Properties of several lists, each name once.
fn united<'p>(lists: impl Iterator<Item = &'p [Property]>) -> Vec<Property> {
    let mut known: HashSet<&str> = HashSet::new();
    lists.flatten().filter(|property| known.insert(&*property.title)).cloned().collect()
}

/// The schema of values like this one.
fn schema_of(value: &Value) -> Value {
    let name = match value {
        Value::Text(_) => "string",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_integer() => "integer",
        Value::Number(_) => "number",
        Value::List(_) => "array",
        Value::Object(_) => "object",
        Value::Null => "null",
    };
    Value::Object(std::iter::once((Arc::from("type"), name.into())).collect())
}

/// A node that runs a flow and catches its failures: what the flow gives, and what is said of a failure.
fn catching<'c>(
    component: &Component,
    flow: Option<&'c Component>,
    find: &Find<'c>,
    said: &[&str],
    caught: &[&str],
) -> Generated {
    let mut outputs = flow.map(|flow| flow.outputs.clone()).unwrap_or_default();
    let of_type = |name: &str| Value::Object(std::iter::once((Arc::from("type"), name.into())).collect());
    let schema: Object = if &*component.component_type == "CatchExceptionNode" {
        let members: List = [of_type("string"), of_type("null")].into_iter().collect();
        [(Arc::from("anyOf"), Value::List(members)), (Arc::from("default"), Value::Null)].into_iter().collect()
    } else {
        [(Arc::from("type"), Value::from("string")), (Arc::from("default"), Value::from(""))].into_iter().collect()
    };
    let schema = Value::Object(schema);
    outputs.extend(said.iter().filter_map(|title| of_schema(title, &schema, &component.span).ok()));
    let branches =
        flow.map(|flow| ends(flow, find).into_iter().chain(caught.iter().map(|branch| Arc::from(*branch))).collect());
    Generated { inputs: flow.map(|flow| flow.inputs.clone()), outputs: Some(outputs), branches }.outside(component)
}

fn of_child(child: Option<&Component>, branches: Option<Vec<Arc<str>>>) -> Generated {
    Generated {
        inputs: child.map(|child| child.inputs.clone()),
        outputs: child.map(|child| child.outputs.clone()),
        branches,
    }
}

/// What is declared on one side only is on the other too.
fn mirrored(component: &Component, declared: Declared) -> Generated {
    let given = if declared.inputs { &component.inputs } else { &component.outputs };
    let other = if declared.outputs { &component.outputs } else { &component.inputs };
    Generated { inputs: Some(other.clone()), outputs: Some(given.clone()), branches: None }
}

/// The placeholders of a request over HTTP.
fn request(component: &Component) -> Vec<&str> {
    let mut names = IndexSet::new();
    for field in ["url", "http_method", "api_spec_uri", "data", "query_params", "headers"] {
        if let Some(value) = component.value(field) {
            placeholders::names_in(value, &mut names);
        }
    }
    names.into_iter().take(placeholders::MOST).collect()
}

fn flow<'c>(component: &Component, find: &Find<'c>) -> Generated {
    let inputs = component.child("start_node").map(find).map(|start| start.inputs.clone());
    let ends: Vec<&Component> = end_nodes(component, find).collect();
    let mut outputs = Vec::new();
    if let Some((first, others)) = ends.split_first() {
        for output in &first.outputs {
            let found: Vec<&Property> = others.iter().filter_map(|end| end.output(&output.title)).collect();
            if found.len() < others.len() {
                continue;
            }
            let agree = found.iter().all(|other| other.default == output.default);
            outputs.push(if agree { output.clone() } else { without_default(output) });
        }
    }
    Generated { inputs, outputs: Some(outputs), branches: None }
}

/// The end nodes of a flow.
pub(super) fn end_nodes<'c, 'f>(flow: &'f Component, find: &'f Find<'c>) -> impl Iterator<Item = &'c Component> + 'f {
    let nodes = flow.children("nodes").unwrap_or_default();
    nodes.iter().map(|id| find(*id)).filter(|node| &*node.component_type == "EndNode")
}

/// The branches by which a flow can be left.
pub(super) fn ends<'c>(flow: &Component, find: &Find<'c>) -> Vec<Arc<str>> {
    let mut branches: Vec<Arc<str>> = Vec::new();
    for end in end_nodes(flow, find) {
        let branch = end.text("branch_name").unwrap_or(NEXT);
        if !branches.iter().any(|known| **known == *branch) {
            branches.push(branch.into());
        }
    }
    branches
}

fn mapped(component: &Component) -> Vec<Arc<str>> {
    let mut branches: Vec<Arc<str>> = Vec::new();
    let mapping = component.value("mapping").and_then(Value::as_object);
    let values = mapping.into_iter().flat_map(Object::iter).filter_map(|(_, value)| value.as_text());
    for branch in values.chain([DEFAULT]) {
        if !branches.iter().any(|known| **known == *branch) {
            branches.push(branch.into());
        }
    }
    branches
}

/// How an output of a map's flow is collected; none if it is not.
pub(super) fn reducer<'m>(map: &'m Component, output: &str) -> Option<&'m str> {
    match map.value("reducers") {
        None => Some("append"),
        Some(reducers) => reducers.as_object()?.get(output)?.as_text(),
    }
}

fn map(component: &Component, subflow: &Component) -> Generated {
    let span = &component.span;
    let iterated = |input: &Property| {
        let inner = bare(input, &["default"]);
        let list = list_schema(&inner, "/anyOf/1");
        let members: List = [schema_at(&inner, "/anyOf/0"), list].into_iter().collect();
        let schema: Object = std::iter::once((Arc::from("anyOf"), Value::List(members))).collect();
        with_default(of_schema(&format!("iterated_{}", input.title), &Value::Object(schema), span), &input.default)
    };
    let collected = |output: &Property| {
        let reducer = reducer(component, &output.title)?;
        let title = format!("collected_{}", output.title);
        let schema = match reducer {
            "append" => list_schema(&bare(output, &["default"]), ""),
            // The average of integers is no integer.
            "average" => {
                let number: Object = std::iter::once((Arc::from("type"), Value::from("number"))).collect();
                Value::Object(number)
            }
            _ => bare(output, &["default", "title", "description"]),
        };
        of_schema(&title, &schema, span).ok()
    };
    Generated {
        inputs: Some(subflow.inputs.iter().filter_map(iterated).collect()),
        outputs: Some(subflow.outputs.iter().filter_map(collected).collect()),
        branches: Some(vec![NEXT.into()]),
    }
}

/// The schema of a property without some of its keywords.
fn bare(property: &Property, without: &[&str]) -> Value {
    let keywords = property.schema.as_object().into_iter().flat_map(Object::iter);
    let kept = keywords.filter(|(key, _)| !without.contains(&&***key));
    Value::Object(kept.map(|(key, value)| (Arc::clone(key), value.clone())).collect())
}

/// The schema of a list, which stands at `place` of another.
pub(super) fn list_schema(items: &Value, place: &str) -> Value {
    let items = schema_at(items, &format!("{place}/items"));
    let schema: Object = [(Arc::from("type"), Value::from("array")), (Arc::from("items"), items)].into_iter().collect();
    Value::Object(schema)
}

fn without_default(property: &Property) -> Property {
    Property { default: None, schema: bare(property, &["default"]), ..property.clone() }
}

/// The property with a default; none if its schema was none. What is made of schemas that are types is one too.
fn with_default(property: Result<Property, String>, default: &Option<Value>) -> Option<Property> {
    let mut property = property.ok()?;
    if let (Some(default), Value::Object(schema)) = (default, &mut property.schema) {
        schema.insert("default", default.clone());
        property.default = Some(default.clone());
    }
    Some(property)
}
