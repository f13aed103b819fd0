#![doc = include_str!("../README.md")]

// The macros name this crate by its own name, also in its own tests and bindings.
extern crate self as hotcell_plugin;

#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
pub mod bindings;
pub mod connector;
#[doc(hidden)]
pub mod description;
mod failure;
pub mod hook;
mod host;
pub mod http;
pub mod llm;
mod mismatch;
#[doc(hidden)]
pub mod node;
mod outcome;
mod render;
#[doc(hidden)]
pub mod schema;
mod state;
mod system;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;
mod value;

pub use connector::{Callback, Reply, Request};
pub use description::Plugin;
pub use failure::{Error, Failure};
pub use hook::{Event, Verdict};
pub use host::{ask, config, kv, log, progress, secrets, time, tools};
pub use hotcell_plugin_macros::{Value, connector, hook, node, plugin, script, tool};
pub use mismatch::Mismatch;
pub use node::Outcome;
pub use serde_json::{self, Value as Json, json};
pub use state::State;
pub use value::Value;

/// What the code that the macros write needs. Nothing here is for hands, and it may change with any version.
#[doc(hidden)]
pub mod macros {
    #[cfg(target_arch = "wasm32")]
    pub use crate::bindings;
    pub use crate::connector::Requested;
    pub use crate::description::*;
    pub use crate::outcome::*;
    pub use crate::render::{length, render};
    pub use crate::schema::{Field, Object, Schema};
    pub use crate::state::changes;
    pub use crate::value::Reader;
    #[cfg(target_arch = "wasm32")]
    pub use wit_bindgen;
}
