//! What is used under a name, over all runs: whoever counts it says when it begins anew.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use hotcell_budget::{Cost, Usage};
use hotcell_graph::ir::Allowance;
use thiserror::Error;

/// What was used under a name.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Used {
    /// Tokens of requests and replies
    pub tokens: u64,
    /// Costs
    pub cost: Cost,
}

impl Used {
    /// What of a usage counts.
    pub(crate) fn of(usage: &Usage) -> Self {
        Used { tokens: usage.input_tokens.saturating_add(usage.output_tokens), cost: usage.cost }
    }

    /// Whether an allowance is used up.
    pub(crate) fn exhausts(&self, allowance: &Allowance) -> bool {
        allowance.tokens.is_some_and(|most| self.tokens >= most)
            || allowance.cost_usd.is_some_and(|most| self.cost >= Cost::from_usd(most))
    }
}

/// Why it is not known what was used, or cannot be kept.
#[derive(Debug, Error)]
#[error("what models use cannot be counted: {0}")]
pub struct Uncounted(Box<dyn std::error::Error + Send + Sync>);

impl Uncounted {
    /// An error with its cause.
    pub fn new(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Uncounted(cause.into())
    }
}

/// Counts what models use for whoever has an [`Allowance`].
pub trait Meter: Send + Sync {
    /// What was used under this name since the count last began anew.
    ///
    /// # Errors
    /// When it cannot be read; nothing is asked then.
    fn used(&self, name: &str) -> Result<Used, Uncounted>;

    /// Counts what a request used, before anything follows from its reply.
    ///
    /// # Errors
    /// When it cannot be kept.
    fn add(&self, name: &str, used: Used) -> Result<(), Uncounted>;

    /// What counts for the agents of one source, where those of several are counted apart. None where all are counted together.
    fn of(&self, source: &str) -> Option<Arc<dyn Meter>> {
        let _ = source;
        None
    }
}

/// Counts for as long as the process lives.
#[derive(Debug, Default)]
pub struct Tally(Mutex<HashMap<String, Used>>);

impl Meter for Tally {
    fn used(&self, name: &str) -> Result<Used, Uncounted> {
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name).copied().unwrap_or_default())
    }

    fn add(&self, name: &str, used: Used) -> Result<(), Uncounted> {
        let mut tally = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = tally.entry(name.to_owned()).or_default();
        sum.tokens = sum.tokens.saturating_add(used.tokens);
        sum.cost = Cost(sum.cost.0.saturating_add(used.cost.0));
        Ok(())
    }
}
