//! What is kept of schedules: those that were made over HTTP, up to when nothing is left to do, and what was begun.

use std::time::SystemTime;

use jiff::Timestamp;
use rusqlite::{OptionalExtension as _, Row, params};

use super::definition::{Body, Definition};
use crate::store::{Store, StoreError, microseconds, time};

/// Firings of a schedule that are kept.
const KEPT: i64 = 100;

/// A time of a schedule, and what came of it.
#[derive(Clone, Debug)]
pub(crate) struct Firing {
    pub(crate) due: Timestamp,
    /// When it was tried first
    pub(crate) at: SystemTime,
    pub(crate) run: Option<String>,
    /// Why nothing was begun
    pub(crate) reason: Option<String>,
}

fn definition(row: &Row<'_>) -> rusqlite::Result<Option<Definition>> {
    let (id, body): (String, String) = (row.get(0)?, row.get(1)?);
    let (created, updated) = (time(row.get(2)?), time(row.get(3)?));
    let body = serde_json::from_str::<Body>(&body).map_err(|error| error.to_string());
    let known = body.and_then(|body| Ok((body.times().map_err(|problem| problem.detail)?, body)));
    Ok(match known {
        Ok((times, body)) => Some(Definition { id, body, times, in_file: None, created, updated }),
        Err(reason) => {
            tracing::error!(target: "hotcell::serve", schedule = id, reason, "a schedule is not understood");
            None
        }
    })
}

fn firing(row: &Row<'_>) -> rusqlite::Result<Firing> {
    let due = Timestamp::from_microsecond(row.get(0)?).unwrap_or_default();
    Ok(Firing { due, at: time(row.get(1)?), run: row.get(2)?, reason: row.get(3)? })
}

impl Store {
    /// The schedules that were made over HTTP, in the order of their ids.
    pub(crate) fn schedules(&self) -> Result<Vec<Definition>, StoreError> {
        self.read(|connection| {
            let text = "SELECT id, body, created, updated FROM schedules ORDER BY id";
            let mut statement = connection.prepare_cached(text)?;
            let all: Vec<Option<Definition>> = statement.query_map([], definition)?.collect::<rusqlite::Result<_>>()?;
            Ok(all.into_iter().flatten().collect())
        })
    }

