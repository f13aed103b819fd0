//! What a mesh remembers from one run to the next: what was posted of its agents.

use std::time::SystemTime;

use hotcell_runtime::leafmesh::state::{FEED, POST_AGENT, POST_TIME};
use hotcell_runtime::{Fact, NumberedEntry, RunId};
use rusqlite::{Row, params};
use serde_json::{Value, json};

use super::store::{IN_SCOPE, Session, kept};
use super::{Mesh, learn};
use crate::problem::Problem;
use crate::state::Server;
use crate::store::{Store, StoreError, microseconds, time};

/// The most posts of a session, and of others, that a run is told.
const POSTS: u32 = 500;
/// The most entries of a run that are looked at before it was acted on them.
const ENTRIES: u64 = 100_000;
/// Entries that are read at once.
const AT_ONCE: usize = 256;

/// Keeps what an entry of a run says that later runs have to know. What was kept before is not kept again.
pub(super) fn keep(server: &Server, session: i64, run: &RunId, numbered: &NumberedEntry) -> Result<(), StoreError> {
    let Fact::Completed(completed) = &numbered.entry.fact else { return Ok(()) };
    if numbered.entry.place.around().is_some() {
        return Ok(());
    }
    let now = server.clock().now();
    for post in completed.writes.iter().filter(|write| &*write.key == FEED) {
        server.store().keep_post(session, (run, numbered.number), now, &Value::from(&post.value))?;
    }
    Ok(())
}

/// Posts that a run is told of that begins, the oldest first; nothing where no agent remembers any.
pub(super) async fn told(
    server: &Server,
    mesh: &Mesh,
    session: Option<&Session>,
    owner: &str,
) -> Result<Option<Value>, Problem> {
    let agents = &mesh.settings.agents;
    if !agents.iter().any(|agent| agent.remembers) {
        return Ok(None);
    }
    // A run may have ended whose entries were not acted on yet.
    for open in server.store().open_runs(None)? {
        let Some((of, _)) = server.store().run_of_mesh(&open.run)? else { continue };
        let mut seen = open.seen;
        while seen < open.seen.saturating_add(ENTRIES) {
            let page = server.runs().store().entries(&open.run, seen, AT_ONCE).await?;
            for entry in &page.entries {
                keep(server, of.number, &open.run, entry)?;
                seen = entry.number;
            }
            if page.is_last {
                break;
            }
        }
    }
    let number = session.map_or(-1, |session| session.number);
    let others = agents.iter().filter(|agent| agent.remembers_others).map(|agent| agent.name.as_str());
    Ok(Some(server.store().posts(number, owner, &others.collect::<Vec<_>>())?.into()))
}

/// Gives agents that had other names what was kept under those.
pub(super) fn take_over(server: &Server) -> Result<(), StoreError> {
    for mesh in server.meshes().all() {
        for agent in &mesh.settings.agents {
            if let Some(before) = &agent.previous_name {
                server.store().rename_agent(&mesh.scope, before, &agent.name)?;
                learn::take_over(server, &mesh, before, &agent.name)?;
            }
        }
    }
    Ok(())
}

impl Store {
    fn rename_agent(&self, scope: &str, before: &str, now: &str) -> Result<(), StoreError> {
        self.with(|connection| {
            connection
                .prepare_cached(&format!(
                    "UPDATE mesh_posts SET agent = ?3
                     WHERE agent = ?1 AND session IN (SELECT number FROM mesh_sessions WHERE {IN_SCOPE})"
                ))?
                .execute(params![before, scope, now])?;
            connection
                .prepare_cached("UPDATE mesh_spent SET agent = ?2 WHERE agent = ?1")?
                .execute(params![format!("{scope}{before}"), format!("{scope}{now}")])?;
            Ok(())
        })
    }

    fn keep_post(
        &self,
        session: i64,
        (run, entry): (&RunId, u64),
        at: SystemTime,
        post: &Value,
    ) -> Result<(), StoreError> {
        self.with(|connection| {
            connection
                .prepare_cached(
                    "INSERT OR IGNORE INTO mesh_posts (run, entry, session, agent, at, post) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                )?
                .execute(params![
                    run.as_str(),
                    i64::try_from(entry).unwrap_or(i64::MAX),
                    session,
                    post[POST_AGENT].as_str().unwrap_or_default(),
                    microseconds(at),
                    post.to_string()
                ])?;
            Ok(())
        })
    }

    /// The newest posts of a session, and those about these agents of other sessions of a tenant, as it is called among those of all
    /// meshes, the oldest first.
    fn posts(&self, session: i64, owner: &str, others: &[&str]) -> Result<Vec<Value>, StoreError> {
        let post = |row: &Row<'_>| {
            let (number, at, text): (i64, i64, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let since = time(at).duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            let mut post = kept(&text).unwrap_or_default();
            post[POST_TIME] = json!(since.as_secs_f64());
            Ok((number, post))
        };
        let mut posts: Vec<(i64, Value)> = self.read(|connection| {
            let mut posts: Vec<(i64, Value)> = connection
                .prepare_cached(
                    "SELECT number, at, post FROM mesh_posts WHERE session = ?1 ORDER BY number DESC LIMIT ?2",
                )?
                .query_map(params![session, POSTS], post)?
                .collect::<rusqlite::Result<_>>()?;
            for agent in others {
                let of_others = connection
                    .prepare_cached(
                        "SELECT mesh_posts.number, at, post FROM mesh_posts
                         JOIN mesh_sessions ON mesh_sessions.number = mesh_posts.session
                         WHERE agent = ?1 AND session <> ?2 AND tenant = ?3 ORDER BY mesh_posts.number DESC LIMIT ?4",
                    )?
                    .query_map(params![agent, session, owner, POSTS], post)?
                    .collect::<rusqlite::Result<Vec<_>>>()?;
                posts.extend(of_others);
            }
            Ok(posts)
        })?;
        posts.sort_by_key(|(number, _)| *number);
        Ok(posts.into_iter().map(|(_, post)| post).collect())
    }
}
