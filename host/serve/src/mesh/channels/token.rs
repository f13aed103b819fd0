//! Tokens of the Bot Framework, which posts of Teams come with: JSON web tokens that are signed with RSA.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RsaParameters,
    RsaPublicKeyComponents,
};
use serde::Deserialize;
use serde_json::Value;

use super::verify::Wrong;

/// Who issues the tokens.
pub(super) const ISSUER: &str = "https://api.botframework.com";
/// How far the clocks of both sides may be apart.
const SKEW: Duration = Duration::from_secs(300);
/// Characters of the longest token.
const LONGEST: usize = 16 << 10;

/// A token whose signature was not looked at yet.
pub(super) struct Token<'a> {
    pub(super) kid: String,
    algorithm: &'static RsaParameters,
    /// What its algorithm is called
    pub(super) alg: String,
    signed: &'a str,
    signature: Vec<u8>,
    claims: Vec<u8>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: String,
    /// Extensions that have to be understood: there are none
    crit: Option<Value>,
}

/// What a token says.
#[derive(Debug, Deserialize)]
pub(super) struct Claims {
    iss: String,
    aud: Value,
    exp: f64,
    nbf: Option<f64>,
    /// Where answers go
    #[serde(rename = "serviceurl", alias = "serviceUrl")]
    pub(super) service_url: Option<String>,
}

/// A key of the provider.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Key {
    kty: String,
    pub(super) kid: Option<String>,
    n: Option<String>,
    e: Option<String>,
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
    /// Takes a token apart. Only algorithms with a public key of RSA are known.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn parse(text: &'a str) -> Result<Self, Wrong> {
        const FORM: Wrong = "the token does not have the right form";
        if text.len() > LONGEST {
            return Err("the token is too long");
        }
        let (signed, signature) = text.rsplit_once('.').ok_or(FORM)?;
        let (header, claims) = signed.split_once('.').filter(|(_, claims)| !claims.contains('.')).ok_or(FORM)?;
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| FORM);
        let header: Header = serde_json::from_slice(&decode(header)?).map_err(|_| FORM)?;
        let algorithm = match header.alg.as_str() {
            "RS256" => &RSA_PKCS1_2048_8192_SHA256,
            "RS384" => &RSA_PKCS1_2048_8192_SHA384,
            "RS512" => &RSA_PKCS1_2048_8192_SHA512,
            _ => return Err("the token is not signed with RSA"),
        };
        if header.crit.is_some() || header.kid.is_empty() {
            return Err(FORM);
        }
        let (signature, claims) = (decode(signature)?, decode(claims)?);
        Ok(Token { kid: header.kid, alg: header.alg, algorithm, signed, signature, claims })
    }

    /// What the token says, if this key signed it, and it is for this app and for now.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn claims(&self, key: &Key, app: &str, now: SystemTime) -> Result<Claims, Wrong> {
        const KEY: Wrong = "the key of the token cannot be used";
        let decode =
            |part: &Option<String>| URL_SAFE_NO_PAD.decode(part.as_deref().unwrap_or_default()).map_err(|_| KEY);
        if key.kty != "RSA" || key.kid.as_deref() != Some(&self.kid) {
            return Err(KEY);
        }
        let key = RsaPublicKeyComponents { n: decode(&key.n)?, e: decode(&key.e)? };
        key.verify(self.algorithm, self.signed.as_bytes(), &self.signature)
            .map_err(|_| "the signature of the token does not fit it")?;
        let claims: Claims =
            serde_json::from_slice(&self.claims).map_err(|_| "the token does not say what it has to")?;
        let is_for_us = match &claims.aud {
            Value::String(audience) => audience == app,
            Value::Array(all) => all.iter().any(|audience| audience == app),
            _ => false,
        };
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let skew = SKEW.as_secs_f64();
        match &claims {
            claims if claims.iss != ISSUER => Err("the token is of another issuer"),
            _ if !is_for_us => Err("the token is for another app"),
            claims if !claims.exp.is_finite() || claims.exp + skew <= now => Err("the token has expired"),
            claims if claims.nbf.is_some_and(|from| from - skew > now) => Err("the token is not good yet"),
            _ => Ok(claims),
        }
    }
}

#[cfg(test)]
mod tests;
