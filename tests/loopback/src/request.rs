//! A request as the server saw it, in a form that belongs to no provider.

use serde_json::{Map, Value, json};

/// One chat request, read from the OpenAI form.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    /// The model the request names.
    pub model: String,
    /// The messages, in order.
    pub messages: Vec<RequestMessage>,
    /// The tools on offer, in order.
    pub tools: Vec<OfferedTool>,
    /// `temperature`, or `None` when it was not sent.
    pub temperature: Option<f64>,
    /// `top_p`, or `None` when it was not sent.
    pub top_p: Option<f64>,
    /// `max_tokens` or `max_completion_tokens`, or `None` when neither was sent.
    pub max_tokens: Option<u64>,
    /// `response_format` as it was sent.
    pub response_format: Option<Value>,
    /// Whether the client asked for a streamed reply.
    pub stream: bool,
    /// The whole body as it came.
    pub body: Value,
}

/// One message of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestMessage {
    /// `system`, `user`, `assistant` or `tool`.
    pub role: String,
    /// The text; parts of a split content are joined, a missing content is empty.
    pub content: String,
    /// What an assistant message asks for.
    pub tool_calls: Vec<RequestToolCall>,
    /// The call that a tool message answers.
    pub tool_call_id: Option<String>,
}

/// A call inside an assistant message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestToolCall {
    /// The id that the answering tool message repeats.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments exactly as they were sent.
    pub arguments: String,
}

/// A tool that a request offers to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferedTool {
    /// The name the model calls it by.
    pub name: String,
    /// What the model is told about it.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: Value,
}

impl RequestMessage {
    /// The message in the form of a case file: `role`, `content`, and `tool_calls` where there are any, with
    /// arguments as JSON where they parse and as text where they do not.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut message = Map::new();
        message.insert("role".to_owned(), json!(self.role));
        message.insert("content".to_owned(), json!(self.content));
        if !self.tool_calls.is_empty() {
            let calls = self.tool_calls.iter().map(|call| {
                let arguments = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!(call.arguments));
                json!({"name": call.name, "arguments": arguments})
            });
            message.insert("tool_calls".to_owned(), calls.collect());
        }
        Value::Object(message)
    }
}

impl ModelRequest {
    /// Reads a request body, or says what is wrong with it.
    pub(crate) fn read(body: Value) -> Result<Self, String> {
        let model = body.get("model").and_then(Value::as_str).ok_or("`model` is missing")?.to_owned();
        let messages = body
            .get("messages")
            .and_then(Value::as_array)
            .ok_or("`messages` is missing")?
            .iter()
            .map(read_message)
            .collect::<Result<Vec<_>, _>>()?;
        let tools = list(&body, "tools").map(read_tool).collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            model,
            messages,
            tools,
            temperature: body.get("temperature").and_then(Value::as_f64),
            top_p: body.get("top_p").and_then(Value::as_f64),
            max_tokens: ["max_tokens", "max_completion_tokens"]
                .iter()
                .find_map(|key| body.get(*key).and_then(Value::as_u64)),
            response_format: body.get("response_format").filter(|format| !format.is_null()).cloned(),
            stream: body.get("stream").and_then(Value::as_bool).unwrap_or(false),
            body,
        })
    }

    /// The names of the tools on offer, in order.
    #[must_use]
    pub fn tool_names(&self) -> Vec<&str> {
        self.tools.iter().map(|tool| tool.name.as_str()).collect()
    }

    /// Whether any message contains `text`.
    #[must_use]
    pub fn mentions(&self, text: &str) -> bool {
        self.messages.iter().any(|message| message.content.contains(text))
    }
}

pub(crate) fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

pub(crate) fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

fn read_message(message: &Value) -> Result<RequestMessage, String> {
    let role = match text(message, "role").ok_or("a message has no `role`")? {
        "developer" => "system",
        "function" => "tool",
        role @ ("system" | "user" | "assistant" | "tool") => role,
        other => return Err(format!("a message has the unknown role `{other}`")),
    };
    let content = match message.get("content") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().filter_map(|part| text(part, "text")).collect(),
        Some(other) => return Err(format!("the content of a message is neither text nor a list: {other}")),
    };
    let tool_calls = list(message, "tool_calls").map(read_call).collect::<Result<Vec<_>, _>>()?;
    Ok(RequestMessage {
        role: role.to_owned(),
        content,
        tool_calls,
        tool_call_id: text(message, "tool_call_id").map(str::to_owned),
    })
}

fn read_call(call: &Value) -> Result<RequestToolCall, String> {
    let function = call.get("function").ok_or("a tool call has no `function`")?;
    Ok(RequestToolCall {
        id: text(call, "id").unwrap_or_default().to_owned(),
        name: text(function, "name").ok_or("a tool call has no name")?.to_owned(),
        arguments: text(function, "arguments").ok_or("the arguments of a tool call are not a text")?.to_owned(),
    })
}

fn read_tool(tool: &Value) -> Result<OfferedTool, String> {
    let function = tool.get("function").ok_or("a tool has no `function`")?;
    Ok(OfferedTool {
        name: text(function, "name").ok_or("a tool has no name")?.to_owned(),
        description: text(function, "description").unwrap_or_default().to_owned(),
        parameters: function.get("parameters").cloned().unwrap_or(Value::Null),
    })
}
