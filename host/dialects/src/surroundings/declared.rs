//! What a source file itself describes of the world around it.

use std::time::Duration;

use hotcell_graph::ir::Retry;

/// An MCP server as a source describes it.
#[derive(Clone, PartialEq)]
pub struct DeclaredServer {
    /// Its name
    pub name: String,
    /// How it is reached
    pub way: ServerWay,
    /// What models see before the names of its functions
    pub prefix: String,
    /// How long a call may take; none means as long as that of any server
    pub timeout: Option<Duration>,
    /// How often a call is tried for which the exchange with the server fails; none means once
    pub retry: Option<Retry>,
}

/// How an MCP server is reached.
#[derive(Clone, PartialEq, Eq)]
pub enum ServerWay {
    /// A program
    Program {
        /// Its name or path
        command: String,
        /// Its arguments
        arguments: Vec<String>,
        /// Variables of its environment
        environment: Vec<(String, String)>,
        /// The folder in which it runs; none means that of the host
        folder: Option<String>,
    },
    /// A service
    Service {
        /// Its address
        url: String,
        /// Headers of every request
        headers: Vec<(String, String)>,
        /// Whether it answers with a stream of events, as services of 2024 did
        events: bool,
        /// How it and the host prove to each other who they are, beyond what any service does
        tls: Option<MutualTls>,
    },
}

/// A component that comes with hotcell, as a source sets it up. It may reach what the source names here and the source itself
/// may reach.
#[derive(Clone, PartialEq, Eq)]
pub struct DeclaredComponent {
    /// What the source calls it: one component may be set up under several names
    pub name: String,
    /// The component
    pub component: String,
    /// Addresses on the servers that it may ask; empty for those that it names itself
    pub servers: Vec<String>,
    /// Further servers that it may ask over `https`: names, or `*.` and a name for all below it
    pub further_hosts: Vec<String>,
    /// Secrets by the names that the component has for them: it is given placeholders
    pub secrets: Vec<(String, String)>,
    /// How long one call of it may take; none means as long as that of any component
    pub timeout: Option<Duration>,
}

impl DeclaredComponent {
    /// What the full names of such components begin with: no plugin and no model's tool has such a name.
    pub const PREFIX: &'static str = "own:";

    /// The full name of one of its tools.
    pub fn tool(&self, tool: &str) -> String {
        format!("{}{}/{tool}", Self::PREFIX, self.name)
    }
}

/// Files for TLS in which both sides prove who they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MutualTls {
    /// The key of the host's certificate
    pub key_file: String,
    /// The host's certificate, with those that signed it
    pub certificate_file: String,
    /// Who may sign the certificate of the service
    pub ca_file: String,
}
