//! Watches a run: the nodes that ran, the questions that were put, the tools that were reached. Answers the questions
//! with what the case holds ready.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use hotcell_graph::Value;
use hotcell_runtime::{Entry, Event, Fact, Observer, People, Question, Turn};

use crate::observed::{Pause, ToolInvocation};
use crate::requests;

/// The one who watches and answers. A run that goes on after a pause may have the same witness.
#[derive(Debug, Default)]
pub struct Witness(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    answers: VecDeque<String>,
    nodes: Vec<(Turn, String)>,
    pauses: Vec<Pause>,
    calls: Vec<Call>,
}

/// A call that a model made of a tool, as the events tell it.
#[derive(Clone, Debug)]
struct Call {
    node: String,
    tool: String,
    reached: bool,
    /// Whether the tool put a question and is called once more with the answer
    asked: bool,
}

impl Witness {
    /// A witness that gives these answers, one for each question.
    pub fn new(answers: impl IntoIterator<Item = String>) -> Self {
        Witness(Mutex::new(Seen { answers: answers.into_iter().collect(), ..Seen::default() }))
    }

    /// The answers that no question came for.
    pub fn unused_answers(&self) -> Vec<String> {
        self.seen().answers.iter().cloned().collect()
    }

    /// The nodes that ran, in order; one that paused and went on is there once.
    pub fn visited(&self) -> Vec<String> {
        self.seen().nodes.iter().map(|(_, node)| node.clone()).collect()
    }

    /// Every question that was put.
    pub fn pauses(&self) -> Vec<Pause> {
        self.seen().pauses.clone()
    }

    /// The calls that reached a tool. The events say which tool and whether it was reached, the journal says with
    /// which arguments: the calls of one tool come in the same order in both.
    pub fn tool_calls(&self, journal: &[Entry]) -> Vec<ToolInvocation> {
        let mut asked_for: Vec<(String, Value)> = journal.iter().flat_map(calls_of_reply).collect();
        let mut invocations = Vec::new();
        for call in &self.seen().calls {
            let position = asked_for.iter().position(|(name, _)| *name == call.tool);
            let arguments = position.map_or(Value::Null, |position| asked_for.remove(position).1);
            if call.reached {
                invocations.push(ToolInvocation { name: call.tool.clone(), arguments });
            }
        }
        invocations
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The calls that a model's reply asks for.
fn calls_of_reply(entry: &Entry) -> Vec<(String, Value)> {
    let Fact::Effect { kind, answer, .. } = &entry.fact else { return Vec::new() };
    let calls = answer.as_object().and_then(|reply| reply.get("tool_calls")).and_then(Value::as_list);
    let (true, Some(calls)) = (kind == "model", calls) else { return Vec::new() };
    let field = |call: &Value, key: &str| Some(call.as_object()?.get(key)?.as_text()?.to_owned());
    calls
        .iter()
        .filter_map(|call| Some((field(call, "name")?, requests::arguments(&field(call, "arguments")?))))
        .collect()
}

impl Observer for Witness {
    fn event(&self, event: &Event<'_>) {
        // The nodes of an agent that a node called are its own affair; its questions and calls are the run's.
        let event = match event {
            Event::Within { within: Event::NodeStarted { .. }, .. } => return,
            Event::Within { within, .. } => return self.event(within),
            event => event,
        };
        let mut seen = self.seen();
        match event {
            Event::NodeStarted { node, turn, .. } if seen.nodes.iter().all(|(known, _)| known != turn) => {
                seen.nodes.push((*turn, (*node).to_owned()));
            }
            Event::Asked { question } => {
                seen.pauses.push(Pause {
                    node: question.node.clone(),
                    value: question.text.clone(),
                    options: question.options.clone(),
                });
                // A question right after the call of a tool is the tool's own.
                if let Some(call) = seen.calls.iter_mut().rev().find(|call| call.node == question.node) {
                    call.asked = true;
                }
            }
            Event::ToolCalled { node, tool, usage, .. } => {
                let repeats = seen.calls.iter().any(|call| call.asked && call.node == *node && call.tool == *tool);
                seen.calls.iter_mut().for_each(|call| call.asked &= call.node != *node);
                if !repeats {
                    // A call that the host answers by itself uses nothing.
                    let reached = usage.calls > 0;
                    seen.calls.push(Call { node: (*node).to_owned(), tool: (*tool).to_owned(), reached, asked: false });
                }
            }
            _ => {}
        }
    }
}

#[async_trait]
impl People for Witness {
    async fn ask(&self, _question: &Question) -> Option<String> {
        self.seen().answers.pop_front()
    }
}
