//! Finding runs: by name, by thread, and in pages.

use std::collections::HashMap;

use rusqlite::types::Value as Sql;
use rusqlite::{Connection, OptionalExtension, params_from_iter};

use super::Shared;
use super::rows::{OUTCOME, SUMMARY, is_damage, microseconds, page, summary};
use crate::entry::Fact;
use crate::ids::RunId;
use crate::projection::RunStatus;
use crate::rules::choose;
use crate::store::{EntryPage, JournalError, RunPage, RunQuery, RunRecord, RunSummary};

/// Whether the run of this number has more entries than that. Of one that is damaged, whoever reads it is told where it ends.
pub(super) fn is_longer(connection: &Connection, number: i64, most: u64) -> rusqlite::Result<bool> {
    let last: rusqlite::Result<Option<i64>> = connection
        .prepare_cached("SELECT max(number) FROM entries WHERE run = ?1")?
        .query_row([number], |row| row.get(0));
    match last {
        Err(error) if is_damage(&error) => Ok(false),
        last => Ok(last?.is_some_and(|last| u64::try_from(last).is_ok_and(|last| last > most))),
    }
}

/// The number of a run's last entry.
pub(super) fn last_entry(connection: &Connection, run: &RunId) -> rusqlite::Result<Option<u64>> {
    let last: Option<i64> = connection
        .prepare_cached("SELECT max(number) FROM entries WHERE run = (SELECT number FROM runs WHERE id = ?1)")?
        .query_row([run.as_str()], |row| row.get(0))?;
    Ok(last.and_then(|last| u64::try_from(last).ok()))
}

/// The latest run of a source in a thread.
pub(super) fn last_of_thread(
    connection: &Connection,
    source: &str,
    thread: &str,
) -> rusqlite::Result<Option<(i64, RunId)>> {
    connection
        .prepare_cached("SELECT number, id FROM runs WHERE thread = ?1 AND source = ?2 ORDER BY number DESC LIMIT 1")?
        .query_row((thread, source), |row| Ok((row.get(0)?, RunId::from(row.get::<_, String>(1)?))))
        .optional()
}

impl Shared {
    /// The run of this name, or the only one whose name begins with it.
    pub(super) fn find(&self, name: &str) -> Result<RunRecord, JournalError> {
        if let Some(record) = self.named(name)? {
            return Ok(record);
        }
        // Names that begin with a text lie together in the index.
        let end = format!("{name}\u{10ffff}");
        let matching: Vec<String> = self.read(|connection| {
            connection
                .prepare_cached("SELECT id FROM runs WHERE id > ?1 AND id < ?2 ORDER BY id LIMIT 5")?
                .query_map((name, &end), |row| row.get(0))?
                .collect()
        })?;
        let id = choose(matching, name)?;
        self.named(&id)?.ok_or(JournalError::NoSuchRun(id))
    }

    /// The run of exactly this name.
    fn named(&self, id: &str) -> Result<Option<RunRecord>, JournalError> {
        let mut alive = Alive { shared: self, known: HashMap::new() };
        let found = self.read(|connection| {
            let revision = "(SELECT digest FROM revisions WHERE revisions.number = runs.revision)";
            connection
                .prepare_cached(&format!("SELECT {SUMMARY}, number, {revision} FROM runs WHERE id = ?1"))?
                .query_row([id], |row| {
                    let (number, revision): (i64, Option<String>) = (row.get(9)?, row.get(10)?);
                    let mut found = summary(row, &mut |owner| alive.is(owner))?;
                    // As long as the row is read, the file is locked for reading: it is all of one moment, and is locked once.
                    let begun = end(connection, number, "ASC")?;
                    // The index has the beginning of what came of it only.
                    if found.outcome.as_ref().is_some_and(|outcome| outcome.chars().nth(OUTCOME - 1).is_some()) {
                        let last = end(connection, number, "DESC")?;
                        found.outcome = last.and_then(|last| last.outcome().map(str::to_owned)).or(found.outcome);
                    }
                    Ok((found, revision, begun))
                })
                .optional()
        })?;
        let Some((RunSummary { id, status, created, updated, outcome, .. }, revision, begun)) = found else {
            return Ok(None);
        };
        let Some(Fact::Started(header)) = begun else {
            let cause = "it does not say how the run began".to_owned();
            return Err(JournalError::Damaged { run: id, sequence: 1, cause });
        };
        Ok(Some(RunRecord { id, header, revision, status, created, updated, outcome }))
    }

