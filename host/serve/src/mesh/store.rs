//! What the server keeps of a mesh beside the journal: whose runs a session has, what came in, and what is remembered for ever.

use std::sync::Arc;
use std::time::SystemTime;

use hotcell_graph::value::parse_kept_json;
use hotcell_runtime::RunId;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde_json::Value;

use crate::store::{Store, StoreError, microseconds, time};

/// Where the name under which something of one of several meshes is kept begins to be its own name.
pub(super) const SCOPE_END: char = '\n';

/// What a session is found by. Of one that another tenant began nothing is to be seen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct SessionKey {
    /// That of the mesh
    pub(super) scope: Arc<str>,
    /// Empty where none was named
    pub(super) tenant: String,
    pub(super) id: String,
}

impl SessionKey {
    /// What the tenant is called among those of all meshes.
    fn owner(&self) -> String {
        format!("{}{}", self.scope, self.tenant)
    }

    /// The key of a session of a tenant that is called that among those of all meshes.
    fn of(owner: &str, id: String) -> Self {
        let (scope, tenant) = owner.split_at(owner.rfind(SCOPE_END).map_or(0, |at| at + SCOPE_END.len_utf8()));
        SessionKey { scope: scope.into(), tenant: tenant.to_owned(), id }
    }
}

/// Whether a session is one of the mesh with the scope that is the second parameter.
pub(super) const IN_SCOPE: &str =
    "substr(tenant, 1, length(?2)) = ?2 AND instr(substr(tenant, length(?2) + 1), char(10)) = 0";

/// A session.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) number: i64,
    pub(super) key: SessionKey,
    pub(super) created: SystemTime,
    pub(super) updated: SystemTime,
}

/// A run of a session.
#[derive(Clone, Debug)]
pub(super) struct SessionRun {
    pub(super) run: RunId,
    /// The last entry that the server has acted on
    pub(super) seen: u64,
    /// How it ended, if it did and everything was done that follows
    pub(super) ended: Option<String>,
    /// What its last agent gave, if it has ended
    pub(super) output: Option<Value>,
}

/// Something that came in from outside.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    pub(super) at: SystemTime,
    /// The run that it began or that it went to
    pub(super) run: RunId,
    /// `request`, `webhook`, `answer` and so on
    pub(super) kind: String,
    /// The entry point or the agent
    pub(super) name: String,
    pub(super) data: Value,
}

const SESSION: &str = "number, tenant, id, created, updated";
const RUN: &str = "run, seen, ended, output";

fn session(row: &Row<'_>) -> rusqlite::Result<Session> {
    Ok(Session {
        number: row.get(0)?,
        key: SessionKey::of(&row.get::<_, String>(1)?, row.get(2)?),
        created: time(row.get(3)?),
        updated: time(row.get(4)?),
    })
}

/// A value as it was kept: agents may nest theirs deeper than what comes from outside, and every key is a key.
pub(super) fn kept(text: &str) -> Option<Value> {
    parse_kept_json(text).ok().map(|value| Value::from(&value))
}

fn run(row: &Row<'_>) -> rusqlite::Result<SessionRun> {
    let seen: i64 = row.get(1)?;
    Ok(SessionRun {
        run: row.get::<_, String>(0)?.into(),
        seen: u64::try_from(seen).unwrap_or(0),
        ended: row.get(2)?,
        output: row.get::<_, Option<String>>(3)?.and_then(|text| kept(&text)),
    })
}

fn find(connection: &Connection, key: &SessionKey) -> rusqlite::Result<Option<Session>> {
    connection
        .prepare_cached(&format!("SELECT {SESSION} FROM mesh_sessions WHERE tenant = ?1 AND id = ?2"))?
        .query_row(params![key.owner(), key.id], session)
        .optional()
}

/// Behind the name of a session whose time was over: nobody can name it any more.
const OVER: &str = "~";

/// Sessions of meshes.
impl Store {
    /// Whether a mesh with this scope has sessions.
    pub(super) fn has_sessions(&self, scope: &str) -> Result<bool, StoreError> {
        self.read(|connection| {
            connection
                .prepare_cached(&format!("SELECT EXISTS (SELECT 1 FROM mesh_sessions WHERE ?1 = 0 AND {IN_SCOPE})"))?
                .query_row(params![0, scope], |row| row.get(0))
        })
    }

