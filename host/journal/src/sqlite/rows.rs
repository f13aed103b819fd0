//! Rows as entries and runs, and back.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, ErrorCode, OptionalExtension, Row, Rows, params};

use super::in_place::in_place;
use crate::encode::{decode, encode};
use crate::entry::{Entry, Fact};
use crate::ids::{EntryPath, RunId};
use crate::projection::RunStatus;
use crate::store::{History, JournalError, NumberedEntry, RunSummary};

/// How much of a result is kept in the index, in characters.
pub(super) const OUTCOME: usize = 200;

/// Bytes of entries that are taken apart where they are asked for, which takes some milliseconds. An entry may have megabytes: other tasks of a thread do
/// not wait until further ones are, and a page ends there.
const SHORT_BYTES: usize = 1 << 20;

/// An entry as it is stored.
pub(super) struct EntryRow {
    pub(super) number: u64,
    pub(super) place: EntryPath,
    pub(super) kind: &'static str,
    pub(super) body: String,
    pub(super) at: i64,
    pub(super) worked: i64,
    pub(super) sum: i64,
    /// What it changes in the index
    pub(super) change: Option<Change>,
    /// The question that it answers
    pub(super) answers: Option<String>,
    /// The revision that it moves the run to
    pub(super) revises: Option<String>,
    /// The timer that it sets, with the time, or takes away
    pub(super) timer: Option<(String, Option<i64>)>,
}

impl EntryRow {
    /// Whether nothing else is written for it.
    pub(super) fn stands_alone(&self) -> bool {
        self.change.is_none() && self.answers.is_none() && self.revises.is_none() && self.timer.is_none()
    }
}

/// What an entry changes in the index of runs.
pub(super) struct Change {
    pub(super) status: RunStatus,
    pub(super) outcome: Option<String>,
    pub(super) rests: bool,
    /// Whether the run has ended and may have timers, for which nobody waits any more
    drops_timers: bool,
}

/// The end of the sequence of a run's entries: each entry's checksum covers all before it.
#[derive(Clone, Copy)]
pub(super) struct Tail {
    pub(super) number: u64,
    sum: i64,
    /// Whether a timer may have been set: most runs have none, and need not be looked for among those of all others
    may_have_timers: bool,
}

impl Tail {
    /// The beginning of a run.
    pub(super) fn new(run: &RunId) -> Self {
        Tail { number: 0, sum: head(blake3::hash(run.as_str().as_bytes())), may_have_timers: false }
    }

    /// The end of a run behind an entry that was read. What timers it has is not known.
    fn read(number: u64, sum: i64) -> Self {
        Tail { number, sum, may_have_timers: true }
    }

    /// The row of the next entry.
    pub(super) fn next(&mut self, entry: Entry, worked: Duration, at: SystemTime) -> EntryRow {
        let (kind, body) = encode(&entry.fact);
        let number = self.number + 1;
        let (at, worked) = (microseconds(at), i64::try_from(worked.as_micros()).unwrap_or(i64::MAX));
        let sum = sum(self.sum, number, entry.place.as_str(), kind, &body, at, worked);
        let timer = entry.fact.timer().map(|(name, at)| (name, at.map(microseconds)));
        let may_have_timers = self.may_have_timers || matches!(timer, Some((_, Some(_))));
        *self = Tail { number, sum, may_have_timers };
        let change = entry.fact.status().map(|status| Change {
            status,
            outcome: entry.fact.outcome().map(|outcome| beginning(outcome, OUTCOME)),
            rests: entry.fact.is_rest(),
            drops_timers: may_have_timers && status.is_final(),
        });
        let answers = answers(&entry);
        let revises = match entry.fact {
            Fact::Revised { digest } => Some(digest),
            _ => None,
        };
        EntryRow { number, place: entry.place, kind, body, at, worked, sum, change, answers, revises, timer }
    }
}

/// The subject under which only one answer is taken.
pub(super) fn answers(entry: &Entry) -> Option<String> {
    match entry.fact {
        Fact::Answered { number, .. } | Fact::Expired { number } => Some(format!("{}:{number}", entry.place)),
        _ => None,
    }
}

fn head(digest: blake3::Hash) -> i64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&digest.as_bytes()[..8]);
    i64::from_le_bytes(bytes)
}

fn sum(before: i64, number: u64, place: &str, kind: &str, body: &str, at: i64, worked: i64) -> i64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&before.to_le_bytes()).update(&number.to_le_bytes());
    hasher.update(&at.to_le_bytes()).update(&worked.to_le_bytes());
    for text in [place, kind, body] {
        hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
    }
    head(hasher.finalize())
}

/// Whether a part of the file is damaged that would have to be read.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt)
}

