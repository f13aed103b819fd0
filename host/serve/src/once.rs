//! What is known of a request that has an `Idempotency-Key`, for whoever carries it out.
//!
//! Before a request is carried out, its key is kept with a name: that of the run, fork or thread that it begins, if it begins one. So
//! what was begun is found again, also when the server was killed before it could answer.

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use hotcell_runtime::RunId;
use http::{HeaderName, Method};
use sha2::{Digest as _, Sha256};

/// The header with the key.
pub(crate) const KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Characters of the longest key.
pub(crate) const LONGEST: usize = 255;

tokio::task_local! {
    pub(crate) static REQUEST: Keyed;
}

/// A request with a key, while it is carried out.
pub(crate) struct Keyed {
    /// The name for what it begins
    pub(crate) name: RefCell<Option<RunId>>,
    /// Whether it was made before, and nobody knows how far it came
    pub(crate) is_repeat: bool,
    /// Whether something was begun by that name, or tried to
    pub(crate) used: Arc<Mutex<bool>>,
}

/// The name for what the request at hand begins, once: a request that begins several things has a name for the first of them.
pub(crate) fn take_name() -> Option<RunId> {
    REQUEST
        .try_with(|keyed| {
            let name = keyed.name.borrow_mut().take();
            if name.is_some() {
                *keyed.used.lock().unwrap_or_else(PoisonError::into_inner) = true;
            }
            name
        })
        .ok()
        .flatten()
}

/// The name of something that is begun for this and nothing else. It follows from that, so that there is one of it, whoever begins it.
pub(crate) fn name_of(what: &str) -> RunId {
    let digest = Sha256::digest(what);
    RunId::from(digest[..8].iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

/// Gives the name back that was taken for something that did not begin: something else of the same request may have it.
pub(crate) fn give_back(name: Option<RunId>) {
    if let Some(name) = name {
        let _ = REQUEST.try_with(|keyed| {
            *keyed.name.borrow_mut() = Some(name);
        });
    }
}

/// Things of one kind that a request may begin.
pub(crate) const PARTS: usize = 100;

/// Does one of several things that the request at hand begins. Each of them has a name that follows from that of the request, so that
/// all are found again.
pub(crate) async fn part<T>(number: usize, work: impl Future<Output = T>) -> T {
    let keyed = REQUEST.try_with(|keyed| {
        let name = keyed.name.borrow().as_ref().map(|name| RunId::from(format!("{name}{number:02}")));
        Keyed { name: RefCell::new(name), is_repeat: keyed.is_repeat, used: keyed.used.clone() }
    });
    match keyed {
        Ok(keyed) => REQUEST.scope(keyed, work).await,
        Err(_) => work.await,
    }
}

/// Whether the request at hand was made before, and nobody knows how far it came: what it wants may be done already.
pub(crate) fn is_repeat() -> bool {
    REQUEST.try_with(|keyed| keyed.is_repeat).unwrap_or(false)
}

/// Keys of requests that are carried out at this moment.
#[derive(Default)]
pub(crate) struct InProgress(Mutex<HashSet<[u8; 32]>>);

/// Has a key for as long as its request is carried out.
pub(crate) struct Hold<'a>(&'a InProgress, [u8; 32]);

impl InProgress {
    /// Has a key until what is given back is dropped; none if somebody has it.
    pub(crate) fn begin(&self, key: [u8; 32]) -> Option<Hold<'_>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(key).then(|| Hold(self, key))
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.1);
    }
}

/// What begins the paths of protocols that say in their own way that a message is sent again, and answer in it that they refuse one;
/// and a path that takes a whole archive.
const NOT_AT: [&str; 3] = ["/mcp", "/a2a/", "/agents"];
/// What ends the paths of routes that only look.
const LOOKS: [&str; 7] =
    ["/search", "/namespaces", "/history", "/count", "/validate", "/state/checkpoint", "/versions"];

/// Whether a route takes keys: it changes something.
pub(crate) fn takes_key(method: &Method, path: &str) -> bool {
    method == Method::POST
        && !NOT_AT.iter().any(|start| path.starts_with(start))
        && !LOOKS.iter().any(|end| path.ends_with(end))
}
