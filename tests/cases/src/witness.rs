//! Watches a run: the nodes that ran, the questions that were put, the tools that were reached. Answers the questions
//! with what the case holds ready.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use hotcell_graph::Value;
use hotcell_runtime::{ClientCall, Event, Observer, People, Question, Turn};

use crate::case_file::Answer;

use crate::observed::{Pause, ToolInvocation};
use crate::requests;

/// The one who watches and answers. A run that goes on after a pause may have the same witness.
#[derive(Debug, Default)]
pub struct Witness(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    answers: VecDeque<Answer>,
    nodes: Vec<(Turn, String)>,
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
    /// A witness that gives these answers, one for each question.
    pub fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        Witness(Mutex::new(Seen { answers: answers.into_iter().collect(), ..Seen::default() }))
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
        let waits = seen.pauses.iter().map(|pause| (&pause.node, "paused"));
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
        self.seen().pauses.clone()
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

impl Observer for Witness {
    fn event(&self, event: &Event<'_>) {
        // The nodes of an agent that a node called are its own affair; its questions and calls are the run's.
        let event = match event {
            Event::Within { within: Event::NodeStarted { .. }, .. } => return,
            Event::Within { node, within: Event::NodeCompleted { node: inner, failure, .. }, .. } => {
                return self.seen().ended.push((format!("{node}.{inner}"), how_ended(*failure)));
            }
            Event::Within { within, .. } => return self.event(within),
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
                seen.pauses.push(Pause {
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
        let mut seen = self.seen();
        // What a client hands in answers the call of that tool, and a text everything else.
        let fits = match (seen.answers.front()?, &question.call) {
            (Answer::Client(answer), Some(call)) => answer.tool == call.tool,
            (Answer::Text(_), None) => true,
            _ => false,
        };
        if !fits {
            return None;
        }
        Some(match seen.answers.pop_front()? {
            Answer::Text(text) => text,
            Answer::Client(answer) => ClientCall::answer(match answer.error {
                Some(error) => Err(error),
                None => Ok(answer.result.as_ref().map(Value::from).unwrap_or_default()),
            }),
        })
    }
}