/// Everything of a run, up to the first entry that is not what was written.
pub(super) fn history(connection: &Connection, number: i64, run: &RunId) -> rusqlite::Result<(History, Tail)> {
    read_on(connection, number, run, (History::default(), Tail::new(run)))
}

/// The same of a run whose beginning was `known` already, and need not be read again. If it is another run by now, it is.
pub(super) fn rest_of(
    connection: &Connection,
    number: i64,
    run: &RunId,
    known: (History, Tail),
) -> rusqlite::Result<(History, Tail)> {
    let end = i64::try_from(known.1.number).unwrap_or(i64::MAX);
    match end > 0 && sum_of(connection, number, end)? == Some(known.1.sum) {
        true => read_on(connection, number, run, known),
        false => history(connection, number, run),
    }
}

fn read_on(
    connection: &Connection,
    number: i64,
    run: &RunId,
    known: (History, Tail),
) -> rusqlite::Result<(History, Tail)> {
    let (mut history, mut tail) = known;
    if history.damage.is_some() {
        return Ok((history, tail));
    }
    let mut statement = connection.prepare_cached(
        "SELECT number, place, kind, body, at, worked, sum FROM entries WHERE run = ?1 AND number > ?2 ORDER BY number",
    )?;
    // A number that no entry has is told, too.
    let after = if tail.number == 0 { i64::MIN } else { i64::try_from(tail.number).unwrap_or(i64::MAX) };
    let mut rows = statement.query((number, after))?;
    let mut bytes = 0;
    while let Some(read) = read_next(&mut rows, &tail, &mut bytes)? {
        match read {
            Ok(Read { entry, worked, tail: next, .. }) => {
                tail = next;
                history.worked = worked;
                history.entries.push(entry);
            }
            Err(cause) => {
                let sequence = tail.number + 1;
                history.damage = Some(JournalError::Damaged { run: run.clone(), sequence, cause });
                return Ok((history, tail));
            }
        }
    }
    Ok((history, tail))
}

/// The checksum of an entry, if there is one of that number.
fn sum_of(connection: &Connection, run: i64, number: i64) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT sum FROM entries WHERE run = ?1 AND number = ?2")?
        .query_row((run, number), |row| row.get(0))
        .optional()
}

/// An entry that is what was written.
struct Read {
    entry: Entry,
    at: SystemTime,
    worked: Duration,
    /// The end of the sequence behind it
    tail: Tail,
}

/// The next entry of a run, or what is wrong with it or with the part of the file that has it. `bytes` is how many were taken apart so far.
fn read_next(rows: &mut Rows<'_>, tail: &Tail, bytes: &mut usize) -> rusqlite::Result<Option<Result<Read, String>>> {
    match rows.next() {
        Ok(None) => Ok(None),
        Ok(Some(row)) => {
            *bytes += row.get_ref(3).ok().and_then(|body| body.as_bytes().ok()).map_or(0, <[u8]>::len);
            Ok(Some(if *bytes > SHORT_BYTES { in_place(|| entry(row, tail)) } else { entry(row, tail) }))
        }
        Err(error) if is_damage(&error) => Ok(Some(Err(format!("it cannot be read: {error}")))),
        Err(error) => Err(error),
    }
}

/// Entries of a run after the one of number `after`, and whether nothing comes after them. Each is held against the checksum of the one
/// before it.
pub(super) fn page(
    connection: &Connection,
    number: i64,
    run: &RunId,
    after: u64,
    limit: usize,
) -> rusqlite::Result<Result<(Vec<NumberedEntry>, bool), JournalError>> {
    let Ok(begin) = i64::try_from(after) else { return Ok(Ok((Vec::new(), true))) };
    let mut tail = Tail::new(run);
    if after > 0 {
        let Some(sum) = sum_of(connection, number, begin)? else { return Ok(Ok((Vec::new(), true))) };
        tail = Tail::read(after, sum);
    }
    let mut statement = connection.prepare_cached(
        "SELECT number, place, kind, body, at, worked, sum FROM entries WHERE run = ?1 AND number > ?2
         ORDER BY number LIMIT ?3",
    )?;
    let mut rows = statement.query((number, begin, i64::try_from(limit).unwrap_or(i64::MAX)))?;
    let mut entries = Vec::new();
    let mut bytes = 0;
    while let Some(read) = read_next(&mut rows, &tail, &mut bytes)? {
        match read {
            Ok(Read { entry, at, tail: next, .. }) => {
                tail = next;
                entries.push(NumberedEntry { number: tail.number, at, entry });
                if bytes > SHORT_BYTES {
                    return Ok(Ok((entries, false)));
                }
            }
            Err(cause) => {
                return Ok(Err(JournalError::Damaged { run: run.clone(), sequence: tail.number + 1, cause }));
            }
        }
    }
    let is_last = entries.len() < limit;
    Ok(Ok((entries, is_last)))
}

