//! How a run, or a graph within it, stands when it gives control back, and why it did not start.

use hotcell_budget::Account;
use hotcell_graph::State;
use hotcell_graph::json_schema::SchemaProblem;
use hotcell_journal::{JournalError, Question, RunId, RunStatus};
use thiserror::Error;

use crate::branch::WriteError;
use crate::fork_error::ForkError;
use crate::ports::PortError;

/// Why structured input cannot be taken.
#[derive(Debug, Error)]
pub enum InputMisfit {
    /// What the graph declares is no schema
    #[error("the input cannot be checked: `input_schema` is not a JSON schema that can be used: {0}")]
    Schema(#[source] SchemaProblem),
    /// It does not fit; the text names what is wrong, by its place
    #[error("the input does not fit the `input_schema`: {0}")]
    Value(String),
}

/// Why a run did not start or cannot go on.
#[derive(Debug, Error)]
pub enum RunError {
    /// Variables without default were not given; each with its description
    #[error("{}", missing_variables(.0))]
    MissingVariables(Vec<String>),
    /// Inputs without default were not given
    #[error("{}", missing_inputs(.0))]
    MissingInputs(Vec<String>),
    /// Variables were given that the graph does not declare; the text says which
    #[error("{0}")]
    UnknownVariables(String),
    /// Values were given that the graph does not take; the text says which
    #[error("{0}")]
    UnknownState(String),
    /// Structured input does not have the form that the graph declares
    #[error(transparent)]
    Input(#[from] InputMisfit),
    /// The values that were given cannot become state
    #[error(transparent)]
    State(#[from] WriteError),
    /// An agent that the run may call has variables without default, and its caller hands on none of that name
    #[error("{}", missing_of_agent(.agent, .variables))]
    AgentVariables {
        /// The agent
        agent: String,
        /// The variables
        variables: Vec<String>,
    },
    /// The run has ended
    #[error("run `{run}` has already ended: it is `{status}`")]
    Ended {
        /// The run
        run: RunId,
        /// How it ended
        status: RunStatus,
    },
    /// Only a run that failed can be retried
    #[error("run `{run}` is {status} and cannot be retried; only failed runs can")]
    NotFailed {
        /// The run
        run: RunId,
        /// How it stands
        status: RunStatus,
    },
    /// The journal does not fit the graph
    #[error("run `{run}` does not fit the graph: {cause}")]
    Mismatch {
        /// The run
        run: RunId,
        /// What does not fit
        cause: String,
    },
    /// The run cannot be forked so
    #[error(transparent)]
    Fork(#[from] ForkError),
    /// The graph redacts values, and there is no key with which the journal could keep them
    #[error("the graph redacts values, and the key with which the journal keeps them cannot be used: {0}")]
    NoRedactionKey(#[source] PortError),
    /// The redacted values of the run were kept with another key
    #[error(
        "the redacted values of the run cannot be read: they were kept with another key than the one beside this journal; put \
         that key back, or start a new run"
    )]
    OtherRedactionKey,
    /// The journal failed
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// How a run stands when it gives control back.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It has a result
    Completed {
        /// The result
        output: String,
    },
    /// It stopped with an error
    Failed {
        /// The node that failed
        node: Option<String>,
        /// The error; names the node
        error: String,
    },
    /// It waits for a person
    Waiting {
        /// The questions without answer
        questions: Vec<Question>,
    },
    /// It came to a cap after which it goes no further, and has not failed
    Stopped {
        /// Which one
        reason: String,
    },
    /// Work was stopped; it can be resumed
    Interrupted,
    /// Somebody paused it between two nodes; it goes on when somebody resumes it
    Paused,
    /// Somebody ended it for good
    Cancelled,
}

/// What came of a graph within a run.
pub(crate) struct Part {
    /// How it stands, with its state
    pub(crate) result: Result<(Outcome, State), RunError>,
    /// Whether it failed because a hook refused something
    pub(crate) is_refused: bool,
    /// What kind of failure it failed with, where the graph tells kinds apart
    pub(crate) failure_kind: Option<String>,
    /// Whether a model refused for good what one of its nodes asked
    pub(crate) final_refusal: bool,
    /// Who used what for it
    pub(crate) used: Account,
}

pub(crate) fn missing_variables(names: &[String]) -> String {
    let (variables, have) = if names.len() == 1 { ("variable", "has") } else { ("variables", "have") };
    format!("the {variables} {} {have} no value and no default", names.join(", "))
}

pub(crate) fn missing_inputs(names: &[String]) -> String {
    let (inputs, have) = if names.len() == 1 { ("input", "has") } else { ("inputs", "have") };
    format!("the {inputs} {} {have} no value and no default", list(names))
}

pub(crate) fn missing_of_agent(agent: &str, names: &[String]) -> String {
    let (variable, have, them) =
        if names.len() == 1 { ("variable", "has", "it") } else { ("variables", "have", "them") };
    format!(
        "the {variable} {} of agent `{agent}` {have} no default: declare {them} too in the graph that calls it, or give a default",
        names.join(", ")
    )
}

pub(crate) fn list(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
