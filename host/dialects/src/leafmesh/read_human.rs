//! Reading what only people have.

use std::time::Duration;

use hotcell_graph::{Object, Value};

use super::addresses::check_url;
use super::hidden::Hidden;
use super::read_channels;
use super::reading::{Reading, is_on, text_values};
use super::schema::{Human, Interface};
use super::settings::WebhookSettings;
use crate::document::Need::Optional;
use crate::document::{Fields, Node, SourceText};

/// All fields of this type of agents.
pub(super) const FIELDS: &[&str] = &[
    "human_interface",
    "human_timeout_seconds",
    "human_context_template",
    "human_prompt_template",
    "fallback_on_timeout",
    "fallback_response",
    "require_human_confirmation",
    "human_escalation_triggers",
    "operator_ids",
    "represents",
    "intent_model",
    "webhook_config",
    "channels",
];
/// How long people have where nothing is said, and at most.
const TIMEOUT: u32 = 300;
const MOST_TIMEOUT: u32 = 30 * 24 * 60 * 60;
/// How questions are posted where nothing is said: the limit of one post and the pause before the next in seconds, and how many
/// more there are.
/// How a person is reached.
pub(super) const INTERFACES: [&str; 4] = ["default", "api", "webhook", "custom"];
const OUTBOUND_TIMEOUT: u32 = 30;
const OUTBOUND_PAUSE: u32 = 5;
const OUTBOUND_RETRIES: u32 = 3;

pub(super) fn human<'r, 'd>(reading: &Reading<'r, 'd>, fields: &mut Fields<'r, 'd>) -> Human {
    let interface = match fields.word("human_interface", &INTERFACES) {
        Some("default") => Interface::Default,
        Some("webhook") => Interface::Webhook,
        Some("custom") => Interface::Custom,
        _ => Interface::Api,
    };
    let timeout = fields.between("human_timeout_seconds", 1, MOST_TIMEOUT).unwrap_or(TIMEOUT);
    let context = fields.text("human_context_template", Optional);
    let prompt = fields.text("human_prompt_template", Optional);
    let falls_back = fields.flag("fallback_on_timeout", Optional).is_some_and(|flag| flag.value);
    let response = fields.map("fallback_response", Optional).and(fields.node("fallback_response", Optional));
    if !falls_back {
        reading.no_effect(fields, "fallback_response", "`fallback_on_timeout` is off");
    }
    if let (None, Some(entry)) = (response, fields.entry("fallback_on_timeout", Optional).filter(|_| falls_back)) {
        let message =
            "`fallback_on_timeout` without `fallback_response` answers nothing: conditions on the answer do not hold";
        let help = "write what counts as the answer: `fallback_response: {decision: ..., message: ...}`";
        reading.reader.report(reading.warning(fields, message, entry.key_place).help(help));
    }
    let fallback = falls_back.then(|| response.map_or_else(|| Value::Object(Object::default()), Node::to_value));
    let intent_model = fields.text("intent_model", Optional).filter(|model| !model.trim().is_empty());
    fields.flag("require_human_confirmation", Optional);
    reading.not_yet(fields, "require_human_confirmation");
    fields.word("represents", &["organisation", "organization", "customer"]);
    reading.no_effect(fields, "represents", "whom a person speaks for decides nothing here");
    fields.texts("human_escalation_triggers", Optional);
    reading.not_yet(fields, "human_escalation_triggers");
    let operator_ids = fields.texts("operator_ids", Optional).unwrap_or_default();
    if matches!(interface, Interface::Api | Interface::Custom) && !operator_ids.is_empty() {
        reading.no_effect(fields, "operator_ids", "a function answers");
    }
    let webhook = webhook_config(reading, fields);
    let channels = read_channels::channels(reading, fields, interface);
    let has_url = webhook.as_ref().is_some_and(|webhook| webhook.outbound_url.is_some());
    let has_channel = fields.entry("channels", Optional).is_some_and(|entry| is_on(&entry.value));
    check_interface(reading, fields, interface, has_url || has_channel);
    let operator_ids = operator_ids.into_iter().map(|id| id.to_string()).collect();
    let timeout = Duration::from_secs(u64::from(timeout));
    Human { interface, prompt, context, webhook, channels, operator_ids, timeout, fallback, intent_model }
}

/// Where questions are posted to.
fn webhook_config<'r, 'd>(reading: &Reading<'r, 'd>, fields: &mut Fields<'r, 'd>) -> Option<WebhookSettings> {
    let mut of_one = reading.block(fields, "webhook_config")?;
    let url = of_one.text("outbound_url", Optional);
    if let Some(url) = &url {
        check_url(reading, &of_one, "outbound_url", url);
    }
    let outbound_headers = text_values(reading, &mut of_one, "outbound_headers");
    let timeout = of_one.between("outbound_timeout", 1, 3600).unwrap_or(OUTBOUND_TIMEOUT);
    let inbound = of_one.text("inbound_endpoint", Optional).filter(|path| !path.trim().is_empty());
    let is_path = |path: &SourceText| {
        path.trim().strip_prefix("/webhook/").is_some_and(|name| !name.is_empty() && !name.contains('/'))
    };
    let (inbound, elsewhere) = match inbound {
        Some(path) if is_path(&path) => (Some(path), None),
        other => (None, other),
    };
    if elsewhere.is_some() {
        reading.no_effect(&mut of_one, "inbound_endpoint", "answers arrive below `/webhook/`");
    }
    let token = of_one.text("inbound_auth_token", Optional);
    if let Some(token) = &token
        && let Some(node) = of_one.node("inbound_auth_token", Optional)
    {
        reading.secret(&of_one, "inbound_auth_token", token, node);
    }
    let response_mapping = text_values(reading, &mut of_one, "response_mapping");
    let max_retries = of_one.between("max_retries", 0, 100).unwrap_or(OUTBOUND_RETRIES);
    let retry_delay = of_one.between("retry_delay", 0, 86_400).unwrap_or(OUTBOUND_PAUSE);
    of_one.finish(|_| None);
    Some(WebhookSettings {
        outbound_url: url.map(|url| url.trim().to_owned()).filter(|url| !url.is_empty()),
        outbound_headers: Hidden(outbound_headers),
        outbound_timeout: Duration::from_secs(u64::from(timeout)),
        max_retries,
        retry_delay: Duration::from_secs(u64::from(retry_delay)),
        response_mapping,
        inbound_endpoint: inbound.map(|path| path.trim().to_owned()),
        inbound_auth_token: token.filter(|token| !token.is_empty()).map(|token| Hidden(token.to_string())),
    })
}

fn check_interface<'d>(reading: &Reading<'_, 'd>, fields: &mut Fields<'_, 'd>, interface: Interface, is_reached: bool) {
    let place = fields.entry("human_interface", Optional).map_or(fields.owner().place, |entry| entry.value.place);
    match interface {
        Interface::Webhook => {
            if !is_reached {
                let message = "`human_interface: webhook` has neither `webhook_config.outbound_url` nor `channels`";
                let error = fields.error(message, &reading.reader.span(place));
                reading.reader.report(
                    error.help("say where questions go, or take another interface: `default` is hotcell's own inbox"),
                );
            }
        }
        Interface::Default | Interface::Api | Interface::Custom => {
            for name in ["webhook_config", "channels"] {
                let Some(entry) = fields.entry(name, Optional).filter(|entry| is_on(&entry.value)) else { continue };
                let message = format!("`{name}` does nothing: it is for `human_interface: webhook`");
                let help = "write `human_interface: webhook`, or take it out";
                reading.reader.report(reading.warning(fields, message, entry.key_place).help(help));
            }
        }
    }
}
