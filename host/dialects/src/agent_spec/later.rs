//! What versions after 25.4.1 added: known by name, so that a document is told what it uses and since when that exists.

use hotcell_graph::Value;

use super::schema::Schema;
use super::versions::Version;
use Version::{V25_4_2, V26_1_2, V26_3_1};

/// Component types that later versions added; none of them is supported.
const TYPES: &[(&str, Version)] = &[
    ("A2AAgent", V25_4_2),
    ("A2AConnectionConfig", V25_4_2),
    ("AgentSpecializationParameters", V25_4_2),
    ("BuiltinTool", V25_4_2),
    ("MCPToolBox", V25_4_2),
    ("MCPToolSpec", V25_4_2),
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

/// The component types that later versions added.
pub(super) fn types() -> impl Iterator<Item = &'static str> {
    TYPES.iter().map(|(name, _)| *name)
}

/// A field that a later version added to a component type.
pub(super) struct LaterField {
    /// Since when it exists
    pub(super) since: Version,
    default: Default,
}

/// The field of that name, if a later version added it to the component type.
pub(super) fn field(component_type: &str, name: &str) -> Option<LaterField> {
    FIELDS
        .iter()
        .find(|(family, field, ..)| *field == name && Schema::get().is_in(component_type, family))
        .map(|(.., since, default)| LaterField { since: *since, default: *default })
}

impl LaterField {
    /// Whether a value means the same as leaving the field out.
    pub(super) fn is_default(&self, value: &Value) -> bool {
        match (self.default, value) {
            (_, Value::Null) => true,
            (Default::False, Value::Bool(value)) => !value,
            (Default::True, Value::Bool(value)) => *value,
            (Default::Empty, Value::List(list)) => list.is_empty(),
            (Default::Empty, Value::Object(object)) => object.is_empty(),
            (Default::Text(default), Value::Text(text)) => **text == *default,
            _ => false,
        }
    }
}
