//! Work that a model gives to other agents: each piece has an id by which its result can be had later.
//!
//! It is done when it is given, one piece after the other, as every answer of an agent has to be in the journal in an order.

use hotcell_graph::ir::{DelegateTool, Team};
use hotcell_graph::{List, Object, Value};
use hotcell_models::ToolSpec;
use serde_json::json;
use thiserror::Error;

use crate::action::agent;
use crate::context::Interruption;
use crate::turn::NodeTurn;

/// Pieces of work that one model may give: what came of them is kept.
const MAX_WORK: usize = 100;

/// Why a model gets no work done, or no result. The model is told.
#[derive(Debug, Error)]
pub(super) enum DelegateError {
    #[error("there is no agent `{wanted}`; available: {available}")]
    NoAgent { wanted: String, available: String },
    #[error("{MAX_WORK} tasks were given to agents, which is the maximum")]
    TooMuch,
    #[error("there is no work with the id `{wanted}`; there is: {known}")]
    NoWork { wanted: String, known: String },
    /// The agent failed
    #[error("{0}")]
    Failed(String),
}

/// What a model is told about a tool.
pub(super) fn describe(tool: DelegateTool, name: &str, team: &Team) -> ToolSpec {
    let names: Vec<&str> = team.agents.iter().map(|agent| &**agent).collect();
    let text = |description: &str| json!({ "type": "string", "description": description });
    let (properties, required) = match tool {
        DelegateTool::Start => {
            let mut agent = text("Who does it");
            agent["enum"] = json!(names);
            (
                json!({ "agent": agent, "prompt": text("What is to be done, with all that the agent needs to know") }),
                json!(["agent", "prompt"]),
            )
        }
        DelegateTool::Result => (json!({ "id": text("The id of the work") }), json!(["id"])),
        DelegateTool::Agents | DelegateTool::Work => (json!({}), json!([])),
    };
    let parameters = json!({ "type": "object", "properties": properties, "required": required });
    ToolSpec { name: name.to_owned(), description: tool.description().to_owned(), parameters }
}

/// Answers a call; `work` takes note of what was given and what came of it. The error is for the model, too.
pub(super) async fn call(
    turn: &mut NodeTurn,
    tool: DelegateTool,
    team: &Team,
    arguments: &Object,
    work: &mut List,
) -> Result<Result<String, DelegateError>, Interruption> {
    let argument = |name: &str| arguments.get(name).and_then(Value::as_text).unwrap_or_default();
    let of =
        |piece: &Value, name: &str| piece.as_object().and_then(|piece| piece.get(name)).cloned().unwrap_or_default();
    Ok(match tool {
        DelegateTool::Agents => {
            Ok(Value::List(team.agents.iter().map(|agent| Value::Text(agent.clone())).collect()).to_json())
        }
        DelegateTool::Start => {
            let (wanted, prompt) = (argument("agent"), argument("prompt").to_owned());
            let Some(agent) = team.agents.iter().find(|agent| ***agent == *wanted) else {
                let (wanted, available) = (wanted.to_owned(), team.agents.join(", "));
                return Ok(Err(DelegateError::NoAgent { wanted, available }));
            };
            if work.len() >= MAX_WORK {
                return Ok(Err(DelegateError::TooMuch));
            }
            let id = format!("{agent}_{}", work.len() + 1);
            let result = agent::attempt(turn, agent, prompt).await?;
            let failed = of(&result, "error") != Value::Null;
            let mut piece = Object::default();
            piece.insert("id", id.as_str().into());
            piece.insert("agent", Value::Text(agent.clone()));
            piece.insert("result", result);
            work.push(Value::Object(piece));
            let became = if failed { "it failed" } else { "it is done" };
            Ok(format!("the work has the id `{id}`, and {became}: its result can be had by that"))
        }
        DelegateTool::Result => {
            let wanted = argument("id");
            let Some(piece) = work.iter().find(|piece| of(piece, "id").as_text() == Some(wanted)) else {
                let all: Vec<String> = work.iter().map(|piece| of(piece, "id").to_display().into_owned()).collect();
                let all = if all.is_empty() { "none".to_owned() } else { all.join(", ") };
                return Ok(Err(DelegateError::NoWork { wanted: wanted.to_owned(), known: all }));
            };
            let result = of(piece, "result");
            match of(&result, "error") {
                Value::Null => Ok(of(&result, "output").to_display().into_owned()),
                reason => Err(DelegateError::Failed(reason.to_display().into_owned())),
            }
        }
        DelegateTool::Work => {
            let line = |piece: &Value| {
                let became = if of(&of(piece, "result"), "error") == Value::Null { "done" } else { "failed" };
                format!("{}: {became}", of(piece, "id").to_display())
            };
            let lines: Vec<String> = work.iter().map(line).collect();
            Ok(if lines.is_empty() { "No work was given to agents.".to_owned() } else { lines.join("\n") })
        }
    })
}
