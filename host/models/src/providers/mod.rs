//! Models on the network: OpenAI, Anthropic, Gemini, DeepSeek, xAI, Mistral, Ollama, Bedrock, and every server that speaks Chat
//! Completions.

mod bedrock;
mod bounded;
mod chat;
mod convert;
mod fields;
mod google;
mod lines;
mod own_keys;
mod settings;
mod transport;

use std::{borrow::Cow, collections::BTreeMap, net::IpAddr, time::Duration};

use async_trait::async_trait;
use futures::StreamExt;
use rig_core::{
    completion::CompletionRequest,
    driver::Model as LibraryModel,
    http_client::DynHttpClient,
    message::Message as LibraryMessage,
    operation::Completion,
    providers::{
        anthropic::AnthropicConfig,
        gemini::GeminiConfig,
        openai::{
            OpenAIConfig,
            responses_api::wire::Responses,
            wire::{Auth, DEEPSEEK, Dialect, OLLAMA, OPENAI},
        },
    },
    streaming::{Item, StreamEvent},
    wire::{Encoded, Wire, WireFrame},
};

use self::{
    bounded::Bounded,
    fields::WithFields,
    own_keys::OwnKeys,
    settings::{Environment, Provider},
    transport::{Connections, Transport, Way},
};
pub use self::{
    settings::{Protocol, ProviderSettings, Secret},
    transport::HttpLimits,
};
use crate::{Api, Model, ModelError, ModelName, OnText, Reply, Request, Server, Tokenizers, untrusted::shown};

/// Servers that speak Chat Completions and about which nothing more is known.
const COMPATIBLE: Dialect = Dialect::gateway("openai-compatible", "", "");

/// What Anthropic is told when neither the request nor the library knows how long a reply may be; it insists on
/// a number.
const ANTHROPIC_MAX_TOKENS: u64 = 8192;

/// How long an exchange may take for which nobody says it. A server that sends a byte now and then is never silent.
const LONGEST: Duration = Duration::from_secs(2 * 60 * 60);

/// An HTTP client that follows no redirect and keeps the limits on connections to providers. It is the HTTP library's
/// own, because whoever asks in another form than ours speaks HTTP by himself.
pub type HttpClient = reqwest::Client;

/// Where a model is.
#[derive(Debug, Clone)]
pub struct ModelServer {
    /// What the server calls the model.
    pub model: String,
    /// The address before the path of a request.
    pub base_url: String,
    /// What it is paid with.
    pub key: Option<Secret>,
    /// The way to it.
    pub client: HttpClient,
}

/// The providers that can be asked, by name.
#[derive(Debug)]
pub struct Providers {
    providers: BTreeMap<String, Provider>,
    own_keys: OwnKeys,
    every_model: Option<Provider>,
    default_model: Option<ModelName>,
    connections: Connections,
    tokenizers: Tokenizers,
}

impl Providers {
    /// No providers yet.
    #[must_use]
    pub fn new(limits: HttpLimits) -> Self {
        Self {
            providers: BTreeMap::new(),
            own_keys: OwnKeys::default(),
            every_model: None,
            default_model: None,
            connections: Connections::new(limits),
            tokenizers: Tokenizers::of_folder(None),
        }
    }

    /// The providers that the environment describes, read through `lookup`.
    ///
    /// `openai`, `anthropic`, `gemini`, `deepseek`, `xai` and `mistral` read `<NAME>_API_KEY` (`gemini` also `GOOGLE_API_KEY`) and
    /// `<NAME>_BASE_URL`, `ollama` reads
    /// `OLLAMA_HOST`, and `foundry`, whose servers are where a request says, `AZURE_FOUNDRY_API_KEY` or `AZURE_FOUNDRY_TOKEN`;
    /// so `vertex` reads `GOOGLE_APPLICATION_CREDENTIALS`, the file of a service account, and `bedrock` `AWS_ACCESS_KEY_ID` with
    /// `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`, or else `AWS_BEARER_TOKEN_BEDROCK`. With `HOTCELL_PROXY=environment` they are reached through the proxies that the environment names; no
    /// proxy is used otherwise. `HOTCELL_MODEL` is the model for requests that name none. `HOTCELL_MODEL_URL` (with
    /// `HOTCELL_MODEL_KEY`) is a server that answers every model name instead of all these.
    ///
    /// # Errors
    ///
    /// When a URL or the default model's name cannot be used.
    pub fn from_environment(lookup: &dyn Fn(&str) -> Option<String>) -> Result<Self, ModelError> {
        let Environment { providers, default_model, every_model, proxies } = settings::from_environment(lookup)?;
        let mut result = Self::new(HttpLimits::default());
        if proxies {
            result.connections = result.connections.through_proxies();
        }
        for (name, settings) in providers {
            result = result.with_provider(&name, settings)?;
        }
        if let Some(settings) = every_model {
            result = result.with_every_model(settings)?;
        }
        result.own_keys = OwnKeys::from_environment(lookup);
        result.default_model = default_model;
        Ok(result)
    }

