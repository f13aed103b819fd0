//! What everything that is answered has in common.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use hotcell_http::{Hosts, Limits};
use hotcell_runtime::{CancellationToken, Clock};
use hotcell_telemetry::Telemetry;
use http::HeaderValue;
use tokio::sync::{Semaphore, broadcast};
use url::Url;
use utoipa::openapi::OpenApi;

use crate::access::Access;
use crate::access::oidc::OidcSettings;
use crate::agents::Agents;
use crate::agents::watching::Watching;
use crate::groups::Groups;
use crate::mesh::meshes::{Meshes, NamedMesh};
use crate::once::InProgress;
use crate::quota::{Quota, Quotas};
use crate::rules::Rules;
use crate::runs::Runs;
use crate::schedule::tasks::Schedules;
use crate::shares::{Places, Shares};
use crate::store::Store;
use crate::tenant_name::TenantName;
use crate::told_runs::ToldRuns;
use crate::webhooks::{WebhookSettings, Webhooks};

/// How a server is set up.
#[derive(Clone, Debug)]
pub struct ServeSettings {
    /// Folders with agents, at any depth, or files of agents
    pub folders: Vec<PathBuf>,
    /// How it is noticed that files of agents change
    pub watching: Watching,
    /// The names under which it may be addressed, as `name` or `name:port`, besides those of this machine
    pub hosts: Vec<String>,
    /// Where others reach it, as `https://name`; none means the address at which it listens
    pub public_url: Option<String>,
    /// How many runs are worked on at a time; further ones are refused
    pub max_runs: usize,
    /// How long runs that are worked on get when the server is told to stop
    pub drain: Duration,
    /// The file of what is kept beside the journal; none keeps it in memory
    pub file: Option<PathBuf>,
    /// What clients may cost
    pub limits: Limits,
    /// How many requests a second each API key may make, and twice as many at once; 0 for any number
    pub requests_per_second: u32,
    /// What of it may be used, by all keys together
    pub quota: Quota,
    /// Origins of web pages that may use the server, as `https://name`, besides its own
    pub cors_origins: Vec<String>,
    /// Who issues tokens that count beside API keys
    pub oidc: Vec<OidcSettings>,
    /// The groups of people that questions may be for
    pub groups: Groups,
    /// The bytes of the body of a request
    pub largest_body: usize,
    /// How long the body of a request may take to arrive
    pub body_within: Duration,
    /// Where others are told what becomes of runs
    pub webhooks: WebhookSettings,
    /// Where servers of chat providers are that are not at `https://NAME`, by their names: for tests. Whoever runs the server says
    /// so; no file of an agent and no variable does
    pub vendor_addresses: BTreeMap<String, Url>,
    /// What is counted and traced
    pub telemetry: Telemetry,
}

impl Default for ServeSettings {
    fn default() -> Self {
        ServeSettings {
            folders: Vec::new(),
            watching: Watching::default(),
            hosts: Vec::new(),
            public_url: None,
            max_runs: 1024,
            drain: Duration::from_secs(20),
            file: None,
            limits: Limits { connections: 16_384, ..Limits::default() },
            requests_per_second: 1000,
            quota: Quota::default(),
            cors_origins: Vec::new(),
            oidc: Vec::new(),
            groups: Groups::default(),
            largest_body: 4 << 20,
            body_within: Duration::from_secs(30),
            webhooks: WebhookSettings::default(),
            vendor_addresses: BTreeMap::new(),
            telemetry: Telemetry::default(),
        }
    }
}

/// What begins the path of a request that says which tenant it is for; the tenant's name and the path come after it.
pub(crate) const TENANTS: &str = "/tenants/";

/// How many requests execute recorded calls again at a time: they take the cores that runs need.
pub(crate) const REEXECUTING: usize = 2;

/// A server, or that of one tenant. Cheap to clone.
#[derive(Clone)]
pub struct Server(pub(crate) Arc<Inner>);

/// What the servers of all tenants have in common.
#[derive(Clone)]
pub(crate) struct Common {
    pub(crate) access: Arc<Access>,
    pub(crate) hosts: Hosts,
    pub(crate) rules: Arc<Rules>,
    pub(crate) document: Arc<OpenApi>,
    /// Where it listens, when it does
    pub(crate) address: Arc<OnceLock<SocketAddr>>,
    pub(crate) shares: Arc<Shares>,
    /// Places for requests that execute recorded calls again
    pub(crate) reexecuting: Arc<Semaphore>,
}

