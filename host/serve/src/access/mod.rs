//! Who may use the server: API keys with roles, how much each may ask for, and what was asked.

pub(crate) mod audit;
mod caller;
pub(crate) mod oidc;
pub(crate) mod rate;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use self::audit::Audit;
pub(crate) use self::caller::{Asker, Caller, Identity, Known};
use self::oidc::Oidc;
use self::rate::Rate;
use crate::error::ServeError;
use crate::key::{ApiKey, Token};
use crate::problem::Problem;
use crate::role::Role;
use crate::rules::Needs;
use crate::store::{Store, StoreError};
use crate::tenant_name::TenantName;

/// Where clients of LangGraph put their key.
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
/// The caller that stands for everybody whose key is wrong.
const UNKNOWN: &str = "";
/// What a key is held against where there is none of its id, so that it takes as long.
const NOBODY: [u8; 32] = [0; 32];

/// Who may use the server.
pub(crate) struct Access {
    store: Store,
    rate: Rate,
    oidc: Oidc,
    /// Whether a request has to prove who sent it even where no key was ever made
    is_closed: bool,
    pub(crate) audit: Audit,
}

impl Access {
    pub(crate) fn new(store: Store, audit: Audit, oidc: Oidc, requests_per_second: u32, is_closed: bool) -> Self {
        let is_closed = is_closed || !oidc.is_empty();
        Access { store, rate: Rate::per_second(requests_per_second), oidc, is_closed, audit }
    }

    /// Whether nobody gets in who does not prove who they are.
    pub(crate) fn is_closed(&self) -> Result<bool, StoreError> {
        let now = SystemTime::now();
        Ok(self.is_closed || self.store.keys()?.iter().any(|key| key.is_valid(now)))
    }

    /// Finds out who sent a request.
    pub(crate) async fn identify(&self, headers: &HeaderMap) -> Identity {
        let token = match shown(headers) {
            Ok(Shown::Key(token)) => token,
            Ok(Shown::Token(token)) => return self.oidc.identify(token).await,
            Ok(Shown::Nothing) => return Identity::Nobody,
            Err(()) => return Identity::Wrong,
        };
        let known = match self.store.key(&token.id) {
            Ok(known) => known,
            Err(error) => return Identity::Unclear(error.into()),
        };
        let (key, digest) = known.map_or((None, NOBODY.to_vec()), |(key, digest)| (Some(key), digest));
        let fits = token.fits(&digest);
        match key.filter(|key| fits && key.is_valid(SystemTime::now())) {
            Some(ApiKey { id, roles, tenant, .. }) => {
                Identity::Known(Arc::new(Known { caller: Caller::Key(id), roles, groups: Arc::default(), tenant }))
            }
            None => Identity::Wrong,
        }
    }

    /// Who asks, if they may do what needs this. Where no key was ever made, which only a server has that this machine alone can
    /// reach, everybody may do everything, also with a key that nobody made: some clients cannot send none.
    ///
    /// # Errors
    /// Who asked all the same, and why they may not.
    pub(crate) fn admit(&self, identity: &Identity, needs: &Needs) -> Result<Caller, Box<(Caller, Problem)>> {
        let Needs::Roles(roles) = needs else { return Ok(Caller::Unknown) };
        let unknown = |problem: Problem| Box::new((Caller::Unknown, problem));
        let is_wrong = matches!(identity, Identity::Wrong);
        let known = match identity {
            Identity::Known(known) => known,
            Identity::Unclear(problem) => return Err(unknown(problem.clone())),
            Identity::Nobody | Identity::Wrong if self.is_closed => return Err(unknown(self.refused(is_wrong))),
            Identity::Nobody | Identity::Wrong => {
                return match self.store.has_ever_had_keys() {
                    Ok(false) => Ok(Caller::Local),
                    Ok(true) => Err(unknown(self.refused(is_wrong))),
                    Err(error) => Err(unknown(error.into())),
                };
            }
        };
        let caller = known.caller.clone();
        if let Err(wait) = self.rate.take(caller.id(), Instant::now()) {
            return Err(Box::new((caller, too_many(wait))));
        }
        if !known.roles.iter().any(|role| roles.contains(role)) {
            let words: Vec<&str> = roles.iter().map(|role| role.as_str()).collect();
            let detail = format!("the key or token lacks the role that this needs: {}", words.join(" or "));
            return Err(Box::new((caller, Problem::new(StatusCode::FORBIDDEN, detail).with("roles", words))));
        }
        Ok(caller)
    }

