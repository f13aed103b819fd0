mod checked;
mod plain;
mod properties;

use super::{Formula, Vocabulary, root_names};
use crate::ir::Expression;
use crate::state::State;
use crate::value::{Value, parse_json};

fn state() -> State {
    let seed = r#"{"n":3,"x":2.5,"name":"Ann","none":null,"yes":true,"user":{"name":"Ann","tags":["a","b"]},
        "orders":[{"id":"o1","total":30},{"id":"o2","total":75}],"raw":"{\"n\": 7, \"f\": 1.0}",
        "messages":[{"type":"human","content":"go"},{"type":"ai","content":"TASK done","tool_calls":[]}]}"#;
    match parse_json(seed).unwrap() {
        Value::Object(object) => State::from_object(&object),
        _ => unreachable!("the seed is an object"),
    }
}

fn vocabulary(bare: bool) -> Vocabulary {
    Vocabulary {
        constants: vec![("prompts".into(), parse_json(r#"{"p":{"instructions":"Be kind."}}"#).unwrap())],
        locals: vec![],
        fields: state().to_object().iter().map(|(key, _)| key.clone().into()).collect(),
        bare,
        state: (!bare).then(|| "state".into()),
    }
}

fn evaluate(source: &str, bare: bool) -> String {
    match Formula::compile(source, &vocabulary(bare)) {
        Err(error) => {
            let help = error.help.map(|help| format!(" ({help})")).unwrap_or_default();
            format!("refused at {}: {}{help}", &source[error.range], error.message)
        }
        Ok(formula) => match formula.evaluate(&state()) {
            Ok(value) => value.to_json(),
            Err(error) => format!(
                "failed: {}",
                error.to_string().rsplit_once("`: ").map_or(error.to_string(), |(_, text)| text.to_owned())
            ),
        },
    }
}

#[test]
fn values_and_functions() {
    for (source, expected) in [
        ("n * 2 + 1", "7"),
        ("7 / 2", "3"),
        ("type(n) == int && type(x) != int && type(none) == null_type", "true"),
        ("orders.all(o, type(o) == map) && type(name) in [string, int]", "true"),
        ("string(type(user.tags))", r#""list""#),
        ("-n % 2", "-1"),
        ("x * 2.0", "5.0"),
        ("n == 3.0 && n < x + 1.0", "true"),
        (r#""a" + name"#, r#""aAnn""#),
        ("orders.filter(o, o.total > 50).map(o, o.id)", r#"["o2"]"#),
        ("orders.map(o, o.total > 50, o.id)", r#"["o2"]"#),
        ("orders.exists(o, o.total >= 75) && !orders.all(o, o.total > 50)", "true"),
        (r#"orders.exists_one(o, o.id == "o1")"#, "true"),
        ("orders.exists(o, o.gone == 1 || o.id == \"o2\")", "true"),
        (r#""o2" in orders.map(o, o.id)"#, "true"),
        (r#""name" in user && has(user.tags) && !has(user.plan)"#, "true"),
        (r#"has(user.plan) && user.plan.level > 3"#, "false"),
        (r#"user.name == "Ann" || user.plan.level > 3"#, "true"),
        (r#"user.plan.level > 3 || user.name == "Ann""#, "true"),
        (r#"messages[size(messages) - 1].contains("TASK")"#, "true"),
        (r#"messages[0] == "go" && "go" == messages[0] && messages[0] != "Go" && messages[0] == messages[0]"#, "true"),
        (r#"last(messages) in ["no", "TASK done"] && "go" in messages && !("gone" in messages)"#, "true"),
        (r#"user == "Ann" || user in ["Ann"] || orders[0] == "o1""#, "false"),
        (r#"messages[0].type + ">" + last(messages)["type"]"#, r#""human>ai""#),
        ("messages.filter(m, m.type == \"ai\").size()", "1"),
        (r#"prompts["p"]["instructions"] + "!""#, r#""Be kind.!""#),
        (r#"json(raw)["n"] + 1"#, "8"),
        (r#"json(raw).f"#, "1.0"),
        (r#"default(json(raw)["m"], "none")"#, r#""none""#),
        (r#"default(n, 5) + 1"#, "4"),
        (r#" default(gone, 5) + 1"#, "6"),
        (r#"template("Dear ${who}, ${n} $x ${", {"who": "Bo", "n": [1, true]})"#, r#""Dear Bo, [1,true] $x ${""#),
        (r#"template("${a} ${b${a}} ${}", {"a": "x"})"#, r#""x ${bx} ${}""#),
        (r#"jsonValid(raw) && !jsonValid("{")"#, "true"),
        (r#""a,b,,c".split(",")"#, r#"["a","b","","c"]"#),
        (r#"join(["a", "b"], "-") + ["x"].join() + ["", "y"].join(",")"#, r#""a-bx,y""#),
        (r#""  é ".trim().size()"#, "1"),
        (r#""abcabc".replace("b", "-").substring(1, 3).upperAscii()"#, r#""-C""#),
        (r#""añb".indexOf("b")"#, "2"),
        (r#"int("12") + int(2.9)"#, "14"),
        ("double(n) * 1.5", "4.5"),
        ("string(n) + string(x) + string(true)", r#""32.5true""#),
        (r#""abc".matches("^a.c$")"#, "true"),
        ("none == null ? 1 : 2", "1"),
        (r#"{"a": [1, {"b": n}]}"#, r#"{"a":[1,{"b":3}]}"#),
        (r#"user.map(k, k)"#, r#"["name","tags"]"#),
        ("[1, 2].map(x, [x, n].map(y, y * x))", "[[1,3],[4,6]]"),
    ] {
        assert_eq!(evaluate(source, true), expected, "{source}");
    }
}

#[test]
fn what_is_wrong_is_said() {
    let shown: Vec<String> = [
        "n * 1.25",
        "name + n",
        r#"user["b"] + 1"#,
        "orders[7]",
        "n ? 1 : 2",
        "1 / 0",
        "9223372036854775807 + 1",
        "user.nam",
        "ready",
        "retry < 3",
        "n +",
        "n = 3",
        "n >= 3 && name = 'a=b'",
        "\"a",
        "size(n, 1)",
        "sizze(orders)",
        "timestamp(\"x\")",
        "1u",
        "user{}",
        "last([])",
        "name.matches(\"(\")",
        "state.n",
        "9223372036854775808",
        "none > 1",
        "\"é\" + nam",
        "\"é\" + * 2",
        "name + \"é",
        "name == é",
        "name == \"é\" &&\n  \"üü\" + § 2",
        "messages",
        "",
    ]
    .iter()
    .map(|source| format!("{source} -> {}", evaluate(source, true)))
    .collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn numbers_follow_the_specification() {
    let vocabulary = Vocabulary { fields: ["v".into()].into_iter().collect(), bare: true, ..Vocabulary::default() };
    let evaluated = |value: &str, source: &str| {
        let mut state = State::default();
        state.set("v".into(), parse_json(value).unwrap());
        match Formula::compile(source, &vocabulary).map(|formula| formula.evaluate(&state)) {
            Ok(Ok(value)) => format!("`{source}` gives {}", value.to_json()),
            Ok(Err(error)) => error.to_string(),
            Err(error) => format!("`{source}` is refused: {}", error.message),
        }
    };
    let shown: Vec<String> = [
        ("7", "v / 2"),
        ("-7", "v / 2"),
        ("-7", "v % 2"),
        ("7", "v / (v - v)"),
        ("7", "v % (v - v)"),
        ("7.0", "v / 0.0"),
        ("7", "v / 0.0"),
        ("0.0", "v / 0.0"),
        ("7.5", "v % 2.0"),
        ("9223372036854775807", "v + 1"),
        ("-9223372036854775808", "v - 1"),
        ("-9223372036854775808", "-v"),
        ("-9223372036854775808", "v / -1"),
        ("1e308", "v * 10.0"),
        ("2", "v == 2.0 && v < 2.5 && v >= 2.0"),
        ("2", "v * 2.0"),
        ("2.9", "int(v)"),
        ("-2.9", "int(v)"),
        ("1e19", "int(v)"),
        (r#""-12""#, "int(v)"),
        (r#""0x1F""#, "int(v)"),
        (r#""9223372036854775808""#, "int(v)"),
        ("true", "int(v)"),
        ("3", "double(v)"),
        (r#""1e3""#, "double(v)"),
        (r#""1e999""#, "double(v)"),
        (r#""many""#, "double(v)"),
        ("null", "double(v)"),
        ("2.5", "string(v)"),
        (r#""yes""#, "bool(v)"),
        ("1", "bool(v)"),
        ("99999999999999999999", "[v, -v]"),
        ("99999999999999999999", "v + 1"),
        ("99999999999999999999", "v > 1 && v == v"),
    ]
    .iter()
    .map(|(value, source)| format!("{value}: {}", evaluated(value, source)))
    .collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn the_state_has_a_name_of_its_own() {
    for (source, expected) in [
        ("state.n + 1", "4"),
        (r#"state["name"]"#, r#""Ann""#),
        (r#"has(state.gone) || "gone" in state || !has(state.n)"#, "false"),
        ("default(state.gone, 1)", "1"),
        (r#"state["na" + "me"]"#, r#""Ann""#),
        ("n", "refused at n: there is nothing called `n` (did you mean `state.n`?)"),
        ("state.nam", "refused at state.nam: the state has no field `nam` (did you mean `name`?)"),
        ("size(state)", "refused at state: `state` as a whole cannot be a value (name one of its fields: `state.n`)"),
    ] {
        assert_eq!(evaluate(source, false), expected, "{source}");
    }
}

#[test]
fn names_from_outside() {
    let names = |source: &str| root_names(source).into_iter().map(|root| root.name).collect::<Vec<_>>();
    assert_eq!(names("a.b + [1].map(x, x + c)[0] + f(d)"), ["a", "c", "d"]);
    assert_eq!(names("state.a +"), [""; 0]);
}

#[test]
fn evaluation_is_bounded() {
    let list = "[0,1,2,3,4,5,6,7,8,9]";
    let mut source = "1".to_owned();
    for level in 0..8 {
        source = format!("{list}.map(v{level}, {source})");
    }
    assert!(evaluate(&source, true).contains("more than 2000000 steps"), "{}", evaluate(&source, true));
    let text = format!("\"{}\"", "x".repeat(5000));
    let long = format!("{text}{}.size()", format!(".replace(\"x\", {text})").repeat(3));
    assert!(evaluate(&long, true).contains("bytes of text"));
    for deep in [
        "(".repeat(8),
        "-".repeat(8) + "1",
        "[".repeat(4) + "1" + &"]".repeat(4),
        "(".repeat(1900),
        "(".repeat(50_000),
        format!("{}1", "-".repeat(1900)),
        format!("1{}", "+1".repeat(1900)),
        format!("{}1{}", "[".repeat(900), "]".repeat(900)),
        format!("user{}", ".a".repeat(1900)),
        format!("1{}", "?1:1".repeat(900)),
        format!("true{}", "||true".repeat(900)),
        format!("{}1{}", "size(".repeat(900), ")".repeat(900)),
    ] {
        let shown = evaluate(&deep, true);
        assert!(shown.starts_with("refused") || matches!(&*shown, "true" | "1") || shown.starts_with("[["), "{shown}");
    }
}

#[test]
fn cost_does_not_grow_with_what_is_not_looked_at() {
    let mut state = state();
    let message = state.get("messages").and_then(Value::as_list).and_then(|list| list.get(0)).cloned().unwrap();
    state.set("messages".into(), Value::List(std::iter::repeat_n(message, 200_000).collect()));
    let formula = Formula::compile("messages[size(messages) - 1].contains(\"go\")", &vocabulary(true)).unwrap();
    let mut evaluation = super::evaluate::Evaluation::new(&state);
    assert_eq!(evaluation.evaluate(&formula.0.root), Ok(Value::Bool(true)));
    assert!(evaluation.steps() < 20, "{}", evaluation.steps());
}

#[test]
fn looking_at_long_texts_is_counted() {
    let mut state = state();
    state.set("name".into(), Value::from("b".repeat(4 << 20).as_str()));
    let message = state.get("messages").and_then(Value::as_list).and_then(|list| list.get(0)).cloned().unwrap();
    state.set("messages".into(), Value::List(std::iter::repeat_n(message, 1_000).collect()));
    // Written out they have four hundred megabytes, and each of them takes as long as hundreds of steps.
    let large = parse_json(&"9".repeat(4_000)).unwrap();
    state.set("orders".into(), Value::List(std::iter::repeat_n(large, 100_000).collect()));
    let mut evaluation = super::evaluate::Evaluation::within(&state, 2_000_000, usize::MAX);
    let formula = Formula::compile("string(orders)", &vocabulary(true)).unwrap();
    assert!(evaluation.evaluate(&formula.0.root).is_err_and(|error| error.spent));
    // Each is sixteen times the one within it.
    let grown = |step: fn(&str) -> String| {
        (0..8).fold("messages".to_owned(), |inner, at| {
            let copies = vec![format!("v{at}"); 16];
            format!("[{inner}].map(v{at}, {})[0]", step(&copies.join("|")))
        })
    };
    let lists = grown(|copies| copies.replace('|', " + "));
    let nested = grown(|copies| format!("[{}]", copies.replace('|', ", ")));
    let (long, deep) = (format!("size({lists}) == 0"), format!("string({nested}) == \"\""));
    let (alike, within) = (format!("{nested} == {nested}"), format!("{nested} in [{nested}]"));
    let filled = format!("template(\"${{a}}\", {{\"a\": {nested}}}) == \"\"");
    for (source, least) in [
        (long.as_str(), None),
        (deep.as_str(), None),
        (alike.as_str(), None),
        (within.as_str(), None),
        (filled.as_str(), None),
        ("messages.exists(m, messages + [] != messages)", None),
        (r#"name.contains("a")"#, Some(4 << 10)),
        (r#"name.matches("a")"#, Some(256 << 10)),
        // It has to be compiled.
        (r#"raw.matches("(?:a{100}){100}")"#, Some(6_400)),
        (r#"name.matches("(?:a{100}){100}")"#, None),
        (r#"messages.exists(m, name.contains("a"))"#, None),
        // So has what is too large for that.
        (r#"messages.exists(m, raw.matches("(?:a{1000})" + "{1000}"))"#, None),
    ] {
        let formula = Formula::compile(source, &vocabulary(true)).unwrap();
        let mut evaluation = super::evaluate::Evaluation::new(&state);
        match (evaluation.evaluate(&formula.0.root), least) {
            (Ok(found), Some(least)) => {
                assert_eq!(found, Value::Bool(false), "{source}");
                assert!(evaluation.steps() >= least, "{source}: {}", evaluation.steps());
            }
            (Err(error), None) => assert!(error.spent, "{source}: {error}"),
            (result, _) => panic!("{source}: {result:?}"),
        }
    }
}

/// Each takes an eighth of a second to be read, and a file may have four thousand of them.
#[test]
fn expressions_of_one_file_have_so_many_marks_together() {
    let long = format!("[{}n]", "n,".repeat(1_990));
    let short = || evaluate("n + 1", true);
    let _courtesy = crate::Courtesy::for_a_file();
    assert_eq!(short(), "4");
    // Too long to be read, they count all the same.
    let too_long = format!("[{}n]", "n,".repeat(150_000));
    for _ in 0..2 {
        assert!(evaluate(&too_long, true).contains("2000 operators"));
    }
    let refused = evaluate(&too_long, true);
    assert!(refused.contains("of the file have more than 400000"), "{}", &refused[refused.len() - 200..]);
    assert!(evaluate(&long, true).contains("of the file have more than 400000"));
    assert!(short().contains("of the file have more than 400000"));
}

/// Each takes a million steps, and a node may have thousands of them.
#[test]
fn formulas_of_one_node_take_so_many_steps_together() {
    let mut state = state();
    state.set("orders".into(), Value::List((0..300_i64).map(Value::from).collect()));
    let source = "orders.all(a, orders.all(b, a >= 0 && b >= 0))";
    let formula = || Expression::Formula(Formula::compile(source, &vocabulary(true)).unwrap());
    assert_eq!(formula().evaluate(&state), Ok(Value::Bool(true)));
    let error = Expression::List((0..10).map(|_| formula()).collect()).evaluate(&state).unwrap_err();
    assert!(error.to_string().contains("take more than 6000000 steps together"), "{error}");
}

/// Written out it would have gigabytes: each part is sixteen times the one within it.
#[test]
fn a_value_that_is_too_large_to_be_written_out_is_no_value() {
    let nested = (0..8).fold("messages".to_owned(), |inner, at| {
        format!("[{inner}].map(v{at}, [{}])[0]", vec![format!("v{at}"); 16].join(", "))
    });
    let formula = Formula::compile(&nested, &vocabulary(true)).unwrap();
    let error = formula.evaluate(&state()).unwrap_err();
    assert!(error.spent && error.to_string().contains("it is larger than"), "{error}");
}