pub(crate) struct Inner {
    pub(crate) settings: ServeSettings,
    pub(crate) common: Common,
    /// Whose server it is; none on a server without tenants
    pub(crate) tenant: Option<TenantName>,
    pub(crate) agents: Arc<Agents>,
    pub(crate) runs: Runs,
    pub(crate) meshes: Meshes,
    pub(crate) schedules: Schedules,
    /// Runs of which addresses of others are told
    pub(crate) told_runs: ToldRuns,
    pub(crate) store: Store,
    /// Its places among those of all
    pub(crate) reexecuting: Places,
    /// Requests with a key that are carried out
    pub(crate) in_progress: InProgress,
    /// Agents and the groups that they name and nobody defined, as far as that was told
    pub(crate) undefined_groups: Mutex<BTreeSet<(String, String)>>,
    /// When the agents were loaded
    pub(crate) started: SystemTime,
    /// When the journal was counted last
    pub(crate) counted: tokio::sync::Mutex<Option<Instant>>,
    /// Cancelled when what was left by a server before has been taken up
    pub(crate) ready: CancellationToken,
    /// Cancelled when no run is worked on any more: streams have to end
    pub(crate) closing: CancellationToken,
}

impl Server {
    pub(crate) fn settings(&self) -> &ServeSettings {
        &self.0.settings
    }

    pub(crate) fn telemetry(&self) -> &Telemetry {
        &self.settings().telemetry
    }

    pub(crate) fn access(&self) -> &Access {
        &self.0.common.access
    }

    /// What is answered at the moment, by whose it is; all tenants have it in common.
    pub(crate) fn shares(&self) -> &Arc<Shares> {
        &self.0.common.shares
    }

    /// Places for requests that execute recorded calls again.
    pub(crate) fn reexecuting(&self) -> &Places {
        &self.0.reexecuting
    }

    pub(crate) fn agents(&self) -> &Agents {
        &self.0.agents
    }

    pub(crate) fn runs(&self) -> &Runs {
        &self.0.runs
    }

    /// Keeps what is used within what may be used.
    pub(crate) fn quotas(&self) -> &Quotas {
        self.runs().quotas()
    }

    /// Whether web pages of this origin may use the server, or the mesh that an address names.
    pub(crate) fn lets_in(&self, origin: &HeaderValue, mesh: Option<&NamedMesh>) -> bool {
        self.settings().cors_origins.iter().any(|listed| origin == listed.as_str())
            || self.meshes().lets_in(origin, mesh)
    }

    pub(crate) fn meshes(&self) -> &Meshes {
        &self.0.meshes
    }

    pub(crate) fn schedules(&self) -> &Schedules {
        &self.0.schedules
    }

    /// The clock by which agents wait.
    pub(crate) fn clock(&self) -> &Arc<dyn Clock> {
        self.runs().clock()
    }

    /// Whose server it is; none on a server without tenants.
    pub(crate) fn tenant(&self) -> Option<&TenantName> {
        self.0.tenant.as_ref()
    }

    /// Runs of which addresses of others are told.
    pub(crate) fn told_runs(&self) -> &ToldRuns {
        &self.0.told_runs
    }

    /// Where others reach it. Addresses that need no key say whose they are.
    pub(crate) fn base_url(&self) -> String {
        let base = match (&self.settings().public_url, self.0.common.address.get()) {
            (Some(url), _) => url.trim_end_matches('/').to_owned(),
            (None, Some(address)) => format!("http://{address}"),
            (None, None) => return String::new(),
        };
        match self.tenant() {
            Some(tenant) => format!("{base}{TENANTS}{tenant}"),
            None => base,
        }
    }

    /// A variable of the environment.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        self.runs().variable(name)
    }

    /// What happens from now on in the mesh that is served, as objects with a `type`.
    pub fn mesh_events(&self) -> broadcast::Receiver<serde_json::Value> {
        self.meshes().events()
    }

    pub(crate) fn webhooks(&self) -> &Webhooks {
        self.runs().webhooks()
    }

    pub(crate) fn in_progress(&self) -> &InProgress {
        &self.0.in_progress
    }

    pub(crate) fn store(&self) -> &Store {
        &self.0.store
    }

    pub(crate) fn rules(&self) -> &Rules {
        &self.0.common.rules
    }

    /// When the agents were loaded.
    pub(crate) fn started(&self) -> SystemTime {
        self.0.started
    }

    /// What is served, as an OpenAPI document.
    pub fn document(&self) -> &OpenApi {
        &self.0.common.document
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.0.ready.is_cancelled() && !self.runs().is_draining()
    }

    /// Cancelled when what was left by a server before has been taken up. Before that, a run that goes on in a moment looks like one
    /// that nobody works on.
    pub(crate) fn ready(&self) -> &CancellationToken {
        &self.0.ready
    }

    pub(crate) fn closing(&self) -> &CancellationToken {
        &self.0.closing
    }
}
