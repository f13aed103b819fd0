use super::{Iterated, Type, doubtful_keywords, pointer_step, schema_at, to_text};
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

/// Each part of the value would be held against each of the types, and the value written out for each that it is not.
#[test]
fn a_value_is_not_held_against_any_number_of_types() {
    let types: Vec<String> = (0..2_000)
        .map(|at| format!(r#"{{"type": "object", "properties": {{"k{at}": {{"type": "integer"}}}}}}"#))
        .collect();
    let union = ty(&format!(r#"{{"anyOf": [{}]}}"#, types.join(",")));
    let list = value(&format!("[{}]", vec!["1"; 20_000].join(",")));
    let told = |value: &Value| union.convert(value).unwrap_err().to_string();
    assert!(told(&list).contains("too many steps"), "{}", told(&list));
    assert!(told(&value("[1]")).starts_with("`[1]` is not an object with k0: integer or "), "{}", told(&value("[1]")));
    assert!(!union.fits(&list) && union.iterate(&list).is_err() && union.each(&list).is_err());
    // A table with a column that may be empty is no such value, however long it is.
    let column = Value::List(std::iter::repeat_n(value("1"), 2_000_000).collect());
    assert!(ty(r#"{"type": "array", "items": {"type": ["integer", "null"]}}"#).fits(&column));
    let long = ty(r#"{"type": "integer"}"#).convert(&list).unwrap_err().to_string();
    assert_eq!(long, format!("`[{}1...` is not an integer", "1,".repeat(29)));
}

#[test]
fn what_does_not_fit_is_refused_with_its_place() {
    let nested = r#"{"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}}"#;
    let cases = [
        (r#"{"type": "integer"}"#, r#""7""#, r#"`"7"` is not an integer"#),
        (r#"{"type": "integer"}"#, "null", "`null` is not an integer"),
        (r#"{"type": "boolean"}"#, r#""true""#, r#"`"true"` is not a boolean"#),
        (r#"{"type": "null"}"#, "0", "`0` is not null"),
        (r#"{"type": "array"}"#, "1", "`1` is not an array"),
        (nested, r#"[{"n": 1}, {"n": "x"}]"#, r#"at `1.n`: `"x"` is not an integer"#),
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
            "`oneOf` takes a list of types with at least one",
        ),
        (
            r##"{"$ref": "#/$defs/pont", "$defs": {"point": {"type": "object"}}}"##,
            "$ref",
            "the schema has nothing at `#/$defs/pont`; did you mean `#/$defs/point`?",
        ),
        (
            r#"{"type": "array", "items": {"$ref": "https://example.org/point.json"}}"#,
            "items.$ref",
            "`https://example.org/point.json` is outside of the schema: write it below `$defs`, and `#/$defs/...` here",
        ),
        (
            r##"{"$ref": "#/$defs/point", "$defs": {"point": {"type": "objekt"}}}"##,
            "$defs.point.type",
            "there is no type `objekt`; did you mean `object`?",
        ),
        (
            r#"{"type": "array", "items": [{"type": "string"}]}"#,
            "items",
            "a list of schemas for the first items is `prefixItems`",
        ),
        (r#"{"type": ["string", null]}"#, "type.1", "a name of a type is a text and not null: write `\"null\"`"),
        (r#"7"#, "", "a type is a JSON schema, which is an object and not a number"),
        (r#"{"type": "string", "enum": "x"}"#, "", r#"not a valid JSON schema: `enum`: "x" is not of type "array""#),
        (
            r#"{"type": "object", "properties": {"n": {"type": "integer", "default": "x"}}}"#,
            "properties.n",
            "the default `x` is not an integer",
        ),
    ];
    for (schema, path, problem) in cases {
        let error = Type::of_schema(&value(schema)).unwrap_err();
        assert_eq!((error.path.join(".").as_str(), error.problem.as_str()), (path, problem), "{schema}");
    }
}

#[test]
fn what_json_schema_does_not_know_is_an_annotation() {
    for keywords in [
        r#""json_schema": {"type": "integer"}"#,
        r#""cinatra": {"widget": "text"}, "key_type": {"type": "string"}, "name": "n", "nullable": true"#,
        r#""x-order": 1, "discriminator": {"propertyName": "kind"}, "example": 3, "xml": {}"#,
    ] {
        let schema = value(&format!(r#"{{"type": "string", {keywords}}}"#));
        assert!(Type::of_schema(&schema).unwrap().is_text(), "{keywords}");
        assert_eq!(doubtful_keywords(&schema), [], "{keywords}");
    }
    let mistyped = value(
        r#"{"type": "object", "propertes": {}, "properties": {"requird": {"maxlength": 3, "enum": []}, "a": {"items": {"minimun": 1}}}}"#,
    );
    let found: Vec<(String, &str)> =
        doubtful_keywords(&mistyped).into_iter().map(|one| (one.path.join("."), one.meant)).collect();
    // Names of properties are no keywords, and a keyword that is there is not meant once more.
    assert_eq!(
        found,
        [
            ("properties.requird.maxlength".to_owned(), "maxLength"),
            ("properties.a.items.minimun".to_owned(), "minimum")
        ]
    );
}

#[test]
fn keywords_of_json_schema_are_honoured_where_they_limit_values() {
    let tree = r##"{"$ref": "#/$defs/tree", "$defs": {"tree": {"type": "object", "properties": {
        "size": {"type": "integer"}, "under": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}, "required": ["size"]}}}"##;
    let all = r##"{"allOf": [{"$ref": "#/$defs/small"}], "default": 1, "$defs": {"small": {"type": "integer", "maximum": 9}}}"##;
    let merged = r#"{"allOf": [{"type": "object", "properties": {"a": {"type": "integer"}}}, {"properties": {"b": {}}, "required": ["b"]}]}"#;
    let one = r#"{"oneOf": [{"type": "integer"}, {"type": "string", "minLength": 2}]}"#;
    let pair = r#"{"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": false}"#;
    let either = r#"{"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}"#;
    let named = r#"{"type": "object", "patternProperties": {"^n_": {"type": "integer"}}, "additionalProperties": {"type": "string"}}"#;
    let conditional = r#"{"type": "object", "if": {"required": ["a"]}, "then": {"required": ["b"]}}"#;
    let dependent = r#"{"type": "object", "dependentRequired": {"a": ["b"]}}"#;
    let without_type = r#"{"properties": {"a": {"type": "integer"}}, "required": ["a"]}"#;
    let cases = [
        (
            tree,
            r#"{"size": 1.5, "under": [{"size": 2, "under": []}]}"#,
            Some(r#"{"size":1,"under":[{"size":2,"under":[]}]}"#),
        ),
        (tree, r#"{"size": 1, "under": [{"under": [{"size": 1}]}]}"#, None),
        (all, "3.5", Some("3")),
        (all, "10", None),
        (merged, r#"{"a": 1.5, "b": 0}"#, Some(r#"{"a":1,"b":0}"#)),
        (merged, r#"{"a": 1}"#, None),
        (one, r#""ab""#, Some(r#""ab""#)),
        (one, "2", Some("2")),
        (one, r#""a""#, None),
        (pair, r#"["a", 1]"#, Some(r#"["a",1]"#)),
        (pair, r#"["a", "b"]"#, None),
        (pair, r#"["a", 1, 2]"#, None),
        (either, r#"{"b": 1}"#, Some(r#"{"b":1}"#)),
        (either, r#"{"c": 1}"#, None),
        (named, r#"{"n_1": 1, "x": "y"}"#, Some(r#"{"n_1":1,"x":"y"}"#)),
        (named, r#"{"n_1": "y"}"#, None),
        (named, r#"{"x": 1}"#, None),
        (conditional, r#"{"a": 1, "b": 1}"#, Some(r#"{"a":1,"b":1}"#)),
        (conditional, r#"{"a": 1}"#, None),
        (dependent, r#"{"a": 1}"#, None),
        (without_type, "3", Some("3")),
        (without_type, r#"{"a": "x"}"#, None),
        (r#"{"type": "string", "not": {"const": "x"}}"#, r#""x""#, None),
        (r#"{"type": "array", "items": false}"#, "[]", Some("[]")),
        (r#"{"type": "array", "items": false}"#, "[1]", None),
        (r#"{"type": "array", "contains": {"const": 1}}"#, "[2]", None),
    ];
    for (schema, given, expected) in cases {
        let converted = ty(schema).convert(&value(given)).map(|value| value.to_json()).ok();
        assert_eq!(converted.as_deref(), expected, "{given} as {schema}");
    }
}

#[test]
fn references_cannot_make_a_type_endless() {
    let level = |number: u32| {
        let next = number + 1;
        format!(
            r##""l{number}": {{"type": "object", "properties": {{"a": {{"$ref": "#/$defs/l{next}"}}, "b": {{"$ref": "#/$defs/l{next}"}}}}}}"##
        )
    };
    let levels: Vec<String> = (0..40).map(level).collect();
    let bomb =
        format!(r##"{{"$ref": "#/$defs/l0", "$defs": {{{}, "l40": {{"type": "string"}}}}}}"##, levels.join(", "));
    let error = Type::of_schema(&value(&bomb)).unwrap_err();
    assert!(error.problem.contains("10000 parts"), "{}", error.problem);
    for schema in [
        r##"{"$ref": "#"}"##,
        r##"{"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}"##,
        r##"{"not": {"$ref": "#"}}"##,
    ] {
        let ty = ty(schema);
        assert!(ty.is_any(), "{schema}");
        // What it says of a value is nothing anybody can know; it comes to an end.
        let _ = ty.convert(&value(r#"{"a": [1]}"#));
    }
}

#[test]
fn a_schema_within_another_refers_to_itself() {
    let inner = value(
        r##"{"$id": "https://example.org/x", "type": "object", "properties": {"$ref": {"$ref": "#/$defs/a"}}, "default": {"$ref": "#"}, "$defs": {"a": {"items": {"$ref": "#"}}}}"##,
    );
    let moved = r##"{"type":"object","properties":{"$ref":{"$ref":"#/properties/a~1b/$defs/a"}},"default":{"$ref":"#"},"$defs":{"a":{"items":{"$ref":"#/properties/a~1b"}}}}"##;
    let place = format!("/properties/{}", pointer_step("a/b"));
    assert_eq!(schema_at(&inner, &place).to_json(), moved);
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

/// Each level compares the one below it in both directions.
#[test]
fn alternatives_within_each_other_are_compared_once() {
    let nested = |innermost: &str| {
        (0..60).fold(innermost.to_owned(), |inner, _| format!(r#"{{"type": ["array", "null"], "items": {inner}}}"#))
    };
    let integers = ty(&nested(r#"{"type": "integer"}"#));
    assert!(integers.is_same_as(&ty(&nested(r#"{"type": "integer"}"#))));
    assert!(!integers.is_same_as(&ty(&nested(r#"{"type": "object"}"#))));
    assert!(integers.converts_to(&ty(&nested(r#"{"type": "string"}"#))));
}

/// Each condition that refers to something has a copy of the whole schema.
#[test]
fn the_conditions_of_a_file_have_so_many_parts_together() {
    let numbers: Vec<String> = (0..2_000).map(|number| number.to_string()).collect();
    let properties: Vec<String> =
        (0..300).map(|at| format!(r##""p{at}": {{"type": "integer", "not": {{"$ref": "#/$defs/big"}}}}"##)).collect();
    let schema = value(&format!(
        r#"{{"type": "object", "properties": {{{}}}, "$defs": {{"big": {{"enum": [{}]}}}}}}"#,
        properties.join(","),
        numbers.join(",")
    ));
    let _courtesy = crate::Courtesy::for_a_file();
    let error = Type::of_schema(&schema).unwrap_err();
    assert!(error.problem.contains("have 500000 parts at most"), "{error}");
}
