//! What goes to a model and what comes back, in terms of no provider.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use hotcell_tls::TlsFiles;

use crate::ModelName;

/// One question to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Which model is asked.
    pub model: ModelName,
    /// The conversation so far, system messages included, in order.
    pub messages: Vec<Message>,
    /// The tools that the model may ask for; nothing else can be called.
    pub tools: Vec<ToolSpec>,
    /// What the model has to call; `None` leaves it to the model.
    pub tool_choice: Option<ToolChoice>,
    /// Sampling temperature; `None` leaves it to the provider.
    pub temperature: Option<f64>,
    /// Nucleus sampling mass; `None` leaves it to the provider.
    pub top_p: Option<f64>,
    /// Most tokens the reply may have; `None` leaves it to the provider.
    pub max_tokens: Option<u32>,
    /// How much the model thinks before it answers, where it can; `None` leaves it to the provider.
    pub reasoning: Option<Reasoning>,
    /// Whether the provider is asked to keep the prompt, where it can.
    pub keeps_prompt: bool,
    /// Other settings, under the names that the provider knows; they are sent where requests have a form of OpenAI's, and
    /// refused elsewhere.
    pub more: serde_json::Map<String, Value>,
    /// A JSON Schema that the text of the reply has to follow, where the provider can enforce one.
    pub output_schema: Option<Value>,
    /// Where the model is; `None` means that its name says so.
    pub server: Option<Server>,
    /// What the request looks like where the server speaks a form of OpenAI's.
    pub api: Api,
    /// How the server and this machine prove to each other who they are, where the file of an agent says where it is.
    pub tls: Option<TlsFiles>,
    /// How long the whole exchange may take; `None` allows two hours, within the limits of the connection.
    pub timeout: Option<Duration>,
}

impl Request {
    /// A request for `model` with `messages` and nothing else set.
    #[must_use]
    pub fn new(model: ModelName, messages: Vec<Message>) -> Self {
        Self {
            model,
            messages,
            tools: Vec::new(),
            tool_choice: None,
            temperature: None,
            top_p: None,
            max_tokens: None,
            reasoning: None,
            keeps_prompt: false,
            more: serde_json::Map::new(),
            output_schema: None,
            server: None,
            api: Api::default(),
            tls: None,
            timeout: None,
        }
    }
}

/// How much a model thinks before it answers. A provider that cannot do that is not told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reasoning {
    /// The most tokens; `None` for what is usual.
    pub budget: Option<u32>,
}

/// The forms of requests that OpenAI has, and servers that are compatible with it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Api {
    /// Chat Completions.
    #[default]
    Chat,
    /// Responses.
    Responses,
}

/// What a request has to call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolChoice {
    /// Any of the tools.
    Any,
    /// The tool of this name.
    Tool(String),
}

/// Where a model is, if its name does not say it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Server {
    /// A provider that is configured under this name
    Provider(String),
    /// A server that speaks Chat Completions, at the address before `/chat/completions`; it is asked without a key, and its name
    /// leads to no private address
    Address(String),
    /// The same, where it was granted that its name leads into a private network
    PrivateAddress(String),
    /// A server of a provider without an address of its own, which is asked with the operator's key for it. Those of Bedrock speak
    /// Converse, all others Chat Completions, at the address before `/chat/completions`
    ProviderAt {
        /// What the provider is called
        provider: String,
        /// The address
        address: String,
        /// Whether it was granted that its name leads into a private network
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_private: bool,
    },
}

/// Who speaks in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions.
    System,
    /// The person, or whoever asks.
    User,
    /// The model.
    Assistant,
    /// The result of a tool.
    Tool,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// The text; may be empty.
    #[serde(default)]
    pub content: String,
    /// The tools that an assistant message asks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCallRequest>,
    /// The call that a tool message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// What the provider wants back with an assistant message; see [`ProviderState`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_state: Option<ProviderState>,
}

