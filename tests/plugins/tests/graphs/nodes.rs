//! Node types, tools and connectors of plugins as nodes of a graph.

use hotcell_loopback::{Loopback, Script};
use hotcell_runtime::Outcome;
use serde_json::json;

use crate::desk::{Desk, error, output};

/// A graph with one node `do`, of which this is the rest, that shows what it gave.
fn graph(node: &str) -> String {
    format!(
        "name: probed\nstart: do\ninitial_state: {{ city: Oslo, way: left, shown: none }}\nnodes:\n  do:\n    {}\n    \
         state_updates: {{ shown: \"{{{{output}}}}\" }}\n  a: {{ type: end, output: \"a {{{{shown}}}}\" }}\n  \
         b: {{ type: end, output: \"b {{{{shown}}}}\" }}\n",
        node.replace('\n', "\n    ")
    )
}

fn desk(node: &str) -> Desk {
    let desk = Desk::new(&graph(node));
    desk.plugin("acme", "say", &[], json!({ "ask": true }), "ask = true");
    desk
}

fn refused(node: &str) -> String {
    let model = Loopback::start(Script::from_json(&json!([])).unwrap()).unwrap();
    let desk = desk(node);
    desk.host(&model).load(&desk.path("graph.yaml")).map_or_else(|failure| failure.to_string(), |_| String::new())
}

#[tokio::test]
async fn a_node_gets_fields_and_inputs_and_leaves_by_its_branch() {
    let node = |way: &str| {
        format!(
            "type: acme/work\nwith: {{ units: metric }}\ninputs: {{ branch: {way}, more: [\"{{{{city}}}}\", 1, {{ x: \"in {{{{city}}}}\" }}] }}\n\
             routes: {{ left: a, right: b }}"
        )
    };
    for (way, expected) in [("\"{{way}}\"", "a "), ("right", "b ")] {
        let (report, _) = desk(&node(way)).run(json!([])).await;
        let shown = output(&report);
        assert!(shown.starts_with(expected), "{shown}");
        assert!(shown.contains(r#""units":"metric""#) && shown.contains(r#"["Oslo",1,{"x":"in Oslo"}]"#), "{shown}");
    }
    let (report, _) = desk(&node("back")).run(json!([])).await;
    let told = error(&report);
    assert!(told.contains("left by the branch `back`, which it does not declare"), "{told}");
}

#[tokio::test]
async fn a_tool_and_a_connector_are_nodes_as_well() {
    let tool = "type: acme/say\ninputs: { do: say, text: \"{{city}}\" }\nnext: a";
    assert_eq!(output(&desk(tool).run(json!([])).await.0), "a Oslo");
    let connector = "type: acme/connector\nwith: { url: x }\ninputs: { city: \"{{city}}\" }\nnext: a";
    assert_eq!(output(&desk(connector).run(json!([])).await.0), r#"a {"sent":{"city":"Oslo"},"config":{"url":"x"}}"#);
    for (mode, expected) in [("", "write `mode: callback`"), ("mode: callback\n", "set `HOTCELL_CALLBACK_URL`")] {
        let later = format!("type: acme/connector\n{mode}with: {{ url: x }}\ninputs: {{ when: later }}\nnext: a");
        let told = format!("{:?}", desk(&later).run(json!([])).await.0.state);
        assert!(told.contains(expected), "{told}");
    }
    // Where the answer is there at once, nothing waits for another one.
    let now = "type: acme/connector\nmode: callback\nwith: { url: x }\ninputs: { when: now }\nnext: a";
    let desk = desk(now);
    desk.listens();
    assert_eq!(output(&desk.run(json!([])).await.0), r#"a {"sent":{"when":"now"},"config":{"url":"x"}}"#);
}

#[tokio::test]
async fn a_question_of_a_node_waits_for_its_answer() {
    let desk = desk("type: acme/work\ninputs: { ask: \"which?\", branch: left }\nroutes: { left: a, right: b }");
    let (report, _) = desk.run(json!([])).await;
    let Outcome::Waiting { questions } = &report.outcome else { panic!("{:?}", report.outcome) };
    assert_eq!(questions[0].text, "which?");
}

#[tokio::test]
async fn a_tool_that_fails_is_a_failed_node() {
    let (report, _) = desk("type: acme/say\ninputs: { do: nonsense }\nnext: a\nfallback: b").run(json!([])).await;
    assert_eq!(output(&report), "b none");
    let told = format!("{:?}", report.state);
    assert!(told.contains("there is nothing to do like `nonsense`"), "{told}");
    let (report, _) = desk("type: acme/say\ninputs: { do: loop }").run(json!([])).await;
    assert!(error(&report).contains("out-of-fuel"), "{}", error(&report));
}

#[test]
fn what_does_not_fit_is_said_with_its_place() {
    let cases = [
        ("type: acne/work\nnext: a", "no plugin offers the type `acne/work`", "did you mean `acme/work`?"),
        ("type: acme/wrok\nnext: a", "no plugin offers the type `acme/wrok`", "did you mean `acme/work`?"),
        ("type: acme/work\nwith: { unit: x }\nnext: a", "`acme/work` has no `unit` in `with`", "did you mean `units`?"),
        ("type: acme/work\nroutes: { lft: a }\nnext: a", "`acme/work` has no branch `lft`", "did you mean `left`?"),
        ("type: acme/work\nroutes: { left: a }", "nothing says where node `do` goes by `right`", "add it to `routes`"),
        ("type: acme/work\nroutes: { left: c, right: a }", "names `c`, and there is no such node", ""),
        ("type: acme/connector\nnext: a", "`acme/connector` needs `url` in `with`", "add `with: { url: ... }`"),
        ("type: acme/say\nwith: { x: 1 }\nnext: a", "`acme/say` has no `x` in `with`", "it takes nothing in `with`"),
        (
            "type: acme/connector\nmode: later\nwith: { url: x }\nnext: a",
            "`acme/connector` has no mode `later`",
            "it has `sync` and `callback`",
        ),
        ("type: acme/say\nmode: sync\nnext: a", "`acme/say` has no mode `sync`", "only connectors have modes"),
        (
            "type: acme/work\nnext: a\nrouts: {}",
            "`routs` is not a field of nodes of type `acme/work`",
            "did you mean `routes`?",
        ),
    ];
    for (node, message, help) in cases {
        let told = refused(node);
        assert!(told.contains(message) && told.contains(help) && told.contains("graph.yaml:"), "{node}: {told}");
    }
}
