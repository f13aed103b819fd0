//! Reading the blocks about where a mesh lives: its store, its server, its models, its limits.

use std::time::Duration;

use super::addresses::check_url;
use super::models;
use super::reading::{LONGEST, MOST_SECONDS, Reading, text_values};
use super::schema::{LocalServer, Mesh};
use super::settings::WebhookLimits;
use crate::document::Need::{Optional, Required};
use crate::document::{Fields, SourceText};

/// How much of a session's history is kept where nothing is said.
const MAX_HISTORY_BYTES: u32 = 5 * 1024 * 1024;
/// Where models of unknown names are where nothing is said, and how long a request to them may take.
const LOCAL_ENDPOINT: &str = "http://localhost:11434/api/generate";
const LOCAL_TIMEOUT: Duration = Duration::from_secs(120);
/// Where Vertex is asked where nothing is said.
const VERTEX_LOCATION: &str = "us-central1";
/// How long a session is there in which nothing happens, where nothing is said: a week.
const SESSION_TTL: Duration = Duration::from_secs(604_800);
/// How late a wake-up that was missed is still made good where nothing is said.
const MISFIRE_GRACE: Duration = Duration::from_secs(3600);

/// `persistence`, and `redis` as older files have it. hotcell keeps everything in its own journal; how long a session is there in
/// which nothing happens is said there.
pub(super) fn storage<'r, 'd>(reading: &Reading<'r, 'd>, fields: &mut Fields<'r, 'd>, mesh: &mut Mesh) {
    for name in ["redis", "persistence"] {
        reading.no_effect(fields, name, "hotcell keeps runs in a journal of its own; only `session_ttl` counts");
    }
    let mut ttl = None;
    if let Some(mut of_one) = reading.block(fields, "redis") {
        ttl = redis(reading, &mut of_one);
        of_one.finish(|_| None);
    }
    if let Some(mut of_one) = reading.block(fields, "persistence") {
        of_one.word("backend", &["redis", "postgres"]);
        if let Some(mut redis_fields) = reading.block(&mut of_one, "redis") {
            ttl = redis(reading, &mut redis_fields).or(ttl);
            redis_fields.finish(|_| None);
        }
        if let Some(mut postgres) = reading.block(&mut of_one, "postgres") {
            for name in ["host", "database", "user", "sslmode"] {
                postgres.text(name, Optional);
            }
            password(reading, &mut postgres);
            postgres.between("port", 1, 65_535);
            ttl = ttls(&mut postgres).or(ttl);
            for name in ["pool_min", "pool_max"] {
                postgres.between(name, 1, 10_000);
            }
            postgres.finish(|_| None);
        }
        of_one.finish(|_| None);
    }
    mesh.session_ttl = ttl.unwrap_or(SESSION_TTL);
}

/// The password of a store, which is not used.
fn password<'r, 'd>(reading: &Reading<'r, 'd>, fields: &mut Fields<'r, 'd>) {
    if let (Some(password), Some(node)) = (fields.text("password", Optional), fields.node("password", Optional)) {
        reading.secret(fields, "password", &password, node);
    }
}

/// How long sessions are there.
fn ttls(fields: &mut Fields<'_, '_>) -> Option<Duration> {
    fields.between("default_ttl", 1, MOST_SECONDS);
    fields.between("session_ttl", 1, MOST_SECONDS).map(|seconds| Duration::from_secs(u64::from(seconds)))
}

fn redis<'r, 'd>(reading: &Reading<'r, 'd>, fields: &mut Fields<'r, 'd>) -> Option<Duration> {
    for name in ["host", "ssl_ca_certs", "ssl_certfile", "ssl_keyfile"] {
        fields.text(name, Optional);
    }
    password(reading, fields);
    fields.between("port", 1, 65_535);
    fields.between("db", 0, u32::MAX);
    for name in ["decode_responses", "auto_storage", "cluster_mode", "ssl", "ssl_check_hostname"] {
        fields.flag(name, Optional);
    }
    fields.texts("cluster_nodes", Optional);
    fields.word("ssl_cert_reqs", &["required", "optional", "none"]);
    ttls(fields)
}

/// `api`: the origins that browsers may call from.
pub(super) fn api<'r, 'd>(reading: &Reading<'r, 'd>, fields: &mut Fields<'r, 'd>) -> Vec<String> {
    let Some(mut of_one) = reading.block(fields, "api") else { return Vec::new() };
    let origins = of_one.texts("cors_origins", Optional).unwrap_or_default();
    for origin in &origins {
        let host = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
        let is_origin = host.is_some_and(is_authority);
        if !is_origin && !super::interpolate::names_vault(origin) {
            let message = format!("`{}` in `cors_origins` is not an origin", &**origin);
            let error = of_one.error(message, &origin.span);
            reading.reader.report(error.help("write scheme, host and port and nothing else: `https://example.org`"));
        }
    }
    of_one.finish(|_| None);
    origins.into_iter().map(|origin| origin.to_string()).collect()
}

