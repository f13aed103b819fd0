use super::{Iterated, Type, to_text};
use crate::value::{Value, parse_json};

fn value(json: &str) -> Value {
    parse_json(json).unwrap()
}

fn ty(schema: &str) -> Type {
    Type::of_schema(&value(schema)).unwrap()
}

#[test]
fn values_become_values_of_a_type() {
    let ints = r#"{"type": "array", "items": {"type": "integer"}}"#;
    let point =
        r#"{"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "number", "default": 1}}}"#;
    let cases = [
        (r#"{"type": "string"}"#, "3.0", r#""3.0""#),
        (r#"{"type": "string"}"#, "null", "null"),
        (r#"{"type": "string"}"#, r#"["a", true, {"k": 1}]"#, r#""[\"a\", true, {\"k\": 1}]""#),
        (r#"{"type": "integer"}"#, "-2.7", "-2"),
        (r#"{"type": "integer"}"#, "1e20", "100000000000000000000"),
        (r#"{"type": "integer"}"#, "true", "1"),
        (r#"{"type": "number"}"#, "2", "2.0"),
        (r#"{"type": "number"}"#, "false", "0.0"),
        (r#"{"type": "boolean"}"#, "0.0", "false"),
        (r#"{"type": "boolean"}"#, "-3", "true"),
        (ints, "[1.5, true, 3]", "[1,1,3]"),
        (point, r#"{"x": 1.9, "more": "kept"}"#, r#"{"x":1,"more":"kept","y":1.0}"#),
        (
            r#"{"type": "object", "additionalProperties": {"type": "integer"}, "properties": {}}"#,
            r#"{"a": 1.5}"#,
            r#"{"a":1}"#,
        ),
        (r#"{"type": ["number", "integer"]}"#, "2", "2"),
        (r#"{"type": ["string", "null"]}"#, "null", "null"),
        (r#"{"anyOf": [{"type": "null"}, {"type": "integer"}]}"#, "2.5", "2"),
        (r#"{"title": "anything"}"#, r#"{"a":[1.0]}"#, r#"{"a":[1.0]}"#),
        (r#"{"type": "integer", "enum": [1, 2]}"#, "2.9", "2"),
        (r#"{"type": "string", "contentMediaType": "text/csv", "x-column": 3}"#, "2", r#""2""#),
    ];
    for (schema, given, expected) in cases {
        let converted = ty(schema).convert(&value(given)).map(|value| value.to_json());
        assert_eq!(converted.as_deref(), Ok(expected), "{given} as {schema}");
    }
}

#[test]
fn what_does_not_fit_is_refused_with_its_place() {
    let nested = r#"{"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}}"#;
    let cases = [
        (r#"{"type": "integer"}"#, r#""7""#, r#"`"7"` is no integer"#),
        (r#"{"type": "integer"}"#, "null", "`null` is no integer"),
        (r#"{"type": "boolean"}"#, r#""true""#, r#"`"true"` is no boolean"#),
        (r#"{"type": "null"}"#, "0", "`0` is no null"),
        (r#"{"type": "array"}"#, "1", "`1` is no array"),
        (nested, r#"[{"n": 1}, {"n": "x"}]"#, r#"at `1.n`: `"x"` is no integer"#),
        (nested, "[{}]", "at `0`: the property `n` is missing"),
        (r#"{"type": "string", "enum": ["a"]}"#, r#""b""#, r#""b" is not one of "a""#),
    ];
    for (schema, given, expected) in cases {
        let problem = ty(schema).convert(&value(given)).unwrap_err().to_string();
        assert_eq!(problem, expected, "{given} as {schema}");
    }
}

#[test]
fn types_convert_to_types() {
    let cases = [
        (r#"{"type": "number"}"#, r#"{"type": ["number", "null"]}"#, true),
        (r#"{"type": "string"}"#, r#"{"type": "number"}"#, false),
        (r#"{"type": ["string", "null"]}"#, r#"{"type": "string"}"#, true),
        (r#"{"type": ["integer", "null"]}"#, r#"{"type": "integer"}"#, false),
        (r#"{"type": "boolean"}"#, r#"{"type": "number"}"#, true),
        (
            r#"{"type": "array", "items": {"type": "string"}}"#,
            r#"{"type": "array", "items": {"type": "integer"}}"#,
            false,
        ),
        (r#"{"type": "array", "items": {"type": "number"}}"#, r#"{"type": "number"}"#, false),
        (r#"{}"#, r#"{"type": "integer"}"#, true),
        (
            r#"{"type": "object", "properties": {"a": {"type": "integer"}, "b": {}}}"#,
            r#"{"type": "object", "properties": {"a": {"type": "number"}}}"#,
            true,
        ),
        (
            r#"{"type": "object", "properties": {"a": {"type": "integer"}}}"#,
            r#"{"type": "object", "properties": {"a": {}, "b": {"type": "string"}}}"#,
            false,
        ),
        (
            r#"{"type": "object", "properties": {"a": {"type": "string"}}}"#,
            r#"{"type": "object", "additionalProperties": {"type": "integer"}}"#,
            false,
        ),
        (r#"{"type": "object"}"#, r#"{"type": "object", "properties": {"a": {"type": "string"}}}"#, true),
    ];
    for (from, to, expected) in cases {
        assert_eq!(ty(from).converts_to(&ty(to)), expected, "{from} to {to}");
    }
}

#[test]
fn schemas_that_are_no_types_are_refused_with_their_place() {
    let cases = [
        (r#"{"type": "intger"}"#, "type", "there is no type `intger`; did you mean `integer`?"),
        (
            r#"{"type": "array", "items": {"oneOf": []}}"#,
            "items.oneOf",
            "the keyword `oneOf` is not supported in types",
        ),
        (r#"{"type": ["string", null]}"#, "type.1", "a name of a type is a text and not null: write `\"null\"`"),
        (r#"7"#, "", "a type is a JSON schema, which is an object and not a number"),
        (
            r#"{"type": "object", "properties": {"n": {"type": "integer", "default": "x"}}}"#,
            "properties.n",
            "the default `x` is no integer",
        ),
    ];
    for (schema, path, problem) in cases {
        let error = Type::of_schema(&value(schema)).unwrap_err();
        assert_eq!((error.path.join(".").as_str(), error.problem.as_str()), (path, problem), "{schema}");
    }
}

#[test]
fn one_value_or_a_list_of_them() {
    let each = |json: &str| Iterated::Each(value(json).as_list().cloned().unwrap());
    let integer = ty(r#"{"type": "integer"}"#);
    assert_eq!(integer.iterate(&value("[1, 2.5]")), Ok(each("[1, 2]")));
    assert_eq!(integer.iterate(&value("2.5")), Ok(Iterated::Same(value("2"))));
    let text = ty(r#"{"type": "string"}"#);
    assert_eq!(text.iterate(&value("[1, \"a\"]")), Ok(each(r#"["1", "a"]"#)));
    let list = ty(r#"{"type": "array", "items": {"type": "integer"}}"#);
    assert_eq!(list.iterate(&value("[1, 2]")), Ok(Iterated::Same(value("[1, 2]"))));
    assert_eq!(list.iterate(&value("[[1], [2]]")), Ok(each("[[1], [2]]")));
}

#[test]
fn floats_and_foreign_letters_as_text() {
    for (json, text) in [
        ("1e16", "1e+16"),
        ("1e15", "1000000000000000.0"),
        ("0.0001", "0.0001"),
        ("0.00001", "1e-05"),
        ("-0.0", "-0.0"),
        ("1.5e300", "1.5e+300"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        (r#"["é\n", "😀"]"#, r#"["\u00e9\n", "\ud83d\ude00"]"#),
    ] {
        assert_eq!(to_text(&value(json)), text);
    }
}

#[test]
fn a_type_is_the_same_however_it_is_written() {
    let same = [
        (r#"{"type": ["string", "null"]}"#, r#"{"anyOf": [{"type": "null"}, {"type": "string", "title": "x"}]}"#),
        (r#"{"anyOf": [{"type": "string"}]}"#, r#"{"type": "string"}"#),
        (
            r#"{"type": "object", "properties": {"a": {"type": "integer", "default": 1}, "b": {}}}"#,
            r#"{"type": "object", "properties": {"b": {}, "a": {"type": "integer"}}, "additionalProperties": {}}"#,
        ),
    ];
    for (one, other) in same {
        assert!(ty(one).is_same_as(&ty(other)) && ty(other).is_same_as(&ty(one)), "{one} {other}");
    }
    let different = [
        (r#"{"type": "integer"}"#, r#"{"type": "number"}"#),
        (r#"{"type": "string"}"#, r#"{"type": ["string", "null"]}"#),
        (r#"{"type": "array"}"#, r#"{"type": "array", "items": {"type": "string"}}"#),
        (r#"{"type": "object"}"#, r#"{"type": "object", "additionalProperties": {"type": "string"}}"#),
        (r#"{"type": "object", "properties": {"a": {}}}"#, r#"{"type": "object", "properties": {"b": {}}}"#),
    ];
    for (one, other) in different {
        assert!(!ty(one).is_same_as(&ty(other)) && !ty(other).is_same_as(&ty(one)), "{one} {other}");
    }
}