    /// Entries of a run after one of them, with how the run stands then.
    pub(super) fn entries(&self, run: &RunId, after: u64, limit: usize) -> Result<EntryPage, JournalError> {
        let mut alive = Alive { shared: self, known: HashMap::new() };
        let found = self.read(|connection| {
            // Both at one moment.
            let reading = connection.unchecked_transaction()?;
            let run_row = reading
                .prepare_cached(&format!("SELECT {SUMMARY}, number FROM runs WHERE id = ?1"))?
                .query_row([run.as_str()], |row| {
                    Ok((row.get::<_, i64>(9)?, summary(row, &mut |owner| alive.is(owner))?))
                })
                .optional()?;
            let Some((number, summary)) = run_row else { return Ok(None) };
            Ok(Some((page(&reading, number, run, after, limit)?, summary.status)))
        })?;
        let (entries, status) = found.ok_or_else(|| JournalError::NoSuchRun(run.to_string()))?;
        let (entries, is_last) = entries?;
        Ok(EntryPage { entries, status, is_last })
    }

    pub(super) fn list(&self, query: &RunQuery) -> Result<RunPage, JournalError> {
        let mut alive = Alive { shared: self, known: HashMap::new() };
        let Some((text, values)) = self.listing(query, &mut alive)? else { return Ok(RunPage::default()) };
        let mut rows: Vec<(RunSummary, String)> = self.read(|connection| {
            connection
                .prepare(&text)?
                .query_map(params_from_iter(values), |row| {
                    let place = format!("{}-{}", row.get::<_, i64>(9)?, row.get::<_, i64>(10)?);
                    Ok((summary(row, &mut |owner| alive.is(owner))?, place))
                })?
                .collect()
        })?;
        let mut page = RunPage::default();
        if rows.len() > query.limit {
            rows.truncate(query.limit);
            page.next = rows.last().map(|(_, place)| place.clone());
        }
        page.runs = rows.into_iter().map(|(run, _)| run).collect();
        Ok(page)
    }

    /// The statement that reads a page of runs and the first one after it, with its values; none if there can be no such run.
    fn listing(&self, query: &RunQuery, alive: &mut Alive<'_>) -> Result<Option<(String, Vec<Sql>)>, JournalError> {
        let Some((conditions, mut values)) = self.filters(query, alive)? else { return Ok(None) };
        values.push(Sql::Integer(i64::try_from(query.limit).unwrap_or(i64::MAX).saturating_add(1)));
        // Runs with a word are found in the order of their numbers, which is the order in which they began: that there are many
        // of them costs nothing.
        let (source, order) = match query.text {
            Some(_) => ("texts JOIN runs ON runs.number = texts.rowid", "texts.rowid DESC"),
            None => ("runs", "created DESC, number DESC"),
        };
        let text = format!("SELECT {SUMMARY}, created, number FROM {source}{conditions} ORDER BY {order} LIMIT ?");
        Ok(Some((text, values)))
    }

