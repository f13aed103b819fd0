//! What is kept of replies of chat providers: tokens, as long as they are good.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use super::provider::Provider;

/// What was kept of replies, and how long it is good.
#[derive(Default)]
pub(in crate::mesh) struct Kept(Mutex<HashMap<KeptName, (String, SystemTime)>>);

/// The agent, the provider, and what it is called.
type KeptName = (String, Provider, String);

impl Kept {
    /// What is kept for a seat at a provider, by name.
    pub(super) fn of(&self, seat: &str, provider: Provider, now: SystemTime) -> HashMap<String, String> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|_, (_, until)| *until > now);
        let own = kept.iter().filter(|((whose, of, _), _)| whose == seat && *of == provider);
        own.map(|((_, _, name), (value, _))| (name.clone(), value.clone())).collect()
    }

    /// Keeps something until then.
    pub(super) fn keep(&self, seat: &str, provider: Provider, name: &str, value: &str, until: SystemTime) {
        let key = (seat.to_owned(), provider, name.to_owned());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key, (value.to_owned(), until));
    }

    /// Keeps nothing any more for a seat at a provider.
    pub(super) fn forget(&self, seat: &str, provider: Provider) {
        let is_other = |(whose, of, _): &KeptName| whose != seat || *of != provider;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|key, _| is_other(key));
    }
}
