//! Agents that get another name, another type, or both: whoever names them follows, and what was kept of them stays theirs.

use axum::extract::{Path, State};
use axum::response::Response;
use hotcell_runtime::leafmesh::renamed_in_wait;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::reply::{Refused, documented};
use super::served::Served;
use super::yaml::{agent_of, apply, merge};
use crate::api::extract::Json;
use crate::problem::{Problem, shown};
use crate::state::Server;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(migrate))
}

/// What becomes of an agent.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Migration {
    /// Its new name
    to_name: Option<String>,
    /// Its new type: the fields of the old one go
    to_type: Option<String>,
    /// What is merged with what it says, as by `PATCH`
    #[serde(default)]
    fields: Map<String, Value>,
}

/// Give an agent another name or type
///
/// Whoever names it follows: `can_call`, `wait_for`, `response_overrides`, entry points, targets of escalations, and conditions on
/// `from_agent`; prompts and other texts do not. What it remembers stays its own
/// (`previous_name`). If the result would not load, nothing is changed.
#[utoipa::path(
    post, path = "/api/yaml/agents/{name}/migrate", tag = "Mesh", security(("key" = ["administer"])), request_body = Migration,
    params(("name" = String, Path, description = "The agent")), responses((status = 200, body = Value))
)]
async fn migrate(
    State(server): State<Server>,
    Served(mesh): Served,
    Path(name): Path<String>,
    Json(given): Json<Migration>,
) -> Result<Response, Refused> {
    let Migration { to_name, to_type, mut fields } = given;
    if let Some(kind) = to_type {
        fields.insert("agent_type".to_owned(), kind.into());
    }
    let migrated = apply(&server, &mesh, &name, |config| {
        merge(agent_of(config, &name)?, fields);
        match to_name.filter(|new| *new != name) {
            Some(new) => rename(config, &name, &new).map(|()| new),
            None => Ok(name.clone()),
        }
    });
    let (now, config) = migrated.await?;
    Ok(documented(StatusCode::OK, json!({ "name": now, "previous_name": name, "config": config })))
}

/// Gives an agent another name, wherever the configuration names it.
fn rename(config: &mut Value, name: &str, new: &str) -> Result<(), Problem> {
    let agents = config.get_mut("agents").and_then(Value::as_object_mut);
    let agents = agents.ok_or_else(|| Problem::not_found("the mesh has no agents"))?;
    if agents.contains_key(new) {
        return Err(Problem::conflict(format!("there is an agent `{}` already", shown(new))));
    }
    // The order of the file stays.
    *agents = std::mem::take(agents)
        .into_iter()
        .map(|(key, agent)| if key == name { (new.to_owned(), agent) } else { (key, agent) })
        .collect();
    if let Some(agent) = agents.get_mut(new).and_then(Value::as_object_mut) {
        if agent.contains_key("name") {
            agent.insert("name".to_owned(), new.into());
        }
        agent.insert("previous_name".to_owned(), name.into());
    }
    let follow = |value: &mut Value| {
        if value == name {
            *value = new.into();
        }
    };
    let within = |list: Option<&mut Value>, field: &str| {
        for item in list.and_then(Value::as_array_mut).into_iter().flatten() {
            item.get_mut(field).into_iter().for_each(follow);
        }
    };
    for agent in agents.values_mut() {
        for edge in agent.get_mut("can_call").and_then(Value::as_array_mut).into_iter().flatten() {
            match edge {
                Value::Object(edge) => {
                    edge.get_mut("agent").into_iter().for_each(follow);
                    if let Some(Value::String(condition)) = edge.get_mut("condition") {
                        *condition = renamed_in_condition(condition, name, new);
                    }
                }
                short => follow(short),
            }
        }
        let waits = match agent.get_mut("wait_for") {
            Some(Value::Array(items)) => items.iter_mut().collect(),
            Some(text) => vec![text],
            None => Vec::new(),
        };
        for wait in waits {
            if let Value::String(text) = wait {
                *text = renamed_in_wait(text, name, new);
            }
        }
        within(agent.get_mut("response_overrides"), "caller");
    }
    within(config.get_mut("entry_points"), "target");
    within(config.pointer_mut("/manager/escalation/targets"), "agent");
    Ok(())
}

/// A condition that compares who called with the new name. Other conditions stay as they are.
fn renamed_in_condition(condition: &str, name: &str, new: &str) -> String {
    if !["from_agent", "source_agent"].iter().any(|field| condition.contains(field)) {
        return condition.to_owned();
    }
    let quoted = |condition: String, quote: char| {
        condition.replace(&format!("{quote}{name}{quote}"), &format!("{quote}{new}{quote}"))
    };
    quoted(quoted(condition.to_owned(), '\''), '"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_names_an_agent_follows() {
        let mut config = json!({
            "agents": {
                "a": { "can_call": ["b", { "agent": "b", "condition": "x == 'b'" }, { "agent": "c", "condition": "from_agent == 'b'" }] },
                "b": { "name": "b" },
                "c": { "wait_for": "b AND (bb OR b?)", "response_overrides": [{ "caller": "b", "type": "chain" }] },
                "bb": { "wait_for": ["b", "a"] },
            },
            "entry_points": [{ "name": "b", "target": "b" }, { "name": "in", "target": "a" }],
            "manager": { "escalation": { "targets": [{ "type": "human_agent", "agent": "b" }] } },
        });
        rename(&mut config, "b", "new").expect("another name");
        let order: Vec<&str> = config["agents"].as_object().expect("agents").keys().map(String::as_str).collect();
        assert_eq!(order, ["a", "new", "c", "bb"]);
        assert_eq!(config["agents"]["new"], json!({ "name": "new", "previous_name": "b" }));
        assert_eq!(
            config["agents"]["a"]["can_call"],
            json!(["new", { "agent": "new", "condition": "x == 'b'" }, { "agent": "c", "condition": "from_agent == 'new'" }])
        );
        assert_eq!(config["agents"]["c"]["wait_for"], "new AND (bb OR new?)");
        assert_eq!(config["agents"]["c"]["response_overrides"][0]["caller"], "new");
        assert_eq!(config["agents"]["bb"]["wait_for"], json!(["new", "a"]));
        assert_eq!(config["entry_points"][0], json!({ "name": "b", "target": "new" }));
        assert_eq!(config["manager"]["escalation"]["targets"][0]["agent"], "new");
        assert!(rename(&mut config, "a", "c").is_err());
    }
}
