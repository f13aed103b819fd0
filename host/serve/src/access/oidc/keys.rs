//! The keys of an issuer: they are read where its configuration says, kept for an hour, and read again when a token names one that
//! is not among them. Whoever makes tokens up makes few requests of ours.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use hotcell_tls::{TlsFiles, client_config, public_roots};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use crate::jwt::{Algorithm, Jwk};

/// Where an issuer says what it is, below its address.
const CONFIGURATION: &str = ".well-known/openid-configuration";
/// How long keys are used before they are read again.
const FRESH_FOR: Duration = Duration::from_secs(60 * 60);
/// How long keys are used that cannot be read again.
const GOOD_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// How long it takes at least until keys are read again because a token names one that is not there.
const AT_LEAST: Duration = Duration::from_secs(60);
/// How long it takes at least until they are tried again that could not be read.
const AFTER_FAILURE: Duration = Duration::from_secs(10);
/// How long a request may take, and bytes and keys of what is believed of a reply.
const WITHIN: Duration = Duration::from_secs(10);
const LARGEST: usize = 1 << 20;
const MOST_KEYS: usize = 256;

/// The keys of an issuer.
pub(super) struct Keys {
    client: reqwest::Client,
    /// Its name, as its tokens say it
    issuer: String,
    configuration: Url,
    /// Where the keys are, if the operator said so
    place: Option<Url>,
    known: RwLock<Known>,
    /// Held while they are read
    reading: tokio::sync::Mutex<()>,
}

#[derive(Clone, Default)]
struct Known {
    keys: Arc<Vec<Jwk>>,
    read: Option<Instant>,
    failed: Option<(Instant, Arc<str>)>,
}

#[derive(Deserialize)]
struct Configuration {
    issuer: String,
    jwks_uri: String,
}

#[derive(Deserialize)]
struct KeySet {
    keys: Vec<Value>,
}

impl Keys {
    pub(super) fn new(
        address: &Url,
        issuer: &str,
        place: Option<Url>,
        ca_file: Option<PathBuf>,
    ) -> Result<Self, String> {
        // A path of the issuer is a part of it.
        let mut below = address.clone();
        below.set_path(&format!("{}/", address.path().trim_end_matches('/')));
        let configuration = below.join(CONFIGURATION).map_err(|error| error.to_string())?;
        let files = TlsFiles { ca_file, ..TlsFiles::default() };
        let tls = client_config(&files, public_roots).map_err(|error| error.to_string())?;
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .timeout(WITHIN)
            .user_agent(concat!("hotcell/", env!("CARGO_PKG_VERSION")));
        let client = client.build().map_err(|error| error.to_string())?;
        let (known, reading) = (RwLock::default(), tokio::sync::Mutex::default());
        Ok(Keys { client, issuer: issuer.to_owned(), configuration, place, known, reading })
    }

    /// The key of this name that may sign in this way; without a name, the only one that may. None if there is none.
    ///
    /// # Errors
    /// Why the keys cannot be read.
    pub(super) async fn find(
        &self,
        kid: Option<&str>,
        algorithm: Algorithm,
        now: Instant,
    ) -> Result<Option<Jwk>, String> {
        let found = |known: &Known| choose(&known.keys, kid, algorithm);
        let known = self.known();
        let (key, age) = (found(&known), known.read.map(|read| now.duration_since(read)));
        let _reading = match (key, age) {
            (Some(key), Some(age)) if age < FRESH_FOR => return Ok(Some(key)),
            // While somebody reads them, which may take long, others go by those of before.
            (Some(key), Some(age)) if age < GOOD_FOR => match self.reading.try_lock() {
                Ok(reading) => reading,
                Err(_) => return Ok(Some(key)),
            },
            _ => self.reading.lock().await,
        };
        // Somebody may have read them meanwhile.
        let known = self.known();
        let age = known.read.map(|read| now.duration_since(read));
        let key = found(&known);
        let is_due = age.is_none_or(|age| age >= FRESH_FOR || (key.is_none() && age >= AT_LEAST));
        if !is_due {
            return Ok(key);
        }
        let failed = known.failed.filter(|(at, _)| now.duration_since(*at) < AFTER_FAILURE);
        let read = match failed {
            Some((_, reason)) => Err(reason.to_string()),
            None => self.read().await,
        };
        match read {
            Ok(keys) => {
                let known = Known { keys: Arc::new(keys), read: Some(now), failed: None };
                let key = found(&known);
                *self.known.write().unwrap_or_else(PoisonError::into_inner) = known;
                Ok(key)
            }
            Err(reason) => {
                let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
                if known.failed.as_ref().is_none_or(|(at, _)| now.duration_since(*at) >= AFTER_FAILURE) {
                    // From when it failed on: an issuer that is silent is not asked again at once.
                    known.failed = Some((now.max(Instant::now()), reason.as_str().into()));
                }
                match age {
                    Some(age) if age < GOOD_FOR => Ok(key),
                    _ => Err(reason),
                }
            }
        }
    }

    fn known(&self) -> Known {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn read(&self) -> Result<Vec<Jwk>, String> {
        let place = match &self.place {
            Some(place) => place.clone(),
            None => self.discover().await?,
        };
        let set: KeySet = self.get(&place).await?;
        // A key of a kind that is not known is left out.
        Ok(set.keys.into_iter().take(MOST_KEYS).filter_map(|key| serde_json::from_value(key).ok()).collect())
    }

    /// Where the issuer says that its keys are.
    async fn discover(&self) -> Result<Url, String> {
        let configuration: Configuration = self.get(&self.configuration).await?;
        if configuration.issuer != self.issuer {
            return Err(format!("`{}` is of another issuer", self.configuration));
        }
        let place: Url = configuration
            .jwks_uri
            .parse()
            .map_err(|error| format!("its `jwks_uri` is not a valid address: {error}"))?;
        // Whoever can write into the document could name any server, of this network, too.
        match place.origin() == self.configuration.origin() {
            true => Ok(place),
            false => Err(format!(
                "its keys are on another server; if that is meant, write `keys = \"{place}\"` in the server file"
            )),
        }
    }

    async fn get<T: DeserializeOwned>(&self, url: &Url) -> Result<T, String> {
        let failed = |error: reqwest::Error| format!("`{url}` cannot be read: {}", error.without_url());
        let mut reply =
            self.client.get(url.clone()).header("accept", "application/json").send().await.map_err(failed)?;
        if reply.status() != 200 {
            return Err(format!("`{url}` answered with the status {}", reply.status()));
        }
        let mut body = Vec::new();
        while let Some(chunk) = reply.chunk().await.map_err(failed)? {
            if body.len() + chunk.len() > LARGEST {
                return Err(format!("`{url}` answered with more than {LARGEST} bytes"));
            }
            body.extend_from_slice(&chunk);
        }
        serde_json::from_slice(&body).map_err(|error| format!("what `{url}` answered cannot be read: {error}"))
    }
}

fn choose(keys: &[Jwk], kid: Option<&str>, algorithm: Algorithm) -> Option<Jwk> {
    let mut fitting = keys.iter().filter(|key| key.fits(algorithm));
    match kid {
        Some(_) => fitting.find(|key| key.kid.as_deref() == kid),
        // Of several it would not be clear which is meant.
        None => fitting.next().filter(|_| fitting.next().is_none()),
    }
    .cloned()
}
