//! The HTTP surface that LeafMesh documents for a mesh: entry points, sessions, webhooks and people.
//!
//! A call of an entry point is a run of the mesh's graph, and a session has the runs that were begun in it, one after the other.
//! What happens in them is read from their entries in the journal ([`tend`]): so what follows from it (posts to people, events)
//! is done once, whoever works on the run and however often the server ends in between.

mod begin;
mod body;
mod callback;
mod calls;
mod channels;
mod escalate;
mod events;
mod feed;
mod healing;
mod health;
mod history;
mod learn;
pub(crate) mod meshes;
mod migrate;
mod outbound;
mod outcome;
mod people;
mod reply;
mod request;
mod rerun;
mod schedule;
mod score;
mod scores;
mod senders;
mod served;
mod session;
mod signature;
pub(crate) mod spending;
mod store;
mod system;
mod tenant;
mod tend;
mod webhook;
mod yaml;

use std::sync::Arc;

use hotcell_runtime::{JournalError, RunId};
use utoipa_axum::router::OpenApiRouter;

use crate::problem::Problem;
use crate::state::Server;
use crate::store::StoreError;
use meshes::Mesh;

/// Goes on with what a server that ended left, and wakes agents from now on.
pub(crate) async fn take_up(server: &Server) -> Result<(), JournalError> {
    tend::begin(server);
    for mesh in server.meshes().all() {
        if let Err(problem) = yaml::restore(server, &mesh).await {
            tracing::error!(target: "hotcell::serve", mesh = mesh.id, reason = problem.detail, "changes of the mesh cannot be read");
        }
    }
    if let Err(error) = feed::take_over(server) {
        tracing::error!(target: "hotcell::serve", %error, "what agents remember cannot be read");
    }
    tend::take_up(server).await?;
    if let Err(problem) = channels::take_up(server) {
        tracing::error!(target: "hotcell::serve", reason = problem.detail, "messages of channels cannot be read");
    }
    schedule::begin_all(server);
    Ok(())
}

/// Serves meshes as their files are now, after something was changed of what is served.
pub(crate) async fn follow(server: &Server) -> Result<(), Problem> {
    let (meshes, agents) = (server.meshes().all(), server.agents().all());
    let mut result = Ok(());
    for mesh in &meshes {
        let in_file = agents.iter().map(|(_, agent)| agent).find(|agent| agent.source() == mesh.in_file.source());
        match in_file.filter(|agent| agent.mesh().is_some()) {
            Some(agent) if Arc::ptr_eq(agent, &mesh.in_file) => {}
            Some(agent) => result = yaml::follow(server, mesh, agent.clone()).await.and(result),
            None => server.meshes().remove(mesh),
        }
    }
    for (id, agent) in agents.into_iter().filter(|(_, agent)| agent.mesh().is_some()) {
        if meshes.iter().all(|mesh| mesh.in_file.source() != agent.source()) {
            result = server.meshes().add(server.store(), &id, agent).map_err(Problem::from).and(result);
        }
    }
    schedule::begin_all(server);
    result
}

/// Acts on what happens in runs of meshes that go on, until the server closes. What they go on with may come by any protocol, and not by
/// an address of the mesh alone.
pub(crate) async fn watch(server: Server) {
    let gone_on = server.runs().gone_on();
    let watching = async {
        loop {
            gone_on.take().iter().for_each(|run| goes_on(&server, run));
            gone_on.more().await;
        }
    };
    server.closing().run_until_cancelled(watching).await;
}

/// Acts on what happens in a run that goes on, if it is one of a mesh.
pub(crate) fn goes_on(server: &Server, run: &RunId) {
    match server.store().run_of_mesh(run) {
        Ok(Some((session, _))) => server.meshes().tend(&**server.clock(), &session.key.scope, run),
        Ok(None) => {}
        Err(error) => {
            tracing::error!(target: "hotcell::serve", %run, %error, "what follows from a run is not done");
        }
    }
}

/// What is answered.
pub(crate) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .merge(request::routes())
        .merge(webhook::routes())
        .merge(history::routes())
        .merge(people::routes())
        .merge(rerun::routes())
        .merge(score::routes())
        .merge(callback::routes())
        .merge(system::routes())
        .merge(yaml::routes())
        .merge(migrate::routes())
        .merge(channels::routes())
}

/// Ends the sessions whose time is over. Whoever looks at sessions does this first.
fn end_sessions(server: &Server, mesh: &Mesh) -> Result<(), StoreError> {
    match server.clock().now().checked_sub(mesh.settings.session_ttl) {
        Some(since) => server.store().end_sessions(&mesh.scope, since),
        None => Ok(()),
    }
}

/// The variable with the secret of signatures.
const SECRET: &str = "LEAFMESH_WEBHOOK_SECRET";
/// The fact that is the secret where no variable says one.
const OWN_SECRET: &str = "webhook_secret";

/// What posts to the mesh, and those that it sends, are signed with. It is made up once where no variable says it.
fn secret(server: &Server) -> Result<String, StoreError> {
    if let Some(secret) = server.variable(SECRET).filter(|secret| !secret.is_empty()) {
        return Ok(secret);
    }
    if let Some(secret) = server.store().mesh_fact(OWN_SECRET)? {
        return Ok(secret);
    }
    let random: [u8; 32] = rand::random();
    let secret: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    server.store().remember_first(OWN_SECRET, &secret)
}
