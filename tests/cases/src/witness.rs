//! Watches a run: the nodes that ran, the questions that were put, the tools that were reached. Answers the questions
//! with what the case holds ready, those that are open at once in the order of their nodes.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use hotcell_graph::Value;
use hotcell_runtime::ir::Graph;
use hotcell_runtime::{ClientCall, Event, Observer, People, Question, Turn};

use crate::case_file::Answer;

use crate::observed::{Pause, ToolInvocation};
use crate::order::{Order, Place};
use crate::requests;

/// How long nothing may happen before a run counts as paused: that a turn is over is told before the one that follows it begins.
const STILL: Duration = Duration::from_millis(100);
/// How often it is looked.
const LOOK: Duration = Duration::from_millis(5);
/// How long a question waits for turns of which nothing is heard.
const PATIENCE: Duration = Duration::from_secs(30);

/// The one who watches and answers. A run that goes on after a pause may have the same witness.
#[derive(Debug, Default)]
pub struct Witness(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    answers: VecDeque<Answer>,
    order: Order,
    nodes: Vec<(Turn, String)>,
    /// Questions that were told, and did not come yet
    told: Vec<Pause>,
    pauses: Vec<Pause>,
    calls: Vec<Call>,
    /// How nodes ended, those of graphs that nodes call by the way to them
    ended: Vec<(String, &'static str)>,
}

/// A call that a model made of a tool, as the events tell it.
#[derive(Clone, Debug)]
struct Call {
    node: String,
    tool: String,
    arguments: Value,
    reached: bool,
    /// Whether the tool put a question and is called once more with the answer
    asked: bool,
}

impl Witness {
    /// A witness of a graph that gives these answers, one for each question.
    pub fn new(graph: &Graph, answers: impl IntoIterator<Item = Answer>) -> Self {
        let answers = answers.into_iter().collect();
        Witness(Mutex::new(Seen { answers, order: Order::of(graph), ..Seen::default() }))
    }

    /// The answers that no question came for.
    pub fn unused_answers(&self) -> Vec<Answer> {
        self.seen().answers.iter().cloned().collect()
    }

    /// The nodes that ran, in order; one that paused and went on is there once.
    pub fn visited(&self) -> Vec<String> {
        self.seen().nodes.iter().map(|(_, node)| node.clone()).collect()
    }

    /// How each node ended, or that it waits.
    pub fn nodes(&self) -> Vec<(String, String)> {
        let seen = self.seen();
        let waits = seen.pauses.iter().chain(&seen.told).map(|pause| (&pause.node, "paused"));
        let ended = seen.ended.iter().map(|(node, how)| (node, *how));
        let mut nodes: Vec<(String, String)> = Vec::new();
        for (node, how) in waits.chain(ended) {
            match nodes.iter_mut().find(|(known, _)| known == node) {
                Some(known) => how.clone_into(&mut known.1),
                None => nodes.push((node.clone(), how.to_owned())),
            }
        }
        nodes
    }

    /// Every question that was put.
    pub fn pauses(&self) -> Vec<Pause> {
        let seen = self.seen();
        seen.pauses.iter().chain(&seen.told).cloned().collect()
    }

    /// The calls that reached a tool, in order.
    pub fn tool_calls(&self) -> Vec<ToolInvocation> {
        let reached = self.seen();
        let reached = reached.calls.iter().filter(|call| call.reached);
        reached.map(|call| ToolInvocation { name: call.tool.clone(), arguments: call.arguments.clone() }).collect()
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question that waits until it is the one to be answered.
struct Asked<'w> {
    witness: &'w Witness,
    place: Place,
}

impl<'w> Asked<'w> {
    fn new(witness: &'w Witness, question: &Question) -> Self {
        Asked { witness, place: witness.seen().order.begin(&question.node) }
    }

    /// Ends when nothing goes on without an answer, and no question is before this one.
    async fn is_next(&self) {
        let look = || {
            let seen = self.witness.seen();
            let order = &seen.order;
            (order.is_first(self.place), order.is_quiet(), order.is_parallel(), order.happened())
        };
        let mut since = (look().3, Instant::now());
        loop {
            let (is_first, is_quiet, is_parallel, happened) = look();
            if happened != since.0 {
                since = (happened, Instant::now());
            }
            let still = since.1.elapsed();
            let is_paused = is_quiet && (!is_parallel || still >= STILL);
            if is_first && (is_paused || still >= PATIENCE) {
                return;
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.witness.seen().order.end(self.place);
    }
}

impl Seen {
    /// The answer that is ready for a question.
    fn answer(&mut self, question: &Question) -> Option<String> {
        // What a client hands in answers the call of that tool, and a text everything else.
        let fits = match (self.answers.front()?, &question.call) {
            (Answer::Client(answer), Some(call)) => answer.tool == call.tool,
            (Answer::Text(_), None) => true,
            _ => false,
        };
        if !fits {
            return None;
        }
        Some(match self.answers.pop_front()? {
            Answer::Text(text) => text,
            Answer::Client(answer) => ClientCall::answer(match answer.error {
                Some(error) => Err(error),
                None => Ok(answer.result.as_ref().map(Value::from).unwrap_or_default()),
            }),
        })
    }

    /// A question that was told has come.
    fn came(&mut self, question: &Question) {
        let is_it = |pause: &Pause| pause.node == question.node && pause.value == question.text;
        let is_like_it = |pause: &Pause| pause.node == question.node;
        let told = self.told.iter().position(is_it).or_else(|| self.told.iter().position(is_like_it));
        if let Some(told) = told {
            let pause = self.told.remove(told);
            self.pauses.push(pause);
        }
    }
}

impl Observer for Witness {
    fn event(&self, event: &Event<'_>) {
        self.seen().order.follow(event);
        self.take_note(event);
    }
}

impl Witness {
    fn take_note(&self, event: &Event<'_>) {
        // The nodes of an agent that a node called are its own affair; its questions and calls are the run's.
        let event = match event {
            Event::Within { within: Event::NodeStarted { .. }, .. } => return,
            Event::Within { node, within: Event::NodeCompleted { node: inner, failure, .. }, .. } => {
                return self.seen().ended.push((format!("{node}.{inner}"), how_ended(*failure)));
            }
            Event::Within { within, .. } => return self.take_note(within),
            event => event,
        };
        let mut seen = self.seen();
        match event {
            Event::NodeStarted { node, turn, .. } if seen.nodes.iter().all(|(known, _)| known != turn) => {
                seen.nodes.push((*turn, (*node).to_owned()));
            }
            Event::NodeCompleted { node, failure, .. } => {
                seen.ended.push(((*node).to_owned(), how_ended(*failure)));
            }
            Event::Asked { question } => {
                seen.told.push(Pause {
                    node: question.node.clone(),
                    value: question.text.clone(),
                    options: question.options.clone(),
                    call: question.call.clone(),
                });
                // A question right after the call of a tool is the tool's own.
                if let Some(call) = seen.calls.iter_mut().rev().find(|call| call.node == question.node) {
                    call.asked = true;
                }
            }
            Event::ToolCalled { node, tool, arguments, usage, .. } => {
                let repeats = seen.calls.iter().any(|call| call.asked && call.node == *node && call.tool == *tool);
                seen.calls.iter_mut().for_each(|call| call.asked &= call.node != *node);
                if !repeats {
                    // A call that the host answers by itself uses nothing.
                    let reached = usage.calls > 0;
                    seen.calls.push(Call {
                        node: (*node).to_owned(),
                        tool: (*tool).to_owned(),
                        arguments: requests::arguments(arguments),
                        reached,
                        asked: false,
                    });
                }
            }
            _ => {}
        }
    }
}

/// How a node ended.
fn how_ended(failure: Option<&str>) -> &'static str {
    match failure {
        None => "success",
        Some(reason) if reason.contains("timed out after") => "timeout",
        Some(_) => "failed",
    }
}

#[async_trait]
impl People for Witness {
    async fn ask(&self, question: &Question) -> Option<String> {
        let asked = Asked::new(self, question);
        asked.is_next().await;
        let mut seen = self.seen();
        seen.came(question);
        let answer = seen.answer(question);
        if answer.is_none() {
            seen.order.leave_open();
        }
        drop(seen);
        answer
    }
}
