//! A request as Converse of Bedrock has it, which is the same for all models that are there.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::REASONING;
use crate::{Message, ProviderState, Request, Role, ToolCallRequest, ToolChoice};

/// Tokens for thoughts where nothing is said, and the fewest that there can be.
const USUAL_BUDGET: u32 = 4096;
const LEAST_BUDGET: u32 = 1024;

/// The body of a request to this model.
pub(super) fn body(request: &Request, model: &str) -> Value {
    let is_claude = model.contains("claude");
    let mut body = Map::new();
    let turns = Turns::of(request, model);
    body.insert("messages".to_owned(), turns.messages());
    let mut system = turns.system;
    if let Some(schema) = &request.output_schema {
        // There is no setting for it.
        system.push(json!({
            "text": format!("Reply with JSON that follows this JSON Schema, and with nothing else:\n{schema}"),
        }));
    }
    let keeps_prompt = request.keeps_prompt && (is_claude || model.contains("amazon.nova"));
    if keeps_prompt && !system.is_empty() {
        system.push(json!({ "cachePoint": { "type": "default" } }));
    }
    if !system.is_empty() {
        body.insert("system".to_owned(), Value::Array(system));
    }

    // Of those that think, only Claude is told how much.
    let budget = request.reasoning.filter(|_| is_claude);
    let budget = budget.map(|reasoning| reasoning.budget.unwrap_or(USUAL_BUDGET).max(LEAST_BUDGET));
    let mut settings = Map::new();
    if let Some(most) = request.max_tokens {
        // Thoughts are a part of the reply.
        settings.insert("maxTokens".to_owned(), json!(most.saturating_add(budget.unwrap_or(0))));
    }
    // A model that thinks takes only its own temperature.
    let temperature = request.temperature.filter(|_| budget.is_none());
    for (name, setting) in [("temperature", temperature), ("topP", request.top_p)] {
        if let Some(value) = setting {
            settings.insert(name.to_owned(), json!(value));
        }
    }
    if !settings.is_empty() {
        body.insert("inferenceConfig".to_owned(), Value::Object(settings));
    }
    if let Some(budget) = budget {
        let thinking = json!({ "thinking": { "type": "enabled", "budget_tokens": budget } });
        body.insert("additionalModelRequestFields".to_owned(), thinking);
    }
    if let Some(tools) = tools(request) {
        body.insert("toolConfig".to_owned(), tools);
    }
    Value::Object(body)
}

/// The tools that are offered; none if there are none.
fn tools(request: &Request) -> Option<Value> {
    if request.tools.is_empty() {
        return None;
    }
    let specs: Vec<Value> = request
        .tools
        .iter()
        .map(|tool| {
            let mut spec = json!({ "name": tool.name, "inputSchema": { "json": tool.parameters } });
            // An empty text is refused.
            if !tool.description.trim().is_empty() {
                spec["description"] = json!(tool.description);
            }
            json!({ "toolSpec": spec })
        })
        .collect();
    let mut config = json!({ "tools": specs });
    match &request.tool_choice {
        None => {}
        Some(ToolChoice::Any) => config["toolChoice"] = json!({ "any": {} }),
        Some(ToolChoice::Tool(name)) => config["toolChoice"] = json!({ "tool": { "name": name } }),
    }
    Some(config)
}

/// The conversation by the rules of Bedrock: people and the model take turns, a person begins, no text is blank, and each call
/// has a result.
#[derive(Default)]
struct Turns {
    system: Vec<Value>,
    turns: Vec<(&'static str, Vec<Value>)>,
    /// Calls of the latest turn that have no result yet
    open: Vec<String>,
    /// Which tool a call was of
    names: HashMap<String, String>,
}

const USER: &str = "user";
const ASSISTANT: &str = "assistant";

impl Turns {
    fn of(request: &Request, model: &str) -> Self {
        // Calls can only be spoken of where tools are offered; elsewhere they are told as texts.
        let as_texts = request.tools.is_empty();
        let mut turns = Turns::default();
        for message in &request.messages {
            match message.role {
                Role::System => turns.system.extend(text_block(&message.content)),
                Role::User => {
                    turns.answer_the_rest();
                    turns.say(USER, text_block(&message.content));
                }
                Role::Assistant => {
                    turns.answer_the_rest();
                    turns.say(ASSISTANT, thoughts(message, model));
                    turns.say(ASSISTANT, text_block(&message.content));
                    for call in &message.tool_calls {
                        turns.names.insert(call.id.clone(), call.name.clone());
                        turns.call(call, as_texts);
                    }
                }
                Role::Tool => turns.result(message, as_texts),
            }
        }
        turns.answer_the_rest();
        if turns.turns.first().is_none_or(|(role, _)| *role != USER) {
            turns.turns.insert(0, (USER, vec![json!({ "text": "Begin." })]));
        }
        turns
    }

    fn messages(&self) -> Value {
        self.turns.iter().map(|(role, content)| json!({ "role": role, "content": content })).collect()
    }

    fn say(&mut self, role: &'static str, blocks: impl IntoIterator<Item = Value>) {
        let mut blocks = blocks.into_iter().peekable();
        if blocks.peek().is_none() {
            return;
        }
        match self.turns.last_mut() {
            Some((last, said)) if *last == role => said.extend(blocks),
            _ => self.turns.push((role, blocks.collect())),
        }
    }

    fn call(&mut self, call: &ToolCallRequest, as_text: bool) {
        if as_text {
            let text = format!("The tool `{}` is called with {}", call.name, call.arguments);
            return self.say(ASSISTANT, text_block(&text));
        }
        let input = match serde_json::from_str(&call.arguments) {
            Ok(Value::Object(arguments)) => Value::Object(arguments),
            // What is no object is kept as what it is: something that the model wrote.
            _ if call.arguments.trim().is_empty() => json!({}),
            _ => json!({ "arguments": call.arguments }),
        };
        let block = json!({ "toolUse": { "toolUseId": call.id, "name": call.name, "input": input } });
        self.open.push(call.id.clone());
        self.say(ASSISTANT, [block]);
    }

    fn result(&mut self, message: &Message, as_text: bool) {
        let id = message.tool_call_id.as_deref().unwrap_or_default();
        if as_text {
            // A result without its call means nothing.
            if let Some(name) = self.names.get(id) {
                let text = format!("The tool `{name}` gave {}", message.content);
                self.say(USER, text_block(&text));
            }
            return;
        }
        if let Some(place) = self.open.iter().position(|open| open == id) {
            let id = self.open.remove(place);
            self.say(USER, [result_block(&id, &message.content, "success")]);
        }
    }

    /// Says of the calls without a result that they have none.
    fn answer_the_rest(&mut self) {
        for id in std::mem::take(&mut self.open) {
            self.say(USER, [result_block(&id, "There is no result.", "error")]);
        }
    }
}

fn text_block(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({ "text": text }))
}

fn result_block(id: &str, text: &str, status: &str) -> Value {
    let text = if text.trim().is_empty() { "(nothing)" } else { text };
    json!({ "toolResult": { "toolUseId": id, "content": [{ "text": text }], "status": status } })
}

/// What the same model thought when it wrote a message; it is signed, and wants it back.
fn thoughts(message: &Message, model: &str) -> Vec<Value> {
    let Some(ProviderState(state)) = &message.provider_state else { return Vec::new() };
    let kept = state.get(REASONING).filter(|kept| kept.get("model").and_then(Value::as_str) == Some(model));
    kept.and_then(|kept| kept.get("blocks")).and_then(Value::as_array).cloned().unwrap_or_default()
}
