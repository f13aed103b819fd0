//! Beginning work in a session.

use hotcell_graph::ir::Barred;
use hotcell_graph::{Key, Object as GraphObject, Value as GraphValue};
use hotcell_runtime::RunInput;
use hotcell_runtime::leafmesh::state::{
    CALL, CALLBACKS, CALLED, CALLED_AGAIN, CALLED_WITH, CALLS_BEFORE, DATA, EARLIER_FEED, ENTRY_POINT, HISTORY,
    LEFT_OUT, SCOPE, SERVED, SESSION_ID,
};
use http::StatusCode;
use serde_json::{Value, json};

use super::reply::Refused;
use super::session::{Status, standing};
use super::store::{Session, SessionKey, Turn};
use super::{Mesh, calls, end_sessions, feed, history, learn, system};
use crate::input::origin_of;
use crate::live::Begun;
use crate::once;
use crate::problem::{Problem, shown};
use crate::runs::IfBusy;
use crate::state::Server;

/// Where work begins.
pub(super) enum At {
    /// At an entry point, which somebody called with this
    Entry { name: String, data: Value },
    /// At an agent
    Agent { name: String, input: Value },
}

/// Work that is to be begun in a session.
pub(super) struct Task {
    pub(super) key: SessionKey,
    /// By what it came: `request`, `webhook`, `rerun`, `wake_up` and so on
    pub(super) kind: &'static str,
    pub(super) at: At,
    /// Whether it is begun although other work of the session is under way
    pub(super) is_beside: bool,
    /// For what it is begun, if that may be begun for it only once in the session
    pub(super) once: Option<String>,
}

/// What was begun.
pub(super) struct Started {
    pub(super) session: Session,
    pub(super) begun: Begun,
}

/// Whether anything may be begun.
pub(super) fn check_system(server: &Server, mesh: &Mesh) -> Result<(), Refused> {
    match system::is_stopped(server, mesh)? {
        false => Ok(()),
        true => {
            let detail = "the system is stopped; `POST /api/system/resume` lets it go on";
            let body = json!({ "status": 503, "state": "stopped", "detail": detail });
            Err(Refused::Documented(StatusCode::SERVICE_UNAVAILABLE, body))
        }
    }
}

/// What a session says that does other work, or waits for a person.
pub(super) fn busy(key: &SessionKey, status: Status) -> Refused {
    let detail = match status {
        Status::Paused => {
            "somebody is asked in the session: answer (`GET /api/sessions/hitl` lists the questions), or take another session"
        }
        _ => "the session works on something; send it again later, or take another session",
    };
    let body = json!({ "status": "busy", "session_id": key.id, "detail": detail });
    Refused::Documented(StatusCode::CONFLICT, body)
}

/// Begins a run in a session. Whoever calls this has the session for itself.
pub(super) async fn begin(server: &Server, mesh: &Mesh, task: Task, listens: bool) -> Result<Started, Refused> {
    check_system(server, mesh)?;
    let Task { key, kind, at, is_beside, once } = task;
    end_sessions(server, mesh)?;
    // What the run is called follows from what it is begun for: so it is found again.
    let run = once.map(|what| once::name_of(&json!([&*key.scope, key.tenant, key.id, kind, what]).to_string()));
    if let Some(run) = &run
        && server.runs().is_there(run).await?
    {
        // A server has begun it, and ended before it could note that.
        let session = match server.store().run_of_mesh(run)? {
            Some((session, _)) => session,
            None => {
                let (At::Entry { name, data } | At::Agent { name, input: data }) = at;
                let turn = Turn { at: server.clock().now(), run: run.clone(), kind: kind.to_owned(), name, data };
                server.store().note_turn(&key, &turn)?
            }
        };
        server.meshes().tend(&**server.clock(), &mesh.scope, run);
        let begun = Begun { run: run.clone(), live: server.runs().hold(run).live.clone(), events: None };
        return Ok(Started { session, begun });
    }
    let known = server.store().session(&key)?;
    let (mut turns, mut calls_before) = (Vec::new(), 0);
    if let Some(session) = &known {
        if !is_beside {
            let status = standing(server, session).await?.status;
            if matches!(status, Status::Busy | Status::Paused) {
                return Err(busy(&key, status));
            }
        }
        turns = history::messages(server, mesh, session).await?;
        if kind == calls::RERUN {
            calls_before = calls::so_far(server, mesh, session).await?;
        }
    }
    let feed = feed::told(server, mesh, known.as_ref(), &mesh.own(&key.tenant)).await?;
    let mut state = GraphObject::default();
    let mut set = |name: &str, value: &Value| state.insert(Key::from(name), GraphValue::from(value));
    set(SESSION_ID, &json!(key.id));
    set(HISTORY, &Value::Array(turns));
    let callbacks = format!("{}/callback", server.meshes().base_url(server.base_url(), mesh));
    set(SERVED, &json!({ CALLBACKS: callbacks, SCOPE: format!("{}/{}", mesh.own(&key.tenant), key.id) }));
    if let Some(feed) = feed {
        set(EARLIER_FEED, &feed);
    }
    if calls_before > 0 {
        set(CALLS_BEFORE, &json!(calls_before));
    }
    let left_out = learn::told(server, mesh)?;
    if !left_out.is_empty() {
        set(LEFT_OUT, &json!(left_out));
    }
    let (name, data) = match at {
        At::Entry { name, data } => {
            set(ENTRY_POINT, &json!(name));
            set(DATA, &data);
            (name, data)
        }
        At::Agent { name, input } => {
            set(CALL, &json!({ CALLED: name, CALLED_WITH: input, CALLED_AGAIN: kind == calls::RERUN }));
            (name, input)
        }
    };
    // Whoever goes on with the run after a death finds its session there, if it could not be noted any more.
    let kept = json!({ "session": key.id, "tenant": key.tenant, "kind": kind, "name": name, "data": data });
    let id = run.as_ref().map(ToString::to_string);
    let given = RunInput { state, origin: origin_of(kept), id, ..RunInput::default() };
    let begun = server.runs().start(&mesh.agent, given, IfBusy::Reject, listens).await?;
    let turn = Turn { at: server.clock().now(), run: begun.run.clone(), kind: kind.to_owned(), name, data };
    let session = server.store().note_turn(&key, &turn)?;
    server.meshes().tend(&**server.clock(), &mesh.scope, &begun.run);
    Ok(Started { session, begun })
}

/// What is refused before anything is begun: entry points that are not there or not open, and data that does not fit.
pub(super) fn admit(mesh: &Mesh, entry: &str, data: &Value) -> Result<(), Problem> {
    let found = mesh.settings.entry_point(entry).ok_or_else(|| {
        let names: Vec<&str> = mesh.settings.entry_points.iter().map(|entry| &*entry.name).collect();
        let detail = format!("there is no entry point `{}`; there are: {}", shown(entry), names.join(", "));
        Problem::not_found(detail).kind("unknown-entry-point", "There is no such entry point")
    })?;
    let given = GraphValue::from(data);
    found.admits(given.as_object().unwrap_or(&GraphObject::default())).map_err(|barred| match barred {
        Barred::Closed(reason) => {
            Problem::conflict(reason).kind("condition-not-met", "The condition of the entry point does not hold")
        }
        Barred::Unfit(reason) => Problem::unprocessable(reason),
    })
}
