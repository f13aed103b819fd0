//! What happens in a run at a server, told as if it happened here.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use hotcell_budget::{Account, Cost, Usage};
use hotcell_runtime::{Entry, EntryPath, Event, Fact, NodeFailure, Observer, Outcome, RunId, failures};
use serde::Deserialize as _;
use serde_json::Value;

/// Tells observers of a run what a server says of it.
pub(crate) struct Teller {
    observer: Arc<dyn Observer>,
    run: RunId,
    graph: String,
    /// Whether it is told of a run that had begun before
    resumed: bool,
    /// Whether it was told that the run began, which says with which node
    began: bool,
    /// The nodes by their turns, as far as it was told that they began
    nodes: HashMap<u64, String>,
    /// Turns that began and are not done
    open: HashSet<(u64, String)>,
    /// Those that begin once more
    again: HashSet<(u64, String)>,
    /// The agents that nodes called last
    agents: HashMap<String, String>,
}

impl Teller {
    /// Tells this observer of a run.
    pub(crate) fn new(observer: Arc<dyn Observer>, run: RunId, graph: String, resumed: bool) -> Self {
        let (nodes, agents) = (HashMap::new(), HashMap::new());
        let (open, again) = (HashSet::new(), HashSet::new());
        Teller { observer, run, graph, resumed, began: false, nodes, open, again, agents }
    }

    fn tell(&self, event: &Event<'_>) {
        self.observer.event(event);
    }

    /// The run began, or goes on, with this node.
    fn begin(&mut self, start: &str) {
        if !std::mem::replace(&mut self.began, true) {
            self.tell(&Event::RunStarted { run: &self.run, graph: &self.graph, start, resumed: self.resumed });
        }
    }

    /// Something happens that is not committed.
    pub(crate) fn live(&mut self, happened: &Value) {
        match happened["event"].as_str() {
            Some("node_started") => {
                let (node, turn) = (happened["node"].as_str().unwrap_or_default(), happened["turn"].as_u64());
                self.begin(node);
                if let Some(turn) = turn {
                    self.nodes.insert(turn, node.to_owned());
                    let began = (turn, node.to_owned());
                    // Whoever follows a run once more is told what is under way.
                    if self.again.remove(&began) || !self.open.insert(began) {
                        return;
                    }
                }
            }
            Some("within") => {
                let text = |name: &str| happened[name].as_str().unwrap_or_default().to_owned();
                self.agents.insert(text("node"), text("agent"));
            }
            _ => {}
        }
        with_event(happened, &mut |event| self.tell(event));
    }

    /// Something was committed.
    pub(crate) fn committed(&mut self, entry: &Entry) {
        match &entry.fact {
            Fact::Started(header) => self.graph.clone_from(&header.graph),
            Fact::Completed(completed) if !entry.place.is_step() => {
                let (node, turn) = (completed.node.as_str(), last_turn(&entry.place));
                let usage = completed.account.total();
                let done = Event::NodeCompleted {
                    node,
                    turn,
                    next: completed.next.as_deref().unwrap_or_default(),
                    failure: completed.failure.as_deref(),
                    elapsed: completed.elapsed,
                    usage: &usage,
                    place: entry.place.as_str(),
                };
                match agents_around(&entry.place) {
                    0 => {
                        self.begin(node);
                        self.tell(&done);
                        self.open.remove(&(turn, node.to_owned()));
                    }
                    // What an agent does whose agent does it is told while it happens, and not once more.
                    1 => {
                        let caller = entry.place.turn().and_then(|turn| self.nodes.get(&turn));
                        let agent = caller.and_then(|caller| self.agents.get(caller));
                        if let (Some(caller), Some(agent)) = (caller, agent) {
                            self.tell(&Event::Within { node: caller, agent, within: &done });
                        }
                    }
                    _ => {}
                }
            }
            Fact::Asked { question, .. } => self.tell(&Event::Asked { question }),
            _ => {}
        }
    }

    /// Somebody here answered a question of this node.
    pub(crate) fn answered(&self, node: &str) {
        self.tell(&Event::Answered { node });
    }

    /// The run goes on that had rested: turns that are not done begin once more, which was told.
    pub(crate) fn goes_on(&mut self) {
        self.again.clone_from(&self.open);
    }

    /// The run rests; `entries` are all of it, `took` is how long that was followed.
    pub(crate) fn rests(&mut self, outcome: &Outcome, entries: &[Entry], took: Duration) {
        let run = &self.run;
        self.tell(&match outcome {
            Outcome::Completed { output } => {
                let (failures, usage): (Vec<NodeFailure>, Usage) = (failures(entries), account(entries).total());
                return self.tell(&Event::RunCompleted {
                    run,
                    output,
                    failures: &failures,
                    elapsed: took,
                    usage: &usage,
                });
            }
            Outcome::Failed { node, error } => Event::RunFailed { run, node: node.as_deref(), error },
            Outcome::Waiting { questions } => Event::RunWaiting { run, questions },
            Outcome::Stopped { reason } => Event::RunStopped { run, reason },
            Outcome::Cancelled => Event::RunCancelled { run },
            Outcome::Paused => Event::RunPaused { run },
            Outcome::Interrupted => Event::RunInterrupted { run },
        });
    }
}

