//! Front ends: text of a source language to the graph IR, with diagnostics that point into the text.
//!
//! A front end parses, checks and lowers. It never executes and does no I/O: what it has to know about the world around
//! a file it asks [`Surroundings`].

pub mod agent_spec;
pub mod agentloom;
pub mod document;
mod json_schema;
mod knowledge_base;
pub mod leafmesh;
pub mod loki;
mod recognise;
mod remote;
pub mod sherma;
mod surroundings;

pub use knowledge_base::KnowledgeBaseSource;
pub use recognise::{Dialect, misspelt_key, recognise};
pub use remote::Remote;
pub use surroundings::{
    AgentFolder, CALLBACK, Called, ComponentState, ComponentType, DeclaredComponent, DeclaredNode, DeclaredServer,
    FileState, Import, Imported, KnowledgeBase, MutualTls, OwnTool, PluginNodeState, SYNC, ServerState, ServerWay,
    Surroundings, ToolMarks, ToolState, Unavailable, normal_name,
};
