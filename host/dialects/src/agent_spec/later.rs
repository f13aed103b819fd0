//! Since when there are the component types and fields that versions after 25.4.1 added.

use super::schema::Schema;
use super::versions::Version;
use crate::document::Kind;
use Version::{V25_4_1, V25_4_2, V26_1_2, V26_3_1};

/// Component types that later versions added.
const TYPES: &[(&str, Version)] = &[
    ("A2AAgent", V25_4_2),
    ("A2AConnectionConfig", V25_4_2),
    ("AgentSpecializationParameters", V25_4_2),
    ("BuiltinTool", V25_4_2),
    ("ManagerWorkers", V25_4_2),
    ("ParallelFlowNode", V25_4_2),
    ("ParallelMapNode", V25_4_2),
    ("SpecializedAgent", V25_4_2),
    ("Swarm", V25_4_2),
    ("CatchExceptionNode", V26_1_2),
    ("ConversationSummarizationTransform", V26_1_2),
    ("GeminiAIStudioAuthConfig", V26_1_2),
    ("GeminiConfig", V26_1_2),
    ("GeminiVertexAIAuthConfig", V26_1_2),
    ("InMemoryCollectionDatastore", V26_1_2),
    ("LlmConfig", V26_1_2),
    ("MTlsOracleDatabaseConnectionConfig", V26_1_2),
    ("MessageSummarizationTransform", V26_1_2),
    ("OAuthClientConfig", V26_1_2),
    ("OAuthConfig", V26_1_2),
    ("OracleDatabaseDatastore", V26_1_2),
    ("PostgresDatabaseDatastore", V26_1_2),
    ("TlsOracleDatabaseConnectionConfig", V26_1_2),
    ("TlsPostgresDatabaseConnectionConfig", V26_1_2),
    ("DbmsVectorChainLlmConfig", V26_3_1),
];

/// Fields that later versions added: the type or family, the field, since when, and the value beside `null` that means
/// the same as leaving it out.
const FIELDS: &[(&str, &str, Version, Default)] = &[
    ("Tool", "requires_confirmation", V25_4_2, Default::False),
    ("ToolBox", "requires_confirmation", V26_1_2, Default::False),
    ("ToolBox", "retry_policy", V26_3_1, Default::Null),
    ("RemoteTool", "sensitive_headers", V25_4_2, Default::Empty),
    ("RemoteTool", "url_allow_list", V26_1_2, Default::Null),
    ("RemoteTool", "retry_policy", V26_1_2, Default::Null),
    ("MCPTool", "retry_policy", V26_3_1, Default::Null),
    ("ApiNode", "sensitive_headers", V25_4_2, Default::Empty),
    ("ApiNode", "url_allow_list", V26_1_2, Default::Null),
    ("ApiNode", "retry_policy", V26_1_2, Default::Null),
    ("Agent", "toolboxes", V25_4_2, Default::Empty),
    ("Agent", "human_in_the_loop", V25_4_2, Default::True),
    ("Agent", "transforms", V26_1_2, Default::Empty),
    ("OciGenAiConfig", "provider", V25_4_1, Default::Null),
    ("OciGenAiConfig", "api_provider", V26_1_2, Default::Text("oci")),
    ("OllamaConfig", "api_provider", V26_1_2, Default::Text("ollama")),
    ("VllmConfig", "api_provider", V26_1_2, Default::Text("vllm")),
    ("OpenAiConfig", "api_provider", V26_1_2, Default::Text("openai")),
    ("OpenAiConfig", "provider", V26_1_2, Default::Text("openai")),
    ("OpenAiCompatibleConfig", "url", V25_4_1, Default::None),
    ("OpenAiCompatibleConfig", "api_type", V25_4_2, Default::Text("chat_completions")),
    ("OpenAiConfig", "api_type", V25_4_2, Default::Text("chat_completions")),
    ("OciGenAiConfig", "api_type", V25_4_2, Default::Text("oci")),
    ("LlmConfig", "api_key", V25_4_2, Default::Null),
    ("OciGenAiConfig", "conversation_store_id", V25_4_2, Default::Null),
    ("LlmConfig", "provider", V26_1_2, Default::Null),
    ("LlmConfig", "api_provider", V26_1_2, Default::Null),
    ("LlmConfig", "url", V26_1_2, Default::Null),
    ("LlmConfig", "retry_policy", V26_1_2, Default::Null),
    ("OpenAiCompatibleConfig", "key_file", V26_1_2, Default::Null),
    ("OpenAiCompatibleConfig", "cert_file", V26_1_2, Default::Null),
    ("OpenAiCompatibleConfig", "ca_file", V26_1_2, Default::Null),
    ("RemoteTransport", "auth", V26_1_2, Default::Null),
    ("RemoteTransport", "sensitive_headers", V25_4_2, Default::Empty),
    ("RemoteTransport", "retry_policy", V26_1_2, Default::Null),
    ("OciAgent", "retry_policy", V26_1_2, Default::Null),
];

/// A value that means nothing.
#[derive(Clone, Copy)]
enum Default {
    /// None does
    None,
    Null,
    False,
    True,
    Empty,
    Text(&'static str),
}

/// Since when a component type exists, if a later version added it.
pub(super) fn type_since(component_type: &str) -> Option<Version> {
    TYPES.iter().find(|(name, _)| *name == component_type).map(|(_, version)| *version)
}

/// A field that a later version added to a component type.
pub(super) struct LaterField {
    /// Since when it exists
    pub(super) since: Version,
    default: Default,
}

/// The field of that name, if a later version added it to the component type.
pub(super) fn field(component_type: &str, name: &str) -> Option<LaterField> {
    // What a plugin adds to a type has versions of its own, and so has the type.
    if Schema::get().component(component_type).is_some_and(|(_, schema)| schema.plugin.is_some()) {
        return None;
    }
    FIELDS
        .iter()
        .find(|(family, field, ..)| *field == name && Schema::get().is_in(component_type, family))
        .map(|(.., since, default)| LaterField { since: *since, default: *default })
        .filter(|field| field.since > V25_4_1)
}

impl LaterField {
    /// Whether what is written means the same as leaving the field out.
    pub(super) fn is_default(&self, written: &Kind) -> bool {
        match (self.default, written) {
            (Default::None, _) => false,
            (_, Kind::Null) => true,
            (Default::False, Kind::Bool(value)) => !value,
            (Default::True, Kind::Bool(value)) => *value,
            (Default::Empty, Kind::List(list)) => list.is_empty(),
            (Default::Empty, Kind::Map(entries)) => entries.is_empty(),
            (Default::Text(default), Kind::Text(text)) => *text.value == *default,
            _ => false,
        }
    }
}
