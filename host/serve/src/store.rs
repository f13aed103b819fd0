//! The file of what the server keeps beside the journal, and the API keys in it.

use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};
use thiserror::Error;

use crate::aside::aside;
use crate::key::{ApiKey, Token};
use crate::problem::Problem;
use crate::role::Role;
use crate::tenant_name::{NotAName, TenantName};

/// Says that a SQLite file is the server's: "hots".
const APPLICATION: i64 = 0x686F_7473;
/// How long to wait for other processes that use the file.
const BUSY: Duration = Duration::from_secs(10);

/// What makes each layout of the one before it. How many of them a file has is kept in `user_version`.
const LAYOUTS: [&str; 17] = [
    "CREATE TABLE threads (
         number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, agent TEXT, created INTEGER NOT NULL, updated INTEGER NOT NULL,
         metadata TEXT NOT NULL
     );",
    "CREATE TABLE keys (
         number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, name TEXT NOT NULL, digest BLOB NOT NULL, roles TEXT NOT NULL,
         created INTEGER NOT NULL, expires INTEGER, revoked INTEGER
     );",
    "CREATE TABLE mesh_sessions (
         number INTEGER PRIMARY KEY, tenant TEXT NOT NULL, id TEXT NOT NULL, created INTEGER NOT NULL, updated INTEGER NOT NULL,
         UNIQUE (tenant, id)
     );
     CREATE TABLE mesh_runs (
         number INTEGER PRIMARY KEY, run TEXT NOT NULL UNIQUE, session INTEGER NOT NULL REFERENCES mesh_sessions (number),
         seen INTEGER NOT NULL DEFAULT 0, ended TEXT, output TEXT
     );
     CREATE INDEX mesh_runs_of_session ON mesh_runs (session, number);
     CREATE INDEX mesh_runs_open ON mesh_runs (number) WHERE ended IS NULL;
     CREATE TABLE mesh_turns (
         number INTEGER PRIMARY KEY, session INTEGER NOT NULL REFERENCES mesh_sessions (number), at INTEGER NOT NULL,
         run TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, data TEXT NOT NULL
     );
     CREATE INDEX mesh_turns_of_session ON mesh_turns (session, number);
     CREATE TABLE mesh_events (
         number INTEGER PRIMARY KEY, session INTEGER NOT NULL REFERENCES mesh_sessions (number), key TEXT NOT NULL UNIQUE,
         body TEXT NOT NULL
     );
     CREATE INDEX mesh_events_of_session ON mesh_events (session, number);
     CREATE TABLE mesh_nonces (nonce TEXT PRIMARY KEY, until INTEGER NOT NULL);
     CREATE TABLE mesh_facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);",
    "CREATE TABLE mesh_posts (
         number INTEGER PRIMARY KEY, run TEXT NOT NULL, entry INTEGER NOT NULL, session INTEGER NOT NULL, agent TEXT NOT NULL,
         at INTEGER NOT NULL, post TEXT NOT NULL, UNIQUE (run, entry)
     );
     CREATE INDEX mesh_posts_of_session ON mesh_posts (session, number);
     CREATE INDEX mesh_posts_of_agent ON mesh_posts (agent, number);
     CREATE TABLE mesh_spent (
         run TEXT NOT NULL, entry INTEGER NOT NULL, agent TEXT NOT NULL, at INTEGER NOT NULL, tokens INTEGER NOT NULL,
         cost_usd REAL NOT NULL, PRIMARY KEY (run, entry)
     ) WITHOUT ROWID;
     CREATE INDEX mesh_spent_by_time ON mesh_spent (at);",
    "CREATE TABLE mesh_heard (id BLOB PRIMARY KEY, until INTEGER NOT NULL) WITHOUT ROWID;
     CREATE INDEX mesh_heard_by_time ON mesh_heard (until);
     CREATE TABLE mesh_messages (
         number INTEGER PRIMARY KEY, seat TEXT NOT NULL, provider TEXT NOT NULL, at INTEGER NOT NULL, message TEXT NOT NULL,
         becomes TEXT
     );
     CREATE TABLE mesh_chats (
         seat TEXT NOT NULL, provider TEXT NOT NULL, chat TEXT NOT NULL, thread TEXT NOT NULL, session TEXT NOT NULL,
         address TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (seat, provider, chat, thread)
     );
     CREATE INDEX mesh_chats_of_session ON mesh_chats (session);
     CREATE TABLE mesh_asked (
         number INTEGER PRIMARY KEY, request TEXT NOT NULL UNIQUE, seat TEXT NOT NULL, provider TEXT NOT NULL,
         chat TEXT NOT NULL, thread TEXT NOT NULL, message TEXT NOT NULL, at INTEGER NOT NULL
     );
     CREATE INDEX mesh_asked_in_chat ON mesh_asked (seat, provider, chat);",
    "ALTER TABLE keys ADD COLUMN tenant TEXT;",
    "CREATE TABLE spent_by_run (
         run TEXT PRIMARY KEY, cost INTEGER NOT NULL, tokens INTEGER NOT NULL, fuel INTEGER NOT NULL
     ) WITHOUT ROWID;
     CREATE TABLE spent_by_month (
         month TEXT PRIMARY KEY, cost INTEGER NOT NULL, tokens INTEGER NOT NULL, fuel INTEGER NOT NULL
     ) WITHOUT ROWID;",
    "CREATE TABLE chat_replies (number INTEGER PRIMARY KEY, digest BLOB NOT NULL, run TEXT NOT NULL, question TEXT);
     CREATE INDEX chat_replies_by_digest ON chat_replies (digest, number);
     CREATE TABLE a2a_push (
         number INTEGER PRIMARY KEY, run TEXT NOT NULL, id TEXT NOT NULL, config TEXT NOT NULL, told INTEGER NOT NULL,
         UNIQUE (run, id)
     );",
    "CREATE TABLE retired_agents (source TEXT PRIMARY KEY, id TEXT NOT NULL) WITHOUT ROWID;",
    "CREATE TABLE schedules (
         id TEXT PRIMARY KEY, body TEXT NOT NULL, created INTEGER NOT NULL, updated INTEGER NOT NULL
     ) WITHOUT ROWID;
     CREATE TABLE schedule_times (schedule TEXT PRIMARY KEY, done INTEGER NOT NULL) WITHOUT ROWID;
     CREATE TABLE schedule_firings (
         number INTEGER PRIMARY KEY, schedule TEXT NOT NULL, due INTEGER NOT NULL, at INTEGER NOT NULL, run TEXT, reason TEXT,
         UNIQUE (schedule, due)
     );",
    "CREATE INDEX mesh_spent_of_agent ON mesh_spent (agent, at);
     DROP INDEX mesh_spent_by_time;
     CREATE INDEX mesh_sessions_there ON mesh_sessions (updated) WHERE instr(id, '~') = 0;",
    "CREATE TABLE replies (
         key BLOB PRIMARY KEY, caller TEXT NOT NULL, request BLOB NOT NULL, name TEXT NOT NULL, at INTEGER NOT NULL,
         status INTEGER, headers TEXT, body BLOB
     ) WITHOUT ROWID;
     CREATE INDEX replies_by_caller ON replies (caller, at);
     CREATE INDEX replies_by_time ON replies (at);",
    "CREATE TABLE items (
         number INTEGER PRIMARY KEY, namespace TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, created INTEGER NOT NULL,
         updated INTEGER NOT NULL, UNIQUE (namespace, key)
     );
     CREATE TABLE kept (items INTEGER NOT NULL, bytes INTEGER NOT NULL);
     INSERT INTO kept VALUES (0, 0);",
    "CREATE TABLE watched (
         run TEXT NOT NULL, url TEXT NOT NULL, entry INTEGER NOT NULL, PRIMARY KEY (run, url)
     ) WITHOUT ROWID;
     CREATE TABLE posts (
         number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, run TEXT NOT NULL, url TEXT NOT NULL, body TEXT NOT NULL,
         attempts INTEGER NOT NULL, due INTEGER NOT NULL
     );
     CREATE INDEX posts_by_time ON posts (due);",
    "CREATE TABLE decisions (
         number INTEGER PRIMARY KEY, run TEXT NOT NULL, question TEXT NOT NULL, at INTEGER NOT NULL, source TEXT NOT NULL,
         caller TEXT, operator TEXT
     );
     CREATE INDEX decisions_of_run ON decisions (run, number);",
    "ALTER TABLE decisions ADD COLUMN of_group TEXT;",
    "CREATE TABLE attachments (
         number INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, size INTEGER NOT NULL, created INTEGER NOT NULL,
         sent INTEGER NOT NULL, media_type TEXT NOT NULL, name TEXT, bytes BLOB NOT NULL
     );
     CREATE INDEX attachments_by_size ON attachments (size);
     CREATE TABLE attached (
         run TEXT NOT NULL, digest BLOB NOT NULL, thread TEXT, at INTEGER NOT NULL, PRIMARY KEY (run, digest)
     ) WITHOUT ROWID;
     CREATE INDEX attached_by_digest ON attached (digest, run);
     CREATE INDEX attached_by_thread ON attached (thread) WHERE thread IS NOT NULL;",
];

