//! What models cost: a table that ships with hotcell, and whatever somebody puts in its place.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{ModelName, TokenUsage};

/// The table that ships with hotcell.
const SHIPPED: &str = include_str!("prices.json");

/// What models cost. A model that is not listed costs nothing that anybody knows of.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// The day on which the prices were looked up; none where nobody says.
    #[serde(default)]
    pub dated: Option<String>,
    /// What the numbers are, for readers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unit: Option<String>,
    /// Prices by the names of models, with their provider in front (`openai:gpt-4o`) or without.
    pub models: BTreeMap<String, Price>,
}

/// What a model costs, in US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Tokens of requests.
    pub input: f64,
    /// Tokens of replies.
    pub output: f64,
}

impl Price {
    /// What an exchange costs, in US dollars.
    #[must_use]
    pub fn of(&self, usage: &TokenUsage) -> f64 {
        (usage.input as f64 * self.input + usage.output as f64 * self.output) / 1e6
    }
}

/// Why a text is no table of prices.
#[derive(Debug, Error)]
pub enum PricesError {
    /// It is not of the form of one.
    #[error(transparent)]
    Form(#[from] serde_json::Error),
    /// A price is none that anybody asks.
    #[error("the price of `{model}` is not from 0 to 1,000,000")]
    OutOfRange {
        /// The model.
        model: String,
    },
}

impl Prices {
    /// The table that ships with hotcell.
    #[must_use]
    pub fn shipped() -> Self {
        // A test reads it.
        serde_json::from_str(SHIPPED).unwrap_or_default()
    }

    /// These prices and no others.
    #[must_use]
    pub fn of(models: impl IntoIterator<Item = (String, Price)>) -> Self {
        Self { models: models.into_iter().collect(), ..Self::default() }
    }

    /// The table in a JSON text: `{"dated": "2026-01-31", "models": {"gpt-4o": {"input": 2.5, "output": 10}}}`.
    ///
    /// # Errors
    ///
    /// When it is none, or a price is below zero.
    pub fn parse(json: &str) -> Result<Self, PricesError> {
        let prices: Self = serde_json::from_str(json)?;
        let is_price = |price: &Price| [price.input, price.output].iter().all(|price| (0.0..=1e6).contains(price));
        match prices.models.iter().find(|(_, price)| !is_price(price)) {
            Some((name, _)) => Err(PricesError::OutOfRange { model: name.clone() }),
            None => Ok(prices),
        }
    }

    /// This table, with the prices of another one in the place of its own.
    #[must_use]
    pub fn with(mut self, other: Self) -> Self {
        self.models.extend(other.models);
        self.dated = other.dated.or(self.dated);
        self
    }

    /// What a model costs, by its whole name or by the name without its provider, and without the date or `latest` at its end.
    #[must_use]
    pub fn price(&self, model: &ModelName) -> Option<Price> {
        let names = [model.as_str(), model.model()];
        let exact = names.iter().find_map(|name| self.models.get(*name));
        exact.or_else(|| names.iter().find_map(|name| self.models.get(undated(name)?))).copied()
    }
}

/// A name without the date or the word `latest` at its end; none if it has neither.
pub(crate) fn undated(name: &str) -> Option<&str> {
    if let Some(name) = name.strip_suffix("-latest") {
        return Some(name);
    }
    let is_date = |text: &str| text.bytes().filter(u8::is_ascii_digit).count() == 8;
    let (start, end) = name.split_at_checked(name.len().checked_sub(11)?)?;
    if end.starts_with('-') && end[1..].bytes().all(|byte| byte.is_ascii_digit() || byte == b'-') && is_date(end) {
        return Some(start);
    }
    let (start, end) = name.split_at_checked(name.len().checked_sub(9)?)?;
    (end.starts_with('-') && end[1..].bytes().all(|byte| byte.is_ascii_digit())).then_some(start)
}

#[cfg(test)]
mod tests {
    use super::{Prices, SHIPPED};
    use crate::TokenUsage;

    #[test]
    fn the_shipped_table_is_one_and_dated() {
        let prices = Prices::parse(SHIPPED).expect("a table");
        assert_eq!(Prices::shipped(), prices);
        assert!(prices.dated.is_some() && prices.models.len() > 10);
    }

    #[test]
    fn names_are_found_with_and_without_provider_and_date() {
        let prices = Prices::shipped();
        let input = |name: &str| prices.price(&name.parse().expect("a name")).map(|price| price.input);
        for name in ["gpt-4o", "openai:gpt-4o", "gpt-4o-2024-08-06", "azure:gpt-4o-latest"] {
            assert_eq!(input(name), Some(2.5), "{name}");
        }
        assert_eq!(input("claude-sonnet-4-5-20250929"), Some(3.0));
        for name in ["gpt-4o-audio", "llama3:8b", "2024-08-06", "-latest"] {
            assert_eq!(input(name), None, "{name}");
        }
    }

    #[test]
    fn another_table_takes_the_place_of_prices() {
        let mine =
            Prices::parse(r#"{"models": {"gpt-4o": {"input": 1, "output": 2}, "own": {"input": 0, "output": 1}}}"#);
        let prices = Prices::shipped().with(mine.expect("a table"));
        let price = prices.price(&"gpt-4o".parse().expect("a name")).expect("a price");
        let cost = price.of(&TokenUsage { input: 1_000_000, output: 500_000 });
        assert_eq!(cost, 2.0);
        for broken in ["", "{}", r#"{"models": {"x": {"input": -1, "output": 1}}}"#, r#"{"models": {}, "more": 1}"#] {
            assert!(Prices::parse(broken).is_err(), "{broken}");
        }
    }
}
