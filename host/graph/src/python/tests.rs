use super::{ObjectCondition, PythonExpression, as_text};
use crate::state::State;
use crate::value::{Value, parse_json};

fn state() -> State {
    let seed = r#"{"n":5,"f":2.5,"s":"abc","empty":"","b":true,"l":["x","y"],"user":{"name":"Ann","tags":["a"]},
        "none":null,"steps":{"one":{"output":7,"status":"success"}},"(reply)":"all DONE"}"#;
    match parse_json(seed).unwrap() {
        Value::Object(object) => State::from_object(&object),
        _ => unreachable!("the seed is an object"),
    }
}

fn evaluate(source: &str) -> Result<String, String> {
    let names = [("steps", "steps"), ("reply", "(reply)")];
    let expression = PythonExpression::parse(source, &names).map_err(|problem| problem.message)?;
    expression.evaluate(&state()).map(|value| as_text(&value))
}

#[test]
fn values_are_those_of_python() {
    for (source, expected) in [
        ("state.n == 5", "True"),
        ("state['n'] == 5.0", "True"),
        ("state.user.name == 'Ann' and len(state.s) > 2", "True"),
        ("state.user['name']", "Ann"),
        ("state.user.age", "None"),
        ("state.gone.deeper[0]", "None"),
        ("state.n is None", "False"),
        ("state.none is None", "True"),
        ("state.gone is not None", "False"),
        ("not state.b", "False"),
        ("not not state.empty", "False"),
        ("'x' in state.l", "True"),
        ("'z' not in state.l", "True"),
        ("'bc' in state.s", "True"),
        ("'name' in state.user", "True"),
        ("state.l[-1]", "y"),
        ("state.s[0]", "a"),
        ("state.s.strip() == ''", "False"),
        ("state.s.upper().startswith('AB')", "True"),
        ("state.s.startswith(('x', 'a'))", "True"),
        ("state.user.get('age', 3)", "3"),
        ("state.get('gone', 'd')", "d"),
        ("state.get('n')", "5"),
        ("1 < state.n <= 5", "True"),
        ("state.n - 1 + 0.5", "4.5"),
        ("-state.n", "-5"),
        ("abs(-3) + max(1, 2) + min([4, 5])", "9"),
        ("abs(True) + abs(False)", "1"),
        ("int('42') + int(3.9)", "45"),
        ("float('1.5')", "1.5"),
        ("str(state.b) + str(state.user)", "True{'name': 'Ann', 'tags': ['a']}"),
        ("bool(state.empty) or 'fallback'", "fallback"),
        ("state.n and state.s", "abc"),
        ("isinstance(state.n, int) and not isinstance(state.s, (int, float))", "True"),
        ("True == 1", "True"),
        ("True is 1", "False"),
        ("'1' == 1", "False"),
        ("state.n in [1, 5]", "True"),
        (r"'\x41\u00e9\U0001F600' == 'Aé😀'", "True"),
        (r"'\x0a' == '\n' and '\d' == '\\d'", "True"),
        ("state.n in (1,)", "False"),
        ("(state.n == 5)", "True"),
        ("steps.one.output == 7", "True"),
        ("state.steps.one.status == 'success'", "True"),
        ("'DONE' in reply", "True"),
        ("'a' 'b'", "ab"),
        ("state.s.replace('b', '-').split('-')", "['a', 'c']"),
        ("state.s.title() + 'a b'.title()", "AbcA B"),
        ("True", "True"),
        ("state.l == ['x', 'y']", "True"),
        ("[1, 2] < [1, 3]", "True"),
        ("1e3", "1000.0"),
        ("state.l[0:1]", "['x']"),
        ("state.l[1:]", "['y']"),
        ("state.l[::-1]", "['y', 'x']"),
        ("state.l[5:]", "[]"),
        ("state.s[:-1]", "ab"),
        ("state.s[-2:+9]", "bc"),
        ("state.s[::2]", "ac"),
        ("state.s[-1:-9:-2]", "ca"),
        ("state.gone[1:2]", "None"),
        ("state.n if state.b else state.n.x", "5"),
        ("1 if state.empty else 2 if state.b else 3", "2"),
        ("['yes' if state.n > 4 else 'no']", "['yes']"),
        ("state.user == {'name': 'Ann', 'tags': ['a'],}", "True"),
        ("state.user == {}", "False"),
        ("state.n in {'n': 1}", "False"),
        ("1e16", "1e+16"),
    ] {
        assert_eq!(evaluate(source).as_deref(), Ok(expected), "{source}");
    }
}