    /// Ends sessions of a mesh in which nothing is under way and nothing has happened since then. What was posted in them stays for agents that
    /// remember posts of other sessions.
    pub(super) fn end_sessions(&self, scope: &str, since: SystemTime) -> Result<(), StoreError> {
        self.with(|connection| {
            connection
                .prepare_cached(&format!(
                    "UPDATE mesh_sessions SET id = id || '{OVER}' || number WHERE updated < ?1 AND instr(id, '{OVER}') = 0 AND {IN_SCOPE}
                     AND NOT EXISTS (SELECT 1 FROM mesh_runs WHERE session = mesh_sessions.number AND ended IS NULL)"
                ))?
                .execute(params![microseconds(since), scope])?;
            Ok(())
        })
    }

    pub(super) fn session(&self, key: &SessionKey) -> Result<Option<Session>, StoreError> {
        self.read(|connection| find(connection, key))
    }

    /// The newest sessions of a tenant, as it is called among those of all meshes, the oldest of them first; only those with runs that
    /// have not ended, if that is wanted.
    pub(super) fn sessions(&self, owner: &str, limit: usize, only_open: bool) -> Result<Vec<Session>, StoreError> {
        let open = match only_open {
            true => "AND EXISTS (SELECT 1 FROM mesh_runs WHERE session = mesh_sessions.number AND ended IS NULL)",
            false => "",
        };
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.read(|connection| {
            let mut sessions: Vec<Session> = connection
                .prepare_cached(&format!(
                    "SELECT {SESSION} FROM mesh_sessions WHERE tenant = ?1 AND instr(id, '{OVER}') = 0 {open}
                     ORDER BY number DESC LIMIT ?2"
                ))?
                .query_map(params![owner, limit], session)?
                .collect::<rusqlite::Result<_>>()?;
            sessions.reverse();
            Ok(sessions)
        })
    }

