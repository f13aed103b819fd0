//! The keys that tokens of Teams are signed with: they are read from the provider, and kept for a day.

use std::sync::PoisonError;
use std::time::{Duration, SystemTime};

use hotcell_runtime::WebCall;
use serde::Deserialize;
use url::Url;

use super::super::meshes::Mesh;
use super::known_keys::{Keys, Known};
use super::provider::address;
use super::token::{ISSUER, Key};
use crate::state::Server;

/// Whose document says where the keys are.
const HOST: &str = "login.botframework.com";
const PATH: &str = "/v1/.well-known/openidconfiguration";
/// How long keys are used before they are read again.
const GOOD_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// How long it takes at least until they are read again because a token names one that is not there: whoever makes tokens up
/// makes no requests of ours.
const AT_LEAST: Duration = Duration::from_secs(300);
/// How long it takes at least after they could not be read.
const AFTER_FAILURE: Duration = Duration::from_secs(10);
/// How long one request may take, and bytes and keys of what is believed of a reply.
const WITHIN: Duration = Duration::from_secs(10);
const LARGEST: usize = 1 << 20;
const MOST_KEYS: usize = 256;

#[derive(Deserialize)]
struct Document {
    issuer: String,
    jwks_uri: String,
    #[serde(default)]
    id_token_signing_alg_values_supported: Vec<String>,
}

#[derive(Deserialize)]
struct KeySet {
    keys: Vec<serde_json::Value>,
}

impl Keys {
    /// The key of that name, if it may be used with this algorithm. None if there is none.
    ///
    /// # Errors
    /// Why the keys cannot be read.
    pub(super) async fn find(&self, server: &Server, mesh: &Mesh, kid: &str, alg: &str) -> Result<Option<Key>, String> {
        let now = server.clock().now();
        // A clock that was set back makes nothing older.
        let age = |at: SystemTime| now.duration_since(at).unwrap_or_default();
        let look = || {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            let is_allowed = known.algorithms.is_empty() || known.algorithms.iter().any(|allowed| allowed == alg);
            let found = known.keys.iter().find(|key| is_allowed && key.key.kid.as_deref() == Some(kid)).cloned();
            let is_old = match known.read {
                None => true,
                Some(read) => age(read) >= GOOD_FOR || (found.is_none() && age(read) >= AT_LEAST),
            };
            (found, is_old)
        };
        // Whose key is known waits for nobody: a token with a name that somebody made up may have the keys read.
        let (found, is_old) = look();
        if !is_old {
            return Ok(found);
        }
        let _reading = self.reading.lock().await;
        // Somebody may have read them meanwhile.
        let (found, is_old) = look();
        if !is_old {
            return Ok(found);
        }
        if let Some((at, reason)) = &self.known.read().unwrap_or_else(PoisonError::into_inner).failed
            && age(*at) < AFTER_FAILURE
        {
            return Err(reason.clone());
        }
        let read = read(server, mesh).await;
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        match read {
            Ok((keys, algorithms)) => *known = Known { keys, algorithms, read: Some(now), failed: None },
            Err(reason) => {
                // From when it failed on: a server that is silent is not asked again at once.
                known.failed = Some((server.clock().now(), reason.clone()));
                return Err(reason);
            }
        }
        drop(known);
        Ok(look().0)
    }
}

async fn read(server: &Server, mesh: &Mesh) -> Result<(Vec<Key>, Vec<String>), String> {
    let place = address(&server.settings().vendor_addresses, HOST)?.join(PATH).map_err(|error| error.to_string())?;
    let document: Document = get(mesh, &place).await?;
    if document.issuer != ISSUER {
        return Err(format!("`{place}` is of another issuer"));
    }
    let keys: Url = document
        .jwks_uri
        .parse()
        .map_err(|error| format!("the `jwks_uri` of `{place}` is not a valid address: {error}"))?;
    // Whoever could write into the document could name any server.
    if keys.origin() != place.origin() {
        return Err(format!("the keys are not on the server of `{place}`"));
    }
    let set: KeySet = get(mesh, &keys).await?;
    // A key of a kind that is not known is left out.
    let known = set.keys.into_iter().take(MOST_KEYS).filter_map(|key| serde_json::from_value(key).ok());
    Ok((known.collect(), document.id_token_signing_alg_values_supported))
}

async fn get<T: for<'de> Deserialize<'de>>(mesh: &Mesh, url: &Url) -> Result<T, String> {
    let call = WebCall {
        method: "GET".to_owned(),
        url: url.to_string(),
        query: Vec::new(),
        headers: vec![("accept".to_owned(), "application/json".to_owned())],
        body: None,
        time: Some(WITHIN),
    };
    let reply = tokio::time::timeout(WITHIN, mesh.agent.send(call)).await;
    let reply = reply.map_err(|_| format!("`{url}` did not answer in time"))?.map_err(|error| error.to_string())?;
    if reply.status != 200 || reply.body.len() > LARGEST {
        return Err(format!("`{url}` answered with the status {} and {} bytes", reply.status, reply.body.len()));
    }
    serde_json::from_str(&reply.body).map_err(|error| format!("what `{url}` answered cannot be read: {error}"))
}
