//! An MCP server that an agent of a mesh names.

use std::time::Duration;

use hotcell_graph::ir::Callable;

use crate::document::SourceText;
use crate::surroundings::{DeclaredServer, ServerState, ServerWay, Surroundings};

/// A server that an agent names.
#[derive(Debug)]
pub(super) struct McpServer {
    /// What it is called
    pub(super) name: SourceText,
    pub(super) way: Way,
    pub(super) timeout: Duration,
    /// The functions that the model may call; all where nothing is said
    pub(super) used: Option<Vec<SourceText>>,
}

/// How it is reached. Headers are shown nowhere.
pub(super) enum Way {
    Program { command: String, arguments: Vec<String>, environment: Vec<(String, String)> },
    Service { url: String, token: Option<String> },
}

impl std::fmt::Debug for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Way::Program { command, .. } => f.write_str(command),
            Way::Service { url, .. } => f.write_str(url),
        }
    }
}

impl McpServer {
    /// As the host is told of it.
    pub(super) fn declared(&self) -> DeclaredServer {
        let way = match &self.way {
            Way::Program { command, arguments, environment } => ServerWay::Program {
                command: command.clone(),
                arguments: arguments.clone(),
                environment: environment.clone(),
                folder: None,
            },
            Way::Service { url, token } => ServerWay::Service {
                url: url.clone(),
                headers: token.iter().map(|token| ("authorization".to_owned(), format!("Bearer {token}"))).collect(),
                events: false,
                tls: None,
            },
        };
        let name = self.name.to_string();
        DeclaredServer { prefix: format!("{name}_"), name, way, timeout: Some(self.timeout), retry: None }
    }

    /// The functions that a model is offered, by their full names; the error is why there are none.
    pub(super) fn tools(&self, surroundings: &dyn Surroundings) -> Result<Vec<Callable>, String> {
        let functions = match surroundings.declare_server(&self.declared()) {
            ServerState::Usable(functions) => functions,
            // Whoever only checks the file starts nothing.
            ServerState::NotStarted => return Ok(Vec::new()),
            ServerState::Missing => return Err("it is not there".to_owned()),
            ServerState::Unusable(reason) => return Err(reason),
        };
        let is_used =
            |function: &&String| self.used.as_ref().is_none_or(|used| used.iter().any(|name| **name == ***function));
        let missing: Vec<&str> = self
            .used
            .iter()
            .flatten()
            .map(|name| &**name)
            .filter(|name| functions.iter().all(|function| function != name))
            .collect();
        if !missing.is_empty() {
            return Err(format!("it has no `{}`", missing.join("`, `")));
        }
        let full = |function: &String| Callable::Tool(format!("mcp:{}/{function}", &*self.name));
        Ok(functions.iter().filter(is_used).map(full).collect())
    }
}
