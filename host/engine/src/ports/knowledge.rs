//! Looking things up.

use async_trait::async_trait;
use hotcell_budget::Account;

use super::PortError;

/// Something to look up in a knowledge base.
#[derive(Clone, Debug, PartialEq)]
pub struct Lookup<'a> {
    /// The knowledge base
    pub base: &'a str,
    /// What is looked for
    pub query: &'a str,
    /// How many passages are wanted; none means as many as the base itself says
    pub top_k: Option<usize>,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The passages with their sources, ready for a prompt
    pub context: String,
    /// The sources, each once, the best first
    pub sources: Vec<String>,
    /// Who used what for it
    pub account: Account,
}

/// Knowledge bases.
#[async_trait]
pub trait Knowledge: Send + Sync {
    /// Whether something outside of this machine is asked to look up anything in a knowledge base.
    fn asks_outside(&self, _base: &str) -> bool {
        true
    }

    /// Looks something up; the error is why that cannot be done.
    async fn look_up(&self, lookup: Lookup<'_>) -> Result<Found, PortError>;
}
