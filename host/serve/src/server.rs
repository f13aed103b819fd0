//! The server: what it is set up with, and its life from the first agent that is loaded to the last run that is let go.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{self, from_fn_with_state};
use axum::response::Response;
use futures::FutureExt as _;
use futures::future::{join, join_all, join5, try_join_all};
use hotcell_http::Hosts;
use hotcell_runtime::mcp::McpService;
use hotcell_runtime::{CancellationToken, Host, LoadFailure};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::access::Access;
use crate::access::audit::Audit;
use crate::access::oidc::{Oidc, with_groups_of_tokens};
use crate::agents::refresh::Loaded;
use crate::agents::sent::place_of;
use crate::agents::{Agents, Root};
use crate::api;
use crate::asked;
use crate::deadlines;
use crate::error::ServeError;
use crate::front::{Front, Served};
use crate::gauges;
use crate::guard;
use crate::keyed;
use crate::mesh;
use crate::mesh::meshes::Meshes;
use crate::once::InProgress;
use crate::problem::shown;
use crate::quota::Quotas;
use crate::rules::Rules;
use crate::runs::Runs;
use crate::schedule;
use crate::schedule::tasks::Schedules;
use crate::shares::{Places, Shares};
use crate::spending;
use crate::state::{Common, Inner, REEXECUTING, ServeSettings, Server};
use crate::step::{Next, Step};
use crate::store::Store;
use crate::tenant_name::TenantName;
use crate::told_runs::ToldRuns;
use crate::watch;
use crate::webhooks::{self, Webhooks};

impl Server {
    /// Finds and loads the agents of the folders. What cannot be loaded is not served; [`Server::not_served`] says why.
    ///
    /// # Errors
    /// When the server cannot be set up.
    pub async fn new(host: Host, settings: ServeSettings) -> Result<Self, ServeError> {
        let store = Store::open(settings.file.as_deref())?;
        let common = Common::new(&settings, store.clone(), false)?;
        Server::of(host, settings, common, store, None).await
    }

    /// The server of a tenant, or of everybody.
    pub(crate) async fn of(
        host: Host,
        settings: ServeSettings,
        common: Common,
        store: Store,
        tenant: Option<TenantName>,
    ) -> Result<Self, ServeError> {
        // What belongs to one tenant is counted apart.
        let telemetry = match &tenant {
            Some(tenant) => settings.telemetry.of_tenant(tenant.as_str()),
            None => settings.telemetry.clone(),
        };
        let settings = ServeSettings { telemetry, ..settings };
        let webhooks = Webhooks::new(&host, &settings.webhooks, store.clone())?;
        mesh::spending::count(&host, &store);
        let roots = settings.folders.iter().map(|path| Root { path: path.clone(), is_sent: false });
        let sent = settings.file.as_deref().map(|file| Root { path: place_of(file), is_sent: true });
        let roots = roots.chain(sent).collect();
        // The files of one tenant keep no other one from being served.
        let agents = Arc::new(Agents::load(host.clone(), store.clone(), roots, tenant.is_none()).await?);
        let groups = match &tenant {
            Some(tenant) => with_groups_of_tokens(settings.groups.clone(), &settings.oidc, tenant),
            None => settings.groups.clone(),
        };
        let own_places = if tenant.is_some() { REEXECUTING / 2 } else { REEXECUTING };
        let server = Server(Arc::new(Inner {
            meshes: Meshes::of(&agents, &store)?,
            schedules: Schedules::default(),
            told_runs: ToldRuns::default(),
            runs: Runs::new(
                host,
                agents.clone(),
                settings.max_runs,
                Quotas::new(settings.quota.clone(), store.clone()),
                settings.telemetry.clone(),
                webhooks,
                store.clone(),
            )
            .with_groups(groups),
            reexecuting: Places::new(common.reexecuting.clone(), own_places),
            common,
            tenant,
            agents,
            store,
            in_progress: InProgress::default(),
            undefined_groups: Mutex::default(),
            started: SystemTime::now(),
            counted: tokio::sync::Mutex::default(),
            ready: CancellationToken::new(),
            closing: CancellationToken::new(),
            settings,
        }));
        server.tell_undefined_groups();
        Ok(server)
    }

