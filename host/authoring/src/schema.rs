//! Schemas that an author wrote by hand: what JSON Schema would take for an annotation, and the author meant.

use serde_json::{Map, Value};

/// The keywords of JSON Schema 2020-12, and of the drafts before it that people still write.
const KEYWORDS: [&str; 60] = [
    "$anchor",
    "$comment",
    "$defs",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$ref",
    "$schema",
    "$vocabulary",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "default",
    "definitions",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "deprecated",
    "description",
    "else",
    "enum",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "if",
    "items",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "readOnly",
    "required",
    "then",
    "title",
    "type",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
    "writeOnly",
];
const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];
/// A keyword of OpenAPI that tools know and that is near to one of JSON Schema.
const ANNOTATION: &str = "example";
/// Keywords with a schema, with a list of them, and with an object of them.
const ONE: [&str; 11] = [
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
];
const SEVERAL: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
const NAMED: [&str; 5] = ["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"];
/// How deep schemas are looked into.
const MOST_DEEP: usize = 64;

/// What hotcell reads of what a plugin offers, and of one tool, node type, hook and connector. Anything else is for others to read.
const OFFERED: [&str; 5] = ["tools", "nodes", "hooks", "connector", "script"];
const OF_TOOL: [&str; 5] = ["name", "description", "parameters", "returns", "read_only"];
const OF_NODE: [&str; 6] = ["type", "description", "fields", "inputs", "outputs", "branches"];
const OF_HOOK: [&str; 2] = ["point", "description"];
const OF_CONNECTOR: [&str; 3] = ["description", "modes", "config"];

/// Looks through the keys and the schemas of what a plugin offers; an error names the place.
pub(crate) fn check_offered(offered: &Map<String, Value>) -> Result<(), String> {
    check_keys(offered, &OFFERED, "what is offered")?;
    for (list, name, known) in
        [("tools", "name", &OF_TOOL[..]), ("nodes", "type", &OF_NODE[..]), ("hooks", "point", &OF_HOOK[..])]
    {
        for one in offered.get(list).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object) {
            let called = one.get(name).and_then(Value::as_str);
            check_keys(one, known, &called.map_or_else(|| format!("one of `{list}`"), |called| format!("`{called}`")))?;
        }
    }
    if let Some(connector) = offered.get("connector").and_then(Value::as_object) {
        check_keys(connector, &OF_CONNECTOR, "the connector")?;
    }
    let lists =
        [("tools", "name", &["parameters", "returns"][..]), ("nodes", "type", &["fields", "inputs", "outputs"][..])];
    for (list, name, schemas) in lists {
        for one in offered.get(list).and_then(Value::as_array).into_iter().flatten() {
            let called = one.get(name).and_then(Value::as_str).unwrap_or_default();
            for schema in schemas {
                if let Some(found) = one.get(schema) {
                    check(found, &format!("`{called}`, {schema}"), 0)?;
                }
            }
        }
    }
    match offered.get("connector").and_then(|connector| connector.get("config")) {
        Some(config) => check(config, "the connector's config", 0),
        None => Ok(()),
    }
}