    /// The condition for runs that are wanted, with its values; none if there can be no such run. With a text, it is about
    /// `texts`, too.
    pub(super) fn filters(
        &self,
        query: &RunQuery,
        alive: &mut Alive<'_>,
    ) -> Result<Option<(String, Vec<Sql>)>, JournalError> {
        let mut conditions: Vec<String> = Vec::new();
        let mut values: Vec<Sql> = Vec::new();
        let mut add = |condition: String, value: Vec<Sql>| {
            conditions.push(condition);
            values.extend(value);
        };
        let by_source = is_found_by_source(query);
        // To stand in any way at all is no condition.
        if !query.statuses.is_empty() && RunStatus::ALL.iter().any(|status| !query.statuses.contains(status)) {
            let (condition, value) =
                self.by_status(if by_source { "+status" } else { "status" }, &query.statuses, alive)?;
            add(condition, value);
        }
        if let Some(run) = &query.run {
            add("runs.id = ?".to_owned(), vec![Sql::Text(run.to_string())]);
        }
        if let Some(graph) = &query.graph {
            add("graph = ?".to_owned(), vec![Sql::Text(graph.clone())]);
        }
        if let Some(sources) = &query.sources {
            let column = if by_source { "source" } else { "+source" };
            let condition = format!("{column} IN ({})", vec!["?"; sources.len()].join(", "));
            add(condition, sources.iter().cloned().map(Sql::Text).collect());
        }
        if let Some(thread) = &query.thread {
            add("thread = ?".to_owned(), vec![Sql::Text(thread.clone())]);
        }
        if let Some(since) = query.since {
            add("created >= ?".to_owned(), vec![Sql::Integer(microseconds(since))]);
        }
        if let Some(before) = query.before {
            add("created < ?".to_owned(), vec![Sql::Integer(microseconds(before))]);
        }
        if let Some(words) = query.words()? {
            let words: Vec<String> = words.iter().map(|word| format!("\"{word}\"*")).collect();
            if words.is_empty() {
                return Ok(None);
            }
            add("texts MATCH ?".to_owned(), vec![Sql::Text(words.join(" "))]);
        }
        if let Some(after) = &query.after {
            let place = after
                .split_once('-')
                .and_then(|(created, number)| Some((created.parse::<i64>().ok()?, number.parse::<i64>().ok()?)));
            let (created, number) = place.ok_or_else(|| JournalError::NoSuchPage(after.clone()))?;
            match query.text {
                Some(_) => add("texts.rowid < ?".to_owned(), vec![Sql::Integer(number)]),
                None => {
                    add("(created, number) < (?, ?)".to_owned(), vec![Sql::Integer(created), Sql::Integer(number)]);
                }
            }
        }
        let text = match conditions.is_empty() {
            true => String::new(),
            false => format!(" WHERE {}", conditions.join(" AND ")),
        };
        Ok(Some((text, values)))
    }

    /// The condition for runs that stand in one of these ways, with its values; `column` is that of the status. Whether a run is running or
    /// interrupted depends on whether its process lives, which the file does not know.
    pub(super) fn by_status(
        &self,
        column: &str,
        statuses: &[RunStatus],
        alive: &mut Alive<'_>,
    ) -> Result<(String, Vec<Sql>), JournalError> {
        let owners: Vec<String> = self.read(|connection| {
            connection
                .prepare_cached("SELECT DISTINCT owner FROM runs WHERE owner IS NOT NULL")?
                .query_map([], |row| row.get(0))?
                .collect()
        })?;
        let mut living = Vec::new();
        for owner in owners {
            if alive.is(&owner) {
                living.push(owner);
            }
        }
        let places = |count: usize| vec!["?"; count].join(", ");
        let mut parts = Vec::new();
        let mut values = Vec::new();
        for status in statuses {
            let owned = living.iter().map(|owner| Sql::Text(owner.clone()));
            parts.push(match status {
                RunStatus::Running => {
                    values.extend(owned);
                    format!("({column} = 'running' AND owner IN ({}))", places(living.len()))
                }
                RunStatus::Interrupted => {
                    values.extend(owned);
                    format!("({column} = 'running' AND (owner IS NULL OR owner NOT IN ({})))", places(living.len()))
                }
                settled => {
                    values.push(Sql::Text(settled.as_str().to_owned()));
                    format!("{column} = ?")
                }
            });
        }
        Ok((format!("({})", parts.join(" OR ")), values))
    }
}

