//! How many runs there are, by how they stand, and what waits for answers.

use std::path::{Path, PathBuf};

use rusqlite::params_from_iter;

use super::Shared;
use super::query::Alive;
use crate::projection::RunStatus;
use crate::store::{Census, JournalError};

impl Shared {
    /// Indices and the entries of runs that wait are read, and nothing else.
    pub(super) fn census(&self) -> Result<Census, JournalError> {
        let mut alive = Alive { shared: self, known: std::collections::HashMap::new() };
        let (owned, values) = self.by_status(&[RunStatus::Running], &mut alive)?;
        let (counted, running, open_questions) = self.read(|connection| {
            // All at one moment.
            let reading = connection.unchecked_transaction()?;
            let counted: Vec<(String, i64)> = reading
                .prepare_cached("SELECT status, count(*) FROM runs GROUP BY status")?
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect::<rusqlite::Result<_>>()?;
            let running: i64 = reading
                .prepare(&format!("SELECT count(*) FROM runs WHERE {owned}"))?
                .query_row(params_from_iter(values), |row| row.get(0))?;
            // An answer has a row under which only one is taken, also when it has come and was not received yet.
            let open: i64 = reading
                .prepare_cached(
                    "SELECT (SELECT count(*) FROM runs JOIN entries ON entries.run = runs.number
                             WHERE runs.status = 'waiting' AND entries.kind = 'asked')
                          - (SELECT count(*) FROM runs JOIN mail ON mail.run = runs.number
                             WHERE runs.status = 'waiting' AND mail.kind IN ('answered', 'expired'))",
                )?
                .query_row([], |row| row.get(0))?;
            Ok((counted, running, open))
        })?;
        let number = |count: i64| u64::try_from(count).unwrap_or(0);
        let of = |wanted: RunStatus| {
            let found = counted.iter().find(|(status, _)| status == wanted.as_str());
            found.map_or(0, |(_, count)| number(*count))
        };
        let runs = RunStatus::ALL.map(|status| match status {
            RunStatus::Running => (status, number(running)),
            // What no living process has.
            RunStatus::Interrupted => (status, of(RunStatus::Running).saturating_sub(number(running)) + of(status)),
            settled => (settled, of(settled)),
        });
        Ok(Census { runs: runs.to_vec(), open_questions: number(open_questions), bytes: Some(size(&self.path)) })
    }
}

/// The bytes of the file, and of what is to be put into it.
fn size(path: &Path) -> u64 {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    [path.to_owned(), PathBuf::from(log)].iter().filter_map(|file| Some(file.metadata().ok()?.len())).sum()
}
