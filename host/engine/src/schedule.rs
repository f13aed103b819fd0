//! Which node runs next: a state machine without time, tasks or I/O.
//!
//! It is driven by what is committed alone: completed turns, and joins that have waited long enough. Feeding it the entries of a
//! run in their order therefore leads to the very state in which the run was, which is how a run resumes.

mod after;
mod ready;

use std::cell::OnceCell;
use std::collections::HashSet;
use std::time::Duration;

use hotcell_graph::ir::{Action, Ends, Graph, Join, JoinWhen, NodeIndex, Sharing, Unmet};
use hotcell_graph::value::Number;
use hotcell_graph::{Reachability, State, Value};
use hotcell_journal::Write;

use self::ready::Ready;
use crate::arrivals::Verdict;
use crate::branch::{Branch, WriteError, apply};
use crate::token::{Place, Token, Turn};

/// A node whose turn it is.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) turn: Turn,
    pub(crate) node: NodeIndex,
    pub(crate) visit: u32,
    pub(crate) state: State,
    /// Nodes that it waited for in vain: its turn is a failure
    pub(crate) missed: Vec<NodeIndex>,
}

/// Where a completed node goes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Route {
    /// To these nodes, side by side; with none of them its branch ends
    To(Vec<NodeIndex>),
    /// Nowhere: the run has ended
    End,
}

/// The state to which the writes of a turn led.
pub(crate) enum After {
    /// That of its branch, as it was when the turn began, with the writes
    Own(State),
    /// That which all branches share, as [`Schedule::fits`] gave it
    Shared(State),
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
    /// The run has had all the turns it may have
    Turns { node: NodeIndex },
    /// Nodes have led to others as often as they may
    Hops { node: NodeIndex },
    /// Branches ended in different end nodes
    Ends(Vec<NodeIndex>),
}

/// What becomes of branches that meet.
struct Met {
    branch: Branch,
    round: u32,
    from: Option<NodeIndex>,
    /// What they bring along, in the order in which they came
    brought: Vec<Value>,
}

/// The node for which one stands that nobody wrote.
fn stands_for(graph: &Graph, node: NodeIndex) -> NodeIndex {
    graph.node(node).implied_by.as_ref().and_then(|name| graph.find(name)).unwrap_or(node)
}

/// How often nodes led to others before a run that begins with this state, as far as it says so.
fn hops_before(graph: &Graph, state: &State) -> u32 {
    match graph.limits.hops_before.as_ref().and_then(|key| state.get(key)) {
        Some(Value::Number(Number::Int(hops))) => u32::try_from((*hops).max(0)).unwrap_or(u32::MAX),
        _ => 0,
    }
}

pub(crate) struct Schedule {
    /// Computed when several branches are there for the first time: it costs more than a node of a long chain
    reach: OnceCell<Reachability>,
    tokens: Vec<Token>,
    /// The one state of a graph whose branches share it
    shared: Option<State>,
    visits: Vec<u32>,
    turns: Turn,
    /// How often nodes led to others, also before the run
    hops: u32,
    /// The node that was not begun any more, as nodes had led to others often enough
    refused: Option<NodeIndex>,
    arrivals: u64,
    running: usize,
    ended: bool,
    /// Joins with a condition that have run
    fired: HashSet<NodeIndex>,
    /// Joins that have waited as long as they may
    expired: HashSet<NodeIndex>,
    /// Nodes whose last turn failed and ended its branch
    failed: HashSet<NodeIndex>,
    /// Branches that have ended, of a run that is over when all have
    gone: Vec<Branch>,
}

impl Schedule {
    pub(crate) fn new(graph: &Graph, state: State) -> Self {
        let shared = (graph.scheduling.sharing == Sharing::Shared).then(|| state.clone());
        let hops = hops_before(graph, &state);
        let branch = Branch::root(state);
        Schedule {
            reach: OnceCell::new(),
            tokens: vec![Token::at_the_start(branch, graph.start)],
            shared,
            visits: vec![0; graph.len()],
            turns: 0,
            hops,
            refused: None,
            arrivals: 0,
            running: 0,
            ended: false,
            fired: HashSet::new(),
            expired: HashSet::new(),
            failed: HashSet::new(),
            gone: Vec::new(),
        }
    }

