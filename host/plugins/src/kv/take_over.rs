//! What operators do with stores: look at them, and say whose they are after a folder was moved or a plugin was used
//! before stores belonged to projects.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};

use super::owner::former;
use super::{Owner, Stores, StoresError};

/// How much a store holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Keys
    pub keys: u64,
    /// Bytes of keys and values
    pub bytes: u64,
}

impl std::fmt::Display for Amount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.keys {
            1 => f.write_str("1 key"),
            keys => write!(f, "{keys} keys"),
        }
    }
}

/// Everything in the file, without the data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The stores, by project and plugin
    pub stores: Vec<(Owner, Amount)>,
    /// What plugins of these names wrote before stores belonged to projects
    pub unclaimed: Vec<(String, Amount)>,
}

/// Data that a plugin without a store may have had before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Former {
    /// A plugin of that name wrote it before stores belonged to projects
    Unclaimed(Amount),
    /// It belongs to a plugin of that name whose folder is not there any more
    Moved {
        /// The folder that is gone
        from: PathBuf,
        /// What would have to be in its place
        to: PathBuf,
        /// How much it is
        amount: Amount,
    },
}

/// What is not taken over, and why.
#[derive(Debug, thiserror::Error)]
pub enum TakeOverError {
    /// The file cannot be used
    #[error(transparent)]
    Stores(#[from] StoresError),
    /// There is nothing to take over
    #[error("there is no such data to take over")]
    Nothing,
    /// There is data already
    #[error("plugin `{}` has data there already: {}", .0.plugin, .1)]
    Taken(Owner, Amount),
}

const AMOUNT: &str = "count(entries.key), coalesce(sum(length(CAST(entries.key AS BLOB)) + length(entries.value)), 0)";

impl Stores {
    /// All stores.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn list(&self) -> Result<Listing, StoresError> {
        let read = || -> rusqlite::Result<Listing> {
            let connection = self.connection();
            let stores = all(&connection)?.into_iter().map(|(_, owner, amount)| (owner, amount)).collect();
            let mut query = connection.prepare(
                "SELECT plugin, count(*), sum(length(CAST(key AS BLOB)) + length(value)) FROM unclaimed
                 GROUP BY plugin ORDER BY plugin",
            )?;
            let unclaimed = query.query_map([], |row| Ok((row.get(0)?, amount(row, 1)?)))?;
            Ok(Listing { stores, unclaimed: unclaimed.collect::<rusqlite::Result<_>>()? })
        };
        read().map_err(|error| self.broken(&error))
    }

