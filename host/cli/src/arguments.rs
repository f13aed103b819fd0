//! The command line as clap sees it: names, help texts, and nothing that acts.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use hotcell_runtime::ComponentsFile;
use hotcell_runtime::{RevisionChoice, RunStatus};

const EXIT_CODES: &str = "\
Exit codes:
  0    success; the run completed
  1    the run failed, or the environment did (journal, files), or a node failed without
       a fallback under `--strict` (or `strict = true` under `[run]` in `hotcell.toml`)
  2    invalid usage: bad arguments, a graph with errors, a missing variable, no such run
  3    the run waits for an answer
  130  interrupted by Ctrl-C or SIGTERM (the run can be resumed), or cancelled";

/// Runs declarative agent graphs. Scripts and tools run in WebAssembly cells that reach nothing they were not granted.
#[derive(Debug, Parser)]
#[command(name = "hotcell", version, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// When to use colors; `auto` means on a terminal unless `NO_COLOR` is set
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", help_heading = "Global options")]
    pub(crate) color: ColourWhen,
    /// Journal file, or `memory` to keep nothing [default: `runs.db` in the user's state folder]
    #[arg(
        long,
        global = true,
        value_name = "FILE|memory",
        env = "HOTCELL_JOURNAL",
        hide_env_values = true,
        help_heading = "Global options"
    )]
    pub(crate) journal: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColourWhen {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Create a small agent that runs without a model, to begin with
    New(New),
    /// Run an agent or graph
    Run(Run),
    /// Validate agents and graphs without running them
    Check(Check),
    /// Draw a graph, or the path a run took through it
    Graph(Graph),
    /// Convert an agent of any language to the Open Agent Specification
    Convert(Convert),
    /// Look at agents
    #[command(subcommand)]
    Agent(Agent),
    /// Inspect and continue runs
    #[command(subcommand)]
    Runs(Runs),
    /// Develop, grant and sign plugins
    #[command(subcommand)]
    Plugin(Box<Plugin>),
    /// Serve plugins and agents as tools over the Model Context Protocol
    Mcp(Mcp),
    /// Serve agents, their runs and the people who answer them over HTTP
    Serve(Serve),
    /// Trust the grants in a folder's `hotcell.toml`, or revoke that trust
    Trust(Trust),
    /// Explain a file, a key or a limit, such as `hotcell.toml`, `hooks` or `fuel`
    Explain(Explain),
    /// Remove compiled code from the cache; it is compiled again when it is needed
    ///
    /// The cache never has more than 4 GiB, and nothing in it that was not used for 60 days. Runs are removed by
    /// `hotcell runs prune`, data of plugins by `hotcell plugin remove --purge`.
    Clean(Clean),
    /// Print a shell completion script
    Completions(Completions),
}

#[derive(Debug, Args)]
pub(crate) struct New {
    /// Name of the agent
    pub(crate) name: String,
    /// Language of the agent
    #[arg(long, value_parser = ["loki", "sherma", "agent-spec"], default_value = "loki")]
    pub(crate) lang: String,
    /// Folder to create [default: the agent's name]
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Clean {
    /// Only what was not used for this time, such as `12h` or `7d`; uses are noted once a day
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub(crate) unused_for: Option<Duration>,
    /// Only show how much would be removed
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// Topic, section or key; omit it to list the topics
    pub(crate) topic: Option<String>,
}

/// Serves over standard input and output by default, or over HTTP with `--http`.
#[derive(Debug, Args)]
pub(crate) struct Mcp {
    /// Folders whose plugins and agents are served; agents may also lie one level below
    #[arg(default_value = ".")]
    pub(crate) paths: Vec<PathBuf>,
    /// Additional plugin folder; repeatable
    #[arg(long = "plugins", value_name = "DIR")]
    pub(crate) plugins: Vec<PathBuf>,
    /// Default model for nodes that don't set one, as `provider:model`
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Serve Streamable HTTP at this address under `/mcp`; port 0 picks a free port. There is no authentication: bind to a
    /// loopback address, or put an authenticating proxy in front
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) http: Option<std::net::SocketAddr>,
    /// Additional `Host` header to accept; repeatable
    #[arg(long = "host", value_name = "NAME[:PORT]", requires = "http")]
    pub(crate) hosts: Vec<String>,
    /// Additional web origin to accept; repeatable
    #[arg(long = "origin", value_name = "URL", requires = "http")]
    pub(crate) origins: Vec<String>,
    /// Trust the grants in the folders' `hotcell.toml`
    #[arg(long)]
    pub(crate) trust: bool,
}

