//! Names of tenants.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Characters of the longest name.
const LONGEST: usize = 64;

/// The name of a tenant: a part of addresses and of the names of folders.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantName(Arc<str>);

impl TenantName {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TenantName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The tenant that the path of a request named, as it was written: whether there is one of that name is not said.
#[derive(Clone, Debug)]
pub(crate) struct NamedTenant(pub(crate) String);

/// Why a text is no name of a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the name of a tenant has 1 to {LONGEST} lower-case letters, digits and `-`, and does not begin with `-`")]
pub struct NotAName;

impl FromStr for TenantName {
    type Err = NotAName;

    fn from_str(text: &str) -> Result<Self, NotAName> {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let is_name = (1..=LONGEST).contains(&text.len()) && !text.starts_with('-') && text.bytes().all(fits);
        is_name.then(|| TenantName(text.into())).ok_or(NotAName)
    }
}

#[cfg(test)]
mod tests {
    use super::TenantName;

    #[test]
    fn a_name_leads_nowhere() {
        for name in ["acme", "a", "7-eleven", &"x".repeat(64)] {
            assert!(name.parse::<TenantName>().is_ok(), "{name}");
        }
        for wrong in ["", "-a", "A", "a/b", "..", ".", "a b", "ä", "a_b", "a%2f", "a\0", &"x".repeat(65)] {
            assert!(wrong.parse::<TenantName>().is_err(), "{wrong}");
        }
    }
}
