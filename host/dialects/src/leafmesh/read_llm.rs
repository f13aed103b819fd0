//! Reading what only agents with a model have.

use std::time::Duration;

use hotcell_graph::diagnostic::{Diagnostic, Severity, Span};
use hotcell_graph::ir::{CallLimits, ToolChoice};
use hotcell_graph::{Key, Value, closest};

use super::reading::{LONGEST, Reading, is_on};
use super::schema::{AgentType, Knowledge, Llm, Tools};
use super::shapes::Field;
use super::{lower_knowledge, mcp, prompt_keys, thoughts};
use crate::document::Need::{Optional, Required};
use crate::document::{Fields, Kind, SourceText};
use crate::json_schema;

/// All fields of this type of agents.
pub(super) const FIELDS: &[&str] = &[
    "model",
    "prompt",
    "temperature",
    "max_tokens",
    "max_completion_tokens",
    "reasoning",
    "reasoning_budget",
    "thinking",
    "thinking_budget",
    "enable_prompt_caching",
    "response_format",
    "optimization_strategy",
    "context_parts",
    "tools",
    "tool_choice",
    "max_tool_calls_per_message",
    "tool_call_timeout",
    "allow_parallel_tool_calls",
    "tool_categories",
    "fallback_models",
    "cache",
    "strict_tools",
    "mcp",
    "skills",
    "playbook",
    "super_agent",
    "memory_strategy",
    "knowledge_strategy",
    "effort",
    "mother_tongue",
    "nationality",
    "output_modality",
    "image_options",
    "llm_hard_timeout_s",
    "schedule_followup",
    "max_followup_depth",
    "max_followups_per_session",
    "schedule_targets",
    "skills_eager",
    "sandbox",
    "device",
];
/// What models are asked with where nothing is said.
const TEMPERATURE: f64 = 0.1;
/// How many calls of tools there may be in one turn, and how long one may take.
const TOOL_CALLS: u32 = 5;
const TOOL_TIME: Duration = Duration::from_secs(30);
const MAX_TOKENS: u32 = 800;
/// How a model comes by what its agent remembers or can look up.
const STRATEGIES: [&str; 3] = ["tool", "inject", "both"];
/// Above this what is given out rarely has the declared form.
const HOT: f64 = 0.5;
/// The parts of a prompt with labels of their own, in the order in which models see them.
const PARTS: [(&str, &str); 4] = [
    ("care", "EMPATHY & TONE"),
    ("sentiment_analysis", "SENTIMENT ANALYSIS"),
    ("guardrails", "SAFETY GUARDRAILS"),
    ("flows", "FLOW INSTRUCTIONS"),
];

pub(super) fn llm<'r, 'd>(
    reading: &Reading<'r, 'd>,
    fields: &mut Fields<'r, 'd>,
    yields: &[(Key, Field)],
    knowledge: Option<&Knowledge>,
) -> Llm {
    let reader = reading.reader;
    let model = fields.text("model", Optional);
    // One of an unknown type is read like this too, and was told that its type is wrong.
    let is_llm =
        fields.entry("agent_type", Optional).is_none_or(|entry| entry.value.as_text() == Some(AgentType::Llm.word()));
    if is_llm && model.as_ref().is_none_or(|model| model.trim().is_empty()) {
        let error = fields.error("the agent has no `model`", &reader.span(fields.owner().place));
        reader.report(error.help("say which, for example `model: gpt-4o-mini`"));
    }
    let prompt = fields.text("prompt", Optional);
    let given = fields.within("temperature", 0.0..=2.0);
    if let (Some(entry), Some(hot)) = (fields.entry("temperature", Optional), given.filter(|given| *given > HOT))
        && !yields.is_empty()
    {
        let message = format!("a `temperature` of {hot} goes badly with `yields`");
        let help = format!("at most {HOT} keeps replies in the declared form");
        reader.report(reading.warning(fields, message, entry.value.place).help(help));
    }
    let max_tokens = fields.between("max_tokens", 1, u32::MAX);
    let max_completion_tokens = fields.between("max_completion_tokens", 1, u32::MAX);
    let fallback_models = fields.texts("fallback_models", Optional).unwrap_or_default();
    let tokens = max_completion_tokens.or(max_tokens).unwrap_or(MAX_TOKENS);
    let mut thoughts = thoughts::read(reading, fields, model.as_deref(), tokens, yields);
    let keeps_prompt = fields.flag("enable_prompt_caching", Optional).is_some_and(|flag| flag.value);
    let response_format = response_format(reading, fields);
    fields.word("optimization_strategy", &["performance", "cost", "speed"]);
    reading.no_effect(fields, "optimization_strategy", "the model is the one that `model` names");
    let context_parts = context_parts(reading, fields);
    let mut servers = mcp::servers(reading, fields);
    let (is_told_knowledge, mut queries_knowledge) = knowledge_strategy(reading, fields, knowledge);
    let mut others: Vec<&str> = if thoughts.tools { thoughts::TOOLS.to_vec() } else { Vec::new() };
    others.extend(queries_knowledge.then_some(lower_knowledge::TOOL));
    let tools = tools(reading, fields, &others, !servers.is_empty());
    if fields.text("tool_choice", Optional).is_some_and(|choice| choice.trim() == "none") {
        thoughts.tools = false;
        servers.clear();
        queries_knowledge = false;
    }
    let time = reading.seconds(fields, "llm_hard_timeout_s", LONGEST);
    documented_later(reading, fields);
    if let Some(prompt) = &prompt {
        compare_with_yields(reading, fields, prompt, yields);
    }
    Llm {
        model,
        prompt,
        temperature: given.unwrap_or(TEMPERATURE),
        max_tokens: tokens,
        time,
        fallback_models,
        response_format,
        context_parts,
        thoughts,
        keeps_prompt,
        tools,
        servers,
        is_told_knowledge,
        queries_knowledge,
    }
}

