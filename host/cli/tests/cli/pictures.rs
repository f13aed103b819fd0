//! `hotcell graph`

use crate::desk::{Desk, read};

const GRAPH: &str = r#"name: picture
version: "1.0"
start: first
nodes:
  first: { type: script, script: scripts/first.js, fallback: sorry, next: done }
  sorry: { type: end, output: "sorry" }
  done: { type: end, output: "done" }
"#;

fn desk() -> Desk {
    Desk::with(GRAPH, &[("first.js", "console.log('{}')\n")])
}

#[test]
fn a_graph_is_drawn_as_mermaid_by_default() {
    insta::assert_snapshot!(desk().told(&["graph", "."]));
}

#[test]
fn the_extension_of_the_output_decides_the_form() {
    let desk = desk();
    for (name, beginning) in [("a.svg", "<svg "), ("b.dot", "digraph "), ("c.mmd", "---\n")] {
        assert!(desk.output(&["graph", ".", "-o", name]).status.success());
        assert!(read(&desk.path(name)).starts_with(beginning), "{name}");
    }
    assert!(desk.output(&["graph", ".", "-o", "d.txt", "--format", "svg"]).status.success());
    assert!(read(&desk.path("d.txt")).starts_with("<svg "));
    assert_eq!(desk.output(&["graph", ".", "-o", "e.png"]).status.code(), Some(2));
    assert!(!desk.path("e.png").exists());
}

/// Thirty nodes in two kilobytes, each of which leads to all that follow.
#[test]
fn what_cannot_be_laid_out_is_refused_and_written_otherwise() {
    let desk = desk();
    let targets = |from: usize| (from + 1..=30).map(|to| format!("n{to}")).collect::<Vec<_>>().join(", ");
    let nodes: String =
        (0..30).map(|from| format!("  n{from}: {{ type: llm, prompt: x, next: [{}] }}\n", targets(from))).collect();
    let graph = format!("name: dense\nversion: \"1.0\"\nstart: n0\nnodes:\n{nodes}  n30: {{ type: end, output: x }}\n");
    desk.write("dense.yaml", &graph);
    let output = desk.output(&["graph", "dense.yaml", "--format", "svg"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("too many lines across too many nodes"));
    assert!(desk.output(&["graph", "dense.yaml", "--format", "dot"]).status.success());
}

#[test]
fn a_run_is_drawn_with_the_way_it_went() {
    let desk = desk();
    desk.output(&["run", "."]);
    let run = desk.only_run().to_string();
    insta::assert_snapshot!(desk.told(&["graph", "--run", &run]));
    let other = "name: other\nversion: \"1.0\"\nstart: done\nnodes:\n  done: { type: end, output: fin }\n";
    desk.write("other.yaml", other);
    let output = desk.output(&["graph", "other.yaml", "--run", &run]);
    assert_eq!(output.status.code(), Some(2));
}
