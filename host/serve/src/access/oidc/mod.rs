//! Tokens of OpenID Connect: JSON web tokens that somebody else issues, whom the operator named.

mod claims;
mod keys;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use serde::Deserialize;
use serde_json::{Map, Value};
use url::Url;

use self::keys::Keys;
use super::caller::{Caller, Identity, Known};
use crate::groups::Groups;
use crate::jwt::{ALGORITHMS, Jwt, Validity, Wrong};
use crate::problem::Problem;
use crate::role::Role;
use crate::tenant_name::TenantName;

/// Bytes of the longest name of somebody.
const LONGEST_SUBJECT: usize = 255;
/// How far clocks may be apart at most.
const MOST_SKEW: Duration = Duration::from_secs(300);

/// Somebody who issues tokens, and what they mean here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OidcSettings {
    /// Who issues them, as tokens say it: the address below which `/.well-known/openid-configuration` is
    pub issuer: String,
    /// Whom tokens are for: one of these
    pub audiences: Vec<String>,
    /// How they may be signed: `RS256`, `RS384`, `RS512`, `PS256`, `PS384`, `PS512`, `ES256`, `ES384`, `EdDSA`
    pub algorithms: Vec<String>,
    /// Where the keys are, if not on the server of the issuer
    pub keys: Option<String>,
    /// A file with certificates of authorities, in place of those that are trusted otherwise
    pub ca_file: Option<PathBuf>,
    /// How far the clocks of both sides may be apart; 5 minutes at most
    pub clock_skew: Duration,
    /// Whose tokens they are
    pub tenant: TenantOf,
    /// The claim with words for roles: a name, or a path that begins with `/`
    pub roles_claim: Option<String>,
    /// What words stand for; without any, they are the names of roles
    pub roles: BTreeMap<String, Vec<Role>>,
    /// Roles that everybody with a token has
    pub default_roles: Vec<Role>,
    /// The claim with the groups that somebody belongs to: a name, or a path that begins with `/`
    pub groups_claim: Option<String>,
    /// What its values are called here; without any, they are the names of groups
    pub groups: BTreeMap<String, String>,
}

/// Whose tokens they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TenantOf {
    /// All of them belong to this tenant
    Only(TenantName),
    /// A claim says it
    Claim {
        /// The claim: a name, or a path that begins with `/`
        claim: String,
        /// The tenants that values stand for; without any, a value is the name of a tenant
        values: BTreeMap<String, TenantName>,
    },
}

/// Why an issuer cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the issuer `{issuer}` cannot be used: {reason}")]
pub(crate) struct OidcError {
    issuer: String,
    reason: String,
}

/// Everybody who issues tokens that count.
#[derive(Default)]
pub(crate) struct Oidc(Vec<Provider>);

struct Provider {
    settings: OidcSettings,
    keys: Keys,
}

/// What a token says of who issued it, before anything is known of it.
#[derive(Deserialize)]
struct Issued {
    iss: String,
}

impl Oidc {
    /// # Errors
    /// What of it cannot be.
    pub(crate) fn new(settings: &[OidcSettings]) -> Result<Self, OidcError> {
        let twice =
            |(number, one): &(usize, &OidcSettings)| settings[..*number].iter().any(|other| other.issuer == one.issuer);
        if let Some((_, OidcSettings { issuer, .. })) = settings.iter().enumerate().find(twice) {
            let reason = "it is there twice, and only the first entry would count; put both into one";
            return Err(OidcError { issuer: issuer.clone(), reason: reason.to_owned() });
        }
        settings.iter().map(|settings| Provider::new(settings.clone())).collect::<Result<_, _>>().map(Oidc)
    }

    /// Whether anybody issues tokens that count.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Who shows a token.
    pub(crate) async fn identify(&self, token: &str) -> Identity {
        // Who it claims to be from decides whose keys it has to fit, and nothing else.
        let read = Jwt::parse(token).and_then(|token| Ok((token.says::<Issued>()?, token)));
        let Ok((issued, token)) = read else { return Identity::Wrong };
        match self.0.iter().find(|provider| provider.settings.issuer == issued.iss) {
            Some(provider) => provider.identify(&token).await,
            None => Identity::Wrong,
        }
    }
}

