//! Attachments in the server's file, and which runs were given them.

use std::time::SystemTime;

use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde::Serialize;
use utoipa::ToSchema;

use super::reference::Digest;
use crate::rfc3339;
use crate::store::{Store, StoreError, microseconds, time};

/// Attachments that the server keeps.
pub(crate) const MOST_KEPT: i64 = 10_000;
/// Bytes that they have together.
pub(crate) const MOST_BYTES: i64 = 1 << 30;

/// A document that is kept for people.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct Attachment {
    /// What an input, a value of a state or an answer has in it to refer to the attachment
    reference: String,
    /// `sha256:` and the SHA-256 digest of its bytes, as 64 lower-case hexadecimal digits
    digest: String,
    /// The name of its file, if it was sent with one
    name: Option<String>,
    /// Its media type, as whoever sent it says
    media_type: String,
    /// How many bytes it has
    bytes: u64,
    /// When it was first sent
    #[schema(format = DateTime)]
    created_at: String,
}

/// What whoever sends an attachment says of it.
pub(crate) struct Said {
    pub(crate) name: Option<String>,
    pub(crate) media_type: String,
}

/// What became of an attachment that was sent.
pub(crate) enum Kept {
    /// It is kept
    New(Attachment),
    /// It was kept before
    Before(Attachment),
    /// There is no room for it
    Full,
}

/// The document that an attachment is.
#[derive(Debug, PartialEq)]
pub(crate) struct Document {
    /// The name of its file
    pub(crate) name: Option<String>,
    pub(crate) bytes: Vec<u8>,
}

/// A run that was given an attachment.
pub(super) struct Given {
    pub(super) run: String,
    /// Its thread, whose later runs go on with its state
    pub(super) thread: Option<String>,
    pub(super) at: SystemTime,
}

impl Store {
    /// Keeps an attachment. What was said of it when it was first sent stays.
    pub(super) fn keep_attachment(
        &self,
        digest: &Digest,
        said: &Said,
        bytes: &[u8],
        now: SystemTime,
    ) -> Result<Kept, StoreError> {
        let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        let now = microseconds(now);
        self.with(|connection| {
            let again = "UPDATE attachments SET sent = ?2 WHERE digest = ?1";
            if connection.prepare_cached(again)?.execute(params![digest.as_bytes(), now])? > 0 {
                return Ok(Kept::Before(found(connection, digest)?));
            }
            let count = "SELECT count(*), coalesce(sum(size), 0) FROM attachments";
            let (count, sum) = connection
                .prepare_cached(count)?
                .query_row([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))?;
            if count >= MOST_KEPT || sum.saturating_add(size) > MOST_BYTES {
                return Ok(Kept::Full);
            }
            connection
                .prepare_cached(
                    "INSERT INTO attachments (digest, size, created, sent, media_type, name, bytes)
                     VALUES (?1, ?2, ?3, ?3, ?4, ?5, ?6)",
                )?
                .execute(params![digest.as_bytes(), size, now, said.media_type, said.name, bytes])?;
            Ok(Kept::New(found(connection, digest)?))
        })
    }

    /// Those of these attachments that are kept.
    pub(super) fn attachments(&self, digests: &[Digest]) -> Result<Vec<Attachment>, StoreError> {
        self.read(|connection| {
            let kept = digests.iter().map(|digest| found(connection, digest).optional());
            Ok(kept.collect::<rusqlite::Result<Vec<_>>>()?.into_iter().flatten().collect())
        })
    }

    /// The first of these attachments that is not kept.
    pub(super) fn missing_attachment(&self, digests: &[Digest]) -> Result<Option<Digest>, StoreError> {
        self.read(|connection| {
            let mut is_kept =
                connection.prepare_cached("SELECT EXISTS (SELECT 1 FROM attachments WHERE digest = ?1)")?;
            for digest in digests {
                if !is_kept.query_row([digest.as_bytes()], |row| row.get::<_, bool>(0))? {
                    return Ok(Some(*digest));
                }
            }
            Ok(None)
        })
    }

    /// What an attachment is a download of.
    pub(super) fn attached_document(&self, digest: &Digest) -> Result<Option<Document>, StoreError> {
        self.scan(|connection| {
            connection
                .prepare_cached("SELECT name, bytes FROM attachments WHERE digest = ?1")?
                .query_row([digest.as_bytes()], |row| Ok(Document { name: row.get(0)?, bytes: row.get(1)? }))
                .optional()
        })
    }

    /// Whether any attachment is kept.
    pub(super) fn has_attachments(&self) -> Result<bool, StoreError> {
        self.read(|connection| {
            connection.prepare_cached("SELECT EXISTS (SELECT 1 FROM attachments)")?.query_row([], |row| row.get(0))
        })
    }

