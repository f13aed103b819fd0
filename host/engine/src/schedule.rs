//! Which node runs next: a state machine without time, tasks or I/O.
//!
//! It is driven by completions alone. Feeding it the completions of a journal in their order therefore leads to the
//! very state in which the run was, which is how a run resumes.

use std::cell::OnceCell;

use hotcell_graph::ir::{Action, Expression, Graph, Next, NodeIndex};
use hotcell_graph::{Key, Reachability, State, Value};

use crate::branch::{Branch, WriteError, apply};
use crate::given::Given;
use hotcell_journal::Write;

/// The number of a node's turn in a run, from 1 in the order in which turns started.
pub type Turn = u64;

/// A node whose turn it is.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) turn: Turn,
    pub(crate) node: NodeIndex,
    pub(crate) visit: u32,
    pub(crate) state: State,
}

/// Where a completed node goes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Route {
    /// To these nodes, side by side
    To(Vec<NodeIndex>),
    /// Nowhere: the run has ended
    End,
}

/// Why the run cannot go on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ScheduleError {
    /// Branches met and could not become one
    Merge { node: NodeIndex, error: WriteError },
    /// A node was entered too often
    Visits { node: NodeIndex, visits: u32 },
    /// One node led to the next too often
    Rounds { node: NodeIndex },
    /// Branches ended in different end nodes
    Ends(Vec<NodeIndex>),
}

#[derive(Debug)]
enum Place {
    Waiting(NodeIndex),
    Running(NodeIndex, Turn),
}

#[derive(Debug)]
struct Token {
    branch: Branch,
    place: Place,
    /// How many nodes led here, each of which waited for the one before
    round: u32,
}

pub(crate) struct Schedule {
    /// Computed when several branches are there for the first time: it costs more than a node of a long chain
    reach: OnceCell<Reachability>,
    tokens: Vec<Token>,
    visits: Vec<u32>,
    turns: Turn,
    running: usize,
    ended: bool,
}

impl Schedule {
    pub(crate) fn new(graph: &Graph, state: State) -> Self {
        Schedule {
            reach: OnceCell::new(),
            tokens: vec![Token { branch: Branch::root(state), place: Place::Waiting(graph.start), round: 0 }],
            visits: vec![0; graph.len()],
            turns: 0,
            running: 0,
            ended: false,
        }
    }

    /// The state to show for a run that stops here: that of its first branch.
    pub(crate) fn state(&self) -> State {
        let first = self.tokens.iter().min_by(|left, right| left.branch.order.cmp(&right.branch.order));
        first.map(|token| token.branch.state.clone()).unwrap_or_default()
    }

    /// The state of the branch whose turn this is.
    pub(crate) fn state_of(&self, turn: Turn) -> Option<State> {
        let running = |token: &&Token| matches!(token.place, Place::Running(_, running) if running == turn);
        self.tokens.iter().find(running).map(|token| token.branch.state.clone())
    }

    /// The nodes that branches wait before.
    pub(crate) fn coming(&self) -> Vec<NodeIndex> {
        let waits = |token: &Token| match token.place {
            Place::Waiting(node) => Some(node),
            Place::Running(..) => None,
        };
        self.tokens.iter().filter_map(waits).collect()
    }

    /// Starts every node that may start now. How many of them are worked on at a time is not looked at: the numbers of turns
    /// would depend on how long each takes.
    pub(crate) fn start_ready(&mut self, graph: &Graph) -> Result<Vec<Start>, ScheduleError> {
        let mut started = Vec::new();
        while !self.ended {
            let Some(node) = self.next_ready(graph)? else { break };
            started.push(self.start(graph, node)?);
        }
        Ok(started)
    }