/// What of a row can be read, or what is wrong with it.
fn entry(row: &Row<'_>, tail: &Tail) -> Result<Read, String> {
    let read = |error: rusqlite::Error| error.to_string();
    let number: i64 = row.get(0).map_err(read)?;
    let number = u64::try_from(number).map_err(|_| "its number is negative".to_owned())?;
    if number != tail.number + 1 {
        return Err(format!("it is missing; the next one there is has number {number}"));
    }
    let text = |column| row.get_ref(column).map_err(read)?.as_str().map_err(|error| error.to_string());
    let (place, kind, body) = (text(1)?, text(2)?, text(3)?);
    let (at, worked, stored): (i64, i64, i64) =
        (row.get(4).map_err(read)?, row.get(5).map_err(read)?, row.get(6).map_err(read)?);
    let sum = sum(tail.sum, number, place, kind, body, at, worked);
    if sum != stored {
        return Err("its checksum is wrong: the file was changed or damaged after it was written".to_owned());
    }
    let entry = Entry { place: EntryPath::from(place.to_owned()), fact: decode(kind, body)? };
    let worked = Duration::from_micros(u64::try_from(worked).unwrap_or(0));
    Ok(Read { entry, at: time(at), worked, tail: Tail::read(number, sum) })
}

/// What was sent to a run and not received yet.
pub(super) fn unread(connection: &Connection, number: i64) -> rusqlite::Result<Vec<Entry>> {
    let mut statement = connection
        .prepare_cached("SELECT place, kind, body FROM mail WHERE run = ?1 AND body IS NOT NULL ORDER BY subject")?;
    readable(statement.query([number])?)
}

/// The entries about the questions of one place. It says by which index they are found, so that no other entry is looked at.
const OF_QUESTIONS: &str = "SELECT place, kind, body FROM entries INDEXED BY entries_of_questions
     WHERE run = ?1 AND place = ?2 AND (kind = 'asked' OR kind = 'answered' OR kind = 'expired')";

/// What of a run is about the questions of one place, in any order.
pub(super) fn of_questions(connection: &Connection, number: i64, place: &EntryPath) -> rusqlite::Result<Vec<Entry>> {
    readable(connection.prepare_cached(OF_QUESTIONS)?.query((number, place.as_str()))?)
}

/// Rows with a place, a kind and a body, as far as they can be read.
fn readable(mut rows: Rows<'_>) -> rusqlite::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        let (place, kind, body): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        match decode(&kind, &body) {
            Ok(fact) => entries.push(Entry { place: EntryPath::from(place), fact }),
            Err(cause) => tracing::warn!(cause, "a message in the journal cannot be read and is left out"),
        }
    }
    Ok(entries)
}

