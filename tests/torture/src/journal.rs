//! Looks whether texts are in a journal, whatever its layout.
//!
//! The command line does not tell which effects within a node's turn are committed, so the file is read; but as a heap
//! of texts, so that this depends on no table and on no form of an entry. A run that nothing disturbed has to have all
//! its replies there, or this has become blind.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use rusqlite::types::ValueRef;

/// All texts of a journal.
pub(crate) struct Texts(String);

impl Texts {
    /// Reads a copy, so that the journal stays exactly as the dead process left it.
    pub(crate) fn read(journal: &Path) -> Result<Self, String> {
        if !journal.exists() {
            return Ok(Texts(String::new()));
        }
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let copy = folder.path().join("copy.db");
        for part in ["", "-wal"] {
            let beside = |path: &Path| format!("{}{part}", path.display());
            if Path::new(&beside(journal)).exists() {
                fs::copy(beside(journal), beside(&copy)).map_err(|error| error.to_string())?;
            }
        }
        read(&copy).map(Texts).map_err(|error| format!("the journal cannot be read: {error}"))
    }

    pub(crate) fn has(&self, text: &str) -> bool {
        self.0.contains(text)
    }
}

fn read(path: &Path) -> rusqlite::Result<String> {
    let connection = Connection::open(path)?;
    let mut texts = String::new();
    let mut tables = connection.prepare("SELECT name FROM sqlite_master WHERE type = 'table'")?;
    let names: Vec<String> = tables.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    for name in names {
        let mut statement = connection.prepare(&format!("SELECT * FROM \"{name}\""))?;
        let columns = statement.column_count();
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            for column in 0..columns {
                if let ValueRef::Text(bytes) | ValueRef::Blob(bytes) = row.get_ref(column)? {
                    texts.push_str(&String::from_utf8_lossy(bytes));
                    texts.push('\n');
                }
            }
        }
    }
    Ok(texts)
}
