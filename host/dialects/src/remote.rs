//! Agents at other addresses.

use hotcell_graph::Key;
use hotcell_graph::diagnostic::Span;

/// An agent at another address, which speaks the A2A protocol.
#[derive(Clone, Debug)]
pub struct Remote {
    /// The name by which the graph calls it
    pub name: Key,
    /// Its address
    pub url: String,
    /// Where it is declared
    pub span: Span,
}
