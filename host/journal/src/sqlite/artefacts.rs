//! Revisions and their artefacts in the file.

use rusqlite::{Connection, OptionalExtension, params};

use super::Shared;
use crate::artefact::{Artefact, Revision, digest};
use crate::store::JournalError;

/// Bytes from which on artefacts are packed.
const PACKED_FROM: usize = 512;
/// How hard they are packed: as fast as possible.
const LEVEL: i32 = 1;
/// Bytes of one that is unpacked: more than any file that is read has, and no more than whoever sent a journal may have us take.
const MOST: usize = 256 << 20;

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
    unpack_within(MOST, wanted, size, packed, bytes)
}

fn unpack_within(most: usize, wanted: &str, size: i64, packed: bool, bytes: Option<Vec<u8>>) -> Option<Vec<u8>> {
    let (bytes, size) = (bytes?, usize::try_from(size).ok()?);
    let bytes = match packed {
        true if size > most => return None,
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

/// Of a revision: no run needs it any more.
const UNNEEDED: &str = "NOT EXISTS (SELECT 1 FROM runs WHERE runs.revision = revisions.number)
    AND NOT EXISTS (SELECT 1 FROM former WHERE former.revision = revisions.number)";

/// The revisions that no run needs any more, by their numbers.
pub(super) fn unneeded(connection: &Connection) -> rusqlite::Result<Vec<i64>> {
    connection
        .prepare(&format!("SELECT number FROM revisions WHERE {UNNEEDED}"))?
        .query_map([], |row| row.get(0))?
        .collect()
}

/// Removes a revision with the artefacts that no other one has, unless a run has come to need it. Only what belongs to it is looked at.
pub(super) fn remove(connection: &Connection, revision: i64) -> rusqlite::Result<()> {
    if connection.execute(&format!("DELETE FROM revisions WHERE number = ?1 AND {UNNEEDED}"), [revision])? == 0 {
        return Ok(());
    }
    let artefacts: Vec<i64> = connection
        .prepare("SELECT artefact FROM parts WHERE revision = ?1")?
        .query_map([revision], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    connection.execute("DELETE FROM parts WHERE revision = ?1", [revision])?;
    let mut remove = connection.prepare(REMOVE_ARTEFACT)?;
    for artefact in artefacts {
        remove.execute([artefact])?;
    }
    Ok(())
}

/// Removes an artefact that no revision has.
const REMOVE_ARTEFACT: &str = "DELETE FROM artefacts WHERE number = ?1
    AND NOT EXISTS (SELECT 1 FROM parts WHERE parts.artefact = artefacts.number)";

#[cfg(test)]
mod tests {
    use super::super::SqliteStore;
    use super::{REMOVE_ARTEFACT, UNNEEDED, digest, pack, unpack_within};

    /// Whoever commits waits meanwhile, however many runs there are.
    #[test]
    fn neither_all_runs_nor_all_revisions_are_looked_at_for_one_that_goes() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = SqliteStore::open(&folder.path().join("runs.db")).expect("opened");
        let remove_revision = format!("DELETE FROM revisions WHERE number = ?1 AND {UNNEEDED}");
        for text in [remove_revision.as_str(), REMOVE_ARTEFACT] {
            let steps = store.shared.plan(text);
            assert!(steps.len() > 1 && steps.iter().all(|step| !step.starts_with("SCAN")), "{steps:?}");
        }
        // Each revision is looked up among the runs.
        let steps = store.shared.plan(&format!("SELECT number FROM revisions WHERE {UNNEEDED}"));
        let scanned: Vec<&String> = steps.iter().filter(|step| step.starts_with("SCAN")).collect();
        assert!(matches!(scanned[..], [revisions] if revisions.starts_with("SCAN revisions")), "{steps:?}");
    }

    #[test]
    fn what_is_packed_takes_so_much_memory_and_no_more() {
        let bytes = vec![0; 100_000];
        let (packed, is_packed) = pack(&bytes);
        assert!(is_packed && packed.len() < 1000);
        let unpacked = |most| unpack_within(most, &digest(&bytes), 100_000, is_packed, Some(packed.clone()));
        assert_eq!(unpacked(100_000), Some(bytes.clone()));
        assert_eq!(unpacked(99_999), None);
    }
}