    /// What a plugin may have had before, if it has no store yet.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn former(&self, owner: &Owner) -> Result<Vec<Former>, StoresError> {
        let read = || -> rusqlite::Result<Vec<Former>> {
            let connection = self.connection();
            if id(&connection, owner)?.is_some() {
                return Ok(Vec::new());
            }
            let mut found = Vec::new();
            let unclaimed = unclaimed(&connection, &owner.plugin)?;
            if unclaimed.keys > 0 {
                found.push(Former::Unclaimed(unclaimed));
            }
            for (_, other, amount) in all(&connection)? {
                if let Some((from, to)) = other.step_to(owner).filter(|_| amount.keys > 0) {
                    found.push(Former::Moved { from: from.to_owned(), to: to.to_owned(), amount });
                }
            }
            Ok(found)
        };
        read().map_err(|error| self.broken(&error))
    }

    /// How much a plugin keeps.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn amount_of(&self, owner: &Owner) -> Result<Amount, StoresError> {
        let stores = self.list()?.stores;
        Ok(stores.into_iter().find(|(one, _)| one == owner).map(|(_, amount)| amount).unwrap_or_default())
    }

    /// Deletes all that a plugin keeps. Says how much it was.
    ///
    /// # Errors
    /// When the file cannot be used. Nothing is deleted then.
    pub fn purge(&self, owner: &Owner) -> Result<Amount, StoresError> {
        let amount = self.amount_of(owner)?;
        let delete = || -> rusqlite::Result<()> {
            let mut connection = self.connection();
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            if let Some(store) = id(&transaction, owner)? {
                transaction.execute("DELETE FROM entries WHERE store = ?1", params![store])?;
                transaction.execute("DELETE FROM stores WHERE id = ?1", params![store])?;
            }
            transaction.commit()
        };
        delete().map_err(|error| self.broken(&error))?;
        Ok(amount)
    }

    /// The stores that [`Stores::relocate`] would move.
    ///
    /// # Errors
    /// When the file cannot be read, or one of the folders cannot be named.
    pub fn below(&self, folder: &Path) -> Result<Vec<(Owner, Amount)>, StoresError> {
        let folder = former(folder)?;
        let inside = |path: Option<&Path>| path.is_some_and(|path| path.starts_with(&folder));
        let mut stores = self.list()?.stores;
        stores.retain(|(owner, _)| inside(owner.project()) || inside(owner.folder()));
        Ok(stores)
    }

    /// Makes the stores of the folder `from`, and of all that was in it, those of `to`. Says how many these were. Data
    /// that is there already stays and is an error, unless `replace` says to delete it.
    ///
    /// # Errors
    /// When nothing is moved; see [`TakeOverError`].
    pub fn relocate(&self, from: &Path, to: &Path, replace: bool) -> Result<usize, TakeOverError> {
        let from = former(from)?;
        let to = to
            .canonicalize()
            .map_err(|cause| StoresError::Folder { folder: to.to_owned(), cause: cause.to_string() })?;
        let broken = |error| self.broken(&error);
        let mut connection = self.connection();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(broken)?;
        let mut moving = Vec::new();
        for (store, owner, _) in all(&transaction).map_err(broken)? {
            let moved = owner.moved(&from, &to)?;
            if moved != owner {
                moving.push((store, moved));
            }
        }
        if moving.is_empty() {
            return Err(TakeOverError::Nothing);
        }
        // Out of the way first: one of them may come where another one was.
        for (store, _) in &moving {
            let aside = "UPDATE stores SET plugin = plugin || char(0) || id WHERE id = ?1";
            transaction.execute(aside, [store]).map_err(broken)?;
        }
        for (store, owner) in &moving {
            self.make_room(&transaction, owner, replace)?;
            transaction
                .execute(
                    "UPDATE stores SET project = ?2, folder = ?3, plugin = ?4 WHERE id = ?1",
                    params![store, owner.project, owner.folder, owner.plugin],
                )
                .map_err(broken)?;
        }
        transaction.commit().map_err(broken)?;
        Ok(moving.len())
    }

    /// Gives a plugin what a plugin of its name wrote before stores belonged to projects. Whether it may have that is for
    /// the caller to know. Data that the plugin has already is treated as with [`Stores::relocate`].
    ///
    /// # Errors
    /// When nothing is taken over; see [`TakeOverError`].
    pub fn adopt(&self, owner: &Owner, replace: bool) -> Result<Amount, TakeOverError> {
        let broken = |error| self.broken(&error);
        let mut connection = self.connection();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(broken)?;
        let adopted = unclaimed(&transaction, &owner.plugin).map_err(broken)?;
        if adopted.keys == 0 {
            return Err(TakeOverError::Nothing);
        }
        self.make_room(&transaction, owner, replace)?;
        let store = made(&transaction, owner).map_err(broken)?;
        let copy = "INSERT INTO entries (store, key, value) SELECT ?1, key, value FROM unclaimed WHERE plugin = ?2";
        transaction.execute(copy, params![store, owner.plugin]).map_err(broken)?;
        transaction.execute("DELETE FROM unclaimed WHERE plugin = ?1", [&owner.plugin]).map_err(broken)?;
        transaction.commit().map_err(broken)?;
        Ok(adopted)
    }

    /// Sees to it that the owner has no store.
    fn make_room(&self, transaction: &Transaction<'_>, owner: &Owner, replace: bool) -> Result<(), TakeOverError> {
        let broken = |error| self.broken(&error);
        let Some(store) = id(transaction, owner).map_err(broken)? else { return Ok(()) };
        let sql = format!("SELECT {AMOUNT} FROM entries WHERE store = ?1");
        let there = transaction.query_row(&sql, [store], |row| amount(row, 0)).map_err(broken)?;
        if there.keys > 0 && !replace {
            return Err(TakeOverError::Taken(owner.clone(), there));
        }
        transaction.execute("DELETE FROM entries WHERE store = ?1", [store]).map_err(broken)?;
        transaction.execute("DELETE FROM stores WHERE id = ?1", [store]).map_err(broken)?;
        Ok(())
    }
}

/// The number of an owner's store, if there is one.
fn id(connection: &Connection, owner: &Owner) -> rusqlite::Result<Option<i64>> {
    let sql = "SELECT id FROM stores WHERE project = ?1 AND folder = ?2 AND plugin = ?3";
    let mut query = connection.prepare_cached(sql)?;
    query.query_row(params![owner.project, owner.folder, owner.plugin], |row| row.get(0)).optional()
}

/// The number of an owner's store, which is made if need be.
pub(super) fn made(transaction: &Transaction<'_>, owner: &Owner) -> rusqlite::Result<i64> {
    if let Some(store) = id(transaction, owner)? {
        return Ok(store);
    }
    transaction.execute(
        "INSERT INTO stores (project, folder, plugin) VALUES (?1, ?2, ?3)",
        params![owner.project, owner.folder, owner.plugin],
    )?;
    Ok(transaction.last_insert_rowid())
}

fn all(connection: &Connection) -> rusqlite::Result<Vec<(i64, Owner, Amount)>> {
    let mut query = connection.prepare(&format!(
        "SELECT stores.id, project, folder, plugin, {AMOUNT} FROM stores LEFT JOIN entries ON entries.store = stores.id
         GROUP BY stores.id ORDER BY project, folder, plugin"
    ))?;
    let stores = query.query_map([], |row| {
        let owner = Owner { project: row.get(1)?, folder: row.get(2)?, plugin: row.get(3)? };
        Ok((row.get(0)?, owner, amount(row, 4)?))
    })?;
    stores.collect()
}

fn unclaimed(connection: &Connection, plugin: &str) -> rusqlite::Result<Amount> {
    let sql = "SELECT count(*), coalesce(sum(length(CAST(key AS BLOB)) + length(value)), 0) FROM unclaimed
               WHERE plugin = ?1";
    connection.query_row(sql, [plugin], |row| amount(row, 0))
}

/// Two columns of a row, from this one on.
fn amount(row: &rusqlite::Row<'_>, column: usize) -> rusqlite::Result<Amount> {
    let number = |column| row.get(column).map(|number: i64| u64::try_from(number).unwrap_or_default());
    Ok(Amount { keys: number(column)?, bytes: number(column + 1)? })
}
