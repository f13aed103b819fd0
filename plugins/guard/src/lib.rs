//! Refuses or redacts what matches patterns of the operator's, before models and tools see it and after models speak.
//!
//! Settings, each a JSON list of regular expressions or one expression on each line:
//!
//! - `refuse`: what must not occur at all; the call does not take place;
//! - `redact`: what is replaced by the setting `replacement`, `[redacted]` if that is missing;
//! - `allow_tools`: names of tools; if it is there, calls of other tools are refused.
//!
//! Without any setting every event is refused with a sentence that says so: a guard that guards nothing is a mistake.

mod walk;

use hotcell_plugin::{Error, Event, Json, Verdict, config, hook, info, plugin};
use regex::{RegexSet, RegexSetBuilder};

plugin! { hooks: [guard] }

/// Bytes that the compiled patterns of one setting may have.
const PATTERN_SIZE: usize = 4 << 20;

/// What the operator wants.
struct Rules {
    refuse: Option<(Vec<String>, RegexSet)>,
    redact: Vec<regex::Regex>,
    replacement: String,
    allow_tools: Option<Vec<String>>,
}

/// Refuses or redacts texts that match patterns of the operator's, and tools that are not on a list.
#[hook("before-model-call", "after-model-call", "before-tool-call")]
fn guard(point: &str, event: Event) -> Result<Verdict, Error> {
    let rules = Rules::read()?;
    if rules.refuse.is_none() && rules.redact.is_empty() && rules.allow_tools.is_none() {
        let names = "`refuse`, `redact` or `allow_tools`";
        return Ok(Verdict::refuse(format!("the guard has no rules: set {names} for it in `hotcell.toml`")));
    }
    if let (Some(allowed), "before-tool-call") = (&rules.allow_tools, point)
        && !allowed.iter().any(|name| name == event.tool())
    {
        return Ok(Verdict::refuse(format!("the tool `{}` is not on the guard's list `allow_tools`", event.tool())));
    }
    let name = match point {
        "before-tool-call" => "arguments",
        "after-model-call" => "reply",
        _ => "messages",
    };
    let mut event = event.json;
    let mut count = 0;
    for text in texts(&mut event, name) {
        if let Some((patterns, set)) = &rules.refuse
            && let Some(index) = walk::first(text, &mut |text| set.matches(text).iter().next())
        {
            return Ok(Verdict::refuse(format!("the {name} match the guard's pattern `{}`", patterns[index])));
        }
        count += walk::replace(text, &rules.redact, &rules.replacement);
    }
    if count == 0 {
        return Ok(Verdict::Proceed);
    }
    info!("redacted {count} places in the {name}");
    Ok(Verdict::Change(event))
}

/// What is looked at: arguments as a whole; of messages and replies what was said and which tools are to be called,
/// not who said it.
fn texts<'a>(event: &'a mut Json, name: &str) -> Vec<&'a mut Json> {
    let Some(part) = event.get_mut(name) else { return Vec::new() };
    if name == "arguments" {
        return vec![part];
    }
    let members = match part {
        Json::Array(messages) => messages.iter_mut().filter_map(Json::as_object_mut).collect(),
        Json::Object(reply) => vec![reply],
        other => return vec![other],
    };
    let said = |name: &str| matches!(name, "content" | "text" | "tool_calls");
    members
        .into_iter()
        .flat_map(|members| members.iter_mut())
        .filter(|(name, _)| said(name))
        .map(|(_, value)| value)
        .collect()
}

impl Rules {
    fn read() -> Result<Self, Error> {
        let refuse = match patterns("refuse")? {
            Some(patterns) => {
                let built = RegexSetBuilder::new(&patterns).size_limit(PATTERN_SIZE).build();
                let set = built.map_err(|error| unusable("refuse", &error))?;
                Some((patterns, set))
            }
            None => None,
        };
        let build = |pattern: &String| {
            let built = regex::RegexBuilder::new(pattern).size_limit(PATTERN_SIZE).build();
            built.map_err(|error| unusable("redact", &error))
        };
        Ok(Self {
            refuse,
            redact: patterns("redact")?.unwrap_or_default().iter().map(build).collect::<Result<_, _>>()?,
            replacement: config::get("replacement").unwrap_or_else(|| "[redacted]".to_owned()),
            allow_tools: patterns("allow_tools")?,
        })
    }
}

/// A setting: a JSON list, or lines.
fn patterns(key: &str) -> Result<Option<Vec<String>>, Error> {
    let Some(text) = config::get(key) else { return Ok(None) };
    if let Ok(Json::Array(items)) = text.parse::<Json>() {
        let texts: Option<Vec<String>> = items.iter().map(|item| item.as_str().map(ToOwned::to_owned)).collect();
        return texts
            .map(Some)
            .ok_or_else(|| Error::other(format!("the setting `{key}` is a list of other things than texts")));
    }
    Ok(Some(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(ToOwned::to_owned).collect()))
}

fn unusable(key: &str, error: &regex::Error) -> Error {
    Error::other(format!("a pattern of the setting `{key}` cannot be used: {error}"))
}

#[cfg(test)]
mod tests;
