//! Tools that a model may call, as tools of the server that runs the agent.

use hotcell_graph::Value;
use hotcell_graph::ir::{Callable, Node};
use hotcell_graph::types::Type;
use serde_json::{Map, Value as Json, json};

use super::{Exporter, RESULT, component};

/// A tool as models are told about it.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribedTool {
    /// What they call it
    pub name: String,
    /// What it does
    pub description: String,
    /// The JSON schema of its arguments
    pub parameters: Json,
    /// How it is found beside the configuration
    pub found: Found,
}

/// How the tool of a configuration is found by whoever runs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// By its name
    ByName,
    /// By what an operator says that the name means
    BySaying(String),
    /// Whoever runs it has to know it
    Elsewhere,
}

/// Parts of a schema of arguments that change nothing about which arguments there are.
const OF_NO_MATTER: &[&str] =
    &["type", "properties", "required", "title", "description", "additionalProperties", "$schema"];

impl Exporter<'_> {
    /// What the model of a node may call.
    pub(super) fn tools(
        &mut self,
        node: &Node,
        offered: &[Callable],
        describe: &dyn Fn(&str) -> Option<DescribedTool>,
    ) -> Vec<Json> {
        let mut tools = Vec::new();
        let mut names: Vec<String> = Vec::new();
        for (place, one) in offered.iter().enumerate() {
            if offered[..place].contains(one) {
                continue;
            }
            let Callable::Tool(name) = one else {
                self.problem(node, other(one));
                continue;
            };
            let Some(described) = describe(name) else {
                self.problem(node, format!("offers the tool `{name}`, whose parameters are not known"));
                continue;
            };
            if names.contains(&described.name) {
                let spoken = &described.name;
                self.problem(node, format!("offers several tools that its model knows as `{spoken}`"));
            }
            let spoken = &described.name;
            match &described.found {
                Found::ByName => {}
                Found::BySaying(said) => self.difference(
                    node,
                    &format!(
                        "offers `{said}` as `{spoken}`, which is to be said beside the configuration: below `[imports]` in \
                         `hotcell.toml`, `\"{spoken}\" = \"{said}\"`"
                    ),
                ),
                Found::Elsewhere => self.difference(
                    node,
                    &format!("offers `{name}`, which whoever runs the agent has to know as `{spoken}`"),
                ),
            }
            match inputs(&described.parameters) {
                Ok(inputs) => tools.push(self.tool(&described, &inputs)),
                Err(problems) => {
                    problems
                        .iter()
                        .for_each(|problem| self.problem(node, format!("offers the tool `{name}`, {problem}")));
                }
            }
            names.push(described.name);
        }
        tools
    }

    fn tool(&mut self, described: &DescribedTool, inputs: &[Json]) -> Json {
        let id = self.fresh(&described.name);
        let fields = json!({"description": described.description, "inputs": inputs, "outputs": [{"title": RESULT}]});
        let mut tool = component("ServerTool", &id, fields);
        tool["name"] = Json::from(described.name.as_str());
        tool
    }
}

/// Why something that a model may call is no tool of a configuration.
fn other(offered: &Callable) -> String {
    match offered {
        Callable::Agent { agent, .. } => {
            format!("offers the agent `{agent}` as a tool, which agents of 25.4.1 cannot be")
        }
        Callable::Skills(tool) => format!("offers `{}`, and the specification does not know skills", tool.name()),
        Callable::Todo { name, .. } => format!("offers `{name}`, and the specification does not know to-do lists"),
        Callable::Delegate { name, .. } => {
            format!("offers `{name}`, and the specification does not know work that is given to agents by name")
        }
        Callable::LoadedSkills => "offers the tools of its skills, which the specification does not know".to_owned(),
        Callable::Loop(nested) => {
            format!("offers the agent `{}` as a tool, which agents of 25.4.1 cannot be", nested.name)
        }
        Callable::Tool(_) | Callable::Described { .. } | Callable::Defined(_) | Callable::Submit(_) => {
            "offers a tool of a configuration, which is written as it was read".to_owned()
        }
    }
}

/// The inputs of a tool by the schema of its arguments, or what of it they cannot say: each the end of a sentence.
fn inputs(parameters: &Json) -> Result<Vec<Json>, Vec<String>> {
    let empty = Map::new();
    let schema = parameters.as_object().unwrap_or(&empty);
    let mut problems: Vec<String> = schema
        .keys()
        .filter(|key| !OF_NO_MATTER.contains(&key.as_str()))
        .map(|key| format!("whose schema says by `{key}` more of its arguments than which there are"))
        .collect();
    let required = schema.get("required").and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut inputs = Vec::new();
    for (name, property) in schema.get("properties").and_then(Json::as_object).unwrap_or(&empty) {
        let mut input = property.as_object().cloned().unwrap_or_default();
        input.insert("title".to_owned(), Json::from(name.as_str()));
        let is_required = required.iter().any(|one| one == name);
        let problem = match (Type::of_schema(&Value::from(property)), input.get("default")) {
            (Err(_), _) => "has a schema that is not a type of the specification",
            (Ok(ty), Some(default)) if ty.convert(&Value::from(default)).is_err() => {
                "has a default that is not one of its values"
            }
            // An input may be left out if it has a default, and only then.
            (Ok(_), Some(_)) if is_required => "has to be given although it has a default",
            (Ok(_), None) if !is_required => "may be left out without having a default",
            _ => {
                inputs.push(Json::Object(input));
                continue;
            }
        };
        problems.push(format!("whose argument `{name}` {problem}"));
    }
    if problems.is_empty() { Ok(inputs) } else { Err(problems) }
}
