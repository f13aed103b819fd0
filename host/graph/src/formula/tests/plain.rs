//! Expressions that compute nothing.

use super::{Formula, vocabulary};
use crate::formula::{Place, Plain, Step};
use crate::value::Value;

fn place(place: &Place) -> String {
    let step = |step: &Step| match step {
        Step::Entry(key) => format!(".{key}"),
        Step::First => "[first]".to_owned(),
        Step::Last => "[last]".to_owned(),
    };
    place.root.to_string() + &place.steps.iter().map(step).collect::<String>()
}

fn shown(plain: &Plain) -> String {
    let all = |parts: &[Plain]| parts.iter().map(shown).collect::<Vec<_>>().join(", ");
    match plain {
        Plain::Value(value) => value.to_json(),
        Plain::Place(at) => place(at),
        Plain::Joined(parts) => format!("joined({})", all(parts)),
        Plain::List(items) => format!("[{}]", all(items)),
        Plain::Object(entries) => {
            let entry = |(key, value): &(_, Plain)| format!("{key}: {}", shown(value));
            format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
    }
}

#[test]
fn what_computes_nothing_is_a_value_a_place_or_made_of_both() {
    for (source, expected) in [
        (r#""a" + "b""#, r#""ab""#),
        (r#"prompts["p"]["instructions"] + upperAscii("!")"#, r#""Be kind.!""#),
        ("2 + 3", "5"),
        ("name", "name"),
        (r#"user["tags"][0]"#, "user.tags[first]"),
        ("messages[size(messages) - 1].content", "messages[last].content"),
        ("last(messages)", "messages[last]"),
        (r#""Hi " + name + "!""#, r#"joined("Hi ", name, "!")"#),
        (r#"name + (user.name + " " + name)"#, r#"joined(name, user.name, " ", name)"#),
        // Numbers too are added with `+`.
        ("name + user.name", "-"),
        (r#""a" + string(n)"#, r#"joined("a", n)"#),
        ("string(n) + name", "joined(n, name)"),
        ("string(n + 1)", "-"),
        ("string(2)", r#""2""#),
        (
            r#"template("${a}-${b}${c}", {"a": name, "b": 2, "c": "x" + name})"#,
            r#"joined("", name, "-", "2", "", "x", name, "")"#,
        ),
        (r#"template("${a}", {"b": name})"#, "-"),
        (r#"template("${a}", {"a": [name]})"#, "-"),
        (r#"{"a": name, "b": [n, 1], "c": {}}"#, "{a: name, b: [n, 1], c: {}}"),
        ("messages[1]", "-"),
        ("messages[size(orders) - 1]", "-"),
        ("messages[size(messages) - 2]", "-"),
        ("n + 1", "-"),
        ("has(user.name)", "-"),
        ("orders.map(o, o.id)", "-"),
        ("[1, 2].map(x, x + 1)", "[2,3]"),
    ] {
        let plain = Formula::compile(source, &vocabulary(true)).unwrap().plain();
        assert_eq!(plain.as_ref().map_or("-".to_owned(), shown), expected, "{source}");
    }
    let state = Formula::compile(r#"state["name"]"#, &vocabulary(false)).unwrap().plain();
    assert_eq!(state.as_ref().map(shown).as_deref(), Some("name"));
}

#[test]
fn conditions_that_only_look_for_fixed_values() {
    for (source, expected) in [
        (r#"name == "a""#, r#"name in ["a"]"#),
        (r#""a" != name"#, r#"name not in ["a"]"#),
        (r#"name in ["a", "b"]"#, r#"name in ["a","b"]"#),
        (r#"!(name in ["a", "b"])"#, r#"name not in ["a","b"]"#),
        (r#"name == "a" || name == "b" || name == "c""#, r#"name in ["a","b","c"]"#),
        (r#"name != "a" && name != "b""#, r#"name not in ["a","b"]"#),
        ("yes", "yes in [true]"),
        ("!user.yes", "user.yes not in [true]"),
        ("n == 3", "n in [3]"),
        (r#"messages[size(messages) - 1].content == "x""#, r#"messages[last].content in ["x"]"#),
        (r#"name == "a" || user.name == "a""#, "-"),
        (r#"name == "a" && name != "b""#, "-"),
        (r#"name == "a" || name == 1"#, "-"),
        ("x == 2.5", "-"),
        ("none == null", "-"),
        ("name in []", "-"),
        (r#"name in {"a": 1}"#, "-"),
        ("n > 3", "-"),
        ("n == n", "-"),
        ("true", "-"),
    ] {
        let membership = Formula::compile(source, &vocabulary(true)).unwrap().membership();
        let shown = membership.map_or("-".to_owned(), |test| {
            let holds = if test.holds { "in" } else { "not in" };
            format!("{} {holds} {}", place(&test.place), Value::List(test.values.into_iter().collect()).to_json())
        });
        assert_eq!(shown, expected, "{source}");
    }
}

#[test]
fn conditions_that_only_look_for_an_item() {
    for (source, expected) in [
        ("size(messages[size(messages) - 1].tool_calls) > 0", "messages[last].tool_calls"),
        ("last(messages).tool_calls.size() >= 1", "messages[last].tool_calls"),
        ("size(user.tags) != 0", "user.tags"),
        ("0 < size(orders)", "orders"),
        ("size(orders) > 1", "-"),
        ("size(orders) < 1", "-"),
        ("size(orders) == 0", "-"),
        ("n > 0", "-"),
        ("size(orders.map(o, o.id)) > 0", "-"),
    ] {
        let list = Formula::compile(source, &vocabulary(true)).unwrap().has_items();
        assert_eq!(list.as_ref().map_or("-".to_owned(), place), expected, "{source}");
    }
}
