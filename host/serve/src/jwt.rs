//! JSON web tokens (RFC 7519) that somebody else signed: taken apart, and held against keys (RFC 7517). Signatures are looked at by
//! `ring`. Only algorithms with public keys are known: there is nothing that somebody who can check a token could use to make one.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384,
    RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512,
    RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// What is wrong with a token.
pub(crate) type Wrong = &'static str;

/// Bytes of the longest token.
const LONGEST: usize = 16 << 10;
const FORM: Wrong = "the token does not have the right form";

/// A way to sign.
#[derive(Clone, Copy)]
pub(crate) struct Algorithm {
    /// What it is called
    pub(crate) name: &'static str,
    how: How,
}

#[derive(Clone, Copy)]
enum How {
    Rsa(&'static RsaParameters),
    /// On a curve whose coordinates have so many bytes
    Curve(&'static str, usize, &'static dyn VerificationAlgorithm),
    Edwards,
}

/// All ways that are known.
pub(crate) static ALGORITHMS: [Algorithm; 9] = [
    Algorithm { name: "RS256", how: How::Rsa(&RSA_PKCS1_2048_8192_SHA256) },
    Algorithm { name: "RS384", how: How::Rsa(&RSA_PKCS1_2048_8192_SHA384) },
    Algorithm { name: "RS512", how: How::Rsa(&RSA_PKCS1_2048_8192_SHA512) },
    Algorithm { name: "PS256", how: How::Rsa(&RSA_PSS_2048_8192_SHA256) },
    Algorithm { name: "PS384", how: How::Rsa(&RSA_PSS_2048_8192_SHA384) },
    Algorithm { name: "PS512", how: How::Rsa(&RSA_PSS_2048_8192_SHA512) },
    Algorithm { name: "ES256", how: How::Curve("P-256", 32, &ECDSA_P256_SHA256_FIXED) },
    Algorithm { name: "ES384", how: How::Curve("P-384", 48, &ECDSA_P384_SHA384_FIXED) },
    Algorithm { name: "EdDSA", how: How::Edwards },
];

/// A token whose signature was not looked at yet.
pub(crate) struct Jwt<'a> {
    pub(crate) algorithm: Algorithm,
    /// The name of the key that it was signed with; none if it does not say
    pub(crate) kid: Option<String>,
    signed: &'a str,
    signature: Vec<u8>,
    claims: Vec<u8>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    typ: Option<String>,
    /// Extensions that have to be understood: there are none
    crit: Option<Value>,
}

/// What every token says of whom it is for and when it counts.
#[derive(Debug, Deserialize)]
pub(crate) struct Validity {
    iss: String,
    aud: Value,
    exp: f64,
    nbf: Option<f64>,
}

impl<'a> Jwt<'a> {
    /// Takes a token apart.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn parse(text: &'a str) -> Result<Self, Wrong> {
        if text.len() > LONGEST {
            return Err("the token is too long");
        }
        let (signed, signature) = text.rsplit_once('.').ok_or(FORM)?;
        let (header, claims) = signed.split_once('.').filter(|(_, claims)| !claims.contains('.')).ok_or(FORM)?;
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| FORM);
        let header: Header = serde_json::from_slice(&decode(header)?).map_err(|_| FORM)?;
        let algorithm = ALGORITHMS.into_iter().find(|known| known.name == header.alg);
        let algorithm = algorithm.ok_or("the token is not signed in a way that is known")?;
        // Tokens for something else (a logout, a proof) may be signed with the same keys.
        let kind = header.typ.map(|kind| kind.to_ascii_lowercase());
        let is_usual = kind.is_none_or(|kind| ["jwt", "at+jwt", "application/at+jwt"].contains(&kind.as_str()));
        if header.crit.is_some() || header.kid.as_deref() == Some("") || !is_usual {
            return Err(FORM);
        }
        let (signature, claims) = (decode(signature)?, decode(claims)?);
        Ok(Jwt { algorithm, kid: header.kid, signed, signature, claims })
    }

    /// What it says, whoever signed it. Only who issued it may be taken from that before a key was held against it.
    pub(crate) fn says<T: DeserializeOwned>(&self) -> Result<T, Wrong> {
        serde_json::from_slice(&self.claims).map_err(|_| "the token lacks required claims")
    }
}

