//! Reading how an agent reaches another system: `framework` or `integration`, and `connector_config`.

use hotcell_graph::ir::Pattern;
use hotcell_graph::value::Number;
use hotcell_graph::{Key, Object, Value};

use super::addresses::{check_address, check_url};
use super::connectors::{FRAMEWORKS, INTEGRATIONS, LATER, Setting, Type, settings};
use super::hidden::Hidden;
use super::reading::{LONGEST, Reading};
use super::schema::{AgentType, CUSTOM, Connector, Policy};
use crate::document::Need::Optional;
use crate::document::{Fields, Kind, Place};

/// Entries and bytes that `request_form` may have.
const MOST_FORM: usize = 50;
const LONGEST_FORM: usize = 16 << 10;

/// The connector of an agent, if it has one.
pub(super) fn connector<'r, 'd>(
    reading: &Reading<'r, 'd>,
    fields: &mut Fields<'r, 'd>,
    agent_type: AgentType,
) -> Option<Connector> {
    let (field, known): (&'static str, &[&str]) = match agent_type {
        AgentType::External => ("framework", &FRAMEWORKS),
        _ => ("integration", &INTEGRATIONS),
    };
    let name = fields.text(field, Optional);
    let policy = policy(reading, fields);
    let request_form = request_form(reading, fields);
    let Some(name) = name else {
        if agent_type == AgentType::External {
            let error = fields.error("the agent has no `framework`", &reading.reader.span(fields.owner().place));
            reading.reader.report(error.help(format!("it is one of `{}`", FRAMEWORKS.join("`, `"))));
        }
        for of_connector in ["connector_config", "external_policy", "request_form"] {
            if let Some(entry) = fields.entry(of_connector, Optional) {
                let message = format!("`{of_connector}` without `{field}` configures nothing");
                let error = fields.error(message, &reading.reader.span(entry.key_place));
                reading.reader.report(error.help(format!("write `{field}`, one of `{}`", known.join("`, `"))));
            }
        }
        return None;
    };
    let mut connector = Connector {
        name,
        settings: Object::default(),
        secrets: Hidden(Vec::new()),
        servers: Vec::new(),
        policy,
        request_form,
    };
    if LATER.contains(&&*connector.name) && agent_type == AgentType::External {
        fields.map("connector_config", Optional);
        if let Some(entry) = fields.entry(field, Optional) {
            reading.later_because(fields, entry, &format!(": `{}`", &*connector.name));
        }
        return Some(connector);
    }
    if !known.contains(&&*connector.name) {
        let error = fields.unknown_word(field, &connector.name, known);
        reading.reader.report(error);
        fields.map("connector_config", Optional);
        return None;
    }
    if &*connector.name == CUSTOM {
        for of_connector in ["external_policy", "request_form"] {
            reading.no_effect(
                fields,
                of_connector,
                "an agent with `framework: custom` is a function, and nothing is sent",
            );
        }
    }
    if let ("autogen", Some(entry)) = (&*connector.name, fields.entry("request_form", Optional)) {
        let error = fields.error("`autogen` takes no `request_form`", &reading.reader.span(entry.key_place));
        reading.reader.report(error.help("give the agent these values as its input"));
    }
    match reading.block(fields, "connector_config") {
        Some(mut config) => {
            read_config(reading, &mut config, &mut connector);
            if &*connector.name == CUSTOM {
                drop(config)
            } else {
                config.finish_open()
            }
            if connector.is_program()
                && let Some(mut policy) = reading.block(fields, "external_policy")
            {
                for name in ["allowed_hosts", "max_response_bytes", "quarantine_after"] {
                    let why = "the server is a program of this machine, and not asked over the network";
                    reading.no_effect(&mut policy, name, why);
                }
            }
        }
        None => {
            for setting in settings(&connector.name) {
                if !stand_in(reading, &setting, &mut connector, fields) && setting.2 {
                    report_missing(reading, fields, &setting, &connector.name);
                }
            }
            if &*connector.name == "zapier" {
                report_missing(reading, fields, &Setting("action", Type::Text, true, &[]), &connector.name);
            }
        }
    }
    Some(connector)
}

/// What is sent beside the input.
fn request_form<'r, 'd>(reading: &Reading<'r, 'd>, fields: &mut Fields<'r, 'd>) -> Option<Value> {
    let (entries, place) = fields.map("request_form", Optional)?;
    let value = fields.node("request_form", Optional)?.to_value();
    let refuse = |message: String, place: Place| {
        reading.reader.report(fields.error(message, &reading.reader.span(place)));
    };
    if entries.len() > MOST_FORM || value.to_json().len() > LONGEST_FORM {
        let message = format!("`request_form` may have {MOST_FORM} entries and {LONGEST_FORM} bytes");
        refuse(message, place);
    }
    let fits = |name: &str| {
        let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'));
        is_name && (1..=64).contains(&name.len()) && !name.starts_with('_')
    };
    for entry in entries.iter().filter(|entry| !fits(&entry.key)) {
        let rule = "letters, digits, `_`, `.` and `-`, no `_` first, 64 at most";
        refuse(format!("`{}` cannot be a name in `request_form`: {rule}", entry.key), entry.key_place);
    }
    Some(value)
}

