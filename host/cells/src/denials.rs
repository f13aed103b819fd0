//! What a call asked for and was denied, collected for the operator.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::call::Terms;
use crate::grants::Grants;
use crate::policy::{Capability, Denial};
use crate::requests::Requests;

/// Denials that are kept of one call: a guest that tries everything must not fill the host's memory.
const MAX_DENIALS: usize = 32;

/// Bytes of a name that are kept: nothing that can be granted has a longer one.
const MAX_TEXT: usize = 1_024;

/// The denials of one call, each once, in the order they happened. Cheap to clone; clones share the list.
#[derive(Clone)]
pub(crate) struct Denials {
    plugin: Arc<str>,
    held_back: Arc<Grants>,
    requests: Option<Arc<Requests>>,
    noted: Arc<Mutex<Noted>>,
}

#[derive(Default)]
struct Noted {
    list: Vec<Denial>,
    /// What was denied last, also if it is in the list already or had no room there.
    latest: Option<Capability>,
}

impl Denials {
    /// An empty list for a call on these terms.
    pub(crate) fn of(terms: &Terms) -> Self {
        Self {
            plugin: terms.plugin.as_str().into(),
            held_back: terms.held_back.clone(),
            requests: terms.requests.clone(),
            noted: Arc::default(),
        }
    }

    pub(crate) fn add(&self, capability: Capability) {
        let held_back = capability.is_in(&self.held_back);
        let unasked = self.requests.as_ref().is_some_and(|requests| !capability.is_asked_for(requests));
        let denial = Denial { held_back, unasked, ..Denial::new(&*self.plugin, capability) }.map_texts(kept);
        let mut noted = self.noted();
        noted.latest = Some(denial.capability.clone());
        // What was held back from a call is told in any case: a run that was forked goes no further there.
        let most = if held_back { 2 * MAX_DENIALS } else { MAX_DENIALS };
        if noted.list.len() < most && !noted.list.contains(&denial) {
            noted.list.push(denial);
        }
    }

    /// What was denied last.
    pub(crate) fn latest(&self) -> Option<Capability> {
        self.noted().latest.clone()
    }

    pub(crate) fn take(&self) -> Vec<Denial> {
        std::mem::take(&mut self.noted().list)
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A text of a guest's as it is kept. Of one that is too long there is no part, which could be that of a secret.
fn kept(text: String) -> String {
    if text.len() > MAX_TEXT { format!("({} bytes)", text.len()) } else { text }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Denials, MAX_DENIALS};
    use crate::call::Terms;
    use crate::grants::Grants;
    use crate::policy::Capability;

    #[test]
    fn no_number_of_denials_hides_what_was_held_back() {
        let held_back = Arc::new(Grants { llm: true, ..Grants::default() });
        let denials = Denials::of(&Terms { held_back, ..Terms::new("test") });
        for number in 0..100 {
            denials.add(Capability::Tool { name: number.to_string() });
        }
        denials.add(Capability::Model);
        let told = denials.take();
        assert_eq!(told.len(), MAX_DENIALS + 1);
        assert!(told.iter().any(|denial| denial.held_back && denial.capability == Capability::Model));
    }
}
