//! The comparisons of the case format: text matchers and subsets.

use hotcell_graph::value::{Number, parse_json};
use hotcell_graph::{Object, Value};

use crate::mismatch::{Mismatch, shown, shown_or_missing};

/// An object made only of these keys is a matcher.
const RULES: [&str; 4] = ["contains", "not_contains", "json", "absent"];

/// How far two fractions may lie apart and still be equal.
const TOLERANCE: f64 = 1e-9;

/// Compares `got` with `expected` as a subset: every key that `expected` names has to match, lists have to have the
/// same length, texts have to be equal to the character. A matcher may stand anywhere. `None` is a missing key.
pub fn subset(place: &str, expected: &Value, got: Option<&Value>) -> Vec<Mismatch> {
    if let Some(rules) = rules(expected) {
        return apply(place, rules, got);
    }
    let Some(got) = got else {
        return vec![Mismatch::new(place, shown(expected), "(missing)")];
    };
    match (expected, got) {
        (Value::Object(expected), Value::Object(got)) => expected
            .iter()
            .flat_map(|(key, expected)| subset(&format!("{place}.{key}"), expected, got.get(key)))
            .collect(),
        (Value::List(expected), Value::List(got)) if expected.len() == got.len() => expected
            .iter()
            .zip(got.iter())
            .enumerate()
            .flat_map(|(index, (expected, got))| subset(&format!("{place}[{index}]"), expected, Some(got)))
            .collect(),
        (Value::List(wanted), Value::List(there)) => {
            let expected = format!("{} items: {}", wanted.len(), shown(expected));
            vec![Mismatch::new(place, expected, format!("{} items: {}", there.len(), shown(got)))]
        }
        (Value::Number(expected), Value::Number(got)) if equal_numbers(expected, got) => Vec::new(),
        (Value::Number(_), Value::Number(_)) => vec![Mismatch::new(place, shown(expected), shown(got))],
        _ if expected == got => Vec::new(),
        _ => vec![Mismatch::new(place, shown(expected), shown(got))],
    }
}

/// Compares a text with a text matcher: equal but for white space at both ends, or the rules of a matcher object.
/// An expectation that is neither compares as a subset with the text read as JSON. `None` is a missing text.
pub fn text(place: &str, expected: &Value, got: Option<&str>) -> Vec<Mismatch> {
    let value = got.map(Value::from);
    if let Some(rules) = rules(expected) {
        return apply(place, rules, value.as_ref());
    }
    let Some(got) = got else {
        return vec![Mismatch::new(place, shown(expected), "(missing)")];
    };
    match expected {
        Value::Text(expected) if expected.trim() == got.trim() => Vec::new(),
        Value::Text(_) => vec![Mismatch::new(place, shown(expected), shown(&Value::from(got)))],
        structured => json(place, structured, got),
    }
}

/// Whether two numbers count as equal: by value, fractions with a tolerance.
fn equal_numbers(left: &Number, right: &Number) -> bool {
    if left.is_integer() && right.is_integer() {
        return left == right;
    }
    (left.to_f64() - right.to_f64()).abs() <= TOLERANCE
}

/// The rules of a matcher object, if this is one.
fn rules(value: &Value) -> Option<&Object> {
    let object = value.as_object()?;
    let is_matcher = !object.is_empty() && object.iter().all(|(key, _)| RULES.contains(&&**key));
    is_matcher.then_some(object)
}

