//! Language models behind one small trait.
//!
//! Why this exists: everything above asks a [`Model`] for a [`Reply`] and does not care whether a provider on
//! the network, a script or a recording gives it. Four kinds are here: [`Providers`] (the network),
//! [`Scripted`] (fixed replies, for tests), [`Recorder`] (passes requests on and writes the exchanges down) and
//! [`Replay`] (answers from such a file).
//!
//! What it must not do: know what a graph is, retry (the caller knows how often and for how long), follow a
//! redirect, change a request's messages on the way, or let a type of the provider library into its interface.
//! What a provider says is data from a stranger: capped, and free of control characters before it is shown.

mod error;
mod exchange;
mod model;
mod name;
mod prices;
mod providers;
mod record;
mod replay;
mod scripted;
mod tokenizers;
mod untrusted;

pub use error::{ModelError, says_transient};
pub use exchange::{
    Api, Finish, Message, ProviderState, Reasoning, Reply, Request, Role, Server, TokenUsage, ToolCallRequest,
    ToolChoice, ToolSpec,
};
pub use hotcell_tls::TlsFiles;
pub use model::{Model, OnText};
pub use name::ModelName;
pub use prices::{Price, Prices, PricesError};
pub use providers::{HttpClient, HttpLimits, ModelServer, Protocol, ProviderSettings, Providers, Secret};
pub use record::Recorder;
pub use replay::Replay;
pub use scripted::Scripted;
pub use tokenizers::Tokenizers;