    /// Notes that a run is given attachments. Gives the first of them that is not kept; the others are noted all the same.
    pub(super) fn give_attachments(
        &self,
        digests: &[Digest],
        (run, thread): (&str, Option<&str>),
        now: SystemTime,
    ) -> Result<Option<Digest>, StoreError> {
        let now = microseconds(now);
        self.with(|connection| {
            let mut give = connection.prepare_cached(
                "INSERT INTO attached (run, digest, thread, at)
                 SELECT ?1, digest, ?3, ?4 FROM attachments WHERE digest = ?2
                 ON CONFLICT (run, digest) DO UPDATE SET at = excluded.at",
            )?;
            let mut missing = None;
            for digest in digests {
                if give.execute(params![run, digest.as_bytes(), thread, now])? == 0 {
                    missing = missing.or(Some(*digest));
                }
            }
            Ok(missing)
        })
    }

    /// The attachments that a run was given, or one of its thread.
    pub(super) fn attachments_given_to(&self, run: &str, thread: Option<&str>) -> Result<Vec<Digest>, StoreError> {
        self.read(|connection| {
            connection
                .prepare_cached("SELECT DISTINCT digest FROM attached WHERE run = ?1 OR thread = ?2")?
                .query_map(params![run, thread], |row| row.get(0).map(Digest::new))?
                .collect()
        })
    }
}

/// Looking for those that nobody needs.
impl Store {
    /// Attachments with higher numbers than that which were not sent again since, by their numbers.
    pub(super) fn old_attachments(
        &self,
        after: i64,
        since: SystemTime,
        limit: usize,
    ) -> Result<Vec<(i64, Digest)>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.scan(|connection| {
            connection
                .prepare_cached(
                    "SELECT number, digest FROM attachments WHERE number > ?1 AND sent < ?2 ORDER BY number LIMIT ?3",
                )?
                .query_map(params![after, microseconds(since), limit], |row| {
                    Ok((row.get(0)?, Digest::new(row.get(1)?)))
                })?
                .collect()
        })
    }

    /// Runs that were given an attachment, in the order of their names from after one on.
    pub(super) fn runs_given(&self, digest: &Digest, after: &str, limit: usize) -> Result<Vec<Given>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT run, thread, at FROM attached WHERE digest = ?1 AND run > ?2 ORDER BY run LIMIT ?3",
                )?
                .query_map(params![digest.as_bytes(), after, limit], |row| {
                    Ok(Given { run: row.get(0)?, thread: row.get(1)?, at: time(row.get(2)?) })
                })?
                .collect()
        })
    }

    /// Forgets that a run was given an attachment, unless it was given it again since.
    pub(super) fn forget_given(&self, digest: &Digest, run: &str, since: SystemTime) -> Result<(), StoreError> {
        self.with(|connection| {
            let forget = "DELETE FROM attached WHERE run = ?1 AND digest = ?2 AND at < ?3";
            connection.prepare_cached(forget)?.execute(params![run, digest.as_bytes(), microseconds(since)]).map(drop)
        })
    }

    /// Forgets an attachment unless it was sent since, or somebody was given it meanwhile.
    pub(super) fn forget_attachment(&self, number: i64, since: SystemTime) -> Result<(), StoreError> {
        self.with(|connection| {
            let forget = "DELETE FROM attachments WHERE number = ?1 AND sent < ?2
                          AND NOT EXISTS (SELECT 1 FROM attached WHERE attached.digest = attachments.digest)";
            connection.prepare_cached(forget)?.execute(params![number, microseconds(since)]).map(drop)
        })
    }
}