/// Whether the model is told what is found for its input, and whether it has a tool to look something up.
fn knowledge_strategy<'r, 'd>(
    reading: &Reading<'r, 'd>,
    fields: &mut Fields<'r, 'd>,
    knowledge: Option<&Knowledge>,
) -> (bool, bool) {
    let strategy = fields.word("knowledge_strategy", &STRATEGIES);
    if !matches!(knowledge, Some(Knowledge::Base(_))) {
        reading.no_effect(fields, "knowledge_strategy", "the agent has no `knowledge` to look anything up in");
        return (false, false);
    }
    (strategy != Some("tool"), strategy != Some("inject"))
}

/// What the model may call, and how. Beside those that `tools` names it has `others`, and those of servers if it `has_servers`.
fn tools<'r, 'd>(reading: &Reading<'r, 'd>, fields: &mut Fields<'r, 'd>, others: &[&str], has_servers: bool) -> Tools {
    let mut names = fields.texts("tools", Optional).unwrap_or_default();
    let mut categories = fields.texts("tool_categories", Optional).unwrap_or_default();
    // What these are called shows when they are asked for.
    let is_open = has_servers || !categories.is_empty();
    let choice = fields.text("tool_choice", Optional);
    let most = fields.between("max_tool_calls_per_message", 0, 20);
    let time = reading.seconds(fields, "tool_call_timeout", 300.0);
    let side_by_side = fields.flag("allow_parallel_tool_calls", Optional);
    if names.is_empty() && others.is_empty() && !is_open {
        for name in ["tool_choice", "max_tool_calls_per_message", "tool_call_timeout", "allow_parallel_tool_calls"] {
            reading.no_effect(fields, name, "the agent has no `tools`");
        }
    }
    let limits = CallLimits {
        most: Some(most.unwrap_or(TOOL_CALLS)),
        one_at_a_time: side_by_side.is_some_and(|flag| !flag.value),
        time: Some(time.unwrap_or(TOOL_TIME)),
    };
    let choice = match choice.as_deref().map(str::trim) {
        None | Some("auto") => None,
        Some("required") => Some(ToolChoice::Any),
        Some("none") => {
            names.clear();
            categories.clear();
            None
        }
        Some(name) if is_open && !name.is_empty() => Some(ToolChoice::Tool(name.to_owned())),
        Some(name) if others.contains(&name) || names.iter().any(|known| **known == *name) => {
            Some(ToolChoice::Tool(name.to_owned()))
        }
        Some(name) => {
            let problem = match name {
                "" => "`tool_choice` is empty".to_owned(),
                name => format!("`tool_choice` names `{name}`, which is not among the agent's `tools`"),
            };
            let span = choice.as_ref().map_or_else(Span::none, |choice| choice.span.clone());
            let words = ["auto", "none", "required"].into_iter().chain(others.iter().copied());
            let help = match closest(name, words.chain(names.iter().map(|known| &**known))) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "write `auto`, `none`, `required` or the name of one of its `tools`".to_owned(),
            };
            reading.reader.report(fields.error(problem, &span).help(help));
            None
        }
    };
    Tools { names, categories, choice, limits }
}

