//! Telling other servers what becomes of runs: that one asks something, and how it ended.
//!
//! What is to be told follows from the entries of a run and is kept in the server's file, so that nothing is lost when the server is
//! killed. It is posted, and posted again until it is taken, with the headers of Standard Webhooks.

pub(crate) mod deliver;
mod sign;
mod store;
mod tell;

use hotcell_runtime::{Host, OutgoingServers, RunId};
use url::Url;

use self::sign::Secret;
use crate::error::ServeError;
use crate::problem::{Problem, shown};
use crate::store::{Store, StoreError};

/// The variable with the secret by which posts are signed.
const SECRET: &str = "HOTCELL_WEBHOOK_SECRET";
/// Bytes of the longest address.
const LONGEST: usize = 2048;

/// Where others are told what becomes of runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebhookSettings {
    /// Where it is told of every run; none for nowhere
    pub all: Option<String>,
    /// The servers to which clients may have that told of their runs, as `https://name` or `https://*.name`
    pub servers: Vec<String>,
}

/// Where it is told what becomes of runs.
pub(crate) struct Webhooks {
    store: Store,
    /// Where it is told of all runs
    all: Option<Url>,
    /// The server of that
    own: OutgoingServers,
    /// The servers that clients may name
    named: OutgoingServers,
    secret: Option<Secret>,
    /// Runs of which a server that ended had something to tell, or was about to: known before this one begins any
    left: Vec<RunId>,
}

impl Webhooks {
    /// Those of a server: where it is told of all runs, and which servers clients may name.
    ///
    /// # Errors
    /// When an address is none, posts could not be signed, or the server's file cannot be read.
    pub(crate) fn new(host: &Host, settings: &WebhookSettings, store: Store) -> Result<Self, ServeError> {
        let WebhookSettings { all: url, servers } = settings;
        let wrong = |what: &str, error: &dyn std::fmt::Display| ServeError::Webhook(format!("{what}: {error}"));
        let all = match url {
            Some(url) => {
                Some(Url::parse(url).map_err(|error| wrong(&format!("`{url}` is not a valid address"), &error))?)
            }
            None => None,
        };
        let own = match &all {
            Some(url) => OutgoingServers::of_address(url)
                .map_err(|error| wrong(&format!("`{url}` is not the address of a web server"), &error))?,
            None => OutgoingServers::default(),
        };
        let named = OutgoingServers::parse(servers).map_err(|error| wrong("a server for webhooks", &error))?;
        let is_used = all.is_some() || !servers.is_empty();
        let secret = match host.variable(SECRET).filter(|secret| !secret.is_empty()) {
            Some(secret) => Some(secret.parse().map_err(|error| wrong(SECRET, &error))?),
            None if is_used => {
                let detail = format!("webhooks are signed: set `{SECRET}` to `whsec_` and 24 to 64 bytes in base64");
                return Err(ServeError::Webhook(detail));
            }
            None => None,
        };
        let left = if is_used { store.all_watched()? } else { Vec::new() };
        let left = left.into_iter().map(RunId::from).collect();
        Ok(Webhooks { store, all, own, named, secret, left })
    }

    /// Whether anything is ever told.
    pub(crate) fn is_used(&self) -> bool {
        self.secret.is_some() && (self.all.is_some() || self.takes_any())
    }

    fn takes_any(&self) -> bool {
        !self.named.is_empty()
    }

    /// Whether a client may have it told there.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn check(&self, url: &str) -> Result<(), Problem> {
        let refused =
            |detail: String| Err(Problem::unprocessable(detail).kind("webhook", "The webhook is not allowed"));
        let Some(parsed) = Url::parse(url).ok().filter(|_| url.len() <= LONGEST) else {
            return refused(format!(
                "`webhook` has to be an address of at most {LONGEST} bytes, and is `{}`",
                shown(url)
            ));
        };
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return refused("`webhook` may not have a name and a password in it".to_owned());
        }
        match self.named.has(&parsed) {
            true => Ok(()),
            false => refused(format!(
                "the server does not post to `{}`; `hotcell serve --webhook-to` names the servers to which clients may have it post",
                shown(&parsed.origin().ascii_serialization())
            )),
        }
    }

    /// Has it told what becomes of a run after so many entries: none of one that is to begin.
    pub(crate) fn watch(&self, run: &RunId, url: Option<&str>, after: u64) -> Result<(), StoreError> {
        // Written in one way, so that it is seen which of them lead to the same server.
        let url = url.map(|url| Url::parse(url).map_or_else(|_| url.to_owned(), String::from));
        for url in url.as_deref().into_iter().chain(self.all.as_ref().map(Url::as_str)) {
            self.store.watch(run.as_str(), url, after)?;
        }
        Ok(())
    }

    /// Tells nothing of a run that did not begin.
    pub(crate) fn forget(&self, run: &RunId) {
        if let Err(error) = self.store.unwatch(run.as_str()) {
            tracing::error!(target: "hotcell::serve", %run, %error, "the server's file cannot be used");
        }
    }

    /// Whether a run that is to begin is watched.
    pub(crate) fn watches(&self, url: Option<&str>) -> bool {
        self.is_used() && (url.is_some() || self.all.is_some())
    }
}
