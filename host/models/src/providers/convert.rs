//! Between our terms and the provider library's.

use std::collections::HashMap;

use rig_core::{
    completion::{
        CacheRetention, CompletionRequest, CompletionResponse, Effort, FinishReason, OnUnsupported,
        Reasoning as LibraryReasoning, ToolDefinition,
    },
    error::ProviderError,
    http_client::Error as LibraryError,
    message::{
        AssistantContent, AssistantMessage, CallId, Message as LibraryMessage, Text, ToolCall,
        ToolChoice as LibraryChoice, ToolFunction, ToolName, ToolResult, ToolResultContent, UserContent,
    },
    providers::anthropic::completion::claude_spec,
    schemars,
};
use serde_json::Value;

use super::{
    bounded,
    settings::{Protocol, Provider},
    transport::TransportError,
};
use crate::{
    Finish, Message, ModelError, ProviderState, Reasoning, Reply, Request, Role, TokenUsage, ToolCallRequest,
    ToolChoice,
    untrusted::{shown, without_secret},
};

/// The name under which the library records turns of Chat Completions.
pub(super) const CHAT: &str = "openai.chat";

/// Which wire, provider and model a turn belongs to, in the library's names.
pub(super) struct Origin<'a> {
    pub(super) api: &'a str,
    pub(super) provider: &'a str,
    pub(super) model: &'a str,
}

/// The turn that `message` was made from, if that was the work of `origin` and still says the same.
pub(super) fn recalled_turn(message: &Message, origin: &Origin<'_>) -> Option<AssistantMessage> {
    let turn = same_turn(message)?;
    let made_by = turn.origin.as_ref()?;
    let same =
        made_by.api.as_str() == origin.api && made_by.provider == origin.provider && made_by.model == origin.model;
    same.then_some(turn)
}

/// The turn that `message` was made from, if it still says the same: a message that was edited since is taken at
/// its word.
fn same_turn(message: &Message) -> Option<AssistantMessage> {
    let ProviderState(state) = message.provider_state.as_ref()?;
    let turn: AssistantMessage = serde_json::from_value(state.clone()).ok()?;
    let same_calls = turn
        .tool_calls()
        .map(|call| (call.id.wire().into_owned(), call.function.name.as_str().to_owned()))
        .eq(message.tool_calls.iter().map(|call| (call.id.clone(), call.name.clone())));
    (same_calls && text_of(&turn.content) == message.content).then_some(turn)
}

