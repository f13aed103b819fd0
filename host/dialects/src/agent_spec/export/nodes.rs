//! Nodes of a graph that do something, each as a node of a flow.

use hotcell_graph::conversation::Speaker;
use hotcell_graph::ir::{
    Action, AskAction, CallAction, ConverseAction, Expression, ModelSettings, Node, NodeItems, PluginNodeAction,
    PluginNodeKind, PromptPart, Said, Update,
};
use serde_json::{Map, Value as Json, json};

use super::prompt::{Inputs, Prompt};
use super::slots::Slot;
use super::text_loop::TextLoop;
use super::values::{constant, single};
use super::writes::Answer;
use super::{Exporter, component, control_edge, data_edge, reference, title};
use crate::agent_spec::generated::NEXT;

const STRUCTURED: &str = "asks for a structured answer, which an LlmNode of 25.4.1 does not give";
pub(super) const REPEATED: &str = "repeats requests that fail, which is a matter of whoever runs a configuration";

impl<'g> Exporter<'g> {
    /// The name of what a node gives: the first key that it writes, or how its updates call it.
    pub(super) fn output_name(&self, node: &Node, bind: &str) -> String {
        let mut keys = node.updates.iter().map(|update| &update.key);
        let first = keys.find(|key| self.graph.conversation.as_ref() != Some(*key));
        title(first.map_or(bind, |key| &**key))
    }

    pub(super) fn call(&mut self, node: &'g Node, call: &'g CallAction) -> String {
        let Some(asked) = TextLoop::of(call) else {
            self.problem(
                node,
                "runs an agent with a conversation or limits of its own, and an LlmNode only sends a prompt",
            );
            return node.id.to_string();
        };
        let output = self.output_name(node, asked.bind);
        let (llm, inputs) = self.llm_of_loop(node, &asked, &node.id, &output);
        self.nodes.push(llm);
        self.reads(&node.id, inputs);
        self.writes(node, &Answer { bind: asked.bind, output: &output, is_message: false, said: &[] })
    }

    /// A node that asks a model, and the placeholders of its prompt.
    fn llm_of_loop(&mut self, node: &'g Node, asked: &TextLoop<'g>, id: &str, output: &str) -> (Json, Inputs) {
        if !asked.tools.is_empty() {
            self.problem(node, "offers tools to its model, and an LlmNode has none");
        }
        if asked.instructions.is_some() {
            self.problem(node, "has instructions beside its prompt, and an LlmNode has a prompt only");
        }
        if asked.is_structured {
            self.problem(node, STRUCTURED);
        }
        if asked.attempts > 1 {
            self.difference(node, REPEATED);
        }
        let prompt = self.prompt(node, asked.prompt);
        (self.llm_node(node, asked.settings, id, &prompt, output), prompt.inputs)
    }

    /// A model that is asked once, with one message of a user, within or without a conversation.
    pub(super) fn converse(&mut self, node: &'g Node, converse: &'g ConverseAction) -> String {
        if !converse.tools.is_empty() {
            self.problem(node, "offers tools to its model, and an LlmNode has none");
        }
        if converse.output_schema.is_some() {
            self.problem(node, STRUCTURED);
        }
        if converse.retry.attempts > 1 {
            self.difference(node, REPEATED);
        }
        let output = self.output_name(node, "reply");
        match &converse.prompt[..] {
            [PromptPart { said: Said::Text(Speaker::Human, text), .. }] => {
                let prompt = self.prompt(node, text);
                let llm = self.llm_node(node, &converse.settings, &node.id, &prompt, &output);
                self.nodes.push(llm);
                self.reads(&node.id, prompt.inputs);
            }
            parts if parts.iter().any(|part| matches!(part.said, Said::Messages(_))) => {
                self.problem(node, "asks a model about a conversation as one step of several: an LlmNode sends one prompt only, and when an agent \
                 within a flow is done the specification leaves open");
            }
            _ => self.problem(node, "sends more than one message of a user, and an LlmNode sends its prompt only"),
        }
        let said = [Slot::LastMessage, Slot::LastReply];
        self.writes(node, &Answer { bind: converse.bind, output: &output, is_message: true, said: &said })
    }

    fn llm_node(&mut self, node: &Node, settings: &ModelSettings, id: &str, prompt: &Prompt, output: &str) -> Json {
        let config = self.config(node, settings);
        component(
            "LlmNode",
            id,
            json!({
                "inputs": prompt.inputs.texts(),
                "outputs": [{"title": output, "type": "string"}],
                "branches": [NEXT],
                "llm_config": reference(&config),
                "prompt_template": prompt.text,
            }),
        )
    }