fn check_keys(object: &Map<String, Value>, known: &[&'static str], place: &str) -> Result<(), String> {
    for key in object.keys().filter(|key| !known.contains(&key.as_str())) {
        if let Some(near) = nearest(key, known) {
            return Err(format!("{place}: `{key}` is not a key that hotcell reads; did you mean `{near}`?"));
        }
    }
    Ok(())
}

fn check(schema: &Value, place: &str, depth: usize) -> Result<(), String> {
    let object = match schema {
        Value::Bool(_) => return Ok(()),
        Value::Object(object) => object,
        _ => return Err(format!("{place}: a schema is an object, not `{schema}`")),
    };
    if depth > MOST_DEEP {
        return Err(format!("{place}: the schema is nested too deep"));
    }
    for key in object.keys() {
        if !KEYWORDS.contains(&key.as_str())
            && key != ANNOTATION
            && let Some(near) = nearest(key, &KEYWORDS)
        {
            return Err(format!("{place}: `{key}` is not a keyword of JSON Schema; did you mean `{near}`?"));
        }
    }
    check_type(object, place)?;
    check_required(object, place)?;
    check_default(object, place)?;
    for (key, value) in object {
        let inside = |name: &str| format!("{place}.{name}");
        let key = key.as_str();
        if ONE.contains(&key) && !value.is_array() {
            check(value, &inside(key), depth + 1)?;
        } else if SEVERAL.contains(&key) || (key == "items" && value.is_array()) {
            let several = value.as_array().ok_or_else(|| format!("{place}: `{key}` is a list of schemas"))?;
            for (number, one) in several.iter().enumerate() {
                check(one, &inside(&format!("{key}.{number}")), depth + 1)?;
            }
        } else if NAMED.contains(&key) {
            let named = value.as_object().ok_or_else(|| format!("{place}: `{key}` is an object of schemas"))?;
            for (name, one) in named {
                check(one, &inside(name), depth + 1)?;
            }
        }
    }
    Ok(())
}

fn check_type(schema: &Map<String, Value>, place: &str) -> Result<(), String> {
    let Some(written) = schema.get("type") else { return Ok(()) };
    let names: Vec<&Value> = match written {
        Value::Array(several) => several.iter().collect(),
        one => vec![one],
    };
    for name in names {
        if !name.as_str().is_some_and(|name| TYPES.contains(&name)) {
            return Err(format!("{place}: {name} is not a JSON Schema type; they are `{}`", TYPES.join("`, `")));
        }
    }
    Ok(())
}

/// Keywords that say of properties beside `properties`.
const MORE_PROPERTIES: [&str; 8] =
    ["$dynamicRef", "$ref", "allOf", "anyOf", "if", "oneOf", "patternProperties", "unevaluatedProperties"];

/// What is required and no property is a typo, unless other properties are let in.
fn check_required(schema: &Map<String, Value>, place: &str) -> Result<(), String> {
    let Some(required) = schema.get("required") else { return Ok(()) };
    let named = required.as_array().and_then(|names| names.iter().map(Value::as_str).collect::<Option<Vec<_>>>());
    let named = named.ok_or_else(|| format!("{place}: `required` is a list of names of properties"))?;
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Ok(()) };
    let lets_in_more = match schema.get("additionalProperties") {
        None => MORE_PROPERTIES.iter().any(|keyword| schema.contains_key(*keyword)),
        Some(Value::Bool(false)) => schema.contains_key("patternProperties"),
        Some(_) => true,
    };
    let is_closed = schema.contains_key("additionalProperties");
    match named.into_iter().find(|name| !properties.contains_key(*name)) {
        Some(name) if !lets_in_more && (is_closed || !properties.is_empty()) => {
            let known: Vec<&str> = properties.keys().map(String::as_str).collect();
            Err(format!("{place}: `{name}` is required but not a property; they are `{}`", known.join("`, `")))
        }
        _ => Ok(()),
    }
}

/// A default is what a caller who gives nothing is held to have given.
fn check_default(schema: &Map<String, Value>, place: &str) -> Result<(), String> {
    let (Some(default), Some(values)) = (schema.get("default"), schema.get("enum").and_then(Value::as_array)) else {
        return Ok(());
    };
    if values.contains(default) {
        return Ok(());
    }
    Err(format!("{place}: the default {default} is not in its `enum` {}", Value::from(values.clone())))
}

