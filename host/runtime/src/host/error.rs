//! Why a host does not do what it was asked.

use std::io;
use std::path::PathBuf;

use hotcell_cells::CellsError;
use hotcell_engine::RunError;
use hotcell_journal::{JournalError, Question, RunStatus};
use hotcell_models::{ModelError, PricesError};
use thiserror::Error;

use crate::agent::LoadFailure;
use crate::knowledge::KnowledgeError;
use crate::revision::RevisionError;
use crate::revision::kept::KeptError;

/// Why a file with the user's settings for all folders cannot be used. The texts do not repeat its path.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// It cannot be read
    #[error(transparent)]
    Unreadable(#[from] io::Error),
    /// It is `config.toml`, and has invalid settings
    #[error(transparent)]
    Settings(#[from] toml::de::Error),
    /// It is `prices.json`, and not a valid price table
    #[error(transparent)]
    Prices(#[from] PricesError),
}

/// Why a host did not do what it was asked to.
#[derive(Debug, Error)]
pub enum HostError {
    /// WebAssembly cannot be used here
    #[error(transparent)]
    Cells(#[from] CellsError),
    /// The environment has invalid settings for models
    #[error(transparent)]
    Models(#[from] ModelError),
    /// The journal failed
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The run did not start or cannot continue
    #[error(transparent)]
    Run(#[from] RunError),
    /// The agent of a run can no longer be loaded
    #[error("the graph of run `{run}` cannot be loaded:\n{failure}")]
    Load {
        /// The run
        run: String,
        /// What is wrong
        #[source]
        failure: LoadFailure,
    },
    /// The question is for the operator
    #[error("question `{question}` of run `{run}` asks for a capability; only the operator may answer it")]
    OperatorOnly {
        /// The run
        run: String,
        /// The question
        question: String,
    },
    /// The answer is not a valid decision
    #[error(
        "question `{question}` of run `{run}` asks for a capability: answer `once`, `run` (for all calls of the run), `always` (written to \
         `hotcell.toml`) or `refuse`"
    )]
    NoDecision {
        /// The run
        run: String,
        /// The question
        question: String,
    },
    /// The graph of a run was changed
    #[error("`{file}` has changed since run `{run}` started; undo the change to continue, or start a new run", file = file.display())]
    Changed {
        /// The run
        run: String,
        /// The graph's file
        file: PathBuf,
    },
    /// The revision of a run is no longer stored, or is damaged
    #[error(
        "the revision {} of run `{run}` cannot be used: {cause}; `--revision current` goes on with what the files say now",
        short(.digest)
    )]
    Revision {
        /// The run
        run: String,
        /// The revision
        digest: String,
        /// What is wrong with it
        #[source]
        cause: KeptError,
    },
    /// A run has no such revision
    #[error("run `{run}` has no revision `{wanted}`; it has {}, and `current` is what the files say now", revisions(.known))]
    NoSuchRevision {
        /// The run
        run: String,
        /// What was asked for
        wanted: String,
        /// Its revisions
        known: Vec<String>,
    },
    /// The committed entries of a run do not fit the revision that it was to be moved to
    #[error(
        "run `{run}` cannot continue with this revision: {cause}; nothing was changed. Without `--revision`, it continues with its own"
    )]
    DoesNotFit {
        /// The run
        run: String,
        /// What does not fit
        cause: String,
    },
    /// Several revisions begin with this prefix of a digest
    #[error("`{wanted}` is the beginning of several revisions of run `{run}`: {}; give more of it", revisions(.found))]
    SeveralRevisions {
        /// The run
        run: String,
        /// What was asked for
        wanted: String,
        /// The revisions that begin with it
        found: Vec<String>,
    },
    /// The files that an agent was loaded from cannot be stored
    #[error(transparent)]
    Unkept(#[from] RevisionError),
    /// The user's `config.toml` or `prices.json` cannot be used
    #[error("cannot use `{file}`: {cause}", file = file.display())]
    Config {
        /// The file
        file: PathBuf,
        /// Why not
        #[source]
        cause: ConfigError,
    },
    /// A run does not wait for an answer
    #[error("{}", nothing_asked(.run, *.status))]
    NothingAsked {
        /// The run
        run: String,
        /// How it stands
        status: RunStatus,
    },
    /// A run has several open questions, or none with the given id
    #[error("{}", which_question(.run, .named.as_deref(), .open))]
    WhichQuestion {
        /// The run
        run: String,
        /// The id that was given
        named: Option<String>,
        /// The questions that are open
        open: Vec<Question>,
    },
    /// A knowledge base cannot be used
    #[error(transparent)]
    Knowledge(#[from] KnowledgeError),
    /// The work was stopped before the run started
    #[error("stopped before the run started; what is built of its knowledge bases is kept")]
    Stopped,
    /// The work was stopped while another run of its thread was in progress
    #[error("stopped while another run of the thread `{0}` was in progress; nothing was started")]
    ThreadBusy(String),
    /// The user has no home folder
    #[error("there is no home folder to keep runs in; name a file with `--journal FILE`, or `--journal memory`")]
    NoHome,
}

fn nothing_asked(run: &str, status: RunStatus) -> String {
    match status {
        RunStatus::Waiting => {
            format!("all questions of run `{run}` are answered; resume it with `hotcell runs resume {run}`")
        }
        status => format!("run `{run}` does not wait for an answer: it is `{status}`"),
    }
}

/// The beginning of a digest, for people.
pub(crate) fn short(digest: &str) -> String {
    digest.chars().take(12).collect()
}

fn revisions(known: &[String]) -> String {
    match known {
        [] => "none that was kept".to_owned(),
        known => known.iter().map(|digest| format!("`{}`", short(digest))).collect::<Vec<_>>().join(", "),
    }
}

fn which_question(run: &str, named: Option<&str>, open: &[Question]) -> String {
    let open: Vec<String> = open
        .iter()
        .map(|question| {
            let text: String = question.text.chars().take(60).collect();
            format!("{} (`{}`: {})", question.id, question.node, text.escape_debug())
        })
        .collect();
    let open = open.join(", ");
    match named {
        Some(id) => format!("run `{run}` has no open question `{id}`; open are {open}"),
        None => format!("run `{run}` has several open questions; say which one with `--question`: {open}"),
    }
}
