//! Agents at other addresses.

use std::fmt;
use std::time::Duration;

use hotcell_graph::Key;
use hotcell_graph::diagnostic::Span;
use hotcell_graph::ir::{Retry, TlsPaths};

/// An agent at another address, which speaks the A2A protocol.
#[derive(Clone)]
pub struct Remote {
    /// The name by which the graph calls it
    pub name: Key,
    /// Its address
    pub url: String,
    /// Headers of every request to its server
    pub headers: Vec<(String, String)>,
    /// What is done about a request that fails; none means nothing
    pub retry: Option<Retry>,
    /// How long a request may take, the agent's work included; none means as long as any
    pub time: Option<Duration>,
    /// How its server and the host prove to each other who they are, beyond what any server does
    pub tls: Option<TlsPaths>,
    /// Where it is declared
    pub span: Span,
}

impl fmt::Debug for Remote {
    // Its headers may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("name", &self.name).field("url", &self.url).finish_non_exhaustive()
    }
}