fn apply(place: &str, rules: &Object, got: Option<&Value>) -> Vec<Mismatch> {
    let is_absent = got.is_none_or(|value| *value == Value::Null);
    match rules.get("absent") {
        Some(Value::Bool(true)) if is_absent => return Vec::new(),
        Some(Value::Bool(true)) => return vec![Mismatch::new(place, "nothing (`absent`)", shown_or_missing(got))],
        Some(Value::Bool(false)) if rules.len() == 1 && !is_absent => return Vec::new(),
        Some(Value::Bool(false)) | None => {}
        Some(other) => return vec![Mismatch::new(place, "`absent` is true or false", shown(other))],
    }
    let Some(text) = got.and_then(Value::as_text) else {
        let got = got.map_or_else(|| "(missing)".to_owned(), |value| format!("a {}: {}", value.kind(), shown(value)));
        return vec![Mismatch::new(place, format!("a text that matches {}", Value::Object(rules.clone())), got)];
    };
    let mut mismatches = Vec::new();
    let whole = || shown(&Value::from(text));
    for (rule, has_to_occur) in [("contains", true), ("not_contains", false)] {
        let Some(fragments) = rules.get(rule) else { continue };
        let Some(fragments) = texts(fragments) else {
            mismatches.push(Mismatch::new(place, format!("`{rule}` is a text or a list of texts"), shown(fragments)));
            continue;
        };
        for fragment in fragments {
            if text.contains(fragment) != has_to_occur {
                mismatches.push(Mismatch::new(place, format!("`{rule}` {}", Value::from(fragment).to_json()), whole()));
            }
        }
    }
    if let Some(expected) = rules.get("json") {
        mismatches.extend(json(place, expected, text));
    }
    mismatches
}

fn json(place: &str, expected: &Value, got: &str) -> Vec<Mismatch> {
    match parse_json(got) {
        Ok(value) => subset(place, expected, Some(&value)),
        Err(error) => {
            let got = format!("{} (not JSON: {error})", shown(&Value::from(got)));
            vec![Mismatch::new(place, format!("JSON that has {}", shown(expected)), got)]
        }
    }
}