/// Why the server's file cannot be used.
#[derive(Debug, Error)]
#[error("the server's file {path} cannot be used: {cause}")]
pub(crate) struct StoreError {
    path: String,
    cause: String,
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        tracing::error!(target: "hotcell::serve", %error, "the server's file cannot be used");
        Problem::unavailable("the server cannot keep or read that now; nothing was begun").with("retry_after", 10)
    }
}

/// The server's file. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Store {
    path: Arc<str>,
    connection: Arc<Mutex<Connection>>,
    /// How many threads this process has removed
    removed_threads: Arc<AtomicU64>,
}

impl Store {
    /// Opens the file, and makes it if it is not there; without a path, nothing outlives the process.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, StoreError> {
        let name: Arc<str> = path.map_or_else(|| "in memory".into(), |path| path.display().to_string().into());
        let fail = |cause: String| StoreError { path: name.to_string(), cause };
        let connection = match path {
            Some(path) => {
                private(path).map_err(|error| fail(error.to_string()))?;
                Connection::open(path)
            }
            None => Connection::open_in_memory(),
        };
        let mut connection = connection.map_err(|error| fail(error.to_string()))?;
        prepare(&mut connection).map_err(fail)?;
        Ok(Store { path: name.clone(), connection: Arc::new(Mutex::new(connection)), removed_threads: Arc::default() })
    }

    /// Where the file is.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// How many threads this process has removed: whoever begins a run in one knows from this whether it may be gone meanwhile.
    pub(crate) fn removed_threads(&self) -> &AtomicU64 {
        &self.removed_threads
    }

    /// Bytes of the file that hold something.
    pub(crate) fn bytes_in_use(&self) -> Result<u64, StoreError> {
        self.read(|connection| {
            let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
            let pages = number("page_count")?.saturating_sub(number("freelist_count")?);
            Ok(u64::try_from(pages.saturating_mul(number("page_size")?)).unwrap_or(0))
        })
    }

    /// Does something with the file, in one transaction. It may wait for others, and keeps no task but its own waiting.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        let work = || -> rusqlite::Result<T> {
            let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = work(&transaction)?;
            transaction.commit()?;
            Ok(done)
        };
        aside(work).map_err(self.error())
    }

    /// Reads something short, without keeping others from writing: what is found by a key. Nothing is waited for, unless somebody
    /// here is at the file.
    pub(crate) fn read<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        let done = match self.connection.try_lock() {
            Ok(connection) => work(&connection),
            Err(TryLockError::Poisoned(poisoned)) => work(&poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {
                aside(|| work(&self.connection.lock().unwrap_or_else(PoisonError::into_inner)))
            }
        };
        done.map_err(self.error())
    }

    /// Reads what may be long: what is looked for in everything that there is.
    pub(crate) fn scan<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        aside(|| work(&self.connection.lock().unwrap_or_else(PoisonError::into_inner))).map_err(self.error())
    }

    fn error(&self) -> impl Fn(rusqlite::Error) -> StoreError + '_ {
        |error| StoreError { path: self.path.to_string(), cause: error.to_string() }
    }
}