impl Provider {
    fn new(settings: OidcSettings) -> Result<Self, OidcError> {
        let wrong = |reason: String| OidcError { issuer: settings.issuer.clone(), reason };
        let address = |text: &str| -> Result<Url, OidcError> {
            let url: Url = text.parse().map_err(|error| wrong(format!("`{text}` is not a valid address: {error}")))?;
            let is_here = url.host_str().is_some_and(|host| ["localhost", "127.0.0.1", "[::1]"].contains(&host));
            match url.scheme() {
                "https" => Ok(url),
                "http" if is_here => Ok(url),
                _ => Err(wrong(format!("`{text}` has to begin with `https://`"))),
            }
        };
        let issuer = address(&settings.issuer)?;
        let keys = settings.keys.as_deref().map(address).transpose()?;
        let is_known = |name: &String| ALGORITHMS.iter().any(|known| known.name == name);
        if settings.algorithms.is_empty() || !settings.algorithms.iter().all(is_known) {
            let known = ALGORITHMS.map(|known| known.name).join(", ");
            return Err(wrong(format!("`algorithms` are some of {known}")));
        }
        if settings.audiences.is_empty() {
            return Err(wrong("`audience` has to say whom tokens are for".to_owned()));
        }
        if settings.clock_skew > MOST_SKEW {
            return Err(wrong(format!("clocks may be {} s apart at most", MOST_SKEW.as_secs())));
        }
        let keys = Keys::new(&issuer, &settings.issuer, keys, settings.ca_file.clone()).map_err(wrong)?;
        Ok(Provider { settings, keys })
    }

    async fn identify(&self, token: &Jwt<'_>) -> Identity {
        if !self.settings.algorithms.iter().any(|allowed| allowed == token.algorithm.name) {
            return Identity::Wrong;
        }
        let key = match self.keys.find(token.kid.as_deref(), token.algorithm, Instant::now()).await {
            Ok(Some(key)) => key,
            Ok(None) => return Identity::Wrong,
            Err(reason) => {
                tracing::error!(target: "hotcell::serve", issuer = self.settings.issuer, reason, "keys cannot be read");
                let detail = "the keys of whoever issued the token cannot be read at this moment";
                return Identity::Unclear(Problem::unavailable(detail).with("retry_after", 10));
            }
        };
        let known = key.signed(token).and_then(|()| self.known(token, SystemTime::now()));
        match known {
            Ok(known) => Identity::Known(Arc::new(known)),
            Err(reason) => {
                tracing::debug!(target: "hotcell::serve", issuer = self.settings.issuer, reason, "a token does not count");
                Identity::Wrong
            }
        }
    }

    /// Who a token of the issuer is about.
    fn known(&self, token: &Jwt<'_>, now: SystemTime) -> Result<Known, Wrong> {
        let audiences: Vec<&str> = self.settings.audiences.iter().map(String::as_str).collect();
        let validity: Validity = token.says()?;
        validity.check(&self.settings.issuer, &audiences, now, self.settings.clock_skew)?;
        let claims: Map<String, Value> = token.says()?;
        let subject = claims.get("sub").and_then(Value::as_str);
        let subject = subject.filter(|subject| (1..=LONGEST_SUBJECT).contains(&subject.len()));
        Ok(Known {
            caller: Caller::subject(&self.settings.issuer, subject.ok_or("the token says of nobody whom it is about")?),
            roles: claims::roles(&self.settings, &claims),
            groups: Arc::new(claims::groups(&self.settings, &claims).into_iter().collect()),
            tenant: Some(claims::tenant(&self.settings, &claims).ok_or("the token is of no tenant, or of several")?),
        })
    }
}

/// The groups of a tenant, with those that tokens of its people may say.
pub(crate) fn with_groups_of_tokens(groups: Groups, issuers: &[OidcSettings], tenant: &TenantName) -> Groups {
    issuers.iter().filter(|settings| settings.is_for(tenant)).fold(groups, |groups, settings| {
        match (&settings.groups_claim, settings.groups.is_empty()) {
            (None, _) => groups,
            (Some(_), true) => groups.with_any_of_tokens(),
            (Some(_), false) => groups.with_tokens_of(settings.groups.values()),
        }
    })
}

impl OidcSettings {
    /// Whether tokens of a tenant may come from there.
    fn is_for(&self, tenant: &TenantName) -> bool {
        match &self.tenant {
            TenantOf::Only(only) => only == tenant,
            TenantOf::Claim { values, .. } => values.is_empty() || values.values().any(|one| one == tenant),
        }
    }
}

#[cfg(test)]
mod tests;