    /// Notes what came in, in a session that is made if it is not there, and whose run it began or went to.
    pub(super) fn note_turn(&self, key: &SessionKey, turn: &Turn) -> Result<Session, StoreError> {
        self.with(|connection| {
            let at = microseconds(turn.at);
            connection
                .prepare_cached(
                    "INSERT INTO mesh_sessions (tenant, id, created, updated) VALUES (?1, ?2, ?3, ?3)
                     ON CONFLICT DO UPDATE SET updated = excluded.updated",
                )?
                .execute(params![key.owner(), key.id, at])?;
            let session = find(connection, key)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
            connection
                .prepare_cached(
                    "INSERT INTO mesh_turns (session, at, run, kind, name, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                )?
                .execute(params![session.number, at, turn.run.as_str(), turn.kind, turn.name, turn.data.to_string()])?;
            connection
                .prepare_cached("INSERT OR IGNORE INTO mesh_runs (run, session) VALUES (?1, ?2)")?
                .execute(params![turn.run.as_str(), session.number])?;
            Ok(session)
        })
    }

    /// What came in last, the oldest first: so many turns, and so many bytes of them.
    pub(super) fn turns(&self, session: i64, limit: u32, bytes: u32) -> Result<Vec<Turn>, StoreError> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT at, run, kind, name, data FROM mesh_turns WHERE session = ?1 ORDER BY number DESC LIMIT ?2",
            )?;
            let (mut rows, mut turns, mut left) =
                (statement.query(params![session, limit])?, Vec::new(), bytes as usize);
            while let Some(row) = rows.next()? {
                let data: String = row.get(4)?;
                let Some(rest) = left.checked_sub(data.len()) else { break };
                left = rest;
                turns.push(Turn {
                    at: time(row.get(0)?),
                    run: row.get::<_, String>(1)?.into(),
                    kind: row.get(2)?,
                    name: row.get(3)?,
                    data: kept(&data).unwrap_or_default(),
                });
            }
            turns.reverse();
            Ok(turns)
        })
    }

    /// The runs of a session, the newest first.
    pub(super) fn runs_of_session(&self, session: i64, limit: u32) -> Result<Vec<SessionRun>, StoreError> {
        self.read(|connection| {
            connection
                .prepare_cached(&format!(
                    "SELECT {RUN} FROM mesh_runs WHERE session = ?1 ORDER BY number DESC LIMIT ?2"
                ))?
                .query_map(params![session, limit], run)?
                .collect()
        })
    }

    /// Runs that have not ended, or of whose end not everything was done that follows: those of one session, or all.
    pub(super) fn open_runs(&self, session: Option<i64>) -> Result<Vec<SessionRun>, StoreError> {
        self.read(|connection| {
            connection
                .prepare_cached(&format!(
                    "SELECT {RUN} FROM mesh_runs WHERE ended IS NULL AND session = coalesce(?1, session) ORDER BY number"
                ))?
                .query_map([session], run)?
                .collect()
        })
    }

    /// The session of a run, and how far the server has acted on it.
    pub(super) fn run_of_mesh(&self, of: &RunId) -> Result<Option<(Session, SessionRun)>, StoreError> {
        self.read(|connection| {
            let found: Option<(i64, SessionRun)> = connection
                .prepare_cached(&format!("SELECT {RUN}, session FROM mesh_runs WHERE run = ?1"))?
                .query_row([of.as_str()], |row| Ok((row.get(4)?, run(row)?)))
                .optional()?;
            let Some((number, run)) = found else { return Ok(None) };
            connection
                .prepare_cached(&format!("SELECT {SESSION} FROM mesh_sessions WHERE number = ?1"))?
                .query_row([number], |row| Ok((session(row)?, run)))
                .optional()
        })
    }

    /// Notes up to which entry the server has acted on a run.
    pub(super) fn acted_on(&self, run: &RunId, seen: u64) -> Result<(), StoreError> {
        self.with(|connection| {
            connection
                .prepare_cached("UPDATE mesh_runs SET seen = max(seen, ?2) WHERE run = ?1")?
                .execute(params![run.as_str(), i64::try_from(seen).unwrap_or(i64::MAX)])?;
            Ok(())
        })
    }

    /// Notes that a run has ended, and that everything was done that follows. Its session begins to rest then, however long the run
    /// took.
    pub(super) fn note_end(&self, run: &RunId, ended: &str, output: &Value, now: SystemTime) -> Result<(), StoreError> {
        self.with(|connection| {
            connection
                .prepare_cached("UPDATE mesh_runs SET ended = ?2, output = ?3 WHERE run = ?1")?
                .execute(params![run.as_str(), ended, output.to_string()])?;
            connection
                .prepare_cached(
                    "UPDATE mesh_sessions SET updated = max(updated, ?2)
                     WHERE number = (SELECT session FROM mesh_runs WHERE run = ?1)",
                )?
                .execute(params![run.as_str(), microseconds(now)])?;
            Ok(())
        })
    }

    /// Notes what happened, under a key. False if that was noted before.
    pub(super) fn note_event(&self, session: i64, key: &str, event: &Value) -> Result<bool, StoreError> {
        self.with(|connection| {
            let made = connection
                .prepare_cached("INSERT OR IGNORE INTO mesh_events (session, key, body) VALUES (?1, ?2, ?3)")?
                .execute(params![session, key, event.to_string()])?;
            Ok(made > 0)
        })
    }

    /// Whether something was noted under a key.
    pub(super) fn has_event(&self, key: &str) -> Result<bool, StoreError> {
        self.read(|connection| {
            connection
                .prepare_cached("SELECT EXISTS (SELECT 1 FROM mesh_events WHERE key = ?1)")?
                .query_row([key], |row| row.get(0))
        })
    }

    /// What happened in a session, the oldest first.
    pub(super) fn events_of_session(&self, session: i64) -> Result<Vec<Value>, StoreError> {
        self.read(|connection| {
            let event = |row: &Row<'_>| {
                let body: String = row.get(0)?;
                Ok(kept(&body).unwrap_or_default())
            };
            connection
                .prepare_cached("SELECT body FROM mesh_events WHERE session = ?1 ORDER BY number")?
                .query_map([session], event)?
                .collect()
        })
    }

    /// Remembers a nonce until then. False if it is remembered already.
    pub(super) fn note_nonce(&self, nonce: &str, now: SystemTime, until: SystemTime) -> Result<bool, StoreError> {
        self.with(|connection| {
            connection.prepare_cached("DELETE FROM mesh_nonces WHERE until < ?1")?.execute([microseconds(now)])?;
            let made = connection
                .prepare_cached("INSERT OR IGNORE INTO mesh_nonces (nonce, until) VALUES (?1, ?2)")?
                .execute(params![nonce, microseconds(until)])?;
            Ok(made > 0)
        })
    }

    /// Something that is remembered by a name.
    pub(super) fn mesh_fact(&self, name: &str) -> Result<Option<String>, StoreError> {
        self.read(|connection| fact(connection, name))
    }

    /// Remembers something by a name, unless something is remembered by it. Gives what is.
    pub(super) fn remember_first(&self, name: &str, value: &str) -> Result<String, StoreError> {
        self.with(|connection| {
            connection
                .prepare_cached("INSERT OR IGNORE INTO mesh_facts (name, value) VALUES (?1, ?2)")?
                .execute(params![name, value])?;
            connection
                .prepare_cached("SELECT value FROM mesh_facts WHERE name = ?1")?
                .query_row([name], |row| row.get(0))
        })
    }

    /// Remembers something by a name.
    pub(super) fn remember(&self, name: &str, value: &str) -> Result<(), StoreError> {
        self.with(|connection| put_fact(connection, name, value))
    }

    /// Remembers by a name what is made of what is remembered by it; where nothing is made, that stays. It is one transaction: who does
    /// the same at the same time builds on what the other made.
    pub(super) fn revise(
        &self,
        name: &str,
        make: impl FnOnce(Option<String>) -> Option<String>,
    ) -> Result<(), StoreError> {
        self.with(|connection| match make(fact(connection, name)?) {
            Some(value) => put_fact(connection, name, &value),
            None => Ok(()),
        })
    }
}

