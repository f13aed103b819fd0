//! Who may use the server: API keys with roles, how much each may ask for, and what was asked.

pub(crate) mod audit;
mod caller;
mod rate;

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use self::audit::Audit;
pub(crate) use self::caller::Caller;
use self::rate::Rate;
use crate::error::ServeError;
use crate::key::{ApiKey, Token};
use crate::problem::Problem;
use crate::role::Role;
use crate::rules::Needs;
use crate::store::{Store, StoreError};

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
    pub(crate) audit: Audit,
}

impl Access {
    pub(crate) fn new(store: Store, audit: Audit, requests_per_second: u32) -> Self {
        Access { store, rate: Rate::per_second(requests_per_second), audit }
    }

    /// Whether somebody has a key that counts.
    pub(crate) fn has_keys(&self) -> Result<bool, StoreError> {
        let now = SystemTime::now();
        Ok(self.store.keys()?.iter().any(|key| key.is_valid(now)))
    }

    /// Who asks, if they may do what needs this. Where no key was ever made, which only a server has that this machine alone can
    /// reach, everybody may do everything.
    ///
    /// # Errors
    /// Who asked all the same, and why they may not.
    pub(crate) fn admit(&self, headers: &HeaderMap, needs: &Needs) -> Result<Caller, Box<(Caller, Problem)>> {
        let Needs::Roles(roles) = needs else { return Ok(Caller::Unknown) };
        let unknown = |problem: Problem| Box::new((Caller::Unknown, problem));
        let shown = token(headers).map_err(|()| unknown(self.refused()))?;
        let Some(token) = shown else {
            return match self.store.has_ever_had_keys() {
                Ok(false) => Ok(Caller::Local),
                Ok(true) => Err(unknown(self.refused())),
                Err(error) => Err(unknown(error.into())),
            };
        };
        let known = self.store.key(&token.id).map_err(|error| unknown(error.into()))?;
        let (key, digest) = known.map_or((None, NOBODY.to_vec()), |(key, digest)| (Some(key), digest));
        let fits = token.fits(&digest);
        let Some(key) = key.filter(|key| fits && key.is_valid(SystemTime::now())) else {
            return Err(unknown(self.refused()));
        };
        let caller = Caller::Key(key.id.clone());
        if let Err(wait) = self.rate.take(&key.id, Instant::now()) {
            return Err(Box::new((caller, too_many(wait))));
        }
        if !key.roles.iter().any(|role| roles.contains(role)) {
            let words: Vec<&str> = roles.iter().map(|role| role.as_str()).collect();
            let detail = format!("the key does not have the role that this needs: {}", words.join(" or "));
            return Err(Box::new((caller, Problem::new(StatusCode::FORBIDDEN, detail).with("roles", words))));
        }
        Ok(caller)
    }

    /// What somebody is told who has no key that counts. Whether there is such a key is not said, and guessing has its limit.
    fn refused(&self) -> Problem {
        match self.rate.take(UNKNOWN, Instant::now()) {
            Ok(()) => {
                let detail = "this needs an API key, as `Authorization: Bearer KEY`; `hotcell serve key add` makes one";
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

/// The key that a request shows, if it shows one. Two of them, and what is no key, are an error.
fn token(headers: &HeaderMap) -> Result<Option<Token>, ()> {
    let shown: Vec<&HeaderValue> = headers.get_all(AUTHORIZATION).iter().chain(headers.get_all(API_KEY)).collect();
    let [only] = shown[..] else { return if shown.is_empty() { Ok(None) } else { Err(()) } };
    let text = only.to_str().map_err(|_| ())?;
    let key = match headers.contains_key(API_KEY) {
        true => text,
        false => {
            let (scheme, key) = text.split_once(' ').ok_or(())?;
            if !scheme.eq_ignore_ascii_case("bearer") {
                return Err(());
            }
            key
        }
    };
    key.parse().map(Some)
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

    /// Makes a key. What it gives back cannot be read again.
    ///
    /// # Errors
    /// When it cannot be kept.
    pub fn add(&self, name: &str, roles: &[Role], expires: Option<SystemTime>) -> Result<Token, ServeError> {
        let token = Token::random();
        self.0.add_key(&token, name, roles, expires)?;
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
