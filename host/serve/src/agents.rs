//! The agents that are served.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::join_all;
use hotcell_runtime::{Agent, Discovered, Host, LoadFailure, discover};

use crate::problem::{Problem, shown};

/// The agents that are served, by what runs name them by.
pub(crate) struct Agents {
    by_id: BTreeMap<String, Arc<Agent>>,
    by_source: HashMap<String, String>,
}

/// A file that looks like an agent and is none that can be served.
pub(crate) struct NotServed {
    pub(crate) path: PathBuf,
    pub(crate) failure: LoadFailure,
}

impl Agents {
    /// Finds and loads what is below some folders; what cannot be loaded is left out.
    ///
    /// # Errors
    /// When two of them have the same id.
    pub(crate) async fn load(host: &Host, folders: &[PathBuf]) -> Result<(Self, Vec<NotServed>), String> {
        let found: Vec<Discovered> = folders.iter().flat_map(|folder| discover(folder)).collect();
        let loaded = join_all(found.iter().map(|found| load(host, found))).await;
        let mut agents = Agents { by_id: BTreeMap::new(), by_source: HashMap::new() };
        let mut left_out = Vec::new();
        for (found, loaded) in found.iter().zip(loaded) {
            match loaded {
                Ok(loaded) => {
                    for (id, agent) in loaded {
                        agents.add(id, agent)?;
                    }
                }
                Err(failure) => left_out.push(NotServed { path: found.path.clone(), failure }),
            }
        }
        Ok((agents, left_out))
    }

    fn add(&mut self, id: String, agent: Agent) -> Result<(), String> {
        if let Some(known) = self.by_id.get(&id) {
            if known.source() == agent.source() {
                return Ok(());
            }
            let (one, other) = (known.file.display(), agent.file.display());
            return Err(format!("two agents would be called `{id}`: `{one}` and `{other}`; rename one of them"));
        }
        // One that is reached by way of two folders keeps its first name.
        if !self.by_source.contains_key(agent.source()) {
            self.by_source.insert(agent.source().to_owned(), id.clone());
            self.by_id.insert(id, Arc::new(agent));
        }
        Ok(())
    }

    /// All of them, in the order of their ids.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &Arc<Agent>)> {
        self.by_id.iter().map(|(id, agent)| (&**id, agent))
    }

    /// The agent of an id, or of a name that no other one has.
    pub(crate) fn find(&self, name: &str) -> Result<(&str, &Arc<Agent>), Problem> {
        if let Some((id, agent)) = self.by_id.get_key_value(name) {
            return Ok((id, agent));
        }
        let mut named = self.all().filter(|(_, agent)| agent.graph.name == name);
        match (named.next(), named.next()) {
            (Some(found), None) => Ok(found),
            (Some((one, _)), Some((other, _))) => {
                let detail = format!("several agents are called `{}`: `{one}` and `{other}`; use the id", shown(name));
                Err(Problem::conflict(detail).kind("agent-ambiguous", "Several agents have this name"))
            }
            (None, _) => {
                let detail = format!("there is no agent `{}`; `POST /agents/search` lists them", shown(name));
                Err(Problem::not_found(detail).kind("unknown-agent", "There is no such agent"))
            }
        }
    }

    /// Where all of them were loaded from.
    pub(crate) fn sources(&self) -> Vec<String> {
        self.by_source.keys().cloned().collect()
    }

    /// The id of the agent that a run was loaded from, if it is served.
    pub(crate) fn id_of(&self, source: &str) -> Option<String> {
        self.by_source.get(source).cloned()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }
}

/// The agents of a file.
async fn load(host: &Host, found: &Discovered) -> Result<Vec<(String, Agent)>, LoadFailure> {
    let first = host.load_any_async(&found.path, None).await?;
    if first.names.len() < 2 {
        return Ok(vec![(found.id.clone(), first)]);
    }
    let mut agents = Vec::with_capacity(first.names.len());
    for name in &first.names {
        let agent = host.load_any_async(&found.path, Some(name)).await?;
        agents.push((format!("{}.{name}", found.id), agent));
    }
    Ok(agents)
}
