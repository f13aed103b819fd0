//! The version of the protocol that a request is in.

use axum::extract::FromRequestParts;
use http::request::Parts;
use serde_json::Value;

use super::error::{A2aError, Kind};
use super::legacy;
use crate::problem::shown;
use crate::state::Server;

/// The header that says it.
const HEADER: &str = "a2a-version";

/// The version of the protocol that a request is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// 1.0
    One,
    /// 0.3, which is meant where nothing is said
    Legacy,
}

impl Version {
    fn named(name: &str) -> Option<Self> {
        // The number of a patch says nothing about the protocol.
        let mut numbers = name.split('.');
        match (numbers.next()?, numbers.next()?, numbers.next(), numbers.next()) {
            ("1", "0", _, None) => Some(Version::One),
            ("0", "3", _, None) => Some(Version::Legacy),
            _ => None,
        }
    }

    /// A task or an event, as this version has it.
    pub(super) fn written(self, value: Value) -> Value {
        match self {
            Version::One => value,
            Version::Legacy => legacy::written(value),
        }
    }
}

impl FromRequestParts<Server> for Version {
    type Rejection = A2aError;

    async fn from_request_parts(parts: &mut Parts, _: &Server) -> Result<Self, A2aError> {
        let Some(name) = parts.headers.get(HEADER) else { return Ok(Version::Legacy) };
        let name = name.to_str().unwrap_or_default().trim();
        if name.is_empty() {
            return Ok(Version::Legacy);
        }
        Version::named(name).ok_or_else(|| {
            let detail = format!("version {} of the protocol is not supported; 1.0 and 0.3 are", shown(name));
            A2aError::new(Kind::VersionNotSupported, detail)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_told_by_its_first_two_numbers() {
        assert_eq!(Version::named("1.0"), Some(Version::One));
        assert_eq!(Version::named("1.0.7"), Some(Version::One));
        assert_eq!(Version::named("0.3.0"), Some(Version::Legacy));
        for other in ["1", "0.2", "2.0", "1.1", "1.0.0.0", "x"] {
            assert_eq!(Version::named(other), None, "{other}");
        }
    }
}
