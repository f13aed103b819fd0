//! The tables of the file, and how files of an older layout come to have them.

use rusqlite::{Connection, TransactionBehavior};

/// The number of the layout, as SQLite's `user_version`. Before it there was one table by the names of plugins.
const LAYOUT: i64 = 1;

/// What the names that are used below hold.
const TABLES: &str = "
    CREATE TABLE stores (
        id INTEGER PRIMARY KEY,
        project TEXT NOT NULL,
        folder TEXT NOT NULL,
        plugin TEXT NOT NULL,
        UNIQUE (project, folder, plugin)
    );
    CREATE TABLE entries (
        store INTEGER NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, PRIMARY KEY (store, key)
    ) WITHOUT ROWID;
";

/// Data of the first layout. No plugin can read it.
const UNCLAIMED: &str = "
    CREATE TABLE IF NOT EXISTS unclaimed (
        plugin TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, PRIMARY KEY (plugin, key)
    ) WITHOUT ROWID;
";

/// Makes the tables, or brings those that are there up to date. All of it happens or nothing.
pub(super) fn prepare(connection: &mut Connection) -> Result<(), String> {
    let failed = |error: rusqlite::Error| error.to_string();
    if layout(connection).map_err(failed)? == LAYOUT {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    // Another process may have done it meanwhile.
    match layout(&transaction).map_err(failed)? {
        LAYOUT => return Ok(()),
        0 => {}
        other => return Err(format!("it has layout {other}, and this hotcell knows none beyond {LAYOUT}")),
    }
    let tables = tables(&transaction).map_err(failed)?;
    match tables.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {}
        // Who wrote what is not known: only the name of the plugin is. So it belongs to nobody until somebody says whose
        // it is (decision 017).
        ["entries"] => transaction
            .execute_batch("ALTER TABLE entries RENAME TO unclaimed; ALTER TABLE unclaimed RENAME owner TO plugin;")
            .map_err(|error| format!("it is not a store file: {error}"))?,
        _ => return Err("it is a database of something else".to_owned()),
    }
    transaction.execute_batch(TABLES).map_err(failed)?;
    transaction.execute_batch(UNCLAIMED).map_err(failed)?;
    transaction.pragma_update(None, "user_version", LAYOUT).map_err(failed)?;
    transaction.commit().map_err(failed)
}

fn layout(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

fn tables(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut query = connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")?;
    let names = query.query_map([], |row| row.get(0))?;
    names.collect()
}
