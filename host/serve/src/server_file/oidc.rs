//! What a server file says of those who issue tokens.

use std::path::Path;
use std::time::Duration;

use super::text::OidcText;
use crate::access::oidc::{OidcSettings, TenantOf};
use crate::groups::{NotGroups, is_name};
use crate::role::Role;
use crate::tenant_name::{NotAName, TenantName};

/// How tokens may be signed where nothing is said: what every provider knows.
const USUAL: [&str; 2] = ["RS256", "ES256"];
/// How far clocks may be apart where nothing is said.
const SKEW: u64 = 60;

/// # Errors
/// What of it cannot be.
pub(super) fn settings_of(text: OidcText, folder: &Path) -> Result<OidcSettings, String> {
    let name = |text: &String| text.parse::<TenantName>().map_err(|error: NotAName| format!("`{text}`: {error}"));
    let tenant = match (text.tenant, text.tenant_claim) {
        (Some(only), None) if text.tenants.is_empty() => TenantOf::Only(name(&only)?),
        (None, Some(claim)) => {
            let named = |(value, tenant): (String, String)| Ok((value, name(&tenant)?));
            TenantOf::Claim { claim, values: text.tenants.into_iter().map(named).collect::<Result<_, String>>()? }
        }
        _ => {
            return Err(
                "tokens belong to a `tenant`, or to the one that a `tenant_claim` says; `tenants` goes with the claim"
                    .to_owned(),
            );
        }
    };
    if text.roles_claim.is_none() && !text.roles.is_empty() {
        return Err("`roles` go with a `roles_claim`".to_owned());
    }
    if text.groups_claim.is_none() && !text.groups.is_empty() {
        return Err("`groups` go with a `groups_claim`".to_owned());
    }
    if let Some(group) = text.groups.values().find(|group| !is_name(group)) {
        return Err(format!("`groups`: {}", NotGroups::Name(group.escape_debug().to_string())));
    }
    let roles = |words: Vec<String>| words.iter().map(|word| word.parse::<Role>()).collect::<Result<Vec<_>, String>>();
    let mapped = text.roles.into_iter().map(|(word, of)| Ok((word, roles(of)?)));
    Ok(OidcSettings {
        issuer: text.issuer,
        audiences: text.audience,
        algorithms: text.algorithms.unwrap_or_else(|| USUAL.map(str::to_owned).to_vec()),
        keys: text.keys,
        ca_file: text.ca_file.map(|file| folder.join(file)),
        clock_skew: Duration::from_secs(text.clock_skew_seconds.unwrap_or(SKEW)),
        tenant,
        roles_claim: text.roles_claim,
        roles: mapped.collect::<Result<_, String>>()?,
        default_roles: roles(text.default_roles)?,
        groups_claim: text.groups_claim,
        groups: text.groups,
    })
}
