//! What claims of a token mean here.

use serde_json::{Map, Value};

use super::{OidcSettings, TenantOf};
use crate::role::Role;
use crate::tenant_name::TenantName;

/// The words of a claim: those of a text, or of a list of texts. The claim is a name, or a path that begins with `/`.
fn words<'c>(claims: &'c Map<String, Value>, claim: &str) -> Vec<&'c str> {
    let found = match claim.strip_prefix('/') {
        Some(path) => {
            let (first, rest) =
                path.split_once('/').map_or((path, String::new()), |(first, rest)| (first, format!("/{rest}")));
            let first = first.replace("~1", "/").replace("~0", "~");
            claims.get(&first).and_then(|value| value.pointer(&rest))
        }
        None => claims.get(claim),
    };
    match found {
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
            let words = words(claims, claim);
            let known = words.iter().filter_map(|word| match values.is_empty() {
                true => word.parse().ok(),
                false => values.get(*word).cloned(),
            });
            let mut known: Vec<TenantName> = known.collect();
            known.dedup();
            match (known.pop(), known.is_empty()) {
                (Some(only), true) => Some(only),
                _ => None,
            }
        }
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