/// A keyword that somebody who wrote this may have meant: one letter too many, too few, or wrong, or two that are swapped.
fn nearest(key: &str, keywords: &[&'static str]) -> Option<&'static str> {
    let lower = key.to_lowercase();
    keywords.iter().copied().find(|keyword| {
        let keyword = keyword.to_lowercase();
        keyword.len() > 3 && (keyword == lower || is_near(&lower, &keyword) || is_near(&keyword, &lower))
    })
}

fn is_near(one: &str, other: &str) -> bool {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let same = one.iter().zip(&other).take_while(|(one, other)| one == other).count();
    let (one, other) = (&one[same..], &other[same..]);
    match (one, other) {
        // One letter more.
        ([_, rest @ ..], _) if rest == other => true,
        // Another letter.
        ([_, one @ ..], [_, other @ ..]) if one == other => true,
        // Two that are swapped.
        ([a, b, one @ ..], [c, d, other @ ..]) => a == d && b == c && one == other,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::check_offered;

    fn problem(parameters: Value) -> String {
        let offered = json!({ "tools": [{ "name": "find", "parameters": parameters }] });
        check_offered(offered.as_object().expect("an object")).map_or_else(|error| error, |()| String::new())
    }

    #[test]
    fn what_is_right_passes() {
        let fine = [
            json!({}),
            json!(true),
            json!({ "type": ["string", "null"], "x-order": 1, "nullable": true, "example": 1 }),
            json!({ "type": "object", "required": ["city"], "properties": { "city": { "type": "string" } },
                    "additionalProperties": false }),
            // A property may be called like anything.
            json!({ "type": "object", "properties": { "typ": { "enum": ["a", "b"], "default": "a" }, "requird": true } }),
            json!({ "type": "object", "required": ["anything"] }),
            // One that is let in by another keyword may be required.
            json!({ "required": ["b"], "properties": { "a": {} }, "additionalProperties": { "type": "string" } }),
            json!({ "required": ["b"], "properties": { "a": {} }, "allOf": [{ "properties": { "b": {} } }] }),
            json!({ "required": ["x-b"], "properties": { "a": {} }, "patternProperties": { "^x-": {} },
                    "additionalProperties": false }),
        ];
        for schema in fine {
            assert_eq!(problem(schema.clone()), "", "{schema}");
        }
    }

    #[test]
    fn a_key_that_is_nearly_one_is_told() {
        let told = |offered: Value| {
            check_offered(offered.as_object().expect("an object")).map_or_else(|error| error, |()| String::new())
        };
        let tool = json!({ "name": "find", "readonly": true, "parameters": {} });
        assert_eq!(
            told(json!({ "tools": [tool] })),
            "`find`: `readonly` is not a key that hotcell reads; did you mean `read_only`?"
        );
        assert!(told(json!({ "tols": [] })).contains("did you mean `tools`?"));
        assert!(told(json!({ "nodes": [{ "type": "a", "outptus": {} }] })).contains("did you mean `outputs`?"));
        assert!(told(json!({ "hooks": [{ "piont": "a" }] })).starts_with("one of `hooks`: "));
        assert!(told(json!({ "connector": { "mode": [] } })).contains("did you mean `modes`?"));
        assert_eq!(told(json!({ "tools": [{ "name": "find", "x-order": 1, "parameters": {} }] })), "");
    }

    #[test]
    fn what_an_author_meant_otherwise_is_said_with_its_place() {
        let wrong = [
            (
                json!({ "typ": "object" }),
                "`find`, parameters: `typ` is not a keyword of JSON Schema; did you mean `type`?",
            ),
            (json!({ "type": "object", "requierd": ["a"] }), "did you mean `required`?"),
            (json!({ "Properties": {} }), "did you mean `properties`?"),
            (json!({ "properties": { "a": { "descripton": "x" } } }), "`find`, parameters.a: `descripton`"),
            (json!({ "items": { "type": "strng" } }), "parameters.items: \"strng\" is not a JSON Schema type"),
            (json!({ "type": "object", "required": ["citty"], "properties": { "city": {} } }), "`citty` is required"),
            (
                json!({ "required": ["b"], "properties": { "a": {} }, "additionalProperties": false }),
                "`b` is required but not a property; they are `a`",
            ),
            (json!({ "required": "city" }), "`required` is a list of names"),
            (json!({ "anyOf": [{ "enum": ["km", "mi"], "default": "miles" }] }), "the default \"miles\" is not in its"),
            (json!({ "properties": [] }), "`properties` is an object of schemas"),
            (json!({ "oneOf": {} }), "`oneOf` is a list of schemas"),
            (json!("object"), "a schema is an object"),
        ];
        for (schema, expected) in wrong {
            let found = problem(schema);
            assert!(found.contains(expected), "`{expected}` is not in `{found}`");
        }
        let mut deep = json!({});
        for _ in 0..100 {
            deep = json!({ "not": deep });
        }
        assert!(problem(deep).contains("nested too deep"));
    }

    #[test]
    fn schemas_of_results_nodes_and_connectors_are_looked_at() {
        let offered = json!({ "tools": [{ "name": "find", "returns": { "type": "intger" } }] });
        let error = check_offered(offered.as_object().expect("an object")).expect_err("a typo");
        assert!(error.starts_with("`find`, returns: \"intger\""), "{error}");
        let offered = json!({ "nodes": [{ "type": "look", "outputs": { "tpye": "object" } }] });
        let error = check_offered(offered.as_object().expect("an object")).expect_err("a typo");
        assert!(error.starts_with("`look`, outputs: `tpye`"), "{error}");
        let offered = json!({ "connector": { "config": { "type": "text" } } });
        let error = check_offered(offered.as_object().expect("an object")).expect_err("a typo");
        assert!(error.starts_with("the connector's config: \"text\""), "{error}");
    }
}
