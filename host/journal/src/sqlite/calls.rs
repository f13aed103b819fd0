//! Recordings of calls in the file.

use rusqlite::{Connection, Row, params};

use crate::calls::{RecordedCall, StoredCall};
use crate::ids::EntryPath;

/// Adds recordings of a run after those that are there.
pub(super) fn insert(connection: &Connection, run: i64, calls: &[RecordedCall]) -> rusqlite::Result<()> {
    for RecordedCall { place, name, body } in calls {
        connection
            .prepare_cached(
                "INSERT INTO calls (run, number, place, name, body, sum)
                 VALUES (?1, (SELECT coalesce(max(number), 0) + 1 FROM calls WHERE run = ?1), ?2, ?3, ?4, ?5)",
            )?
            .execute(params![run, place.as_str(), name, body, sum(place.as_str(), name, body)])?;
    }
    Ok(())
}

/// Recordings of a run whose number is higher than `after`.
pub(super) fn read(connection: &Connection, run: i64, after: u64, limit: usize) -> rusqlite::Result<Vec<StoredCall>> {
    let mut statement = connection.prepare_cached(
        "SELECT number, place, name, body, sum FROM calls WHERE run = ?1 AND number > ?2 ORDER BY number LIMIT ?3",
    )?;
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    statement.query_map(params![run, after, limit], call)?.collect()
}

fn call(row: &Row<'_>) -> rusqlite::Result<StoredCall> {
    let number: i64 = row.get(0)?;
    // What is no text any more is shown as far as it can be: its checksum is wrong then.
    let text = |column| row.get_ref(column).map(|value| value.as_str().unwrap_or_default().to_owned());
    let (place, name) = (text(1)?, text(2)?);
    let body = match (row.get::<_, Vec<u8>>(3), row.get::<_, i64>(4)) {
        (Ok(body), Ok(stored)) if sum(&place, &name, &body) == stored => Ok(body),
        (Ok(_), Ok(_)) => Err("its checksum is wrong: the file was changed or damaged after it was written".to_owned()),
        (Err(error), _) | (_, Err(error)) => Err(error.to_string()),
    };
    Ok(StoredCall { number: u64::try_from(number).unwrap_or(0), place: EntryPath::from(place), name, body })
}

fn sum(place: &str, name: &str, body: &[u8]) -> i64 {
    let mut hasher = blake3::Hasher::new();
    for part in [place.as_bytes(), name.as_bytes(), body] {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    let mut head = [0; 8];
    head.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    i64::from_le_bytes(head)
}
