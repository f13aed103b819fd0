//! How much of a stranger's talk is taken within a second.

use std::time::Duration;

use tokio::time::Instant;

/// What may be taken within one second, in the smallest unit.
const BUDGET: u32 = 20_000;

/// The cost of something that was asked for: 20,000 of these a second.
pub(crate) const ANSWER: u32 = 1;
/// The cost of something that was not asked for, or means nothing: 1,000 of these a second.
pub(crate) const UNASKED: u32 = 20;
/// The cost of a new stream: 10 of these a second.
pub(crate) const STREAM: u32 = 2_000;

/// What reading so many bytes costs beside that: 20 MiB a second.
pub(crate) fn reading(bytes: usize) -> u32 {
    u32::try_from(bytes >> 10).unwrap_or(BUDGET)
}

/// Counts what was taken, and says when to go on.
#[derive(Debug)]
pub(crate) struct Pace {
    second: Instant,
    spent: u32,
    resume: Option<Instant>,
}

impl Pace {
    pub(crate) fn new() -> Self {
        Pace { second: Instant::now(), spent: 0, resume: None }
    }

    /// Something was taken.
    pub(crate) fn spend(&mut self, cost: u32) {
        self.spend_at(Instant::now(), cost);
    }

    fn spend_at(&mut self, now: Instant, cost: u32) {
        if now.duration_since(self.second) >= Duration::from_secs(1) {
            (self.second, self.spent) = (now, 0);
        }
        self.spent = self.spent.saturating_add(cost);
        if self.spent >= BUDGET {
            self.resume = Some(self.second + Duration::from_secs(1));
        }
    }

    /// Waits until more may be taken. Whoever stops waiting changes nothing.
    pub(crate) async fn ready(&mut self) {
        if let Some(resume) = self.resume {
            tokio::time::sleep_until(resume).await;
            self.resume = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn large_messages_cost_more_than_small_ones() {
        let mut pace = Pace::new();
        let first = pace.second;
        for (bytes, resume) in
            [(1_000, None), (8 << 20, None), (8 << 20, None), (8 << 20, Some(first + Duration::from_secs(1)))]
        {
            pace.spend_at(first, reading(bytes));
            assert_eq!(pace.resume, resume);
        }
        assert_eq!(reading(usize::MAX), BUDGET);
    }

    #[tokio::test]
    async fn a_second_has_room_for_so_much() {
        for (cost, room) in [(ANSWER, 20_000), (UNASKED, 1_000), (STREAM, 10)] {
            let mut pace = Pace::new();
            let (first, second) = (pace.second, pace.second + Duration::from_secs(1));
            for _ in 1..room {
                pace.spend_at(first, cost);
            }
            assert_eq!(pace.resume, None, "{cost}");
            pace.spend_at(first, cost);
            assert_eq!(pace.resume, Some(second), "{cost}");
            pace.ready().await;
            assert!(Instant::now() >= second && pace.resume.is_none(), "{cost}");
            for _ in 1..room {
                pace.spend_at(second, cost);
            }
            assert_eq!(pace.resume, None, "{cost}");
        }
    }
}
