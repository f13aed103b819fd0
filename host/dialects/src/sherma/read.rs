//! From the tree of a file to [`Source`]: the top level and what is declared there.

use std::sync::Arc;

use hotcell_graph::value::Number;

use super::declared::{declarations, imported, not_one_of, reference, tool_of_path, unknown, unreadable};
use super::read_agent::agent;
use super::schema::{Llm, Source, SubAgent, Tool};
use super::{servers, skills};
use crate::document::Need::{Optional, Required};
use crate::document::{Fields, Kind, Owner, Place, Reader, SourceText};
use crate::surroundings::{Import, Surroundings};

/// Reads the whole file; what is wrong is reported to the reader. None if it is no mapping at all.
pub(super) fn source(reader: &Reader<'_>, surroundings: &dyn Surroundings) -> Option<Source> {
    let owner = Owner { what: "the file".into(), node: None, place: Place::default() };
    let mut fields = reader.fields(&reader.document().root, owner)?;
    manifest_version(&mut fields);
    let mut source = Source {
        prompts: prompts(&mut fields, surroundings),
        llms: llms(&mut fields),
        tools: tools(&mut fields, surroundings),
        skills: skills::read(&mut fields, surroundings),
        sub_agents: sub_agents(&mut fields, surroundings),
        default_llm: fields
            .entry("default_llm", Optional)
            .and_then(|entry| reference(reader, &entry.value, "default_llm", None)),
        data: fields.map("data", Optional).map_or_else(Default::default, |_| {
            reader.document().root.get("data").map(|entry| entry.value.to_value()).unwrap_or_default()
        }),
        hooks: Vec::new(),
        agents: Vec::new(),
    };
    source.hooks = hooks(&mut fields, surroundings);
    checkpointer(&mut fields);
    servers::read(&mut fields, &mut source.tools, surroundings);
    if let Some((entries, place)) = fields.map("agents", Required) {
        if entries.is_empty() {
            reader.report(fields.error("`agents` is empty", &reader.span(place)).help("declare at least one agent"));
        }
        source.agents = entries.iter().filter_map(|entry| agent(reader, entry, surroundings)).collect();
    }
    fields.finish(|_| None);
    Some(source)
}

fn manifest_version(fields: &mut Fields<'_, '_>) {
    let Some(node) = fields.node("manifest_version", Required) else { return };
    if matches!(&node.kind, Kind::Number(Number::Int(1))) {
        return;
    }
    let reader = fields.reader();
    let raw = reader.document().raw(node.place);
    let error = fields
        .error(format!("`manifest_version` is {raw}"), &reader.span(node.place))
        .help("only version 1 is supported: `manifest_version: 1`");
    reader.report(error);
}

fn prompts(fields: &mut Fields<'_, '_>, surroundings: &dyn Surroundings) -> Vec<(SourceText, Arc<str>)> {
    declarations(fields, "prompts", "prompt", |fields, declared| {
        let reader = fields.reader();
        let text = fields.text("instructions", Optional);
        let path = fields.text("instructions_path", Optional);
        match (text, path) {
            (Some(text), None) => Some((declared.id, text.value)),
            (None, Some(path)) => match surroundings.read(&path, None) {
                Ok(text) => Some((declared.id, text)),
                Err(reason) => {
                    reader.report(unreadable(fields, &path, &reason));
                    None
                }
            },
            (both, _) => {
                not_one_of(fields, both.is_some(), ["instructions", "instructions_path"], &declared);
                None
            }
        }
    })
}

fn llms(fields: &mut Fields<'_, '_>) -> Vec<Llm> {
    const PROVIDERS: [&str; 2] = ["openai", "anthropic"];
    declarations(fields, "llms", "LLM", |fields, declared| {
        let provider = fields.text("provider", Optional);
        let model = fields.text("model_name", Required)?;
        if let Some(provider) = &provider
            && !PROVIDERS.contains(&&**provider)
        {
            fields.reader().report(unknown(fields, "provider", provider, &PROVIDERS));
        }
        let provider = provider.map_or_else(|| "openai".to_owned(), |provider| provider.to_string());
        Some(Llm { declared, provider, model: model.to_string() })
    })
}

