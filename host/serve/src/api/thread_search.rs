//! Finding threads, counting them, and removing several.

use std::collections::HashSet;

use axum::Json;
use axum::extract::State;
use hotcell_runtime::{RunQuery, RunStatus};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::langgraph::thread_state;
use super::listed::Listed;
use super::page::SortOrder;
use super::params::MOST;
use super::thread_view::{ThreadStatus, ThreadView, status_of};
use super::{agents, extract, page, threads};
use crate::problem::{Problem, shown};
use crate::state::Server;
use crate::thread_store::{Thread, ThreadOrder, ThreadQuery, has};
use crate::view::Object;

/// Threads whose status is looked at for one request.
const MOST_STATUSES: usize = 10_000;
/// Runs whose threads are collected for one request.
const MOST_RUNS: usize = 100_000;
/// Threads whose state is read for one request.
const MOST_STATES: usize = 1000;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(search)).routes(routes!(count)).routes(routes!(prune))
}

/// Which threads are wanted.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ThreadSearch {
    /// Those with all of this metadata
    #[schema(value_type = Option<Object>)]
    metadata: Option<Object>,
    /// Those whose state has all of these values. Up to 1000 threads are looked at; the other members have to leave out the rest
    #[schema(value_type = Option<Object>)]
    values: Option<Object>,
    /// Those that stand so. Up to 10000 threads are looked at
    status: Option<ThreadStatus>,
    /// Those of these ids
    #[schema(max_items = 1000)]
    ids: Option<Vec<String>>,
    /// What they are ordered by; when they were made if it is left out
    sort_by: Option<SortBy>,
    /// In which order; the last one first if it is left out
    sort_order: Option<SortOrder>,
    /// How many at most
    #[schema(minimum = 1, maximum = 1000, default = 10)]
    #[serde(default, deserialize_with = "extract::whole")]
    limit: Option<usize>,
    /// How many are left out before the first one
    #[schema(minimum = 0, maximum = 10000, default = 0)]
    #[serde(default, deserialize_with = "extract::whole")]
    offset: Option<usize>,
}

/// What threads are ordered by.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = SortThreadsBy)]
enum SortBy {
    /// When they were made
    CreatedAt,
    /// When they were last changed, or a run was begun in them
    UpdatedAt,
    /// Their ids
    ThreadId,
}

/// Which threads are meant.
struct Which {
    metadata: Object,
    values: Object,
    status: Option<ThreadStatus>,
    ids: Option<Vec<String>>,
}

impl Which {
    /// The ids of those that are meant, in the order of a query, and as many of them as it says.
    async fn find(self, server: &Server, query: ThreadQuery) -> Result<Vec<String>, Problem> {
        if self.ids.as_ref().is_some_and(|ids| ids.len() > MOST) {
            return Err(Problem::unprocessable(format!("`ids` has at most {MOST} ids")));
        }
        let Which { metadata, values, status, ids } = self;
        let mut among: Option<HashSet<String>> = ids.map(HashSet::from_iter);
        if let Some(busy) = candidates(server, status).await? {
            among = Some(match among {
                Some(among) => among.intersection(&busy).cloned().collect(),
                None => busy,
            });
        }
        let query = ThreadQuery { metadata, among, ..query };
        let most = match (values.is_empty(), status) {
            (false, _) => MOST_STATES,
            (true, Some(_)) => MOST_STATUSES,
            (true, None) => return Ok(server.store().thread_ids(&query)?),
        };
        let ids = server.store().thread_ids(&ThreadQuery { limit: most + 1, offset: 0, ..query.clone() })?;
        let (mut found, mut left_out) = (Vec::new(), 0);
        for (number, id) in ids.into_iter().enumerate() {
            if found.len() == query.limit {
                break;
            }
            if number == most {
                let detail = format!(
                    "more than {most} threads would have to be looked at; leave out some with `metadata`, `ids` or another `status`"
                );
                return Err(Problem::unprocessable(detail).with("limit", most));
            }
            let Some(thread) = server.store().thread(&id)? else { continue };
            if !fits(server, &thread, status, &values).await? {
                continue;
            }
            if left_out < query.offset {
                left_out += 1;
            } else {
                found.push(id);
            }
        }
        Ok(found)
    }
}

/// Threads that may stand so, as the index of runs says; none if it does not say, or says it of so many runs that it helps nobody.
async fn candidates(server: &Server, status: Option<ThreadStatus>) -> Result<Option<HashSet<String>>, Problem> {
    let statuses = match status {
        None | Some(ThreadStatus::Idle) => return Ok(None),
        Some(ThreadStatus::Busy) => vec![RunStatus::Running, RunStatus::Interrupted],
        Some(ThreadStatus::Interrupted) => vec![RunStatus::Waiting],
        Some(ThreadStatus::Error) => vec![RunStatus::Failed],
    };
    let sources = agents::sources(server, None)?;
    let mut query = RunQuery { statuses, sources, limit: MOST, ..RunQuery::default() };
    let (mut found, mut looked_at) = (HashSet::new(), 0);
    loop {
        let page = server.runs().store().list(&query).await?;
        looked_at += page.runs.len();
        found.extend(page.runs.into_iter().filter_map(|run| run.thread));
        query.after = page.next;
        if query.after.is_none() {
            return Ok(Some(found));
        }
        if looked_at >= MOST_RUNS {
            return Ok(None);
        }
    }
}