impl Message {
    /// Instructions.
    #[must_use]
    pub fn system(content: impl Into<String>) -> Self {
        Self::text(Role::System, content)
    }

    /// A user's message.
    #[must_use]
    pub fn user(content: impl Into<String>) -> Self {
        Self::text(Role::User, content)
    }

    /// A model's message without calls.
    #[must_use]
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::text(Role::Assistant, content)
    }

    /// The result of the call with the id `tool_call_id`.
    #[must_use]
    pub fn tool(tool_call_id: impl Into<String>, content: impl Into<String>) -> Self {
        Self { tool_call_id: Some(tool_call_id.into()), ..Self::text(Role::Tool, content) }
    }

    fn text(role: Role, content: impl Into<String>) -> Self {
        Self { role, content: content.into(), tool_calls: Vec::new(), tool_call_id: None, provider_state: None }
    }
}

/// A call that a model asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCallRequest {
    /// The id that the answering tool message repeats.
    pub id: String,
    /// The tool; not necessarily one that was offered.
    pub name: String,
    /// The arguments as the model wrote them; not necessarily JSON.
    pub arguments: String,
}

/// A tool on offer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name the model calls it by.
    pub name: String,
    /// What the model is told about it.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: Value,
}

/// What a provider attached to a message and expects to see again when the message is sent back: the signed
/// reasoning of Anthropic and Gemini, the reasoning text of DeepSeek.
///
/// It is opaque, it means something to the provider and model that made it only, and anybody may drop it at the
/// price of the model forgetting what it thought.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProviderState(pub(crate) Value);

/// What a model replied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// The text; empty when the model only asks for tools, or said nothing.
    #[serde(default)]
    pub content: String,
    /// The tools that the model asks for, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCallRequest>,
    /// What the exchange used.
    #[serde(default)]
    pub usage: TokenUsage,
    /// Why the reply ended.
    pub finish: Finish,
    /// What the provider wants back with this message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_state: Option<ProviderState>,
}

impl Reply {
    /// A reply that is only `content`.
    #[must_use]
    pub fn text(content: impl Into<String>) -> Self {
        Self {
            content: content.into(),
            tool_calls: Vec::new(),
            usage: TokenUsage::default(),
            finish: Finish::Stop,
            provider_state: None,
        }
    }

    /// A reply that only asks for tools.
    #[must_use]
    pub fn calls(tool_calls: Vec<ToolCallRequest>) -> Self {
        Self { tool_calls, finish: Finish::ToolCalls, ..Self::text("") }
    }

    /// Whether there is neither text (other than white space) nor a call.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tool_calls.is_empty() && self.content.trim().is_empty()
    }

    /// The assistant message to append to the conversation.
    #[must_use]
    pub fn into_message(self) -> Message {
        Message {
            role: Role::Assistant,
            content: self.content,
            tool_calls: self.tool_calls,
            tool_call_id: None,
            provider_state: self.provider_state,
        }
    }
}

/// Why a reply ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The model was done.
    Stop,
    /// The reply reached its token limit and is cut off.
    Length,
    /// The model waits for its tool calls.
    ToolCalls,
    /// The provider withheld the reply or a part of it.
    Filtered,
    /// The provider's own word, or nothing where it gave no reason.
    Other(String),
}

/// Tokens of one exchange; 0 where the provider reports none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenUsage {
    /// Tokens of the request.
    pub input: u64,
    /// Tokens of the reply.
    pub output: u64,
}

/// The most tokens that are believed of one exchange, each way. No model takes or gives so many, and what is believed is counted
/// against the budgets of everybody with whom they are shared.
const MOST_TOKENS: u64 = 1 << 24;

impl TokenUsage {
    /// What of it is believed.
    pub(crate) fn believed(self) -> Self {
        Self { input: self.input.min(MOST_TOKENS), output: self.output.min(MOST_TOKENS) }
    }
}
