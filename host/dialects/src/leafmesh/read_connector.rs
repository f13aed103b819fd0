//! Reading how an agent reaches another system: `framework` or `integration`, and `connector_config`.

use super::read_human::check_url;
use super::reading::{LONGEST, Reading};
use super::schema::{AgentType, Connector};
use crate::document::Need::Optional;
use crate::document::{Fields, Kind};

/// What external agents may be.
const FRAMEWORKS: [&str; 9] = ["crewai", "langgraph", "autogen", "a2a", "mcp", "zapier", "composio", "n8n", "custom"];
/// What programmatic agents may use.
const INTEGRATIONS: [&str; 4] = ["zapier", "composio", "n8n", "mcp"];
/// Those of later versions of the documentation.
const LATER: [&str; 27] = [
    "hermes",
    "lyzr",
    "writer",
    "dify",
    "flowise",
    "vellum",
    "stackai",
    "agentforce",
    "watsonx",
    "relevance",
    "wordware",
    "lindy",
    "claude_agent",
    "openai_agents",
    "claude_managed",
    "openai_agents_api",
    "foundry_agents",
    "vertex_agent_engine",
    "bedrock_agentcore",
    "copilot_studio",
    "mistral_agents",
    "letta",
    "glean_agents",
    "servicenow",
    "sap_joule",
    "workday",
    "box",
];