/// Whether this is a host, and perhaps a port.
fn is_authority(text: &str) -> bool {
    // Colons in brackets are those of an address.
    let (host, port) = match text.rsplit_once(':').filter(|(_, port)| !port.contains(']')) {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    let is_port = |port: &str| port.bytes().all(|digit| digit.is_ascii_digit()) && port.parse::<u16>().is_ok();
    !host.is_empty() && !host.contains(['/', '*', '?', '#', '@', ' ']) && port.is_none_or(is_port)
}

pub(super) fn mesh<'r, 'd>(reading: &Reading<'r, 'd>, fields: &mut Fields<'r, 'd>, mesh: &mut Mesh) {
    let Some(mut of_one) = reading.block(fields, "mesh") else {
        mesh.providers.local = local_of_variables(reading);
        return;
    };
    of_one.between("call_timeout", 1, MOST_SECONDS);
    reading.no_effect(&mut of_one, "call_timeout", "a call ends with the limits of what it calls");
    if let Some(most) = of_one.between("max_chain_events", 1, u32::MAX) {
        mesh.max_chain_events = most;
    }
    let depth = of_one.between("chain_context_depth", 0, u32::MAX);
    let most_chars = of_one.between("chain_context_max_chars", 0, u32::MAX);
    if depth.is_some_and(|depth| depth > 0) {
        reading.not_yet(&mut of_one, "chain_context_depth");
    } else if most_chars.is_some() {
        reading.no_effect(&mut of_one, "chain_context_max_chars", "`chain_context_depth` is 0");
    }
    if of_one.flag("reply_stream", Optional).is_some_and(|flag| flag.value) {
        reading.no_effect(&mut of_one, "reply_stream", "replies are streamed to whoever asks at `/api/mesh/stream`");
    }
    if let Some(mut bedrock) = reading.block(&mut of_one, "bedrock") {
        mesh.providers.bedrock = Some(bedrock_address(reading, &mut bedrock));
        bedrock.finish(|_| None);
    }
    if let Some(mut vertex) = reading.block(&mut of_one, "vertex") {
        let project = required(reading, &mut vertex, "project");
        let location = vertex.text("location", Optional);
        for (name, text) in [("project", &project), ("location", &location)] {
            // They become parts of an address.
            let fits = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
            if let Some(text) = text.as_ref().filter(|text| !text.chars().all(fits)) {
                let message = format!("`{name}` cannot be `{}`", &**text);
                let error = vertex.error(message, &text.span);
                reading.reader.report(error.help("it has letters, digits, `-`, `_`, `.` and `:`"));
            }
        }
        let location = location.as_deref().filter(|location| !location.is_empty()).unwrap_or(VERTEX_LOCATION);
        mesh.providers.vertex = Some(models::vertex_address(project.as_deref().unwrap_or_default(), location));
        vertex.finish(|_| None);
    }
    if let Some(mut foundry) = reading.block(&mut of_one, "foundry") {
        let endpoint = required(reading, &mut foundry, "endpoint");
        if let Some(endpoint) = &endpoint {
            check_url(reading, &foundry, "endpoint", endpoint);
        }
        let version = foundry.text("api_version", Optional);
        let endpoint = endpoint.as_deref().unwrap_or_default();
        mesh.providers.foundry = Some(models::foundry_address(endpoint, version.as_deref()));
        foundry.finish(|_| None);
    }
    mesh.providers.local = local_of_variables(reading);
    if let Some(mut local) = reading.block(&mut of_one, "local") {
        let variable = |name: &str| reading.surroundings.variable(name).filter(|value| !value.trim().is_empty());
        let endpoint = local.text("endpoint", Optional);
        if let Some(endpoint) = &endpoint {
            check_url(reading, &local, "endpoint", endpoint);
        }
        let endpoint = endpoint.map(|endpoint| endpoint.to_string()).filter(|endpoint| !endpoint.trim().is_empty());
        let endpoint =
            endpoint.or_else(|| variable("LOCAL_MODEL_ENDPOINT")).unwrap_or_else(|| LOCAL_ENDPOINT.to_owned());
        let kind = local.word("server_type", &["openai", "ollama", "textgen", "huggingface"]).map(str::to_owned);
        let kind = kind.or_else(|| variable("LOCAL_MODEL_SERVER_TYPE"));
        let timeout = reading.seconds(&mut local, "timeout", LONGEST).unwrap_or_else(|| local_timeout(reading));
        let mut address = models::local_address(&endpoint, kind.as_deref());
        for (name, value) in text_values(reading, &mut local, "headers") {
            // A key that is left out leaves the word before it.
            if !matches!(value.trim(), "" | "Bearer" | "bearer") {
                address = Err(format!("the header `{name}` of `mesh.local` is not sent by hotcell yet"));
            }
        }
        local.finish(|_| None);
        mesh.providers.local = Some(LocalServer { address, timeout });
    }
    of_one.finish(|_| None);
}

/// Where Bedrock is asked.
fn bedrock_address<'r, 'd>(reading: &Reading<'r, 'd>, bedrock: &mut Fields<'r, 'd>) -> String {
    let region = bedrock.text("region", Optional);
    // It becomes a part of an address.
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if let Some(region) = region.as_ref().filter(|region| !region.trim().chars().all(fits)) {
        let error = bedrock.error(format!("`region` cannot be `{}`", &**region), &region.span);
        reading.reader.report(error.help("it has small letters, digits and `-`, such as `eu-west-1`"));
    }
    // Profiles are in files of the person who runs the mesh, which hotcell does not read.
    reading.not_yet(bedrock, "profile");
    bedrock.text("profile", Optional);
    let endpoint = bedrock.text("endpoint_url", Optional).filter(|url| !url.trim().is_empty());
    let Some(endpoint) = endpoint else { return models::bedrock_address(region.as_deref().unwrap_or_default()) };
    check_url(reading, bedrock, "endpoint_url", &endpoint);
    if region.is_some_and(|region| !endpoint.contains(region.trim())) {
        let why = "requests to this `endpoint_url` are signed for the region that it names, or else for us-east-1";
        reading.no_effect(bedrock, "region", why);
    }
    endpoint.trim().trim_end_matches('/').to_owned()
}

/// The server for models of unknown names that variables name.
fn local_of_variables(reading: &Reading<'_, '_>) -> Option<LocalServer> {
    let variable = |name: &str| reading.surroundings.variable(name).filter(|value| !value.trim().is_empty());
    let endpoint = variable("LOCAL_MODEL_ENDPOINT")?;
    let timeout = local_timeout(reading);
    let address = models::local_address(&endpoint, variable("LOCAL_MODEL_SERVER_TYPE").as_deref());
    Some(LocalServer { address, timeout })
}

/// How long a request to that server may take where the mesh does not say it.
fn local_timeout(reading: &Reading<'_, '_>) -> Duration {
    let given = reading.surroundings.variable("LOCAL_MODEL_TIMEOUT");
    let seconds = given.and_then(|text| text.trim().parse::<f64>().ok()).filter(|seconds| *seconds > 0.0);
    seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or(LOCAL_TIMEOUT)
}

/// A text that has to be there and say something.
fn required<'r, 'd>(reading: &Reading<'r, 'd>, fields: &mut Fields<'r, 'd>, name: &'static str) -> Option<SourceText> {
    let text = fields.text(name, Required)?;
    if text.trim().is_empty() {
        let error = fields.error(format!("the field `{name}` is empty"), &text.span);
        reading.reader.report(error.help(format!("`{name}` is required in {}", fields.owner().what)));
        return None;
    }
    Some(text)
}

/// The blocks of numbers of later versions of the documentation.
pub(super) fn limits<'r, 'd>(reading: &Reading<'r, 'd>, fields: &mut Fields<'r, 'd>, mesh: &mut Mesh) {
    mesh.max_history_bytes = MAX_HISTORY_BYTES;
    mesh.misfire_grace = MISFIRE_GRACE;
    if let Some(mut of_one) = reading.block(fields, "timeouts") {
        mesh.providers.time = reading.seconds(&mut of_one, "llm_hard_timeout_s", LONGEST);
        for name in ["mesh_call_default_timeout_s", "super_agent_max_dispatch_s"] {
            reading.seconds(&mut of_one, name, LONGEST);
            reading.no_effect(&mut of_one, name, "a run has the limits of hotcell");
        }
        of_one.finish(|_| None);
    }
    if let Some(mut of_one) = reading.block(fields, "scheduler") {
        reading.seconds(&mut of_one, "cron_min_interval_seconds", LONGEST);
        reading.no_effect(&mut of_one, "cron_min_interval_seconds", "a schedule is never finer than a minute");
        if let Some(grace) = reading.seconds(&mut of_one, "misfire_grace_s", LONGEST) {
            mesh.misfire_grace = grace;
        }
        of_one.finish(|_| None);
    }
    if let Some(mut of_one) = reading.block(fields, "limits") {
        let mut own = |name| of_one.between(name, 1, u32::MAX);
        let seconds = |count: u32| Duration::from_secs(u64::from(count));
        let usual = WebhookLimits::default();
        mesh.webhooks = WebhookLimits {
            max_payload_bytes: own("webhook_max_payload_bytes").unwrap_or(usual.max_payload_bytes),
            rate_limit_max: own("webhook_rate_limit_max").unwrap_or(usual.rate_limit_max),
            rate_limit_window: own("webhook_rate_limit_window_s").map_or(usual.rate_limit_window, seconds),
            replay_skew: own("webhook_replay_skew_s").map_or(usual.replay_skew, seconds),
        };
        mesh.max_history_bytes = own("max_session_history_bytes").unwrap_or(MAX_HISTORY_BYTES);
        let counts = [
            "max_parallel_tool_calls",
            "tool_result_max_chars",
            "consumer_inflight_max",
            "knowledge_ingest_total_bytes",
            "knowledge_query_rate_limit_max",
            "knowledge_query_rate_limit_window_s",
        ];
        for name in counts {
            of_one.between(name, 1, u32::MAX);
            reading.no_effect(&mut of_one, name, "a run has the limits of hotcell");
        }
        of_one.finish_open();
    }
}
