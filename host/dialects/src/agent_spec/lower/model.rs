//! LLM configurations.

use std::sync::Arc;

use hotcell_graph::Value;
use hotcell_graph::ir::{ModelApi, ModelServer, ModelSettings};

use super::Lowering;
use crate::agent_spec::model::{Component, ComponentId};

/// Fields of a request that are not for a configuration to set.
const OWN: &[&str] = &[
    "model",
    "messages",
    "tools",
    "tool_choice",
    "stream",
    "stream_options",
    "n",
    "functions",
    "function_call",
    "response_format",
    "parallel_tool_calls",
    "store",
    "user",
    "input",
    "instructions",
    "text",
    "previous_response_id",
    "conversation",
    "background",
    "prompt",
];

/// The field with settings of requests.
const PARAMETERS: &str = "default_generation_parameters";

impl Lowering<'_> {
    /// The settings of requests to a model.
    pub(super) fn model(&mut self, id: ComponentId) -> ModelSettings {
        let config = self.component(id);
        let server = match &*config.component_type {
            "OpenAiConfig" => at(config).unwrap_or(ModelServer::Provider("openai")),
            "OpenAiCompatibleConfig" | "VllmConfig" | "OllamaConfig" => {
                ModelServer::Address(address(config.text("url").unwrap_or_default()).into())
            }
            "LlmConfig" => {
                match (at(config), config.text("api_provider").or_else(|| config.text("provider"))) {
                    (Some(server), _) => server,
                    (None, Some(name)) => match PROVIDERS.iter().find(|(known, _)| *known == name.to_lowercase()) {
                        Some((_, provider)) => ModelServer::Provider(provider),
                        None => {
                            let all: Vec<&str> = PROVIDERS.iter().map(|(name, _)| *name).collect();
                            let all = all.join("`, `");
                            self.refuse_field(config, "api_provider", format!("models of the provider `{name}` cannot be reached by name: write the `url` of a server that speaks Chat Completions, or one of `{all}`"));
                            return ModelSettings::default();
                        }
                    },
                    (None, None) => {
                        self.refuse(config, "an `LlmConfig` needs an `api_provider`, or the `url` of a server that speaks Chat Completions");
                        return ModelSettings::default();
                    }
                }
            }
            "GeminiConfig" => {
                let auth = config.child("auth").map(|auth| self.component(auth));
                if let Some(auth) = auth.filter(|auth| &*auth.component_type != "GeminiAIStudioAuthConfig") {
                    let kind = auth.component_type.clone();
                    self.refuse(auth, format!("`{kind}` is not supported: `GeminiAIStudioAuthConfig` is"));
                }
                ModelServer::Provider("gemini")
            }
            "OciGenAiConfig" => {
                self.refuse(config, "`OciGenAiConfig` cannot be run: hotcell does not sign requests to OCI; use a configuration that speaks Chat Completions");
                return ModelSettings::default();
            }
            other => {
                self.refuse(
                    config,
                    format!("`{other}` cannot be run: hotcell does not know how to reach such a model"),
                );
                return ModelSettings::default();
            }
        };
        let api = (config.text("api_type") == Some("responses")).then_some(ModelApi::Responses);
        if let (Some(_), ModelServer::Provider(name)) = (api, &server)
            && !SPEAK_RESPONSES.contains(name)
        {
            let problem = format!("`api_type: responses` is not supported for models of `{name}`");
            self.refuse_field(config, "api_type", problem);
        }
        let url = config.text("url").unwrap_or_default();
        let tls = self.tls(config, url, ["ca_file", "cert_file", "key_file"]).map(Arc::new);
        let mut settings = ModelSettings {
            model: config.text("model_id").map(str::to_owned),
            server: Some(server),
            api,
            tls,
            ..ModelSettings::default()
        };
        self.generation_parameters(config, &mut settings);
        settings
    }

    fn generation_parameters(&mut self, config: &Component, settings: &mut ModelSettings) {
        let given = config.value(PARAMETERS).and_then(Value::as_object);
        for (name, value) in given.into_iter().flat_map(|given| given.iter()) {
            let number = match value {
                Value::Number(number) => Some(number.to_f64()),
                _ => None,
            };
            match (&**name, number) {
                (_, None) if *value == Value::Null => {}
                ("temperature", Some(number)) => settings.temperature = Some(number),
                ("top_p", Some(number)) => settings.top_p = Some(number),
                ("max_tokens", Some(number)) if (1.0..=f64::from(u32::MAX)).contains(&number) => {
                    // Within the range of `u32`; a limit has no fraction.
                    settings.max_tokens = Some(number as u32);
                }
                ("temperature" | "top_p" | "max_tokens", _) => {
                    self.refuse_field(
                        config,
                        PARAMETERS,
                        format!("the generation parameter `{name}` cannot be `{value}`"),
                    );
                }
                (name, _) if OWN.contains(&name) => {
                    self.refuse_field(config, PARAMETERS, format!("`{name}` is not for a configuration to set: it belongs to each request, which the host makes"));
                }
                _ => settings.more.get_or_insert_default().insert(name.clone(), value.clone()),
            }
        }
    }
}

/// Providers by the names that configurations have for them.
const PROVIDERS: &[(&str, &str)] = &[
    ("openai", "openai"),
    ("anthropic", "anthropic"),
    ("google", "gemini"),
    ("gemini", "gemini"),
    ("deepseek", "deepseek"),
    ("ollama", "ollama"),
];

/// Providers whose models are asked by Responses, too.
const SPEAK_RESPONSES: &[&str] = &["openai", "ollama"];

/// The server that a configuration names.
fn at(config: &Component) -> Option<ModelServer> {
    config.text("url").filter(|url| !url.is_empty()).map(|url| ModelServer::Address(address(url).into()))
}

/// The address of a server before `/chat/completions`: a server without scheme is one of plain HTTP, and without a version
/// the paths of its requests begin with `/v1`, as the servers have them.
fn address(url: &str) -> String {
    let url = url.trim_end_matches('/');
    let url = url.strip_suffix("/chat/completions").unwrap_or(url);
    let url = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
    let last = url.rsplit('/').next().unwrap_or_default();
    let has_version = last.strip_prefix('v').is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()));
    if has_version { url } else { format!("{url}/v1") }
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn addresses_of_servers() {
        for (url, expected) in [
            ("http://localhost:8000", "http://localhost:8000/v1"),
            ("http://llm.invalid/v1/", "http://llm.invalid/v1"),
            ("https://api.example/openai/v2", "https://api.example/openai/v2"),
            ("http://h/v1/chat/completions", "http://h/v1"),
            ("url.of.my.llm.deployment:12345", "http://url.of.my.llm.deployment:12345/v1"),
        ] {
            assert_eq!(address(url), expected);
        }
    }
}