/// A setting of a connector: its name, what it is, and whether it has to be there, perhaps in one of these variables.
struct Setting(&'static str, Type, Option<&'static [&'static str]>);

#[derive(Clone, Copy, PartialEq)]
enum Type {
    Text,
    Url,
    Secret,
    Seconds,
    Flag,
    List,
    Map,
    /// No longer in use
    Retired,
}

const POLLS: [Setting; 2] =
    [Setting("poll_interval", Type::Seconds, None), Setting("max_poll_seconds", Type::Seconds, None)];

fn settings(connector: &str) -> Vec<Setting> {
    use Type::{Flag, List, Map, Retired, Seconds, Secret, Text, Url};
    let own: Vec<Setting> = match connector {
        "crewai" => vec![
            Setting("endpoint", Url, Some(&["CREWAI_ENDPOINT"])),
            Setting("api_key", Secret, None),
            Setting("user_api_key", Secret, None),
            Setting("http_timeout", Seconds, None),
        ],
        "langgraph" => vec![
            Setting("endpoint", Url, Some(&["LANGGRAPH_ENDPOINT", "LANGCHAIN_ENDPOINT"])),
            Setting("api_key", Secret, None),
            Setting("graph_id", Text, None),
            Setting("http_timeout", Seconds, None),
        ],
        "autogen" => vec![
            Setting("endpoint", Url, Some(&["AUTOGEN_ENDPOINT"])),
            Setting("api_key", Secret, None),
            Setting("workflow_id", Text, None),
            Setting("api_style", Text, None),
            Setting("timeout", Seconds, None),
        ],
        "a2a" => vec![
            Setting("url", Url, Some(&["A2A_AGENT_URL"])),
            Setting("auth_token", Secret, None),
            Setting("auth_scheme", Text, None),
            Setting("http_timeout", Seconds, None),
        ],
        "mcp" => vec![
            Setting("tool_name", Text, Some(&[])),
            Setting("transport", Text, None),
            Setting("timeout", Seconds, None),
            Setting("command", Text, None),
            Setting("args", List, None),
            Setting("env", Map, None),
            Setting("url", Url, None),
            Setting("auth_token", Secret, None),
        ],
        "zapier" => vec![
            Setting("connection", Text, None),
            Setting("action", Text, None),
            Setting("mcp_key", Secret, None),
            Setting("mcp_endpoint", Url, None),
            Setting("vault_connection", Text, None),
            Setting("timeout", Seconds, None),
            Setting("api_key", Retired, None),
            Setting("prefer_mcp", Flag, None),
            Setting("instructions", Retired, None),
        ],
        "composio" => vec![
            Setting("action", Text, Some(&[])),
            Setting("entity_id", Text, None),
            Setting("api_key", Secret, None),
            Setting("connected_account_id", Text, None),
            Setting("version", Text, None),
            Setting("timeout", Seconds, None),
        ],
        "n8n" => vec![
            Setting("webhook_url", Url, Some(&["N8N_WEBHOOK_URL"])),
            Setting("auth_token", Secret, None),
            Setting("timeout", Seconds, None),
        ],
        _ => Vec::new(),
    };
    let polls = matches!(connector, "crewai" | "langgraph" | "autogen" | "a2a");
    own.into_iter().chain(POLLS.into_iter().filter(|_| polls)).collect()
}

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
    policy(reading, fields);
    fields.map("request_form", Optional);
    reading.not_yet(fields, "request_form");
    let Some(name) = name else {
        if agent_type == AgentType::External {
            let error = fields.error("the agent has no `framework`", &reading.reader.span(fields.owner().place));
            reading.reader.report(error.help(format!("it is one of `{}`", FRAMEWORKS.join("`, `"))));
        }
        if let Some(entry) = fields.entry("connector_config", Optional) {
            let message = format!("`connector_config` without `{field}` configures nothing");
            let error = fields.error(message, &reading.reader.span(entry.key_place));
            reading.reader.report(error.help(format!("write `{field}`, one of `{}`", known.join("`, `"))));
        }
        return None;
    };
    if LATER.contains(&&*name) && agent_type == AgentType::External {
        fields.map("connector_config", Optional);
        if let Some(entry) = fields.entry(field, Optional) {
            reading.later_because(fields, entry, &format!(": `{}`", &*name));
        }
        return Some(Connector { name });
    }
    if !known.contains(&&*name) {
        let error = fields.unknown_word(field, &name, known);
        reading.reader.report(error);
        fields.map("connector_config", Optional);
        return None;
    }
    if &*name != "custom"
        && let Some(entry) = fields.entry(field, Optional)
    {
        reading.later_because(fields, entry, &format!(": `{}`", &*name));
    }
    match reading.block(fields, "connector_config") {
        Some(mut config) => {
            read_config(reading, &mut config, &name);
            if &*name == "custom" { drop(config) } else { config.finish_open() }
        }
        None => {
            let missing = settings(&name).into_iter().filter(|setting| is_missing(reading, setting));
            for Setting(setting, ..) in missing {
                report_missing(reading, fields, setting, &name);
            }
            if &*name == "zapier" {
                report_missing(reading, fields, "action", &name);
            }
        }
    }
    Some(Connector { name })
}

/// Whether a setting that was left out has to be there.
fn is_missing(reading: &Reading<'_, '_>, Setting(_, _, needed): &Setting) -> bool {
    let is_set = |name: &&&str| reading.surroundings.variable(name).is_some_and(|value| !value.is_empty());
    needed.is_some_and(|variables| !variables.iter().any(|name| is_set(&name)))
}

fn report_missing(reading: &Reading<'_, '_>, fields: &Fields<'_, '_>, setting: &str, connector: &str) {
    let message = format!("`connector_config` has no `{setting}`, which `{connector}` needs");
    let error = fields.error(message, &reading.reader.span(fields.owner().place));
    let variables = settings(connector).into_iter().find(|known| known.0 == setting).and_then(|known| known.2);
    let help = match variables.and_then(|variables| variables.first()) {
        Some(variable) => format!("write it, or set the variable `{variable}`"),
        None => "write it".to_owned(),
    };
    reading.reader.report(error.help(help));
}

fn read_config<'r, 'd>(reading: &Reading<'r, 'd>, config: &mut Fields<'r, 'd>, connector: &str) {
    config.word("mode", &["sync", "callback"]);
    reading.seconds(config, "callback_timeout", LONGEST);
    for setting in settings(connector) {
        let Setting(name, kind, _) = setting;
        let is_there = match kind {
            Type::Text => config.text(name, Optional).is_some_and(|text| !text.trim().is_empty()),
            Type::Url | Type::Secret => url_or_secret(reading, config, name, kind),
            Type::Seconds => reading.seconds(config, name, LONGEST).is_some(),
            Type::Flag => config.flag(name, Optional).is_some(),
            Type::List => config.list(name, Optional).is_some(),
            Type::Map => config.map(name, Optional).is_some(),
            Type::Retired => {
                if let Some(entry) = config.entry(name, Optional) {
                    let message = format!("`{name}` does nothing: the way it was for is no longer offered");
                    let help = "use the service over MCP: `mcp_key`";
                    reading.reader.report(reading.warning(config, message, entry.key_place).help(help));
                }
                continue;
            }
        };
        if !is_there && is_missing(reading, &setting) {
            report_missing(reading, config, name, connector);
        }
    }
    match connector {
        "mcp" => mcp(reading, config),
        "zapier" => {
            let named = ["connection", "action"].iter().any(|name| config.text(name, Optional).is_some());
            if !named {
                let message = "`connector_config` has neither `connection` nor `action`, which name the tool";
                let error = config.error(message, &reading.reader.span(config.owner().place));
                reading.reader.report(error.help("write at least one of them"));
            }
        }
        "autogen" => {
            config.word("api_style", &["predict", "studio_ws", "generic"]);
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

fn url_or_secret<'d>(reading: &Reading<'_, 'd>, config: &mut Fields<'_, 'd>, name: &'static str, kind: Type) -> bool {
    let Some(text) = config.text(name, Optional) else { return false };
    match kind {
        Type::Url => check_url(reading, config, name, &text),
        _ => {
            if let Some(node) = config.node(name, Optional) {
                let raw = reading.reader.document().raw(node.place);
                if reading.is_production && !text.is_empty() && !raw.contains("${") {
                    let message = format!("`{name}` is written out in the file");
                    let error = config.error(message, &reading.reader.span(node.place));
                    reading.reader.report(error.help("take it from the environment: `${NAME}`"));
                }
            }
        }
    }
    !text.trim().is_empty()
}

fn mcp<'d>(reading: &Reading<'_, 'd>, config: &mut Fields<'_, 'd>) {
    let needed = match config.word("transport", &["stdio", "http"]) {
        Some("http") => "url",
        _ => "command",
    };
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
}

/// What an agent may do with another system.
fn policy<'r, 'd>(reading: &Reading<'r, 'd>, fields: &mut Fields<'r, 'd>) {
    let Some(entry) = fields.entry("external_policy", Optional) else { return };
    if let Some(mut of_one) = reading.block(fields, "external_policy") {
        for host in of_one.texts("allowed_hosts", Optional).unwrap_or_default() {
            if host.contains("://") || host.contains('/') {
                let error = of_one.error(format!("`{}` is no name of a host", &*host), &host.span);
                reading.reader.report(error.help("write names such as `api.example.com` or `*.example.com`"));
            }
        }
        of_one.between("max_response_bytes", 1, u32::MAX);
        of_one.between("quarantine_after", 1, u32::MAX);
        of_one.texts("send_fields", Optional);
        for pattern in of_one.texts("redact", Optional).unwrap_or_default() {
            if let Err(problem) = hotcell_graph::ir::Pattern::new(&pattern) {
                let error = of_one.error(format!("`{}` is no regular expression", &*pattern), &pattern.span);
                reading.reader.report(error.help(problem.lines().last().unwrap_or_default().trim().to_owned()));
            }
        }
        of_one.finish(|_| None);
    }
    reading.later(fields, entry);
}