    /// Tells private addresses from public ones by this rule. Without one, only this machine counts as private.
    #[must_use]
    pub fn with_private_addresses(mut self, is_private: fn(IpAddr) -> bool) -> Self {
        self.connections = self.connections.telling_private(is_private);
        self
    }

    /// The same providers, whose models count tokens by these tokenizers.
    #[must_use]
    pub fn counting_with(mut self, tokenizers: Tokenizers) -> Self {
        self.tokenizers = tokenizers;
        self
    }

    /// Adds the provider `name`, or replaces it.
    ///
    /// # Errors
    ///
    /// When its URL cannot be used.
    pub fn with_provider(mut self, name: &str, settings: ProviderSettings) -> Result<Self, ModelError> {
        self.providers.insert(name.to_owned(), Provider::new(name, settings)?);
        Ok(self)
    }

    /// Sends every request to this server, whatever its model's name; it gets the name as it is written.
    ///
    /// # Errors
    ///
    /// When its URL cannot be used.
    pub fn with_every_model(mut self, settings: ProviderSettings) -> Result<Self, ModelError> {
        self.every_model = Some(Provider::new("HOTCELL_MODEL_URL", settings)?);
        Ok(self)
    }

    /// The model for requests that name none; its provider is also that of names without a provider.
    #[must_use]
    pub fn with_default_model(mut self, name: ModelName) -> Self {
        self.default_model = Some(name);
        self
    }

    /// The model for requests that name none, if one is configured.
    #[must_use]
    pub fn default_model(&self) -> Option<&ModelName> {
        self.default_model.as_ref()
    }

    /// Whether a request to `name` could be sent, without sending one.
    ///
    /// # Errors
    ///
    /// When its provider does not exist, cannot be told from the name, or lacks a key.
    pub fn check(&self, name: &ModelName) -> Result<(), ModelError> {
        self.resolve(name).map(|_| ())
    }

    /// Where a model is that is asked for something else than a reply, such as vectors or a ranking, in the form that
    /// OpenAI gave such requests.
    ///
    /// # Errors
    ///
    /// As [`Providers::check`], and when no connection to it can be set up.
    pub fn server(&self, name: &ModelName) -> Result<ModelServer, ModelError> {
        let (provider, model) = self.resolve(name)?;
        let transport = self
            .connections
            .transport(&provider.url, Way::Operators, None)
            .map_err(|error| convert::unreachable_server(provider.name.clone(), &error))?;
        Ok(ModelServer {
            model: model.to_owned(),
            base_url: provider.base_url().to_owned(),
            key: provider.key.clone(),
            client: transport.client(),
        })
    }

