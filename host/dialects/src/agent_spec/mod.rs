//! The front end for the Open Agent Specification 25.4.1 (JSON or YAML with `component_type`).

mod model;
mod versions;

pub use model::{Component, ComponentId, Configuration, Field, Plugin, Property};
pub use versions::Version;
