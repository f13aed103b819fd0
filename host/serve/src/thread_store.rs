//! What the server keeps of threads, which may be empty and have metadata.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde_json::Value;

use crate::object::{Object, object};
use crate::store::{Store, StoreError, microseconds, time};

/// A thread.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Thread {
    pub(crate) id: String,
    /// What the agent of its runs was loaded from; none before the first one
    pub(crate) agent: Option<String>,
    pub(crate) created: SystemTime,
    pub(crate) updated: SystemTime,
    pub(crate) metadata: Object,
}

/// What threads are ordered by.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum ThreadOrder {
    /// When they were made
    #[default]
    Created,
    /// When they were last changed, or a run was begun in them
    Updated,
    /// Their ids
    Id,
}

/// Which threads are wanted, and in which order.
#[derive(Clone, Debug, Default)]
pub(crate) struct ThreadQuery {
    /// Those with all of this metadata
    pub(crate) metadata: Object,
    /// Those of these ids; none for all
    pub(crate) among: Option<HashSet<String>>,
    pub(crate) order: ThreadOrder,
    /// Whether the one comes first that would be the last otherwise
    pub(crate) ascending: bool,
    pub(crate) limit: usize,
    pub(crate) offset: usize,
}

impl Store {
    /// Makes a thread. None if it is there.
    pub(crate) fn create_thread(&self, id: &str, metadata: &Object) -> Result<Option<Thread>, StoreError> {
        self.with(|connection| {
            let now = microseconds(SystemTime::now());
            let made = connection
                .prepare_cached(
                    "INSERT OR IGNORE INTO threads (id, created, updated, metadata) VALUES (?1, ?2, ?2, ?3)",
                )?
                .execute(params![id, now, Value::Object(metadata.clone()).to_string()])?;
            if made == 0 { Ok(None) } else { find(connection, id) }
        })
    }

    /// The thread of an id.
    pub(crate) fn thread(&self, id: &str) -> Result<Option<Thread>, StoreError> {
        self.read(|connection| find(connection, id))
    }

    /// Adds to what is said about a thread, unless all of it together is refused. None if there is no such thread.
    pub(crate) fn change_thread<E>(
        &self,
        id: &str,
        metadata: &Object,
        check: impl FnOnce(&Object) -> Result<(), E>,
    ) -> Result<Option<Result<Thread, E>>, StoreError> {
        self.with(|connection| {
            let Some(mut thread) = find(connection, id)? else { return Ok(None) };
            thread.metadata.extend(metadata.clone());
            // Others add to it at the same time, and do not come in between here.
            if let Err(refused) = check(&thread.metadata) {
                return Ok(Some(Err(refused)));
            }
            thread.updated = SystemTime::now();
            let text = Value::Object(thread.metadata.clone()).to_string();
            connection
                .prepare_cached("UPDATE threads SET metadata = ?2, updated = ?3 WHERE id = ?1")?
                .execute(params![id, text, microseconds(thread.updated)])?;
            Ok(Some(Ok(thread)))
        })
    }

    /// Says whose runs a thread has, before its first one. The source that counts is given back: the first one that was said.
    /// None if there is no such thread.
    pub(crate) fn bind_thread(&self, id: &str, source: &str) -> Result<Option<String>, StoreError> {
        self.with(|connection| {
            connection
                .prepare_cached(
                    "UPDATE threads SET agent = coalesce(agent, ?2), updated = ?3 WHERE id = ?1 RETURNING agent",
                )?
                .query_row(params![id, source, microseconds(SystemTime::now())], |row| row.get(0))
                .optional()
        })
    }

    /// Forgets a thread. False if there is none.
    pub(crate) fn delete_thread(&self, id: &str) -> Result<bool, StoreError> {
        let gone = self.with(|connection| Ok(connection.execute("DELETE FROM threads WHERE id = ?1", [id])? > 0))?;
        self.removed_threads().fetch_add(u64::from(gone), Ordering::SeqCst);
        Ok(gone)
    }

    /// The ids of threads.
    pub(crate) fn thread_ids(&self, wanted: &ThreadQuery) -> Result<Vec<String>, StoreError> {
        let column = match wanted.order {
            ThreadOrder::Created => "number",
            ThreadOrder::Updated => "updated",
            ThreadOrder::Id => "id",
        };
        let direction = if wanted.ascending { "ASC" } else { "DESC" };
        let text = format!("SELECT id, metadata FROM threads ORDER BY {column} {direction}, number {direction}");
        let fits = |id: &str, metadata: &str| {
            let is_among = wanted.among.as_ref().is_none_or(|among| among.contains(id));
            is_among && (wanted.metadata.is_empty() || has(&read_metadata(metadata), &wanted.metadata))
        };
        self.scan(|connection| {
            let mut statement = connection.prepare_cached(&text)?;
            let mut rows = statement.query([])?;
            let (mut found, mut left_out) = (Vec::new(), 0);
            while found.len() < wanted.limit
                && let Some(row) = rows.next()?
            {
                let id: String = row.get(0)?;
                if !fits(&id, row.get_ref(1)?.as_str()?) {
                    continue;
                }
                if left_out < wanted.offset {
                    left_out += 1;
                } else {
                    found.push(id);
                }
            }
            Ok(found)
        })
    }
}

