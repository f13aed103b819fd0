//! The server: what it is set up with, and its life from the first agent that is loaded to the last run that is let go.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use hotcell_http::Hosts;
use hotcell_runtime::{CancellationToken, Host, LoadFailure};
use tokio::net::TcpListener;
use tower_http::catch_panic::CatchPanicLayer;

use crate::access::Access;
use crate::access::audit::Audit;
use crate::agents::Agents;
use crate::api;
use crate::deadlines;
use crate::error::ServeError;
use crate::guard;
use crate::mesh;
use crate::mesh::meshes::Meshes;
use crate::rules::Rules;
use crate::runs::Runs;
use crate::state::{Inner, ServeSettings, Server};
use crate::store::Store;

impl Server {
    /// Finds and loads the agents of the folders. What cannot be loaded is not served; [`Server::not_served`] says why.
    ///
    /// # Errors
    /// When the server cannot be set up.
    pub async fn new(host: Host, settings: ServeSettings) -> Result<Self, ServeError> {
        let store = Store::open(settings.file.as_deref())?;
        let log = settings.file.as_deref().map(|file| file.with_extension("audit.jsonl"));
        let audit = Audit::open(log.as_deref()).map_err(|error| {
            let file = log.as_deref().unwrap_or_else(|| Path::new("")).display();
            ServeError::Store(format!("the audit log {file} cannot be used: {error}"))
        })?;
        let access = Access::new(store.clone(), audit, settings.requests_per_second);
        let (agents, not_served) = Agents::load(&host, &settings.folders).await.map_err(ServeError::Agents)?;
        let agents = Arc::new(agents);
        let (_, document) = api::routes();
        let rules = Rules::of(&document).map_err(ServeError::Route)?;
        Ok(Server(Arc::new(Inner {
            meshes: Meshes::of(&agents),
            runs: Runs::new(host, agents.clone(), settings.max_runs),
            hosts: Hosts::local_and(&settings.hosts),
            not_served: not_served.into_iter().map(|left| (left.path, left.failure)).collect(),
            access,
            agents,
            store,
            rules,
            document,
            started: SystemTime::now(),
            address: OnceLock::new(),
            ready: CancellationToken::new(),
            closing: CancellationToken::new(),
            settings,
        })))
    }

    /// How many agents are served.
    pub fn agent_count(&self) -> usize {
        self.0.agents.len()
    }

    /// Files that look like agents and cannot be loaded, and why.
    pub fn not_served(&self) -> &[(PathBuf, LoadFailure)] {
        &self.0.not_served
    }

    /// Serves until `shutdown` is cancelled: then no more runs are begun, those that are worked on get some time, and what is
    /// left of them goes on at the next start.
    ///
    /// # Errors
    /// When the address can be reached by anybody, or the journal cannot be read.
    pub async fn serve(self, listener: TcpListener, shutdown: CancellationToken) -> Result<(), ServeError> {
        if let Ok(address) = listener.local_addr()
            && !address.ip().is_loopback()
            && !self.access().has_keys()?
        {
            return Err(ServeError::Open(address));
        }
        if let Ok(address) = listener.local_addr() {
            let _ = self.0.address.set(address);
        }
        let closed = CancellationToken::new();
        let serving =
            tokio::spawn(hotcell_http::serve(listener, self.router(), self.0.settings.limits, closed.clone()));
        let _closed = closed.clone().drop_guard();
        match self.0.runs.take_up().await? {
            0 => {}
            runs => tracing::info!(target: "hotcell::serve", runs, "runs that were cut off go on"),
        }
        mesh::take_up(&self).await?;
        let watching = tokio::spawn(deadlines::watch(self.clone()));
        self.0.ready.cancel();
        shutdown.cancelled().await;
        tracing::info!(target: "hotcell::serve", runs = self.runs().working(), "no more runs are begun");
        let left = self.0.runs.drain(self.0.settings.drain).await;
        if left > 0 {
            tracing::info!(target: "hotcell::serve", runs = left, "runs were interrupted; they go on at the next start");
        }
        self.0.closing.cancel();
        self.0.meshes.end().await;
        let _ = watching.await;
        closed.cancel();
        // What it could not end it has cut.
        let _ = serving.await;
        Ok(())
    }

    /// Everything that is answered.
    fn router(&self) -> Router {
        let (router, _) = api::routes();
        router
            .layer(CatchPanicLayer::custom(guard::panicked))
            .layer(from_fn_with_state(self.clone(), guard::admit))
            .layer(from_fn_with_state(self.clone(), guard::pages))
            .layer(from_fn(guard::finish))
            .with_state(self.clone())
    }
}
