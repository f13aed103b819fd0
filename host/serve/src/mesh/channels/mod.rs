//! Channels: people who are reached by chat providers, and who write to the mesh there.
//!
//! A post of a provider is verified here, on the bytes that came ([`verify`], [`token`]); then a component that has no capability
//! reads it ([`adapter`]), and what is in it becomes an answer or new work ([`inbox`]). Texts are posted by [`send`].

mod adapter;
mod ask;
mod inbox;
pub(super) mod kept;
mod keys;
pub(super) mod known_keys;
mod provider;
mod send;
mod store;
mod token;
mod verify;

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use hotcell_http::Peer;
use hotcell_runtime::leafmesh::{AgentSettings, ChannelSettings, Hidden};
use http::{HeaderMap, StatusCode};
use serde_json::Value;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::begin::check_system;
use super::body::posted;
use super::meshes::Mesh;
use super::reply::Refused;
use super::served::Served;
use crate::api::extract::check_members;
use crate::api::params::Query;
use crate::problem::{Problem, shown};
use crate::state::Server;
use provider::Provider;
use verify::Wrong;

pub(super) use ask::{ask, report};

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(slack))
        .routes(routes!(telegram))
        .routes(routes!(discord))
        .routes(routes!(check_whatsapp, whatsapp))
        .routes(routes!(teams))
}

/// Goes on with messages that a server that ended has taken.
pub(super) fn take_up(server: &Server) -> Result<(), Problem> {
    server.meshes().all().iter().try_for_each(|mesh| inbox::take_up(server, mesh))
}

/// Take an event of Slack
///
/// Signed with the signing secret of the app.
#[utoipa::path(
    post, path = "/channels/slack/{agent}/events", tag = "Mesh", security(()), request_body = Value,
    params(("agent" = String, Path, description = "The human agent")), responses((status = 200, body = Value))
)]
async fn slack(
    at: State<Server>,
    mesh: Served,
    peer: Extension<Peer>,
    agent: Path<String>,
    post: Request,
) -> Result<Response, Refused> {
    received(at, mesh, peer, Provider::Slack, agent, post).await
}

/// Take an update of Telegram
///
/// With the secret token that was set with the webhook.
#[utoipa::path(
    post, path = "/channels/telegram/{agent}/webhook", tag = "Mesh", security(()), request_body = Value,
    params(("agent" = String, Path, description = "The human agent")), responses((status = 200, body = Value))
)]
async fn telegram(
    at: State<Server>,
    mesh: Served,
    peer: Extension<Peer>,
    agent: Path<String>,
    post: Request,
) -> Result<Response, Refused> {
    received(at, mesh, peer, Provider::Telegram, agent, post).await
}

/// Take an interaction of Discord
///
/// Signed with the key of the app.
#[utoipa::path(
    post, path = "/channels/discord/{agent}/interactions", tag = "Mesh", security(()), request_body = Value,
    params(("agent" = String, Path, description = "The human agent")), responses((status = 200, body = Value))
)]
async fn discord(
    at: State<Server>,
    mesh: Served,
    peer: Extension<Peer>,
    agent: Path<String>,
    post: Request,
) -> Result<Response, Refused> {
    received(at, mesh, peer, Provider::Discord, agent, post).await
}

/// Take messages of WhatsApp
///
/// Signed with the secret of the app.
#[utoipa::path(
    post, path = "/channels/whatsapp/{agent}/webhook", tag = "Mesh", security(()), request_body = Value,
    params(("agent" = String, Path, description = "The human agent")), responses((status = 200, body = Value))
)]
async fn whatsapp(
    at: State<Server>,
    mesh: Served,
    peer: Extension<Peer>,
    agent: Path<String>,
    post: Request,
) -> Result<Response, Refused> {
    received(at, mesh, peer, Provider::Whatsapp, agent, post).await
}

/// Take an activity of Teams
///
/// With a token of the Bot Framework.
#[utoipa::path(
    post, path = "/channels/teams/{agent}/messages", tag = "Mesh", security(()), request_body = Value,
    params(("agent" = String, Path, description = "The human agent")), responses((status = 200, body = Value))
)]
async fn teams(
    at: State<Server>,
    mesh: Served,
    peer: Extension<Peer>,
    agent: Path<String>,
    post: Request,
) -> Result<Response, Refused> {
    received(at, mesh, peer, Provider::Teams, agent, post).await
}