#[test]
fn what_does_not_go_is_an_error_that_quotes_the_expression() {
    for source in [
        "state.gone > 10",
        "state.n + 'a'",
        "state.s - 1",
        "state.n.x",
        "state.l[5]",
        "1 in 5",
        "len(5)",
        "int('x')",
        "state.n.strip()",
        "min([])",
        "'a' < 1",
    ] {
        let error = evaluate(source).expect_err(source);
        assert!(error.contains(source), "{error}");
    }
}

/// Each would take hours, or more memory than there is.
#[test]
fn what_an_expression_makes_and_looks_at_has_an_end() {
    let of = |items: usize, item: Value| Value::List(std::iter::repeat_n(item, items).collect());
    let mut state = State::default();
    for (key, value) in [
        ("long", Value::from("a".repeat(8 << 20))),
        ("word", Value::from("z".repeat(1 << 19))),
        ("letters", Value::from("b".repeat(1 << 19) + "z")),
        ("items", of(1_000_000, Value::from(1))),
        ("texts", of(1_000_000, Value::from(""))),
        ("nested", of(1_000, of(1_000, Value::from(1)))),
    ] {
        state.set(key.into(), value);
    }
    let many = |part: &str, between: &str| vec![part; 100].join(between);
    for (source, problem) in [
        (format!("2 in ({})", many("state.items", " + ")), "longer than 2000000 items"),
        ("len(str(state.nested)) == 1".to_owned(), "too long"),
        ("len(state.long.join(state.texts)) == 1".to_owned(), "too long"),
        ("len(state.long.split('a')) == 1".to_owned(), "longer than 2000000 items"),
        (many("'b' in state.long", " or "), "looks at more than"),
        (many("state.long == state.long", " and "), "looks at more than"),
        (many("state.long.find('b') == 1", " or "), "looks at more than"),
        (format!("[{}]", many("state.nested", ", ")), "it is larger than"),
    ] {
        let found = PythonExpression::parse(&source, &[]).unwrap().evaluate(&state);
        assert!(found.as_ref().is_err_and(|error| error.contains(problem)), "{source}: {found:?}");
    }
    for source in ["state.word.strip(state.letters) == ''", "state.nested is not None", "len(state.items) > 5"] {
        assert_eq!(PythonExpression::parse(source, &[]).unwrap().holds(&state), Ok(true), "{source}");
    }
    // None of these goes through the whole value.
    for part in ["state.long != ''", "state.nested != []", "state.nested is not []", "'b' not in state.nested"] {
        let source = many(part, " and ");
        assert_eq!(PythonExpression::parse(&source, &[]).unwrap().holds(&state), Ok(true), "{part}");
    }
    // A condition that is a list is not written out.
    let large = format!("[{}]", many("state.nested", ", "));
    assert_eq!(PythonExpression::parse(&large, &[]).unwrap().holds(&state), Ok(true));
}

/// Each looks at two hundred megabytes.
#[test]
fn what_is_evaluated_together_has_an_end() {
    let mut state = State::default();
    state.set("long".into(), Value::from("a".repeat(8 << 20)));
    let source = vec!["'b' in state.long"; 30].join(" or ");
    let expression = PythonExpression::parse(&source, &[]).unwrap();
    let evaluated = || (0..8).map(|_| expression.holds(&state)).filter(Result::is_ok).count();
    assert_eq!(evaluated(), 8);
    let effort = crate::Effort::begin();
    let within = crate::Effort::begin();
    assert_eq!(evaluated(), 3);
    drop(within);
    let error = expression.holds(&state).unwrap_err();
    assert!(error.contains("look at too much together"), "{error}");
    drop(effort);
    assert_eq!(evaluated(), 8);
}

