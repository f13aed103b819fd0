//! Replies that are kept for requests with an `Idempotency-Key`, in the server's file.

use std::time::{Duration, SystemTime};

use hotcell_runtime::RunId;
use rusqlite::{OptionalExtension as _, params};

use crate::store::{Store, StoreError, microseconds};

/// How long a key is kept.
const WINDOW: Duration = Duration::from_secs(24 * 60 * 60);
/// How many keys are kept of each caller; beyond that, the oldest are forgotten.
const MOST: i64 = 10_000;
/// How many bytes of replies are kept of each caller; beyond that, the oldest are forgotten.
const MOST_BYTES: i64 = 64 << 20;

/// What is known of a key.
pub(crate) enum Claim {
    /// Nothing yet; what the request begins has this name
    New(RunId),
    /// A request with it was not answered
    Open(RunId),
    /// A request with it was answered so
    Done(Kept),
    /// Another request was made with it
    Other,
}

/// A reply that is kept.
pub(crate) struct Kept {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Store {
    /// Keeps that a request with a key is carried out, unless one was.
    pub(crate) fn claim(
        &self,
        key: &[u8; 32],
        caller: &str,
        request: &[u8; 32],
        now: SystemTime,
    ) -> Result<Claim, StoreError> {
        self.with(|connection| {
            let oldest = microseconds(now.checked_sub(WINDOW).unwrap_or(SystemTime::UNIX_EPOCH));
            connection.prepare_cached("DELETE FROM replies WHERE at < ?1")?.execute([oldest])?;
            let mut find =
                connection.prepare_cached("SELECT request, name, status, headers, body FROM replies WHERE key = ?1")?;
            let known = find.query_row([&key[..]], |row| {
                if row.get::<_, Vec<u8>>(0)? != request {
                    return Ok(Claim::Other);
                }
                let Some(status) = row.get::<_, Option<u16>>(2)? else {
                    return Ok(Claim::Open(RunId::from(row.get::<_, String>(1)?)));
                };
                let headers: String = row.get(3)?;
                let headers = serde_json::from_str(&headers).unwrap_or_default();
                Ok(Claim::Done(Kept { status, headers, body: row.get(4)? }))
            });
            if let Some(known) = known.optional()? {
                return Ok(known);
            }
            let name = RunId::random();
            connection
                .prepare_cached("INSERT INTO replies (key, caller, request, name, at) VALUES (?1, ?2, ?3, ?4, ?5)")?
                .execute(params![&key[..], caller, &request[..], name.as_str(), microseconds(now)])?;
            // Looking each time would cost more than keeping some more of them.
            if key[0] < 4 {
                connection
                    .prepare_cached(
                        "DELETE FROM replies WHERE caller = ?1 AND at <= (
                             SELECT at FROM replies WHERE caller = ?1 ORDER BY at DESC LIMIT 1 OFFSET ?2
                         )",
                    )?
                    .execute(params![caller, MOST])?;
                connection
                    .prepare_cached(
                        "DELETE FROM replies WHERE caller = ?1 AND at <= (
                             SELECT at FROM (
                                 SELECT at, sum(length(body)) OVER (ORDER BY at DESC) AS bytes FROM replies WHERE caller = ?1
                             ) WHERE bytes > ?2 ORDER BY at DESC LIMIT 1
                         )",
                    )?
                    .execute(params![caller, MOST_BYTES])?;
            }
            Ok(Claim::New(name))
        })
    }

    /// Keeps how the request with a key was answered.
    pub(crate) fn answered(&self, key: &[u8; 32], kept: &Kept) -> Result<(), StoreError> {
        let headers = serde_json::to_string(&kept.headers).unwrap_or_default();
        self.with(|connection| {
            connection
                .prepare_cached("UPDATE replies SET status = ?2, headers = ?3, body = ?4 WHERE key = ?1")?
                .execute(params![&key[..], kept.status, headers, kept.body])
                .map(drop)
        })
    }

    /// Forgets a key: the request with it did nothing.
    pub(crate) fn forget_claim(&self, key: &[u8; 32]) -> Result<(), StoreError> {
        self.with(|connection| {
            connection.prepare_cached("DELETE FROM replies WHERE key = ?1")?.execute([&key[..]]).map(drop)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_text(text: &str) -> [u8; 32] {
        use sha2::Digest as _;
        sha2::Sha256::digest(text).into()
    }

    #[test]
    fn a_key_belongs_to_one_request_for_a_day_and_each_caller_has_so_many() {
        let store = Store::open(None).expect("opened");
        let now = SystemTime::now();
        let of =
            |key: &str, request: &str, now| store.claim(&of_text(key), "me", &of_text(request), now).expect("claimed");
        let Claim::New(name) = of("a", "one", now) else { panic!("it is new") };
        assert!(matches!(of("a", "one", now), Claim::Open(again) if again == name));
        assert!(matches!(of("a", "two", now), Claim::Other));
        let kept = Kept { status: 200, headers: vec![("location".into(), "/x".into())], body: b"{}".to_vec() };
        store.answered(&of_text("a"), &kept).expect("kept");
        assert!(matches!(of("a", "one", now), Claim::Done(kept) if kept.body == b"{}" && kept.headers.len() == 1));
        assert!(matches!(of("a", "one", now + WINDOW + Duration::from_secs(1)), Claim::New(_)));
        for number in 0..MOST + 600 {
            of(&number.to_string(), "x", now + Duration::from_micros(u64::try_from(number).expect("small")));
        }
        let count: i64 = store
            .read(|connection| connection.query_row("SELECT count(*) FROM replies", [], |row| row.get(0)))
            .expect("read");
        assert!(count < MOST + 600, "{count} are kept");
    }
}