/// Takes what a variable says for a setting that is left out; `false` if none does.
fn stand_in<'r, 'd>(
    reading: &Reading<'r, 'd>,
    setting: &Setting,
    connector: &mut Connector,
    fields: &Fields<'r, 'd>,
) -> bool {
    let Setting(name, kind, _, variables) = setting;
    let value = variables.iter().find_map(|variable| {
        let value = reading.surroundings.variable(variable)?.trim().to_owned();
        (!value.is_empty()).then_some(value)
    });
    let Some(value) = value else { return false };
    if *kind == Type::Url {
        check_address(reading, fields, name, (&value, &reading.reader.span(fields.owner().place)));
    }
    take(connector, name, *kind, &value);
    true
}

/// Takes note of the text of a setting.
fn take(connector: &mut Connector, name: &'static str, kind: Type, text: &str) {
    match kind {
        Type::Secret => connector.secrets.0.push((name.to_owned(), text.to_owned())),
        Type::Url => {
            connector.servers.push(text.to_owned());
            connector.settings.insert(name, Value::from(text));
        }
        _ => connector.settings.insert(name, Value::from(text)),
    }
}

fn report_missing(reading: &Reading<'_, '_>, fields: &Fields<'_, '_>, setting: &Setting, connector: &str) {
    let message = format!("`connector_config` has no `{}`, which `{connector}` needs", setting.0);
    let error = fields.error(message, &reading.reader.span(fields.owner().place));
    let help = match setting.3.first() {
        Some(variable) => format!("write it, or set the variable `{variable}`"),
        None => "write it".to_owned(),
    };
    reading.reader.report(error.help(help));
}

fn read_config<'r, 'd>(reading: &Reading<'r, 'd>, config: &mut Fields<'r, 'd>, connector: &mut Connector) {
    if let Some(mode) = config.word("mode", &["sync", "callback"]) {
        connector.settings.insert("mode", mode.into());
    }
    let limits_callbacks = seconds(reading, config, "callback_timeout", connector);
    if limits_callbacks && connector.text("mode") != Some("callback") {
        reading.no_effect_but(config, "callback_timeout", "`mode` is `sync`", "write `mode: callback`");
    }
    for setting in settings(&connector.name) {
        let Setting(name, kind, is_needed, _) = setting;
        let is_there = match kind {
            Type::Text | Type::Url | Type::Secret => match text_of(reading, config, name, kind) {
                Some(text) => {
                    take(connector, name, kind, &text);
                    true
                }
                None => false,
            },
            Type::Seconds => seconds(reading, config, name, connector),
            // Whoever prefers the only way there is gets it.
            Type::Preference => {
                if config.flag(name, Optional).is_some_and(|flag| !flag.value) {
                    retired(reading, config, name);
                }
                continue;
            }
            Type::List => config.list(name, Optional).is_some(),
            Type::Map => config.map(name, Optional).is_some(),
            Type::Retired => {
                retired(reading, config, name);
                continue;
            }
        };
        if !is_there && !stand_in(reading, &setting, connector, config) && is_needed {
            report_missing(reading, config, &setting, &connector.name);
        }
    }
    match &*connector.name {
        "mcp" => mcp(reading, config, connector),
        "zapier" => {
            let named = ["connection", "action"].iter().any(|name| config.text(name, Optional).is_some());
            if !named {
                let message = "`connector_config` has neither `connection` nor `action`, which name the tool";
                let error = config.error(message, &reading.reader.span(config.owner().place));
                reading.reader.report(error.help("write at least one of them"));
            }
            let has_key = connector.secrets.0.iter().any(|(name, _)| name == "mcp_key")
                || ["api_key", "vault_connection"].iter().any(|name| config.entry(name, Optional).is_some())
                || reading.surroundings.variable("ZAPIER_API_KEY").is_some_and(|key| !key.trim().is_empty());
            if !has_key {
                report_missing(reading, config, &Setting("mcp_key", Type::Secret, true, &["ZAPIER_MCP_KEY"]), "zapier");
            }
            if let Some(entry) = config.entry("vault_connection", Optional) {
                reading.later_because(config, entry, ": there is no vault");
            }
        }
        "autogen" => {
            let style = config.word("api_style", &["predict", "studio_ws", "generic"]);
            if let (Some("studio_ws"), Some(entry)) = (style, config.entry("api_style", Optional)) {
                reading.later_because(config, entry, ": `studio_ws`");
            }
        }
        "n8n" => {
            if let Some(url) = config.text("webhook_url", Optional).filter(|url| url.contains("/webhook-test/")) {
                let place = config.node("webhook_url", Optional).map_or(config.owner().place, |node| node.place);
                let message = format!("`webhook_url` is an address for tests, which works once: `{}`", &*url);
                let help = "take that of production: `/webhook/` in the place of `/webhook-test/`";
                reading.reader.report(reading.warning(config, message, place).help(help));
            }
        }
        _ => {}
    }
}

