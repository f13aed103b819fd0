//! Nodes of a graph that do something, each as a node of a flow.

use hotcell_graph::Key;
use hotcell_graph::ir::{
    Action, AskAction, Expression, MapAction, ModelAction, ModelSettings, Node, OfferAction, OfferKind,
};
use serde_json::{Map, Value as Json, json};

use super::{Exporter, component, reference, single, title};
use crate::agent_spec::generated::NEXT;

impl<'g> Exporter<'g> {
    pub(super) fn model(&mut self, node: &'g Node, model: &'g ModelAction) {
        let output = self.output_name(node, model.bind);
        let (llm, names) = self.llm_node(node, model, &node.id, &output);
        self.nodes.push(llm);
        self.reads(&node.id, names);
        self.writes(node, model.bind, &output);
    }

    /// A node that asks a model, and the placeholders of its prompt.
    fn llm_node(&mut self, node: &'g Node, model: &'g ModelAction, id: &str, output: &str) -> (Json, Vec<String>) {
        if !model.tools.is_empty() {
            self.problem(node, "offers tools to its model, and an LlmNode has none");
        }
        if model.instructions.is_some() {
            self.problem(node, "has instructions beside its prompt, and an LlmNode has a prompt only");
        }
        if model.structure.is_some() {
            self.problem(node, "asks for a structured answer, which an LlmNode of 25.4.1 does not give");
        }
        if model.attempts > 1 {
            self.difference(node, "repeats requests that fail, which in a flow is a matter of whoever runs it");
        }
        let (prompt, names) = self.prompt(node, &model.prompt);
        let settings = model.settings.or(&self.graph.model);
        let config = self.config(node, &settings);
        let inputs: Vec<Json> = names.iter().map(|name| json!({"title": name, "type": "string"})).collect();
        let llm = component(
            "LlmNode",
            id,
            json!({
                "inputs": inputs,
                "outputs": [{"title": output, "type": "string"}],
                "branches": [NEXT],
                "llm_config": reference(&config),
                "prompt_template": prompt,
            }),
        );
        (llm, names)
    }

    /// The id of the configuration of a model.
    fn config(&mut self, node: &Node, settings: &ModelSettings) -> String {
        let Some(name) = &settings.model else {
            self.problem(node, "leaves it to the host which model it asks, and an LlmNode names one");
            return String::new();
        };
        let mut parameters = Map::new();
        for (parameter, value) in [("temperature", settings.temperature), ("top_p", settings.top_p)] {
            if let Some(value) = value {
                parameters.insert(parameter.to_owned(), Json::from(value));
            }
        }
        let (component_type, mut fields) = match name.split_once(':') {
            Some(("openai", model)) => ("OpenAiConfig", json!({"model_id": model})),
            Some(("ollama", model)) => ("OllamaConfig", json!({"model_id": model, "url": "http://localhost:11434"})),
            _ => {
                self.problem(
                    node,
                    format!("asks the model `{name}`: only `openai:` and `ollama:` have a configuration"),
                );
                return String::new();
            }
        };
        fields["default_generation_parameters"] = Json::Object(parameters);
        let same = |known: &Json| {
            known["component_type"] == component_type
                && fields.as_object().into_iter().flatten().all(|(field, value)| known[field] == *value)
        };
        if let Some((_, id)) = self.models.iter().find(|(known, _)| same(known)) {
            return id.clone();
        }
        let id = self.fresh(&format!("model {name}"));
        self.models.push((component(component_type, &id, fields), id.clone()));
        id
    }

    /// Placeholders read the keys of their names.
    fn reads(&mut self, id: &str, names: Vec<String>) {
        self.readers.extend(names.into_iter().map(|name| {
            let key = Key::from(name.as_str());
            (id.to_owned(), name, key)
        }));
    }

    pub(super) fn ask(&mut self, node: &'g Node, ask: &'g AskAction) {
        if ask.default.is_some() {
            self.problem(node, "has a default for an empty answer, which a question of a flow has not");
        }
        if ask.check.is_some() {
            self.problem(node, "checks the answer, which a question of a flow does not");
        }
        if ask.trim {
            self.difference(node, "takes white space off the answer, and a flow leaves it");
        }
        let output = self.output_name(node, ask.bind);
        let (message, names) = self.prompt(node, &ask.question);
        let inputs: Vec<Json> = names.iter().map(|name| json!({"title": name, "type": "string"})).collect();
        self.nodes.push(component(
            "InputMessageNode",
            &node.id,
            json!({
                "inputs": inputs,
                "outputs": [{"title": output, "type": "string"}],
                "branches": [NEXT],
                "message": message,
            }),
        ));
        self.reads(&node.id, names);
        self.writes(node, ask.bind, &output);
    }

    pub(super) fn offer(&mut self, node: &'g Node, offer: &'g OfferAction) {
        if offer.kind != OfferKind::Tool {
            self.problem(node, format!("is `{}` of a plugin, which is no tool", offer.offer));
            return;
        }
        let Expression::Object(arguments) = &offer.inputs else {
            self.problem(node, "computes the arguments of its tool, and a flow names each");
            return;
        };
        let is_lenient =
            |argument: &Expression| matches!(argument, Expression::Lenient(template) if single(template).is_some());
        if arguments.iter().any(|(_, argument)| is_lenient(argument)) {
            self.difference(node, "hands over `null` for a value that is missing, and a flow fails there");
        }
        let mut inputs = Vec::new();
        for (name, argument) in arguments {
            let mut input = json!({"title": title(name)});
            if *title(name) != **name {
                self.problem(node, format!("has an argument `{name}`, which is no name of letters and digits"));
            }
            match (constant(argument), argument.template().and_then(single)) {
                (Some(value), _) => input["default"] = value,
                (None, Some(key)) => self.readers.push((node.id.to_string(), title(name), key)),
                (None, None) => self
                    .problem(node, format!("computes the argument `{name}`, and a flow hands over values as they are")),
            }
            inputs.push(input);
        }
        let output = self.output_name(node, offer.bind);
        let outputs = json!([{"title": output}]);
        let id = self.fresh(&format!("{}_tool", node.id));
        let mut tool = component("ServerTool", &id, json!({"inputs": inputs, "outputs": outputs}));
        tool["name"] = Json::from(offer.offer.as_str());
        self.nodes.push(component(
            "ToolNode",
            &node.id,
            json!({
                "inputs": inputs, "outputs": outputs, "branches": [NEXT], "tool": tool,
            }),
        ));
        self.writes(node, offer.bind, &output);
    }

