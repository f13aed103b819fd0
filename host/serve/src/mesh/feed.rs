//! What a mesh remembers from one run to the next: what was posted of its agents, and what their models have used.

use std::time::SystemTime;

use hotcell_runtime::leafmesh::state::{FEED, POST_AGENT, POST_TIME, SPENT_COST, SPENT_TOKENS};
use hotcell_runtime::{Fact, NumberedEntry, RunId};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use rusqlite::{Row, params};
use serde_json::{Map, Value, json};

use super::Mesh;
use super::store::Session;
use crate::problem::Problem;
use crate::state::Server;
use crate::store::{Store, StoreError, microseconds, time};

/// The most posts of a session, and of others, that a run is told.
const POSTS: u32 = 500;
/// The most entries of a run that are looked at before it was acted on them.
const ENTRIES: usize = 100_000;

/// Something that was used.
struct Spent {
    tokens: u64,
    cost_usd: f64,
}

/// Keeps what an entry of a run says that later runs have to know. What was kept before is not kept again.
pub(super) fn keep(
    server: &Server,
    mesh: &Mesh,
    session: i64,
    run: &RunId,
    numbered: &NumberedEntry,
) -> Result<(), StoreError> {
    let Fact::Completed(completed) = &numbered.entry.fact else { return Ok(()) };
    if numbered.entry.place.around().is_some() {
        return Ok(());
    }
    let now = server.clock().now();
    for post in completed.writes.iter().filter(|write| &*write.key == FEED) {
        server.store().keep_post(session, (run, numbered.number), now, &Value::from(&post.value))?;
    }
    let agent = mesh.settings.agent(completed.node.split('#').next().unwrap_or_default());
    if let Some(agent) = agent.filter(|agent| agent.budget.is_some()) {
        let used = completed.account.total();
        let tokens = used.input_tokens.saturating_add(used.output_tokens);
        let spent = Spent { tokens, cost_usd: used.cost.to_usd() };
        server.store().keep_spent(&agent.name, (run, numbered.number), now, &spent)?;
    }
    Ok(())
}

/// What a run is told that begins: posts, the oldest first, and what was used in this month. None of what no agent asks for.
pub(super) async fn told(
    server: &Server,
    mesh: &Mesh,
    session: Option<&Session>,
    tenant: &str,
) -> Result<(Option<Value>, Option<Value>), Problem> {
    let agents = &mesh.settings.agents;
    let has_budgets = agents.iter().any(|agent| agent.budget.is_some());
    let remembers = agents.iter().any(|agent| agent.remembers);
    if !has_budgets && !remembers {
        return Ok((None, None));
    }
    // A run may have ended whose entries were not acted on yet.
    for open in server.store().open_runs(None)? {
        let Some((of, _)) = server.store().run_of_mesh(&open.run)? else { continue };
        let page = server.runs().store().entries(&open.run, open.seen, ENTRIES).await?;
        for entry in &page.entries {
            keep(server, mesh, of.number, &open.run, entry)?;
        }
    }
    let posts = match remembers {
        true => {
            let number = session.map_or(-1, |session| session.number);
            let others = agents.iter().filter(|agent| agent.remembers_others).map(|agent| agent.name.as_str());
            Some(server.store().posts(number, tenant, &others.collect::<Vec<_>>())?.into())
        }
        false => None,
    };
    let spent = match has_budgets {
        true => Some(server.store().spent_since(month_of(server.clock().now()))?.into()),
        false => None,
    };
    Ok((posts, spent))
}

/// When the month began, in UTC.
fn month_of(now: SystemTime) -> SystemTime {
    let now = Timestamp::try_from(now).unwrap_or_default().to_zoned(TimeZone::UTC);
    let first = now.first_of_month().and_then(|day| day.start_of_day());
    first.map_or(SystemTime::UNIX_EPOCH, |first| first.timestamp().into())
}

impl Store {
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

    fn keep_spent(
        &self,
        agent: &str,
        (run, entry): (&RunId, u64),
        at: SystemTime,
        spent: &Spent,
    ) -> Result<(), StoreError> {
        self.with(|connection| {
            connection
                .prepare_cached(
                    "INSERT OR IGNORE INTO mesh_spent (run, entry, agent, at, tokens, cost_usd) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                )?
                .execute(params![
                    run.as_str(),
                    i64::try_from(entry).unwrap_or(i64::MAX),
                    agent,
                    microseconds(at),
                    i64::try_from(spent.tokens).unwrap_or(i64::MAX),
                    spent.cost_usd
                ])?;
            Ok(())
        })
    }

    /// The newest posts of a session, and those about these agents of other sessions of a tenant, the oldest first.
    fn posts(&self, session: i64, tenant: &str, others: &[&str]) -> Result<Vec<Value>, StoreError> {
        let post = |row: &Row<'_>| {
            let (number, at, text): (i64, i64, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let since = time(at).duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            let mut post: Value = serde_json::from_str(&text).unwrap_or_default();
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
                    .query_map(params![agent, session, tenant, POSTS], post)?
                    .collect::<rusqlite::Result<Vec<_>>>()?;
                posts.extend(of_others);
            }
            Ok(posts)
        })?;
        posts.sort_by_key(|(number, _)| *number);
        Ok(posts.into_iter().map(|(_, post)| post).collect())
    }

    /// What agents have used since then, by their names.
    fn spent_since(&self, since: SystemTime) -> Result<Map<String, Value>, StoreError> {
        self.read(|connection| {
            let spent = |row: &Row<'_>| {
                let (agent, tokens, cost): (String, i64, f64) = (row.get(0)?, row.get(1)?, row.get(2)?);
                Ok((agent, json!({ SPENT_TOKENS: tokens, SPENT_COST: cost })))
            };
            connection
                .prepare_cached(
                    "SELECT agent, sum(tokens), sum(cost_usd) FROM mesh_spent WHERE at >= ?1 GROUP BY agent",
                )?
                .query_map([microseconds(since)], spent)?
                .collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::month_of;

    #[test]
    fn months_begin_in_utc() {
        let at = |text: &str| SystemTime::from(text.parse::<jiff::Timestamp>().expect("a time"));
        for (now, first) in [
            ("2030-11-30T23:59:59Z", "2030-11-01T00:00:00Z"),
            ("2030-12-01T00:00:00Z", "2030-12-01T00:00:00Z"),
            ("2028-02-29T12:00:00Z", "2028-02-01T00:00:00Z"),
        ] {
            assert_eq!(month_of(at(now)), at(first), "{now}");
        }
        assert_eq!(month_of(SystemTime::UNIX_EPOCH + Duration::from_secs(60)), SystemTime::UNIX_EPOCH);
    }
}