impl Validity {
    /// Whether a token is of this issuer, for one of these audiences, and for now; clocks may be so far apart.
    ///
    /// # Errors
    /// What of it is not so.
    pub(crate) fn check(&self, issuer: &str, audiences: &[&str], now: SystemTime, skew: Duration) -> Result<(), Wrong> {
        let is_ours = |audience: &Value| audience.as_str().is_some_and(|audience| audiences.contains(&audience));
        let is_for_us = match &self.aud {
            Value::Array(all) => all.iter().any(is_ours),
            one => is_ours(one),
        };
        let (now, skew) = (now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64(), skew.as_secs_f64());
        match self {
            says if says.iss != issuer => Err("the token is of another issuer"),
            _ if !is_for_us => Err("the token is for somebody else"),
            says if !says.exp.is_finite() || says.exp + skew <= now => Err("the token has expired"),
            says if says.nbf.is_some_and(|from| from - skew > now) => Err("the token is not good yet"),
            _ => Ok(()),
        }
    }
}

/// A key of an issuer.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Jwk {
    kty: String,
    pub(crate) kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    used_for: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl Jwk {
    /// Whether it is for signatures of this kind.
    pub(crate) fn fits(&self, algorithm: Algorithm) -> bool {
        let (kind, curve) = match algorithm.how {
            How::Rsa(_) => ("RSA", None),
            How::Curve(curve, ..) => ("EC", Some(curve)),
            How::Edwards => ("OKP", Some("Ed25519")),
        };
        let is_kind = self.kty == kind && curve.is_none_or(|curve| self.crv.as_deref() == Some(curve));
        let is_named = self.alg.as_deref().is_none_or(|named| named == algorithm.name);
        let is_used = self.used_for.as_deref().is_none_or(|used| used == "sig");
        let verifies = self.key_ops.as_ref().is_none_or(|all| all.iter().any(|one| one == "verify"));
        is_kind && is_named && is_used && verifies
    }

    /// Whether it signed a token.
    ///
    /// # Errors
    /// What is wrong with it, or with the token.
    pub(crate) fn signed(&self, token: &Jwt<'_>) -> Result<(), Wrong> {
        const KEY: Wrong = "the key of the token cannot be used";
        if !self.fits(token.algorithm) {
            return Err(KEY);
        }
        let part = |part: &Option<String>| URL_SAFE_NO_PAD.decode(part.as_deref().unwrap_or_default()).map_err(|_| KEY);
        let coordinate = |text: &Option<String>, bytes: usize| {
            part(text).and_then(|part| match part.len() == bytes {
                true => Ok(part),
                false => Err(KEY),
            })
        };
        let (message, signature) = (token.signed.as_bytes(), token.signature.as_slice());
        let fits = match token.algorithm.how {
            How::Rsa(parameters) => {
                RsaPublicKeyComponents { n: part(&self.n)?, e: part(&self.e)? }.verify(parameters, message, signature)
            }
            How::Curve(_, bytes, algorithm) => {
                // A point that is not compressed (SEC 1).
                let (x, y) = (coordinate(&self.x, bytes)?, coordinate(&self.y, bytes)?);
                let point = [&[4][..], &x, &y].concat();
                UnparsedPublicKey::new(algorithm, point).verify(message, signature)
            }
            How::Edwards => UnparsedPublicKey::new(&ED25519, coordinate(&self.x, 32)?).verify(message, signature),
        };
        fits.map_err(|_| "the signature of the token does not fit it")
    }
}