    /// Tells whoever runs the server of groups that agents name and nobody defined, once each.
    fn tell_undefined_groups(&self) {
        let now = asked::undefined_groups(self.agents(), self.runs().groups());
        let mut told = self.0.undefined_groups.lock().unwrap_or_else(PoisonError::into_inner);
        for (agent, group) in now.difference(&told) {
            let group = shown(group);
            let reason = format!("define `{group}` in the server file (`groups`), or with `--group`");
            tracing::warn!(
                target: "hotcell::serve", agent, group, reason, "questions of the agent are for a group that is not defined"
            );
        }
        *told = now;
    }

    /// How many agents are served.
    pub fn agent_count(&self) -> usize {
        self.0.agents.len()
    }

    /// Files that look like agents and cannot be loaded, and why.
    pub fn not_served(&self) -> Vec<(PathBuf, LoadFailure)> {
        self.agents().not_served().into_iter().map(|left| (left.path, left.failure)).collect()
    }

    /// Looks what was changed of the files of agents, and serves it from now on.
    pub(crate) async fn refresh(&self) -> Loaded {
        let loaded = self.agents().refresh().await;
        let loaded = loaded.unwrap_or_else(|error| {
            tracing::error!(target: "hotcell::serve", %error, "agents are served as they were");
            Loaded { is_unsettled: true, ..Loaded::default() }
        });
        if loaded.is_changed {
            self.tell_undefined_groups();
            if let Err(problem) = mesh::follow(self).await {
                tracing::error!(target: "hotcell::serve", reason = problem.detail, "changes of the mesh cannot be read");
            }
            schedule::runs::begin_all(self);
        }
        loaded
    }

    /// Serves until `shutdown` is cancelled: then no more runs are begun, those that are worked on get some time, and what is
    /// left of them goes on at the next start.
    ///
    /// # Errors
    /// When the address can be reached by anybody, or the journal cannot be read.
    pub async fn serve(self, listener: TcpListener, shutdown: CancellationToken) -> Result<(), ServeError> {
        if let Ok(address) = listener.local_addr()
            && !address.ip().is_loopback()
            && !self.access().is_closed()?
        {
            return Err(ServeError::Open(address));
        }
        let front = Front::of_one(self.0.common.clone(), Served { router: self.router(), server: self.clone() });
        serve_all(&[self], front, listener, shutdown).await
    }

    /// Goes on with what a server before left, and sees from now on to what becomes due.
    async fn begin(&self) -> Result<JoinHandle<()>, ServeError> {
        match self.0.runs.take_up().await? {
            0 => {}
            runs => tracing::info!(target: "hotcell::serve", runs, "runs that were cut off go on"),
        }
        mesh::take_up(self).await?;
        api::a2a::take_up(self)?;
        let due = deadlines::watch(self.clone(), self.clock().working());
        let spent = spending::watch(self.clone());
        let (looking, telling) = (crate::agents::watch::watch(self.clone()), webhooks::deliver::deliver(self.clone()));
        let (acting, attached) = (mesh::watch(self.clone()), self.clone().tend_attachments());
        let watching = tokio::spawn(async move {
            let (((), ()), (), (), (), ()) = join5(join(due, attached), spent, looking, telling, acting).await;
        });
        tokio::spawn(gauges::keep(self.clone()));
        // Whoever moves the clock as soon as the server is ready waits until its schedules are gone by.
        let _begins = self.clock().working();
        self.0.ready.cancel();
        schedule::runs::begin_all(self);
        Ok(watching)
    }

    /// Forgets attachments that no run needs, until the server closes.
    async fn tend_attachments(self) {
        let runs = self.runs();
        let tending = runs.attachments().tend(&**runs.store(), &**runs.clock());
        self.closing().run_until_cancelled(tending).await;
    }

    /// Begins no more runs, and lets go of those that are worked on.
    async fn end(&self, watching: JoinHandle<()>) {
        let left = self.0.runs.drain(self.0.settings.drain).await;
        if left > 0 {
            tracing::info!(target: "hotcell::serve", runs = left, "runs were interrupted; they go on at the next start");
        }
        self.0.closing.cancel();
        self.0.meshes.end().await;
        self.0.schedules.end().await;
        let _ = watching.await;
        gauges::refresh(self).await;
    }

