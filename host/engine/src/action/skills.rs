//! Skills: instructions, files and tools that a model, or a node, loads when they are needed.
//!
//! All of it is in the graph. Nothing is read from a disk here, so a path that a model gives can only be one of those
//! that a skill lists.

use hotcell_graph::conversation::{self, Speaker};
use hotcell_graph::ir::{Graph, LoadSkillsAction, Skill, SkillTool, SkillWords, Skills};
use hotcell_graph::{List, Object, State, Value};
use hotcell_models::ToolSpec;
use serde_json::json;
use thiserror::Error;

use super::Performed;
use crate::context::Interruption;
use crate::hook::{self, HookPoint};
use crate::ports::Notice;
use crate::telling;
use crate::turn::NodeTurn;
use hotcell_journal::Write;

/// What a model is told about what it may do with skills.
pub(super) fn describe(tool: SkillTool, words: SkillWords) -> ToolSpec {
    let path = match tool {
        SkillTool::LoadResource => Some("resource_path"),
        SkillTool::LoadAsset => Some("asset_path"),
        _ => None,
    };
    let text = |description: &str| json!({ "type": "string", "description": description });
    let mut properties = serde_json::Map::new();
    let mut required = Vec::new();
    if tool != SkillTool::List {
        properties.insert(words.id.to_owned(), text("The id of the skill"));
        required.push(words.id);
    }
    if words.has_versions && matches!(tool, SkillTool::Load | SkillTool::Unload) {
        properties.insert("version".to_owned(), text("Its version; leave it out for any"));
    }
    if let Some(path) = path {
        properties.insert(path.to_owned(), text("The path as the list has it"));
        required.push(path);
    }
    let parameters = json!({ "type": "object", "properties": properties, "required": required });
    ToolSpec { name: words.name(tool).to_owned(), description: tool.description().to_owned(), parameters }
}

/// The tools of the skills that are loaded, in the order in which the skills are declared.
pub(super) fn tools_of_loaded<'s>(skills: &'s Skills, state: &State) -> Vec<&'s str> {
    let loaded = state.get(&skills.loaded_key).and_then(Value::as_object);
    let is_loaded = |skill: &&Skill| loaded.and_then(|loaded| loaded.get(&skill.id)) == Some(&Value::Bool(true));
    skills.all.iter().filter(is_loaded).flat_map(|skill| skill.tools.iter().map(String::as_str)).collect()
}

/// Why nothing comes of a call about skills. The model is told.
#[derive(Debug, Error)]
pub(super) enum SkillError {
    #[error("there is no skill `{id}`; available: {available}")]
    Unknown { id: String, available: String },
    #[error("skill `{id}` has the version {known}, not {wanted}")]
    Version { id: String, known: String, wanted: String },
    #[error("skill `{id}` has no `{wanted}`; available: {available}")]
    NoFile { id: String, wanted: String, available: String },
    #[error("there are no skills")]
    None,
    /// A hook refuses it, or failed
    #[error("{0}")]
    Hook(String),
}

/// What a model is answered, with the hooks around it; the error is for the model too. `loaded` takes note of what is
/// loaded and unloaded.
pub(super) async fn call(
    turn: &mut NodeTurn,
    skills: &Skills,
    tool: SkillTool,
    arguments: &Object,
    loaded: &mut Object,
) -> Result<String, SkillError> {
    let points = match tool {
        SkillTool::Load => (HookPoint::BeforeSkillLoad, HookPoint::AfterSkillLoad),
        SkillTool::Unload => (HookPoint::BeforeSkillUnload, HookPoint::AfterSkillUnload),
        _ => return answer(skills, tool, arguments, loaded),
    };
    let context = turn.context.clone();
    let skill = named(skills, arguments)?;
    let node = Value::Text(turn.node.clone());
    let told = || {
        hook::event([
            ("node", node.clone()),
            ("skill", skill.id.as_str().into()),
            ("version", skill.version.as_str().into()),
        ])
    };
    let reason = |stop: Interruption| match stop {
        Interruption::Failed(reason) | Interruption::Refused(reason) => SkillError::Hook(reason),
        Interruption::Waiting | Interruption::Diverged(_) | Interruption::Journal(_) => {
            SkillError::Hook("a hook cannot wait".to_owned())
        }
    };
    telling::tell(&context, &mut turn.account, points.0, told).await.map_err(reason)?;
    let mut changes = Object::default();
    let text = answer(skills, tool, arguments, &mut changes)?;
    let told = || {
        let mut event = told();
        event.insert("tools", Value::List(skill.tools.iter().map(|tool| Value::from(tool.as_str())).collect()));
        if tool == SkillTool::Load {
            event.insert("content", text.as_str().into());
        }
        event
    };
    let changed = match telling::tell(&context, &mut turn.account, points.1, told).await {
        Ok(changed) => changed,
        // Nothing is left to refuse once the tools are gone.
        Err(_) if tool == SkillTool::Unload => None,
        Err(stop) => return Err(reason(stop)),
    };
    for (id, state) in changes.iter() {
        loaded.insert(id.clone(), state.clone());
    }
    let content = changed.as_ref().and_then(|event| event.get("content")?.as_text()).map(str::to_owned);
    Ok(content.unwrap_or(text))
}

