//! The front end for the Open Agent Specification 25.4.1 (JSON or YAML with `component_type`).
//!
//! [`read`] makes a [`Configuration`] of texts: references followed, every component validated against the JSON schema
//! of the specification and checked, what is implied written out. [`write`] makes a text of it again, [`export`] of a
//! graph of any language.

mod builder;
mod check;
mod datastores;
mod declared;
mod draft;
mod export;
mod fields;
mod generated;
mod ids;
mod kind_of;
mod kinds;
mod later;
mod load;
mod lower;
mod memory;
mod model;
mod names;
mod placeholders;
mod problems;
mod prompts;
mod properties;
mod read;
mod references;
mod schema;
mod sources;
mod templates;
mod values;
mod versions;
mod wayflow;
mod write;

pub use export::{DescribedTool, Exported, Found, export};
pub use load::{Loaded, load};
pub use model::{Component, ComponentId, Configuration, Field, Piece, Plugin, Property};
pub use read::read;
pub use sources::Part;
pub use versions::Version;
pub use write::write;
