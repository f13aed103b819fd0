//! The command line of recorded runs.

use std::time::Duration;

use clap::{Args, Subcommand};
use hotcell_graph::Value;
use hotcell_graph::value::parse_json;
use hotcell_runtime::{Outward, RevisionChoice, RunStatus};

use super::{Far, MorePlugins, RunWith, Session, TRUST_ONE, age, listen_address};

#[derive(Debug, Args)]
pub(crate) struct Runs {
    #[command(flatten)]
    pub(crate) far: Far,
    #[command(subcommand)]
    pub(crate) command: RunsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// List runs, newest first
    List {
        #[command(flatten)]
        which: WhichRuns,
        /// Maximum number of runs to show
        #[arg(long, default_value_t = 50, value_name = "N")]
        limit: usize,
        /// Start of the page, as printed below the previous page
        #[arg(long, value_name = "PLACE")]
        after: Option<String>,
        /// Write one JSON line per run
        #[arg(long)]
        json: bool,
    },
    /// Remove finished runs and reclaim their disk space
    Prune {
        #[command(flatten)]
        which: WhichRuns,
    },
    /// Show a run node by node
    Show {
        /// Run id, or a unique prefix of it
        run: String,
        /// Write one JSON object
        #[arg(long)]
        json: bool,
        /// List every entry of the run with its number, place and kind
        #[arg(long, conflicts_with = "json")]
        entries: bool,
    },
    /// Fork a run at an entry and continue from there
    ///
    /// The fork is a new run. It starts with the entries of the run up to that one; models, tools and people that answered
    /// before are not asked again. Effects outside of the fork are withheld and listed, unless `--allow-effects` allows
    /// them; a fork that cannot continue without one ends as `stopped`.
    Fork(Fork),
    /// Compare two runs place by place: first difference, state, fuel, tokens and cost
    ///
    /// Exits with 1 if the runs differ.
    Diff {
        /// Run id, or a unique prefix of it
        a: String,
        /// Run id, or a unique prefix of it
        b: String,
        /// Write one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Re-execute recorded calls of a run and compare output and fuel
    ///
    /// Each call runs in a fresh cell with the component and script that ran it, found by digest. What it took from the
    /// host comes from the recording; no network, store, model or clock is used. Exits with 1 if a call differs, cannot
    /// be found, or if nothing could be re-executed, and with 2 if the run has no recorded calls.
    Reexecute {
        /// Run id, or a unique prefix of it
        run: String,
        /// Place of one call, such as `7`, or of everything within it; see `hotcell runs show` [default: all calls]
        place: Option<String>,
        /// Write one JSON line per call, and a summary
        #[arg(long)]
        json: bool,
    },
    /// Follow a run that another process is working on, until it ends or waits
    ///
    /// Prints each node as it completes, starting with those that already have, and exits as `hotcell run` does. Where the system does
    /// not report changes to files, the journal is read once a second.
    Watch {
        /// Run id, or a unique prefix of it
        run: String,
    },
    /// Resume a run that was interrupted or has been answered
    Resume {
        /// Run id, or a unique prefix of it
        run: String,
        /// Revision to continue with: `current` (the files as they are now) or the digest of an earlier one
        #[arg(long, value_name = "REVISION", default_value = "own", hide_default_value = true, value_parser = revision)]
        revision: RevisionChoice,
        #[command(flatten)]
        session: Session,
    },
    /// Retry a failed run from the node that failed
    Retry {
        /// Run id, or a unique prefix of it
        run: String,
        /// Revision to continue with: `current` (the files as they are now) or the digest of an earlier one
        #[arg(long, value_name = "REVISION", default_value = "own", hide_default_value = true, value_parser = revision)]
        revision: RevisionChoice,
        #[command(flatten)]
        session: Session,
    },
    /// Answer an open question of a run
    Answer {
        /// Run id, or a unique prefix of it
        run: String,
        /// Question id, if several questions are open; see `hotcell runs show`
        #[arg(long, value_name = "ID")]
        question: Option<String>,
        /// Name of the person who answers a question for certain people; with `--server`
        #[arg(long, value_name = "NAME")]
        operator: Option<String>,
        /// Answer; `-` reads it from standard input
        #[arg(allow_hyphen_values = true)]
        text: String,
        /// Resume the run after answering
        #[arg(long)]
        resume: bool,
        /// Revision to continue with: `current` (the files as they are now) or the digest of an earlier one
        #[arg(
            long,
            value_name = "REVISION",
            default_value = "own",
            hide_default_value = true,
            value_parser = revision,
            requires = "resume"
        )]
        revision: RevisionChoice,
    },
    /// Receive callbacks of connectors (`mode: callback`) and resume their runs
    Listen(Listen),
    /// Pause a run until it is resumed
    ///
    /// A run that is being worked on finishes its current nodes and stops before the next ones. Answers that arrive
    /// meanwhile are kept. Only `hotcell runs resume` continues it; a server that serves its agent does not.
    Pause {
        /// Run id, or a unique prefix of it
        run: String,
    },
    /// Cancel a run permanently
    Cancel {
        /// Run id, or a unique prefix of it
        run: String,
    },
}