async fn fits(
    server: &Server,
    thread: &Thread,
    status: Option<ThreadStatus>,
    values: &Object,
) -> Result<bool, Problem> {
    if let Some(status) = status
        && status_of(server, thread).await? != status
    {
        return Ok(false);
    }
    if values.is_empty() {
        return Ok(true);
    }
    match thread_state(server, thread.clone()).await {
        Ok(state) => Ok(has(state.values(), values)),
        // Its agent is not served any more.
        Err(problem) if problem.status == 404 => Ok(false),
        Err(problem) => Err(problem),
    }
}

/// Find threads, the newest first
#[utoipa::path(
    post, path = "/threads/search", tag = "Threads", security(("key" = ["run", "operate"])),
    request_body = ThreadSearch, responses((status = 200, body = Vec<ThreadView>))
)]
async fn search(
    State(server): State<Server>,
    extract::Json(wanted): extract::Json<ThreadSearch>,
) -> Result<Json<Vec<ThreadView>>, Problem> {
    let (limit, offset) = page::bounds(wanted.limit, wanted.offset)?;
    let order = match wanted.sort_by {
        None | Some(SortBy::CreatedAt) => ThreadOrder::Created,
        Some(SortBy::UpdatedAt) => ThreadOrder::Updated,
        Some(SortBy::ThreadId) => ThreadOrder::Id,
    };
    let ascending = wanted.sort_order == Some(SortOrder::Asc);
    let query = ThreadQuery { order, ascending, limit, offset, ..ThreadQuery::default() };
    let which = Which {
        metadata: wanted.metadata.unwrap_or_default(),
        values: wanted.values.unwrap_or_default(),
        status: wanted.status,
        ids: wanted.ids,
    };
    let mut views = Listed::new();
    for id in which.find(&server, query).await? {
        // One may be removed meanwhile.
        if let Some(thread) = server.store().thread(&id)? {
            views.push(threads::whole_view(&server, thread).await?)?;
        }
    }
    Ok(Json(views.into_all()))
}

/// Which threads are counted.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ThreadCount {
    /// Those with all of this metadata
    #[schema(value_type = Option<Object>)]
    metadata: Option<Object>,
    /// Those whose state has all of these values. Up to 1000 threads are looked at
    #[schema(value_type = Option<Object>)]
    values: Option<Object>,
    /// Those that stand so. Up to 10000 threads are looked at
    status: Option<ThreadStatus>,
}

/// Count threads
#[utoipa::path(
    post, path = "/threads/count", tag = "Threads", security(("key" = ["run", "operate"])),
    request_body = ThreadCount, responses((status = 200, body = u64, content_type = "application/json"))
)]
async fn count(
    State(server): State<Server>,
    extract::Json(wanted): extract::Json<ThreadCount>,
) -> Result<Json<u64>, Problem> {
    let ThreadCount { metadata, values, status } = wanted;
    let (metadata, values) = (metadata.unwrap_or_default(), values.unwrap_or_default());
    let query = ThreadQuery { limit: usize::MAX, ..ThreadQuery::default() };
    if values.is_empty() && status.is_none() {
        let query = ThreadQuery { metadata, ..query };
        return Ok(Json(server.store().thread_ids(&query)?.len() as u64));
    }
    let which = Which { metadata, values, status, ids: None };
    Ok(Json(which.find(&server, query).await?.len() as u64))
}

/// Which threads are removed.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ThreadPrune {
    /// Their ids; those that are not there are left out
    #[schema(max_items = 1000)]
    thread_ids: Vec<String>,
    /// `delete`: they are removed with their runs
    strategy: Option<String>,
}

/// What was removed.
#[derive(Serialize, ToSchema)]
struct Pruned {
    /// How many threads
    pruned_count: u64,
}

/// Remove several threads and their runs
///
/// Nothing is removed if a run of one of them has not ended.
#[utoipa::path(
    post, path = "/threads/prune", tag = "Threads", security(("key" = ["operate"])),
    request_body = ThreadPrune, responses((status = 200, body = Pruned))
)]
async fn prune(
    State(server): State<Server>,
    extract::Json(wanted): extract::Json<ThreadPrune>,
) -> Result<Json<Pruned>, Problem> {
    if let Some(strategy) = wanted.strategy.filter(|strategy| strategy != "delete") {
        let detail = format!("`strategy` is `delete`; `{}` is not supported", shown(&strategy));
        return Err(Problem::unprocessable(detail));
    }
    if wanted.thread_ids.len() > MOST {
        return Err(Problem::unprocessable(format!("`thread_ids` has at most {MOST} ids")));
    }
    let mut there = Vec::new();
    for id in wanted.thread_ids {
        if let Some(thread) = server.store().thread(&id)? {
            threads::has_ended(&server, &thread).await?;
            there.push(id);
        }
    }
    let mut pruned_count = 0;
    for id in there {
        match threads::remove(&server, &id).await {
            Ok(()) => pruned_count += 1,
            // It was named twice, or somebody else has removed it.
            Err(problem) if problem.status == 404 => {}
            Err(problem) => return Err(problem),
        }
    }
    Ok(Json(Pruned { pruned_count }))
}
