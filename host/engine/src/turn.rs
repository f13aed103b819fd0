//! A node's turn: what it may do to the outside, and the memory of what it did.
//!
//! Everything outside that answers within a turn is an effect with a number. Answers are committed, so a turn that is
//! repeated after a crash, or after a person answered hours later, gets the same answers at the same numbers and goes
//! on where it stopped, without asking anyone twice.

use std::collections::HashMap;
use std::future::Future;

use std::sync::{Arc, Mutex, PoisonError};

use hotcell_budget::Usage;
use hotcell_graph::ir::Graph;
use hotcell_graph::{Key, Value};

use crate::event::Event;
use crate::journal::{Entry, Fact, Journal, JournalError, Place, Question, RunId};
use crate::ports::Ports;

/// Why a turn has no result.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The node failed
    Failed(String),
    /// It waits for a person
    Waiting,
    /// The journal failed: nothing may go on
    Journal(JournalError),
}

impl From<JournalError> for Stop {
    fn from(error: JournalError) -> Self {
        Stop::Journal(error)
    }
}

/// What all turns of a run share.
pub(crate) struct RunContext {
    pub(crate) graph: Arc<Graph>,
    pub(crate) run: RunId,
    pub(crate) ports: Ports,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) variables: Arc<[(Key, String)]>,
    pub(crate) remembered: Mutex<Remembered>,
}

/// What is known of turns that began in an earlier process.
#[derive(Default)]
pub(crate) struct Remembered {
    effects: HashMap<(Place, u32), Value>,
    answers: HashMap<(Place, u32), Option<String>>,
}

impl Remembered {
    pub(crate) fn add(&mut self, entry: Entry) {
        match entry.fact {
            Fact::Effect { number, answer, .. } => {
                self.effects.insert((entry.place, number), answer);
            }
            Fact::Asked { number, .. } => {
                self.answers.entry((entry.place, number)).or_default();
            }
            Fact::Answered { number, text } => {
                self.answers.insert((entry.place, number), Some(text));
            }
            Fact::Completed(_) => {}
        }
    }
}

/// One node's turn, or one item of a map within it.
pub(crate) struct NodeTurn {
    pub(crate) context: Arc<RunContext>,
    pub(crate) place: Place,
    pub(crate) node: Key,
    pub(crate) usage: Usage,
    number: u32,
}

impl NodeTurn {
    pub(crate) fn new(context: Arc<RunContext>, place: Place, node: Key) -> Self {
        NodeTurn { context, place, node, usage: Usage::default(), number: 0 }
    }

    /// A turn within this one, for a part that runs beside others and therefore needs numbers of its own.
    pub(crate) fn part(&self, part: usize, node: Key) -> Self {
        NodeTurn::new(self.context.clone(), self.place.within(part), node)
    }

    fn next_number(&mut self) -> u32 {
        let number = self.number;
        self.number += 1;
        number
    }

    pub(crate) fn emit(&self, event: &Event<'_>) {
        self.context.ports.observer.event(event);
    }

    /// The committed answer of an effect, or `perform`'s answer, which is committed before it is returned.
    /// `perform` adds what it used to the usage it is given. A failure is not committed.
    pub(crate) async fn effect<F>(
        &mut self,
        kind: &str,
        perform: impl FnOnce(Arc<RunContext>) -> F,
    ) -> Result<Value, Stop>
    where
        F: Future<Output = Result<Value, Stop>>,
    {
        let number = self.next_number();
        let known = {
            let mut remembered = self.context.remembered.lock().unwrap_or_else(PoisonError::into_inner);
            remembered.effects.remove(&(self.place.clone(), number))
        };
        if let Some(answer) = known {
            return Ok(answer);
        }
        let answer = perform(self.context.clone()).await?;
        self.commit(Fact::Effect { number, kind: kind.to_owned(), answer: answer.clone() })?;
        Ok(answer)
    }

    /// The person's answer to a question. The question is committed before the person sees it.
    pub(crate) async fn ask(&mut self, question: Question) -> Result<String, Stop> {
        let number = self.next_number();
        let known = {
            let mut remembered = self.context.remembered.lock().unwrap_or_else(PoisonError::into_inner);
            remembered.answers.remove(&(self.place.clone(), number))
        };
        match known {
            Some(Some(answer)) => return Ok(answer),
            Some(None) => {}
            None => self.commit(Fact::Asked { number, question: question.clone() })?,
        }
        self.emit(&Event::Asked { question: &question });
        let Some(text) = self.context.ports.people.ask(&question).await else {
            return Err(Stop::Waiting);
        };
        self.commit(Fact::Answered { number, text: text.clone() })?;
        self.emit(&Event::Answered { node: &question.node });
        Ok(text)
    }

    fn commit(&self, fact: Fact) -> Result<(), Stop> {
        let entry = Entry { place: self.place.clone(), fact };
        Ok(self.context.journal.append(&self.context.run, &entry)?)
    }
}
