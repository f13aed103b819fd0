//! Questions that are posted to people.

use std::sync::Arc;
use std::time::Duration;

use hotcell_graph::Value as GraphValue;
use hotcell_runtime::leafmesh::{HumanInterface, HumanSettings, WebhookSettings};
use hotcell_runtime::{OpenQuestion, RunId, WebCall};
use serde_json::{Value, json};
use url::Url;

use super::channels;
use super::events::{self, ERROR};
use super::meshes::Mesh;
use super::session::Ask;
use super::signature::sign;
use super::store::Session;
use super::{escalate, secret};
use crate::post::{Failed, posted};
use crate::state::Server;
use crate::store::StoreError;
use crate::view::time;

/// The fact that says that a question was posted, or given up.
const POSTED: &str = "posted";
/// What it says from before a post until its outcome is known. Whoever finds that posts the question again, and says that it may have
/// arrived before: a person is asked at least once.
const UNCERTAIN: &str = "(uncertain)";
/// What it says while the question was not taken and is tried again.
const NOT_TAKEN: &str = "(not taken)";
/// It is not known whether a person got a question, which is posted again.
const DELIVERY_UNCERTAIN: &str = "DELIVERY_UNCERTAIN";
const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// How often and how late what no channel took is tried again, where `webhook_config` says nothing.
const RETRIES: u32 = 3;
const PAUSE: Duration = Duration::from_secs(5);

/// Posts a question to the person who is asked, if that is how the person is reached, and it was not done before.
pub(super) fn post(server: &Server, mesh: &Arc<Mesh>, session: &Session, run: &RunId, open: OpenQuestion) {
    let ask = Ask { run: run.clone(), open };
    let Some(human) = mesh.settings.agent(ask.seat()).and_then(|agent| agent.human.as_ref()) else { return };
    let has_url = human.webhook.as_ref().is_some_and(|webhook| webhook.outbound_url.is_some());
    let is_posted = has_url || !human.channels.is_empty();
    if human.interface != HumanInterface::Webhook || !is_posted {
        return;
    }
    let human = human.clone();
    if !mesh.doing.posting.begin(&ask.request_id()) {
        return;
    }
    let (server, mesh, session, working) = (server.clone(), mesh.clone(), session.clone(), server.clock().working());
    server.clone().meshes().tasks.spawn(async move {
        let _working = working;
        let work = deliver(&server, &mesh, &session, &ask, &human);
        // What is not delivered before the server ends is delivered at its next start.
        server.closing().run_until_cancelled(work).await;
        mesh.doing.posting.end(&ask.request_id());
    });
}

async fn deliver(server: &Server, mesh: &Arc<Mesh>, session: &Session, ask: &Ask, human: &HumanSettings) {
    let fact = format!("{POSTED}:{}", ask.request_id());
    let mut is_repeated = match server.store().mesh_fact(&fact) {
        Ok(None) => false,
        Ok(Some(known)) if known == NOT_TAKEN => false,
        Ok(Some(known)) if known == UNCERTAIN => true,
        Ok(Some(_)) => return,
        Err(error) => return tracing::error!(target: "hotcell::serve", %error, "a question cannot be posted"),
    };
    let webhook = human.webhook.as_ref();
    let (retries, pause) = webhook.map_or((RETRIES, PAUSE), |webhook| (webhook.max_retries, webhook.retry_delay));
    let mut failure = None;
    for attempt in 0..=retries {
        if attempt > 0 {
            server.clock().pause(pause).await;
        }
        let begun = match is_repeated {
            true => told_uncertain(server, session, ask, &fact),
            false => server.store().remember(&fact, UNCERTAIN),
        };
        if let Err(error) = begun {
            return tracing::error!(target: "hotcell::serve", %error, "a question cannot be posted");
        }
        match once(server, mesh, session, ask, human, (attempt == 0, is_repeated)).await {
            Ok(()) => {
                failure = None;
                break;
            }
            Err(Failed { reason, is_final, is_uncertain }) => {
                failure = Some(reason);
                if is_final {
                    break;
                }
                is_repeated |= is_uncertain;
                if !is_repeated && let Err(error) = server.store().remember(&fact, NOT_TAKEN) {
                    tracing::error!(target: "hotcell::serve", %error, "that a question was not taken cannot be kept");
                }
            }
        }
    }
    let done = async {
        if let Some(reason) = &failure {
            let event = json!({
                "type": ERROR, "agent": ask.seat(), "run_id": ask.run.as_str(), "error_type": "OutboundFailed",
                "message": reason,
            });
            events::note(server, session, &fact, event.clone())?;
            escalate::after(server, mesh, session, &event).await?;
        }
        server.store().remember(&fact, failure.as_deref().unwrap_or("delivered"))
    };
    if let Err(error) = done.await {
        tracing::error!(target: "hotcell::serve", %error, "that a question was posted cannot be kept");
    }
}