/// An attachment that is kept.
fn found(connection: &Connection, digest: &Digest) -> rusqlite::Result<Attachment> {
    let find = "SELECT size, created, media_type, name FROM attachments WHERE digest = ?1";
    connection.prepare_cached(find)?.query_row([digest.as_bytes()], |row: &Row<'_>| {
        Ok(Attachment {
            reference: digest.reference(),
            digest: digest.to_string(),
            name: row.get(3)?,
            media_type: row.get(2)?,
            bytes: u64::try_from(row.get::<_, i64>(0)?).unwrap_or(0),
            created_at: rfc3339::time(time(row.get(1)?)),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(store: &Store, bytes: &[u8], name: &str) -> Kept {
        let said = Said { name: Some(name.to_owned()), media_type: "text/plain".to_owned() };
        store.keep_attachment(&Digest::of(bytes), &said, bytes, SystemTime::now()).expect("asked")
    }

    #[test]
    fn the_same_bytes_are_kept_once_under_their_first_name() {
        let store = Store::open(None).expect("opened");
        assert!(!store.has_attachments().expect("read"));
        let Kept::New(first) = keep(&store, b"one", "one.txt") else { panic!("it is new") };
        let Kept::Before(again) = keep(&store, b"one", "other.txt") else { panic!("it is there") };
        assert_eq!((&first, first.name.as_deref(), first.bytes), (&again, Some("one.txt"), 3));
        let (one, none) = (Digest::of(b"one"), Digest::of(b"none"));
        assert_eq!(store.attachments(&[none, one]).expect("read"), [first]);
        assert_eq!(store.missing_attachment(&[one, none]).expect("read"), Some(none));
        assert_eq!(store.missing_attachment(&[one]).expect("read"), None);
        let kept = store.attached_document(&one).expect("read");
        assert_eq!(kept, Some(Document { name: Some("one.txt".to_owned()), bytes: b"one".to_vec() }));
        assert_eq!(store.attached_document(&none).expect("read"), None);
    }

    #[test]
    fn there_is_room_for_so_many_bytes_and_attachments_and_no_more() {
        let store = Store::open(None).expect("opened");
        assert!(matches!(keep(&store, b"one", "one"), Kept::New(_)));
        let set = |size: i64| {
            let set = |connection: &Connection| connection.execute("UPDATE attachments SET size = ?1", [size]);
            store.with(set).expect("set")
        };
        set(MOST_BYTES - 3);
        assert!(matches!(keep(&store, b"four", "four"), Kept::Full));
        assert!(matches!(keep(&store, b"one", "one"), Kept::Before(_)), "what is there needs no room");
        assert!(matches!(keep(&store, b"two", "two"), Kept::New(_)));
        assert!(matches!(keep(&store, b"3", "three"), Kept::Full));
        set(0);
        let fill = format!(
            "WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < {MOST_KEPT} - 2)
             INSERT INTO attachments (digest, size, created, sent, media_type, bytes)
             SELECT CAST(i AS BLOB), 0, 0, 0, 'text/plain', x'' FROM n"
        );
        store.with(|connection| connection.execute_batch(&fill)).expect("filled");
        assert!(matches!(keep(&store, b"last", "last"), Kept::New(_)));
        assert!(matches!(keep(&store, b"one more", "more"), Kept::Full));
    }

    #[test]
    fn what_a_run_was_given_is_not_forgotten_and_no_run_is_given_what_is_not_kept() {
        let store = Store::open(None).expect("opened");
        let (one, two, none) = (Digest::of(b"one"), Digest::of(b"two"), Digest::of(b"none"));
        for bytes in [b"one", b"two"] {
            assert!(matches!(keep(&store, bytes, "x"), Kept::New(_)));
        }
        let now = SystemTime::now();
        let give = |digests: &[Digest], run: &str, thread: Option<&str>| {
            store.give_attachments(digests, (run, thread), now).expect("given")
        };
        assert_eq!(give(&[one, one], "a", None), None);
        assert_eq!(give(&[none, one], "b", Some("t")), Some(none));
        assert_eq!(store.attachments_given_to("c", Some("t")).expect("read"), [one]);
        assert_eq!(store.attachments_given_to("a", None).expect("read"), [one]);
        assert!(store.attachments_given_to("c", None).expect("read").is_empty());
        let later = now + std::time::Duration::from_secs(60);
        let old = || store.old_attachments(0, later, 9).expect("read");
        assert!(store.old_attachments(0, now - std::time::Duration::from_secs(60), 9).expect("read").is_empty());
        for (number, _) in old() {
            store.forget_attachment(number, later).expect("asked");
        }
        assert_eq!(old().into_iter().map(|(_, digest)| digest).collect::<Vec<_>>(), [one], "{two} is not needed");
        let runs = |after: &str| {
            let runs = store.runs_given(&one, after, 9).expect("read");
            runs.into_iter().map(|given| (given.run, given.thread)).collect::<Vec<_>>()
        };
        assert_eq!(runs(""), [("a".to_owned(), None), ("b".to_owned(), Some("t".to_owned()))]);
        assert_eq!(runs("a").len(), 1);
        for run in ["a", "b"] {
            store.forget_given(&one, run, now - std::time::Duration::from_secs(60)).expect("asked");
        }
        assert_eq!(runs("").len(), 2, "they were given it since");
        for run in ["a", "b"] {
            store.forget_given(&one, run, later).expect("forgotten");
        }
        store.forget_attachment(old()[0].0, now - std::time::Duration::from_secs(60)).expect("asked");
        assert_eq!(old().len(), 1, "it was sent since");
        store.forget_attachment(old()[0].0, later).expect("asked");
        assert!(old().is_empty());
    }
}
