//! What models of agents have used in this month, for those with a budget.

use std::sync::Arc;
use std::time::SystemTime;

use hotcell_runtime::{Clock, Cost, Host, Meter, Uncounted, Used};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use rusqlite::params;

use super::meshes::kept_name;
use crate::store::{Store, StoreError, microseconds};

/// Tokens of a request that are believed: a server of a model may say anything.
const MOST_TOKENS: u64 = 1 << 40;

/// Counts in the server's file: by calendar months, in UTC, whatever the server does in between.
struct Spending {
    store: Store,
    clock: Arc<dyn Clock>,
    /// The file of the agents
    source: Option<String>,
}

impl Spending {
    /// The name under which it is kept what an agent uses.
    fn kept_name(&self, agent: &str) -> Result<String, StoreError> {
        match &self.source {
            Some(source) => kept_name(&self.store, source, agent),
            None => Ok(agent.to_owned()),
        }
    }
}

/// Has the host count in the server's file what models of agents use.
pub(crate) fn count(host: &Host, store: &Store) {
    let (store, clock) = (store.clone(), host.clock().clone());
    host.counting_with(Arc::new(Spending { store, clock, source: None }));
}

impl Meter for Spending {
    fn used(&self, agent: &str) -> Result<Used, Uncounted> {
        let used = self.kept_name(agent).and_then(|name| self.store.spent_since(&name, month_of(self.clock.now())));
        used.map_err(Uncounted::new)
    }

    fn add(&self, agent: &str, used: Used) -> Result<(), Uncounted> {
        let kept = self.kept_name(agent);
        kept.and_then(|name| self.store.keep_spent(&name, month_of(self.clock.now()), used)).map_err(Uncounted::new)
    }

    fn of(&self, source: &str) -> Option<Arc<dyn Meter>> {
        let (store, clock) = (self.store.clone(), self.clock.clone());
        Some(Arc::new(Spending { store, clock, source: Some(source.to_owned()) }))
    }
}

/// When the month began, in UTC.
fn month_of(now: SystemTime) -> SystemTime {
    let now = Timestamp::try_from(now).unwrap_or_default().to_zoned(TimeZone::UTC);
    let first = now.first_of_month().and_then(|day| day.start_of_day());
    first.map_or(SystemTime::UNIX_EPOCH, |first| first.timestamp().into())
}

impl Store {
    /// Adds to what an agent has used since then: one row for each agent and month, however many requests there are.
    fn keep_spent(&self, agent: &str, since: SystemTime, used: Used) -> Result<(), StoreError> {
        // A request that is repeated after a death was paid for twice.
        let tokens = i64::try_from(used.tokens.min(MOST_TOKENS)).unwrap_or(i64::MAX);
        let (since, cost) = (microseconds(since), used.cost.to_usd());
        self.with(|connection| {
            // An agent that got the name of another one may have two.
            let known = connection
                .prepare_cached(
                    "UPDATE mesh_spent SET tokens = tokens + ?3, cost_usd = cost_usd + ?4
                     WHERE run = (SELECT run FROM mesh_spent WHERE agent = ?1 AND at = ?2 LIMIT 1) AND entry = 0",
                )?
                .execute(params![agent, since, tokens, cost])?;
            if known == 0 {
                let row: u128 = rand::random();
                connection
                    .prepare_cached(
                        "INSERT INTO mesh_spent (run, entry, agent, at, tokens, cost_usd) VALUES (?1, 0, ?2, ?3, ?4, ?5)",
                    )?
                    .execute(params![format!("{row:032x}"), agent, since, tokens, cost])?;
            }
            Ok(())
        })
    }

    fn spent_since(&self, agent: &str, since: SystemTime) -> Result<Used, StoreError> {
        self.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT coalesce(sum(tokens), 0), coalesce(sum(cost_usd), 0.0) FROM mesh_spent WHERE agent = ?1 AND at >= ?2",
                )?
                .query_row(params![agent, microseconds(since)], |row| {
                    let (tokens, cost): (i64, f64) = (row.get(0)?, row.get(1)?);
                    Ok(Used { tokens: u64::try_from(tokens).unwrap_or_default(), cost: Cost::from_usd(cost) })
                })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use hotcell_runtime::{Cost, Used};

    use super::{MOST_TOKENS, month_of};
    use crate::store::Store;

    #[test]
    fn months_begin_in_utc() {
        let at = |text: &str| SystemTime::from(text.parse::<jiff::Timestamp>().expect("a time"));
        for (now, first) in [
            ("2030-11-30T23:59:59Z", "2030-11-01T00:00:00Z"),
            ("2030-12-01T00:00:00Z", "2030-12-01T00:00:00Z"),
            ("2028-02-29T12:00:00Z", "2028-02-01T00:00:00Z"),
        ] {
            assert_eq!(month_of(at(now)), at(first), "{now}");
        }
        assert_eq!(month_of(SystemTime::UNIX_EPOCH + Duration::from_secs(60)), SystemTime::UNIX_EPOCH);
    }

    #[test]
    fn what_is_used_is_added_up_in_one_row_for_each_agent_and_month() {
        let store = Store::open(None).expect("a store");
        let month = |number: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(number * 31 * 24 * 3600);
        let used = |tokens| Used { tokens, cost: Cost::from_usd(0.5) };
        for (agent, number, tokens) in [("a", 1, 10), ("a", 2, 1), ("a", 2, 2), ("b", 2, 100), ("a", 2, u64::MAX)] {
            store.keep_spent(agent, month(number), used(tokens)).expect("kept");
        }
        let spent = store.spent_since("a", month(2)).expect("read");
        assert_eq!((spent.tokens, spent.cost), (3 + MOST_TOKENS, Cost::from_usd(1.5)));
        assert_eq!(store.spent_since("b", month(2)).expect("read").tokens, 100);
        assert_eq!(store.spent_since("a", month(3)).expect("read").tokens, 0);
        let rows = store
            .read(|connection| connection.query_row("SELECT count(*) FROM mesh_spent", [], |row| row.get::<_, i64>(0)));
        assert_eq!(rows.expect("read"), 3);
    }
}