/// Fields of later versions of the documentation, which are checked for their type.
fn documented_later<'r, 'd>(reading: &Reading<'r, 'd>, fields: &mut Fields<'r, 'd>) {
    fields.flag("strict_tools", Optional);
    if fields.word("memory_strategy", &STRATEGIES).is_some_and(|strategy| strategy != "inject") {
        let why = "what is remembered is told before the input, and there is no tool for it: write `inject`";
        reading.no_effect(fields, "memory_strategy", why);
    }
    for name in ["mother_tongue", "nationality"] {
        if let Some(text) = fields.text(name, Optional)
            && text.chars().count() > 40
        {
            let error = fields.error(format!("`{name}` has more than 40 characters"), &text.span);
            reading.reader.report(error);
        }
    }
    let is_set = |fields: &mut Fields<'r, 'd>, name| fields.flag(name, Optional).is_some_and(|flag| flag.value);
    let is_given = |fields: &mut Fields<'r, 'd>, name| fields.between(name, 0, u32::MAX).is_some();
    let no_followups = "no agent wakes up others later";
    for (name, is_idle, why) in [
        ("schedule_followup", is_set(fields, "schedule_followup"), no_followups),
        ("max_followup_depth", is_given(fields, "max_followup_depth"), no_followups),
        ("max_followups_per_session", is_given(fields, "max_followups_per_session"), no_followups),
    ] {
        if is_idle {
            reading.no_effect_but(fields, name, why, "write a `wake_up` at the agent that works later");
        }
    }
    if is_set(fields, "skills_eager") {
        reading.no_effect(fields, "skills_eager", "hotcell has no skills for meshes");
    }
    fields.list("schedule_targets", Optional);
    fields.list("playbook", Optional);
    if let Some(entry) = fields.entry("skills", Optional)
        && matches!(entry.value.kind, Kind::Bool(_))
    {
        let error = fields.error("`skills` does not say which", &reading.reader.span(entry.value.place));
        reading.reader.report(error.help("list their names: `skills: [name]`"));
    }
    let later = [
        "cache",
        "strict_tools",
        "skills",
        "playbook",
        "super_agent",
        "effort",
        "mother_tongue",
        "nationality",
        "output_modality",
        "image_options",
        "schedule_targets",
        "sandbox",
        "device",
    ];
    for name in later {
        reading.not_yet(fields, name);
    }
}

/// The JSON schema of a reply, with or without the envelope that some providers take.
fn response_format<'r, 'd>(reading: &Reading<'r, 'd>, fields: &mut Fields<'r, 'd>) -> Option<Value> {
    const ENVELOPE: &str = "json_schema";
    let node = fields.node("response_format", Optional)?;
    let is_envelope =
        node.get(ENVELOPE).is_some() || node.get("type").is_some_and(|entry| entry.value.as_text() == Some(ENVELOPE));
    if !is_envelope {
        return json_schema::of_node(fields, node, "response_format");
    }
    let mut envelope = reading.block(fields, "response_format")?;
    envelope.word("type", &[ENVELOPE]);
    let schema = envelope.node(ENVELOPE, Required).and_then(|_| {
        let mut of_one = reading.block(&mut envelope, ENVELOPE)?;
        // Providers are told the schema under a name of hotcell's, and as strictly as they take it.
        of_one.text("name", Optional);
        of_one.text("description", Optional);
        of_one.flag("strict", Optional);
        let schema = of_one.node("schema", Required).and_then(|node| json_schema::of_node(&of_one, node, "schema"));
        of_one.finish(|_| None);
        schema
    });
    envelope.finish(|_| None);
    schema
}

fn context_parts<'r, 'd>(reading: &Reading<'r, 'd>, fields: &mut Fields<'r, 'd>) -> Vec<(String, SourceText)> {
    let Some((entries, _)) = fields.map("context_parts", Optional) else { return Vec::new() };
    let mut parts: Vec<(usize, String, SourceText)> = Vec::new();
    for (place, entry) in entries.iter().enumerate() {
        if !is_on(&entry.value) {
            continue;
        }
        let what = || format!("`{}` of `context_parts`", entry.key);
        let Some(text) = reading.reader.text(&entry.value, what, fields.owner()) else { continue };
        let known = PARTS.iter().position(|(name, _)| *name == &*entry.key);
        let label = match known {
            Some(known) => PARTS[known].1.to_owned(),
            None => entry.key.replace('_', " ").to_uppercase(),
        };
        parts.push((known.unwrap_or(PARTS.len() + place), label, text));
    }
    parts.sort_by_key(|(place, ..)| *place);
    parts.into_iter().map(|(_, label, text)| (label, text)).collect()
}

/// Reports a prompt that asks for other fields than the agent declares.
fn compare_with_yields(
    reading: &Reading<'_, '_>,
    fields: &Fields<'_, '_>,
    prompt: &SourceText,
    yields: &[(Key, Field)],
) {
    let asked = prompt_keys::keys(prompt);
    if asked.is_empty() || yields.is_empty() {
        return;
    }
    let undeclared: Vec<&str> =
        asked.iter().map(String::as_str).filter(|key| yields.iter().all(|(name, _)| **name != **key)).collect();
    if undeclared.is_empty() {
        return;
    }
    let severity = if undeclared.len() == asked.len() { Severity::Error } else { Severity::Warning };
    let message = match severity {
        Severity::Error => {
            format!("the prompt asks for a reply with `{}`, none of which `yields` declares", undeclared.join("`, `"))
        }
        _ => format!("the prompt mentions `{}`, which `yields` does not declare", undeclared.join("`, `")),
    };
    let error = fields.error(message, &prompt.span);
    let help = "name the same fields in both; only those of `yields` are certain to be there";
    reading.reader.report(Diagnostic { severity, ..error.help(help) });
}