/// Whether an object has all members of another one.
pub(crate) fn has(all: &Object, wanted: &Object) -> bool {
    wanted.iter().all(|(name, value)| all.get(name) == Some(value))
}

fn find(connection: &Connection, id: &str) -> rusqlite::Result<Option<Thread>> {
    connection
        .prepare_cached("SELECT id, agent, created, updated, metadata FROM threads WHERE id = ?1")?
        .query_row([id], thread)
        .optional()
}

fn read_metadata(text: &str) -> Object {
    object(serde_json::from_str(text).unwrap_or_default())
}

fn thread(row: &Row<'_>) -> rusqlite::Result<Thread> {
    Ok(Thread {
        id: row.get(0)?,
        agent: row.get(1)?,
        created: time(row.get(2)?),
        updated: time(row.get(3)?),
        metadata: read_metadata(row.get_ref(4)?.as_str()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_belongs_to_the_agent_of_its_first_run_and_outlives_the_process() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("runs.serve.db");
        let store = Store::open(Some(&file)).expect("opened");
        let about = object(serde_json::json!({ "who": "me" }));
        assert!(store.create_thread("a", &about).expect("made").is_some());
        assert!(store.create_thread("a", &Object::new()).expect("read").is_none(), "it is there");
        assert_eq!(store.bind_thread("a", "one").expect("bound").as_deref(), Some("one"));
        assert_eq!(store.bind_thread("a", "two").expect("bound").as_deref(), Some("one"));
        assert_eq!(store.bind_thread("b", "two").expect("read"), None);
        drop(store);
        let store = Store::open(Some(&file)).expect("opened");
        assert_eq!(store.thread("a").expect("read").map(|thread| thread.metadata), Some(about.clone()));
        assert!(store.delete_thread("a").expect("gone") && !store.delete_thread("a").expect("gone"));
    }

    #[test]
    fn what_is_refused_together_is_not_added() {
        let store = Store::open(None).expect("opened");
        let (before, more) = (object(serde_json::json!({ "a": 1 })), object(serde_json::json!({ "b": 2 })));
        store.create_thread("t", &before).expect("made");
        let changed = store.change_thread("t", &more, |all| Err::<(), usize>(all.len())).expect("read");
        assert_eq!(changed, Some(Err(2)), "it is looked at with what is there already");
        assert_eq!(store.thread("t").expect("read").map(|thread| thread.metadata), Some(before));
    }

    #[test]
    fn threads_are_found_in_the_order_that_is_wanted() {
        let store = Store::open(None).expect("opened");
        let about = object(serde_json::json!({ "who": "me" }));
        for (id, metadata) in [("b", &about), ("a", &Object::new()), ("c", &about)] {
            store.create_thread(id, metadata).expect("made");
        }
        store.change_thread("b", &Object::new(), |_| Ok::<(), ()>(())).expect("changed");
        let ids = |query: ThreadQuery| store.thread_ids(&ThreadQuery { limit: 9, ..query }).expect("read");
        assert_eq!(ids(ThreadQuery::default()), ["c", "a", "b"]);
        assert_eq!(ids(ThreadQuery { ascending: true, ..ThreadQuery::default() }), ["b", "a", "c"]);
        assert_eq!(ids(ThreadQuery { order: ThreadOrder::Updated, ..ThreadQuery::default() }), ["b", "c", "a"]);
        assert_eq!(ids(ThreadQuery { order: ThreadOrder::Id, ..ThreadQuery::default() }), ["c", "b", "a"]);
        assert_eq!(ids(ThreadQuery { metadata: about.clone(), ..ThreadQuery::default() }), ["c", "b"]);
        assert_eq!(ids(ThreadQuery { metadata: about, offset: 1, ..ThreadQuery::default() }), ["b"]);
        let among = Some(HashSet::from(["a".to_owned(), "x".to_owned()]));
        assert_eq!(ids(ThreadQuery { among, ..ThreadQuery::default() }), ["a"]);
        let first = ThreadQuery { limit: 1, offset: 1, ..ThreadQuery::default() };
        assert_eq!(store.thread_ids(&first).expect("read"), ["a"]);
    }
}
