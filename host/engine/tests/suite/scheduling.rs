//! Joins, reducers, caps and ends, on graphs built in code.

use std::sync::Arc;

use crate::common::journal::request;
use crate::common::{World, each, end, graph, node, pass, script, shown};
use hotcell_engine::{Engine, Outcome, RunReport};
use hotcell_graph::ir::{Action, AskAction, CapOrigin, Expression, Graph, Next, OnFailure, RunLimits, VisitCap};
use hotcell_graph::value::parse_json;
use hotcell_graph::{Reducer, Template, Value};
use hotcell_journal::MemoryStore;
use tokio_util::sync::CancellationToken;

async fn run(graph: Graph, world: World) -> (RunReport, Arc<World>) {
    let world = Arc::new(world);
    let engine = Engine::new(world.ports(), Arc::new(MemoryStore::default()));
    (engine.start(request(&Arc::new(graph)), CancellationToken::new()).await.unwrap(), world)
}

fn completed(report: &RunReport) -> &str {
    match &report.outcome {
        Outcome::Completed { output } => output,
        other => panic!("not completed: {other:?}"),
    }
}

fn failed(report: &RunReport) -> &str {
    match &report.outcome {
        Outcome::Failed { error, .. } => error,
        other => panic!("not failed: {other:?}"),
    }
}

#[tokio::test]
async fn updates_read_one_snapshot_and_are_written_in_order() {
    let mut graph = graph(&["swap", "done"], |ids| {
        vec![
            pass(ids, "swap", &[("a", "{{b}}"), ("b", "{{a}}"), ("b", "{{a}}!")], &["done"]),
            end(ids, "done", "{{a}}{{b}}"),
        ]
    });
    graph.initial_state = vec![("a".into(), "1".into()), ("b".into(), "2".into())];
    assert_eq!(completed(&run(graph, World::default()).await.0), "21!");
}

/// `long…` takes longer than `s`, so completion order is the reverse of declaration order.
fn two_branches() -> Graph {
    graph(&["split", "left", "right", "more", "join", "done"], |ids| {
        vec![
            pass(ids, "split", &[("trail", "split")], &["left", "right"]),
            script(ids, "left", "a-long-program-name", &[("trail", "left"), ("l", "L")], &["join"]),
            script(ids, "right", "s", &[("trail", "right")], &["more"]),
            pass(ids, "more", &[("trail", "more"), ("r", "R{{l}}")], &["join"]),
            pass(ids, "join", &[("trail", "join {{l}}{{r}}")], &["done"]),
            end(ids, "done", "{{trail}}"),
        ]
    })
}

