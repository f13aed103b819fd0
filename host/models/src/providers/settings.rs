//! Which providers exist, where they are and what they are paid with.

use std::{collections::BTreeMap, fmt};

use url::Url;

use crate::{ModelError, ModelName, untrusted::shown};

/// The variable that says whether proxies are used.
const PROXY: &str = "HOTCELL_PROXY";

/// A key. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps `key`.
    #[must_use]
    pub fn new(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    /// The key itself, for whoever sends it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(..)")
    }
}

/// The language a provider's server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// OpenAI itself: Chat Completions.
    OpenAi,
    /// Anthropic's Messages.
    Anthropic,
    /// Google's `generateContent`.
    Gemini,
    /// DeepSeek: Chat Completions with its own reasoning fields.
    DeepSeek,
    /// xAI: Chat Completions.
    XAi,
    /// Mistral: Chat Completions.
    Mistral,
    /// Ollama: Chat Completions, no key.
    Ollama,
    /// Any other server that speaks Chat Completions; a key is optional.
    OpenAiCompatible,
}

impl Protocol {
    fn default_url(self) -> Option<&'static str> {
        match self {
            Self::OpenAi => Some("https://api.openai.com/v1"),
            Self::Anthropic => Some("https://api.anthropic.com"),
            Self::Gemini => Some("https://generativelanguage.googleapis.com"),
            Self::DeepSeek => Some("https://api.deepseek.com"),
            Self::XAi => Some("https://api.x.ai/v1"),
            Self::Mistral => Some("https://api.mistral.ai/v1"),
            Self::Ollama => Some("http://localhost:11434/v1"),
            Self::OpenAiCompatible => None,
        }
    }

    /// Whether the public server of this protocol answers nobody without a key.
    fn needs_key(self) -> bool {
        !matches!(self, Self::Ollama | Self::OpenAiCompatible)
    }
}

/// One provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderSettings {
    /// The language its server speaks.
    pub protocol: Protocol,
    /// Where its server is; `None` is the provider's public address. The form is what the provider's own clients
    /// take: with `/v1` for OpenAI, Ollama and compatible servers, without for Anthropic and Gemini.
    pub base_url: Option<String>,
    /// The key; a provider whose base URL is given may do without.
    pub key: Option<Secret>,
}

/// A provider whose address has been checked.
#[derive(Debug, Clone)]
pub(super) struct Provider {
    pub(super) name: String,
    pub(super) protocol: Protocol,
    pub(super) url: Url,
    pub(super) key: Option<Secret>,
    /// The variable to set, where a key is missing.
    missing_key: Option<String>,
}

impl Provider {
    pub(super) fn new(name: &str, settings: ProviderSettings) -> Result<Self, ModelError> {
        let ProviderSettings { protocol, base_url, key } = settings;
        let refuse = |reason: String| ModelError::InvalidUrl { provider: name.to_owned(), reason };
        let elsewhere = base_url.is_some();
        let address = base_url
            .as_deref()
            .or(protocol.default_url())
            .ok_or_else(|| refuse("it is missing; a compatible server needs one".to_owned()))?;
        let url = Url::parse(address).map_err(|error| {
            refuse(match error {
                url::ParseError::RelativeUrlWithoutBase => {
                    format!("`{}` does not begin with `http://` or `https://`", shown(address))
                }
                other => format!("`{}`: {other}", shown(address)),
            })
        })?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(refuse("it must begin with `http://` or `https://` and name a host".to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refuse("it must not hold a user or password; give the key by itself".to_owned()));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(refuse("it must end with the path".to_owned()));
        }
        let missing_key = (key.is_none() && protocol.needs_key() && !elsewhere).then(|| key_variable(name));
        Ok(Self { name: name.to_owned(), protocol, url, key, missing_key })
    }

    /// Whether nothing is missing to ask it.
    pub(super) fn check(&self) -> Result<(), ModelError> {
        match &self.missing_key {
            None => Ok(()),
            Some(variable) => Err(ModelError::MissingKey { provider: self.name.clone(), variable: variable.clone() }),
        }
    }

    pub(super) fn is_usable(&self) -> bool {
        self.missing_key.is_none()
    }

    /// The base URL without a slash at its end.
    pub(super) fn base_url(&self) -> &str {
        self.url.as_str().trim_end_matches('/')
    }

    pub(super) fn key_text(&self) -> &str {
        self.key.as_ref().map_or("", Secret::expose)
    }
}

fn key_variable(provider: &str) -> String {
    format!("{}_API_KEY", provider.to_uppercase().replace('-', "_"))
}