/// Agents whose files were removed.
impl Store {
    /// Where each of them was loaded from, and what it was called.
    pub(crate) fn retired_agents(&self) -> Result<Vec<(String, String)>, StoreError> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached("SELECT source, id FROM retired_agents ORDER BY source")?;
            statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        })
    }

    /// Notes agents that were removed, and forgets those that came back.
    pub(crate) fn retire_agents(&self, gone: &[(&str, &str)], back: &[&str]) -> Result<(), StoreError> {
        if gone.is_empty() && back.is_empty() {
            return Ok(());
        }
        self.with(|connection| {
            for (source, id) in gone {
                let text = "INSERT INTO retired_agents (source, id) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET id = ?2";
                connection.prepare_cached(text)?.execute([source, id])?;
            }
            for source in back {
                connection.prepare_cached("DELETE FROM retired_agents WHERE source = ?1")?.execute([source])?;
            }
            Ok(())
        })
    }
}

/// Keys.
impl Store {
    /// Keeps a new key.
    pub(crate) fn add_key(
        &self,
        token: &Token,
        name: &str,
        tenant: Option<&TenantName>,
        roles: &[Role],
        expires: Option<SystemTime>,
    ) -> Result<(), StoreError> {
        let roles: Vec<&str> = roles.iter().map(|role| role.as_str()).collect();
        self.with(|connection| {
            let (now, expires) = (microseconds(SystemTime::now()), expires.map(microseconds));
            let tenant = tenant.map(TenantName::as_str);
            let made = "INSERT INTO keys (id, name, digest, roles, created, expires, tenant)
                        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
            connection.execute(made, params![token.id, name, token.digest(), roles.join(" "), now, expires, tenant])?;
            Ok(())
        })
    }