    /// The state to show for a run that stops here: the shared one, or that of its first branch.
    pub(crate) fn state(&self) -> State {
        if let Some(shared) = &self.shared {
            return shared.clone();
        }
        let first = self.tokens.iter().min_by(|left, right| left.branch.order.cmp(&right.branch.order));
        first.map(|token| token.branch.state.clone()).unwrap_or_default()
    }

    /// The state of the branch whose turn this is.
    pub(crate) fn state_of(&self, turn: Turn) -> Option<State> {
        self.token_of(turn).map(|token| token.branch.state.clone())
    }

    /// The branch whose turn this is.
    fn token_of(&self, turn: Turn) -> Option<&Token> {
        self.tokens.iter().find(|token| matches!(token.place, Place::Running(_, running) if running == turn))
    }

    /// The nodes that branches wait before.
    pub(crate) fn coming(&self) -> Vec<NodeIndex> {
        let waits = |token: &Token| match token.place {
            Place::Waiting(node) => Some(node),
            Place::Running(..) => None,
        };
        self.tokens.iter().filter_map(waits).collect()
    }

    /// Joins that wait and may not wait for ever, with how long they may.
    pub(crate) fn deadlines(&self, graph: &Graph) -> Vec<(NodeIndex, Duration)> {
        let mut waiting = Vec::new();
        for node in self.coming() {
            if let Join::When(JoinWhen { deadline: Some(deadline), .. }) = &graph.node(node).join
                && !self.expired.contains(&node)
                && !waiting.contains(&(node, *deadline))
            {
                waiting.push((node, *deadline));
            }
        }
        waiting
    }

    /// A join has waited as long as it may.
    pub(crate) fn expire(&mut self, node: NodeIndex) {
        self.expired.insert(node);
    }

    /// Starts every node that may start now. How many of them are worked on at a time is not looked at: the numbers of turns
    /// would depend on how long each takes.
    pub(crate) fn start_ready(&mut self, graph: &Graph) -> Result<Vec<Start>, ScheduleError> {
        let mut started = Vec::new();
        while !self.ended {
            let Some(ready) = self.next_ready(graph)? else { break };
            started.push(self.start(graph, ready)?);
        }
        Ok(started)
    }

    fn start(&mut self, graph: &Graph, ready: Ready) -> Result<Start, ScheduleError> {
        let Ready { node, tokens, missed, fires } = ready;
        if fires {
            self.fired.insert(node);
        }
        let Met { mut branch, round, from, brought } = self.meet(graph, node, &tokens)?;
        if let Some(shared) = &self.shared {
            branch.state = shared.clone();
        }
        if let Some(key) = &graph.scheduling.brought {
            branch.state.set(key.clone(), Value::List(brought.into_iter().collect()));
        }
        // Where a run begins and ends by itself is not one node more.
        let this = graph.node(node);
        let counts = match this.action {
            Action::End { .. } => false,
            Action::Pass => this.implied_by.is_none(),
            _ => true,
        };
        let round = round + u32::from(counts);
        let visit = self.visits[node.as_usize()] + 1;
        let state = branch.state.clone();
        let refused = match &graph.limits {
            limits if limits.visits_per_node.as_ref().is_some_and(|cap| visit > cap.visits) => {
                Some(ScheduleError::Visits { node, visits: visit })
            }
            limits if limits.rounds.as_ref().is_some_and(|cap| counts && round > cap.visits) => {
                Some(ScheduleError::Rounds { node })
            }
            limits if limits.turns.as_ref().is_some_and(|cap| self.turns >= u64::from(cap.visits)) => {
                Some(ScheduleError::Turns { node })
            }
            _ => None,
        };
        if let Some(error) = refused {
            self.tokens.push(Token::at(Place::Waiting(node), branch, from, round));
            return Err(error);
        }
        // Whoever asks again gets the same answer: a start that is refused is no visit.
        self.visits[node.as_usize()] = visit;
        self.turns += 1;
        self.running += 1;
        self.failed.remove(&node);
        let running = Token::at(Place::Running(node, self.turns), branch, from, round);
        self.tokens.push(Token { shared: self.shared.clone(), ..running });
        Ok(Start { turn: self.turns, node, visit, state, missed })
    }

