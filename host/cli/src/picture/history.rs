//! What happened in a run, counted from its journal entries.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use hotcell_graph::ir::{Action, Graph};
use hotcell_runtime::{Entry, Fact, RunRecord, RunStatus, open_questions};

use crate::narration::counted;

/// A run as counts for each node and each way between two nodes.
pub(crate) struct History {
    title: String,
    nodes: HashMap<String, Seen>,
    ways: BTreeMap<(String, String), u32>,
}

/// What is known of a node.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) visits: u32,
    pub(super) total: Duration,
    /// Turns that failed and after which the graph went on
    pub(super) failures: u32,
    /// How often a map ran it
    pub(super) items: u32,
    pub(super) waiting: bool,
    /// Whether the run failed here
    pub(super) stopped: bool,
}

impl History {
    pub(crate) fn read(record: &RunRecord, entries: &[Entry], graph: &Graph) -> Self {
        let mut nodes: HashMap<String, Seen> = HashMap::new();
        let mut ways: BTreeMap<(String, String), u32> = BTreeMap::new();
        let mut turns = 0;
        // An item is recorded at the place of its map's turn, which says the node only when it completes.
        let mut items: HashMap<u64, u32> = HashMap::new();
        for entry in entries.iter().filter(|entry| !entry.place.is_step()) {
            match &entry.fact {
                Fact::Effect { kind, .. } if kind == "item" => {
                    *items.entry(entry.place.turn().unwrap_or_default()).or_default() += 1;
                }
                Fact::Completed(completed) => {
                    turns += 1;
                    let seen = nodes.entry(completed.node.clone()).or_default();
                    seen.visits += 1;
                    seen.total += completed.elapsed;
                    seen.failures += u32::from(completed.failure.is_some());
                    for next in completed.next.iter().flatten() {
                        *ways.entry((completed.node.clone(), next.clone())).or_default() += 1;
                    }
                    if let Some(count) = entry.place.turn().and_then(|turn| items.get(&turn))
                        && entry.place.around().is_none()
                        && let Some(Action::Map(map)) = graph.find(&completed.node).map(|node| &graph.node(node).action)
                        && let Some(of_node) = map.of_node()
                    {
                        nodes.entry(graph.node(of_node.branch).id.to_string()).or_default().items += count;
                    }
                }
                _ => {}
            }
        }
        for open in open_questions(entries) {
            nodes.entry(open.question.node).or_default().waiting = true;
        }
        if record.status == RunStatus::Failed
            && let Some(node) = record.outcome.as_deref().and_then(failed_node)
        {
            nodes.entry(node.to_owned()).or_default().stopped = true;
        }
        let title = format!("run {} · {} · {}", record.id, record.status, counted(turns, "turn"));
        History { title, nodes, ways }
    }

    pub(super) fn title(&self) -> &str {
        &self.title
    }

    pub(super) fn node(&self, id: &str) -> Option<&Seen> {
        self.nodes.get(id)
    }

    pub(super) fn taken(&self, from: &str, to: &str) -> u32 {
        self.ways.get(&(from.to_owned(), to.to_owned())).copied().unwrap_or(0)
    }

    /// Every way the run went, with how often.
    pub(super) fn ways(&self) -> impl Iterator<Item = (&str, &str, u32)> {
        self.ways.iter().map(|((from, to), taken)| (from.as_str(), to.as_str(), *taken))
    }
}

/// The node that the engine's error text (``node `x` failed: ...``) is about.
fn failed_node(error: &str) -> Option<&str> {
    error.strip_prefix("node `")?.split_once('`').map(|(node, _)| node)
}
