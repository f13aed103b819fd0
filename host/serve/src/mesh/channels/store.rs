//! What the server keeps of channels: messages that were heard and what becomes of them, conversations, and questions that were
//! posted.

use std::time::{Duration, SystemTime};

use rusqlite::{OptionalExtension as _, Row, params};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::adapter::Message;
use super::provider::Provider;
use crate::store::{Store, StoreError, microseconds};

/// How long a message is known by its name, so that it is not taken twice; and how long conversations and questions are kept in
/// which nothing happens. Providers repeat a post for a week at most.
pub(super) const REMEMBERED: Duration = Duration::from_secs(90 * 24 * 60 * 60);
/// Questions of a chat that are looked at.
const MOST: u32 = 1000;

/// Whose messages these are: the agent and the provider.
#[derive(Clone, Copy, Debug)]
pub(in crate::mesh) struct Ear<'a> {
    pub(in crate::mesh) seat: &'a str,
    pub(in crate::mesh) provider: Provider,
}

/// A message that was taken.
#[derive(Clone, Debug)]
pub(super) struct Taken {
    pub(super) number: i64,
    pub(super) seat: String,
    pub(super) provider: String,
    pub(super) message: String,
    /// What was decided about it, if it was
    pub(super) becomes: Option<Becomes>,
}

/// What becomes of a message.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Becomes {
    /// The answer to this question
    Answer(String),
    /// New work in this session
    Task(String),
}

/// A conversation.
#[derive(Clone, Debug)]
pub(in crate::mesh) struct Chat {
    pub(in crate::mesh) chat: String,
    /// Empty where it is the whole chat
    pub(in crate::mesh) thread: String,
    pub(in crate::mesh) session: String,
    pub(in crate::mesh) address: Value,
}

/// A question that was posted.
#[derive(Clone, Debug)]
pub(in crate::mesh) struct Asked {
    pub(in crate::mesh) request: String,
    pub(in crate::mesh) chat: String,
    pub(in crate::mesh) thread: String,
    pub(in crate::mesh) message: String,
}

fn chat(row: &Row<'_>) -> rusqlite::Result<Chat> {
    let address: String = row.get(3)?;
    let address = serde_json::from_str(&address).unwrap_or_default();
    Ok(Chat { chat: row.get(0)?, thread: row.get(1)?, session: row.get(2)?, address })
}

const CHAT: &str = "chat, thread, session, address";

impl Store {
    /// Takes a message, unless it was taken before: then it is nothing.
    pub(super) fn take_message(
        &self,
        ear: Ear<'_>,
        message: &Message,
        now: SystemTime,
    ) -> Result<Option<i64>, StoreError> {
        let body = serde_json::to_string(message).unwrap_or_default();
        self.with(|connection| {
            let (at, until) = (microseconds(now), microseconds(now + REMEMBERED));
            connection.prepare_cached("DELETE FROM mesh_heard WHERE until < ?1")?.execute([at])?;
            let mut is_new = true;
            for id in &message.ids {
                let mut digest = Sha256::new();
                for part in [ear.seat, ear.provider.word(), id] {
                    digest.update((part.len() as u64).to_le_bytes());
                    digest.update(part);
                }
                let made = connection
                    .prepare_cached("INSERT OR IGNORE INTO mesh_heard (id, until) VALUES (?1, ?2)")?
                    .execute(params![digest.finalize().as_slice(), until])?;
                is_new &= made > 0;
            }
            if !is_new {
                return Ok(None);
            }
            connection
                .prepare_cached("INSERT INTO mesh_messages (seat, provider, at, message) VALUES (?1, ?2, ?3, ?4)")?
                .execute(params![ear.seat, ear.provider.word(), at, body])?;
            Ok(Some(connection.last_insert_rowid()))
        })
    }

