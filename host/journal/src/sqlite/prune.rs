//! Removing runs, and giving their space back.

use std::collections::HashMap;

use rusqlite::{Connection, TransactionBehavior, params_from_iter};

use super::query::Alive;
use super::{Shared, artefacts};
use crate::projection::RunStatus;
use crate::store::{JournalError, PruneReport, RunQuery};

/// How many runs are removed in one transaction: others want to write, too.
const AT_ONCE: usize = 500;

impl Shared {
    pub(super) fn prune(&self, query: &RunQuery) -> Result<PruneReport, JournalError> {
        let mut query = RunQuery { after: None, limit: 0, ..query.clone() };
        query.statuses.retain(|status| status.is_final());
        if query.statuses.is_empty() {
            query.statuses = RunStatus::ALL.into_iter().filter(|status| status.is_final()).collect();
        }
        let mut alive = Alive { shared: self, known: HashMap::new() };
        let Some((conditions, values)) = self.filters(&query, &mut alive)? else { return Ok(PruneReport::default()) };
        let source = if query.text.is_some() { "texts JOIN runs ON runs.number = texts.rowid" } else { "runs" };
        let connection = self.connection();
        let before = size(&connection).map_err(self.error("read"))?;
        let chosen = (|| -> rusqlite::Result<Vec<i64>> {
            connection.execute_batch("CREATE TEMP TABLE IF NOT EXISTS chosen (number INTEGER PRIMARY KEY); DELETE FROM chosen")?;
            connection.execute(
                &format!("INSERT INTO chosen SELECT number FROM {source}{conditions}"),
                params_from_iter(values),
            )?;
            // What a run that stays goes on from has to stay, too, and what that one goes on from.
            connection.execute(
                "WITH RECURSIVE needed (id) AS (
                     SELECT follows FROM runs WHERE follows IS NOT NULL AND number NOT IN (SELECT number FROM chosen)
                     UNION SELECT runs.follows FROM runs JOIN needed ON runs.id = needed.id WHERE runs.follows IS NOT NULL
                 )
                 DELETE FROM chosen WHERE number IN (SELECT number FROM runs JOIN needed ON runs.id = needed.id)",
                [],
            )?;
            connection.prepare("SELECT number FROM chosen ORDER BY number")?.query_map([], |row| row.get(0))?.collect()
        })()
        .map_err(self.error("read"))?;
        drop(connection);
        for part in chosen.chunks(AT_ONCE) {
            let mut connection = self.connection();
            let mut remove = || -> rusqlite::Result<()> {
                let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
                for run in part {
                    for text in [
                        "DELETE FROM entries WHERE run = ?1",
                        "DELETE FROM calls WHERE run = ?1",
                        "DELETE FROM mail WHERE run = ?1",
                        "DELETE FROM timers WHERE run = ?1",
                        "DELETE FROM waits WHERE run = ?1",
                        "DELETE FROM former WHERE run = ?1",
                        "DELETE FROM texts WHERE rowid = ?1",
                        "DELETE FROM runs WHERE number = ?1",
                    ] {
                        transaction.prepare_cached(text)?.execute([run])?;
                    }
                }
                transaction.commit()
            };
            remove().map_err(self.error("written"))?;
        }
        let mut connection = self.connection();
        let sweep = self.begin(&mut connection)?;
        artefacts::sweep(&sweep).and_then(|()| sweep.commit()).map_err(self.error("written"))?;
        let after = (|| -> rusqlite::Result<i64> {
            // It gives back a page a step.
            let mut freed = connection.prepare("PRAGMA incremental_vacuum")?;
            let mut rows = freed.query([])?;
            while rows.next()?.is_some() {}
            drop(rows);
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
            size(&connection)
        })()
        .map_err(self.error("written"))?;
        Ok(PruneReport { runs: chosen.len() as u64, bytes: u64::try_from(before - after).unwrap_or(0) })
    }
}

/// The size of the file in bytes.
fn size(connection: &Connection) -> rusqlite::Result<i64> {
    let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
    let page: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    Ok(pages * page)
}
