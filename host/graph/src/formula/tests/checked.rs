//! What is said of an expression before it is evaluated.

use std::collections::BTreeMap;

use super::super::functions::Function;
use super::super::{Formula, FormulaError, ValueType, Variable, Vocabulary, Wanted};
use super::state;
use crate::value::Key;

fn vocabulary() -> Vocabulary {
    let declared = |name: &str, holds: ValueType| Variable { name: name.into(), holds, enforced: false };
    let messages = ValueType::list_of(ValueType::map());
    Vocabulary {
        fields: vec![
            declared("n", ValueType::int()),
            declared("x", ValueType::double()),
            declared("name", ValueType::string()),
            declared("yes", ValueType::bool()),
            declared("user", ValueType::map()),
            declared("orders", ValueType::list()),
            Variable { name: "messages".into(), holds: messages, enforced: true },
            "none".into(),
            "raw".into(),
        ]
        .into_iter()
        .collect(),
        ..super::vocabulary(true)
    }
}

fn shown(source: &str, error: FormulaError) -> String {
    let help = error.help.map(|help| format!(" ({help})")).unwrap_or_default();
    format!("at `{}`: {}{help}", &source[error.range], error.message)
}

fn said(source: &str, wanted: &Wanted<'_>) -> String {
    match Formula::check(source, &vocabulary(), wanted) {
        Err(error) => format!("refused {}", shown(source, error)),
        Ok(checked) if checked.doubts.is_empty() => "fine".to_owned(),
        Ok(checked) => {
            let doubt = |doubt: super::super::Doubt| format!("{:?} {}", doubt.reason, shown(source, doubt.error));
            checked.doubts.into_iter().map(doubt).collect::<Vec<_>>().join("\n    ")
        }
    }
}

fn all_said(sources: &[&str], wanted: &Wanted<'_>) -> String {
    let lines: Vec<String> = sources.iter().map(|source| format!("{source}\n    {}", said(source, wanted))).collect();
    lines.join("\n")
}

#[test]
fn what_always_fails_is_said() {
    insta::assert_snapshot!(all_said(
        &[
            r#""a" + 1"#,
            "1 + 1.0",
            "size(messages) * 1.5",
            r#"!"x""#,
            "1 && true",
            "size(5)",
            r#""a" < 1"#,
            "[1, 2][2]",
            "[none, raw][2]",
            "none[-1]",
            "size(messages)[0]",
            r#""text".length"#,
            "raw.startsWith(1)",
            "size(messages) ? 1 : 2",
            "1 in 2",
            r#"int("four")"#,
            "9223372036854775807 * 2",
            "size(messages) / 0",
            r#"raw.matches("a(")"#,
            r#"messages.contains("x")"#,
            "messages.content",
            r#"messages["0"]"#,
            r#"{"a": none, "b": 1}.c"#,
            r#"{"a": none, "a": 1}"#,
            "{1: none}",
            r#"prompts["q"]["instructions"]"#,
            "prompts.p.instructions - 1",
            "size(messages).map(v, v)",
            r#"messages.map(m, size(m.content)) + "a""#,
            r#"[none].map(v, 1 + "a")"#,
            r#""é" + (1 + 2) + raw"#,
            "1 + raw\n  + (\"é\" + size(raw))",
            "none == (null > raw)",
            "true && (size(raw) && none)",
            "none ? 1 / 0 : null + 1",
            r#"default("a" + 1, none)"#,
            "jsonValid(1) || !1",
            "-raw.contains(\"a\")",
        ],
        &Wanted::Anything
    ));
}

#[test]
fn what_may_have_a_value_is_not_refused() {
    for source in [
        r#"1 == "a""#,
        r#"none in [1, "a", null] || none != 1.5"#,
        "1 < 1.5 && size(messages) <= 2.0",
        "false && 1 / 0 == 0",
        r#"true || "a""#,
        "default(none.gone, 1) + 1",
        "default(messages[0].gone, null)",
        "has(user.gone) ? user.gone : 0",
        r#"messages[size(messages) - 1].contains("x")"#,
        r#"messages[0] + "!""#,
        "messages.filter(m, m.type == \"ai\").map(m, m.content)[0] + 1",
        "(none ? 1 : \"a\") + 1",
        "(none ? 1 : 2.5) * 2.0",
        r#"type(n) == string ? n + "!" : n"#,
        "dyn(name) + 1",
        "json(raw).f * 2.0 + json(raw).n",
        "[1, 2.5, \"a\"].map(v, v == 1)",
        "[[1], []].map(v, size(v))",
        "orders.map(o, o.total * 2 > 3)",
        r#"[raw, 1][0] + "a""#,
        "{\"a\": none}.a + 1",
        "user[name] + user[raw]",
    ] {
        assert_eq!(said(source, &Wanted::Anything), "fine", "{source}");
    }
}