    /// Makes one branch of those that meet before a node.
    fn meet(&mut self, graph: &Graph, node: NodeIndex, tokens: &[usize]) -> Result<Met, ScheduleError> {
        if let [only] = tokens {
            let Token { branch, round, from, brings, .. } = self.tokens.remove(*only);
            return Ok(Met { branch, round, from, brought: brings.into_iter().collect() });
        }
        let mut meeting = Vec::with_capacity(tokens.len());
        let mut apart = Vec::with_capacity(self.tokens.len());
        for (at, token) in std::mem::take(&mut self.tokens).into_iter().enumerate() {
            if tokens.contains(&at) { meeting.push(token) } else { apart.push(token) }
        }
        self.tokens = apart;
        let round = meeting.iter().map(|token| token.round).max().unwrap_or_default();
        let from = meeting.first().and_then(|token| token.from);
        meeting.sort_by_key(|token| token.arrival);
        let brought = meeting.iter_mut().filter_map(|token| token.brings.take()).collect();
        let mut meeting: Vec<Branch> = meeting.into_iter().map(|token| token.branch).collect();
        let branch = match meeting.len() {
            1 => meeting.swap_remove(0),
            _ if self.shared.is_some() => {
                meeting.sort_by(|left, right| left.order.cmp(&right.order));
                meeting.swap_remove(0)
            }
            _ => Branch::merge(graph, meeting, self.tokens.is_empty())
                .map_err(|error| ScheduleError::Merge { node, error })?,
        };
        Ok(Met { branch, round, from, brought })
    }

    /// Takes a completed turn: its writes, if they are needed, the state they led to, and where it goes.
    /// Returns the ended branch's state if the run is over.
    pub(crate) fn complete(
        &mut self,
        graph: &Graph,
        turn: Turn,
        mut writes: Vec<Write>,
        after: After,
        route: &Route,
        has_failed: bool,
    ) -> Result<Option<State>, ScheduleError> {
        let found = self.tokens.iter().enumerate().find_map(|(at, token)| match token.place {
            Place::Running(node, running) if running == turn => Some((at, node)),
            _ => None,
        });
        let Some((at, node)) = found else { return Ok(None) };
        let mut token = self.tokens.swap_remove(at);
        self.running -= 1;
        token.shared = None;
        token.from = Some(stands_for(graph, node));
        if let Some(key) = &graph.scheduling.brought {
            token.brings = writes.iter().rev().find(|write| write.key == *key).map(|write| write.value.clone());
            writes.retain(|write| write.key != *key);
        }
        match (&mut self.shared, after) {
            (Some(shared), After::Shared(state)) => {
                shared.clone_from(&state);
                token.branch.state = state;
            }
            (Some(shared), After::Own(_)) => {
                for write in &writes {
                    apply(graph, shared, write).map_err(|error| ScheduleError::Merge { node, error })?;
                }
                token.branch.state = shared.clone();
            }
            (None, After::Own(state) | After::Shared(state)) => token.branch.record(node, writes, state),
        }
        let within = match route {
            Route::To(targets) => self.within_hops(graph, node, targets)?,
            Route::End => None,
        };
        match route {
            Route::End => {
                self.ended = true;
                let state = token.branch.state.clone();
                self.tokens.push(token);
                return Ok(Some(state));
            }
            Route::To(targets) => match within.as_deref().unwrap_or(targets) {
                [] => {
                    if has_failed {
                        self.failed.insert(node);
                    }
                    self.go(graph, token.branch);
                }
                [target] => {
                    self.arrive(graph, Token { place: Place::Waiting(*target), ..token });
                }
                several => {
                    let round = token.round;
                    let branches = token.branch.split(node, several.len(), self.shared.is_none());
                    for (branch, target) in branches.into_iter().zip(several) {
                        let there = Token::at(Place::Waiting(*target), branch, token.from, round);
                        self.arrive(graph, Token { brings: token.brings.clone(), ..there });
                    }
                }
            },
        }
        self.skip_unmet(graph);
        if self.tokens.is_empty() && matches!(graph.scheduling.ends, Ends::WhenQuiet { .. }) {
            return self.quiet(graph, node).map(Some);
        }
        Ok(None)
    }