    /// Everything that is answered.
    pub(crate) fn router(&self) -> Router {
        let (router, _) = api::routes();
        router
            .layer(from_fn_with_state(Way { server: self.clone(), mcp: Arc::new(api::mcp::service(self)) }, pass))
            .with_state(self.clone())
    }
}

/// What every request passes on its way to its route, from the outside.
static STEPS: [Step; 8] = [
    |server, request, next| watch::request(server, request, next).boxed(),
    |_, request, next| api::errors::speak(request, next).boxed(),
    |_, request, next| guard::finish(request, next).boxed(),
    |server, request, next| guard::pages(server, request, next).boxed(),
    |server, request, next| api::mcp::challenge(server, request, next).boxed(),
    |server, request, next| guard::admit(server, request, next).boxed(),
    |_, request, next| guard::caught(next.run(request)).boxed(),
    |server, request, next| keyed::carry_out(server, request, next).boxed(),
];

/// What requests pass, and what those of MCP clients are handed to.
#[derive(Clone)]
struct Way {
    server: Server,
    mcp: Arc<McpService>,
}

async fn pass(State(way): State<Way>, mut request: Request, route: middleware::Next) -> Response {
    request.extensions_mut().insert(way.mcp);
    Next::new(way.server, &STEPS, route).run(request).await
}

/// Begins with all servers at once; the last one is ready when all others are.
async fn begin_all(servers: &[Server]) -> Result<Vec<JoinHandle<()>>, ServeError> {
    let Some((last, others)) = servers.split_last() else { return Ok(Vec::new()) };
    let mut watching = try_join_all(others.iter().map(Server::begin)).await?;
    watching.push(last.begin().await?);
    Ok(watching)
}

/// Serves, behind one address, until `shutdown` is cancelled.
pub(crate) async fn serve_all(
    servers: &[Server],
    front: Front,
    listener: TcpListener,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    let (limits, common) = (front.limits(), front.common().clone());
    if let Ok(address) = listener.local_addr() {
        let _ = common.address.set(address);
    }
    let closed = CancellationToken::new();
    let serving = tokio::spawn(hotcell_http::serve(listener, front.router(), limits, closed.clone()));
    let _closed = closed.clone().drop_guard();
    let watching = begin_all(servers).await?;
    shutdown.cancelled().await;
    let runs: usize = servers.iter().map(|server| server.runs().working()).sum();
    tracing::info!(target: "hotcell::serve", runs, "no more runs are begun");
    join_all(servers.iter().zip(watching).map(|(server, watching)| server.end(watching))).await;
    closed.cancel();
    // What it could not end it has cut.
    let _ = serving.await;
    // All of them send together.
    if let Some(server) = servers.first() {
        server.telemetry().close().await;
    }
    Ok(())
}

impl Common {
    /// What servers with these settings have in common. If it `is_closed`, nobody gets in who does not prove who they are, also
    /// where no key was ever made.
    pub(crate) fn new(settings: &ServeSettings, keys: Store, is_closed: bool) -> Result<Self, ServeError> {
        let log = settings.file.as_deref().map(|file| file.with_extension("audit.jsonl"));
        let audit = Audit::open(log.as_deref()).map_err(|error| {
            let file = log.as_deref().unwrap_or_else(|| Path::new("")).display();
            ServeError::Store(format!("the audit log {file} cannot be used: {error}"))
        })?;
        let oidc = Oidc::new(&settings.oidc).map_err(|error| ServeError::Oidc(error.to_string()))?;
        let access = Access::new(keys, audit, oidc, settings.requests_per_second, is_closed);
        let (_, document) = api::routes();
        Ok(Common {
            access: Arc::new(access),
            hosts: Hosts::local_and(&settings.hosts),
            rules: Arc::new(Rules::of(&document).map_err(ServeError::Route)?),
            document: Arc::new(document),
            address: Arc::default(),
            shares: Arc::new(Shares::of(settings.limits.connections)),
            reexecuting: Arc::new(Semaphore::new(REEXECUTING)),
        })
    }
}
