//! Posting texts to providers. The component says which requests; they are sent here, to the provider's own servers alone, and
//! secrets are put in where a request names them.

use std::collections::HashMap;
use std::time::Duration;

use hotcell_graph::Value as GraphValue;
use hotcell_runtime::WebCall;
use hotcell_runtime::leafmesh::ChannelSettings;
use serde_json::{Map, Value};
use url::Url;

use super::super::meshes::Mesh;
use super::adapter::{self, Keep, Outgoing, Part, Posting, Reply, Step, To};
use super::provider::{Moved, Place, Provider, address};
use crate::post::Failed;
use crate::state::Server;

/// How many requests post one text: a login, and its pieces.
const MOST_REQUESTS: usize = 40;
/// How long one of them may take.
const WITHIN: Duration = Duration::from_secs(30);
/// Bytes of the largest reply.
const LARGEST: usize = 1 << 20;
/// How long a token is used at most, and how long before its end it is used no more.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);
const EARLY: Duration = Duration::from_secs(60);
/// Bytes of the shortest secret that is looked for in texts: a shorter one would be found everywhere.
const SHORTEST: usize = 4;
const FORM: &str = "application/x-www-form-urlencoded";

/// Where a text was posted.
pub(in crate::mesh) struct Posted {
    pub(super) chat: String,
    pub(super) message: Option<String>,
    pub(super) thread: Option<String>,
}

/// A text that is posted.
pub(in crate::mesh) struct Text<'a> {
    /// The agent whose channel it is
    pub(in crate::mesh) seat: &'a str,
    pub(in crate::mesh) channel: &'a ChannelSettings,
    pub(in crate::mesh) to: &'a To,
    pub(in crate::mesh) text: &'a str,
    /// Identifies it: what is posted again is known by this, where a provider takes note of it
    pub(in crate::mesh) key: &'a str,
}

/// Posts a text.
///
/// # Errors
/// Why it was not posted.
pub(in crate::mesh) async fn post(server: &Server, mesh: &Mesh, text: &Text<'_>) -> Result<Posted, Failed> {
    let fail = |reason: String| Failed::for_good(reason);
    let provider = Provider::named(&text.channel.provider);
    let provider = provider.ok_or_else(|| fail(format!("`{}` is not a channel", text.channel.provider)))?;
    if text.channel.bot_token.is_none() {
        return Err(fail(format!("the channel `{}` of `{}` has no `bot_token`", provider.word(), text.seat)));
    }
    let had_some = !mesh.doing.kept.of(text.seat, provider, server.clock().now()).is_empty();
    let posted = once(server, mesh, provider, text).await;
    match posted {
        // What was kept may not be good any more.
        Err(Failed { is_final: true, .. }) if had_some => {
            mesh.doing.kept.forget(text.seat, provider);
            once(server, mesh, provider, text).await
        }
        Err(failed) => {
            mesh.doing.kept.forget(text.seat, provider);
            Err(failed)
        }
        posted => posted,
    }
}

async fn once(server: &Server, mesh: &Mesh, provider: Provider, text: &Text<'_>) -> Result<Posted, Failed> {
    let posting = Posting { channel: text.channel, to: text.to, text: text.text, key: text.key };
    let mut replies = Vec::new();
    for _ in 0..MOST_REQUESTS {
        let kept = mesh.doing.kept.of(text.seat, provider, server.clock().now());
        let secrets = Secrets { channel: text.channel, kept };
        let names: Vec<String> = secrets.kept.keys().cloned().collect();
        let step = adapter::post(mesh, provider, &posting, &names, &replies).await;
        match step.map_err(Failed::for_good)? {
            Step::Posted { chat, message, thread } => return Ok(Posted { chat, message, thread }),
            // Of a long text, pieces before this one were taken.
            Step::Failed { reason, last } => {
                return Err(Failed { reason, is_final: last, is_uncertain: replies.len() > 1 });
            }
            Step::Request(request) => {
                let keep = request.keep.as_ref();
                let call = build(&server.settings().vendor_addresses, provider, text, &secrets, &request)
                    .map_err(Failed::for_good)?;
                // A login posts nothing, and what is not granted is not sent.
                let is_granted = Url::parse(&call.url).is_ok_and(|url| mesh.agent.may_post(&url));
                let is_uncertain = keep.is_none() && is_granted;
                let reply = send(mesh, call).await;
                let reply = reply
                    .map_err(|reason| Failed { is_uncertain, ..Failed::for_now(secrets.taken_out(&reason)) })
                    .map(|(status, body)| Reply { status, body: secrets.taken_out(&body) })?;
                match keep.and_then(|keep| value_of(keep, &reply)) {
                    Some((name, value, length)) => {
                        let until = server.clock().now() + length;
                        mesh.doing.kept.keep(text.seat, provider, name, &value, until);
                    }
                    None => replies.push(reply),
                }
            }
        }
    }
    Err(Failed::for_good(format!("the text needs more than {MOST_REQUESTS} requests")))
}

async fn send(mesh: &Mesh, call: WebCall) -> Result<(u16, String), String> {
    let host = Url::parse(&call.url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default();
    match tokio::time::timeout(WITHIN, mesh.agent.send(call)).await {
        Ok(Ok(reply)) if reply.body.len() > LARGEST => Err(format!("`{host}` answered with more than {LARGEST} bytes")),
        Ok(Ok(reply)) => Ok((reply.status, reply.body)),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("`{host}` did not answer within {} s", WITHIN.as_secs())),
    }
}