#[test]
fn what_is_not_in_the_language_is_refused_with_its_place() {
    for (source, part) in [
        ("n == 5", "n"),
        ("__import__('os')", "__import__"),
        ("state.__class__", "__class__"),
        ("state._private", "_private"),
        ("len([x for x in state.l if x > 1]) > 0", "x"),
        ("[1 for x in state.l]", "for"),
        ("state.n * 2", "*"),
        ("state.n % 2 == 0", "%"),
        ("state.n / 2", "/"),
        ("lambda: 1", "lambda"),
        ("f'{state.n}'", "f"),
        ("type(state.n)", "type"),
        ("state.n if state.b", ""),
        ("state.n if state.b else", ""),
        ("{1, 2}", "1"),
        ("{'a': 1 'b': 2}", "'b'"),
        ("state.s.format(1)", ")"),
        ("eval('1')", "eval"),
        (r"state.s == '\x4'", r"\x"),
        (r"state.s == '\uD800'", r"\u"),
        ("state.n = 5", "="),
        ("state", "state"),
        ("state.n ==", ""),
        ("", ""),
        ("(state.n", ""),
        ("'open", "'"),
        ("state.s.strip(1, 2)", ""),
        ("state.n()", "("),
        ("state.s[0:state.n]", "state"),
        ("state.s[::0]", "0"),
        ("state[0:1]", ""),
        ("state.n := 5", ":="),
        ("state['_private']", "'_private'"),
        ("state.user['__class__']", "'__class__'"),
    ] {
        let problem = PythonExpression::parse(source, &[]).expect_err(source);
        let at = &source[problem.range.clone()];
        assert!(at == part || source.contains(part) && !problem.message.is_empty(), "{source}: {at} {problem}");
    }
    let deep = "(".repeat(5_000);
    assert!(PythonExpression::parse(&deep, &[]).is_err());
    let long = "not ".repeat(5_000);
    assert!(PythonExpression::parse(&long, &[]).is_err());
}

#[test]
fn the_keys_that_it_reads() {
    let expression = PythonExpression::parse("state.a.b + len(state['c']) > state.get('d', state.e)", &[]).unwrap();
    let keys: Vec<String> = expression.keys().iter().map(|key| key.to_string()).collect();
    assert_eq!(keys, ["a", "c", "d", "e"]);
}

#[test]
fn conditions_on_an_object_are_refused_at_the_first_sign_that_cannot_stand_there() {
    for (source, at) in [
        ("a.b = 'x'", 4),
        ("a == ", 5),
        ("a && b", 2),
        ("a == 'open", 5),
        ("(a == 1", 7),
        ("a == 1)", 6),
        ("not", 3),
        ("lambda: 1", 0),
        ("[1,1,1,", 7),
        ("a..b", 2),
        ("f(1)", 1),
        ("a.strip()", 7),
        ("a + 1 > 2", 2),
        ("a - 1", 2),
        ("-a > 1", 1),
        ("a is None", 2),
        ("a[b]", 2),
        ("a[-1]", 2),
        ("a[0:1]", 3),
        ("{'a': 1}", 0),
        ("badge == 'gold' or or vip = 3", 19),
        ("whole", 5),
        ("whole.", 6),
        ("a in (1, 2)", 7),
        ("a 'b'", 2),
        ("a; b", 1),
        ("a if b else c", 2),
        ("{}", 0),
        ("", 0),
        ("x == 5 é", 7),
    ] {
        let problem = ObjectCondition::parse(source, "whole").expect_err(source);
        assert_eq!(problem.range.start, at, "{source}: {problem}");
    }
    assert!(ObjectCondition::parse(&"(".repeat(5_000), "whole").is_err());
    assert!(ObjectCondition::parse(&"not ".repeat(5_000), "whole").is_err());
}

#[test]
fn only_numbers_and_only_texts_of_an_object_have_an_order() {
    let object = match parse_json(r#"{"flag":true,"n":3,"l":[1],"_i":{"count":2}}"#).unwrap() {
        Value::Object(object) => object,
        _ => unreachable!("it is an object"),
    };
    let holds = |source: &str| ObjectCondition::parse(source, "whole").unwrap().holds(&object);
    for source in ["flag > 0", "l < [2]", "n < '4'", "n > null"] {
        assert!(matches!(holds(source), Err(super::Unmet::Unfit(_))), "{source}");
    }
    assert_eq!(holds("flag == 1 and whole['n'] >= 3.0 and 2 < n < 4 and _i.count == 2"), Ok(true));
    assert_eq!(holds("n not in [1, 2]"), Ok(true));
    assert_eq!(holds("n == 3 or whole.l[1] == 1"), Err(super::Unmet::Missing("l[1]".to_owned())));
    let condition = ObjectCondition::parse("whole.a.b == c or not d[0]", "whole").unwrap();
    assert_eq!(condition.entries().iter().map(|key| &**key).collect::<Vec<_>>(), ["a", "c", "d"]);
}
