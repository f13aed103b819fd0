//! What claims of a token mean here.

use serde_json::{Map, Value};

use super::{OidcSettings, TenantOf};
use crate::role::Role;
use crate::tenant_name::TenantName;

/// What a claim says. It is a name, or a path that begins with `/`.
fn said<'c>(claims: &'c Map<String, Value>, claim: &str) -> Option<&'c Value> {
    match claim.strip_prefix('/') {
        Some(path) => {
            let (first, rest) =
                path.split_once('/').map_or((path, String::new()), |(first, rest)| (first, format!("/{rest}")));
            let first = first.replace("~1", "/").replace("~0", "~");
            claims.get(&first).and_then(|value| value.pointer(&rest))
        }
        None => claims.get(claim),
    }
}

/// The words of a claim: those of a text, or the texts of a list.
fn words<'c>(claims: &'c Map<String, Value>, claim: &str) -> Vec<&'c str> {
    match said(claims, claim) {
        Some(Value::String(text)) => text.split_ascii_whitespace().collect(),
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// Whose a token is; none if it does not say so, or says several.
pub(super) fn tenant(settings: &OidcSettings, claims: &Map<String, Value>) -> Option<TenantName> {
    match &settings.tenant {
        TenantOf::Only(tenant) => Some(tenant.clone()),
        TenantOf::Claim { claim, values } => {
            // A text is one value as it is: whoever calls an organisation `The acme fans` is not of `acme`.
            let said: Vec<&str> = match said(claims, claim) {
                Some(Value::String(text)) => vec![text.as_str()],
                Some(Value::Array(all)) => all.iter().map(Value::as_str).collect::<Option<_>>()?,
                _ => Vec::new(),
            };
            let mut known: Vec<TenantName> = match values.is_empty() {
                true => said.iter().map(|name| name.parse::<TenantName>().ok()).collect::<Option<_>>()?,
                false => said.iter().filter_map(|value| values.get(*value).cloned()).collect(),
            };
            known.sort();
            known.dedup();
            match (known.pop(), known.is_empty()) {
                (Some(only), true) => Some(only),
                _ => None,
            }
        }
    }
}

/// The groups that whoever has a token belongs to.
pub(super) fn groups(settings: &OidcSettings, claims: &Map<String, Value>) -> Vec<String> {
    let said = settings.groups_claim.as_ref().and_then(|claim| said(claims, claim));
    // A text is one value as it is: somebody of the `night shift` is not of the `shift`.
    let values: Vec<&str> = match said {
        Some(Value::String(text)) => vec![text.as_str()],
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    match settings.groups.is_empty() {
        true => values.into_iter().map(str::to_owned).collect(),
        false => values.into_iter().filter_map(|value| settings.groups.get(value).cloned()).collect(),
    }
}

/// What whoever has a token may do.
pub(super) fn roles(settings: &OidcSettings, claims: &Map<String, Value>) -> Vec<Role> {
    let mut roles = settings.default_roles.clone();
    for word in settings.roles_claim.iter().flat_map(|claim| words(claims, claim)) {
        match settings.roles.is_empty() {
            // Other words are roles of other programs.
            true => roles.extend(word.parse::<Role>()),
            false => roles.extend(settings.roles.get(word).into_iter().flatten()),
        }
    }
    roles
}