#[tokio::test]
async fn a_join_runs_once_and_merges_in_declaration_order() {
    let mut graph = two_branches();
    graph.reducers.insert("trail".into(), Reducer::Append);
    let (report, _) = run(graph, World::default()).await;
    assert_eq!(completed(&report), r#"["split","left","right","more","join LR"]"#);
}

#[tokio::test]
async fn two_writers_without_reducer_fail_by_name() {
    let (report, _) = run(two_branches(), World::default()).await;
    let error = failed(&report);
    assert_eq!(
        error,
        "node `join` cannot start: `trail` was written by `left` and `right`, which run side by side, and it has no reducer \
         that says how to combine what they wrote"
    );
}

#[tokio::test]
async fn nested_splits_that_meet_elsewhere_keep_every_write_once() {
    // a splits to b and c; b splits to d and e; d and c meet in x, which meets e in y.
    let mut graph = graph(&["a", "b", "c", "d", "e", "x", "y", "done"], |ids| {
        vec![
            pass(ids, "a", &[("t", "a")], &["b", "c"]),
            pass(ids, "b", &[("t", "b"), ("seen", "b")], &["d", "e"]),
            script(ids, "c", "slow-script-of-c", &[("t", "c")], &["x"]),
            script(ids, "d", "d", &[("t", "d"), ("seen", "{{seen}}d")], &["x"]),
            pass(ids, "e", &[("t", "e")], &["y"]),
            pass(ids, "x", &[("t", "x")], &["y"]),
            pass(ids, "y", &[("t", "y")], &["done"]),
            end(ids, "done", "{{t}} {{seen}}"),
        ]
    });
    graph.reducers.insert("t".into(), Reducer::Append);
    let (report, _) = run(graph, World::default()).await;
    assert_eq!(completed(&report), r#"["a","b","d","c","x","e","y"] bd"#);
}

/// Branches of two and of one node that meet, twice: the first is longer if `long_first`.
fn twice_round(long_first: bool) -> Graph {
    let branches = if long_first { ["long", "short"] } else { ["short", "long"] };
    let mut graph = graph(&["split", "long", "more", "short", "join", "done"], |ids| {
        let mut join = pass(ids, "join", &[("trail", "join")], &[]);
        join.next = Next::When {
            condition: Expression::Has("second".into()),
            then: Box::new(Next::To(vec![ids.get("done").unwrap()])),
            otherwise: Box::new(Next::To(vec![ids.get("split").unwrap()])),
        };
        vec![
            pass(ids, "split", &[("second", "{{first}}"), ("first", "yes")], &branches),
            script(ids, "long", "a-long-program-name", &[("trail", "long")], &["more"]),
            script(ids, "more", "m", &[("trail", "more"), ("l", "{{l}}L")], &["join"]),
            script(ids, "short", "s", &[("trail", "short"), ("s", "{{s}}S")], &["join"]),
            join,
            end(ids, "done", "{{trail}} {{l}}{{s}}"),
        ]
    });
    graph.initial_state = vec![("first".into(), Value::Null)];
    graph.reducers.insert("trail".into(), Reducer::Append);
    graph
}

#[tokio::test]
async fn branches_within_a_cycle_meet_each_time_round() {
    let (report, world) = run(twice_round(true), World::default()).await;
    let round = r#""long","more","short","join""#;
    assert_eq!(completed(&report), format!("[{round},{round}] LLSS"));
    // Side by side: the short branch does not wait for the long one.
    assert_eq!(*world.ran.lock().unwrap(), ["a-long-program-name", "s", "m", "a-long-program-name", "s", "m"]);

    let (report, _) = run(twice_round(false), World::default()).await;
    let round = r#""short","long","more","join""#;
    assert_eq!(completed(&report), format!("[{round},{round}] LLSS"));
}

#[tokio::test]
async fn branches_in_two_ends_fail_and_one_end_waits_for_all() {
    let two = graph(&["split", "red", "blue"], |ids| {
        vec![pass(ids, "split", &[], &["red", "blue"]), end(ids, "red", "r"), end(ids, "blue", "b")]
    });
    let (report, _) = run(two, World::default()).await;
    assert!(failed(&report).contains("`red`, `blue`"));

    let one = graph(&["split", "left", "done"], |ids| {
        vec![
            pass(ids, "split", &[], &["left", "done"]),
            script(ids, "left", "takes-a-while", &[("l", "L")], &["done"]),
            end(ids, "done", "{{l}}"),
        ]
    });
    let (report, _) = run(one, World::default()).await;
    assert_eq!(completed(&report), "L");
}

#[tokio::test]
async fn a_run_that_is_out_of_time_says_what_it_did_not_come_to() {
    let mut graph = two_branches();
    graph.limits.wall_clock = Some(std::time::Duration::ZERO);
    let (report, _) = run(graph, World::default()).await;
    assert_eq!(failed(&report), "the run timed out before `split`: it is limited to 0 s");
}

#[tokio::test]
async fn attack_79_a_script_that_routes_in_circles_meets_the_visit_cap() {
    let mut graph =
        graph(&["spin", "done"], |ids| vec![script(ids, "spin", "spin", &[], &["done"]), end(ids, "done", "x")]);
    graph.limits.visits_per_node = Some(VisitCap { visits: 3, origin: CapOrigin::Setting("max_loop_iterations") });
    let spin: crate::common::ScriptBehaviour = |_| Ok(r#"{"_next":"spin","n":1}"#.into());
    let world = World { scripts: [("spin", spin)].into(), ..World::default() };
    let (report, world) = run(graph, world).await;
    assert!(failed(&report).starts_with("node 'spin' visited 4 times (max_loop_iterations=3)"));
    assert_eq!(world.ran.lock().unwrap().len(), 3);
    assert_eq!(shown(&report.state, "n"), "1");
}

#[tokio::test]
async fn a_cap_that_has_no_setting_says_what_it_means() {
    let mut graph = graph(&["spin", "done"], |ids| vec![pass(ids, "spin", &[], &["spin"]), end(ids, "done", "x")]);
    let words = "the top has turned twice; hold it";
    let cap = VisitCap { visits: 2, origin: CapOrigin::Fixed(words.to_owned()) };
    graph.limits.visits_per_node = Some(cap.clone());
    let (report, _) = run(graph.clone(), World::default()).await;
    assert_eq!(failed(&report), words);
    graph.limits = RunLimits { visits_per_node: None, rounds: Some(cap), ..graph.limits };
    let (report, _) = run(graph, World::default()).await;
    assert_eq!(failed(&report), words);
}

/// What a guest, a model or a person says is put into texts and never read as one.
#[tokio::test]
async fn attack_78_text_from_outside_is_never_a_template_or_an_expression() {
    const TEXT: &str = "{{secret}} ${secret} {{{{secret}}}} {%secret%} =1+1 state.secret == 'x' || true";
    let hostile: crate::common::ScriptBehaviour = |_| Ok(format!(r#"{{"said":"{TEXT}","{{{{secret}}}}":1}}"#));
    let mut built = graph(&["say", "person", "done"], |ids| {
        let question = Expression::Strict(Template::parse("{{said}}?"));
        let ask = Action::Ask(AskAction { trim: true, ..AskAction::new(question, "input") });
        vec![
            script(ids, "say", "say", &[("again", "{{said}}"), ("said", "{{again}}")], &["person"]),
            crate::common::node(ids, "person", ask, &[("heard", "{{input}}")], &["done"]),
            end(ids, "done", "{{said}}|{{heard}}"),
        ]
    });
    built.initial_state = vec![("secret".into(), "x".into()), ("said".into(), "".into())];
    let answers = std::sync::Mutex::new(vec![TEXT.to_owned()]);
    let world = World { scripts: [("say", hostile)].into(), answers, ..World::default() };
    let (report, _) = run(built, world).await;
    let output = completed(&report);
    assert!(output.ends_with(&format!("|{TEXT}")), "{output}");
    assert!(report.state.get("secret").is_some_and(|secret| secret.to_json() == "\"x\""));

    // Nor is it the name of a node.
    let route: crate::common::ScriptBehaviour = |_| Ok(r#"{"_next":"{{goal}}"}"#.into());
    let mut routed =
        graph(&["say", "done"], |ids| vec![script(ids, "say", "say", &[], &["done"]), end(ids, "done", "x")]);
    routed.initial_state = vec![("goal".into(), "done".into())];
    let (report, _) = run(routed, World { scripts: [("say", route)].into(), ..World::default() }).await;
    assert!(failed(&report).contains("`{{goal}}`, which does not exist"), "{}", failed(&report));
}

#[tokio::test]
async fn attack_72_json_that_is_broken_deep_or_ambiguous_fails_the_node_or_means_one_thing() {
    let refused: [(crate::common::ScriptBehaviour, &str); 7] = [
        (|_| Ok("{\"a\":".repeat(100_000)), ""),
        (|_| Ok(format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000))), ""),
        (|_| Ok(format!("{{\"a\":{}{}}}", "[".repeat(130), "]".repeat(130))), "nested more than 128 levels deep"),
        (|_| Ok(r#"{"a":NaN}"#.into()), ""),
        (|_| Ok(r#"{"a":Infinity}"#.into()), ""),
        (|_| Ok(r#"{"a":1e999}"#.into()), ""),
        (|_| Ok("<html>".into()), ""),
    ];
    for (number, (behaviour, expected)) in refused.into_iter().enumerate() {
        let one = graph(&["s", "done"], |ids| vec![script(ids, "s", "s", &[], &["done"]), end(ids, "done", "x")]);
        let (report, _) = run(one, World { scripts: [("s", behaviour)].into(), ..World::default() }).await;
        let message = failed(&report);
        assert!(message.contains("script `s`") && message.contains(expected), "{number}: {message}");
        assert!(message.len() < 2_000, "{number}: the message has {} bytes", message.len());
    }
    // Of two values under one key the last counts, here and in everything that reads the journal.
    let twice: crate::common::ScriptBehaviour = |_| Ok(r#"{"n":1,"n":2,"_next":"nowhere","_next":"done"}"#.into());
    let one = graph(&["s", "done"], |ids| vec![script(ids, "s", "s", &[], &["done"]), end(ids, "done", "{{n}}")]);
    let (report, _) = run(one, World { scripts: [("s", twice)].into(), ..World::default() }).await;
    assert_eq!(completed(&report), "2");
}

#[tokio::test]
async fn what_a_script_prints_is_checked() {
    let cases: [(crate::common::ScriptBehaviour, &str); 9] = [
        (|_| Ok("[1]".into()), "printed a list: [1]"),
        (|_| Ok("null\n".into()), "printed null: null"),
        (|_| Ok("log\n{}".into()), "and nothing else"),
        (|_| Ok(" \n".into()), "produced no output"),
        (|_| Ok(r#"{"_next":2}"#.into()), "`_next` has to be the id of a node as text, not 2"),
        (|_| Ok(r#"{"_next":["a"]}"#.into()), r#"not ["a"]"#),
        (|_| Ok(r#"{"_next":"ghost"}"#.into()), "`_next` names the node `ghost`, which does not exist"),
        (|_| Ok(r#"{"_next":"don"}"#.into()), "which does not exist; did you mean `done`?"),
        (|_| Err("out-of-fuel".into()), "script `s` failed: out-of-fuel"),
    ];
    for (behaviour, expected) in cases {
        let build = || {
            graph(&["s", "rescue", "done"], |ids| {
                vec![script(ids, "s", "s", &[("u", "1")], &["done"]), end(ids, "rescue", "R"), end(ids, "done", "D")]
            })
        };
        let world = || World { scripts: [("s", behaviour)].into(), ..World::default() };
        let (report, _) = run(build(), world()).await;
        let error = failed(&report);
        assert!(error.starts_with("node `s` failed") && error.contains(expected), "{error}");

        // With a way out the error is in state and nothing of the answer is.
        let rescued = graph(&["s", "rescue", "done"], |ids| {
            let mut s = script(ids, "s", "s", &[("u", "1")], &["done"]);
            s.on_failure = OnFailure::To(ids.get("rescue").unwrap());
            vec![s, end(ids, "rescue", "R {{s_error}}"), end(ids, "done", "D")]
        });
        let (report, _) = run(rescued, world()).await;
        assert!(completed(&report).starts_with("R script `s`"));
        assert_eq!(shown(&report.state, "u"), "absent");
    }
}

#[tokio::test]
async fn what_leads_to_a_node_that_is_absent_fails_in_its_own_name() {
    let lost: crate::common::ScriptBehaviour = |_| Err("no disk".into());
    let routed: crate::common::ScriptBehaviour = |_| Ok(r#"{"_next":"gone"}"#.into());
    let fine: crate::common::ScriptBehaviour = |_| Ok(r#"{"made":1}"#.into());
    let build = |falls: bool| {
        graph(&["s", "gone"], |ids| {
            let mut s = script(ids, "s", "s", &[], &["gone"]);
            if falls {
                s.on_failure = OnFailure::To(ids.get("gone").unwrap());
            }
            vec![s, node(ids, "gone", Action::Absent, &[], &[])]
        })
    };
    for (behaviour, falls, expected) in [
        (fine, false, "node `s` failed: it leads to `gone`, and there is no such node"),
        (lost, true, "node `s` failed: script `s` failed: no disk; then it leads to `gone`, and there is no such node"),
        (routed, false, "node `s` failed: script `s`: `_next` names the node `gone`, which does not exist"),
    ] {
        let (report, world) = run(build(falls), World { scripts: [("s", behaviour)].into(), ..World::default() }).await;
        assert_eq!(failed(&report), expected);
        assert!(world.events.lock().unwrap().iter().all(|event| !event.contains(r#""node":"gone""#)));
    }
}

#[tokio::test]
async fn a_node_that_cannot_be_left_has_done_its_work() {
    let made: crate::common::ScriptBehaviour = |_| Ok(r#"{"n":2,"made":"m"}"#.into());
    let mut stuck =
        graph(&["s", "done"], |ids| vec![script(ids, "s", "s", &[("copy", "{{made}}")], &[]), end(ids, "done", "x")]);
    stuck.initial_state = vec![("n".into(), parse_json("1").unwrap())];
    stuck.reducers.insert("n".into(), Reducer::Sum);
    let (report, _) = run(stuck, World { scripts: [("s", made)].into(), ..World::default() }).await;
    assert!(failed(&report).contains("it has no `next` and its answer does not name a node"), "{}", failed(&report));
    assert_eq!((shown(&report.state, "n"), shown(&report.state, "copy")), ("3".into(), r#""m""#.into()));

    let open = graph(&["done"], |ids| {
        let output = Action::End { output: Expression::Strict(Template::parse("{{gone}}")) };
        vec![node(ids, "done", output, &[("closed", "yes")], &[])]
    });
    let (report, _) = run(open, World::default()).await;
    assert!(failed(&report).contains("`gone`"), "{}", failed(&report));
    assert_eq!(shown(&report.state, "closed"), r#""yes""#);
}

#[tokio::test]
async fn a_map_collects_in_order_and_leaves_nothing_else() {
    let build = || {
        let mut built = graph(&["each", "one", "done"], |ids| {
            let action = each(ids, "one", "output", "out", Some(2));
            vec![
                node(ids, "each", action, &[], &["done"]),
                script(ids, "one", "one", &[], &[]),
                end(ids, "done", "{{out}}"),
            ]
        });
        built.initial_state = vec![("xs".into(), parse_json("[3,1,2]").unwrap())];
        built
    };
    let one: crate::common::ScriptBehaviour = |call| {
        let x = call.state.get("x").unwrap();
        if x == "1" {
            std::thread::sleep(std::time::Duration::from_millis(20))
        }
        Ok(format!(r#"{{"output":{x}0,"scratch":1}}"#))
    };
    let (report, _) = run(build(), World { scripts: [("one", one)].into(), ..World::default() }).await;
    assert_eq!(completed(&report), "[30,10,20]");
    assert_eq!((shown(&report.state, "scratch"), shown(&report.state, "x")), ("absent".into(), "absent".into()));

    let silent: crate::common::ScriptBehaviour = |_| Ok("{}".into());
    let (report, _) = run(build(), World { scripts: [("one", silent)].into(), ..World::default() }).await;
    assert!(failed(&report).contains("wrote no `output`"), "{}", failed(&report));
}