fn fact(connection: &Connection, name: &str) -> rusqlite::Result<Option<String>> {
    connection
        .prepare_cached("SELECT value FROM mesh_facts WHERE name = ?1")?
        .query_row([name], |row| row.get(0))
        .optional()
}

fn put_fact(connection: &Connection, name: &str, value: &str) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO mesh_facts (name, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = excluded.value",
        )?
        .execute(params![name, value])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use serde_json::{Value, json};

    use super::{SessionKey, Store, Turn};

    #[test]
    fn sessions_of_several_meshes_are_kept_apart() {
        const OTHER: &str = "/srv/other.yaml\n";
        let store = Store::open(None).expect("a store");
        let keys = ["", OTHER].into_iter().flat_map(|scope| {
            ["", "acme"].map(|tenant| SessionKey { scope: scope.into(), tenant: tenant.to_owned(), id: "s".to_owned() })
        });
        let keys: Vec<SessionKey> = keys.collect();
        assert!(!store.has_sessions(OTHER).expect("read"));
        for (number, key) in keys.iter().enumerate() {
            let turn = Turn {
                at: UNIX_EPOCH,
                run: format!("run{number}").into(),
                kind: "request".to_owned(),
                name: "in".to_owned(),
                data: Value::Null,
            };
            assert_eq!(store.note_turn(key, &turn).expect("kept").key, *key);
            store.note_end(&turn.run, "completed", &Value::Null, UNIX_EPOCH).expect("kept");
        }
        assert!(store.has_sessions(OTHER).expect("read") && store.has_sessions("").expect("read"));
        assert!(!store.has_sessions("/srv/third.yaml\n").expect("read"));
        store.end_sessions(OTHER, UNIX_EPOCH + Duration::from_secs(1)).expect("ended");
        let are_there: Vec<bool> = keys.iter().map(|key| store.session(key).expect("read").is_some()).collect();
        assert_eq!(are_there, [true, true, false, false]);
    }

    #[test]
    fn what_is_kept_is_what_was_written_however_it_is_nested_and_called() {
        let store = Store::open(None).expect("a store");
        let deep = (0..150).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
        let data = json!({ "$serde_json::private::RawValue": "[1]", "deep": deep });
        let key = SessionKey { scope: "".into(), tenant: String::new(), id: "s".to_owned() };
        let turn = Turn {
            at: UNIX_EPOCH,
            run: "run".to_owned().into(),
            kind: "request".to_owned(),
            name: "in".to_owned(),
            data: data.clone(),
        };
        let session = store.note_turn(&key, &turn).expect("kept");
        store.note_end(&turn.run, "completed", &data, UNIX_EPOCH).expect("kept");
        assert_eq!(store.turns(session.number, 10, 1 << 20).expect("read")[0].data, data);
        let runs = store.runs_of_session(session.number, 10).expect("read");
        assert_eq!(runs[0].output.as_ref(), Some(&data));
    }

    #[test]
    fn a_session_rests_from_the_end_of_its_work() {
        let store = Store::open(None).expect("a store");
        let second = |number| UNIX_EPOCH + Duration::from_secs(number);
        let key = SessionKey { scope: "".into(), tenant: String::new(), id: "s".to_owned() };
        let turn = Turn {
            at: second(0),
            run: "run".to_owned().into(),
            kind: "request".to_owned(),
            name: "in".to_owned(),
            data: Value::Null,
        };
        store.note_turn(&key, &turn).expect("kept");
        let is_there = || store.session(&key).expect("read").is_some();
        store.end_sessions("", second(50)).expect("ended");
        assert!(is_there(), "work is under way");
        store.note_end(&turn.run, "completed", &Value::Null, second(60)).expect("kept");
        store.end_sessions("", second(60)).expect("ended");
        assert!(is_there(), "it has only just ended");
        store.end_sessions("", second(61)).expect("ended");
        assert!(!is_there());
    }
}
