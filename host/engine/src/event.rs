//! What happens in a run, as one typed stream. Narration, JSON lines, traces and metrics are views of it.

use std::time::Duration;

use hotcell_budget::{Cost, Usage};
use hotcell_journal::{NodeFailure, Question, RunId};
use serde::{Serialize, Serializer};

use crate::token::Turn;

/// Something that happened.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event<'a> {
    /// A run began, or goes on in this process
    RunStarted {
        /// The run
        run: &'a RunId,
        /// The graph's name
        graph: &'a str,
        /// The first node
        start: &'a str,
        /// Whether it had begun before
        resumed: bool,
    },
    /// A run goes on with another revision than the files would give now, or is moved to that one
    Revision {
        /// The run
        run: &'a RunId,
        /// The revision
        digest: &'a str,
        /// Whether it is what the files say now
        current: bool,
        /// The files that were changed since the revision was made
        changed: &'a [String],
    },
    /// A node's turn began
    NodeStarted {
        /// The node's id
        node: &'a str,
        /// Its type as the source calls it
        kind: &'a str,
        /// The number of the turn
        turn: Turn,
        /// How often the node was entered, this time included
        visit: u32,
        /// Where in the run the turn is: what happens in it has a place that begins with this one
        place: &'a str,
        /// The name of the agent that the node runs, where a file defines one
        #[serde(skip_serializing_if = "Option::is_none")]
        agent: Option<&'a str>,
    },
    /// An item of a map began
    ItemStarted {
        /// The node that maps
        node: &'a str,
        /// The node that is run
        branch: &'a str,
        /// The item, from 0
        item: usize,
    },
    /// A model is asked
    ModelRequested {
        /// The node
        node: &'a str,
        /// The model's name; none means the host's default
        model: Option<&'a str>,
        /// The tools that are offered
        tools: &'a [String],
    },
    /// A piece of a model's answer arrived
    ModelText {
        /// The node
        node: &'a str,
        /// The piece
        text: &'a str,
    },
    /// A model answered
    ModelAnswered {
        /// The node
        node: &'a str,
        /// The model, as `provider:name`
        model: &'a str,
        /// Where in the run it was asked
        place: &'a str,
        /// Tokens of the request
        prompt_tokens: u64,
        /// Tokens of the answer
        completion_tokens: u64,
        /// What it cost, by the price table
        #[serde(rename = "cost_nano_usd")]
        cost: Cost,
        /// How long it took
        #[serde(rename = "elapsed_ms", serialize_with = "milliseconds")]
        elapsed: Duration,
    },
    /// A model did not answer
    ModelFailed {
        /// The node
        node: &'a str,
        /// The model, as `provider:name`
        model: &'a str,
        /// Where in the run it was asked
        place: &'a str,
        /// Why
        error: &'a str,
        /// What kind of error that is: an HTTP status, or a word
        kind: &'a str,
        /// How long it took
        #[serde(rename = "elapsed_ms", serialize_with = "milliseconds")]
        elapsed: Duration,
    },
    /// A model request failed and is made again
    ModelRetried {
        /// The node
        node: &'a str,
        /// Why it failed
        error: &'a str,
        /// The attempt that follows, from 2
        attempt: u32,
    },
    /// A model called a tool
    ToolCalled {
        /// The node
        node: &'a str,
        /// The tool
        tool: &'a str,
        /// Where in the run it was called
        place: &'a str,
        /// What it was called with: a JSON object, or what the model wrote instead of one
        arguments: &'a str,
        /// Why the call was answered with an error, if it was
        error: Option<&'a str>,
        /// What the call used
        usage: &'a Usage,
        /// How long it took
        #[serde(rename = "elapsed_ms", serialize_with = "milliseconds")]
        elapsed: Duration,
    },
    /// A call into a cell is over: of a script, a tool, a hook, a node type
    CellCalled {
        /// The script or plugin
        name: &'a str,
        /// Where in the run it was called; empty for the run itself
        place: &'a str,
        /// Whether it failed
        failed: bool,
        /// What the call used, without what it had others do
        usage: &'a Usage,
        /// The capabilities that it asked for and was not granted, by the names of their grants
        denied: &'a [&'a str],
    },
    /// A script or tool came to its end and something is to be seen of it
    Noticed {
        /// The node
        node: &'a str,
        /// What happened, or what it wrote to standard error
        text: &'a str,
        /// What to do about it, if it is a warning
        help: Option<&'a str>,
    },
    /// A person is asked
    Asked {
        /// The question
        question: &'a Question,
    },
    /// A person answered
    Answered {
        /// The node that asked
        node: &'a str,
    },
    /// Nobody answered in time
    Expired {
        /// The question
        question: &'a Question,
    },
    /// Something happened in an agent that a node called
    Within {
        /// The node that called it
        node: &'a str,
        /// The agent
        agent: &'a str,
        /// What happened
        within: &'a Event<'a>,
    },
    /// A node's turn is over and appended to the journal
    NodeCompleted {
        /// The node's id
        node: &'a str,
        /// The number of the turn
        turn: Turn,
        /// Where it goes; empty when the run ends
        next: &'a [String],
        /// Why its action failed, if it did
        failure: Option<&'a str>,
        /// How long it took
        #[serde(rename = "elapsed_ms", serialize_with = "milliseconds")]
        elapsed: Duration,
        /// What its calls into cells used
        usage: &'a Usage,
        /// Where in the run the turn was
        place: &'a str,
    },
    /// A node's turn failed, and nothing says how to go on
    NodeFailed {
        /// The node's id
        node: &'a str,
        /// The number of the turn
        turn: Turn,
        /// Why
        error: &'a str,
        /// How long it took
        #[serde(rename = "elapsed_ms", serialize_with = "milliseconds")]
        elapsed: Duration,
        /// Where in the run the turn was
        place: &'a str,
    },
    /// The run has a result
    RunCompleted {
        /// The run
        run: &'a RunId,
        /// The result
        output: &'a str,
        /// The nodes that failed and after which the run went on
        failures: &'a [NodeFailure],
        /// How long it took in this process
        #[serde(rename = "elapsed_ms", serialize_with = "milliseconds")]
        elapsed: Duration,
        /// What all calls into cells used in this process
        usage: &'a Usage,
    },
    /// The run stopped with an error
    RunFailed {
        /// The run
        run: &'a RunId,
        /// The node that failed
        node: Option<&'a str>,
        /// The error
        error: &'a str,
    },
    /// The run waits for a person
    RunWaiting {
        /// The run
        run: &'a RunId,
        /// The questions that wait for an answer
        questions: &'a [Question],
    },
    /// The run came to a cap after which it goes no further
    RunStopped {
        /// The run
        run: &'a RunId,
        /// Which one
        reason: &'a str,
    },
    /// Somebody ended the run for good
    RunCancelled {
        /// The run
        run: &'a RunId,
    },
    /// Somebody paused the run; it goes on when somebody resumes it
    RunPaused {
        /// The run
        run: &'a RunId,
    },
    /// Work was stopped; the run can be resumed
    RunInterrupted {
        /// The run
        run: &'a RunId,
    },
}

/// Is told what happens, in order.
pub trait Observer: Send + Sync {
    /// Called on the engine's own path: it has to be quick.
    fn event(&self, event: &Event<'_>);

    /// Whether pieces of a model's answer are wanted as they arrive; without it, requests are not streamed.
    fn wants_text(&self) -> bool {
        false
    }
}

fn milliseconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((duration.as_secs_f64() * 1e6).round() / 1e3)
}
