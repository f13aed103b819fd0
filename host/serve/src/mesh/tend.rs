//! What follows from what happens in runs of a mesh: it is read from their entries, each of which is acted on once, also when the
//! server ends in between.

use std::sync::{Arc, PoisonError};

use hotcell_runtime::{Counted, EntryPath, Fact, JournalError, OpenQuestion, Question, RunId};
use serde_json::{Value, json};

use super::meshes::{Mesh, ToTend};
use super::store::{SessionKey, Turn};
use super::{escalate, events, feed, goes_on, healing, history, learn, outbound};
use crate::input::kept_of;
use crate::problem::Problem;
use crate::state::Server;

/// Acts on what happens in the runs for which that is asked ([`super::meshes::Meshes::tend`]), until the server closes.
pub(super) fn begin(server: &Server) {
    let server = server.clone();
    server.clone().meshes().tasks.spawn(async move {
        let taking = async {
            while let Some(next) = server.meshes().next_to_tend().await {
                tend(&server, next);
            }
        };
        server.closing().run_until_cancelled(taking).await;
        server.meshes().tend_no_more().await;
    });
}

/// Acts on what happens in a run from now on, until it rests.
fn tend(server: &Server, ToTend { mesh, run, mut working }: ToTend) {
    let server = server.clone();
    server.clone().meshes().tasks.spawn(async move {
        loop {
            let asked = asked(&mesh, &run);
            let done = server.closing().run_until_cancelled(act(&server, &mesh, &run, working)).await;
            match done {
                Some(Ok(())) => {}
                Some(Err(problem)) => {
                    tracing::error!(target: "hotcell::serve", %run, reason = problem.detail, "what follows from a run is not done");
                }
                None => {}
            }
            let mut tended = mesh.doing.tended.lock().unwrap_or_else(PoisonError::into_inner);
            // Somebody answered meanwhile.
            if done_with(tended.get(&run), asked) || server.closing().is_cancelled() {
                tended.remove(&run);
                return;
            }
            working = server.clock().working();
        }
    });
}

fn asked(mesh: &Mesh, run: &RunId) -> u64 {
    mesh.doing.tended.lock().unwrap_or_else(PoisonError::into_inner).get(run).copied().unwrap_or_default()
}

fn done_with(asked: Option<&u64>, before: u64) -> bool {
    asked.is_none_or(|asked| *asked == before)
}

/// Acts on what was not acted on yet, until the run rests. It is at work until it waits for entries.
async fn act(server: &Server, mesh: &Arc<Mesh>, run: &RunId, working: Counted) -> Result<(), Problem> {
    let Some((session, known)) = server.store().run_of_mesh(run)? else { return Ok(()) };
    if known.ended.is_some() {
        return Ok(());
    }
    if known.seen > 0 {
        // Whoever was asked before this process began.
        for open in server.runs().questions(run).await?.into_iter().filter(|open| open.question.denial.is_none()) {
            outbound::post(server, mesh, &session, run, open);
        }
    }
    let mut follower = server.runs().follow(run.clone(), known.seen).on(server.clock().clone());
    let mut seen = known.seen;
    drop(working);
    while let Some(entries) = follower.next().await? {
        let _working = server.clock().working();
        for entry in &entries {
            let asked = match entry.entry.fact {
                Fact::Expired { number } | Fact::Answered { number, .. } => {
                    asked_at(server, run, &entry.entry.place, number).await?
                }
                _ => None,
            };
            if let Some(mut event) = events::of_entry(mesh, entry, || asked) {
                event["run_id"] = json!(run.as_str());
                events::note(server, &session, &format!("{run}:{}", entry.number), event.clone())?;
                escalate::after(server, mesh, &session, &event).await?;
            }
            healing::watch(server, mesh, &session, run, entry)?;
            feed::keep(server, session.number, run, entry)?;
            if let Fact::Asked { number, question } = &entry.entry.fact
                && question.denial.is_none()
            {
                let place = entry.entry.place.clone();
                let question = Question { id: format!("{place}:{number}"), ..question.clone() };
                outbound::post(server, mesh, &session, run, OpenQuestion { place, number: *number, question });
            }
            seen = entry.number;
        }
        server.store().acted_on(run, seen)?;
    }
    let _working = server.clock().working();
    let record = server.runs().find(run.as_str()).await?;
    if record.status.is_final() {
        learn::note(server, mesh, run).await?;
        let output = history::output(server, run).await?.unwrap_or_default();
        server.store().note_end(run, record.status.as_str(), &output, server.clock().now())?;
    }
    Ok(())
}

/// Who was asked a question.
async fn asked_at(server: &Server, run: &RunId, place: &EntryPath, number: u32) -> Result<Option<String>, Problem> {
    let entries = server.runs().store().history(run).await?.whole()?;
    Ok(entries.into_iter().find_map(|entry| match entry.fact {
        Fact::Asked { number: asked, question } if entry.place == *place && asked == number => question.seat,
        _ => None,
    }))
}

/// Goes on with what a server that ended left: runs on whose entries it has not acted, and those that it began and had not yet
/// noted.
pub(crate) async fn take_up(server: &Server) -> Result<(), JournalError> {
    let meshes = server.meshes().all();
    let report = |error: &dyn std::fmt::Display| {
        tracing::error!(target: "hotcell::serve", %error, "the sessions of the mesh cannot be read");
    };
    match server.store().open_runs(None) {
        Ok(open) => open.iter().for_each(|open| goes_on(server, &open.run)),
        Err(error) => report(&error),
    }
    for run in server.runs().in_hand() {
        let Ok(record) = server.runs().store().find(run.as_str()).await else { continue };
        let mesh = meshes.iter().find(|mesh| record.header.source == mesh.agent.source());
        let Some(mesh) = mesh else { continue };
        let kept = kept_of(&record);
        let text = |name: &str| kept.get(name).and_then(Value::as_str).map(str::to_owned);
        let Some(id) = text("session") else { continue };
        let tenant = text("tenant").unwrap_or_default();
        let key = SessionKey { scope: mesh.scope.clone(), tenant, id };
        let noted = (|| {
            if server.store().run_of_mesh(&run)?.is_some() {
                return Ok(());
            }
            let (kind, name) = (text("kind").unwrap_or_default(), text("name").unwrap_or_default());
            let data = kept.get("data").cloned().unwrap_or_default();
            let turn = Turn { at: server.clock().now(), run: run.clone(), kind, name, data };
            server.store().note_turn(&key, &turn).map(drop)
        })();
        match noted {
            Ok(()) => server.meshes().tend(&**server.clock(), &mesh.scope, &run),
            Err(error) => report(&error),
        }
    }
    Ok(())
}