    /// The id of the configuration of a model.
    pub(super) fn config(&mut self, node: &Node, settings: &ModelSettings) -> String {
        let settings = settings.or(&self.graph.model);
        let Some(name) = &settings.model else {
            self.problem(node, "leaves it to the host which model it asks, and a configuration names one");
            return String::new();
        };
        let parameters = [
            ("temperature", settings.temperature.map(Json::from)),
            ("top_p", settings.top_p.map(Json::from)),
            ("max_tokens", settings.max_tokens.map(Json::from)),
        ];
        let parameters: Map<String, Json> =
            parameters.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
        if settings.more.is_some() || settings.server.is_some() {
            self.problem(node, "sets more for its model than a configuration has a place for");
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

    pub(super) fn ask(&mut self, node: &'g Node, ask: &'g AskAction) -> String {
        if ask.default.is_some() {
            self.problem(node, "has a default for an empty answer, which a question of a flow has not");
        }
        if ask.check.is_some() {
            self.problem(node, "checks the answer, which a question of a flow does not");
        }
        if ask.asked.notice.is_some() {
            self.problem(node, "tells another system of the question, which a question of a flow does not");
        }
        if ask.trim {
            self.difference(node, "trims white space from the answer, which a flow does not");
        }
        let output = self.output_name(node, ask.bind);
        let prompt = self.prompt(node, &ask.question);
        self.nodes.push(component(
            "InputMessageNode",
            &node.id,
            json!({
                "inputs": prompt.inputs.texts(),
                "outputs": [{"title": output, "type": "string"}],
                "branches": [NEXT],
                "message": prompt.text,
            }),
        ));
        self.reads(&node.id, prompt.inputs);
        let said = [Slot::LastMessage];
        self.writes(node, &Answer { bind: ask.bind, output: &output, is_message: false, said: &said })
    }

    pub(super) fn plugin_node(&mut self, node: &'g Node, plugin_node: &'g PluginNodeAction) -> String {
        if plugin_node.kind != PluginNodeKind::Tool {
            self.problem(node, format!("is `{}` of a plugin, which is not a tool", plugin_node.plugin_node));
            return node.id.to_string();
        }
        let Expression::Object(arguments) = &plugin_node.inputs else {
            self.problem(node, "computes the arguments of its tool, and a flow names each");
            return node.id.to_string();
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
                self.problem(
                    node,
                    format!("has an argument `{name}`, which is not a valid name of letters and digits"),
                );
            }
            match (constant(argument), argument.template().and_then(single)) {
                (Some(value), _) => input["default"] = value,
                (None, Some(key)) => self.read(&node.id, &title(name), Slot::Key(key)),
                (None, None) => self
                    .problem(node, format!("computes the argument `{name}`, and a flow hands over values as they are")),
            }
            inputs.push(input);
        }
        let output = self.output_name(node, plugin_node.bind);
        let outputs = json!([{"title": output}]);
        let id = self.fresh(&format!("{}_tool", node.id));
        let mut tool = component("ServerTool", &id, json!({"inputs": inputs, "outputs": outputs}));
        tool["name"] = Json::from(plugin_node.plugin_node.as_str());
        self.nodes.push(component(
            "ToolNode",
            &node.id,
            json!({
                "inputs": inputs, "outputs": outputs, "branches": [NEXT], "tool": tool,
            }),
        ));
        self.writes(node, &Answer { bind: plugin_node.bind, output: &output, is_message: false, said: &[] })
    }

    /// A map over a node that asks a model. Its items are texts: of what no type is known, a list could be one item.
    pub(super) fn map(&mut self, node: &'g Node, map: &'g NodeItems) -> String {
        if !node.updates.is_empty() {
            self.problem(node, "writes values beside what it collects, for which the specification has no node");
        }
        let branch = self.graph.node(map.branch);
        let asked = match &branch.action {
            Action::Call(call) => TextLoop::of(call),
            _ => None,
        };
        let Some(asked) = asked else {
            self.problem(
                node,
                format!("maps over `{}`, and only nodes that ask a model can be mapped over", branch.id),
            );
            return node.id.to_string();
        };
        let Some(over) = single(&map.over) else {
            self.problem(node, format!("maps over a part of a value, `{}`", map.over.source()));
            return node.id.to_string();
        };
        let item = title(&map.item_key);
        let output = title(&map.output_key);
        let id = self.fresh(&format!("{}_{}", node.id, branch.id));
        let (llm, inputs) = self.llm_of_loop(branch, &asked, &id, &output);
        for (name, _) in inputs.0.iter().filter(|(name, _)| **name != *map.item_key) {
            self.problem(branch, format!("uses `{name}` beside its item, and a list there would be mapped over too"));
        }
        let writes_it = |update: &Update| {
            update.key == map.output_key && update.value.template().and_then(single).as_deref() == Some(asked.bind)
        };
        if !matches!(&branch.updates[..], [only] if writes_it(only)) {
            self.problem(branch, format!("writes something else than the reply to `{}`", map.output_key));
        }
        let subflow = self.each(&node.id, llm, &item, inputs.0.is_empty(), &output);
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
        self.read(&node.id, &iterated, Slot::Key(over));
        self.written(node, &map.collect_into, &node.id, &collected);
        node.id.to_string()
    }

    /// The flow that asks a model about one item.
    fn each(&mut self, map: &str, llm: Json, item: &str, is_unused: bool, output: &str) -> Json {
        let (start, end) = (self.fresh(&format!("{map}_start")), self.fresh(&format!("{map}_end")));
        let asks = llm["id"].as_str().unwrap_or_default().to_owned();
        let inputs = [json!({"title": item, "type": "string"})];
        let outputs = [json!({"title": output, "type": "string"})];
        let control = vec![control_edge(&start, None, &asks), control_edge(&asks, None, &end)];
        let mut data = vec![data_edge(&asks, output, &end, output)];
        if !is_unused {
            data.push(data_edge(&start, item, &asks, item));
        }
        let nodes = vec![
            component("StartNode", &start, json!({"inputs": inputs, "outputs": inputs, "branches": [NEXT]})),
            llm,
            component("EndNode", &end, json!({"inputs": outputs, "outputs": outputs, "branches": []})),
        ];
        self.subflow(&format!("{map}_each"), (&inputs, &outputs), nodes, control, data)
    }
}