/// Show WhatsApp that the address is the right one
#[utoipa::path(
    get, path = "/channels/whatsapp/{agent}/webhook", tag = "Mesh", security(()),
    params(
        ("agent" = String, Path, description = "The human agent"),
        ("hub.mode" = Option<String>, Query, description = "`subscribe`"),
        ("hub.verify_token" = Option<String>, Query, description = "`verify_token` of the channel"),
        ("hub.challenge" = Option<String>, Query, description = "What is answered"),
    ),
    responses((status = 200, body = String))
)]
async fn check_whatsapp(
    State(server): State<Server>,
    Served(mesh): Served,
    Extension(peer): Extension<Peer>,
    Path(agent): Path<String>,
    mut query: Query,
) -> Result<Response, Refused> {
    let (_, channel) = find(&mesh, Provider::Whatsapp, &agent)?;
    limit(&server, &mesh, Provider::Whatsapp, &agent, &peer)?;
    let Some(Hidden(token)) = &channel.verify_token else { return Err(not_configured(&agent, "verify_token").into()) };
    let is_ours = query.text("hub.verify_token").is_some_and(|given| verify::same(token, &given).is_ok());
    let is_check = query.text("hub.mode").is_some_and(|mode| mode == "subscribe");
    match query.text("hub.challenge").filter(|_| is_ours && is_check) {
        Some(challenge) => Ok(challenge.into_response()),
        None => Err(refused(StatusCode::FORBIDDEN, "it is not the check of this address").into()),
    }
}

/// The channel of an agent.
fn find(mesh: &Mesh, provider: Provider, agent: &str) -> Result<(AgentSettings, ChannelSettings), Problem> {
    provider.of(&mesh.settings, agent).ok_or_else(|| {
        let detail = format!("there is no human agent `{}` with the channel `{}`", shown(agent), provider.word());
        Problem::not_found(detail).kind("unknown-channel", "There is no such channel")
    })
}

fn limit(server: &Server, mesh: &Mesh, provider: Provider, agent: &str, peer: &Peer) -> Result<(), Problem> {
    let limits = mesh.settings.webhooks;
    let (most, window) = (limits.rate_limit_max, limits.rate_limit_window);
    // No entry point has such a name.
    let name = format!("channels/{}/{agent}", provider.word());
    match mesh.doing.senders.count(&name, peer.address(), server.clock().now(), most, window) {
        true => Ok(()),
        false => Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "too many posts to this channel")
            .with("retry_after", window.as_secs().max(1))),
    }
}

fn not_configured(agent: &str, name: &str) -> Problem {
    let detail = format!("the channel of `{}` has no `{name}`, so that nobody can show who posts", shown(agent));
    Problem::unavailable(detail).kind("channel_not_configured", "The channel is not set up")
}

fn refused(status: StatusCode, reason: &str) -> Problem {
    Problem::new(status, format!("the post is not accepted: {reason}"))
        .kind("signature", "The signature does not count")
}

async fn received(
    State(server): State<Server>,
    Served(mesh): Served,
    Extension(peer): Extension<Peer>,
    provider: Provider,
    Path(agent): Path<String>,
    request: Request,
) -> Result<Response, Refused> {
    let (agent, channel) = find(&mesh, provider, &agent)?;
    limit(&server, &mesh, provider, &agent.name, &peer)?;
    let headers = request.headers().clone();
    let body = posted(&server, &mesh, request).await?;
    let is_near = peer.address().is_loopback();
    verify(&server, &mesh, provider, (&agent.name, &channel), (&headers, &body, is_near)).await?;
    peer.is_known();
    check_members(&body)?;
    let unreadable = |reason: String| Problem::new(StatusCode::BAD_REQUEST, reason);
    let text = std::str::from_utf8(&body).map_err(|_| unreadable("the body is not valid UTF-8".to_owned()))?;
    let received = adapter::receive(&mesh, provider, &channel, text).await;
    let received = received.map_err(|reason| Problem::internal(&reason))?;
    if let Some(reason) = received.malformed {
        return Err(unreadable(reason).into());
    }
    if !received.messages.is_empty() {
        check_system(&server, &mesh)?;
    }
    let mut ignored = received.ignored;
    for message in &received.messages {
        if let Err(reason) = inbox::take(&server, &mesh, (&agent, provider, &channel), message).await? {
            ignored = Some(reason.to_owned());
        }
    }
    if let Some(reason) = ignored {
        tracing::debug!(target: "hotcell::serve", agent = agent.name, channel = provider.word(), reason, "a post is not a message for the mesh");
    }
    Ok(axum::Json(received.reply).into_response())
}

