//! Servers of several tenants behind one address.

use std::collections::BTreeMap;
use std::path::PathBuf;

use hotcell_runtime::{CancellationToken, Host, HostOptions, LoadFailure};
use tokio::net::TcpListener;

use crate::error::ServeError;
use crate::front::{Front, Served};
use crate::groups::Groups;
use crate::quota::Quota;
use crate::server::serve_all;
use crate::state::{Common, ServeSettings, Server};
use crate::store::Store;
use crate::tenant_name::TenantName;
use crate::webhooks::WebhookSettings;

/// A tenant, and what it has for itself alone.
pub struct Tenant {
    /// What it is called
    pub name: TenantName,
    /// What loads and runs its agents: with its environment, its plugins, its journal and its data of plugins
    pub host: Host,
    /// Its folders with agents, at any depth, or files of agents
    pub folders: Vec<PathBuf>,
    /// The file of what is kept beside its journal; none keeps it in memory
    pub file: Option<PathBuf>,
    /// How many of its runs are worked on at a time; further ones are refused
    pub max_runs: usize,
    /// What it may use besides
    pub quota: Quota,
    /// Where others are told what becomes of its runs
    pub webhooks: WebhookSettings,
    /// The groups of its people
    pub groups: Groups,
}

/// Servers of several tenants behind one address. Each has agents, runs, threads, questions and a file of its own; whose request it
/// is follows from the key that it shows.
pub struct Site {
    common: Common,
    /// Has nothing: it answers whoever is no tenant
    nobody: Server,
    tenants: BTreeMap<TenantName, Server>,
}

impl Site {
    /// Finds and loads the agents of all tenants. What `settings` say of folders, of webhooks and of what may be used does not count, and
    /// their file keeps API keys.
    ///
    /// # Errors
    /// When there is no tenant, when two have the same name, or when the server of one cannot be set up.
    pub async fn new(settings: ServeSettings, tenants: Vec<Tenant>) -> Result<Self, ServeError> {
        let first = tenants.first().ok_or_else(|| ServeError::Tenants("there are no tenants".to_owned()))?;
        let common = Common::new(&settings, Store::open(settings.file.as_deref())?, true)?;
        let settings = ServeSettings { webhooks: WebhookSettings::default(), ..settings };
        let own = |folders, file, max_runs, quota| ServeSettings { folders, file, max_runs, quota, ..settings.clone() };
        let host =
            first.host.beside(HostOptions::isolated()).map_err(|error| ServeError::Tenants(error.to_string()))?;
        let nobody =
            Server::of(host, own(Vec::new(), None, 1, Quota::default()), common.clone(), Store::open(None)?, None)
                .await?;
        let mut servers = BTreeMap::new();
        for Tenant { name, host, folders, file, max_runs, quota, webhooks, groups } in tenants {
            let store = Store::open(file.as_deref())?;
            let settings = ServeSettings { webhooks, groups, ..own(folders, file, max_runs, quota) };
            let server = Server::of(host, settings, common.clone(), store, Some(name.clone())).await;
            let server = server.map_err(|error| match error {
                ServeError::Webhook(reason) => ServeError::Webhook(format!("tenant `{name}`: {reason}")),
                other => other,
            })?;
            if servers.insert(name.clone(), server).is_some() {
                return Err(ServeError::Tenants(format!("there are two tenants `{name}`")));
            }
        }
        Ok(Site { common, nobody, tenants: servers })
    }

    /// How many agents are served, of all tenants.
    pub fn agent_count(&self) -> usize {
        self.tenants.values().map(Server::agent_count).sum()
    }

    /// Files that look like agents and cannot be loaded, and why.
    pub fn not_served(&self) -> impl Iterator<Item = (&TenantName, PathBuf, LoadFailure)> {
        self.tenants.iter().flat_map(|(name, server)| {
            server.not_served().into_iter().map(move |(path, failure)| (name, path, failure))
        })
    }

    /// Serves until `shutdown` is cancelled, as [`Server::serve`] does.
    ///
    /// # Errors
    /// When a journal cannot be read.
    pub async fn serve(self, listener: TcpListener, shutdown: CancellationToken) -> Result<(), ServeError> {
        let served = |server: &Server| Served { router: server.router(), server: server.clone() };
        let tenants = self.tenants.iter().map(|(name, server)| (name.clone(), served(server))).collect();
        let front = Front::of_several(self.common.clone(), served(&self.nobody), tenants);
        // Last comes the one that says whether all are ready.
        let servers: Vec<Server> = self.tenants.into_values().chain([self.nobody]).collect();
        serve_all(&servers, front, listener, shutdown).await
    }
}
