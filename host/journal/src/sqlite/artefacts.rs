//! Revisions and their artefacts in the file.

use rusqlite::{Connection, OptionalExtension, params};

use super::Shared;
use crate::artefact::{Artefact, Revision, digest};
use crate::store::JournalError;

/// Bytes from which on artefacts are packed.
const PACKED_FROM: usize = 512;
/// How hard they are packed: as fast as possible.
const LEVEL: i32 = 1;

impl Shared {
    pub(super) fn keep(&self, revision: &Revision) -> Result<(), JournalError> {
        let written = self.error("written");
        // Packed before anybody has to wait for it.
        let has = |digest: &str| self.read(|connection| whole(connection, digest));
        let mut rows = Vec::new();
        for artefact in &revision.artefacts {
            if !has(artefact.digest())? {
                rows.push((artefact, pack(artefact.bytes())));
            }
        }
        let mut connection = self.connection();
        let transaction = self.begin(&mut connection)?;
        let add = || -> rusqlite::Result<()> {
            for (artefact, (bytes, packed)) in &rows {
                // Whoever has it whole repairs what is damaged.
                transaction
                    .prepare_cached(
                        "INSERT INTO artefacts (digest, size, packed, bytes) VALUES (?1, ?2, ?3, ?4)
                         ON CONFLICT (digest) DO UPDATE SET size = ?2, packed = ?3, bytes = ?4",
                    )?
                    .execute(params![artefact.digest(), artefact.bytes().len() as i64, packed, bytes])?;
            }
            transaction.execute("INSERT OR IGNORE INTO revisions (digest) VALUES (?1)", [&revision.digest])?;
            for artefact in &revision.artefacts {
                transaction
                    .prepare_cached(
                        "INSERT OR IGNORE INTO parts (revision, artefact)
                         SELECT revisions.number, artefacts.number FROM revisions, artefacts
                         WHERE revisions.digest = ?1 AND artefacts.digest = ?2",
                    )?
                    .execute((&revision.digest, artefact.digest()))?;
            }
            Ok(())
        };
        add().map_err(&written)?;
        // Somebody may have removed, since it was looked at, what needed not be written.
        let there = revision.artefacts.iter().map(|artefact| is_there(&transaction, artefact));
        let there: Vec<bool> = there.collect::<rusqlite::Result<_>>().map_err(&written)?;
        if there.contains(&false) {
            drop(transaction);
            drop(connection);
            return self.keep(revision);
        }
        transaction.commit().map_err(written)
    }

    pub(super) fn artefact(&self, wanted: &str) -> Result<Vec<u8>, JournalError> {
        let row = self.read(|connection| row(connection, wanted))?;
        let (size, packed, bytes) = row.ok_or_else(|| JournalError::NotKept(wanted.to_owned()))?;
        unpack(wanted, size, packed, bytes).ok_or_else(|| JournalError::DamagedArtefact(wanted.to_owned()))
    }
}

/// A row of an artefact: its size, whether it is packed, and its bytes unless they are something else.
type Stored = (i64, bool, Option<Vec<u8>>);

fn row(connection: &Connection, digest: &str) -> rusqlite::Result<Option<Stored>> {
    connection
        .prepare_cached("SELECT size, packed, bytes FROM artefacts WHERE digest = ?1")?
        .query_row([digest], |row| {
            let bytes = row.get_ref(2)?.as_blob().ok().map(<[u8]>::to_vec);
            Ok((row.get(0)?, row.get(1)?, bytes))
        })
        .optional()
}

fn whole(connection: &Connection, digest: &str) -> rusqlite::Result<bool> {
    let row = row(connection, digest)?;
    Ok(row.and_then(|(size, packed, bytes)| unpack(digest, size, packed, bytes)).is_some())
}

fn is_there(connection: &Connection, artefact: &Artefact) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM artefacts WHERE digest = ?1)")?
        .query_row([artefact.digest()], |row| row.get(0))
}

fn pack(bytes: &[u8]) -> (Vec<u8>, bool) {
    let packed = (bytes.len() >= PACKED_FROM).then(|| zstd::bulk::compress(bytes, LEVEL).ok()).flatten();
    match packed.filter(|packed| packed.len() < bytes.len()) {
        Some(packed) => (packed, true),
        None => (bytes.to_vec(), false),
    }
}

/// The bytes, if they are those of the digest.
fn unpack(wanted: &str, size: i64, packed: bool, bytes: Option<Vec<u8>>) -> Option<Vec<u8>> {
    let (bytes, size) = (bytes?, usize::try_from(size).ok()?);
    let bytes = match packed {
        // What is damaged may say any size: only as much is made room for as such bytes can hold.
        true if size / 32_768 > bytes.len() => return None,
        true => zstd::bulk::decompress(&bytes, size).ok()?,
        false => bytes,
    };
    (bytes.len() == size && digest(&bytes) == wanted).then_some(bytes)
}

/// The number of a revision that is kept.
pub(super) fn revision(connection: &Connection, digest: &str) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT number FROM revisions WHERE digest = ?1")?
        .query_row([digest], |row| row.get(0))
        .optional()
}

/// Moves a run to a revision; `false` if that is not kept. The run goes on needing the one before.
pub(super) fn revise(connection: &Connection, run: i64, digest: &str) -> rusqlite::Result<bool> {
    let Some(number) = revision(connection, digest)? else { return Ok(false) };
    connection
        .prepare_cached(
            "INSERT OR IGNORE INTO former (run, revision) SELECT number, revision FROM runs
             WHERE number = ?1 AND revision IS NOT NULL",
        )?
        .execute([run])?;
    connection.prepare_cached("UPDATE runs SET revision = ?2 WHERE number = ?1")?.execute((run, number))?;
    Ok(true)
}

/// Revisions that no run needs any more.
const UNNEEDED: &str = "revisions WHERE number NOT IN
    (SELECT revision FROM runs WHERE revision IS NOT NULL UNION SELECT revision FROM former)";

/// Whether there are revisions that no run needs any more.
pub(super) fn are_unneeded(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row(&format!("SELECT EXISTS (SELECT 1 FROM {UNNEEDED})"), [], |row| row.get(0))
}

/// Removes what no run needs any more.
pub(super) fn sweep(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(&format!(
        "DELETE FROM {UNNEEDED};
         DELETE FROM parts WHERE revision NOT IN (SELECT number FROM revisions);
         DELETE FROM artefacts WHERE number NOT IN (SELECT artefact FROM parts);",
    ))
}