fn text_of(blocks: &[AssistantContent]) -> String {
    let texts = blocks.iter().filter_map(|block| match block {
        AssistantContent::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    texts.collect()
}

/// The part of `request` that every wire takes from the library: tools, limits, the schema of the reply.
/// `history` is what the library is told of the conversation.
pub(super) fn library_request(
    provider: &Provider,
    request: &Request,
    history: Vec<LibraryMessage>,
) -> Result<CompletionRequest, ModelError> {
    let refuse = |reason: String| ModelError::InvalidRequest { provider: provider.name.clone(), reason };
    for (name, setting) in [("temperature", request.temperature), ("top_p", request.top_p)] {
        if setting.is_some_and(|value| !value.is_finite()) {
            return Err(refuse(format!("`{name}` is not a number")));
        }
    }
    let mut converted = CompletionRequest::new("");
    converted.chat_history = history;
    for tool in &request.tools {
        let name = ToolName::new(tool.name.clone()).map_err(|_| refuse("a tool has no name".to_owned()))?;
        converted.tools.push(ToolDefinition::new(name, tool.description.clone(), tool.parameters.clone()));
    }
    converted.tool_choice = match &request.tool_choice {
        None => None,
        Some(ToolChoice::Any) => Some(LibraryChoice::Required),
        Some(ToolChoice::Tool(name)) => {
            let name = ToolName::new(name.clone()).map_err(|_| refuse("a tool has no name".to_owned()))?;
            Some(LibraryChoice::Specific { function_names: vec![name] })
        }
    };
    converted.max_tokens = request.max_tokens.map(u64::from);
    if let Some(reasoning) = request.reasoning {
        converted.options.reasoning = Some(thoughts(provider.protocol, request.model.model(), reasoning));
        converted.options.on_unsupported = Some(OnUnsupported::Ignore);
        if let (Protocol::Anthropic, Some(most)) = (provider.protocol, &mut converted.max_tokens) {
            // There they are a part of the reply.
            *most = most.saturating_add(u64::from(reasoning.budget.unwrap_or(USUAL_BUDGET)));
        }
    }
    if request.keeps_prompt {
        converted.options.cache = Some(CacheRetention::Short);
        converted.options.on_unsupported = Some(OnUnsupported::Ignore);
    }
    if let Some(schema) = &request.output_schema {
        let schema = schemars::Schema::try_from(schema.clone())
            .map_err(|error| refuse(format!("the output schema is not valid JSON Schema: {error}")))?;
        converted.output_schema = Some(schema);
    }
    // A reason to stop that the library does not know is reported as it is, not turned into a failure.
    converted.accept_unknown_finish_reasons = true;
    Ok(converted)
}

/// The tokens for thoughts of a model that has to be told some, where nothing is said.
const USUAL_BUDGET: u32 = 4096;

/// How much a model thinks, as the library says it: by tokens or by steps, whichever the model takes. Servers that speak a form of
/// OpenAI's know three steps and no numbers.
fn thoughts(protocol: Protocol, model: &str, reasoning: Reasoning) -> LibraryReasoning {
    let (takes_tokens, takes_steps) = match protocol {
        Protocol::Anthropic => {
            let support = claude_spec(model).map(|spec| &spec.reasoning);
            let takes_steps = support.is_none_or(|support| !support.levels.is_empty());
            (support.is_none_or(|support| support.budget.is_some()), takes_steps)
        }
        // Later ones take steps; an older one that is told nothing thinks as it is used to.
        Protocol::Gemini => (model.starts_with("gemini-2"), true),
        _ => (false, true),
    };
    match reasoning.budget {
        Some(tokens) if takes_tokens => LibraryReasoning::Budget { tokens },
        None if takes_tokens && !takes_steps => LibraryReasoning::Budget { tokens: USUAL_BUDGET },
        Some(0..=4096) => LibraryReasoning::Effort(Effort::Low),
        None | Some(4097..=16_384) => LibraryReasoning::Effort(Effort::Medium),
        Some(_) => LibraryReasoning::Effort(Effort::High),
    }
}

/// The conversation for a wire whose provider has its own rules about who may follow whom; the library keeps
/// these rules.
pub(super) fn library_history(messages: &[Message]) -> Vec<LibraryMessage> {
    let mut calls: HashMap<String, (CallId, ToolName)> = HashMap::new();
    let mut history = Vec::with_capacity(messages.len());
    for message in messages {
        let converted = match message.role {
            Role::System => LibraryMessage::System { content: message.content.clone() },
            Role::User => LibraryMessage::User { content: vec![UserContent::text(message.content.clone())] },
            Role::Assistant => {
                let turn = same_turn(message).unwrap_or_else(|| plain_turn(message));
                for call in turn.tool_calls() {
                    let known = (call.id.clone(), call.function.name.clone());
                    calls.insert(call.id.wire().into_owned(), known);
                }
                LibraryMessage::Assistant(turn)
            }
            Role::Tool => {
                let id = message.tool_call_id.clone().unwrap_or_default();
                let Some((call, name)) = calls.get(&id).cloned() else {
                    // A result without its call means nothing to any of these providers.
                    continue;
                };
                let content = vec![ToolResultContent::Text(Text::new(message.content.clone()))];
                let result = ToolResult { call, name, content, is_error: false };
                LibraryMessage::User { content: vec![UserContent::ToolResult(result)] }
            }
        };
        history.push(converted);
    }
    history
}

fn plain_turn(message: &Message) -> AssistantMessage {
    let mut content = vec![AssistantContent::Text(Text::new(message.content.clone()))];
    for call in &message.tool_calls {
        let Ok(name) = ToolName::new(call.name.clone()) else { continue };
        let function = ToolFunction::parse(name, &call.arguments);
        content.push(AssistantContent::ToolCall(ToolCall::from_wire(call.id.clone(), function)));
    }
    AssistantMessage::new(content)
}

/// The reply in our terms.
pub(super) fn reply(response: CompletionResponse) -> Reply {
    let tool_calls: Vec<ToolCallRequest> = response
        .choice
        .iter()
        .filter_map(|block| match block {
            AssistantContent::ToolCall(call) => Some(ToolCallRequest {
                id: call.id.wire().into_owned(),
                name: call.function.name.as_str().to_owned(),
                arguments: arguments_text(block, call),
            }),
            _ => None,
        })
        .collect();
    let finish = match response.finish_reason() {
        Some(FinishReason::Stop) => Finish::Stop,
        Some(FinishReason::Length) => Finish::Length,
        Some(FinishReason::ToolCalls) => Finish::ToolCalls,
        Some(FinishReason::ContentFilter) => Finish::Filtered,
        Some(FinishReason::Other(reason)) => Finish::Other(shown(&reason)),
        Some(_) | None => Finish::Other(String::new()),
    };
    Reply {
        content: response.text(),
        tool_calls,
        usage: TokenUsage {
            input: response.usage.input_tokens.unwrap_or(0),
            output: response.usage.output_tokens.unwrap_or(0),
        },
        finish,
        provider_state: state_of(&response),
    }
}

/// The arguments as the model wrote them: Chat Completions and Responses send them as text, which the library keeps with the
/// call; elsewhere they are JSON, and text only where they could not be read.
fn arguments_text(block: &AssistantContent, call: &ToolCall) -> String {
    let places = ["/function/arguments", "/arguments"];
    let item = block.native_item();
    let written = places.iter().find_map(|place| item?.pointer(place)?.as_str());
    match (written, &call.function.invalid_arguments) {
        (Some(text), _) => text.to_owned(),
        (None, Some(text)) => text.clone(),
        (None, None) => Value::Object(call.function.arguments.clone()).to_string(),
    }
}

/// What has to go back with the message, which for most replies is nothing.
fn state_of(response: &CompletionResponse) -> Option<ProviderState> {
    let chat = response.origin.api.as_str() == CHAT;
    let matters = response.choice.iter().any(|block| match block {
        AssistantContent::Reasoning(_) => true,
        AssistantContent::ToolCall(_) | AssistantContent::Opaque(_) => !chat,
        _ => false,
    });
    if !matters {
        return None;
    }
    match response.message() {
        Some(LibraryMessage::Assistant(turn)) => serde_json::to_value(turn).ok().map(ProviderState),
        _ => None,
    }
}

/// The library's failure in our terms.
pub(super) fn error(provider: &Provider, error: &ProviderError) -> ModelError {
    let words = |text: &str| shown(&without_secret(text, provider.key_text()));
    if let Some(response) = error.provider_response() {
        let message = words(&provider_message(&response.body));
        return match response.status {
            Some(status) if !status.is_success() => ModelError::Status { status: status.as_u16(), message },
            _ => ModelError::Reported { message },
        };
    }
    let name = || provider.name.clone();
    match error {
        ProviderError::Http(error) => match transport_error(error) {
            Some(error) => unreachable_server(name(), error),
            None => ModelError::Malformed { reason: words(&error.to_string()) },
        },
        ProviderError::Request(_) | ProviderError::Url(_) | ProviderError::UnsupportedOption(_) => {
            ModelError::InvalidRequest { provider: name(), reason: words(&error.to_string()) }
        }
        ProviderError::Truncated => ModelError::Malformed { reason: "it stops before its end".to_owned() },
        ProviderError::Provider(message) => ModelError::Reported { message: words(message) },
        other => ModelError::Malformed { reason: words(&other.to_string()) },
    }
}

fn transport_error(error: &LibraryError) -> Option<&TransportError> {
    match error {
        LibraryError::Instance(error) => error.downcast_ref(),
        _ => None,
    }
}

/// A failure below HTTP in our terms.
pub(super) fn unreachable_server(provider: String, error: &TransportError) -> ModelError {
    match error {
        TransportError::TimedOut(after) => ModelError::TimedOut { after: *after },
        TransportError::Refused => ModelError::ConnectionRefused { provider },
        TransportError::Reset => ModelError::ConnectionReset { provider },
        TransportError::TooLarge(limit) => ModelError::TooLarge { limit: *limit },
        TransportError::Unusable(reason) => ModelError::Malformed { reason: reason.clone() },
        TransportError::Other(reason) => ModelError::Unreachable { provider, reason: reason.clone() },
    }
}

/// The provider's own words in the body of a failure: what its format calls the message, else the whole body.
pub(super) fn provider_message(body: &str) -> String {
    let Ok(json) = bounded::read(body.as_bytes()) else {
        return body.to_owned();
    };
    // Gemini wraps the failure of a streamed request in a list.
    let json = json.get(0).unwrap_or(&json);
    let said = ["/error/message", "/error", "/message", "/detail"]
        .iter()
        .find_map(|path| json.pointer(path).and_then(Value::as_str));
    said.map_or_else(|| body.to_owned(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_providers_words_are_found() {
        for (body, expected) in [
            (r#"{"error":{"message":"slow down","type":"x"}}"#, "slow down"),
            (r#"{"error":"model not found"}"#, "model not found"),
            (r#"[{"error":{"code":400,"message":"bad key"}}]"#, "bad key"),
            (r#"{"message":"no"}"#, "no"),
            (r#"{"detail":[1]}"#, r#"{"detail":[1]}"#),
            ("<html>gateway</html>", "<html>gateway</html>"),
            ("", ""),
        ] {
            assert_eq!(provider_message(body), expected);
        }
    }
}
