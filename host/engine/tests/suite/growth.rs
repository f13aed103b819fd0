//! Graphs that make something grow with every visit: it stops at a size, with an error that names what grew.

use std::sync::Arc;

use crate::common::journal::request;
use crate::common::{World, end, graph, node, pass};
use hotcell_budget::Bytes;
use hotcell_engine::{Engine, Outcome};
use hotcell_graph::Value;
use hotcell_graph::ir::{Action, Expression, Graph, PluginNodeAction, PluginNodeKind, Update};
use hotcell_journal::{MemoryStore, RunStore as _};
use tokio_util::sync::CancellationToken;

async fn failed(graph: Graph) -> String {
    let engine = Engine::new(Arc::new(World::default()).ports(), Arc::new(MemoryStore::default()));
    let report = engine.start(request(&Arc::new(graph)), CancellationToken::new()).await.unwrap();
    match report.outcome {
        Outcome::Failed { error, .. } => error,
        other => panic!("not failed: {other:?}"),
    }
}

/// A node that goes on to itself and updates `x`, which begins as a text.
fn again(update: &str) -> Graph {
    let mut graph =
        graph(&["grow", "done"], |ids| vec![pass(ids, "grow", &[("x", update)], &["grow"]), end(ids, "done", "{{x}}")]);
    graph.initial_state = vec![("x".into(), "0123456789".into())];
    graph
}

#[tokio::test]
async fn a_template_that_grows_tenfold_per_visit_is_stopped() {
    let error = failed(again(&"{{x}}".repeat(10))).await;
    assert!(error.contains("update of `x`: the text becomes longer than 16777216 bytes"), "{error}");
    // Also where every reference is as long as a text may be.
    let error = failed(again(&"{{x}}".repeat(100_000))).await;
    assert!(error.contains("the text becomes longer than 16777216 bytes"), "{error}");
}

#[tokio::test]
async fn values_that_share_what_they_are_made_of_are_counted_as_they_are_written_out() {
    let x = || Expression::Key("x".into());
    for value in [
        Expression::List(vec![x(), x()]),
        Expression::Object((0..10).map(|at| (format!("k{at}").into(), x())).collect()),
    ] {
        let mut graph = graph(&["grow", "done"], |ids| {
            let mut grow = pass(ids, "grow", &[], &["grow"]);
            grow.updates = vec![Update { key: "x".into(), value: value.clone() }];
            vec![grow, end(ids, "done", "")]
        });
        graph.initial_state = vec![("x".into(), "0123456789".into())];
        let error = failed(graph).await;
        assert!(error.contains("the value that it writes to `x` cannot be kept: it is larger than"), "{error}");
    }
}

/// It names one text of the state a hundred times, which a file may have do it a hundred thousand times.
#[tokio::test]
async fn what_is_handed_over_or_written_out_has_a_size() {
    let wide =
        || Expression::Object((0..100).map(|at| (format!("k{at}").into(), Expression::Key("x".into()))).collect());
    let result = || Action::End { output: wide() };
    let joined = || Action::End { output: Expression::Joined(vec![wide()]) };
    let tool = || {
        Action::PluginNode(Box::new(PluginNodeAction {
            plugin_node: "send/mail".into(),
            kind: PluginNodeKind::Tool,
            with: Expression::Value(Value::Object(Default::default())),
            inputs: wide(),
            branches: Vec::new(),
            keys: None,
            bind: "output",
        }))
    };
    for action in [&result as &dyn Fn() -> Action, &joined, &tool] {
        let mut graph =
            graph(&["a", "done"], |ids| vec![node(ids, "a", action(), &[], &["done"]), end(ids, "done", "")]);
        graph.initial_state = vec![("x".into(), "x".repeat(1 << 20).into())];
        let error = failed(graph).await;
        assert!(error.contains("it is larger than 67108864 bytes"), "{error}");
    }
}

#[tokio::test]
async fn a_node_writes_so_many_keys_at_once() {
    let many: Vec<(String, String)> = (0..10_001).map(|at| (format!("k{at}"), "1".to_owned())).collect();
    let updates: Vec<(&str, &str)> = many.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let error =
        failed(graph(&["many", "done"], |ids| vec![pass(ids, "many", &updates, &["done"]), end(ids, "done", "")]))
            .await;
    assert!(error.contains("it writes more than 10000 keys of the state at once"), "{error}");
}

/// A run that would fill the disk with small steps, a hundred thousand characters each.
fn filling() -> Graph {
    let mut graph = graph(&["grow", "done"], |ids| {
        vec![pass(ids, "grow", &[("y", "{{x}}")], &["grow"]), end(ids, "done", "{{x}}")]
    });
    graph.initial_state = vec![("x".into(), "x".repeat(100_000).into())];
    graph.limits.visits_per_node = None;
    graph
}

#[tokio::test]
async fn a_run_writes_so_much_to_its_journal_and_then_fails() {
    let store = Arc::new(MemoryStore::default());
    let engine = Engine::new(Arc::new(World::default()).ports(), store.clone()).writing_at_most(Bytes(2_000_000));
    let graph = Arc::new(filling());
    let report = engine.start(request(&graph), CancellationToken::new()).await.unwrap();
    let is_full = |outcome: &Outcome| matches!(outcome, Outcome::Failed { node: None, error } if error.starts_with("the run has written more than 1.9 MiB to its journal"));
    assert!(is_full(&report.outcome), "{:?}", report.outcome);
    let entries = store.history(&report.run).await.unwrap().whole().unwrap();
    assert!((15..25).contains(&entries.len()), "{}", entries.len());
    assert!(entries.last().unwrap().fact.is_rest());
    // Neither another process nor another attempt has room again.
    let again = engine.retry(&report.run, graph, CancellationToken::new()).await.unwrap();
    assert!(is_full(&again.outcome), "{:?}", again.outcome);
    assert!(store.history(&report.run).await.unwrap().whole().unwrap().len() < entries.len() + 5);
}