/// What a model is answered.
fn answer(skills: &Skills, tool: SkillTool, arguments: &Object, loaded: &mut Object) -> Result<String, SkillError> {
    let argument = |name: &str| arguments.get(name).and_then(Value::as_text).unwrap_or_default();
    if tool == SkillTool::List {
        let entry = |skill: &Skill| {
            if !skills.words.has_versions {
                return json!({ "name": skill.id, "description": skill.description, "tools": skill.tools });
            }
            json!({
                "id": skill.id, "version": skill.version, "name": skill.name, "description": skill.description,
            })
        };
        return Ok(serde_json::Value::from_iter(skills.all.iter().map(entry)).to_string());
    }
    let skill = named(skills, arguments)?;
    let files = || {
        let folder = tool.folder().unwrap_or_default();
        skill.files.iter().filter(move |(path, _)| path.starts_with(folder))
    };
    match tool {
        SkillTool::List => Ok(String::new()),
        SkillTool::Load => {
            loaded.insert(skill.id.as_str(), Value::Bool(true));
            Ok(skill.text.to_string())
        }
        SkillTool::Unload => {
            loaded.insert(skill.id.as_str(), Value::Bool(false));
            Ok(format!("skill `{}` is unloaded", skill.id))
        }
        SkillTool::ListResources | SkillTool::ListAssets => {
            let paths: Vec<&str> = files().map(|(path, _)| path.as_str()).collect();
            Ok(json!(paths).to_string())
        }
        SkillTool::LoadResource | SkillTool::LoadAsset => {
            let name = if tool == SkillTool::LoadResource { "resource_path" } else { "asset_path" };
            let wanted = argument(name);
            match files().find(|(path, _)| path == wanted) {
                Some((_, text)) => Ok(text.to_string()),
                None => {
                    let paths: Vec<&str> = files().map(|(path, _)| path.as_str()).collect();
                    let (id, available) = (skill.id.clone(), json!(paths).to_string());
                    Err(SkillError::NoFile { id, wanted: wanted.to_owned(), available })
                }
            }
        }
    }
}

/// The skill that a call names.
fn named<'s>(skills: &'s Skills, arguments: &Object) -> Result<&'s Skill, SkillError> {
    let argument = |name: &str| arguments.get(name).and_then(Value::as_text).unwrap_or_default();
    let (id, version) = (argument(skills.words.id), argument("version"));
    let all = || skills.all.iter().map(|skill| skill.id.as_str()).collect::<Vec<_>>().join(", ");
    let skill = skills.all.iter().find(|skill| skill.id == id);
    let skill = skill.ok_or_else(|| SkillError::Unknown { id: id.to_owned(), available: all() })?;
    let wanted = version.trim().trim_start_matches("==");
    if matches!(wanted, "" | "*") || wanted == skill.version {
        return Ok(skill);
    }
    Err(SkillError::Version { id: id.to_owned(), known: skill.version.clone(), wanted: wanted.to_owned() })
}

/// Tells that an entry of `skill_ids` names no skill: the others are loaded all the same.
fn skip(turn: &NodeTurn, problem: String) {
    let help = Some("the entry is passed over; correct `skill_ids`, or declare the skill".to_owned());
    turn.context.notice(&turn.node, &[Notice { text: format!("`skill_ids`: {problem}"), help }]);
}

/// Loads skills because a node says so: the conversation looks as if a model had asked for them.
pub(super) async fn perform(
    turn: &mut NodeTurn,
    graph: &Graph,
    action: &LoadSkillsAction,
    state: &State,
) -> Result<Performed, Interruption> {
    let failed = |problem: String| Interruption::Failed(format!("`skill_ids`: {problem}"));
    let wanted = action.skills.evaluate(state).map_err(|error| failed(error.to_string()))?;
    let Value::List(wanted) = wanted else {
        return Err(failed(format!("it takes a list of skills, not {}", wanted.a_kind())));
    };
    let Some(skills) = &graph.skills else { return Err(failed("there are no skills".to_owned())) };
    let mut loaded = Object::default();
    let (mut calls, mut answers) = (List::default(), List::default());
    for (place, one) in wanted.iter().enumerate() {
        let mut arguments = Object::default();
        match one {
            Value::Text(id) => arguments.insert(skills.words.id, Value::Text(id.clone())),
            Value::Object(one) => {
                arguments.insert(skills.words.id, one.get("id").cloned().unwrap_or_default());
                if let Some(version) = one.get("version") {
                    arguments.insert("version", version.clone());
                }
            }
            other => {
                skip(turn, format!("a skill is named by an object with `id`, not by {}", other.a_kind()));
                continue;
            }
        }
        if let Err(problem) = named(skills, &arguments) {
            skip(turn, problem.to_string());
            continue;
        }
        let text = call(turn, skills, SkillTool::Load, &arguments, &mut loaded).await;
        let text = text.map_err(|error| failed(error.to_string()))?;
        let id = Value::from(format!("load_skill_{}_{}", turn.place, place + 1));
        let mut asked = Object::default();
        asked.insert("id", id.clone());
        asked.insert("name", skills.words.name(SkillTool::Load).into());
        asked.insert("args", Value::Object(arguments));
        calls.push(Value::Object(asked));
        let mut answer = conversation::message(Speaker::Tool, text);
        answer.insert("tool_call_id", id);
        answer.insert("name", skills.words.name(SkillTool::Load).into());
        answers.push(Value::Object(answer));
    }
    if calls.is_empty() {
        return Ok(Performed::default());
    }
    let mut asking = conversation::message(Speaker::Ai, "");
    asking.insert("tool_calls", Value::List(calls));
    let mut messages = List::from_iter([Value::Object(asking)]);
    messages.extend(&answers);
    let writes = vec![
        Write { key: action.conversation.clone(), value: Value::List(messages) },
        Write { key: skills.loaded_key.clone(), value: Value::Object(loaded) },
    ];
    Ok(Performed { writes, ..Performed::default() })
}