    /// The bytes of all schedules that were made over HTTP, but for one.
    pub(crate) fn schedule_bytes(&self, but_for: &str) -> Result<usize, StoreError> {
        let bytes: i64 = self.read(|connection| {
            connection
                .prepare_cached("SELECT coalesce(sum(octet_length(body)), 0) FROM schedules WHERE id <> ?1")?
                .query_row([but_for], |row| row.get(0))
        })?;
        Ok(usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    /// Keeps a schedule. `since` is up to when nothing is left to do of one that is new, or comes at other times now.
    pub(crate) fn keep_schedule(&self, id: &str, body: &Body, since: Option<Timestamp>) -> Result<(), StoreError> {
        let text = serde_json::to_string(body).unwrap_or_default();
        self.with(|connection| {
            let now = microseconds(SystemTime::now());
            connection
                .prepare_cached(
                    "INSERT INTO schedules (id, body, created, updated) VALUES (?1, ?2, ?3, ?3)
                     ON CONFLICT DO UPDATE SET body = ?2, updated = ?3",
                )?
                .execute(params![id, text, now])?;
            if let Some(since) = since {
                let text =
                    "INSERT INTO schedule_times (schedule, done) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET done = ?2";
                connection.prepare_cached(text)?.execute(params![id, since.as_microsecond()])?;
            }
            Ok(())
        })
    }

    /// Forgets a schedule. False if there is none.
    pub(crate) fn delete_schedule(&self, id: &str) -> Result<bool, StoreError> {
        self.with(|connection| {
            for table in ["schedule_times", "schedule_firings"] {
                connection.execute(&format!("DELETE FROM {table} WHERE schedule = ?1"), [id])?;
            }
            Ok(connection.execute("DELETE FROM schedules WHERE id = ?1", [id])? > 0)
        })
    }

    /// Up to when nothing is left to do of a schedule.
    pub(crate) fn schedule_done(&self, id: &str) -> Result<Option<Timestamp>, StoreError> {
        self.read(|connection| {
            let text = "SELECT done FROM schedule_times WHERE schedule = ?1";
            let done: Option<i64> = connection.prepare_cached(text)?.query_row([id], |row| row.get(0)).optional()?;
            Ok(done.and_then(|done| Timestamp::from_microsecond(done).ok()))
        })
    }

    /// Keeps up to when nothing is left to do of a schedule. A schedule that was changed since then begins later, and stays so: whoever
    /// did something at its time before need not know of the change.
    pub(crate) fn note_schedule(&self, id: &str, done: Timestamp) -> Result<(), StoreError> {
        self.with(|connection| {
            connection
                .prepare_cached(
                    "INSERT INTO schedule_times (schedule, done) VALUES (?1, ?2)
                     ON CONFLICT DO UPDATE SET done = max(done, excluded.done)",
                )?
                .execute(params![id, done.as_microsecond()])
                .map(drop)
        })
    }

    /// Notes that something is begun for a time now. Gives what was noted of it before, if anything was.
    pub(crate) fn fire_schedule(&self, id: &str, due: Timestamp) -> Result<Option<Firing>, StoreError> {
        self.with(|connection| {
            let (at, due) = (microseconds(SystemTime::now()), due.as_microsecond());
            let before = connection
                .prepare_cached("SELECT due, at, run, reason FROM schedule_firings WHERE schedule = ?1 AND due = ?2")?
                .query_row(params![id, due], firing)
                .optional()?;
            if before.is_some() {
                // What came of the try before says nothing of this one.
                let text = "UPDATE schedule_firings SET reason = NULL WHERE schedule = ?1 AND due = ?2";
                connection.prepare_cached(text)?.execute(params![id, due])?;
                return Ok(before);
            }
            let text = "INSERT INTO schedule_firings (schedule, due, at) VALUES (?1, ?2, ?3)";
            connection.prepare_cached(text)?.execute(params![id, due, at])?;
            connection
                .prepare_cached(
                    "DELETE FROM schedule_firings WHERE schedule = ?1 AND number <= (
                         SELECT max(number) - ?2 FROM schedule_firings WHERE schedule = ?1
                     ) AND (run IS NOT NULL OR reason IS NOT NULL)",
                )?
                .execute(params![id, KEPT])?;
            Ok(None)
        })
    }

    /// Keeps what came of a time.
    pub(crate) fn fired_schedule(&self, id: &str, due: Timestamp, came: Result<&str, &str>) -> Result<(), StoreError> {
        self.with(|connection| {
            connection
                .prepare_cached("UPDATE schedule_firings SET run = ?3, reason = ?4 WHERE schedule = ?1 AND due = ?2")?
                .execute(params![id, due.as_microsecond(), came.ok(), came.err()])?;
            Ok(())
        })
    }

    /// What came of the last times of a schedule, the newest first.
    pub(crate) fn schedule_firings(&self, id: &str, limit: usize) -> Result<Vec<Firing>, StoreError> {
        self.read(|connection| {
            let text =
                "SELECT due, at, run, reason FROM schedule_firings WHERE schedule = ?1 ORDER BY due DESC LIMIT ?2";
            connection.prepare_cached(text)?.query_map(params![id, limit as i64], firing)?.collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use crate::schedule::definition::Body;
    use crate::store::Store;

    #[test]
    fn what_was_done_before_a_change_does_not_take_the_change_back() {
        let store = Store::open(None).expect("opened");
        let at = |second: i64| Timestamp::from_second(second).expect("a time");
        let body =
            json!({ "agent_id": "echo", "cron": "0 * * * *", "zone": "UTC", "grace_seconds": 60, "enabled": true });
        let body: Body = serde_json::from_value(body).expect("a schedule");
        store.keep_schedule("s", &body, Some(at(0))).expect("kept");
        store.note_schedule("s", at(60)).expect("kept");
        assert_eq!(store.schedule_done("s").expect("read"), Some(at(60)));
        // It is changed while a run begins for an earlier time, of which that is said afterwards.
        store.keep_schedule("s", &body, Some(at(150))).expect("kept");
        store.note_schedule("s", at(120)).expect("kept");
        assert_eq!(store.schedule_done("s").expect("read"), Some(at(150)));
        // A clock that was wrong does not keep a schedule that is changed from coming.
        store.keep_schedule("s", &body, Some(at(90))).expect("kept");
        assert_eq!(store.schedule_done("s").expect("read"), Some(at(90)));
        store.keep_schedule("s", &body, None).expect("kept");
        assert_eq!(store.schedule_done("s").expect("read"), Some(at(90)));
    }
}