    /// The provider for `name` and what that provider calls the model.
    fn resolve<'a>(&'a self, name: &'a ModelName) -> Result<(&'a Provider, &'a str), ModelError> {
        if let Some(provider) = &self.every_model {
            return Ok((provider, name.as_str()));
        }
        let known = || self.providers.keys().cloned().collect::<Vec<_>>();
        let provider = match name.provider() {
            Some(named) => self
                .providers
                .get(named)
                .ok_or_else(|| ModelError::UnknownProvider { provider: shown(named), known: known() })?,
            None => self
                .default_provider()
                .ok_or_else(|| ModelError::NoProvider { model: name.to_string(), known: known() })?,
        };
        provider.check()?;
        let model = name.model();
        if provider.protocol == Protocol::Gemini && !model.chars().all(fits_in_a_path) {
            let reason = "Gemini's models have letters, digits, `-`, `_`, `.` and `/` only".to_owned();
            return Err(ModelError::InvalidName { name: name.to_string(), reason });
        }
        Ok((provider, model))
    }

    /// The provider that a request goes to and what that provider calls the model. `own_key` is that of a provider without an address.
    fn locate<'a>(
        &'a self,
        request: &'a Request,
        own_key: Option<Secret>,
    ) -> Result<(Cow<'a, Provider>, &'a str), ModelError> {
        let own = match &request.server {
            Some(server) if self.every_model.is_none() => server,
            _ => return self.resolve(&request.model).map(|(provider, model)| (Cow::Borrowed(provider), model)),
        };
        let provider = match own {
            Server::Provider(name) => {
                let known = || self.providers.keys().cloned().collect();
                let unknown = || ModelError::UnknownProvider { provider: shown(name), known: known() };
                Cow::Borrowed(self.providers.get(name).ok_or_else(unknown)?)
            }
            Server::Address(url) | Server::PrivateAddress(url) => {
                let settings =
                    ProviderSettings { protocol: Protocol::OpenAiCompatible, base_url: Some(url.clone()), key: None };
                Cow::Owned(Provider::new(url, settings)?)
            }
            Server::ProviderAt { provider: name, address, .. } => {
                let known = || self.providers.keys().cloned().collect();
                let unknown = || ModelError::UnknownProvider { provider: shown(name), known: known() };
                let key = Some(own_key.ok_or_else(unknown)?);
                let settings = ProviderSettings { protocol: Protocol::OpenAi, base_url: Some(address.clone()), key };
                Cow::Owned(Provider::new(name, settings)?)
            }
        };
        provider.check()?;
        Ok((provider, request.model.as_str()))
    }

    /// The variable that the key of a provider without an address was read from; none where there is none.
    #[must_use]
    pub fn own_key_variable(&self, provider: &str) -> Option<&str> {
        self.own_keys.variable(provider)
    }

    /// Whether one server answers all requests, wherever they say that their model is.
    #[must_use]
    pub fn has_one_server(&self) -> bool {
        self.every_model.is_some()
    }

    /// The provider of names without one: that of the default model, else the only one that has a key.
    fn default_provider(&self) -> Option<&Provider> {
        if let Some(named) = self.default_model.as_ref().and_then(ModelName::provider) {
            return self.providers.get(named);
        }
        let mut with_key = self.providers.values().filter(|provider| provider.is_usable() && provider.key.is_some());
        let only = with_key.next()?;
        with_key.next().is_none().then_some(only)
    }

    /// The way to a provider for a request.
    fn transport(&self, provider: &Provider, request: &Request) -> Result<Transport, ModelError> {
        let way = match &request.server {
            _ if self.every_model.is_some() => Way::Operators,
            Some(Server::Address(_) | Server::ProviderAt { is_private: false, .. }) => Way::Public,
            Some(Server::PrivateAddress(_) | Server::ProviderAt { is_private: true, .. }) => Way::Private,
            Some(Server::Provider(_)) | None => Way::Operators,
        };
        // What a file says of its server is not for the one that answers in its place.
        let tls = request.tls.as_ref().filter(|_| self.every_model.is_none());
        self.connections
            .transport(&provider.url, way, tls)
            .map_err(|error| convert::unreachable_server(provider.name.clone(), &error))
    }

    async fn ask(&self, request: &Request, on_text: Option<OnText<'_>>) -> Result<Reply, ModelError> {
        let own_key = match &request.server {
            Some(Server::ProviderAt { provider, address, .. }) if !self.has_one_server() => {
                if provider == bedrock::NAME {
                    let access = self.own_keys.amazon()?;
                    let settings = ProviderSettings {
                        protocol: Protocol::OpenAiCompatible,
                        base_url: Some(address.clone()),
                        key: None,
                    };
                    let provider = Provider::new(provider, settings)?;
                    let transport = self.transport(&provider, request)?;
                    return bedrock::ask(access, &provider, request, &transport, on_text).await;
                }
                self.own_keys.key(provider, &self.connections).await?
            }
            _ => None,
        };
        let (provider, model) = self.locate(request, own_key)?;
        let provider = &*provider;
        let transport = self.transport(provider, request)?;
        match provider.protocol {
            Protocol::Anthropic | Protocol::Gemini if request.api == Api::Responses => {
                let reason = "its requests have a form of their own, and not that of Responses".to_owned();
                Err(ModelError::InvalidRequest { provider: provider.name.clone(), reason })
            }
            Protocol::Anthropic => {
                let config = AnthropicConfig::new(provider.key_text()).with_base_url(provider.base_url());
                let mut wire = config.connect(DynHttpClient::new(transport.clone())).completion(model).wire;
                wire.default_max_tokens.get_or_insert(ANTHROPIC_MAX_TOKENS);
                let request = shaped(provider, request)?;
                exchange(provider, wire, transport, request, on_text).await
            }
            Protocol::Gemini => {
                let config = GeminiConfig::new(provider.key_text()).with_base_url(provider.base_url());
                let wire = config.connect(DynHttpClient::new(transport.clone())).completion(model).wire;
                let request = shaped(provider, request)?;
                exchange(provider, wire, transport, request, on_text).await
            }
            _ if request.api == Api::Responses => {
                // System messages stay where they are in the conversation.
                let wire = Responses::new(open_ai(provider), model).with_system_instructions_as_messages();
                let wire = WithFields::new(wire, fields::settings(request, provider.protocol));
                let history = convert::library_history(&request.messages);
                let request = convert::library_request(provider, request, history)?;
                exchange(provider, wire, transport, request, on_text).await
            }
            Protocol::OpenAi
            | Protocol::DeepSeek
            | Protocol::XAi
            | Protocol::Mistral
            | Protocol::Ollama
            | Protocol::OpenAiCompatible => {
                let wire = chat::exact(open_ai(provider).chat(model), request, provider.protocol);
                // The conversation is the wire's; the library only insists on seeing one.
                let request = convert::library_request(provider, request, vec![LibraryMessage::user("-")])?;
                exchange(provider, wire, transport, request, on_text).await
            }
        }
    }
}