fn tools(fields: &mut Fields<'_, '_>, surroundings: &dyn Surroundings) -> Vec<Tool> {
    declarations(fields, "tools", "tool", |fields, declared| {
        for name in ["url", "protocol"] {
            not_yet(fields, name);
        }
        let path = fields.text("import_path", Required)?;
        let name = tool_of_path(fields, &path, surroundings)?;
        Some(Tool { declared, name })
    })
}

/// Refuses a field that the language has and that is not supported.
fn not_yet(fields: &mut Fields<'_, '_>, name: &'static str) {
    let Some(entry) = fields.entry(name, Optional) else { return };
    let reader = fields.reader();
    let message = format!("`{name}` of {} is not supported yet", fields.owner().what);
    reader.report(fields.error(message, &reader.span(entry.key_place)).help("remove it"));
}

fn sub_agents(fields: &mut Fields<'_, '_>, surroundings: &dyn Surroundings) -> Vec<SubAgent> {
    declarations(fields, "sub_agents", "sub-agent", |fields, declared| {
        let reader = fields.reader();
        let url = fields.text("url", Optional);
        let path = fields.text("yaml_path", Optional);
        let import = fields.text("import_path", Optional);
        let id = &*declared.id;
        let sources = [("url", &url), ("yaml_path", &path), ("import_path", &import)];
        let given: Vec<_> = sources.into_iter().filter_map(|(name, text)| Some((name, text.as_ref()?))).collect();
        if let [(first, _), (second, text), ..] = &given[..] {
            let message = format!("the sub-agent `{id}` has both `{first}` and `{second}`");
            reader.report(fields.error(message, &text.span).help("remove one of them"));
            return None;
        }
        if let Some(path) = &path
            && let Err(reason) = surroundings.read(path, None)
        {
            reader.report(unreadable(fields, path, &reason));
            return None;
        }
        let path = match (path, &url) {
            (None, None) => {
                // One without any source is one that somebody made known under its id.
                let named = import.as_ref().unwrap_or(&declared.id);
                let help = "describe the agent in a file, `yaml_path: agent.yaml`, or say where it is with `[imports]` in \
                            `hotcell.toml`";
                let mut file = named.clone();
                match imported(fields, Import::Agent, named, help, surroundings) {
                    Some(found) => file.value = found.into(),
                    None => return Some(SubAgent { declared, path: None, url: None }),
                }
                Some(file)
            }
            (path, _) => path,
        };
        Some(SubAgent { declared, path, url })
    })
}

/// The hooks of a file, in its order.
fn hooks(fields: &mut Fields<'_, '_>, surroundings: &dyn Surroundings) -> Vec<String> {
    let reader = fields.reader();
    let mut found = Vec::new();
    for item in fields.list("hooks", Optional).unwrap_or_default() {
        let owner = Owner { what: "a hook".into(), node: None, place: item.place };
        let Some(mut fields) = reader.fields(item, owner) else { continue };
        let elsewhere: Vec<_> = ["url", "mcp"].into_iter().filter_map(|name| fields.entry(name, Optional)).collect();
        for entry in &elsewhere {
            let message = format!("a hook by `{}` is not supported: hooks are plugins here", entry.key);
            let error = fields.error(message, &reader.span(entry.key_place));
            reader.report(error.help(
                "write what it does as a hook plugin, and name it with `import_path`; a guard is never left out silently",
            ));
        }
        let need = if elsewhere.is_empty() { Required } else { Optional };
        if let Some(path) = fields.text("import_path", need) {
            let help = "hooks are plugins here, a class of Python is not run: put a hook plugin of that name into one of these \
                        folders, name it under `hooks` in `hotcell.toml`, or say what it means with `[imports]` there; a guard \
                        is never left out silently";
            found.extend(imported(&fields, Import::Hook, &path, help, surroundings));
        }
        fields.finish(|_| None);
    }
    found
}

fn checkpointer(fields: &mut Fields<'_, '_>) {
    let Some(entry) = fields.entry("checkpointer", Optional) else { return };
    let owner = Owner { what: "`checkpointer`".into(), node: None, place: entry.key_place };
    let Some(mut fields) = fields.reader().fields(&entry.value, owner) else { return };
    if let Some(kind) = fields.text("type", Required)
        && &*kind != "memory"
    {
        fields.reader().report(unknown(&fields, "checkpointer", &kind, &["memory"]));
    }
    fields.finish(|_| None);
}