    /// The node of the first waiting branch that need not wait for another.
    fn next_ready(&self, graph: &Graph) -> Result<Option<NodeIndex>, ScheduleError> {
        if let [Token { place: Place::Waiting(node), .. }] = &self.tokens[..] {
            return Ok(Some(*node));
        }
        let mut waiting: Vec<(&Token, NodeIndex)> = self
            .tokens
            .iter()
            .filter_map(|token| match token.place {
                Place::Waiting(node) => Some((token, node)),
                Place::Running(..) => None,
            })
            .collect();
        waiting.sort_by(|(left, _), (right, _)| left.branch.order.cmp(&right.branch.order));
        let is_end = |node: NodeIndex| matches!(graph.node(node).action, Action::End { .. });
        let free = waiting.iter().map(|(_, node)| *node).find(|node| !is_end(*node) && !self.blocked(graph, *node));
        if free.is_some() || self.running > 0 {
            return Ok(free);
        }
        // Nothing runs and nothing is free: all branches stand before end nodes, or each waits for another.
        if let Some((_, node)) = waiting.iter().find(|(_, node)| !is_end(*node)) {
            return Ok(Some(*node));
        }
        let mut ends: Vec<NodeIndex> = waiting.iter().map(|(_, node)| *node).collect();
        ends.sort_unstable();
        ends.dedup();
        match &ends[..] {
            [] => Ok(None),
            [end] => Ok(Some(*end)),
            _ => Err(ScheduleError::Ends(ends)),
        }
    }

    /// Whether another branch may still arrive at `node`, where some wait.
    fn blocked(&self, graph: &Graph, node: NodeIndex) -> bool {
        let reach = self.reach.get_or_init(|| Reachability::new(graph));
        let (here, elsewhere): (Vec<&Token>, Vec<&Token>) =
            self.tokens.iter().partition(|token| matches!(token.place, Place::Waiting(place) if place == node));
        elsewhere.into_iter().any(|other| {
            let (Place::Waiting(place) | Place::Running(place, _)) = other.place;
            if !reach.reaches(place, node) || !reach.reaches(node, place) {
                return reach.reaches(place, node);
            }
            // Within a cycle everything lies behind everything. What is behind the node where the branches split is the
            // next time round, for which nobody waits.
            here.iter().any(|token| match token.branch.split_from(&other.branch) {
                Some(split) => Reachability::reaches_around(graph, place, node, split),
                None => true,
            })
        })
    }

    fn start(&mut self, graph: &Graph, node: NodeIndex) -> Result<Start, ScheduleError> {
        let only = match &self.tokens[..] {
            [_] => self.tokens.pop(),
            _ => None,
        };
        let (branch, round) = match only {
            Some(only) => (only.branch, only.round),
            None => {
                let (meeting, apart): (Vec<Token>, Vec<Token>) = std::mem::take(&mut self.tokens)
                    .into_iter()
                    .partition(|token| matches!(token.place, Place::Waiting(place) if place == node));
                self.tokens = apart;
                let round = meeting.iter().map(|token| token.round).max().unwrap_or_default();
                let mut meeting: Vec<Branch> = meeting.into_iter().map(|token| token.branch).collect();
                let branch = match (meeting.pop(), meeting.is_empty()) {
                    (Some(single), true) => single,
                    (last, _) => {
                        meeting.extend(last);
                        Branch::merge(graph, meeting, self.tokens.is_empty())
                            .map_err(|error| ScheduleError::Merge { node, error })?
                    }
                };
                (branch, round)
            }
        };
        // Where a run begins and ends by itself is not one node more.
        let this = graph.node(node);
        let counts = match this.action {
            Action::End { .. } => false,
            Action::Pass => this.implied_by.is_none(),
            _ => true,
        };
        let round = round + u32::from(counts);
        let visit = self.visits[node.as_usize()] + 1;
        self.visits[node.as_usize()] = visit;
        let state = branch.state.clone();
        if let Some(cap) = &graph.limits.visits_per_node
            && visit > cap.visits
        {
            self.tokens.push(Token { branch, place: Place::Waiting(node), round });
            return Err(ScheduleError::Visits { node, visits: visit });
        }
        if graph.limits.rounds.as_ref().is_some_and(|cap| counts && round > cap.visits) {
            self.tokens.push(Token { branch, place: Place::Waiting(node), round });
            return Err(ScheduleError::Rounds { node });
        }
        self.turns += 1;
        self.running += 1;
        self.tokens.push(Token { branch, place: Place::Running(node, self.turns), round });
        Ok(Start { turn: self.turns, node, visit, state })
    }