    /// All keys, the oldest first.
    pub(crate) fn keys(&self) -> Result<Vec<ApiKey>, StoreError> {
        self.read(|connection| {
            connection.prepare_cached(&format!("SELECT {KEY} FROM keys ORDER BY number"))?.query_map([], key)?.collect()
        })
    }

    /// The key of an id, and the digest of what proves that somebody has it.
    pub(crate) fn key(&self, id: &str) -> Result<Option<(ApiKey, Vec<u8>)>, StoreError> {
        self.read(|connection| {
            connection
                .prepare_cached(&format!("SELECT {KEY}, digest FROM keys WHERE id = ?1"))?
                .query_row([id], |row| Ok((key(row)?, row.get(7)?)))
                .optional()
        })
    }

    /// Whether a key was ever made, also one that does not count any more.
    pub(crate) fn has_ever_had_keys(&self) -> Result<bool, StoreError> {
        self.read(|connection| {
            connection.prepare_cached("SELECT EXISTS (SELECT 1 FROM keys)")?.query_row([], |row| row.get(0))
        })
    }

    /// Takes a key back. False if there is none that counts.
    pub(crate) fn revoke_key(&self, id: &str) -> Result<bool, StoreError> {
        self.with(|connection| {
            let now = microseconds(SystemTime::now());
            Ok(connection
                .execute("UPDATE keys SET revoked = ?2 WHERE id = ?1 AND revoked IS NULL", params![id, now])?
                > 0)
        })
    }
}

/// The columns that [`key`] reads.
const KEY: &str = "id, name, roles, created, expires, revoked, tenant";

fn key(row: &Row<'_>) -> rusqlite::Result<ApiKey> {
    let roles: String = row.get(2)?;
    let tenant = match row.get::<_, Option<String>>(6)? {
        // A key of a tenant that cannot exist must not become one of the server.
        Some(name) => Some(name.parse().map_err(|error: NotAName| {
            rusqlite::Error::FromSqlConversionFailure(6, rusqlite::types::Type::Text, error.into())
        })?),
        None => None,
    };
    Ok(ApiKey {
        tenant,
        id: row.get(0)?,
        name: row.get(1)?,
        // A role of a newer version is none that this one gives.
        roles: roles.split(' ').filter_map(|role| role.parse().ok()).collect(),
        created: time(row.get(3)?),
        expires: row.get::<_, Option<i64>>(4)?.map(time),
        is_revoked: row.get::<_, Option<i64>>(5)?.is_some(),
    })
}

/// Makes the file so that its user alone can read it.
fn private(path: &Path) -> std::io::Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        hotcell_files::make_private_folder(folder)?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

/// Makes the tables of a new file, and those that an older one lacks; the error is why a file cannot be used.
fn prepare(connection: &mut Connection) -> Result<(), String> {
    let latest = LAYOUTS.len() as i64;
    let mut make = || -> rusqlite::Result<(i64, i64)> {
        connection.busy_timeout(BUSY)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "normal")?;
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let number = |name: &str| transaction.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let tables: i64 = transaction.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))?;
        let layout = number("user_version")?;
        let is_new = tables == 0 && layout == 0;
        if is_new || (number("application_id")? == APPLICATION && (0..latest).contains(&layout)) {
            for text in &LAYOUTS[usize::try_from(layout).unwrap_or(0)..] {
                transaction.execute_batch(text)?;
            }
            transaction.pragma_update(None, "application_id", APPLICATION)?;
            transaction.pragma_update(None, "user_version", latest)?;
        }
        let found = (number("application_id")?, number("user_version")?);
        transaction.commit()?;
        Ok(found)
    };
    match make().map_err(|error| error.to_string())? {
        (APPLICATION, layout) if layout == latest => Ok(()),
        (APPLICATION, layout) => Err(format!(
            "it was written by a newer version of hotcell (layout {layout}, this version reads up to {latest})"
        )),
        _ => Err("it is a SQLite database of another program".to_owned()),
    }
}

pub(crate) fn microseconds(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

pub(crate) fn time(microseconds: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(u64::try_from(microseconds).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_another_program_is_left_as_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("other.db");
        Connection::open(&file).and_then(|other| other.execute_batch("CREATE TABLE x (y)")).expect("made");
        let before = std::fs::read(&file).expect("read");
        let error = Store::open(Some(&file)).err().expect("refused").to_string();
        assert!(error.contains("another program"), "{error}");
        let tables = Connection::open(&file)
            .and_then(|other| other.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get::<_, i64>(0)));
        assert!(!before.is_empty() && tables == Ok(1));
    }
}