/// Every agent below the folders is served, in any language. The API is the Agent Protocol; `/openapi.json` describes it.
/// On SIGTERM or Ctrl-C the server begins no more runs; what is not done after `--drain` goes on at its next start.
///
/// Without API keys everybody who can reach the address may do everything, so only loopback addresses are accepted. As soon as
/// there is a key, every request needs one.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Serve {
    #[command(subcommand)]
    pub(crate) keys: Option<ServeCommand>,
    /// Folders with agents at any depth, or agent files
    #[arg(default_value = ".")]
    pub(crate) paths: Vec<PathBuf>,
    /// Address to listen on; port 0 picks a free port
    #[arg(long, default_value = "127.0.0.1:18820", value_name = "ADDRESS:PORT")]
    pub(crate) listen: std::net::SocketAddr,
    /// Additional `Host` header to accept; repeatable
    #[arg(long = "host", value_name = "NAME[:PORT]")]
    pub(crate) hosts: Vec<String>,
    /// Base address for links in outgoing messages [default: the address it listens on]
    #[arg(long, value_name = "URL", value_parser = web_address)]
    pub(crate) public_url: Option<String>,
    /// Maximum number of runs to work on at a time
    #[arg(long, default_value_t = 1024, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_runs: u32,
    /// Maximum number of requests per second for each API key; 0 for no limit
    #[arg(long, default_value_t = 1000, value_name = "N")]
    pub(crate) rate_limit: u32,
    /// How long runs may take to finish on shutdown, such as `20s`
    #[arg(long, default_value = "20s", value_name = "TIME", value_parser = age)]
    pub(crate) drain: Duration,
    /// Default model for nodes that don't set one, as `provider:model`
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Additional plugin folder; repeatable
    #[arg(long = "plugins", value_name = "DIR")]
    pub(crate) plugins: Vec<PathBuf>,
    /// Trust the grants in the agents' `hotcell.toml`
    #[arg(long)]
    pub(crate) trust: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServeCommand {
    /// Create, list and revoke API keys
    #[command(subcommand)]
    Key(ServeKey),
}

/// A running server notices changes at its next request. Keys belong to the journal that `--journal` names.
#[derive(Debug, Subcommand)]
pub(crate) enum ServeKey {
    /// Create a key and print it; it cannot be shown again
    Add {
        /// What the key is for
        name: String,
        /// What the key allows: `run` (start runs, see results), `answer` (answer questions), `operate` (see everything, remove
        /// what has ended), `administer`; repeatable
        #[arg(long = "role", value_name = "ROLE", required = true)]
        roles: Vec<hotcell_serve::Role>,
        /// How long the key is valid, such as `12h` or `30d` [default: until it is revoked]
        #[arg(long, value_name = "TIME", value_parser = age)]
        expires: Option<Duration>,
    },
    /// List keys, without what proves their possession
    List {
        /// Write one JSON line per key
        #[arg(long)]
        json: bool,
    },
    /// Revoke a key
    Revoke {
        /// Key id, as listed
        id: String,
    },
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Run {
    /// Agent or graph file, or the folder that contains it
    pub(crate) path: PathBuf,
    /// Prompt; `-` reads it from standard input. Omit it on a terminal for interactive mode
    pub(crate) prompt: Option<String>,
    /// Set a variable of the graph; repeatable
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) variables: Vec<(String, String)>,
    /// Initial state as a JSON object, merged over the graph's own
    #[arg(long, value_name = "JSON")]
    pub(crate) state: Option<String>,
    /// Inputs of a flow as a JSON object
    #[arg(long, value_name = "JSON", conflicts_with = "state")]
    pub(crate) inputs: Option<String>,
    /// Conversation to continue: the run starts from the state of the thread's last run. If that one is waiting for an
    /// answer, the prompt is the answer
    #[arg(long, value_name = "NAME")]
    pub(crate) thread: Option<String>,
    /// Agent to use, if the file defines several
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    #[command(flatten)]
    pub(crate) parts: Parts,
    #[command(flatten)]
    pub(crate) session: Session,
}