    /// Messages that were taken and not done with, the oldest first: that one, or all.
    pub(super) fn taken_messages(&self, number: Option<i64>) -> Result<Vec<Taken>, StoreError> {
        let taken = |row: &Row<'_>| {
            let becomes: Option<String> = row.get(4)?;
            Ok(Taken {
                number: row.get(0)?,
                seat: row.get(1)?,
                provider: row.get(2)?,
                message: row.get(3)?,
                becomes: becomes.and_then(|text| serde_json::from_str(&text).ok()),
            })
        };
        // One is found by its number, and not among all that wait.
        let which = if number.is_some() { "number = ?1" } else { "?1 IS NULL" };
        self.read(|connection| {
            connection
                .prepare_cached(&format!(
                    "SELECT number, seat, provider, message, becomes FROM mesh_messages WHERE {which} ORDER BY number"
                ))?
                .query_map([number], taken)?
                .collect()
        })
    }

    /// Notes what becomes of a message, before it does.
    pub(super) fn decide_message(&self, number: i64, becomes: &Becomes) -> Result<(), StoreError> {
        let becomes = serde_json::to_string(becomes).unwrap_or_default();
        self.with(|connection| {
            connection
                .prepare_cached("UPDATE mesh_messages SET becomes = ?2 WHERE number = ?1")?
                .execute(params![number, becomes])?;
            Ok(())
        })
    }

    /// Notes that nothing is left to be done with a message.
    pub(super) fn done_with_message(&self, number: i64) -> Result<(), StoreError> {
        self.with(|connection| {
            connection.prepare_cached("DELETE FROM mesh_messages WHERE number = ?1")?.execute([number])?;
            Ok(())
        })
    }

    /// Whether work was begun in a session for a message.
    pub(super) fn began_with_message(&self, session: i64, id: &str) -> Result<bool, StoreError> {
        self.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT EXISTS (SELECT 1 FROM mesh_turns WHERE session = ?1 AND kind = 'channel'
                     AND json_extract(data, '$.channel.message_id') = ?2)",
                )?
                .query_row(params![session, id], |row| row.get(0))
        })
    }

    /// Notes in which session the conversation of a chat, or of a thread in it, goes on.
    pub(in crate::mesh) fn note_chat(&self, ear: Ear<'_>, chat: &Chat, now: SystemTime) -> Result<(), StoreError> {
        self.with(|connection| {
            let old = microseconds(now.checked_sub(REMEMBERED).unwrap_or(SystemTime::UNIX_EPOCH));
            connection.prepare_cached("DELETE FROM mesh_chats WHERE at < ?1")?.execute([old])?;
            let (seat, provider) = (ear.seat, ear.provider.word());
            let Chat { chat, thread, session, address } = chat;
            connection
                .prepare_cached(
                    "INSERT INTO mesh_chats (seat, provider, chat, thread, session, address, at)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                     ON CONFLICT DO UPDATE SET session = excluded.session, at = excluded.at,
                         address = CASE excluded.address WHEN 'null' THEN address ELSE excluded.address END",
                )?
                .execute(params![seat, provider, chat, thread, session, address.to_string(), microseconds(now)])?;
            Ok(())
        })
    }

    /// The conversation of a chat, or of a thread in it.
    pub(super) fn chat(&self, ear: Ear<'_>, of: &str, thread: &str) -> Result<Option<Chat>, StoreError> {
        self.read(|connection| {
            connection
                .prepare_cached(&format!(
                    "SELECT {CHAT} FROM mesh_chats WHERE seat = ?1 AND provider = ?2 AND chat = ?3 AND thread = ?4"
                ))?
                .query_row(params![ear.seat, ear.provider.word(), of, thread], chat)
                .optional()
        })
    }

    /// The newest conversation of an agent with a provider: in a session, or in any.
    pub(in crate::mesh) fn newest_chat(&self, ear: Ear<'_>, session: Option<&str>) -> Result<Option<Chat>, StoreError> {
        self.read(|connection| {
            connection
                .prepare_cached(&format!(
                    "SELECT {CHAT} FROM mesh_chats WHERE seat = ?1 AND provider = ?2 AND session = coalesce(?3, session)
                     ORDER BY at DESC LIMIT 1"
                ))?
                .query_row(params![ear.seat, ear.provider.word(), session], chat)
                .optional()
        })
    }

    /// The provider by which a session has talked to an agent last.
    pub(in crate::mesh) fn provider_of_session(&self, seat: &str, session: &str) -> Result<Option<String>, StoreError> {
        self.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT provider FROM mesh_chats WHERE seat = ?1 AND session = ?2 ORDER BY at DESC LIMIT 1",
                )?
                .query_row(params![seat, session], |row| row.get(0))
                .optional()
        })
    }

    /// Notes where a question was posted.
    pub(in crate::mesh) fn note_asked(&self, ear: Ear<'_>, asked: &Asked, now: SystemTime) -> Result<(), StoreError> {
        self.with(|connection| {
            let old = microseconds(now.checked_sub(REMEMBERED).unwrap_or(SystemTime::UNIX_EPOCH));
            connection.prepare_cached("DELETE FROM mesh_asked WHERE at < ?1")?.execute([old])?;
            let Asked { request, chat, thread, message } = asked;
            connection
                .prepare_cached(
                    "INSERT OR REPLACE INTO mesh_asked (request, seat, provider, chat, thread, message, at)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                )?
                .execute(params![request, ear.seat, ear.provider.word(), chat, thread, message, microseconds(now)])?;
            Ok(())
        })
    }

    /// Questions that were posted to a chat, the oldest first.
    pub(super) fn asked_in(&self, ear: Ear<'_>, chat: &str) -> Result<Vec<Asked>, StoreError> {
        let asked = |row: &Row<'_>| {
            Ok(Asked { request: row.get(0)?, chat: row.get(1)?, thread: row.get(2)?, message: row.get(3)? })
        };
        self.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT request, chat, thread, message FROM mesh_asked
                     WHERE seat = ?1 AND provider = ?2 AND chat = ?3 ORDER BY number LIMIT ?4",
                )?
                .query_map(params![ear.seat, ear.provider.word(), chat, MOST], asked)?
                .collect()
        })
    }

    /// Forgets a question: it has an answer, or nobody waits for one any more.
    pub(super) fn forget_asked(&self, request: &str) -> Result<(), StoreError> {
        self.with(|connection| {
            connection.prepare_cached("DELETE FROM mesh_asked WHERE request = ?1")?.execute([request])?;
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use serde_json::json;

    use super::{Asked, Becomes, Chat, Ear, REMEMBERED};
    use crate::mesh::channels::adapter::Message;
    use crate::mesh::channels::provider::Provider;
    use crate::store::Store;

    fn message(ids: &[&str]) -> Message {
        serde_json::from_value(json!({
            "ids": ids, "chat": "C1", "also": [], "thread": null, "in_thread": false, "replies_to": null,
            "answers_chat": false, "sender": "U1", "text": "x", "is_bot": false, "is_direct": true, "is_addressed": false,
            "address": null,
        }))
        .expect("a message")
    }

    #[test]
    fn a_message_is_taken_once_for_as_long_as_it_is_remembered() {
        let store = Store::open(None).expect("a store");
        let (ops, desk) =
            (Ear { seat: "ops", provider: Provider::Slack }, Ear { seat: "desk", provider: Provider::Slack });
        let begin = UNIX_EPOCH + Duration::from_secs(1_000_000);
        let take =
            |ear, ids: &[&str], later| store.take_message(ear, &message(ids), begin + later).expect("kept").is_some();
        let now = Duration::ZERO;
        assert!(take(ops, &["E1", "C1 1.1"], now));
        assert!(!take(ops, &["E1"], now) && !take(ops, &["E2", "C1 1.1"], now) && !take(ops, &["E2"], now));
        assert!(take(desk, &["E1"], now), "another agent hears it, too");
        assert!(!take(ops, &["E1"], REMEMBERED));
        assert!(take(ops, &["E1"], REMEMBERED + Duration::from_secs(1)), "nothing is remembered for ever");
        let taken = store.taken_messages(None).expect("read");
        assert_eq!(taken.len(), 3);
        let becomes = Becomes::Answer("run:1".to_owned());
        store.decide_message(taken[0].number, &becomes).expect("kept");
        assert_eq!(store.taken_messages(Some(taken[0].number)).expect("read")[0].becomes, Some(becomes));
        store.done_with_message(taken[0].number).expect("kept");
        assert!(store.taken_messages(Some(taken[0].number)).expect("read").is_empty());
    }

    #[test]
    fn conversations_and_questions_are_found_and_forgotten() {
        let store = Store::open(None).expect("a store");
        let ear = Ear { seat: "ops", provider: Provider::Teams };
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let chat = |thread: &str, session: &str, address| Chat {
            chat: "C1".to_owned(),
            thread: thread.to_owned(),
            session: session.to_owned(),
            address,
        };
        store.note_chat(ear, &chat("", "s-1", json!({"a": 1})), at(1)).expect("kept");
        store.note_chat(ear, &chat("7", "s-2", json!({})), at(2)).expect("kept");
        // What is not known does not take the place of what is.
        store.note_chat(ear, &chat("", "s-3", json!(null)), at(3)).expect("kept");
        let known = store.chat(ear, "C1", "").expect("read").expect("a conversation");
        assert_eq!((known.session.as_str(), known.address), ("s-3", json!({"a": 1})));
        assert!(store.newest_chat(ear, Some("s-1")).expect("read").is_none());
        assert_eq!(store.newest_chat(ear, None).expect("read").expect("one").session, "s-3");
        assert_eq!(store.provider_of_session("ops", "s-2").expect("read").as_deref(), Some("teams"));
        let asked = |request: &str| Asked {
            request: request.to_owned(),
            chat: "C1".to_owned(),
            thread: String::new(),
            message: "m".to_owned(),
        };
        for request in ["r:1", "r:2", "r:1"] {
            store.note_asked(ear, &asked(request), at(4)).expect("kept");
        }
        store.forget_asked("r:2").expect("kept");
        let open: Vec<String> =
            store.asked_in(ear, "C1").expect("read").into_iter().map(|asked| asked.request).collect();
        assert_eq!(open, ["r:1"]);
        // Where nothing happened for long is forgotten.
        store.note_chat(ear, &chat("8", "s-4", json!({})), at(10) + REMEMBERED).expect("kept");
        assert!(store.chat(ear, "C1", "7").expect("read").is_none());
    }
}
