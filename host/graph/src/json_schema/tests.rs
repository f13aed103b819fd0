//! Schemas that ask for too much, and those that people and programs write.

use serde_json::{Map, Value, json};

use super::JsonSchema;

/// What is said of a schema, and of a value of it; `fits` for nothing. In a thread with as little stack as those of a host.
fn told(schema: Value, value: Value) -> String {
    let work = move || match JsonSchema::compile(&schema) {
        Err(problem) => problem.to_string(),
        Ok(schema) => schema.problems_by_place(&value, 5).into_iter().next().unwrap_or_else(|| "fits".to_owned()),
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(work);
    thread.unwrap().join().unwrap_or_else(|_| "it broke".to_owned())
}

/// Definitions `a0`, `a1`, …, each as `each` makes it of the name of the next.
fn chain(length: usize, each: impl Fn(String) -> Value) -> Value {
    let mut definitions: Map<String, Value> =
        (0..length).map(|at| (format!("a{at}"), each(format!("#/$defs/a{}", at + 1)))).collect();
    definitions.insert(format!("a{length}"), json!({ "type": "string" }));
    json!({ "$ref": "#/$defs/a0", "$defs": definitions })
}

#[test]
fn attack_71_references_that_multiply_are_refused() {
    let both = |next: String| json!({ "allOf": [{ "$ref": next }, { "$ref": next }] });
    assert_eq!(told(chain(8, both), json!("x")), "fits");
    assert!(told(chain(40, both), json!("x")).contains("more than 200000 parts"));
    // Properties may be called like keywords whose values are data, and references may lead to such values.
    for name in ["default", "enum", "const", "example"] {
        let mut named = chain(40, both);
        named["properties"] = json!({ name: { "$ref": "#/$defs/a0" } });
        named.as_object_mut().unwrap().remove("$ref");
        assert!(told(named, json!({ name: "x" })).contains("more than 200000 parts"), "{name}");
        let long = json!({ "$ref": format!("#/{name}"), name: { "pattern": "a".repeat(5_000) } });
        assert!(told(long, json!("x")).contains("longer than 4096 bytes"), "{name}");
    }
    let any = |next: String| json!({ "anyOf": [{ "$ref": next }, { "not": { "$ref": next } }] });
    assert!(told(chain(60, any), json!("x")).contains("more than 200000 parts"));
    let down =
        |next: String| json!({ "allOf": [{ "properties": { "x": { "$ref": next } } }, { "items": { "$ref": next } }] });
    assert!(told(chain(60, down), json!("x")).contains("more than 200000 parts"));
}

/// Each name of a group in it is compared with all others.
#[test]
fn attack_71_a_text_that_has_to_be_a_pattern_is_not_read_at_any_length() {
    let schema = json!({ "$schema": "http://json-schema.org/draft-07/schema#", "items": { "format": "regex" } });
    let groups = |number: usize| (0..number).map(|at| format!("(?<g{at}>)")).collect::<String>();
    assert_eq!(told(schema.clone(), json!(["(?<year>[0-9]{4})", groups(2_000)])), "fits");
    assert!(told(schema.clone(), json!(["("])).contains("regex"));
    assert!(told(schema, json!([groups(50_000)])).contains("too many steps"));
}

/// They are compared part by part, and differ in the last one.
#[test]
fn attack_71_values_that_a_value_is_compared_with_count_with_all_their_parts() {
    let list = |last: usize| (0..5_000).map(|_| 0).chain([last]).collect::<Vec<_>>();
    let all = |number: usize, from: usize| (from..from + number).map(list).collect::<Vec<_>>();
    assert_eq!(told(json!({ "items": { "enum": all(2, 1) } }), json!(all(2, 1))), "fits");
    for items in [json!({ "enum": all(20, 1) }), json!({ "anyOf": vec![json!({ "const": list(1) }); 20] })] {
        assert!(told(json!({ "items": items }), json!(all(100, 100))).contains("too many steps"));
    }
}

#[test]
fn attack_71_chains_are_refused_before_they_use_up_the_stack() {
    let one = |next: String| json!({ "$ref": next });
    assert_eq!(told(chain(50, one), json!("x")), "fits");
    for length in [1_000, 100_000] {
        let told = told(chain(length, one), json!("x"));
        assert!(told.contains("128 schemas deep") || told.contains("parts"), "{length}: {told}");
    }
    // As deep as it may be, in both ways of being deep.
    let nested = |depth: usize| (0..depth).fold(json!({}), |inner, _| json!({ "not": inner }));
    for depth in [100, 380] {
        assert!(!told(nested(depth), json!("x")).contains("it broke"), "{depth}");
    }
    assert!(told(nested(400), json!("x")).contains("128 schemas deep"));
}

#[test]
fn attack_71_a_schema_that_refers_to_itself_is_held_against_what_it_can_be() {
    let nested = |depth: usize| (0..depth).fold(json!({}), |inner, _| json!({ "x": inner }));
    let tree = json!({ "type": "object", "properties": { "x": { "$ref": "#" } } });
    assert_eq!(told(tree, nested(100)), "fits");
    // Two ways to each value, at every level.
    let twice =
        json!({ "allOf": [{ "properties": { "x": { "$ref": "#" } } }, { "properties": { "x": { "$ref": "#" } } }] });
    assert_eq!(told(twice.clone(), nested(8)), "fits");
    assert!(told(twice, nested(100)).contains("too many steps"));
    let either = json!({ "anyOf": [{ "additionalProperties": { "$ref": "#" }, "minProperties": 9 },
        { "additionalProperties": { "$ref": "#" } }] });
    assert!(told(either, nested(100)).contains("too many steps"));
    let anchored =
        json!({ "$anchor": "node", "allOf": [{ "items": { "$ref": "#node" } }, { "items": { "$ref": "#node" } }] });
    let list = (0..60).fold(json!([]), |inner, _| json!([inner]));
    assert!(told(anchored, list).contains("too many steps"));
    // Nothing is gone into.
    for circle in [json!({ "$ref": "#" }), json!({ "allOf": [{ "$ref": "#" }] })] {
        told(circle, json!({ "a": 1 }));
    }
}

#[test]
fn attack_71_much_of_it_is_refused() {
    let many: Map<String, Value> = (0..110_000).map(|at| (format!("k{at}"), json!({}))).collect();
    assert!(told(json!({ "properties": many }), json!({})).contains("more than 100000 parts"));
    let patterns: Map<String, Value> = (0..1_001).map(|at| (format!("^k{at}"), json!({}))).collect();
    assert!(told(json!({ "patternProperties": patterns }), json!({})).contains("more than 1000 patterns"));
    assert!(told(json!({ "pattern": "a".repeat(5_000) }), json!("")).contains("longer than 4096 bytes"));
    let long: Map<String, Value> = (0..40).map(|at| (format!("{at}{}", "a".repeat(4_000)), json!({}))).collect();
    assert!(told(json!({ "patternProperties": long }), json!({})).contains("more than 131072 bytes together"));
    // Each of a million letters is looked at for each of them.
    let folding = |at: usize| json!({ "pattern": format!("(?i)k{at}{}", r"[\s\S]".repeat(20)) });
    let folded: Vec<Value> = (0..3).map(folding).collect();
    assert!(told(json!({ "anyOf": folded }), json!("")).contains("more than 50 large classes"));
    // Each of them would take hundreds of megabytes compiled.
    for pattern in ["\\w{1000}", "(a{1000}){1000}", "((\\p{L}{50}){50}){50}"] {
        assert_ne!(told(json!({ "pattern": pattern }), json!("x")), "fits", "{pattern}");
    }
    let wide: Vec<Value> = (0..20_000).map(|at| json!({ "const": at })).collect();
    let items: Vec<Value> = (0..20_000).map(|at| json!(at + 1_000_000)).collect();
    assert!(told(json!({ "items": { "anyOf": wide } }), json!(items)).contains("too many steps"));
    let values: Vec<Value> = (0..20_000).map(|at| json!(at)).collect();
    assert!(told(json!({ "items": { "allOf": [{ "enum": values }] } }), json!(items)).contains("too many steps"));
    // Whoever looks for this in such a text has to keep hundreds of places for each letter of it.
    let text = "01".repeat(50_000);
    let slow: Vec<Value> = (0..2).map(|at| json!({ "pattern": format!("[01]*1[01]{{{}}}X", 900 + at) })).collect();
    assert!(told(json!({ "items": { "anyOf": slow } }), json!([text, 1])).contains("too many steps"));
    assert!(
        told(json!({ "patternProperties": { "1[01]{900}X": {} } }), json!({ text.clone(): 1 })).contains("too many")
    );
    assert!(
        told(json!({ "propertyNames": { "pattern": "1[01]{900}X" } }), json!({ text.clone(): 1 })).contains("too many")
    );
    assert!(told(json!({ "pattern": "^(?=.*1)" }), json!(text)).contains("too many steps"));
    let said = json!({ "pattern": r"^(?!\s*$).+" });
    assert_eq!(told(said, json!("word ".repeat(5_000))), "fits");
    // Only the texts that a pattern is looked for in count for it.
    let other = json!({ "properties": { "id": { "pattern": "^1[01]{900}X?$" } } });
    assert!(told(other, json!({ "id": "1", "text": text })).contains("does not match"));
    let embedded = json!({ "$defs": { "a": { "$id": "x", "$ref": "#" } }, "$ref": "#/$defs/a" });
    assert!(told(embedded, json!({})).contains("an `$id` of its own"));
}

#[test]
fn what_programs_write_is_taken() {
    let schema = json!({
        "$id": "https://example.org/order", "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object", "required": ["items", "$id"], "additionalProperties": false,
        "properties": {
            "$id": { "type": "string" }, "pattern": { "type": "string", "pattern": "^a+$" },
            "items": { "type": "array", "items": { "$ref": "#/$defs/Line%20item" } },
            "parent": { "anyOf": [{ "$ref": "#" }, { "type": "null" }] },
        },
        "$defs": { "Line item": { "type": "object", "properties": { "count": { "type": "integer", "minimum": 1 } } } },
    });
    assert_eq!(told(schema.clone(), json!({ "$id": "1", "items": [{ "count": 2 }], "parent": null })), "fits");
    let told = told(schema, json!({ "$id": "1", "items": [{ "count": 0 }] }));
    assert!(told.starts_with("/items/0/count: "), "{told}");
}
