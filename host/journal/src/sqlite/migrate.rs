//! Bringing a file of an older layout to the layout of this version.
//!
//! Layout 2 kept what a run was started with, and how it stood, beside its entries; here they are entries. Layout 3 kept nothing of
//! what runs were loaded from, layout 4 no recordings of calls, and layout 5 had fewer indices. What the file has is not changed if
//! anything goes wrong: all of it is one transaction.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use hotcell_budget::Account;
use hotcell_graph::value::parse_json;
use hotcell_graph::{Object, Value};
use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use super::rows::{Tail, insert, time};
use super::tables::{CALLS, INDICES, LAYOUT, REVISIONS, SCHEMA, seal};
use super::texts::{index_text, searched, with_outcome};
use crate::encode::decode;
use crate::entry::{Entry, Fact, RunHeader};
use crate::ids::{EntryPath, RunId};

/// Whether the tables are those of layout 2.
pub(super) fn is_layout_2(connection: &Connection) -> rusqlite::Result<bool> {
    let columns = |table: &str| -> rusqlite::Result<String> {
        let text = "SELECT coalesce(group_concat(name, ' '), '') FROM pragma_table_info(?1)";
        connection.query_row(text, [table], |row| row.get(0))
    };
    Ok(columns("runs")? == "number id graph source digest given status created updated outcome"
        && columns("entries")? == "run number place kind body")
}

/// Rewrites the file. The error is why it stays as it is.
pub(super) fn from_layout_2(connection: &mut Connection, path: &Path) -> Result<(), String> {
    if let Some(run) = worked_on(path) {
        return Err(format!(
            "an older version of hotcell works on run `{run}` in it; try again when that has ended, so that the file can be \
             brought to the layout of this version"
        ));
    }
    tracing::info!(path = %path.display(), "the journal is brought to the layout of this version");
    let text = |error: rusqlite::Error| format!("it cannot be brought to the layout of this version: {error}");
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(text)?;
    // Another process may have been first.
    if is_layout_2(&transaction).map_err(text)? {
        rewrite(&transaction).map_err(text)?;
        transaction.commit().map_err(text)?;
        // Older versions let everybody read it.
        if let Err(error) = std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)) {
            tracing::warn!(%error, "others may be able to read the journal: its permissions could not be changed");
        }
        // From now on space is given back when runs are removed, which has to be said before the file is written anew.
        let compact = || -> rusqlite::Result<()> {
            connection.pragma_update(None, "auto_vacuum", "incremental")?;
            connection.execute_batch("VACUUM")
        };
        if let Err(error) = compact() {
            tracing::warn!(%error, "the journal could not be compacted; runs that are removed will give no space back");
        }
    }
    Ok(())
}

/// Adds the tables of revisions and of recordings, and indices. A process of an older version that works on the file meanwhile is not
/// disturbed by them.
pub(super) fn from_layout_3_or_later(connection: &mut Connection) -> Result<(), String> {
    let mut add = || -> rusqlite::Result<()> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another process may have been first.
        let layout: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if layout == 3 {
            transaction.execute_batch("ALTER TABLE runs ADD COLUMN revision INTEGER")?;
            transaction.execute_batch(REVISIONS)?;
        }
        if matches!(layout, 3 | 4) {
            transaction.execute_batch(CALLS)?;
        }
        if matches!(layout, 3..LAYOUT) {
            transaction.execute_batch(INDICES)?;
            seal(&transaction)?;
        }
        transaction.commit()
    };
    add().map_err(|error| format!("it cannot be brought to the layout of this version: {error}"))
}

/// A run that a process of an older version works on: it holds a lock beside the file.
fn worked_on(path: &Path) -> Option<String> {
    let path = std::fs::canonicalize(path).ok()?;
    let prefix = format!("{}-lock-", path.file_name()?.to_string_lossy());
    for file in std::fs::read_dir(path.parent()?).ok()?.flatten() {
        let name = file.file_name().to_string_lossy().into_owned();
        let Some(run) = name.strip_prefix(&prefix) else { continue };
        match File::open(file.path()).map(|file| file.try_lock()) {
            Ok(Err(std::fs::TryLockError::WouldBlock)) => return Some(run.to_owned()),
            _ => {
                let _ = std::fs::remove_file(file.path());
            }
        }
    }
    None
}

struct Old {
    number: i64,
    id: RunId,
    header: RunHeader,
    status: String,
    created: i64,
    updated: i64,
    outcome: Option<String>,
}

