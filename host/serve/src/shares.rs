//! How many requests of one tenant or key are answered at a time, so that others can be. A stream is a request that is answered for as long
//! as it is followed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::access::Caller;
use crate::problem::Problem;
use crate::tenant_name::TenantName;

/// What is answered at the moment, by whose it is.
pub(crate) struct Shares {
    connections: usize,
    by: Mutex<HashMap<String, usize>>,
}

/// A request that is answered, until it is dropped.
pub(crate) struct Share {
    all: Arc<Shares>,
    whose: String,
}

impl Shares {
    /// Of so many connections that there may be, whoever has a key gets half at most of what others leave: however many take all that they get,
    /// there is room for one more.
    pub(crate) fn of(connections: usize) -> Self {
        Shares { connections, by: Mutex::default() }
    }

    fn by(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.by.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more request. The error is how many there may be at this moment.
    fn take(self: &Arc<Self>, whose: &str) -> Result<Share, usize> {
        let mut by = self.by();
        let own = by.get(whose).copied().unwrap_or(0);
        let of_others = by.values().sum::<usize>() - own;
        let most = (self.connections.saturating_sub(of_others) / 2).max(1);
        if own >= most {
            return Err(most);
        }
        by.insert(whose.to_owned(), own + 1);
        Ok(Share { all: self.clone(), whose: whose.to_owned() })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut by = self.all.by();
        if let Some(now) = by.get_mut(&self.whose) {
            *now -= 1;
            if *now == 0 {
                by.remove(&self.whose);
            }
        }
    }
}

/// The share of a request of `caller`: of the tenant whose server it is for, or of the key. Where everybody at this machine may do
/// everything, nobody has one.
///
/// # Errors
/// When too many of them are answered at the moment.
pub(crate) fn share_of(
    shares: &Arc<Shares>,
    tenant: Option<&TenantName>,
    caller: &Caller,
) -> Result<Option<Share>, Problem> {
    let whose = match (tenant, caller) {
        (_, Caller::Local | Caller::Unknown) => return Ok(None),
        (Some(tenant), _) => tenant.as_str(),
        (None, known) => known.id(),
    };
    let share = shares.take(whose).map_err(|most| {
        let detail = format!(
            "at the moment this key or tenant may have {most} requests and streams at a time, which is half of what others leave"
        );
        Problem::new(http::StatusCode::TOO_MANY_REQUESTS, detail)
            .kind("too-many-requests-at-once", "Too many requests at once")
            .with("retry_after", 1)
            .with("limit", most)
    })?;
    Ok(Some(share))
}

/// Places for requests that keep a processor busy. The servers of all tenants have them in common, and each has so many at most.
pub(crate) struct Places {
    all: Arc<Semaphore>,
    own: Semaphore,
}

/// Has a place until it is dropped.
pub(crate) struct Place<'p> {
    _own: SemaphorePermit<'p>,
    _all: SemaphorePermit<'p>,
}

impl Places {
    /// Places of a server that has so many of those that all have in common.
    pub(crate) fn new(all: Arc<Semaphore>, own: usize) -> Self {
        Places { all, own: Semaphore::new(own) }
    }

    /// A place, if there is one.
    pub(crate) fn take(&self) -> Option<Place<'_>> {
        Some(Place { _own: self.own.try_acquire().ok()?, _all: self.all.try_acquire().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_tenant_leaves_a_place_to_another() {
        let all = Arc::new(Semaphore::new(2));
        let tenants = [0; 3].map(|_| Places::new(all.clone(), 1));
        let first = tenants[0].take();
        assert!(first.is_some() && tenants[0].take().is_none());
        let second = tenants[1].take();
        assert!(second.is_some() && tenants[2].take().is_none());
        drop(second);
        assert!(tenants[2].take().is_some(), "what was refused has no place");
    }

    #[test]
    fn each_has_half_and_what_was_answered_counts_no_more() {
        let shares = Arc::new(Shares::of(4));
        let one = [0; 2].map(|_| shares.take("one").expect("a share"));
        assert_eq!(shares.take("one").err(), Some(2));
        let other = shares.take("other").expect("others are answered");
        drop(one);
        assert!(shares.take("one").is_ok());
        drop(other);
        assert!(shares.by().is_empty());
    }

    #[test]
    fn however_many_take_all_they_get_there_is_room_for_others() {
        let shares = Arc::new(Shares::of(1024));
        let mut taken = Vec::new();
        for (number, most) in [512, 256, 128, 64, 32].into_iter().enumerate() {
            let whose = number.to_string();
            while let Ok(share) = shares.take(&whose) {
                taken.push(share);
            }
            assert_eq!(shares.by().get(&whose), Some(&most));
        }
        assert!(shares.take("other").is_ok());
    }
}