/// What is handed in beside an agent's file.
#[derive(Debug, Default, Args)]
pub(crate) struct Parts {
    /// File with components and values that the agent's file refers to (Open Agent Specification); `KEY=ID` maps the
    /// file's KEY to the id ID; repeatable
    #[arg(long = "components", value_name = "FILE[,KEY=ID...]", value_parser = components)]
    pub(crate) components: Vec<ComponentsFile>,
}

/// Writes the configuration to standard output, and the differences in behavior to standard error. Components from
/// `--components` are not included, so the result needs them, too.
#[derive(Debug, Args)]
pub(crate) struct Convert {
    /// Agent file, or the folder that contains it
    pub(crate) path: PathBuf,
    /// Agent to use, if the file defines several
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    #[command(flatten)]
    pub(crate) parts: Parts,
    /// Output file [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Additional plugin folder; repeatable
    #[arg(long = "plugins", value_name = "DIR")]
    pub(crate) plugins: Vec<PathBuf>,
}

/// Options of every command that drives a run.
#[derive(Debug, Default, Args)]
pub(crate) struct Session {
    /// Answer to the next question; repeatable, used in order
    #[arg(long = "answer", value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) answers: Vec<String>,
    /// Default model for nodes that don't set one, as `provider:model`
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Additional plugin folder; repeatable
    #[arg(long = "plugins", value_name = "DIR")]
    pub(crate) plugins: Vec<PathBuf>,
    /// Write events to standard output as JSON lines; the last line is the `result`
    #[arg(long)]
    pub(crate) json: bool,
    /// Suppress progress output
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Exit with 1 if a node failed and the graph has no fallback for it, although the run completed; `strict = true` under
    /// `[run]` in `hotcell.toml` does the same
    #[arg(long)]
    pub(crate) strict: bool,
    /// Never prompt on the terminal; the run waits at the first question without an answer
    #[arg(long)]
    pub(crate) no_input: bool,
    /// Record all model requests and replies to this file
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(crate) record: Option<PathBuf>,
    /// Replay model replies from a file written by `--record`; makes no model requests
    #[arg(long, value_name = "FILE")]
    pub(crate) replay: Option<PathBuf>,
    /// Trust the grants in the `hotcell.toml` of the agent's own folder for this run; not those of agents that it calls
    #[arg(long)]
    pub(crate) trust: bool,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Check {
    /// Agent or graph files, or folders that contain them
    #[arg(required = true)]
    pub(crate) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) parts: Parts,
    /// Additional plugin folder; repeatable
    #[arg(long = "plugins", value_name = "DIR")]
    pub(crate) plugins: Vec<PathBuf>,
    /// Write findings as JSON lines; the last line is the `result`
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Agent {
    /// Show the tools, limits, schema and expected cost of an agent of any language, without running it
    Inspect(Inspect),
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Inspect {
    /// Agent or graph file, or the folder that contains it
    pub(crate) path: PathBuf,
    /// Agent to use, if the file defines several
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Additional plugin folder; repeatable
    #[arg(long = "plugins", value_name = "DIR")]
    pub(crate) plugins: Vec<PathBuf>,
    /// Write it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Graph {
    /// Graph file, or the folder that contains it; optional with `--run`
    #[arg(required_unless_present = "run")]
    pub(crate) path: Option<PathBuf>,
    /// Agent to use, if the file defines several
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Output format [default: from the extension of `--output`, otherwise mermaid]
    #[arg(long, value_name = "FORM")]
    pub(crate) format: Option<PictureFormat>,
    /// Annotate the graph with this run: visits, durations, edges taken
    #[arg(long, value_name = "NAME")]
    pub(crate) run: Option<String>,
    /// Output file [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Additional plugin folder; repeatable
    #[arg(long = "plugins", value_name = "DIR")]
    pub(crate) plugins: Vec<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PictureFormat {
    /// Mermaid text
    Mermaid,
    /// SVG image
    Svg,
    /// Graphviz text
    Dot,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Runs {
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
    },
    /// Re-execute recorded calls of a run and compare output and fuel
    ///
    /// Each call runs in a fresh cell with the component and script that ran it, found by digest. What it took from the
    /// host comes from the recording; no network, store, model or clock is used. Exits with 1 if a call differs, cannot
    /// be found, or if nothing could be re-executed.
    Reexecute {
        /// Run id, or a unique prefix of it
        run: String,
        /// Place of one call, such as `7`, or of everything within it; see `hotcell runs show` [default: all calls]
        place: Option<String>,
        /// Write one JSON line per call, and a summary
        #[arg(long)]
        json: bool,
    },
    /// Follow a run that another process works on, until it ends or waits
    ///
    /// Prints each node when it is done, beginning with those that are done already, and exits as `hotcell run` would.
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
    /// Cancel a run permanently
    Cancel {
        /// Run id, or a unique prefix of it
        run: String,
    },
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

fn age(text: &str) -> Result<Duration, String> {
    let wrong = || "an age is a number with a unit, such as `90m`, `12h`, `7d` or `4w`".to_owned();
    let span: jiff::Span = text.parse().map_err(|_| wrong())?;
    let duration = span.to_duration(jiff::SpanRelativeTo::days_are_24_hours()).map_err(|_| wrong())?;
    Duration::try_from(duration).map_err(|_| wrong())
}

/// A callback is a POST of JSON with the session token that the connector passed on, as `Authorization: Bearer SESSION` or
/// `?session=SESSION`. Each token is accepted once.
#[derive(Debug, Args)]
pub(crate) struct Listen {
    /// Address to listen on; port 0 picks a free port
    #[arg(default_value = "127.0.0.1:8090", value_name = "ADDRESS:PORT")]
    pub(crate) address: std::net::SocketAddr,
    /// Default model for nodes that don't set one, as `provider:model`
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Additional plugin folder; repeatable
    #[arg(long = "plugins", value_name = "DIR")]
    pub(crate) plugins: Vec<PathBuf>,
    /// Trust the grants in the agents' `hotcell.toml`
    #[arg(long)]
    pub(crate) trust: bool,
}

/// Where plugins are looked for, and for which agent.
#[derive(Debug, Args)]
pub(crate) struct PluginFolders {
    /// Agent folder (with `plugins`, `hotcell.toml` and `hotcell.lock`)
    #[arg(long = "in", value_name = "DIR", default_value = ".")]
    pub(crate) folder: PathBuf,
    /// Additional plugin folder; repeatable
    #[arg(long = "plugins", value_name = "DIR")]
    pub(crate) plugins: Vec<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Plugin {
    /// Create a plugin project that builds and passes its tests
    New(PluginNew),
    /// Build a plugin's component, validate it, and show what it provides and requests
    Build {
        /// Plugin folder
        #[arg(default_value = ".")]
        project: PathBuf,
    },
    /// Build a plugin, run its test cases, and compare fuel to the baseline
    Test(PluginTest),
    /// Build a plugin and benchmark the calls of its test cases
    Bench(PluginBench),
    /// Call one tool of a plugin, and print what it answers
    Call(PluginCall),
    /// Run a changed component over the recorded calls of past runs and report what differs
    Replay(PluginReplay),
    /// List a folder's plugins, what they provide, and whether they may be used
    List {
        #[command(flatten)]
        folders: PluginFolders,
        /// Write one JSON line per plugin
        #[arg(long)]
        json: bool,
    },
    /// Show a plugin's description and its grants
    Inspect {
        /// Plugin name or component file
        plugin: String,
        #[command(flatten)]
        folders: PluginFolders,
        /// Write one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Install a plugin into an agent's folder
    Add {
        /// Component file, or the name of a plugin that ships with hotcell, such as `calculator`
        file: PathBuf,
        #[command(flatten)]
        folders: PluginFolders,
        /// Replace an installed plugin of the same name
        #[arg(long)]
        replace: bool,
    },
    /// Grant a plugin the capabilities it requests, or fewer, and pin its component
    Grant(Grant),
    /// Revoke all grants of a plugin
    Revoke {
        /// Plugin name
        plugin: String,
        #[command(flatten)]
        folders: PluginFolders,
    },
    /// Uninstall a plugin from an agent's folder and revoke its grants
    Remove {
        /// Plugin name
        plugin: String,
        #[command(flatten)]
        folders: PluginFolders,
        /// Delete the data that it stored for this folder, too
        #[arg(long)]
        purge: bool,
        /// Skip the confirmation prompt of `--purge`
        #[arg(long, short, requires = "purge")]
        yes: bool,
    },
    /// List, move and adopt the data that plugins store
    #[command(subcommand)]
    Store(PluginStore),
    /// Verify plugins against `hotcell.lock`, the contract and their signatures
    Verify {
        /// Plugin name [default: all plugins]
        plugin: Option<String>,
        #[command(flatten)]
        folders: PluginFolders,
        /// Minisign public key that must have signed them; repeatable
        #[arg(long = "key", value_name = "KEY")]
        keys: Vec<String>,
    },
    /// Run hostile guests against this setup and report what stops them
    ///
    /// Each guest gets one sealed call without grants, under the limits that `hotcell.toml` sets for a plugin named
    /// `hostile`, while a harmless guest has to keep answering. Exits with 1 if a guest was not stopped, or not by the
    /// expected limit.
    Attack {
        /// Folder of `.wat` and `.wasm` files [default: built-in guests]
        ///
        /// A comment `;; expect: deadline or out-of-fuel` at the top of a `.wat` file names the limits that may stop it;
        /// without one, any limit may.
        hostile: Option<PathBuf>,
        #[command(flatten)]
        folders: PluginFolders,
    },
    /// Sign a component; writes the signature next to it
    Sign {
        /// Component file
        file: PathBuf,
        /// Secret key file
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
    },
    /// Generate a key pair for signing
    Keygen {
        /// Secret key file to write; the public key gets the suffix `.pub`
        file: PathBuf,
    },
}

/// Each store belongs to a plugin of a project, or to a plugin of the user.
#[derive(Debug, Subcommand)]
pub(crate) enum PluginStore {
    /// List all stores with their owners and sizes
    List {
        /// Write one JSON line per store
        #[arg(long)]
        json: bool,
    },
    /// Move the stores of a folder that was moved or renamed, and of everything in it
    Move {
        /// Old path of the folder
        old: PathBuf,
        /// New path of the folder
        new: PathBuf,
        /// Delete data that the plugins already have there
        #[arg(long)]
        replace: bool,
        /// Skip the confirmation prompt
        #[arg(long, short)]
        yes: bool,
    },
    /// Give a plugin the data stored under its name before stores belonged to projects
    Adopt {
        /// Plugin name
        plugin: String,
        #[command(flatten)]
        folders: PluginFolders,
        /// Delete data that the plugin already has
        #[arg(long)]
        replace: bool,
        /// Skip the confirmation prompt
        #[arg(long, short)]
        yes: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct PluginNew {
    /// Plugin name, such as `weather` or `acme:weather`
    pub(crate) name: String,
    /// Kind of plugin
    #[arg(long, value_parser = ["tool", "script", "connector", "hooks", "node"], default_value = "tool")]
    pub(crate) kind: String,
    /// Programming language
    #[arg(long, value_parser = ["rust", "python", "js", "ts", "c"], default_value = "rust")]
    pub(crate) lang: String,
    /// Folder to create [default: the plugin's name]
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct PluginTest {
    /// Plugin folder
    #[arg(default_value = ".")]
    pub(crate) project: PathBuf,
    /// Run only the cases with this in their names; repeatable
    #[arg(long = "case", value_name = "TEXT", conflicts_with = "update")]
    pub(crate) cases: Vec<String>,
    /// Show logs, standard error and usage of every case, not only of those that fail
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Test this component instead of building one
    #[arg(long, value_name = "FILE")]
    pub(crate) component: Option<PathBuf>,
    /// Store the current fuel use as the new baseline
    #[arg(long)]
    pub(crate) update: bool,
    /// Send HTTP requests for real and record the responses in the cases
    #[arg(long)]
    pub(crate) record: bool,
    /// Agree to the directories outside their folder, and with `--record` to the servers, that the cases name
    #[arg(long, short)]
    pub(crate) yes: bool,
}

/// The component gets the inputs of each recorded call, and the recorded replies of the host. Reported are calls that give
/// something else, calls that ask for more than their recording holds (a capability, a key of the state, a request), and
/// the change in fuel. Exits with 1 if a call gives something else or asks for more.
#[derive(Debug, Args)]
#[command(group(clap::ArgGroup::new("which").required(true)))]
pub(crate) struct PluginReplay {
    /// Component file
    pub(crate) component: PathBuf,
    /// Runs, by id or a unique prefix
    #[arg(long, value_name = "RUN", num_args = 1.., group = "which")]
    pub(crate) runs: Vec<String>,
    /// All runs of this agent or graph
    #[arg(long, value_name = "NAME", group = "which")]
    pub(crate) agent: Option<String>,
    /// All runs
    #[arg(long, group = "which")]
    pub(crate) all: bool,
    /// Plugin or script whose calls are replayed [default: the component's own name]
    #[arg(long, value_name = "NAME")]
    pub(crate) of: Option<String>,
    /// Write one JSON line per call, and a summary
    #[arg(long)]
    pub(crate) json: bool,
}

/// An installed plugin has what was granted to it in the folder. A component that is not installed, and the folder of a plugin
/// project, which is built, have nothing unless `--grant` gives them all that they request.
#[derive(Debug, Args)]
pub(crate) struct PluginCall {
    /// Plugin name, component file, or folder of a plugin project
    pub(crate) plugin: String,
    /// Tool
    pub(crate) tool: String,
    /// Arguments as a JSON object; `-` reads them from standard input
    #[arg(default_value = "{}", value_name = "JSON")]
    pub(crate) arguments: String,
    #[command(flatten)]
    pub(crate) folders: PluginFolders,
    /// Answer to the next question of the tool; repeatable, used in order
    #[arg(long = "answer", value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) answers: Vec<String>,
    /// Grant a component that is not installed all that it requests
    #[arg(long)]
    pub(crate) grant: bool,
    /// Default model of the plugin, as `provider:model`
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Show what the call used
    #[arg(long, short)]
    pub(crate) verbose: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PluginBench {
    /// Plugin folder
    #[arg(default_value = ".")]
    pub(crate) project: PathBuf,
    /// Benchmark this component instead of building one
    #[arg(long, value_name = "FILE")]
    pub(crate) component: Option<PathBuf>,
    /// Agree to the directories outside their folder that the cases name
    #[arg(long, short)]
    pub(crate) yes: bool,
}

/// The first grant of a plugin gives what it requests. After that, for instance after an update, it keeps what it was granted;
/// `--add` grants more.
#[derive(Debug, Args)]
pub(crate) struct Grant {
    /// Plugin name
    pub(crate) plugin: String,
    #[command(flatten)]
    pub(crate) folders: PluginFolders,
    /// Allowed HTTP origin, such as `https://api.example.org`, instead of those requested; repeatable
    #[arg(long, value_name = "URL")]
    pub(crate) http: Vec<String>,
    /// Directory to map, as `GUEST=DIRECTORY`; append `:rw` for write access; repeatable
    #[arg(long, value_name = "GUEST=DIR[:rw]")]
    pub(crate) fs: Vec<String>,
    /// Grant only this capability; repeatable
    #[arg(long, value_name = "CAPABILITY", value_parser = ["fs", "http", "env", "secret", "kv", "llm", "tool", "ask", "clock"])]
    pub(crate) only: Vec<String>,
    /// Grant this capability beside those granted before; `all` means everything the plugin requests; repeatable
    #[arg(long, value_name = "CAPABILITY", conflicts_with = "only", value_parser = ["fs", "http", "env", "secret", "kv", "llm", "tool", "ask", "clock", "all"])]
    pub(crate) add: Vec<String>,
    /// Grant nothing; the plugin runs without the capabilities it requests
    #[arg(long, conflicts_with_all = ["http", "fs", "only", "add"])]
    pub(crate) nothing: bool,
    /// Allow a version older than the one used before
    #[arg(long)]
    pub(crate) allow_older: bool,
    /// Skip the confirmation prompt
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Trust {
    /// Folder
    #[arg(default_value = ".")]
    pub(crate) folder: PathBuf,
    /// Skip the confirmation prompt
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Revoke the trust
    #[arg(long)]
    pub(crate) forget: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// Shell
    pub(crate) shell: clap_complete::Shell,
}

fn components(text: &str) -> Result<ComponentsFile, String> {
    let mut parts = text.split(',');
    let file = parts.next().filter(|file| !file.is_empty()).ok_or("it has to name a file")?;
    let rename = parts.map(|part| match part.split_once('=') {
        Some((key, id)) if !key.is_empty() && !id.is_empty() => Ok((key.to_owned(), id.to_owned())),
        _ => Err(format!("`{part}` has to be `KEY=ID`")),
    });
    Ok(ComponentsFile { file: PathBuf::from(file), rename: rename.collect::<Result<_, _>>()? })
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("it has to be `NAME=VALUE`".into()),
    }
}

/// An address of a web server.
fn web_address(text: &str) -> Result<String, String> {
    let is_web = ["http://", "https://"].iter().any(|scheme| text.len() > scheme.len() && text.starts_with(scheme));
    if is_web { Ok(text.to_owned()) } else { Err("it has to begin with `http://` or `https://`".to_owned()) }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_file_of_components_may_be_known_by_other_ids() {
        let file = |rename: &[(&str, &str)]| ComponentsFile {
            file: "parts.json".into(),
            rename: rename.iter().map(|(key, id)| ((*key).to_owned(), (*id).to_owned())).collect(),
        };
        assert_eq!(components("parts.json"), Ok(file(&[])));
        assert_eq!(components("parts.json,a=b,c=d"), Ok(file(&[("a", "b"), ("c", "d")])));
        assert!(components(",a=b").is_err() && components("parts.json,a").is_err());
    }

    #[test]
    fn a_variable_needs_a_name_and_keeps_further_equals_signs() {
        assert_eq!(variable("a=b=c"), Ok(("a".into(), "b=c".into())));
        assert_eq!(variable("a="), Ok(("a".into(), String::new())));
        assert!(variable("=b").is_err() && variable("ab").is_err());
    }
}