/// Looks whether a post is from the provider. Without a secret nothing is.
async fn verify(
    server: &Server,
    mesh: &Arc<Mesh>,
    provider: Provider,
    (agent, channel): (&str, &ChannelSettings),
    (headers, body, is_near): (&HeaderMap, &[u8], bool),
) -> Result<(), Problem> {
    let secret = channel.signing_secret.as_ref().map(|Hidden(secret)| secret.as_str());
    let missing = || not_configured(agent, "signing_secret");
    let (checked, status): (Result<(), Wrong>, StatusCode) = match provider {
        Provider::Slack => {
            (verify::slack(secret.ok_or_else(missing)?, server.clock().now(), headers, body), StatusCode::UNAUTHORIZED)
        }
        Provider::Whatsapp => (verify::whatsapp(secret.ok_or_else(missing)?, headers, body), StatusCode::UNAUTHORIZED),
        Provider::Telegram => match secret {
            Some(secret) => (verify::telegram(secret, headers), StatusCode::FORBIDDEN),
            // It may have none, which is for trying things.
            None if !mesh.settings.is_production && is_near => return Ok(()),
            None => return Err(missing()),
        },
        Provider::Discord => {
            let key = verify::public_key(secret.ok_or_else(missing)?).ok_or_else(missing)?;
            (verify::discord(&key, server.clock().now(), headers, body), StatusCode::UNAUTHORIZED)
        }
        Provider::Teams => {
            // Nobody could be answered without the password of the app.
            secret.ok_or_else(missing)?;
            let app = channel.bot_token.as_ref().ok_or_else(|| not_configured(agent, "bot_token"))?;
            (of_teams(server, mesh, &app.0, headers, body).await?, StatusCode::UNAUTHORIZED)
        }
    };
    checked.map_err(|reason| refused(status, reason))
}

/// Looks at the token of a post of Teams. What it says of the post has to be what the post says of itself.
async fn of_teams(
    server: &Server,
    mesh: &Mesh,
    app: &str,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Result<(), Wrong>, Problem> {
    let token = verify::one(headers, "authorization").and_then(|value| {
        let (scheme, token) = value.split_once(' ').ok_or("it has no token")?;
        match scheme.eq_ignore_ascii_case("bearer") {
            true => token::Token::parse(token.trim()),
            false => Err("it has no token"),
        }
    });
    let token = match token {
        Ok(token) => token,
        Err(reason) => return Ok(Err(reason)),
    };
    let key = mesh.doing.keys.find(server, mesh, &token.kid, token.alg).await.map_err(|reason| {
        tracing::warn!(target: "hotcell::serve", reason, "the keys of Teams cannot be read");
        Problem::unavailable("the keys that tokens are signed with cannot be read now").with("retry_after", 10)
    })?;
    let Some(key) = key else { return Ok(Err("nobody known has signed the token")) };
    let claims = match token.claims(&key, app, server.clock().now()) {
        Ok(claims) => claims,
        Err(reason) => return Ok(Err(reason)),
    };
    let Ok(activity) = serde_json::from_slice::<Value>(body) else { return Ok(Err("the body is not valid JSON")) };
    let text = |name: &str| activity.get(name).and_then(Value::as_str);
    Ok(match (text("channelId"), text("serviceUrl"), claims.service_url.as_deref()) {
        (Some(channel), _, _) if !key.endorses(channel) => Err("the key may not sign for this channel"),
        (Some(_), Some(address), Some(claimed)) if address == claimed => Ok(()),
        (None, _, _) => Err("the body does not name a channel"),
        _ => Err("the token is for another service"),
    })
}