/// Who used what for a run, as far as its nodes are done.
pub(crate) fn account(entries: &[Entry]) -> Account {
    let done: HashSet<&EntryPath> =
        entries.iter().filter(|entry| matches!(entry.fact, Fact::Completed(_))).map(|entry| &entry.place).collect();
    let is_within = |place: &EntryPath| {
        std::iter::successors(place.around(), EntryPath::around).any(|around| done.contains(&around))
    };
    let mut account = Account::default();
    for entry in entries {
        // A node that is done counts with everything within it.
        match &entry.fact {
            Fact::Completed(completed) if !is_within(&entry.place) => account += completed.account.clone(),
            Fact::Failed { account: used, .. } if !is_within(&entry.place) => account += used.clone(),
            _ => {}
        }
    }
    account
}

/// The number of the turn that an entry is about, among those of its graph.
fn last_turn(place: &EntryPath) -> u64 {
    place.as_str().rsplit('.').next().and_then(|turn| turn.parse().ok()).unwrap_or_default()
}

/// How many agents called one another for it.
fn agents_around(place: &EntryPath) -> usize {
    place.as_str().split('.').filter(|part| part.starts_with("agent")).count()
}

/// Makes an event of what a server says happened. What this hotcell does not know is left out.
fn with_event(happened: &Value, tell: &mut dyn FnMut(&Event<'_>)) {
    let text = |name: &str| happened[name].as_str().unwrap_or_default();
    let maybe = |name: &str| happened[name].as_str();
    let number = |name: &str| happened[name].as_u64().unwrap_or_default();
    let small = |name: &str| u32::try_from(number(name)).unwrap_or(u32::MAX);
    let elapsed = || {
        let milliseconds = happened["elapsed_ms"].as_f64().unwrap_or_default();
        Duration::try_from_secs_f64(milliseconds / 1e3).unwrap_or_default()
    };
    let node = text("node");
    match text("event") {
        "node_started" => {
            let (turn, visit) = (number("turn"), small("visit"));
            let (kind, place, agent) = (text("kind"), text("place"), maybe("agent"));
            tell(&Event::NodeStarted { node, kind, turn, visit, place, agent });
        }
        "item_started" => {
            let item = usize::try_from(number("item")).unwrap_or_default();
            tell(&Event::ItemStarted { node, branch: text("branch"), item });
        }
        "model_requested" => {
            let tools = happened["tools"].as_array().into_iter().flatten();
            let tools: Vec<String> = tools.filter_map(Value::as_str).map(str::to_owned).collect();
            tell(&Event::ModelRequested { node, model: maybe("model"), tools: &tools });
        }
        "model_text" => tell(&Event::ModelText { node, text: text("text") }),
        "model_answered" => tell(&Event::ModelAnswered {
            node,
            model: text("model"),
            place: text("place"),
            prompt_tokens: number("prompt_tokens"),
            completion_tokens: number("completion_tokens"),
            cost: Cost(number("cost_nano_usd")),
            elapsed: elapsed(),
        }),
        "model_retried" => {
            tell(&Event::ModelRetried { node, error: text("error"), attempt: small("attempt") });
        }
        "tool_called" => {
            let usage = Usage::deserialize(&happened["usage"]).unwrap_or_default();
            tell(&Event::ToolCalled {
                node,
                tool: text("tool"),
                place: text("place"),
                arguments: text("arguments"),
                error: maybe("error"),
                usage: &usage,
                elapsed: elapsed(),
            });
        }
        "cell_called" => {
            let usage = Usage::deserialize(&happened["usage"]).unwrap_or_default();
            let denied = happened["denied"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let denied: Vec<&str> = denied.collect();
            let failed = happened["failed"].as_bool().unwrap_or_default();
            tell(&Event::CellCalled {
                name: text("name"),
                place: text("place"),
                failed,
                usage: &usage,
                denied: &denied,
            });
        }
        "model_failed" => tell(&Event::ModelFailed {
            node,
            model: text("model"),
            place: text("place"),
            error: text("error"),
            kind: text("kind"),
            elapsed: elapsed(),
        }),
        "node_failed" => {
            let (turn, error) = (number("turn"), text("error"));
            tell(&Event::NodeFailed { node, turn, error, elapsed: elapsed(), place: text("place") });
        }
        "noticed" => tell(&Event::Noticed { node, text: text("text"), help: maybe("help") }),
        "within" => with_event(&happened["within"], &mut |within| {
            tell(&Event::Within { node, agent: text("agent"), within });
        }),
        _ => {}
    }
}