    /// Counts the nodes that a node leads to, as far as they count: those that may still be begun, if not all may. The run is over
    /// when one is to be begun after them, and otherwise when they are done.
    fn within_hops(
        &mut self,
        graph: &Graph,
        node: NodeIndex,
        targets: &[NodeIndex],
    ) -> Result<Option<Vec<NodeIndex>>, ScheduleError> {
        let begins = node == graph.start && graph.node(node).implied_by.is_some();
        let Some(cap) = graph.limits.hops.as_ref().filter(|_| !begins) else { return Ok(None) };
        let (before, mut within) = (self.hops, Vec::new());
        let mut refused = None;
        for target in targets {
            if graph.node(*target).implied_by.is_none() {
                if self.hops >= cap.visits {
                    refused = refused.or(Some(*target));
                    continue;
                }
                self.hops += 1;
            }
            within.push(*target);
        }
        match refused {
            None => Ok(None),
            Some(node) if self.hops == before => Err(ScheduleError::Hops { node }),
            Some(_) => {
                self.refused = refused;
                Ok(Some(within))
            }
        }
    }

    /// Ends the branches that wait before joins for what cannot come any more, where such a join is left out. That is so when
    /// nothing else is left that could run.
    fn skip_unmet(&mut self, graph: &Graph) {
        let waits_in_vain = |token: &Token| {
            let Place::Waiting(node) = token.place else { return false };
            let Join::When(join) = &graph.node(node).join else { return false };
            join.unmet == Unmet::Skip
                && (join.deadline.is_none() || self.expired.contains(&node))
                && token.is_waited_for
                && self.arrivals(node, self.expired.contains(&node)).verdict(&join.condition)
                    != Verdict::Yes { arrived: true }
        };
        if self.running > 0 || self.tokens.is_empty() || !self.tokens.iter().all(waits_in_vain) {
            return;
        }
        for token in std::mem::take(&mut self.tokens) {
            self.go(graph, token.branch);
        }
    }

    /// A branch ends. What it wrote is part of how the run ends, if the run is over when all branches are.
    fn go(&mut self, graph: &Graph, branch: Branch) {
        if self.shared.is_none() && matches!(graph.scheduling.ends, Ends::WhenQuiet { .. }) {
            self.gone.push(branch);
        }
    }

    /// The state of a run whose branches have all ended: the shared one, or theirs as one, in the order in which they are
    /// declared.
    fn quiet(&mut self, graph: &Graph, node: NodeIndex) -> Result<State, ScheduleError> {
        if let Some(node) = self.refused {
            return Err(ScheduleError::Hops { node });
        }
        if let Some(shared) = &self.shared {
            return Ok(shared.clone());
        }
        let mut gone = std::mem::take(&mut self.gone);
        let whole = match gone.len() {
            1 => gone.swap_remove(0),
            _ => Branch::merge(graph, gone, true).map_err(|error| ScheduleError::Merge { node, error })?,
        };
        Ok(whole.state)
    }

    /// A branch comes to a node. What comes late to a join that has run is dropped.
    fn arrive(&mut self, graph: &Graph, mut token: Token) {
        let node = token.place.node();
        self.arrivals += 1;
        token.arrival = self.arrivals;
        token.is_waited_for = match &graph.node(node).join {
            Join::When(join) => token.from.is_some_and(|from| join.condition.names(from)),
            Join::All | Join::Each => false,
        };
        if token.is_waited_for && self.fired.contains(&node) {
            return self.go(graph, token.branch);
        }
        self.tokens.push(token);
    }
}

#[cfg(test)]
mod tests;
