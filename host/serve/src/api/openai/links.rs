//! Which run replied what, for conversations that clients send whole.

use hotcell_runtime::RunId;
use rusqlite::params;

use crate::store::{Store, StoreError};

/// Runs that replied the same in the same conversation; of more, the oldest are not looked at.
const MOST: usize = 64;

/// Replies that are kept; the oldest are forgotten, and a conversation that comes back to one of those is not known any more.
const KEPT: i64 = 1_000_000;

/// A reply in a conversation.
pub(super) struct Reply {
    /// The run that replied
    pub(super) run: String,
    /// The question that the reply is, if it is one
    pub(super) question: Option<String>,
}

impl Store {
    /// Keeps that a run replied, under the digest of the conversation with the reply.
    pub(super) fn keep_chat_reply(&self, digest: &[u8], run: &RunId, question: Option<&str>) -> Result<(), StoreError> {
        self.with(|connection| {
            connection
                .prepare_cached("INSERT INTO chat_replies (digest, run, question) VALUES (?1, ?2, ?3)")?
                .execute(params![digest, run.as_str(), question])?;
            connection
                .prepare_cached("DELETE FROM chat_replies WHERE number <= (SELECT max(number) FROM chat_replies) - ?1")?
                .execute([KEPT])
                .map(drop)
        })
    }

    /// The replies with which a conversation may have come to this point, the newest first.
    pub(super) fn chat_replies(&self, digest: &[u8]) -> Result<Vec<Reply>, StoreError> {
        self.read(|connection| {
            let reply = |row: &rusqlite::Row<'_>| Ok(Reply { run: row.get(0)?, question: row.get(1)? });
            connection
                .prepare_cached(
                    "SELECT run, question FROM chat_replies WHERE digest = ?1 ORDER BY number DESC LIMIT ?2",
                )?
                .query_map(params![digest, MOST as i64], reply)?
                .collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_replies_are_forgotten() {
        let store = Store::open(None).expect("a store");
        let run = RunId::random();
        store.keep_chat_reply(b"first", &run, None).expect("kept");
        let later = "INSERT INTO chat_replies (number, digest, run) VALUES (?1, ?2, ?3)";
        let later = |connection: &rusqlite::Connection| {
            connection.execute(later, params![KEPT, b"second".as_slice(), run.as_str()]).map(drop)
        };
        store.with(later).expect("kept");
        let known = |digest: &[u8]| store.chat_replies(digest).expect("read").len();
        assert_eq!((known(b"first"), known(b"second")), (1, 1));
        store.keep_chat_reply(b"third", &run, None).expect("kept");
        assert_eq!((known(b"first"), known(b"second"), known(b"third")), (0, 1, 1));
    }
}
