//! Tokens of the Bot Framework, which posts of Teams come with: JSON web tokens that are signed with RSA.

use std::time::{Duration, SystemTime};

use serde::Deserialize;

use super::verify::Wrong;
use crate::jwt::{Jwk, Jwt, Validity};

/// Who issues the tokens.
pub(super) const ISSUER: &str = "https://api.botframework.com";
/// How far the clocks of both sides may be apart.
const SKEW: Duration = Duration::from_secs(300);

/// A token whose signature was not looked at yet.
pub(super) struct Token<'a> {
    pub(super) kid: String,
    /// What its algorithm is called
    pub(super) alg: &'static str,
    token: Jwt<'a>,
}

/// What a token says.
#[derive(Debug, Deserialize)]
pub(super) struct Claims {
    #[serde(flatten)]
    validity: Validity,
    /// Where answers go
    #[serde(rename = "serviceurl", alias = "serviceUrl")]
    pub(super) service_url: Option<String>,
}

/// A key of the provider.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Key {
    #[serde(flatten)]
    pub(super) key: Jwk,
    /// The channels that it may sign for
    #[serde(default)]
    endorsements: Vec<String>,
}

impl Key {
    /// Whether it may sign for this channel.
    pub(super) fn endorses(&self, channel: &str) -> bool {
        self.endorsements.iter().any(|endorsed| endorsed == channel)
    }
}

impl<'a> Token<'a> {
    /// Takes a token apart. Only algorithms with a public key of RSA are used by this provider.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn parse(text: &'a str) -> Result<Self, Wrong> {
        let token = Jwt::parse(text)?;
        let alg = token.algorithm.name;
        if !alg.starts_with("RS") {
            return Err("the token is not signed with RSA");
        }
        let kid = token.kid.clone().ok_or("the token does not name its key")?;
        Ok(Token { kid, alg, token })
    }

    /// What the token says, if this key signed it, and it is for this app and for now.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn claims(&self, key: &Key, app: &str, now: SystemTime) -> Result<Claims, Wrong> {
        if key.key.kid.as_deref() != Some(&self.kid) {
            return Err("the key of the token cannot be used");
        }
        key.key.signed(&self.token)?;
        let claims: Claims = self.token.says()?;
        claims.validity.check(ISSUER, &[app], now, SKEW)?;
        Ok(claims)
    }
}

#[cfg(test)]
mod tests;
