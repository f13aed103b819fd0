//! Which model is asked.

use std::path::PathBuf;
use std::sync::Arc;

use super::RecordedModel;
use crate::value::{Key, Object};

/// Settings of a model call; what is not set is not sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelSettings {
    /// `provider:model`, or a name that the host knows; none means the host's default
    pub model: Option<String>,
    /// Sampling temperature
    pub temperature: Option<f64>,
    /// Nucleus sampling
    pub top_p: Option<f64>,
    /// Most tokens that a reply may have
    pub max_tokens: Option<u32>,
    /// How much it thinks before it answers, where it can; none leaves that to it
    pub reasoning: Option<ModelReasoning>,
    /// Whether the provider is asked to keep the prompt, which costs less when it comes again
    pub keeps_prompt: bool,
    /// Other settings that the request carries, under the names that the server knows
    pub more: Option<Object>,
    /// Where the model is; none means that its name says so
    pub server: Option<ModelServer>,
    /// What requests look like; none means Chat Completions, or what the provider speaks
    pub api: Option<ModelApi>,
    /// How its server and the host prove to each other who they are, beyond what any server does
    pub tls: Option<Arc<TlsPaths>>,
}

/// How much a model thinks before it answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ModelReasoning {
    /// The most tokens; none for what is usual
    pub budget: Option<u32>,
}

/// What requests to a model look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelApi {
    /// Chat Completions of OpenAI
    Chat,
    /// Responses of OpenAI
    Responses,
}

/// Files of this machine, in PEM, for TLS in which both sides may have to prove who they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsPaths {
    /// Who may sign the server's certificate, in place of those who are trusted otherwise
    pub authorities: Option<PathBuf>,
    /// The certificate that is shown to the server
    pub certificate: Option<PathBuf>,
    /// The key of that certificate
    pub key: Option<PathBuf>,
}

/// Where a model is.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelServer {
    /// The provider that the host knows by this name
    Provider(&'static str),
    /// A server with this address that speaks Chat Completions
    Address(Key),
    /// A server with this address that speaks Chat Completions and belongs to the provider that the host knows by this name: it is
    /// asked with the key that the host has for it
    ProviderAt(&'static str, Key),
    /// Nowhere that the host can reach; the text says why
    Refused(String),
    /// Nowhere: its replies are ready
    Recorded(RecordedModel),
}

impl ModelSettings {
    /// Whether the replies are ready.
    pub fn is_recorded(&self) -> bool {
        matches!(self.server, Some(ModelServer::Recorded(_)))
    }

    /// These settings, with what they leave open taken from `defaults`.
    pub fn or(&self, defaults: &ModelSettings) -> ModelSettings {
        let its = if self.server.is_some() { self } else { defaults };
        ModelSettings {
            model: self.model.clone().or_else(|| defaults.model.clone()),
            temperature: self.temperature.or(defaults.temperature),
            top_p: self.top_p.or(defaults.top_p),
            max_tokens: self.max_tokens.or(defaults.max_tokens),
            reasoning: self.reasoning.or(defaults.reasoning),
            keeps_prompt: self.keeps_prompt || defaults.keeps_prompt,
            more: self.more.clone().or_else(|| defaults.more.clone()),
            // How a server is asked belongs to the server.
            server: its.server.clone(),
            api: its.api,
            tls: its.tls.clone(),
        }
    }
}
