//! Version 0.3: the same, written in other words.

use serde_json::{Value, json};

use crate::view::{Object, object};

/// A task, an event or a configuration of version 1.0, as version 0.3 has it.
pub(super) fn written(value: Value) -> Value {
    let members = object(value);
    for (name, write) in
        [("task", task as fn(Object) -> Value), ("statusUpdate", status_update), ("artifactUpdate", artifact_update)]
    {
        if let Some(Value::Object(inner)) = members.get(name) {
            return write(inner.clone());
        }
    }
    match members {
        members if members.contains_key("status") => task(members),
        members if members.contains_key("url") => push_config(members),
        other => Value::Object(other),
    }
}

fn task(mut task: Object) -> Value {
    task.insert("kind".to_owned(), "task".into());
    change(&mut task, "status", |status| self::status(object(status)));
    change(&mut task, "artifacts", |list| each(list, artifact));
    change(&mut task, "history", |list| each(list, message));
    Value::Object(task)
}

fn status_update(mut update: Object) -> Value {
    let state = update.get("status").map(|status| status["state"].clone()).unwrap_or_default();
    let is_final = !matches!(state.as_str(), Some("TASK_STATE_WORKING" | "TASK_STATE_SUBMITTED"));
    update.insert("kind".to_owned(), "status-update".into());
    update.insert("final".to_owned(), is_final.into());
    change(&mut update, "status", |status| self::status(object(status)));
    Value::Object(update)
}

fn artifact_update(mut update: Object) -> Value {
    update.insert("kind".to_owned(), "artifact-update".into());
    change(&mut update, "artifact", artifact);
    Value::Object(update)
}

fn status(mut status: Object) -> Value {
    change(&mut status, "state", |state| {
        let state = state.as_str().unwrap_or_default().trim_start_matches("TASK_STATE_").to_ascii_lowercase();
        state.replace('_', "-").into()
    });
    change(&mut status, "message", message);
    Value::Object(status)
}

fn message(message: Value) -> Value {
    let mut message = object(message);
    message.insert("kind".to_owned(), "message".into());
    change(&mut message, "role", |role| if role == "ROLE_AGENT" { "agent".into() } else { "user".into() });
    change(&mut message, "parts", |list| each(list, part));
    Value::Object(message)
}

fn artifact(artifact: Value) -> Value {
    let mut artifact = object(artifact);
    change(&mut artifact, "parts", |list| each(list, part));
    Value::Object(artifact)
}

fn part(part: Value) -> Value {
    match part.get("data") {
        Some(data) => json!({ "kind": "data", "data": data }),
        None => json!({ "kind": "text", "text": part["text"] }),
    }
}

/// The address for posts, with the task beside it.
fn push_config(mut config: Object) -> Value {
    let task = config.remove("taskId").unwrap_or_default();
    change(
        &mut config,
        "authentication",
        |how| json!({ "schemes": [how["scheme"]], "credentials": how["credentials"] }),
    );
    json!({ "taskId": task, "pushNotificationConfig": config })
}

/// The configuration for posts of version 0.3, as version 1.0 has it.
pub(super) fn read_push(config: Value) -> Value {
    let mut config = object(config);
    change(&mut config, "authentication", |mut how| {
        if let Some(scheme) = how.get("schemes").and_then(|schemes| schemes.get(0)).cloned() {
            object(std::mem::take(&mut how)).remove("credentials").map_or_else(
                || json!({ "scheme": scheme }),
                |credentials| json!({ "scheme": scheme, "credentials": credentials }),
            )
        } else {
            how
        }
    });
    Value::Object(config)
}

fn change(members: &mut Object, name: &str, change: impl FnOnce(Value) -> Value) {
    if let Some(value) = members.get_mut(name) {
        *value = change(value.take());
    }
}

fn each(list: Value, change: fn(Value) -> Value) -> Value {
    match list {
        Value::Array(items) => items.into_iter().map(change).collect(),
        other => other,
    }
}
