//! Opening the file, for writing or for reading what is left of it.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::migrate;
use super::tables::{APPLICATION, CALLS, INDICES, LAYOUT, REVISIONS, SCHEMA, seal};

/// How long to wait for other processes that use the file.
const BUSY: Duration = Duration::from_secs(10);

/// After how many pages of 4 KiB the log of the file is written back to it. That waits for the disk, and a page that was written
/// often since then is written back once.
pub(super) const CHECKPOINT: u32 = 4_000;
/// Bytes that the log keeps when it is begun anew: more than it has where it is written back beside commits, so that the system need not
/// take them away and give them again each time.
const LOG: u32 = 32 << 20;

/// What SQLite says of a file that is not what it wrote.
const DAMAGE: &str = "malformed";

/// How much of a file there is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Extent {
    /// All of it, as far as SQLite can tell when it opens it
    Whole,
    /// Not all: what is left is read, and nothing is written
    Rest,
}

/// A connection with our settings.
pub(super) fn connect(path: &Path, extent: Extent) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY)?;
    if extent == Extent::Rest {
        // SQLite refuses a file that is shorter than it says of itself, unless somebody is repairing it.
        connection.pragma_update(None, "writable_schema", "on")?;
        connection.pragma_update(None, "query_only", "on")?;
    }
    // A commit then survives the death of the process; a loss of power may take the last ones, never the file.
    connection.pragma_update(None, "synchronous", "normal")?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT)?;
    connection.pragma_update(None, "journal_size_limit", LOG)?;
    // A journal has no views and triggers. Those of whoever made a file would do what they like whenever we write.
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    // Plans do not depend on the values that are bound: otherwise SQLite compiles many a statement anew for each.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(48);
    Ok(connection)
}

/// Opens the file for writing: makes its tables if it is new, and brings it to this layout if it is older. Of a damaged file,
/// what is left is opened for reading. The error is why it cannot be used.
pub(super) fn open(path: &Path) -> Result<(Connection, Extent), String> {
    let begun = Instant::now();
    loop {
        match try_open(path) {
            // SQLite does not wait for others everywhere while the file is made.
            Err(error) if error.contains("database is locked") && begun.elapsed() < BUSY => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) if error.contains(DAMAGE) => {
                let rest = open_rest(path).map(|connection| (connection, Extent::Rest));
                return rest.ok_or_else(|| {
                    format!("nothing of the damaged file can be read ({error}); restore a copy of it, or move it away")
                });
            }
            other => return other.map(|connection| (connection, Extent::Whole)),
        }
    }
}

/// What is left of a damaged file of this layout, or of the one before it, which only has fewer indices. One of another layout would
/// have to be brought to this one first.
fn open_rest(path: &Path) -> Option<Connection> {
    let connection = connect(path, Extent::Rest).ok()?;
    let found = (number(&connection, "user_version").ok()?, number(&connection, "application_id").ok()?);
    (matches!(found.0, 5..=LAYOUT) && found.1 == APPLICATION).then_some(connection)
}

fn number(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, name, |row| row.get(0))
}

fn try_open(path: &Path) -> Result<Connection, String> {
    let text = |error: rusqlite::Error| error.to_string();
    let mut connection = connect(path, Extent::Whole).map_err(text)?;
    // All of it at one moment: another process may be making the tables.
    let look = || -> rusqlite::Result<(i64, i64, i64, bool)> {
        connection.execute_batch("BEGIN")?;
        let tables = connection.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))?;
        let found = (number(&connection, "user_version")?, number(&connection, "application_id")?, tables);
        let is_layout_2 = found.0 == 2 && migrate::is_layout_2(&connection)?;
        connection.execute_batch("COMMIT")?;
        Ok((found.0, found.1, found.2, is_layout_2))
    };
    let (layout, application, tables, is_layout_2) = look().map_err(text)?;
    let foreign: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_master WHERE type IN ('trigger', 'view')", [], |row| row.get(0))
        .map_err(text)?;
    if foreign > 0 {
        return Err("it has triggers or views, which no journal has; name another file".to_owned());
    }
    if layout == LAYOUT && application == APPLICATION {
        return Ok(connection);
    }
    match layout {
        0 if tables == 0 => {
            let make = || -> rusqlite::Result<()> {
                connection.pragma_update(None, "auto_vacuum", "incremental")?;
                connection.pragma_update(None, "journal_mode", "wal")?;
                // Two processes may do this at the same time.
                connection.execute_batch("BEGIN IMMEDIATE")?;
                if number(&connection, "user_version")? == 0 {
                    connection.execute_batch(SCHEMA)?;
                    connection.execute_batch(REVISIONS)?;
                    connection.execute_batch(CALLS)?;
                    connection.execute_batch(INDICES)?;
                    seal(&connection)?;
                }
                connection.execute_batch("COMMIT")
            };
            make().map_err(text)?;
        }
        2 if is_layout_2 => migrate::from_layout_2(&mut connection, path)?,
        3..LAYOUT if application == APPLICATION => migrate::from_layout_3_or_later(&mut connection)?,
        0 | 2..=LAYOUT => {
            return Err("it is a SQLite database of another program; name another file".to_owned());
        }
        newer if newer > LAYOUT => {
            return Err(format!(
                "it was written by a newer version of hotcell (layout {newer}, this version reads up to {LAYOUT}); use that \
                 version, or name another file"
            ));
        }
        older => {
            return Err(format!(
                "its layout is {older}, this version of hotcell reads 2 to {LAYOUT}; finish its runs with the version that \
                 made it, or move the file away"
            ));
        }
    }
    Ok(connection)
}
