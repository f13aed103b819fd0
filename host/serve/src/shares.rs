//! How many requests of one tenant or key are answered at a time, so that others can be. A stream is a request that is answered for as long
//! as it is followed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::access::Caller;
use crate::problem::Problem;
use crate::tenant_name::TenantName;

/// What is answered at the moment, by whose it is.
pub(crate) struct Shares {
    most: usize,
    by: Mutex<HashMap<String, usize>>,
}

/// A request that is answered, until it is dropped.
pub(crate) struct Share {
    all: Arc<Shares>,
    whose: String,
}

impl Shares {
    /// Of so many connections that there may be, whoever has a key gets half at most.
    pub(crate) fn of(connections: usize) -> Self {
        Shares { most: (connections / 2).max(1), by: Mutex::default() }
    }

    fn by(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.by.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(self: &Arc<Self>, whose: &str) -> Option<Share> {
        let mut by = self.by();
        let now = by.entry(whose.to_owned()).or_default();
        if *now >= self.most {
            return None;
        }
        *now += 1;
        Some(Share { all: self.clone(), whose: whose.to_owned() })
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
    let share = shares.take(whose).ok_or_else(|| {
        let detail = format!(
            "{} requests and streams of this key or tenant are answered at the moment, which is its share",
            shares.most
        );
        Problem::new(http::StatusCode::TOO_MANY_REQUESTS, detail)
            .kind("too-many-requests-at-once", "Too many requests at once")
            .with("retry_after", 1)
            .with("limit", shares.most)
    })?;
    Ok(Some(share))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_half_and_what_was_answered_counts_no_more() {
        let shares = Arc::new(Shares::of(4));
        let one = [0; 2].map(|_| shares.take("one").expect("a share"));
        assert!(shares.take("one").is_none());
        let other = shares.take("other").expect("others are answered");
        drop(one);
        assert!(shares.take("one").is_some());
        drop(other);
        assert!(shares.by().is_empty());
    }
}