fn rewrite(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.execute_batch(
        "DROP INDEX IF EXISTS runs_of_threads;
         ALTER TABLE runs RENAME TO old_runs; ALTER TABLE entries RENAME TO old_entries;",
    )?;
    transaction.execute_batch(SCHEMA)?;
    transaction.execute_batch(REVISIONS)?;
    transaction.execute_batch(CALLS)?;
    transaction.execute_batch(INDICES)?;
    let mut runs = transaction.prepare("SELECT * FROM old_runs ORDER BY number")?;
    let mut rows = runs.query([])?;
    while let Some(row) = rows.next()? {
        let given: String = row.get("given")?;
        let given = match parse_json(&given) {
            Ok(Value::Object(given)) => given,
            _ => Object::default(),
        };
        let header = RunHeader {
            graph: row.get("graph")?,
            source: row.get("source")?,
            digest: row.get("digest")?,
            kept: false,
            given,
        };
        rewrite_run(
            transaction,
            Old {
                number: row.get("number")?,
                id: RunId::from(row.get::<_, String>("id")?),
                header,
                status: row.get("status")?,
                created: row.get("created")?,
                updated: row.get("updated")?,
                outcome: row.get("outcome")?,
            },
        )?;
    }
    drop(rows);
    drop(runs);
    transaction.execute_batch("DROP TABLE old_runs; DROP TABLE old_entries;")?;
    seal(transaction)
}

fn rewrite_run(transaction: &Transaction<'_>, old: Old) -> rusqlite::Result<()> {
    transaction.execute(
        "INSERT INTO runs (number, id, graph, source, thread, follows, status, created, updated)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'running', ?7, ?7)",
        params![
            old.number,
            old.id.as_str(),
            old.header.graph,
            old.header.source,
            old.header.thread(),
            old.header.needs(),
            old.created
        ],
    )?;
    let mut tail = Tail::new(&old.id);
    let begun = Entry::of_run(Fact::Started(old.header.clone()));
    insert(transaction, old.number, &tail.next(begun, Duration::ZERO, time(old.created)))?;
    let mut entries =
        transaction.prepare_cached("SELECT place, kind, body FROM old_entries WHERE run = ?1 ORDER BY number")?;
    let mut rows = entries.query([old.number])?;
    let mut unreadable = false;
    let mut refusals = Refusals::default();
    while let Some(row) = rows.next()? {
        let (place, kind, body): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let Ok(fact) = decode(&kind, &body) else {
            tracing::warn!(run = %old.id, "an entry of the run cannot be read; it and those after it are left out");
            unreadable = true;
            break;
        };
        let entry = Entry { place: EntryPath::from(place), fact };
        for entry in refusals.before(&entry).into_iter().chain([entry]) {
            insert(transaction, old.number, &tail.next(entry, Duration::ZERO, time(old.updated)))?;
        }
    }
    let outcome = old.outcome.clone().unwrap_or_default();
    let end = match old.status.as_str() {
        _ if unreadable => {
            let error = "an entry could not be read when the journal was brought to a new layout".to_owned();
            Some(Fact::Ended { result: Err(error), node: None })
        }
        "waiting" => Some(Fact::Waiting),
        "cancelled" => Some(Fact::Cancelled),
        "completed" => Some(Fact::Ended { result: Ok(outcome), node: None }),
        "failed" => Some(Fact::Ended { result: Err(outcome), node: None }),
        _ => None,
    };
    let text = with_outcome(searched(&old.header), old.outcome.as_deref());
    if let Some(end) = end {
        insert(transaction, old.number, &tail.next(Entry::of_run(end), Duration::ZERO, time(old.updated)))?;
    }
    index_text(transaction, old.number, &text)
}

/// Why a model refused is not known any more. A node asks again after this error, as it did then.
const REFUSAL: &str = r#"{"refused":{"status":{"status":429,"message":"the model refused, and why was not kept"}}}"#;

/// More numbers than any node misses: beyond this it is no model that refused.
const MOST_REFUSALS: u32 = 1000;

/// Finds where models refused. Here that is an entry; layout 2 kept none, and the next request only has a higher number. Without
/// the entry, a run that goes on would ask the model anew under the missing number, and what comes then would not fit what
/// follows in the journal.
#[derive(Default)]
struct Refusals {
    /// The number that comes next, by place
    next: HashMap<EntryPath, u32>,
}

impl Refusals {
    /// The refusals between this entry and the one before it at its place.
    fn before(&mut self, entry: &Entry) -> Vec<Entry> {
        let (number, is_model) = match &entry.fact {
            Fact::Effect { number, kind, .. } => (*number, kind == "model"),
            Fact::Asked { number, .. } => (*number, false),
            _ => return Vec::new(),
        };
        let next = self.next.entry(entry.place.clone()).or_default();
        let missing = *next..number;
        *next = (*next).max(number.saturating_add(1));
        if !is_model || missing.len() > MOST_REFUSALS as usize {
            return Vec::new();
        }
        let refusal = |number| Fact::Effect {
            number,
            kind: "model".to_owned(),
            subject: String::new(),
            answer: parse_json(REFUSAL).unwrap_or_default(),
            account: Account::default(),
        };
        missing.map(|number| Entry { place: entry.place.clone(), fact: refusal(number) }).collect()
    }
}
