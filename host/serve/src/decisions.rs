//! Who answered what: the journal has the answer and its time, and the server's file has who gave it.

use std::time::SystemTime;

use rusqlite::params;

use crate::store::{Store, StoreError, microseconds};

/// Decisions that are kept; the oldest make place for new ones.
const MOST: i64 = 1_000_000;

/// An answer that was given.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Decision {
    /// Which of all decisions it is
    pub(crate) number: i64,
    pub(crate) run: String,
    /// The question, among those of its run
    pub(crate) question: String,
    /// Where the agent of the run was loaded from
    pub(crate) source: String,
    /// The key, or the token's issuer and subject, with which it came; none where a provider of chat or a signature vouched for it
    pub(crate) caller: Option<String>,
    /// In whose name it was given, if that was said
    pub(crate) operator: Option<String>,
    /// The group for which they gave it, where the question does not name them
    pub(crate) group: Option<String>,
}

/// Who gives an answer, as in [`Decision`].
#[derive(Clone, Copy)]
pub(crate) struct Given<'a> {
    pub(crate) caller: Option<&'a str>,
    pub(crate) operator: Option<&'a str>,
    pub(crate) group: Option<&'a str>,
}

impl Store {
    /// Notes an answer that is about to be given. Gives its number.
    pub(crate) fn decide(
        &self,
        (run, question): (&str, &str),
        source: &str,
        Given { caller, operator, group }: Given<'_>,
    ) -> Result<i64, StoreError> {
        self.with(|connection| {
            connection
                .prepare_cached(
                    "INSERT INTO decisions (run, question, at, source, caller, operator, of_group)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                )?
                .execute(params![run, question, microseconds(SystemTime::now()), source, caller, operator, group])?;
            let number = connection.last_insert_rowid();
            connection.prepare_cached("DELETE FROM decisions WHERE number <= ?1")?.execute([number - MOST])?;
            Ok(number)
        })
    }

    /// Forgets an answer that was not taken.
    pub(crate) fn forget_decision(&self, number: i64) -> Result<(), StoreError> {
        self.with(|connection| {
            connection.prepare_cached("DELETE FROM decisions WHERE number = ?1")?.execute([number]).map(drop)
        })
    }

    /// Forgets who answered what a run asked that is removed.
    pub(crate) fn forget_decisions_of(&self, run: &str) -> Result<(), StoreError> {
        self.with(|connection| {
            connection.prepare_cached("DELETE FROM decisions WHERE run = ?1")?.execute([run]).map(drop)
        })
    }

    /// Decisions, the newest first: those of a run, or all, from before one of them. Of several about one question, which a server leaves
    /// that is killed in between, the last one counts.
    pub(crate) fn decisions(&self, run: Option<&str>, before: i64, limit: usize) -> Result<Vec<Decision>, StoreError> {
        self.read(|connection| {
            let of_run = if run.is_some() { "one.run = ?1" } else { "?1 IS NULL" };
            connection
                .prepare_cached(&format!(
                    "SELECT number, run, question, source, caller, operator, of_group FROM decisions AS one
                     WHERE {of_run} AND number < ?2 AND NOT EXISTS (
                         SELECT 1 FROM decisions AS later
                         WHERE later.run = one.run AND later.question = one.question AND later.number > one.number
                     ) ORDER BY number DESC LIMIT ?3"
                ))?
                .query_map(params![run, before, i64::try_from(limit).unwrap_or(i64::MAX)], |row| {
                    Ok(Decision {
                        number: row.get(0)?,
                        run: row.get(1)?,
                        question: row.get(2)?,
                        source: row.get(3)?,
                        caller: row.get(4)?,
                        operator: row.get(5)?,
                        group: row.get(6)?,
                    })
                })?
                .collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_are_found_the_newest_first_and_forgotten_with_their_run() {
        let store = Store::open(None).expect("opened");
        let decide = |run: &str, question: &str, operator: Option<&str>| {
            let group = operator.map(|_| "finance");
            let given = Given { caller: Some("key"), operator, group };
            store.decide((run, question), "agent.yaml", given).expect("kept")
        };
        let first = decide("a", "1:0", None);
        decide("b", "1:0", Some("ada"));
        let last = decide("a", "2:0", None);
        let found = |run: Option<&str>, before: i64, limit: usize| -> Vec<String> {
            let found = store.decisions(run, before, limit).expect("read");
            found.into_iter().map(|one| format!("{} {}", one.run, one.question)).collect()
        };
        assert_eq!(found(None, i64::MAX, 9), ["a 2:0", "b 1:0", "a 1:0"]);
        assert_eq!(found(None, last, 1), ["b 1:0"]);
        assert_eq!(found(Some("a"), i64::MAX, 9), ["a 2:0", "a 1:0"]);
        decide("a", "2:0", None);
        assert_eq!(found(Some("a"), i64::MAX, 9), ["a 2:0", "a 1:0"], "the last one counts");
        store.forget_decision(first).expect("forgotten");
        assert_eq!(found(Some("a"), i64::MAX, 9), ["a 2:0"]);
        store.forget_decisions_of("a").expect("forgotten");
        let left = store.decisions(None, i64::MAX, 9).expect("read");
        assert_eq!((left.len(), left[0].caller.as_deref(), left[0].operator.as_deref()), (1, Some("key"), Some("ada")));
        assert_eq!(left[0].group.as_deref(), Some("finance"));
    }
}