/// Whether the runs that are wanted are found among those of their source, in their order. Those of several sources would all have to be
/// sorted. Of one name, of a thread, with some words, and of those that have not ended there are fewer than of a source.
/// (SQLite has no index for a column with a `+`.)
fn is_found_by_source(query: &RunQuery) -> bool {
    let is_narrow = query.run.is_some() || query.thread.is_some() || query.text.is_some();
    let is_open = !query.statuses.is_empty() && !query.statuses.iter().any(|status| status.is_final());
    query.sources.as_ref().is_some_and(|sources| sources.len() == 1) && !is_narrow && !is_open
}

/// Which processes live; each is looked at once.
pub(super) struct Alive<'s> {
    pub(super) shared: &'s Shared,
    pub(super) known: HashMap<String, bool>,
}

impl Alive<'_> {
    fn is(&mut self, owner: &str) -> bool {
        if let Some(known) = self.known.get(owner) {
            return *known;
        }
        let alive = self.shared.is_alive(owner);
        self.known.insert(owner.to_owned(), alive);
        alive
    }
}

/// The first entry of a run, or the last one, as far as it can be read.
fn end(connection: &Connection, number: i64, order: &str) -> rusqlite::Result<Option<Fact>> {
    let text = format!("SELECT kind, body FROM entries WHERE run = ?1 ORDER BY number {order} LIMIT 1");
    let row: rusqlite::Result<(String, String)> =
        connection.prepare_cached(&text)?.query_row([number], |row| Ok((row.get(0)?, row.get(1)?)));
    match row {
        Err(error) if is_damage(&error) => Ok(None),
        row => Ok(row.optional()?.and_then(|(kind, body)| crate::encode::decode(&kind, &body).ok())),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::super::SqliteStore;
    use super::Alive;
    use crate::projection::RunStatus;
    use crate::store::RunQuery;

    /// Each page of them would otherwise cost as much as all runs that there are.
    #[test]
    fn the_runs_of_an_agent_are_found_in_their_order() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = SqliteStore::open(&folder.path().join("runs.db")).expect("opened");
        let of = |sources: &[&str]| RunQuery {
            sources: Some(sources.iter().map(|source| (*source).to_owned()).collect()),
            limit: 50,
            ..RunQuery::default()
        };
        let standing = |statuses: &[RunStatus]| RunQuery { statuses: statuses.to_vec(), ..of(&["a"]) };
        let after = Some("5-7".to_owned());
        for (query, index) in [
            (of(&["a"]), "runs_by_source"),
            (RunQuery { after: after.clone(), ..of(&["a"]) }, "runs_by_source"),
            (standing(&RunStatus::ALL), "runs_by_source"),
            (standing(&[RunStatus::Completed]), "runs_by_source"),
            // There are few of those beside all runs of an agent.
            (standing(&[RunStatus::Waiting]), "runs_by_status"),
            // There may be any number of runs of many agents.
            (of(&["a", "b"]), "runs_by_time"),
            (RunQuery { after, ..of(&["a", "b"]) }, "runs_by_time"),
        ] {
            let mut alive = Alive { shared: &store.shared, known: HashMap::new() };
            let (text, _) = store.shared.listing(&query, &mut alive).expect("read").expect("there may be some");
            let steps = store.shared.plan(&text);
            assert!(matches!(&steps[..], [only] if only.contains(&format!("INDEX {index}"))), "{query:?}: {steps:?}");
        }
        // A thread has few runs, which are sorted.
        let of_thread = RunQuery { thread: Some("t".to_owned()), ..of(&["a"]) };
        let mut alive = Alive { shared: &store.shared, known: HashMap::new() };
        let (text, _) = store.shared.listing(&of_thread, &mut alive).expect("read").expect("there may be some");
        let steps = store.shared.plan(&text);
        assert!(steps[0].contains(" runs_by_thread "), "{steps:?}");
    }
}
