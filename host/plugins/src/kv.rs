//! The stores of plugins: one SQLite file for all of them, each seeing only what is its own.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hotcell_cells::{KeyValueStore, ServiceError};
use rusqlite::{Connection, OptionalExtension as _, params};

/// Bytes of a key.
const MAX_KEY: usize = 256;
/// Bytes of a value.
const MAX_VALUE: usize = 1 << 20;
/// Bytes that the keys and values of one plugin may have together.
const MAX_SHARE: i64 = 64 << 20;
/// Keys of one plugin.
const MAX_KEYS: i64 = 10_000;

/// The stores of all plugins. Cheap to clone.
#[derive(Clone)]
pub struct Stores(Arc<Mutex<Connection>>);

/// Why the stores of plugins cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the stores of plugins ({file}): {cause}")]
pub struct StoresError {
    file: String,
    cause: String,
}

impl Stores {
    /// The stores in a file, or in memory where none is named. The file is made when it is not there.
    ///
    /// # Errors
    /// When the file cannot be used.
    pub fn open(file: Option<&Path>) -> Result<Self, StoresError> {
        Self::connect(file).map_err(|cause| StoresError {
            file: file.map_or_else(|| "in memory".to_owned(), |file| file.display().to_string()),
            cause: cause.to_string(),
        })
    }

    fn connect(file: Option<&Path>) -> rusqlite::Result<Self> {
        let connection = match file {
            Some(file) => {
                // Where it cannot be made, opening the file says so.
                let _ = file.parent().map(std::fs::create_dir_all);
                Connection::open(file)?
            }
            None => Connection::open_in_memory()?,
        };
        connection.busy_timeout(std::time::Duration::from_secs(5))?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "normal")?;
        connection.execute_batch(
            "CREATE TABLE IF NOT EXISTS entries (
                 owner TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, PRIMARY KEY (owner, key)
             ) WITHOUT ROWID;",
        )?;
        Ok(Stores(Arc::new(Mutex::new(connection))))
    }

    /// The store of one plugin.
    pub fn of(&self, plugin: &str) -> Arc<dyn KeyValueStore> {
        Arc::new(Store { owner: plugin.to_owned(), stores: self.clone() })
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Store {
    owner: String,
    stores: Stores,
}

fn broken(error: rusqlite::Error) -> ServiceError {
    ServiceError::Unavailable(format!("the store cannot be used: {error}"))
}

fn check_key(key: &str) -> Result<(), ServiceError> {
    if key.is_empty() || key.len() > MAX_KEY {
        return Err(ServiceError::InvalidInput(format!("a key has 1 to {MAX_KEY} bytes, not {}", key.len())));
    }
    Ok(())
}

impl KeyValueStore for Store {
    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, ServiceError> {
        check_key(key)?;
        let connection = self.stores.connection();
        connection
            .query_row("SELECT value FROM entries WHERE owner = ?1 AND key = ?2", params![self.owner, key], |row| {
                row.get(0)
            })
            .optional()
            .map_err(broken)
    }

    fn set(&self, key: &str, value: &[u8]) -> Result<(), ServiceError> {
        check_key(key)?;
        if value.len() > MAX_VALUE {
            let text = format!("a value has at most {MAX_VALUE} bytes, not {}", value.len());
            return Err(ServiceError::InvalidInput(text));
        }
        let mut connection = self.stores.connection();
        let transaction = connection.transaction().map_err(broken)?;
        let (keys, bytes): (i64, i64) = transaction
            .query_row(
                "SELECT count(*), coalesce(sum(length(CAST(key AS BLOB)) + length(value)), 0) FROM entries
                 WHERE owner = ?1 AND key <> ?2",
                params![self.owner, key],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .map_err(broken)?;
        if keys >= MAX_KEYS || bytes + (key.len() + value.len()) as i64 > MAX_SHARE {
            let text = format!("the plugin's store is full: {MAX_KEYS} keys and {MAX_SHARE} bytes are its share");
            return Err(ServiceError::Unavailable(text));
        }
        transaction
            .execute(
                "INSERT INTO entries (owner, key, value) VALUES (?1, ?2, ?3)
                 ON CONFLICT (owner, key) DO UPDATE SET value = excluded.value",
                params![self.owner, key, value],
            )
            .map_err(broken)?;
        transaction.commit().map_err(broken)
    }

    fn delete(&self, key: &str) -> Result<(), ServiceError> {
        check_key(key)?;
        let connection = self.stores.connection();
        let deleted = connection.execute("DELETE FROM entries WHERE owner = ?1 AND key = ?2", params![self.owner, key]);
        deleted.map(|_| ()).map_err(broken)
    }

    fn keys(&self, prefix: &str, limit: usize) -> Result<Vec<String>, ServiceError> {
        let connection = self.stores.connection();
        let mut query = connection
            .prepare_cached(
                "SELECT key FROM entries WHERE owner = ?1 AND key >= ?2 AND substr(key, 1, length(?2)) = ?2
                 ORDER BY key LIMIT ?3",
            )
            .map_err(broken)?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let keys = query.query_map(params![self.owner, prefix, limit], |row| row.get(0)).map_err(broken)?;
        keys.collect::<rusqlite::Result<_>>().map_err(broken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_see_only_their_own_and_what_is_set_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("stores.db");
        let stores = Stores::open(Some(&file)).unwrap();
        let (a, b) = (stores.of("a"), stores.of("b"));
        a.set("x/1", b"one").unwrap();
        a.set("x/2", b"\xff").unwrap();
        a.set("y", b"").unwrap();
        b.set("x/1", b"other").unwrap();
        assert_eq!(a.keys("x/", 10).unwrap(), ["x/1", "x/2"]);
        assert_eq!(a.keys("", 2).unwrap(), ["x/1", "x/2"]);
        a.delete("x/1").unwrap();
        drop((a, b, stores));
        let stores = Stores::open(Some(&file)).unwrap();
        assert_eq!(stores.of("a").get("x/1").unwrap(), None);
        assert_eq!(stores.of("a").get("x/2").unwrap(), Some(vec![0xff]));
        assert_eq!(stores.of("b").get("x/1").unwrap(), Some(b"other".to_vec()));
    }

    #[test]
    fn attack_39_40_a_plugin_has_a_share_and_no_more() {
        let stores = Stores::open(None).unwrap();
        let store = stores.of("greedy");
        let full = |result: Result<(), ServiceError>| matches!(result, Err(ServiceError::Unavailable(_)));
        for number in 0..64 {
            let stored = store.set(&format!("{number}"), &vec![0; MAX_VALUE]);
            assert_eq!(stored.is_ok(), number < 63, "{number}: {stored:?}");
        }
        assert!(full(store.set("more", &vec![0; MAX_VALUE])));
        assert!(store.set("0", b"small").is_ok());
        assert!(stores.of("other").set("x", b"y").is_ok());
        for (key, value) in [("", 0), (&*"k".repeat(257), 0), ("k", MAX_VALUE + 1)] {
            assert!(matches!(store.set(key, &vec![0; value]), Err(ServiceError::InvalidInput(_))));
        }
        let many = stores.of("many");
        for number in 0..MAX_KEYS {
            many.set(&number.to_string(), b"").unwrap();
        }
        assert!(full(many.set("one more", b"")));
        assert!(many.set("0", b"x").is_ok());
    }
}
