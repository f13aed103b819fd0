//! A file that looks like an agent, and what is served of it.

use std::path::Path;
use std::sync::Arc;

use hotcell_runtime::{Agent, Discovered, Freshness, Host, Unsettled};

use super::trouble::Trouble;

/// A file that looks like an agent, and what is served of it.
#[derive(Clone)]
pub(super) struct Unit {
    /// What it is called
    pub(super) id: String,
    /// Which of the roots it is below
    pub(super) root: usize,
    /// Its agents as they were loaded last; none if it never could be
    pub(super) agents: Vec<(String, Arc<Agent>)>,
    /// What would have to change so that it is loaded again
    pub(super) fresh: Freshness,
    /// Whether it is to be loaded again although nothing was changed
    pub(super) is_due: bool,
    /// Why what it says now is not served
    pub(super) trouble: Option<Arc<Trouble>>,
}

/// What came of loading a file again.
pub(super) struct Tried {
    pub(super) result: Result<Vec<(String, Agent)>, Unsettled>,
    pub(super) fresh: Freshness,
}

/// Loads the agents of a file; whoever runs the server named it, or a folder around it, unless somebody sent it.
pub(super) async fn load(host: &Host, found: &Discovered, is_named: bool) -> Tried {
    match try_load(host, &found.path, &found.id, is_named).await {
        Ok((agents, fresh)) => Tried { result: Ok(agents), fresh },
        Err((error, fresh)) => Tried { result: Err(error), fresh },
    }
}

type Agents = (Vec<(String, Agent)>, Freshness);

async fn try_load(host: &Host, path: &Path, id: &str, is_named: bool) -> Result<Agents, (Unsettled, Freshness)> {
    let (first, mut fresh) = host.load_settled(path, None, is_named).await?;
    if first.names.len() < 2 {
        return Ok((vec![(id.to_owned(), first)], fresh));
    }
    let mut agents = Vec::with_capacity(first.names.len());
    for name in &first.names {
        let (agent, of_this) = host.load_settled(path, Some(name), is_named).await?;
        fresh = fresh.and(of_this);
        agents.push((format!("{id}.{name}"), agent));
    }
    Ok((agents, fresh))
}
