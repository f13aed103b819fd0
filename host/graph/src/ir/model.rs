//! Which model is asked.

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
    /// Other settings that the request carries, under the names that the server knows
    pub more: Option<Object>,
    /// Where the model is; none means that its name says so
    pub server: Option<ModelServer>,
}

/// Where a model is.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelServer {
    /// The provider that the host knows by this name
    Provider(&'static str),
    /// A server with this address that speaks Chat Completions
    Address(Key),
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
        ModelSettings {
            model: self.model.clone().or_else(|| defaults.model.clone()),
            temperature: self.temperature.or(defaults.temperature),
            top_p: self.top_p.or(defaults.top_p),
            max_tokens: self.max_tokens.or(defaults.max_tokens),
            more: self.more.clone().or_else(|| defaults.more.clone()),
            server: self.server.clone().or_else(|| defaults.server.clone()),
        }
    }
}
