//! What a front end is told about the world around a source file.

use hotcell_graph::Value;
use hotcell_graph::ir::PluginNodeKind;

/// What is imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Import {
    /// A function that models may call
    Tool,
    /// A class of hooks
    Hook,
    /// Another agent; also the id of one that is not said to be anywhere
    Agent,
}

/// What an import path means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Imported {
    /// The tool, the hook plugin, or the file of the agent with this name
    Usable(String),
    /// Nothing; these places were searched
    Missing {
        /// Each in words
        searched: Vec<String>,
    },
    /// Something that cannot be used, for this reason
    Unusable(String),
}

/// How a function of a module is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Called {
    /// With an object, as tools are: its entries are the parameters
    ByName,
    /// With an object whose entry `arguments` is a list: its items are the parameters by their places
    ByPlace,
}

/// What a project's code says of a tool beside its description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolMarks {
    /// Whether a person has to allow each call
    pub confirm: bool,
    /// The agents that may have it; none for all
    pub allowed: Option<Vec<String>>,
    /// What it is for, in a word
    pub category: Option<String>,
}

/// A tool that a file of the agent's own folder defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnTool {
    /// Its name, as models see it
    pub name: String,
    /// The name under which the host knows it
    pub full_name: String,
}

/// Whether a tool can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolState {
    /// It can
    Usable,
    /// There is none of that name
    Missing,
    /// There is one and it cannot be used, for this reason
    Unusable(String),
}

/// Whether an MCP server can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerState {
    /// It can, and has these functions
    Usable(Vec<String>),
    /// It may be used; which functions it has is not known, because it is a program and none is started for a check
    NotStarted,
    /// There is none of that name
    Missing,
    /// There is one and it cannot be used, for this reason
    Unusable(String),
}

/// What a plugin offers under a name.
#[derive(Clone, Debug, PartialEq)]
pub enum PluginNodeState {
    /// This
    Usable(DeclaredNode),
    /// There is nothing of that name; this one is near
    Missing(Option<String>),
    /// There is something and it cannot be used, for this reason
    Unusable(String),
}

/// Whether a plugin provides a component type.
#[derive(Clone, Debug, PartialEq)]
pub enum ComponentState {
    /// It does, and it is this
    Usable(Box<ComponentType>),
    /// No plugin has a type of that name; this one is near
    Missing(Option<String>),
    /// Another plugin does, the one of this name
    WrongPlugin(String),
    /// It does and it cannot be used, for this reason
    Unusable(String),
}

/// A component type that a plugin provides.
#[derive(Clone, Debug, PartialEq)]
pub struct ComponentType {
    /// What it is
    pub kind: PluginNodeKind,
    /// The version of its plugin
    pub version: String,
    /// A JSON schema of its own fields, an object; a component in one is seen as it is written, references followed
    pub fields: Value,
    /// A JSON schema of its inputs, an object with a property for each
    pub inputs: Value,
    /// A JSON schema of its outputs, an object with a property for each
    pub outputs: Value,
    /// The branches of a node; none for one that just goes on
    pub branches: Vec<String>,
}

/// Something that a plugin offers as a node of a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct DeclaredNode {
    /// What it is
    pub kind: PluginNodeKind,
    /// A JSON schema of what the author of the graph writes on the node
    pub with: Value,
    /// A JSON schema of what flows in
    pub inputs: Value,
    /// The branches it leaves by; none for one that just goes on
    pub branches: Vec<String>,
    /// How a connector gets its answer: `sync`, `callback` or both; none for what is no connector
    pub modes: Vec<&'static str>,
}

/// A connector's answer is the reply to its request.
pub const SYNC: &str = "sync";
/// A connector's answer comes by a callback.
pub const CALLBACK: &str = "callback";

/// Whether a file is where the source says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileState {
    /// It is
    Present,
    /// It is not
    Missing,
    /// It is there, but a link leads out of the agent's folder
    Outside,
}

/// What the folder of an agent holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentFolder {
    /// There is no such folder
    Missing,
    /// Neither `config.yaml` nor `graph.yaml`
    Neither,
    /// `config.yaml`
    Config,
    /// `graph.yaml`
    Graph,
    /// `config.yaml` and `graph.yaml`
    Both,
}

/// The state of a knowledge base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnowledgeBase {
    /// It was built before
    Built,
    /// It was not built; there is a person who can be asked for what the source leaves open
    Askable,
    /// It was not built, and nobody can be asked
    NotBuilt,
}
