//! The index of texts, by which runs are found.
//!
//! FTS5 writes what a transaction adds in a segment of its own, and merges segments later. By itself it does that after every 64
//! pages it wrote: 64 pages for each level that the index has, within one commit, for which every run waits. So it does not do it by
//! itself. A small merge goes with every few runs that begin, which comes to the same work.

use rusqlite::{Connection, params};

use super::rows::beginning;
use crate::entry::RunHeader;

/// How much of a text can be searched, in characters.
const SEARCHED: usize = 2000;
/// With which of the runs that begin a merge goes: every so many.
const EVERY: i64 = 8;
/// How many pages a merge writes at most. The longest texts need fewer in an index of millions of runs.
const PAGES: i64 = 64;

/// What can be searched of a run before anything came of it.
pub(super) fn searched(header: &RunHeader) -> String {
    with_outcome(beginning(&header.graph, SEARCHED), header.input())
}

/// The same with what came of it.
pub(super) fn with_outcome(mut searched: String, outcome: Option<&str>) -> String {
    if let Some(outcome) = outcome {
        searched.push('\n');
        searched.push_str(&beginning(outcome, SEARCHED));
    }
    searched
}

/// Makes a new run findable by this text. Nothing has to be taken out of the index for it.
pub(super) fn index_new_text(connection: &Connection, run: i64, text: &str) -> rusqlite::Result<()> {
    connection.prepare_cached("INSERT INTO texts (rowid, text) VALUES (?1, ?2)")?.execute(params![run, text])?;
    if run % EVERY == 0 { merge(connection) } else { Ok(()) }
}

/// Makes a run findable by this text from now on, in place of another one.
pub(super) fn index_text(connection: &Connection, run: i64, text: &str) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT OR REPLACE INTO texts (rowid, text) VALUES (?1, ?2)")?
        .execute(params![run, text])?;
    Ok(())
}

/// Merges a little of what was added to the index, or taken out of it.
pub(super) fn merge(connection: &Connection) -> rusqlite::Result<()> {
    let merges_by_itself: bool = connection
        .prepare_cached("SELECT NOT EXISTS (SELECT 1 FROM texts_config WHERE k = 'automerge' AND v = 0)")?
        .query_row([], |row| row.get(0))?;
    if merges_by_itself {
        // The file keeps that.
        connection.execute("INSERT INTO texts (texts, rank) VALUES ('automerge', 0)", [])?;
    }
    connection.prepare_cached("INSERT INTO texts (texts, rank) VALUES ('merge', ?1)")?.execute([PAGES])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::super::opening;
    use super::{PAGES, index_new_text, index_text};

    /// How many pages are in the log.
    fn pages(connection: &Connection) -> i64 {
        connection.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| row.get(1)).expect("read")
    }

    fn text(run: i64, outcome: &str) -> String {
        let mut random = fastrand::Rng::with_seed(run.unsigned_abs());
        let words = (0..300).map(|_| format!("w{:x}", random.u32(..1_000_000)));
        words.chain([outcome.to_owned()]).collect::<Vec<_>>().join(" ")
    }

    /// If FTS5 merges by itself, one of these commits writes more than two hundred pages, and with more runs there are worse.
    #[test]
    fn no_commit_merges_much_of_the_index() {
        let folder = tempfile::tempdir().expect("a folder");
        let (connection, _) = opening::open(&folder.path().join("runs.db")).expect("opened");
        connection.pragma_update(None, "wal_autocheckpoint", 0).expect("set");
        let (runs, mut most) = (600, 0);
        for run in 1..=runs {
            let before = pages(&connection);
            connection.execute_batch("BEGIN IMMEDIATE").expect("begun");
            index_new_text(&connection, run, &text(run, "")).expect("written");
            if run > 2 {
                index_text(&connection, run - 2, &text(run - 2, "outcome")).expect("written");
            }
            connection.execute_batch("COMMIT").expect("committed");
            most = most.max(pages(&connection) - before);
        }
        assert!(most < PAGES + 64, "{most}");
        let find = |word: &str| -> i64 {
            let found =
                connection.query_row("SELECT count(*) FROM texts WHERE texts MATCH ?1", [word], |row| row.get(0));
            found.expect("read")
        };
        assert_eq!(find("outcome"), runs - 2);
        let last = text(runs, "");
        assert!(last.split(' ').filter(|word| !word.is_empty()).all(|word| find(word) > 0));
    }
}
