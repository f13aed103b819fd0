//! How the agents of a mesh have done of late.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use hotcell_runtime::leafmesh::Healing;

/// How many of the latest runs of an agent are looked at.
const LATEST: usize = 20;

/// How agents have done since the server began, by their names.
#[derive(Default)]
pub(super) struct Health(Mutex<HashMap<String, Latest>>);

/// How the latest runs of an agent ended.
#[derive(Default)]
struct Latest {
    /// Whether they failed, the oldest first
    failed: VecDeque<bool>,
    in_a_row: u32,
    /// When it was told last that the agent is ill
    told: Option<SystemTime>,
}

impl Health {
    /// Takes note of how a run of an agent ended. Gives why the agent counts as ill, if that is to be told.
    pub(super) fn note(
        &self,
        agent: &str,
        has_failed: bool,
        healing: &Healing,
        now: SystemTime,
    ) -> Option<&'static str> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let latest = all.entry(agent.to_owned()).or_default();
        latest.in_a_row = if has_failed { latest.in_a_row.saturating_add(1) } else { 0 };
        latest.failed.push_back(has_failed);
        if latest.failed.len() > LATEST {
            latest.failed.pop_front();
        }
        if !has_failed {
            return None;
        }
        let failures = latest.failed.iter().filter(|failed| **failed).count();
        let is_often = latest.failed.len() == LATEST && failures as f64 > healing.error_rate * LATEST as f64;
        let cause = match latest.in_a_row >= healing.consecutive_failures {
            true => "consecutive_failures",
            false if is_often => "error_rate",
            false => return None,
        };
        let is_told = |told: SystemTime| now.duration_since(told).is_ok_and(|since| since < healing.cooldown);
        if latest.told.is_some_and(is_told) {
            return None;
        }
        latest.told = Some(now);
        Some(cause)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use hotcell_runtime::leafmesh::Healing;

    use super::Health;

    #[test]
    fn an_agent_is_ill_after_failures_in_a_row_or_too_many_of_late() {
        let healing = Healing { consecutive_failures: 3, error_rate: 0.3, cooldown: Duration::from_secs(60) };
        let health = Health::default();
        let note = |agent: &str, failed, seconds| {
            health.note(agent, failed, &healing, SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
        };
        assert_eq!([true, true, false, true, true].map(|failed| note("a", failed, 0)), [None; 5]);
        assert_eq!(note("a", true, 0), Some("consecutive_failures"));
        assert_eq!(note("a", true, 59), None, "it was told");
        assert_eq!(note("b", true, 59), None, "another one is well");
        assert_eq!(note("a", true, 60), Some("consecutive_failures"));
        // Of twenty, six are not more than three in ten, and seven are.
        let every_third: Vec<_> = (0..20).map(|number| note("c", number % 3 == 0 && number < 18, 0)).collect();
        assert!(every_third.iter().all(Option::is_none), "{every_third:?}");
        assert_eq!(note("c", true, 0), None, "the oldest failure is forgotten");
        assert_eq!(note("c", false, 0), None);
        assert_eq!(note("c", true, 0), Some("error_rate"));
    }
}
