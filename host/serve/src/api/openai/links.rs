//! Which run replied what, for conversations that clients send whole.

use hotcell_runtime::RunId;
use rusqlite::params;

use crate::store::{Store, StoreError};

/// Runs that replied the same in the same conversation; of more, the oldest are not looked at.
const MOST: usize = 64;

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
                .execute(params![digest, run.as_str(), question])
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
