//! What the runs of a tenant have used, by month. Of each run it is known how much of it was counted, so that nothing is counted
//! twice, however often a run is looked at and whenever the process ends.

use hotcell_budget::{Cost, Usage};
use hotcell_runtime::RunId;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde_json::{Value, json};

use super::{Amounts, Month, MonthBudget};
use crate::store::{Store, StoreError};

/// What was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    /// Billionths of a US dollar
    cost: u64,
    tokens: u64,
    fuel: u64,
}

impl Spent {
    pub(crate) fn of(used: &Usage) -> Self {
        let tokens = used.input_tokens.saturating_add(used.output_tokens);
        Spent { cost: used.cost.0, tokens, fuel: used.fuel.0 }
    }

    /// What of a budget is used up, as a word with its limit.
    pub(super) fn exceeds(&self, budget: &MonthBudget) -> Option<(&'static str, Value)> {
        let cost = budget.cost.filter(|most| self.cost >= most.0).map(|most| ("usd", json!(most.to_usd())));
        let tokens = budget.tokens.filter(|most| self.tokens >= *most).map(|most| ("tokens", json!(most)));
        let fuel = budget.fuel.filter(|most| self.fuel >= most.0).map(|most| ("fuel", json!(most.0)));
        cost.or(tokens).or(fuel)
    }

    pub(super) fn amounts(&self) -> Amounts {
        Amounts { usd: Some(Cost(self.cost).to_usd()), tokens: Some(self.tokens), fuel: Some(self.fuel) }
    }

    pub(super) fn beyond(&self, counted: &Spent) -> Self {
        Spent {
            cost: self.cost.saturating_sub(counted.cost),
            tokens: self.tokens.saturating_sub(counted.tokens),
            fuel: self.fuel.saturating_sub(counted.fuel),
        }
    }

    fn plus(&self, more: &Spent) -> Self {
        Spent {
            cost: self.cost.saturating_add(more.cost),
            tokens: self.tokens.saturating_add(more.tokens),
            fuel: self.fuel.saturating_add(more.fuel),
        }
    }

    fn columns(&self) -> [i64; 3] {
        [self.cost, self.tokens, self.fuel].map(|number| i64::try_from(number).unwrap_or(i64::MAX))
    }
}

fn spent(row: &Row<'_>) -> rusqlite::Result<Spent> {
    let number = |column: usize| row.get(column).map(|number: i64| u64::try_from(number).unwrap_or(0));
    Ok(Spent { cost: number(0)?, tokens: number(1)?, fuel: number(2)? })
}

