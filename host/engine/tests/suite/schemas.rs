//! Schemas come from plugins and servers. They are compiled and used as the engine does it, in a thread with a small
//! stack: none may end the process or go on without end.

use std::time::Duration;

use hotcell_graph::json_schema::JsonSchema;
use serde_json::{Value, json};

/// Whether `instance` fits `schema`; none where it is no schema.
fn fits(schema: &Value, instance: &Value) -> Option<bool> {
    Some(JsonSchema::compile(schema).ok()?.problems(instance, 5).is_empty())
}

fn bounded(schema: Value, instance: Value) -> Option<bool> {
    let (done, result) = std::sync::mpsc::channel();
    let shown = schema.to_string().chars().take(100).collect::<String>();
    std::thread::spawn(move || {
        let _ = done.send(fits(&schema, &instance));
    });
    result.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|_| panic!("no end with {shown}"))
}

#[test]
fn attack_71_a_hostile_schema_ends_and_breaks_nothing() {
    // No schemas.
    for schema in
        [json!({ "type": 7 }), json!({ "type": "objekt" }), json!({ "required": "a" }), json!({ "pattern": "(" })]
    {
        assert_eq!(bounded(schema.clone(), json!({})), None, "{schema}");
    }
    // What lies elsewhere is not fetched.
    for place in ["http://127.0.0.1:1/schema.json", "file:///etc/passwd", "//x/y"] {
        assert_eq!(bounded(json!({ "$ref": place }), json!({})), None, "{place}");
    }
    // References in circles.
    let tree = json!({ "type": "object", "properties": { "next": { "$ref": "#" } } });
    let mut chain = json!({});
    for _ in 0..100 {
        chain = json!({ "next": chain });
    }
    assert_eq!(bounded(tree, chain), Some(true));
    for schema in [
        json!({ "$ref": "#" }),
        json!({ "allOf": [{ "$ref": "#" }] }),
        json!({ "$ref": "#/$defs/a", "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } } }),
        json!({ "anyOf": [{ "$ref": "#" }, { "$ref": "#" }], "not": { "$ref": "#" } }),
    ] {
        bounded(schema, json!({ "a": 1 }));
    }
    // Patterns that go back and forth, and texts that make them.
    let text = format!("{}!", "a".repeat(50_000));
    for pattern in
        ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(?=(a+)+$)", "^(a+)+(?!b)$", "^(?:a+)+(?<=a)$", "^((a+)\\2*)+$"]
    {
        let fits = bounded(json!({ "properties": { "t": { "pattern": pattern } } }), json!({ "t": text }));
        assert_ne!(fits, Some(true), "{pattern}");
    }
    // Very much of it.
    let many: serde_json::Map<String, Value> =
        (0..60_000).map(|number| (format!("key-{number}"), json!({ "type": "string", "minLength": number }))).collect();
    bounded(json!({ "type": "object", "properties": many }), json!({ "key-1": "x" }));
    let wide: Vec<Value> = (0..1_000).map(|number| json!({ "const": number })).collect();
    bounded(json!({ "items": { "anyOf": wide } }), json!(vec![-1; 1_000]));
}
