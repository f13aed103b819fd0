//! API keys: what whoever shows one may do. Of a key only a digest is kept.

use std::fmt;
use std::str::FromStr;
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::role::Role;
use crate::tenant_name::TenantName;

/// What begins every key, so that it is recognised where it does not belong.
const PREFIX: &str = "hck";
/// Characters of the part that is kept as a digest: 256 bits.
const SECRET: usize = 64;

/// A key, without what proves that somebody has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// What it is told apart by
    pub id: String,
    /// What it is for
    pub name: String,
    /// The tenant that whoever has it belongs to; none on a server without tenants
    pub tenant: Option<TenantName>,
    /// What it allows
    pub roles: Vec<Role>,
    /// When it was made
    pub created: SystemTime,
    /// Until when it counts; none means for ever
    pub expires: Option<SystemTime>,
    /// Whether it was taken back
    pub is_revoked: bool,
}

impl ApiKey {
    /// Whether it counts.
    pub fn is_valid(&self, now: SystemTime) -> bool {
        !self.is_revoked && self.expires.is_none_or(|expires| now < expires)
    }
}

/// A key as whoever has it shows it: `hck_ID_SECRET`.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    pub(crate) id: String,
    secret: String,
}

impl Token {
    /// A new one.
    pub(crate) fn random() -> Self {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let (id, secret): ([u8; 6], [u8; SECRET / 2]) = (rand::random(), rand::random());
        Token { id: hex(&id), secret: hex(&secret) }
    }

    /// What is kept of it.
    pub(crate) fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.secret.as_bytes()).into()
    }

    /// Whether this is what was kept, in a time that does not say where it differs.
    pub(crate) fn fits(&self, digest: &[u8]) -> bool {
        self.digest().ct_eq(digest).into()
    }

    /// The key as it is shown once, to whoever is to have it.
    pub fn reveal(&self) -> String {
        format!("{PREFIX}_{}_{}", self.id, self.secret)
    }
}

impl FromStr for Token {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.trim().split('_');
        let is_hex = |part: &&str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
        let (prefix, id, secret) = (parts.next(), parts.next(), parts.next());
        let (Some(PREFIX), Some(id), Some(secret), None) = (prefix, id, secret, parts.next()) else { return Err(()) };
        let fits = id.len() == 12 && secret.len() == SECRET && is_hex(&id) && is_hex(&secret);
        fits.then(|| Token { id: id.to_owned(), secret: secret.to_owned() }).ok_or(())
    }
}

/// Nothing of it is shown by accident.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({})", self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_known_by_its_digest_and_never_shown_by_accident() {
        let token = Token::random();
        let shown = token.reveal();
        let read: Token = shown.parse().expect("a key");
        assert!(read.fits(&token.digest()) && !Token::random().fits(&token.digest()));
        assert!(!token.fits(&[]) && !token.fits(&token.digest()[..31]));
        assert!(!format!("{token:?}").contains(&token.secret));
        let secret = &token.secret;
        for wrong in [
            "",
            "hck",
            "hck__",
            &shown[1..],
            &shown[..shown.len() - 1],
            &format!("{shown}0"),
            &format!("{shown}_"),
            &format!("hck_{}_{}", "x".repeat(12), secret),
            &format!("hck_{}_{}", token.id, "z".repeat(64)),
        ] {
            assert!(wrong.parse::<Token>().is_err(), "{wrong}");
        }
    }
}