fn fits_in_a_path(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '.' | '/')
}

/// How a server is asked that speaks a form of OpenAI's.
fn open_ai(provider: &Provider) -> OpenAIConfig {
    let mut dialect = match provider.protocol {
        Protocol::OpenAi => OPENAI,
        Protocol::DeepSeek => DEEPSEEK,
        Protocol::Ollama => OLLAMA,
        Protocol::Anthropic | Protocol::Gemini | Protocol::XAi | Protocol::Mistral | Protocol::OpenAiCompatible => {
            COMPATIBLE
        }
    };
    // A schema that was asked for is sent, with tools or without.
    dialect.quirks.response_format_with_tools = true;
    OpenAIConfig::with_key(&dialect, provider.key_text())
        .with_auth(Auth::OptionalBearer)
        .with_base_url(provider.base_url())
}

/// The request for a provider whose rules about conversations the library keeps.
fn shaped(provider: &Provider, request: &Request) -> Result<CompletionRequest, ModelError> {
    if let Some(name) = request.more.keys().next() {
        let reason = format!("the setting `{name}` can be sent to servers that speak Chat Completions only");
        return Err(ModelError::InvalidRequest { provider: provider.name.clone(), reason });
    }
    let history = convert::library_history(&request.messages);
    let mut shaped = convert::library_request(provider, request, history)?;
    shaped.temperature = fields::temperature(request, provider.protocol);
    shaped.options.top_p = request.top_p;
    Ok(shaped)
}

async fn exchange<W>(
    provider: &Provider,
    wire: W,
    transport: Transport,
    request: CompletionRequest,
    on_text: Option<OnText<'_>>,
) -> Result<Reply, ModelError>
where
    W: Wire<Op = Completion, Payload = Encoded, Frame = WireFrame>,
{
    let model = LibraryModel::new(Bounded(wire), transport);
    let response = match on_text {
        None => model.call(request).await,
        Some(on_text) => {
            let mut stream = model.stream(request).map_err(|error| convert::error(provider, &error))?;
            while let Some(item) = stream.next().await {
                let item = item.map_err(|error| convert::error(provider, &error))?;
                if let Item::Event(StreamEvent::Text { text, .. }) = item {
                    on_text(&text);
                }
            }
            stream.finish().await
        }
    };
    response.map(convert::reply).map_err(|error| convert::error(provider, &error))
}

#[async_trait]
impl Model for Providers {
    async fn complete(&self, request: Request, on_text: Option<OnText<'_>>) -> Result<Reply, ModelError> {
        let limit = request.timeout.unwrap_or(LONGEST);
        match tokio::time::timeout(limit, self.ask(&request, on_text)).await {
            Ok(result) => result.map(|reply| Reply { usage: reply.usage.believed(), ..reply }),
            Err(_) => Err(ModelError::TimedOut { after: limit }),
        }
    }

    fn count_tokens(&self, model: &ModelName, text: &str) -> Option<usize> {
        self.tokenizers.count(model, text)
    }
}