    /// The keys of a tenant, the oldest first, those that do not count any more included.
    pub(crate) fn keys_of(&self, tenant: Option<&TenantName>) -> Result<Vec<ApiKey>, StoreError> {
        let mut keys = self.store.keys()?;
        keys.retain(|key| key.tenant.as_ref() == tenant);
        Ok(keys)
    }

    /// Takes a key of a tenant back. False if it has none of that id that counts.
    pub(crate) fn revoke(&self, tenant: Option<&TenantName>, id: &str) -> Result<bool, StoreError> {
        match self.store.key(id)? {
            Some((key, _)) if key.tenant.as_ref() == tenant => self.store.revoke_key(id),
            _ => Ok(false),
        }
    }

    /// What somebody is told who has no key that counts, or a wrong one. Whether there is such a key is not said, and guessing has its
    /// limit.
    fn refused(&self, is_wrong: bool) -> Problem {
        match self.rate.take(UNKNOWN, Instant::now()) {
            Ok(()) => {
                let detail = if is_wrong {
                    "the API key or token is not valid here; it may be misspelt, revoked or expired, or belong to another server"
                } else {
                    "this needs an API key, as `Authorization: Bearer KEY`; `hotcell serve key add` makes one"
                };
                Problem::new(StatusCode::UNAUTHORIZED, detail)
            }
            Err(wait) => too_many(wait),
        }
    }
}

fn too_many(wait: Duration) -> Problem {
    let seconds = wait.as_secs() + 1;
    Problem::new(StatusCode::TOO_MANY_REQUESTS, "too many requests").with("retry_after", seconds)
}

/// What a request shows of who sent it.
enum Shown<'h> {
    Nothing,
    Key(Token),
    /// What may be a token that somebody else issued
    Token(&'h str),
}

/// What a request shows. Two of them, and what is no key and no token, are an error.
fn shown(headers: &HeaderMap) -> Result<Shown<'_>, ()> {
    let shown: Vec<&HeaderValue> = headers.get_all(AUTHORIZATION).iter().chain(headers.get_all(API_KEY)).collect();
    let [only] = shown[..] else { return if shown.is_empty() { Ok(Shown::Nothing) } else { Err(()) } };
    let text = only.to_str().map_err(|_| ())?;
    if headers.contains_key(API_KEY) {
        return text.parse().map(Shown::Key);
    }
    let (scheme, shown) = text.split_once(' ').ok_or(())?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(());
    }
    match shown.parse() {
        Ok(key) => Ok(Shown::Key(key)),
        Err(()) if shown.contains('.') => Ok(Shown::Token(shown)),
        Err(()) => Err(()),
    }
}

/// The keys of a server, for whoever makes them and takes them back. A server that runs notices at its next request.
pub struct Keys(Store);

impl Keys {
    /// The keys in the server's file.
    ///
    /// # Errors
    /// When the file cannot be used.
    pub fn open(file: &Path) -> Result<Self, ServeError> {
        Ok(Keys(Store::open(Some(file))?))
    }

    /// Makes a key, which belongs to this tenant. What it gives back cannot be read again.
    ///
    /// # Errors
    /// When it cannot be kept.
    pub fn add(
        &self,
        name: &str,
        tenant: Option<&TenantName>,
        roles: &[Role],
        expires: Option<SystemTime>,
    ) -> Result<Token, ServeError> {
        let token = Token::random();
        self.0.add_key(&token, name, tenant, roles, expires)?;
        Ok(token)
    }

    /// All keys, the oldest first, those that do not count any more included.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn list(&self) -> Result<Vec<ApiKey>, ServeError> {
        Ok(self.0.keys()?)
    }

    /// Takes a key back. False if there is none of that id, or it was taken back before.
    ///
    /// # Errors
    /// When that cannot be kept.
    pub fn revoke(&self, id: &str) -> Result<bool, ServeError> {
        Ok(self.0.revoke_key(id)?)
    }
}