/// The end of a run, without what comes before it, and how long it was worked on up to then.
pub(super) fn end(connection: &Connection, number: i64, run: &RunId) -> rusqlite::Result<(Tail, Duration)> {
    let last: Option<(i64, i64, i64)> = connection
        .prepare_cached("SELECT number, worked, sum FROM entries WHERE run = ?1 ORDER BY number DESC LIMIT 1")?
        .query_row([number], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let Some((last, worked, sum)) = last else { return Ok((Tail::new(run), Duration::ZERO)) };
    let count = |count: i64| u64::try_from(count).unwrap_or(0);
    Ok((Tail::read(count(last), sum), Duration::from_micros(count(worked))))
}

/// Stores what is sent to a run. `false` if the question has an answer.
pub(super) fn send(connection: &Connection, number: i64, entry: &Entry) -> rusqlite::Result<bool> {
    let (kind, body) = encode(&entry.fact);
    let subject = match entry.fact {
        // What happens again and again in the life of a run.
        Fact::PauseAsked | Fact::Paused => format!("{kind} {}", microseconds(SystemTime::now())),
        _ => answers(entry).unwrap_or_else(|| kind.to_owned()),
    };
    let sent = connection
        .prepare_cached("INSERT OR IGNORE INTO mail (run, subject, place, kind, body) VALUES (?1, ?2, ?3, ?4, ?5)")?
        .execute(params![number, subject, entry.place.as_str(), kind, body])?;
    Ok(sent == 1)
}

/// Moves what was sent to a run to its entries, and gives it.
pub(super) fn receive(
    connection: &Connection,
    number: i64,
    tail: &mut Tail,
    worked: Duration,
    at: SystemTime,
) -> rusqlite::Result<Vec<Entry>> {
    let mail = unread(connection, number)?;
    for entry in &mail {
        insert(connection, number, &tail.next(entry.clone(), worked, at))?;
    }
    if !mail.is_empty() {
        connection
            .prepare_cached("UPDATE mail SET body = NULL WHERE run = ?1 AND body IS NOT NULL")?
            .execute([number])?;
    }
    Ok(mail)
}

/// Adds a row of entries and what follows from it in the index. No entry may be missing before it, and there may be none of its number:
/// that is a violation of a constraint.
pub(super) fn insert(connection: &Connection, run: i64, row: &EntryRow) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            // Without an entry before it, it has no number, and must have one. (A condition of a `SELECT` that is inserted would say it
            // more plainly, and SQLite would make a table of its own for each row, since it reads what it writes to.)
            "INSERT OR FAIL INTO entries (run, number, place, kind, body, at, worked, sum) VALUES (
                 ?1,
                 CASE WHEN ?2 = 1 OR EXISTS (SELECT 1 FROM entries WHERE run = ?1 AND number = ?2 - 1) THEN ?2 END,
                 ?3, ?4, ?5, ?6, ?7, ?8
             )",
        )?
        .execute(params![
            run,
            row.number as i64,
            row.place.as_str(),
            row.kind,
            row.body,
            row.at,
            row.worked,
            row.sum
        ])?;
    match &row.timer {
        Some((node, Some(at))) => {
            connection
                .prepare_cached("INSERT OR REPLACE INTO timers (run, place, node, at) VALUES (?1, ?2, ?3, ?4)")?
                .execute(params![run, row.place.as_str(), node, at])?;
        }
        Some((node, None)) => {
            connection
                .prepare_cached("DELETE FROM timers WHERE run = ?1 AND place = ?2 AND node = ?3")?
                .execute(params![run, row.place.as_str(), node])?;
        }
        None => {}
    }
    if let Some(Change { status, outcome, rests, drops_timers }) = &row.change {
        if *drops_timers {
            connection.prepare_cached("DELETE FROM timers WHERE run = ?1")?.execute([run])?;
        }
        connection
            .prepare_cached(
                "UPDATE runs SET status = ?2, updated = ?3, outcome = ?4, owner = CASE WHEN ?5 THEN NULL ELSE owner END
                 WHERE number = ?1",
            )?
            .execute(params![run, status.as_str(), row.at, outcome, rests])?;
    }
    Ok(())
}

/// The columns that [`summary`] reads.
pub(super) const SUMMARY: &str = "id, graph, source, thread, status, created, updated, outcome, owner";

/// A run of the index; `alive` says whether the process of that name lives.
pub(super) fn summary(row: &Row<'_>, alive: &mut dyn FnMut(&str) -> bool) -> rusqlite::Result<RunSummary> {
    let status: String = row.get(4)?;
    let owner: Option<String> = row.get(8)?;
    let status = match RunStatus::from_word(&status).unwrap_or(RunStatus::Failed) {
        RunStatus::Running if !owner.is_some_and(|owner| alive(&owner)) => RunStatus::Interrupted,
        status => status,
    };
    Ok(RunSummary {
        id: RunId::from(row.get::<_, String>(0)?),
        graph: row.get(1)?,
        source: row.get(2)?,
        thread: row.get(3)?,
        status,
        created: time(row.get(5)?),
        updated: time(row.get(6)?),
        outcome: row.get(7)?,
    })
}

pub(super) fn microseconds(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

pub(super) fn time(microseconds: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(u64::try_from(microseconds).unwrap_or(0))
}

pub(super) fn beginning(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => text[..end].to_owned(),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::{EntryRow, Tail};
    use crate::entry::{Entry, Fact};
    use crate::ids::RunId;

    #[test]
    fn timers_are_looked_for_at_the_end_of_a_run_that_may_have_some() {
        let now = SystemTime::now();
        let set = || Entry::of_run(Fact::TimerSet { node: "n".to_owned(), at: now });
        let fired = || Entry::of_run(Fact::TimerFired { node: "n".to_owned() });
        let end = || Entry::of_run(Fact::Ended { result: Ok("done".to_owned()), node: None });
        let looks = |mut tail: Tail, entries: &[Entry]| {
            let rows: Vec<EntryRow> =
                entries.iter().map(|entry| tail.next(entry.clone(), Duration::ZERO, now)).collect();
            rows.last().and_then(|last| last.change.as_ref()).is_some_and(|change| change.drops_timers)
        };
        let begun = Tail::new(&RunId::from("a".to_owned()));
        assert!(!looks(begun, &[fired(), end()]));
        assert!(looks(begun, &[set(), fired(), end()]));
        assert!(!looks(begun, &[set(), Entry::of_run(Fact::Waiting)]), "it waits for them");
        // What was set before is not known.
        assert!(looks(Tail::read(3, 7), &[end()]));
    }
}
