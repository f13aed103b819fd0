//! The stores of plugins: one SQLite file for all of them, each seeing only what is its own. Whose a store is says
//! [`Owner`]; decision 017 says why.

mod layout;
mod owner;
mod take_over;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hotcell_cells::{KeyValueStore, ServiceError, StoreShare};
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};

pub use self::owner::Owner;
pub use self::take_over::{Amount, Former, Listing, TakeOverError};

/// The store of an owner, as its number. An owner that has none has no entries either.
const STORE: &str = "(SELECT id FROM stores WHERE project = ?1 AND folder = ?2 AND plugin = ?3)";

/// The stores of all plugins. Cheap to clone.
#[derive(Clone)]
pub struct Stores(Arc<Opened>);

struct Opened {
    connection: Mutex<Connection>,
    /// Where they are, for messages
    file: String,
}

/// Why the stores of plugins cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoresError {
    /// The file cannot be used
    #[error("cannot use the stores of plugins ({file}): {cause}")]
    File {
        /// The file
        file: String,
        /// Why not
        cause: String,
    },
    /// A folder cannot own a store
    #[error("`{}` cannot have stores of plugins: {cause}", folder.display())]
    Folder {
        /// The folder
        folder: PathBuf,
        /// Why not
        cause: String,
    },
}

impl Stores {
    /// The stores in a file, or in memory where none is named. The file is made when it is not there, and brought up to
    /// date when an older hotcell wrote it.
    ///
    /// # Errors
    /// When the file cannot be used, or is none of stores.
    pub fn open(path: Option<&Path>) -> Result<Self, StoresError> {
        let file = path.map_or_else(|| "in memory".to_owned(), |path| path.display().to_string());
        let failed = |cause: String| StoresError::File { file: file.clone(), cause };
        let mut connection = connect(path).map_err(|error| failed(error.to_string()))?;
        layout::prepare(&mut connection).map_err(failed)?;
        Ok(Stores(Arc::new(Opened { connection: Mutex::new(connection), file })))
    }

    /// The store of one plugin. It is made when something is written into it.
    pub fn of(&self, owner: Owner) -> Arc<dyn KeyValueStore> {
        Arc::new(Store { owner, stores: self.clone() })
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.0.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn broken(&self, error: &rusqlite::Error) -> StoresError {
        StoresError::File { file: self.0.file.clone(), cause: error.to_string() }
    }
}

fn connect(file: Option<&Path>) -> rusqlite::Result<Connection> {
    let connection = match file {
        Some(file) => {
            // Where it cannot be made, opening the file says so.
            let _ = make_private(file);
            Connection::open(file)?
        }
        None => Connection::open_in_memory()?,
    };
    connection.busy_timeout(std::time::Duration::from_secs(10))?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "normal")?;
    Ok(connection)
}

/// Makes the file, and the folder that it is in, so that nobody but their user reads what plugins keep. A file that others can
/// read since an earlier version is taken back from them.
fn make_private(file: &Path) -> std::io::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};

        if let Some(folder) = folder {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        std::fs::OpenOptions::new().append(true).create(true).mode(0o600).open(file)?;
        // What SQLite puts beside the file has the permissions of the file.
        for name in ["", "-wal", "-shm"] {
            let mut path = file.as_os_str().to_owned();
            path.push(name);
            let path = PathBuf::from(path);
            if path
                .symlink_metadata()
                .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o077 != 0)
            {
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
            }
        }
    }
    #[cfg(not(unix))]
    folder.map_or(Ok(()), std::fs::create_dir_all)?;
    Ok(())
}

struct Store {
    owner: Owner,
    stores: Stores,
}

fn broken(error: rusqlite::Error) -> ServiceError {
    ServiceError::Unavailable(format!("the store cannot be used: {error}"))
}

impl KeyValueStore for Store {
    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, ServiceError> {
        StoreShare::check_key(key)?;
        let connection = self.stores.connection();
        let sql = format!("SELECT value FROM entries WHERE store = {STORE} AND key = ?4");
        let mut query = connection.prepare_cached(&sql).map_err(broken)?;
        let Owner { project, folder, plugin } = &self.owner;
        query.query_row(params![project, folder, plugin, key], |row| row.get(0)).optional().map_err(broken)
    }

    fn set(&self, key: &str, value: &[u8]) -> Result<(), ServiceError> {
        StoreShare::check_key(key)?;
        let mut connection = self.stores.connection();
        // A writer from its beginning: two that both began as readers could not both go on.
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(broken)?;
        let store = take_over::made(&transaction, &self.owner).map_err(broken)?;
        let (keys, bytes): (i64, i64) = transaction
            .query_row(
                "SELECT count(*), coalesce(sum(length(CAST(key AS BLOB)) + length(value)), 0) FROM entries
                 WHERE store = ?1 AND key <> ?2",
                params![store, key],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .map_err(broken)?;
        let number = |number: i64| usize::try_from(number).unwrap_or(usize::MAX);
        StoreShare::check_entry(key, value, number(keys), number(bytes))?;
        transaction
            .execute(
                "INSERT INTO entries (store, key, value) VALUES (?1, ?2, ?3)
                 ON CONFLICT (store, key) DO UPDATE SET value = excluded.value",
                params![store, key, value],
            )
            .map_err(broken)?;
        transaction.commit().map_err(broken)
    }

    fn delete(&self, key: &str) -> Result<(), ServiceError> {
        StoreShare::check_key(key)?;
        let connection = self.stores.connection();
        let sql = format!("DELETE FROM entries WHERE store = {STORE} AND key = ?4");
        let Owner { project, folder, plugin } = &self.owner;
        connection.execute(&sql, params![project, folder, plugin, key]).map(drop).map_err(broken)
    }

    fn keys(&self, prefix: &str, limit: usize) -> Result<Vec<String>, ServiceError> {
        let connection = self.stores.connection();
        let sql = format!(
            "SELECT key FROM entries WHERE store = {STORE} AND key >= ?4 AND substr(key, 1, length(?4)) = ?4
             ORDER BY key LIMIT ?5"
        );
        let mut query = connection.prepare_cached(&sql).map_err(broken)?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let Owner { project, folder, plugin } = &self.owner;
        let keys =
            query.query_map(params![project, folder, plugin, prefix, limit], |row| row.get(0)).map_err(broken)?;
        keys.collect::<rusqlite::Result<_>>().map_err(broken)
    }
}