/// How a fork differs from its run.
#[derive(Debug, Args)]
pub(crate) struct Fork {
    /// Run id, or a unique prefix of it
    pub(crate) run: String,
    /// Number of the last entry that the fork keeps; see `hotcell runs show --entries`
    #[arg(long, value_name = "ENTRY", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) at: u64,
    /// Value of the state, as JSON or text, as if written by the node that completed with the entry; repeatable. With
    /// entry 1, an initial value of the run
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = set)]
    pub(crate) set: Vec<(String, Value)>,
    /// Input to use instead of the run's own; requires entry 1
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) input: Option<String>,
    /// Answer to the question that is open at the entry. If the entry is an answer itself, this one replaces it
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) answer: Option<String>,
    /// Question id, if several questions are open
    #[arg(long, value_name = "ID", requires = "answer")]
    pub(crate) question: Option<String>,
    /// System prompt for a node; repeatable. Implies `--allow-effects=models`
    #[arg(long = "prompt", value_name = "NODE=TEXT", value_parser = prompt)]
    pub(crate) prompts: Vec<(String, String)>,
    /// Model to ask instead of any other, as `provider:model`. Implies `--allow-effects=models`
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Revision to continue with: `current` (the files as they are now) or the digest of an earlier one
    #[arg(long, value_name = "REVISION", default_value = "own", hide_default_value = true, value_parser = revision)]
    pub(crate) revision: RevisionChoice,
    /// Effects outside of the fork that may happen: `models`, `http`, `tools`, `stores`, `connectors` [default without a
    /// list: all]
    #[arg(
        long,
        value_name = "KIND",
        value_delimiter = ',',
        num_args = 0..,
        require_equals = true,
        value_parser = outward
    )]
    pub(crate) allow_effects: Option<Vec<Outward>>,
    #[command(flatten)]
    pub(crate) more: MorePlugins,
    /// Write events to standard output as JSON lines; the last line is the `result`
    #[arg(long)]
    pub(crate) json: bool,
    /// Suppress progress output, but not warnings
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Never prompt on the terminal; the fork waits at the first question without an answer
    #[arg(long)]
    pub(crate) no_input: bool,
    #[arg(long, help = TRUST_ONE)]
    pub(crate) trust: bool,
}

/// A value of the state: JSON, or a text as it is.
fn set(text: &str) -> Result<(String, Value), String> {
    let (key, value) = text.split_once('=').ok_or("it has to be `KEY=VALUE`")?;
    Ok((key.to_owned(), parse_json(value).unwrap_or_else(|_| Value::text(value))))
}

fn prompt(text: &str) -> Result<(String, String), String> {
    let (node, prompt) = text.split_once('=').ok_or("it has to be `NODE=TEXT`")?;
    Ok((node.to_owned(), prompt.to_owned()))
}

fn outward(word: &str) -> Result<Outward, String> {
    let all = || Outward::ALL.map(Outward::as_str).join(", ");
    Outward::from_word(word).ok_or_else(|| format!("an effect is one of {}", all()))
}

/// Filters for runs. Several filters narrow each other down.
#[derive(Debug, Args)]
pub(crate) struct WhichRuns {
    /// Only runs with this status; repeatable
    #[arg(long = "status", value_name = "STATUS", value_parser = run_status)]
    pub(crate) statuses: Vec<RunStatus>,
    /// Only runs of this agent or graph
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Only runs of this thread
    #[arg(long, value_name = "NAME")]
    pub(crate) thread: Option<String>,
    /// Only runs started within this time, such as `90m`, `12h` or `7d`
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub(crate) newer_than: Option<Duration>,
    /// Only runs started longer ago than this, such as `90m`, `12h` or `7d`
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub(crate) older_than: Option<Duration>,
    /// Only runs with these words (or word prefixes) in the input, the result or the agent's name
    #[arg(long, value_name = "WORDS")]
    pub(crate) text: Option<String>,
}

fn revision(text: &str) -> Result<RevisionChoice, String> {
    match text {
        "own" => Ok(RevisionChoice::Own),
        "current" => Ok(RevisionChoice::Current),
        digest if digest.len() >= 4 && digest.chars().all(|c| c.is_ascii_hexdigit()) => {
            Ok(RevisionChoice::Digest(digest.to_lowercase()))
        }
        _ => Err("a revision is `current`, or the digest of one (at least four hexadecimal digits)".to_owned()),
    }
}

fn run_status(word: &str) -> Result<RunStatus, String> {
    let all = || RunStatus::ALL.map(RunStatus::as_str).join(", ");
    RunStatus::from_word(word).ok_or_else(|| format!("a status is one of {}", all()))
}

/// A callback is a POST of JSON with the session token that the connector passed on, as `Authorization: Bearer SESSION` or
/// `?session=SESSION`. Each token is accepted once.
#[derive(Debug, Args)]
pub(crate) struct Listen {
    /// Address to listen on; port 0 picks a free port
    #[arg(default_value = "127.0.0.1:8090", value_name = "ADDRESS:PORT", value_parser = listen_address)]
    pub(crate) address: std::net::SocketAddr,
    #[command(flatten)]
    pub(crate) with: RunWith,
}