/// Counts more in a month.
fn add(connection: &Connection, more: &Spent, month: &Month) -> rusqlite::Result<()> {
    let of_month = connection
        .prepare_cached("SELECT cost, tokens, fuel FROM spent_by_month WHERE month = ?1")?
        .query_row([month.as_str()], spent)
        .optional()?
        .unwrap_or_default();
    let [cost, tokens, fuel] = of_month.plus(more).columns();
    connection
        .prepare_cached("INSERT OR REPLACE INTO spent_by_month (month, cost, tokens, fuel) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![month.as_str(), cost, tokens, fuel])
        .map(drop)
}

impl Store {
    /// Counts what a run has used in all, in this month as far as it was not counted before.
    pub(super) fn count(&self, run: &RunId, used: &Spent, month: &Month) -> Result<(), StoreError> {
        self.with(|connection| {
            let counted = connection
                .prepare_cached("SELECT cost, tokens, fuel FROM spent_by_run WHERE run = ?1")?
                .query_row([run.as_str()], spent)
                .optional()?;
            let counted = counted.unwrap_or_default();
            let more = used.beyond(&counted);
            if more == Spent::default() {
                return Ok(());
            }
            let [cost, tokens, fuel] = counted.plus(&more).columns();
            connection
                .prepare_cached(
                    "INSERT OR REPLACE INTO spent_by_run (run, cost, tokens, fuel) VALUES (?1, ?2, ?3, ?4)",
                )?
                .execute(params![run.as_str(), cost, tokens, fuel])?;
            add(connection, &more, month)
        })
    }

    /// Runs of which something was counted, in the order of their names: so many after one of them.
    pub(super) fn counted_runs(&self, after: &str, limit: usize) -> Result<Vec<String>, StoreError> {
        self.read(|connection| {
            connection
                .prepare_cached("SELECT run FROM spent_by_run WHERE run > ?1 ORDER BY run LIMIT ?2")?
                .query_map(params![after, limit as i64], |row| row.get(0))?
                .collect()
        })
    }

    /// Forgets how much was counted of runs. What was used in a month stays.
    pub(super) fn forget_counted(&self, runs: &[RunId]) -> Result<(), StoreError> {
        self.with(|connection| {
            let mut statement = connection.prepare_cached("DELETE FROM spent_by_run WHERE run = ?1")?;
            runs.iter().try_for_each(|run| statement.execute([run.as_str()]).map(drop))
        })
    }

    /// Counts what was used for no run.
    pub(super) fn count_besides(&self, used: &Spent, month: &Month) -> Result<(), StoreError> {
        self.with(|connection| add(connection, used, month))
    }

    /// What was used in a month.
    pub(super) fn spent_in(&self, month: &Month) -> Result<Spent, StoreError> {
        self.read(|connection| {
            let found = connection
                .prepare_cached("SELECT cost, tokens, fuel FROM spent_by_month WHERE month = ?1")?
                .query_row([month.as_str()], spent)
                .optional()?;
            Ok(found.unwrap_or_default())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use hotcell_budget::{Cost, Fuel};

    use super::{Month, MonthBudget, Spent};
    use crate::store::Store;

    #[test]
    fn nothing_is_counted_twice_and_each_month_has_its_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("serve.db");
        let open = || Store::open(Some(&file)).expect("opened");
        let day = |day: u64| Month::of(SystemTime::UNIX_EPOCH + Duration::from_secs(day * 24 * 60 * 60));
        let used = |cost, tokens, fuel| Spent { cost, tokens, fuel };
        let (january, february) = (day(0), day(31));
        let (one, two) = ("one".to_owned().into(), "two".to_owned().into());
        for _ in 0..3 {
            open().count(&one, &used(5, 10, 100), &january).expect("counted");
        }
        open().count(&two, &used(1, 1, 1), &january).expect("counted");
        // It goes on in the next month.
        for _ in 0..3 {
            open().count(&one, &used(6, 15, 100), &february).expect("counted");
        }
        // What is read of a damaged run is less, and takes nothing back.
        open().count(&one, &used(0, 0, 0), &february).expect("counted");
        assert_eq!(open().counted_runs("", 9).expect("read"), ["one", "two"]);
        assert_eq!(open().counted_runs("one", 9).expect("read"), ["two"]);
        // What was used is used, whatever becomes of the run.
        open().forget_counted(&[two]).expect("forgotten");
        assert_eq!(open().counted_runs("", 1).expect("read"), ["one"]);
        assert_eq!(open().spent_in(&january).expect("read"), used(6, 11, 101));
        assert_eq!(open().spent_in(&february).expect("read"), used(1, 5, 0));
        assert_eq!(open().spent_in(&day(60)).expect("read"), Spent::default());
    }

    #[test]
    fn what_is_used_up_is_named() {
        let spent = Spent { cost: 2_000_000_000, tokens: 10, fuel: 7 };
        let word = |budget: MonthBudget| spent.exceeds(&budget).map(|(word, _)| word);
        let none = MonthBudget::default();
        assert_eq!(word(none), None);
        assert_eq!(word(MonthBudget { cost: Some(Cost::from_usd(2.0)), ..none }), Some("usd"));
        assert_eq!(word(MonthBudget { cost: Some(Cost::from_usd(2.01)), tokens: Some(11), ..none }), None);
        assert_eq!(word(MonthBudget { tokens: Some(10), ..none }), Some("tokens"));
        assert_eq!(word(MonthBudget { fuel: Some(Fuel(0)), ..none }), Some("fuel"));
    }
}