    /// Takes a completed turn: its writes, the state they led to, and where it goes.
    /// Returns the ended branch's state if the run is over.
    pub(crate) fn complete(&mut self, turn: Turn, writes: Vec<Write>, state: State, route: &Route) -> Option<State> {
        let (at, node) = self.tokens.iter().enumerate().find_map(|(at, token)| match token.place {
            Place::Running(node, running) if running == turn => Some((at, node)),
            _ => None,
        })?;
        let mut token = self.tokens.swap_remove(at);
        self.running -= 1;
        token.branch.record(node, writes, state);
        match route {
            Route::End => {
                self.ended = true;
                let state = token.branch.state.clone();
                self.tokens.push(token);
                return Some(state);
            }
            Route::To(targets) => match &targets[..] {
                [] => {}
                [target] => {
                    token.place = Place::Waiting(*target);
                    self.tokens.push(token);
                }
                several => {
                    let round = token.round;
                    let branches = token.branch.split(node, several.len());
                    self.tokens.extend(branches.into_iter().zip(several).map(|(branch, target)| Token {
                        branch,
                        place: Place::Waiting(*target),
                        round,
                    }));
                }
            },
        }
        None
    }
}

/// The declared targets of a node for an answer and the state that it left, duplicates collapsed.
pub(crate) fn declared_route(
    graph: &Graph,
    node: NodeIndex,
    answer: Option<&str>,
    state: &State,
) -> Result<Vec<NodeIndex>, String> {
    let mut targets = Vec::new();
    collect_route(&graph.node(node).next, answer, state, &mut targets)?;
    Ok(targets)
}

fn collect_route(next: &Next, answer: Option<&str>, state: &State, into: &mut Vec<NodeIndex>) -> Result<(), String> {
    let mut add = |target: NodeIndex| {
        if !into.contains(&target) {
            into.push(target);
        }
    };
    match next {
        Next::To(targets) => targets.iter().copied().for_each(add),
        Next::ByAnswer { routes, otherwise } => {
            let known = routes.iter().find(|(text, _)| Some(text.as_str()) == answer);
            add(known.map_or(*otherwise, |(_, target)| *target));
        }
        Next::ByValue { value, routes, otherwise } => {
            let value = value.evaluate(state).map_err(|error| error.to_string())?;
            let known = routes.iter().find(|(text, _)| Some(text.as_str()) == value.as_text());
            add(known.map_or(*otherwise, |(_, target)| *target));
        }
        Next::When { condition, then, otherwise } => {
            let next = match condition.evaluate(state) {
                Ok(Value::Bool(true)) => then,
                Ok(Value::Bool(false)) => otherwise,
                Ok(other) => {
                    let source = match condition {
                        Expression::Formula(formula) => format!(" `{}`", formula.source()),
                        _ => String::new(),
                    };
                    let kind = other.a_kind();
                    return Err(format!("a condition of its edges has to be true or false, and{source} gave {kind}"));
                }
                Err(error) => return Err(format!("a condition of its edges: {error}")),
            };
            collect_route(next, answer, state, into)?;
        }
        Next::Each(all) => {
            for next in all {
                collect_route(next, answer, state, into)?;
            }
        }
    }
    Ok(())
}

/// The state before the first node: values of variables, then the graph's own, then what the caller gave.
pub(crate) fn initial_state(graph: &Graph, given: &Given) -> Result<State, WriteError> {
    let mut state = State::default();
    for variable in &graph.variables {
        if let Some(value) = given.variables.get(&variable.name) {
            state.set(variable.name.clone(), value.clone());
        } else if let Some(default) = &variable.default {
            state.set(variable.name.clone(), default.as_str().into());
        }
    }
    for (key, value) in &graph.initial_state {
        state.set(key.clone(), value.clone());
    }
    let kept = |key: &Key| graph.kept.as_ref().is_none_or(|kept| kept.contains(key));
    for (key, value) in given.earlier.iter().flat_map(|earlier| earlier.iter()).filter(|(key, _)| kept(key)) {
        state.set(key.clone(), value.clone());
    }
    for (key, value) in given.state.iter() {
        apply(graph, &mut state, &Write { key: key.clone(), value: value.clone() })?;
    }
    if let (Some(key), Some(text)) = (&graph.input_key, &given.input) {
        state.set(key.clone(), text.as_str().into());
    }
    if let (Some(key), Some(text)) = (&graph.conversation, &given.input) {
        apply(graph, &mut state, &Write { key: key.clone(), value: text.as_str().into() })?;
    }
    Ok(state)
}