/// The secrets of a channel.
struct Secrets<'a> {
    channel: &'a ChannelSettings,
    kept: HashMap<String, String>,
}

impl Secrets<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        match name {
            "bot_token" => self.channel.bot_token.as_ref().map(|secret| secret.0.as_str()),
            "signing_secret" => self.channel.signing_secret.as_ref().map(|secret| secret.0.as_str()),
            kept => self.kept.get(kept).map(String::as_str),
        }
    }

    /// A text without the secrets in it.
    fn taken_out(&self, text: &str) -> String {
        let own = ["bot_token", "signing_secret"].into_iter().filter_map(|name| self.get(name));
        let all = own.chain(self.kept.values().map(String::as_str)).filter(|secret| secret.len() >= SHORTEST);
        all.fold(text.to_owned(), |text, secret| {
            let encoded: String = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
            text.replace(secret, "(secret)").replace(&encoded, "(secret)")
        })
    }
}

/// A request with its address and its secrets.
fn build(
    moved: &Moved,
    provider: Provider,
    text: &Text<'_>,
    secrets: &Secrets<'_>,
    request: &Outgoing,
) -> Result<WebCall, String> {
    let place = Place::named(&request.to).ok_or_else(|| format!("there is no server `{}`", request.to))?;
    let filled = |part: &Part| match &part.secret {
        None => Ok(part.text.clone()),
        Some(name) if !provider.may_send(name, place) => Err(format!("`{name}` is not for `{}`", request.to)),
        Some(name) => {
            let secret = secrets.get(name).ok_or_else(|| format!("`{name}` of `{}` is missing", provider.word()))?;
            Ok(format!("{}{secret}", part.text))
        }
    };
    let mut url = match provider.host(place) {
        Some(host) => address(moved, host)?,
        None => service(moved, text)?,
    };
    {
        let mut path = url.path_segments_mut().map_err(|()| "the address has no path".to_owned())?;
        path.pop_if_empty();
        for part in &request.path {
            let segment = filled(part)?;
            if matches!(segment.as_str(), "" | "." | "..") {
                return Err("a part of the address is empty: is a setting of the channel missing?".to_owned());
            }
            path.push(&segment);
        }
    }
    let field = |field: &adapter::Field| Ok((field.name.clone(), filled(&field.value)?));
    let mut headers = request.headers.iter().map(field).collect::<Result<Vec<_>, String>>()?;
    let form = request.form.iter().map(field).collect::<Result<Vec<_>, String>>()?;
    let body = match &request.json {
        Some(json) => {
            headers.push(("content-type".to_owned(), "application/json".to_owned()));
            GraphValue::from(json)
        }
        None => {
            headers.push(("content-type".to_owned(), FORM.to_owned()));
            let form: Map<String, Value> = form.into_iter().map(|(name, value)| (name, value.into())).collect();
            GraphValue::from(&Value::Object(form))
        }
    };
    let (method, time) = (request.method.clone(), Some(WITHIN));
    Ok(WebCall { method, url: url.into(), query: Vec::new(), headers, body: Some(body), time })
}

/// Where a post said that answers go, or the settings do. What a post says has been verified; it is reached with `https` alone,
/// and only where the file's grants allow.
fn service(moved: &Moved, text: &Text<'_>) -> Result<Url, String> {
    let of_post = text.to.address.get("service_url").and_then(Value::as_str);
    let (named, is_ours) = match (of_post, &text.channel.service_url) {
        (Some(address), _) => (address, text.channel.service_url.as_deref() == Some(address)),
        (None, Some(address)) => (address.as_str(), true),
        (None, None) => {
            return Err("nobody has written yet, so it is not known where to post: set `service_url`".to_owned());
        }
    };
    let url: Url = named.parse().map_err(|error| format!("the address of the service cannot be read: {error}"))?;
    let is_plain = url.username().is_empty() && url.password().is_none() && url.query().is_none();
    if !is_plain || url.fragment().is_some() || !(is_ours || url.scheme() == "https") {
        return Err("the address of the service has to be `https://` with a name and a path".to_owned());
    }
    let Some(mut elsewhere) = url.host_str().and_then(|host| moved.get(host)).cloned() else { return Ok(url) };
    elsewhere.set_path(url.path());
    Ok(elsewhere)
}

/// What is kept of a reply, and for how long.
fn value_of<'k>(keep: &'k Keep, reply: &Reply) -> Option<(&'k str, String, Duration)> {
    let body: Value = serde_json::from_str(&reply.body).ok()?;
    let value =
        body.pointer(&keep.at)?.as_str().filter(|value| (200..300).contains(&reply.status) && !value.is_empty())?;
    let seconds = body.pointer(&keep.seconds).and_then(Value::as_u64).unwrap_or(0);
    // One that is good for no time is good for this once.
    let length = Duration::from_secs(seconds).min(LONGEST).saturating_sub(EARLY).max(EARLY);
    Some((&keep.name, value.to_owned(), length))
}

#[cfg(test)]
mod tests;