/// A text or a list of texts as a list.
fn texts(value: &Value) -> Option<Vec<&str>> {
    match value {
        Value::Text(text) => Some(vec![text]),
        Value::List(items) => items.iter().map(Value::as_text).collect(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use hotcell_graph::value::parse_json;

    use super::{subset, text};

    /// Expected, got, and the places that differ.
    fn check_subset(expected: &str, got: Option<&str>, places: &[&str]) {
        let expected_value = parse_json(expected).expect("the expectation is JSON");
        let got_value = got.map(|got| parse_json(got).expect("the value is JSON"));
        let found = subset("s", &expected_value, got_value.as_ref());
        let found: Vec<&str> = found.iter().map(|mismatch| mismatch.place.as_str()).collect();
        assert_eq!(found, places, "{expected} against {got:?}");
    }

    fn check_text(expected: &str, got: Option<&str>, matches: bool) {
        let expected_value = parse_json(expected).expect("the expectation is JSON");
        let found = text("t", &expected_value, got);
        assert_eq!(found.is_empty(), matches, "{expected} against {got:?}: {found:?}");
    }

    #[test]
    fn subsets() {
        let cases: &[(&str, Option<&str>, &[&str])] = &[
            (r#"{"a":1}"#, Some(r#"{"a":1,"b":2}"#), &[]),
            (r#"{"a":1,"c":2,"d":3}"#, Some(r#"{"a":1,"c":9}"#), &["s.c", "s.d"]),
            (r#"{"a":{"b":[1,{"c":2}]}}"#, Some(r#"{"a":{"b":[1,{"c":3,"d":4}],"x":0}}"#), &["s.a.b[1].c"]),
            ("{}", Some(r#"{"a":1}"#), &[]),
            ("{}", Some("[]"), &["s"]),
            ("[1,2]", Some("[1,2]"), &[]),
            ("[1,2]", Some("[1,2,3]"), &["s"]),
            ("[2,1]", Some("[1,2]"), &["s[0]", "s[1]"]),
            ("[]", Some("[]"), &[]),
            ("3", Some("3.0"), &[]),
            ("3.0", Some("3"), &[]),
            ("0.3", Some("0.30000000004"), &[]),
            ("0.3", Some("0.30000001"), &["s"]),
            ("9007199254740993", Some("9007199254740993"), &[]),
            ("9007199254740993", Some("9007199254740992"), &["s"]),
            ("123456789012345678901234567890", Some("123456789012345678901234567891"), &["s"]),
            ("\"3\"", Some("3"), &["s"]),
            ("\"a\"", Some("\" a\""), &["s"]),
            ("\"a\"", Some("\"A\""), &["s"]),
            ("true", Some("true"), &[]),
            ("true", Some("1"), &["s"]),
            ("null", Some("null"), &[]),
            ("null", None, &["s"]),
            ("null", Some("false"), &["s"]),
            (r#"{"a":null}"#, Some("{}"), &["s.a"]),
        ];
        for (expected, got, places) in cases {
            check_subset(expected, *got, places);
        }
    }

    #[test]
    fn matchers_stand_anywhere_in_a_subset() {
        let cases: &[(&str, Option<&str>, &[&str])] = &[
            (r#"{"a":{"absent":true}}"#, Some("{}"), &[]),
            (r#"{"a":{"absent":true}}"#, Some(r#"{"a":null}"#), &[]),
            (r#"{"a":{"absent":true}}"#, Some(r#"{"a":""}"#), &["s.a"]),
            (r#"{"a":{"absent":false}}"#, Some(r#"{"a":0}"#), &[]),
            (r#"{"a":{"absent":false}}"#, Some("{}"), &["s.a"]),
            (r#"[{"contains":"b"},{"not_contains":["x","b"]}]"#, Some(r#"["abc","abc"]"#), &["s[1]"]),
            (r#"{"a":{"contains":["a","c","z"]}}"#, Some(r#"{"a":"abc"}"#), &["s.a"]),
            (r#"{"a":{"contains":"a"}}"#, Some("{}"), &["s.a"]),
            (r#"{"a":{"not_contains":"a"}}"#, Some("{}"), &["s.a"]),
            (r#"{"a":{"contains":"1"}}"#, Some(r#"{"a":1}"#), &["s.a"]),
            (r#"{"a":{"json":{"k":1}}}"#, Some(r#"{"a":"{\"k\": 1.0, \"l\": 2}"}"#), &[]),
            (r#"{"a":{"json":{"k":1}}}"#, Some(r#"{"a":{"k":1}}"#), &["s.a"]),
            (r#"{"a":{"json":{"k":{"contains":"x"}}}}"#, Some(r#"{"a":"{\"k\":\"xy\"}"}"#), &[]),
            (r#"{"a":{"json":[]}}"#, Some(r#"{"a":"no json"}"#), &["s.a"]),
            // An object with any other key is data, and so is an empty one.
            (r#"{"a":{"contains":"a","other":1}}"#, Some(r#"{"a":{"contains":"a","other":1}}"#), &[]),
            (r#"{"a":{"contains":"a","other":1}}"#, Some(r#"{"a":"a"}"#), &["s.a"]),
        ];
        for (expected, got, places) in cases {
            check_subset(expected, *got, places);
        }
    }

    #[test]
    fn every_failing_rule_is_reported() {
        let expected = parse_json(r#"{"contains":["one","two"],"not_contains":"three","json":1}"#).expect("JSON");
        assert_eq!(text("t", &expected, Some("three")).len(), 4);
    }

    #[test]
    fn texts() {
        let cases = [
            (r#""a b""#, Some(" \n a b\t"), true),
            (r#""  a b ""#, Some("a b"), true),
            (r#""a b""#, Some("a  b"), false),
            (r#""a""#, None, false),
            (r#""""#, Some(""), true),
            (r#"{"absent":true}"#, None, true),
            (r#"{"absent":true}"#, Some(""), false),
            (r#"{"contains":"b"}"#, Some("abc"), true),
            (r#"{"contains":["a","c"]}"#, Some("abc"), true),
            (r#"{"contains":["a","d"]}"#, Some("abc"), false),
            (r#"{"contains":"B"}"#, Some("abc"), false),
            (r#"{"not_contains":"d"}"#, Some("abc"), true),
            (r#"{"not_contains":["d","b"]}"#, Some("abc"), false),
            (r#"{"contains":"a","not_contains":"b"}"#, Some("abc"), false),
            (r#"{"contains":7}"#, Some("7"), false),
            (r#"{"contains":""}"#, None, false),
            (r#"{"json":{"a":[1]}}"#, Some(" {\"a\":[1],\"b\":0} "), true),
            (r#"{"json":{"a":[1]}}"#, Some("{\"a\":[1]} and more"), false),
            // Where the reply is structured any JSON may stand for the text.
            (r#"{"a":1}"#, Some("{\"a\":1,\"b\":2}"), true),
            ("[1]", Some("[1]"), true),
            ("7", Some("7.0"), true),
            ("7", Some("seven"), false),
        ];
        for (expected, got, matches) in cases {
            check_text(expected, got, matches);
        }
    }
}
