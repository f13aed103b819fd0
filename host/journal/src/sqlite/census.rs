//! How many runs there are, by how they stand, and what waits for answers.

use std::path::{Path, PathBuf};

use rusqlite::params_from_iter;

use super::Shared;
use super::query::Alive;
use crate::projection::RunStatus;
use crate::store::{Census, JournalError};

/// How many questions of runs that wait have no answer. An answer has a row under which only one is taken, also when it has come and was
/// not received yet. (A cross join is done in the order in which it is written: of each run that waits, what belongs to it.)
const OPEN: &str = "SELECT (SELECT count(*) FROM runs CROSS JOIN entries ON entries.run = runs.number
                            WHERE runs.status = 'waiting' AND entries.kind = 'asked')
                         - (SELECT count(*) FROM runs CROSS JOIN mail ON mail.run = runs.number
                            WHERE runs.status = 'waiting' AND mail.kind IN ('answered', 'expired'))";

impl Shared {
    /// Indices and what was sent to runs that wait are read, and nothing else.
    pub(super) fn census(&self) -> Result<Census, JournalError> {
        let mut alive = Alive { shared: self, known: std::collections::HashMap::new() };
        let (owned, values) = self.by_status("status", &[RunStatus::Running], &mut alive)?;
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
            let open: i64 = reading.prepare_cached(OPEN)?.query_row([], |row| row.get(0))?;
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

#[cfg(test)]
mod tests {
    use super::super::SqliteStore;
    use super::OPEN;

    /// A hundred thousand runs may wait, each after thousands of entries.
    #[test]
    fn no_entry_of_a_run_that_waits_is_read_to_count_its_questions() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = SqliteStore::open(&folder.path().join("runs.db")).expect("opened");
        let steps = store.shared.plan(OPEN);
        let of_entries = steps.iter().filter(|step| step.contains(" entries ")).collect::<Vec<_>>();
        assert!(
            matches!(of_entries[..], [step] if step.starts_with("SEARCH entries USING COVERING INDEX entries_of_questions")),
            "{steps:?}"
        );
    }
}