/// Tells, once, that a question is posted again which may have arrived.
fn told_uncertain(server: &Server, session: &Session, ask: &Ask, fact: &str) -> Result<(), StoreError> {
    let event = json!({
        "type": DELIVERY_UNCERTAIN, "agent": ask.seat(), "run_id": ask.run.as_str(), "request_id": ask.request_id(),
    });
    if events::note(server, session, &format!("{fact}:uncertain"), event)? {
        let (agent, session) = (ask.seat(), &session.key.id);
        tracing::warn!(target: "hotcell::serve", agent, session, "delivery uncertain: a question is posted again, which may have arrived");
    }
    Ok(())
}

/// Posts to the channels, and where all of them fail to the address.
async fn once(
    server: &Server,
    mesh: &Mesh,
    session: &Session,
    ask: &Ask,
    human: &HumanSettings,
    (is_first, mut is_repeated): (bool, bool),
) -> Result<(), Failed> {
    let webhook = human.webhook.as_ref();
    let url = webhook.and_then(|webhook| Some((webhook, webhook.outbound_url.as_deref()?)));
    if !human.channels.is_empty() && (is_first || url.is_none()) {
        match (channels::ask(server, mesh, session, ask, human, is_repeated).await, url) {
            (Err(failed), Some(_)) => {
                is_repeated |= failed.is_uncertain;
                let (agent, reason) = (ask.seat(), failed.reason);
                tracing::warn!(target: "hotcell::serve", agent, reason, "no channel took a question; it goes to `outbound_url`");
            }
            (posted, _) => return posted,
        }
    }
    let Some((webhook, url)) = url else { return Ok(()) };
    let mut body = body(server, mesh, session, ask);
    if is_repeated {
        body["delivery_uncertain"] = json!(true);
    }
    let sent = to_address(server, mesh, session, webhook, (url, &ask.request_id()), &GraphValue::from(&body)).await;
    // What a channel may have taken stays in doubt, whatever becomes of this.
    sent.map_err(|failed| Failed { is_uncertain: failed.is_uncertain || is_repeated, ..failed })
}

async fn to_address(
    server: &Server,
    mesh: &Mesh,
    session: &Session,
    webhook: &WebhookSettings,
    (url, request): (&str, &str),
    body: &GraphValue,
) -> Result<(), Failed> {
    let secret = secret(server).map_err(|error| Failed::for_now(error.to_string()))?;
    let nonce: u128 = rand::random();
    let signed = sign(secret.as_bytes(), server.clock().now(), &format!("{nonce:032x}"), body.to_json().as_bytes());
    let mut headers = webhook.outbound_headers.0.clone();
    headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-type"));
    headers.push(("content-type".to_owned(), "application/json".to_owned()));
    // A question that is posted again has the same one.
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(IDEMPOTENCY_KEY)) {
        headers.push((IDEMPOTENCY_KEY.to_owned(), request.to_owned()));
    }
    headers.extend(signed.into_iter().map(|(name, value)| (name.to_owned(), value)));
    if !session.key.tenant.is_empty() {
        headers.push(("x-tenant-id".to_owned(), session.key.tenant.clone()));
    }
    let call = WebCall {
        time: None,
        method: "POST".to_owned(),
        url: url.to_owned(),
        query: Vec::new(),
        headers,
        body: Some(body.clone()),
    };
    let within: Duration = webhook.outbound_timeout;
    let sent = posted(url, within, |status| status < 500 && status != 429, mesh.agent.send(call)).await;
    // What is not granted was not sent.
    let is_granted = Url::parse(url).is_ok_and(|url| mesh.agent.may_post(&url));
    sent.map_err(|failed| Failed { is_uncertain: failed.is_uncertain && is_granted, ..failed })
}

/// Where an answer to a seat is posted: where its file says, at an entry point that leads to it, or at any.
fn answered_at(mesh: &Mesh, seat: &str) -> Option<String> {
    let human = mesh.settings.agent(seat).and_then(|agent| agent.human.as_ref());
    let own = human.and_then(|human| human.webhook.as_ref()?.inbound_endpoint.clone());
    let entries = &mesh.settings.entry_points;
    let entry = entries.iter().find(|entry| entry.target == seat).or(entries.first());
    own.or_else(|| Some(format!("/webhook/{}", entry?.name)))
}

/// What is posted.
fn body(server: &Server, mesh: &Mesh, session: &Session, ask: &Ask) -> Value {
    let question = &ask.open.question;
    let of_context = |name: &str| Some(Value::from(question.context.as_ref()?.as_object()?.get(name)?));
    let path = answered_at(mesh, ask.seat());
    let mut body = json!({
        "session_id": session.key.id, "request_id": ask.request_id(), "agent_name": ask.seat(),
        "from_agent": of_context("from_agent"), "prompt": question.text, "context": of_context("context"),
        "inputs": of_context("inputs"), "reply_url": path.map(|path| format!("{}{path}", server.meshes().base_url(server.base_url(), mesh))), "expires_at": question.expires.map(time),
    });
    if let Some(again) = of_context("_rerun_context") {
        body["_rerun_context"] = again;
    }
    body
}