/// Warns of a setting for what the service no longer offers.
fn retired<'r, 'd>(reading: &Reading<'r, 'd>, config: &mut Fields<'r, 'd>, name: &'static str) {
    if let Some(entry) = config.entry(name, Optional) {
        let message = format!("`{name}` does nothing: the way it was for is no longer offered");
        let help = "use the service over MCP: `mcp_key`";
        reading.reader.report(reading.warning(config, message, entry.key_place).help(help));
    }
}

/// A number of seconds among the settings.
fn seconds<'r, 'd>(
    reading: &Reading<'r, 'd>,
    config: &mut Fields<'r, 'd>,
    name: &'static str,
    connector: &mut Connector,
) -> bool {
    let given = reading.seconds(config, name, LONGEST);
    if let Some(value) = given.and_then(|given| Number::from_f64(given.as_secs_f64())) {
        connector.settings.insert(name, Value::Number(value));
    }
    given.is_some()
}

/// The text of a setting; none if it is left out or empty.
fn text_of<'r, 'd>(
    reading: &Reading<'r, 'd>,
    config: &mut Fields<'r, 'd>,
    name: &'static str,
    kind: Type,
) -> Option<String> {
    let text = config.text(name, Optional)?;
    if kind == Type::Url {
        check_url(reading, config, name, &text);
    }
    if kind == Type::Secret
        && let Some(node) = config.node(name, Optional)
    {
        reading.secret(config, name, &text, node);
    }
    let text = text.trim().to_owned();
    (!text.is_empty()).then_some(text)
}

fn mcp<'r, 'd>(reading: &Reading<'r, 'd>, config: &mut Fields<'r, 'd>, connector: &mut Connector) {
    let transport = config.word("transport", &["stdio", "http"]);
    let (needed, others): (&str, &[&'static str]) = match transport {
        Some("http") => ("url", &["command", "args", "env"]),
        _ => ("command", &["url", "auth_token"]),
    };
    for name in others {
        let why = format!("the transport is `{}`", if needed == "url" { "http" } else { "stdio" });
        reading.no_effect(config, name, &why);
    }
    if config.text(needed, Optional).is_none_or(|text| text.trim().is_empty()) {
        let transport = if needed == "url" { "http" } else { "stdio" };
        let message = format!("`connector_config` has no `{needed}`, which the transport `{transport}` needs");
        let error = config.error(message, &reading.reader.span(config.owner().place));
        reading.reader.report(error.help("write it, or take the other `transport`"));
    }
    for item in config.list("args", Optional).unwrap_or_default() {
        if !matches!(item.kind, Kind::Text(_)) {
            reading.reader.wrong_type(item, "an item of `args`", "a text", config.owner());
        }
    }
    if needed == "command" {
        if let (Some("callback"), Some(entry)) = (connector.text("mode"), config.entry("mode", Optional)) {
            let error =
                config.error("a program answers at once: there is no callback", &reading.reader.span(entry.key_place));
            reading.reader.report(error.help("write `mode: sync`, or `transport: http`"));
        }
        for name in ["args", "env"] {
            if let Some(node) = config.node(name, Optional) {
                connector.settings.insert(name, node.to_value());
            }
        }
    }
}

/// What an agent may do with another system.
fn policy<'r, 'd>(reading: &Reading<'r, 'd>, fields: &mut Fields<'r, 'd>) -> Policy {
    let mut policy = Policy::default();
    let Some(mut of_one) = reading.block(fields, "external_policy") else { return policy };
    for host in of_one.texts("allowed_hosts", Optional).unwrap_or_default() {
        let name = host.strip_prefix("*.").unwrap_or(&host);
        let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-')) && !name.is_empty();
        if !is_name {
            let error = of_one.error(format!("`{}` is not a valid name of a host", &*host), &host.span);
            reading.reader.report(error.help("write names such as `api.example.com` or `*.example.com`"));
        } else {
            policy.allowed_hosts.push(host.to_string());
        }
    }
    policy.max_response_bytes = of_one.between("max_response_bytes", 1, u32::MAX);
    policy.quarantine_after = of_one.between("quarantine_after", 1, u32::MAX);
    let fields_of = of_one.texts("send_fields", Optional);
    policy.send_fields = fields_of.map(|names| names.iter().map(|name| Key::from(&**name)).collect());
    for pattern in of_one.texts("redact", Optional).unwrap_or_default() {
        match Pattern::new(&pattern) {
            Ok(known) => policy.redact.push(known),
            Err(problem) => {
                let error = of_one.error(format!("`{}` is not a valid regular expression", &*pattern), &pattern.span);
                reading.reader.report(error.help(problem.lines().last().unwrap_or_default().trim().to_owned()));
            }
        }
    }
    of_one.finish(|_| None);
    policy
}