    /// A map over a node that asks a model. Its items are texts: of what no type is known, a list could be one item.
    pub(super) fn map(&mut self, node: &'g Node, map: &'g MapAction) {
        if !node.updates.is_empty() {
            self.problem(node, "writes values beside what it collects, for which there is no node");
        }
        let branch = self.graph.node(map.branch);
        let Action::Model(model) = &branch.action else {
            self.problem(
                node,
                format!("maps over `{}`, and only nodes that ask a model can be mapped over", branch.id),
            );
            return;
        };
        let Some(over) = single(&map.over) else {
            self.problem(node, format!("maps over a part of a value, `{}`", map.over.source()));
            return;
        };
        let item = title(&map.item_key);
        let output = title(&map.output_key);
        let id = self.fresh(&format!("{}_{}", node.id, branch.id));
        let (llm, names) = self.llm_node(branch, model, &id, &output);
        for name in names.iter().filter(|name| ***name != *map.item_key) {
            self.problem(branch, format!("uses `{name}` beside its item, and a list there would be mapped over too"));
        }
        let writes_it = |update: &hotcell_graph::ir::Update| {
            update.key == map.output_key && update.value.template().and_then(single).as_deref() == Some(model.bind)
        };
        if !matches!(&branch.updates[..], [only] if writes_it(only)) {
            self.problem(branch, format!("writes something else than the reply to `{}`", map.output_key));
        }
        let subflow = self.subflow(&node.id, llm, &item, names.is_empty(), &output);
        let iterated = format!("iterated_{item}");
        let collected = format!("collected_{output}");
        let text = json!({"title": item, "type": "string"});
        self.nodes.push(component(
            "MapNode",
            &node.id,
            json!({
                "inputs": [{"title": iterated, "anyOf": [text, {"type": "array", "items": text}]}],
                "outputs": [{"title": collected, "type": "array", "items": {"title": output, "type": "string"}}],
                "branches": [NEXT],
                "subflow": subflow,
                "reducers": {output.as_str(): "append"},
            }),
        ));
        self.readers.push((node.id.to_string(), iterated, over));
        self.written(node, &map.collect_into, &node.id, &collected);
    }

    /// The flow that asks a model about one item.
    fn subflow(&mut self, map: &str, llm: Json, item: &str, is_unused: bool, output: &str) -> Json {
        let (start, end) = (self.fresh(&format!("{map}_start")), self.fresh(&format!("{map}_end")));
        let asks = llm["id"].as_str().unwrap_or_default().to_owned();
        let inputs = json!([{"title": item, "type": "string"}]);
        let outputs = json!([{"title": output, "type": "string"}]);
        let edge = |kind: &str, id: String, fields: Json| component(kind, &id, fields);
        let control = [(&start, &asks), (&asks, &end)].map(|(from, to)| {
            let fields = json!({"from_node": reference(from), "from_branch": null, "to_node": reference(to)});
            edge("ControlFlowEdge", format!("{from}[{NEXT}]->{to}"), fields)
        });
        let mut wires = vec![(&asks, &end, output)];
        if !is_unused {
            wires.push((&start, &asks, item));
        }
        let data: Vec<Json> = wires
            .into_iter()
            .map(|(from, to, name)| {
                let fields = json!({
                    "source_node": reference(from), "source_output": name,
                    "destination_node": reference(to), "destination_input": name,
                });
                edge("DataFlowEdge", format!("{from}.{name}->{to}.{name}"), fields)
            })
            .collect();
        let nodes = json!([reference(&start), reference(&asks), reference(&end)]);
        let begin = component("StartNode", &start, json!({"inputs": inputs, "outputs": inputs, "branches": [NEXT]}));
        let finish = component("EndNode", &end, json!({"inputs": outputs, "outputs": outputs, "branches": []}));
        let referenced = json!({start.as_str(): begin, asks.as_str(): llm, end.as_str(): finish});
        let id = self.fresh(&format!("{map}_each"));
        component(
            "Flow",
            &id,
            json!({
                "inputs": inputs,
                "outputs": outputs,
                "start_node": reference(&start),
                "nodes": nodes,
                "control_flow_connections": control,
                "data_flow_connections": data,
                "$referenced_components": referenced,
            }),
        )
    }
}

/// The value of what is always the same.
fn constant(expression: &Expression) -> Option<Json> {
    match expression {
        Expression::Value(value) => Some(Json::from(value)),
        Expression::List(items) => items.iter().map(constant).collect(),
        Expression::Object(entries) => {
            let entries = entries.iter().map(|(key, entry)| Some((key.to_string(), constant(entry)?)));
            entries.collect::<Option<Map<String, Json>>>().map(Json::Object)
        }
        other => {
            let template = other.template()?;
            template.references().next().is_none().then(|| Json::from(template.source()))
        }
    }
}