/// What the environment says about models.
pub(super) struct Environment {
    pub(super) providers: BTreeMap<String, ProviderSettings>,
    pub(super) default_model: Option<ModelName>,
    /// The server that answers every name.
    pub(super) every_model: Option<ProviderSettings>,
    /// Whether the proxies that the environment names are used
    pub(super) proxies: bool,
}

/// Reads the variables; an empty one counts as not set.
pub(super) fn from_environment(lookup: &dyn Fn(&str) -> Option<String>) -> Result<Environment, ModelError> {
    let variable = |name: &str| lookup(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
    let public = [
        ("openai", Protocol::OpenAi),
        ("anthropic", Protocol::Anthropic),
        ("gemini", Protocol::Gemini),
        ("deepseek", Protocol::DeepSeek),
        ("xai", Protocol::XAi),
        ("mistral", Protocol::Mistral),
    ];
    let mut providers = BTreeMap::new();
    for (name, protocol) in public {
        // Google's own clients take either.
        let other = || variable("GOOGLE_API_KEY").filter(|_| protocol == Protocol::Gemini);
        let settings = ProviderSettings {
            protocol,
            base_url: variable(&format!("{}_BASE_URL", name.to_uppercase())),
            key: variable(&key_variable(name)).or_else(other).map(Secret::new),
        };
        providers.insert(name.to_owned(), settings);
    }
    let ollama = ProviderSettings {
        protocol: Protocol::Ollama,
        base_url: variable("OLLAMA_HOST").map(|host| ollama_url(&host)),
        key: None,
    };
    providers.insert("ollama".to_owned(), ollama);
    let every_model = variable("HOTCELL_MODEL_URL").map(|url| ProviderSettings {
        protocol: Protocol::OpenAiCompatible,
        base_url: Some(url),
        key: variable("HOTCELL_MODEL_KEY").map(Secret::new),
    });
    let default_model = variable("HOTCELL_MODEL").map(|name| name.parse()).transpose()?;
    let proxies = match variable(PROXY).as_deref() {
        None => false,
        Some("environment") => true,
        Some(_) => {
            let reason =
                "it must be `environment`, for the proxies that the environment names, or not be set".to_owned();
            return Err(ModelError::InvalidUrl { provider: PROXY.to_owned(), reason });
        }
    };
    Ok(Environment { providers, default_model, every_model, proxies })
}

/// `OLLAMA_HOST` as Ollama reads it (scheme and port may be missing, and an address to listen on is no address
/// to call), as the base URL of its compatible interface.
fn ollama_url(host: &str) -> String {
    let (scheme, rest) = host.split_once("://").unwrap_or(("http", host));
    let authority = rest.trim_end_matches('/').trim_end_matches("/v1");
    let after_address = authority.rsplit(']').next().unwrap_or(authority);
    let with_port = if after_address.contains(':') || host.contains("://") {
        authority.to_owned()
    } else {
        format!("{authority}:11434")
    };
    format!("{scheme}://{}/v1", with_port.replacen("0.0.0.0", "127.0.0.1", 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ollama_hosts() {
        for (host, url) in [
            ("localhost", "http://localhost:11434/v1"),
            ("0.0.0.0:9999", "http://127.0.0.1:9999/v1"),
            ("0.0.0.0", "http://127.0.0.1:11434/v1"),
            ("http://gpu.example:8080/", "http://gpu.example:8080/v1"),
            ("https://gpu.example", "https://gpu.example/v1"),
            ("http://gpu.example/v1", "http://gpu.example/v1"),
            ("[::1]", "http://[::1]:11434/v1"),
            ("[::1]:5", "http://[::1]:5/v1"),
        ] {
            assert_eq!(ollama_url(host), url, "{host}");
        }
    }

    #[test]
    fn urls_that_cannot_be_used_are_refused() {
        for (url, reason) in [
            ("nonsense", "does not begin with"),
            ("ftp://host/v1", "must begin with"),
            ("http://user:pass@host/v1", "must not hold a user"),
            ("http://host/v1?key=1", "must end with the path"),
        ] {
            let settings =
                ProviderSettings { protocol: Protocol::OpenAiCompatible, base_url: Some(url.to_owned()), key: None };
            let error = Provider::new("mine", settings).expect_err(url).to_string();
            assert!(error.contains("`mine`") && error.contains(reason), "{error}");
        }
    }

    #[test]
    fn a_key_is_never_printed() {
        let settings =
            ProviderSettings { protocol: Protocol::OpenAi, base_url: None, key: Some(Secret::new("sk-secret")) };
        let provider = Provider::new("openai", settings.clone()).expect("usable");
        assert!(!format!("{settings:?} {provider:?}").contains("sk-secret"));
    }
}