#[test]
fn what_probably_fails_is_doubted() {
    insta::assert_snapshot!(all_said(
        &[
            // Of what a field is declared to hold, and need not.
            "n * 1.25",
            "name + n",
            "orders.total",
            "n ? 1 : 2",
            "user.name + 1 + (x - n)",
            // Of what is perhaps not reached.
            r#"none && "x""#,
            "1 || raw",
            "none ? 1 / 0 : 1",
            "messages.map(m, 1 + m.content + (2 - null))",
            "messages.exists(m, 1)",
            "default(none + (1 - null), 2)",
        ],
        &Wanted::Anything
    ));
}

#[test]
fn what_a_value_is_needed_for_is_known() {
    let writes: BTreeMap<Key, Wanted<'_>> = BTreeMap::from([
        ("messages".into(), Wanted::Messages),
        ("n".into(), Wanted::Declared(ValueType::int())),
        ("name".into(), Wanted::Declared(ValueType::string())),
    ]);
    let all = [
        all_said(&["1", "n", "none", "n > 1"], &Wanted::Condition),
        all_said(&["messages[0]", "\"a\"", "raw.split(\",\")"], &Wanted::List),
        all_said(&["messages", "\"a\"", "[1]", "[]", r#"[{"type": "human", "content": "x"}]"#], &Wanted::Conversation),
        all_said(&["messages", "\"a\"", "null", r#"[{"content": "x"}]"#], &Wanted::Messages),
        all_said(&["1.5", "null", "none", "x", "size(messages)"], &Wanted::Declared(ValueType::int())),
        all_said(&["2"], &Wanted::Declared(ValueType::double())),
        all_said(
            &[
                "n",
                "user",
                r#"{"n": 1.5, "nam": 1}"#,
                r#"{"messages": 1}"#,
                r#"{"n": n * 1.5, "name": n, "messages": raw}"#,
            ],
            &Wanted::Writes(&writes),
        ),
    ];
    insta::assert_snapshot!(all.join("\n\n"));
}

/// Every function, with arguments that it takes.
const CALLS: [(&str, &[&str]); 23] = [
    ("size", &["raw"]),
    ("contains", &["raw", "\"a\""]),
    ("startsWith", &["raw", "\"a\""]),
    ("endsWith", &["raw", "\"a\""]),
    ("matches", &["raw", "\"a\""]),
    ("int", &["\"1\""]),
    ("double", &["\"1\""]),
    ("string", &["raw"]),
    ("bool", &["\"true\""]),
    ("dyn", &["raw"]),
    ("type", &["raw"]),
    ("json", &["raw"]),
    ("jsonValid", &["raw"]),
    ("split", &["raw", "\"a\"", "1"]),
    ("join", &["[raw]", "\"a\""]),
    ("trim", &["raw"]),
    ("replace", &["raw", "\"a\"", "\"b\"", "1"]),
    ("substring", &["raw", "0", "1"]),
    ("indexOf", &["raw", "\"a\"", "0"]),
    ("lowerAscii", &["raw"]),
    ("upperAscii", &["raw"]),
    ("template", &["raw", "{}"]),
    ("last", &["[raw]"]),
];

#[test]
fn functions_say_the_same_before_and_during_an_evaluation() {
    assert_eq!(Function::names().collect::<Vec<_>>(), CALLS.map(|(name, _)| name));
    let mut said_of_all = String::new();
    for (name, arguments) in CALLS {
        assert_eq!(said(&format!("{name}({})", arguments.join(", ")), &Wanted::Anything), "fine");
        for place in 0..arguments.len() {
            // Nothing that has to be something takes `null`.
            let call = |null: &str| {
                let mut arguments = arguments.to_vec();
                arguments[place] = null;
                format!("{name}({})", arguments.join(", "))
            };
            let known = Formula::check(&call("null"), &vocabulary(), &Wanted::Anything);
            let evaluated = Formula::compile(&call("none"), &vocabulary()).unwrap().evaluate(&state());
            match (known, evaluated) {
                (Ok(checked), Ok(_)) => assert_eq!(checked.doubts, [], "{name}"),
                (Err(known), Err(evaluated)) => {
                    assert!(evaluated.to_string().ends_with(&format!(": {}", known.message)), "{evaluated}: {known:?}");
                    said_of_all += &format!("{}: {}\n", call("null"), known.message);
                }
                (known, evaluated) => panic!("{}: {known:?} {evaluated:?}", call("null")),
            }
        }
    }
    insta::assert_snapshot!(said_of_all);
}
