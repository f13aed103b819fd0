//! Addresses that are told what becomes of tasks.

use hotcell_runtime::RunId;
use rusqlite::{OptionalExtension as _, Row, params};

use crate::store::{Store, StoreError};

/// An address that is told what becomes of a task.
pub(super) struct Kept {
    /// Its name among those of its task
    pub(super) id: String,
    /// How it is reached, as JSON
    pub(super) config: String,
    /// How many entries of the run it was told of
    pub(super) told: u64,
}

fn kept(row: &Row<'_>) -> rusqlite::Result<Kept> {
    let told: i64 = row.get(2)?;
    Ok(Kept { id: row.get(0)?, config: row.get(1)?, told: u64::try_from(told).unwrap_or(0) })
}

impl Store {
    /// Keeps an address, in the place of one of the same name.
    pub(super) fn keep_push(&self, run: &RunId, kept: &Kept) -> Result<(), StoreError> {
        self.with(|connection| {
            connection
                .prepare_cached(
                    "INSERT INTO a2a_push (run, id, config, told) VALUES (?1, ?2, ?3, ?4)
                     ON CONFLICT (run, id) DO UPDATE SET config = excluded.config, told = excluded.told",
                )?
                .execute(params![run.as_str(), kept.id, kept.config, kept.told as i64])
                .map(drop)
        })
    }

    /// An address of a task.
    pub(super) fn push_of(&self, run: &RunId, id: &str) -> Result<Option<Kept>, StoreError> {
        self.read(|connection| {
            connection
                .prepare_cached("SELECT id, config, told FROM a2a_push WHERE run = ?1 AND id = ?2")?
                .query_row([run.as_str(), id], kept)
                .optional()
        })
    }

    /// The addresses of a task, in the order in which they were given.
    pub(super) fn pushes_of(&self, run: &RunId) -> Result<Vec<Kept>, StoreError> {
        self.read(|connection| {
            connection
                .prepare_cached("SELECT id, config, told FROM a2a_push WHERE run = ?1 ORDER BY number")?
                .query_map([run.as_str()], kept)?
                .collect()
        })
    }

    /// Keeps of how many entries an address was told.
    pub(super) fn told_push(&self, run: &RunId, id: &str, told: u64) -> Result<(), StoreError> {
        self.with(|connection| {
            connection
                .prepare_cached("UPDATE a2a_push SET told = ?3 WHERE run = ?1 AND id = ?2")?
                .execute(params![run.as_str(), id, told as i64])
                .map(drop)
        })
    }

    /// Forgets an address, or all of a task. False if there is none.
    pub(super) fn forget_push(&self, run: &RunId, id: Option<&str>) -> Result<bool, StoreError> {
        self.with(|connection| {
            Ok(connection
                .prepare_cached("DELETE FROM a2a_push WHERE run = ?1 AND (?2 IS NULL OR id = ?2)")?
                .execute(params![run.as_str(), id])?
                > 0)
        })
    }

    /// The tasks of which somebody is told.
    pub(super) fn pushed_runs(&self) -> Result<Vec<String>, StoreError> {
        self.read(|connection| {
            connection.prepare_cached("SELECT DISTINCT run FROM a2a_push")?.query_map([], |row| row.get(0))?.collect()
        })
    }

    /// Of how many tasks somebody is told.
    pub(super) fn pushed_count(&self) -> Result<usize, StoreError> {
        let count = self.read(|connection| {
            connection
                .prepare_cached("SELECT count(DISTINCT run) FROM a2a_push")?
                .query_row([], |row| row.get::<_, i64>(0))
                .optional()
        })?;
        Ok(count.and_then(|count| usize::try_from(count).ok()).unwrap_or(0))
    }
}
