//! The command line as clap sees it: names, help texts, and nothing that acts.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use hotcell_runtime::ComponentsFile;
use hotcell_runtime::RunStatus;

const EXIT_CODES: &str = "\
Exit codes:
  0    done; a run has its result
  1    a run failed, or something outside the graph did (the journal, a file)
  2    refused: a wrong command line, a graph with errors, a missing variable, no such run
  3    a run waits for a person
  130  interrupted by Ctrl-C or SIGTERM, the run can be resumed; or cancelled meanwhile";

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
    /// When to colour; `auto` colours a terminal and honours `NO_COLOR`
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", help_heading = "Global options")]
    pub(crate) color: ColourWhen,
    /// Where runs are kept: a file, or `memory` to keep nothing [default: a file in the user's state folder]
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
    /// Run a graph
    Run(Run),
    /// Check graphs without running them
    Check(Check),
    /// Draw a graph, or what happened in a run
    Graph(Graph),
    /// Write an agent in the Open Agent Specification, whatever language it is in
    Convert(Convert),
    /// See and continue runs
    #[command(subcommand)]
    Runs(Runs),
    /// Write, grant and sign plugins
    #[command(subcommand)]
    Plugin(Box<Plugin>),
    /// Offer plugins and agents as tools to programs that speak the Model Context Protocol
    Mcp(Mcp),
    /// Let the `hotcell.toml` of a folder grant what it says, or no longer
    Trust(Trust),
    /// Print a completion script for a shell
    Completions(Completions),
}

/// Serves over standard input and output, the way clients start servers, or over HTTP.
#[derive(Debug, Args)]
pub(crate) struct Mcp {
    /// Folders: their plugins are offered, and the agent in each or the agents in the folders below it
    #[arg(default_value = ".")]
    pub(crate) paths: Vec<PathBuf>,
    /// One more folder of plugins; repeatable
    #[arg(long = "plugins", value_name = "DIR")]
    pub(crate) plugins: Vec<PathBuf>,
    /// The model of nodes that name none, as `provider:model`
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Serve Streamable HTTP at this address, path `/mcp`; port 0 takes a free one. There is no login: keep it to this
    /// machine, or put something in front that has one
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) http: Option<std::net::SocketAddr>,
    /// A name by which the server may be addressed besides those of this machine; repeatable
    #[arg(long = "host", value_name = "NAME[:PORT]", requires = "http")]
    pub(crate) hosts: Vec<String>,
    /// The origin of web pages that may use it besides those of this machine; repeatable
    #[arg(long = "origin", value_name = "URL", requires = "http")]
    pub(crate) origins: Vec<String>,
    /// Let the `hotcell.toml` of the folders grant what they say
    #[arg(long)]
    pub(crate) trust: bool,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Run {
    /// A graph file, or the folder it is in
    pub(crate) path: PathBuf,
    /// What you want from the graph; `-` reads it from standard input; without one, on a terminal, you are asked for
    /// messages, and each runs the graph
    pub(crate) prompt: Option<String>,
    /// Give a variable of the graph its value; repeatable
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) variables: Vec<(String, String)>,
    /// Give fields of the state their first values, over those of the graph; the inputs of a flow
    #[arg(long, visible_alias = "inputs", value_name = "JSON")]
    pub(crate) state: Option<String>,
    /// Go on with the conversation of this name: its next run begins with the state of the one before, and where that
    /// one waits for a person, what you want is the answer
    #[arg(long, value_name = "NAME")]
    pub(crate) thread: Option<String>,
    /// Which of several agents of a file is meant
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
    /// A file with components and values that the file of the agent refers to (Open Agent Specification); `KEY=ID` gives
    /// what the file calls KEY under the id ID; repeatable
    #[arg(long = "components", value_name = "FILE[,KEY=ID...]", value_parser = components)]
    pub(crate) components: Vec<ComponentsFile>,
}

/// The text goes to standard output, and where the flow differs from the agent to standard error. What `--components` hands
/// in stays apart, so the result needs it too.
#[derive(Debug, Args)]
pub(crate) struct Convert {
    /// The file of an agent, or the folder it is in
    pub(crate) path: PathBuf,
    /// Which of several agents of a file is meant
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    #[command(flatten)]
    pub(crate) parts: Parts,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// One more folder of tool components; repeatable
    #[arg(long = "plugins", value_name = "DIR")]
    pub(crate) plugins: Vec<PathBuf>,
}

/// Options of every command that drives a run.
#[derive(Debug, Default, Args)]
pub(crate) struct Session {
    /// Answer the next question of the graph; repeatable, used in order
    #[arg(long = "answer", value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) answers: Vec<String>,
    /// The model of nodes that name none, as `provider:model`
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// One more folder of tool components; repeatable
    #[arg(long = "plugins", value_name = "DIR")]
    pub(crate) plugins: Vec<PathBuf>,
    /// Write everything that happens to standard output as JSON lines, a `result` line last
    #[arg(long)]
    pub(crate) json: bool,
    /// Do not tell what happens on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Never ask on the terminal: a question makes the run wait
    #[arg(long)]
    pub(crate) no_input: bool,
    /// Add every exchange with a model to this file
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub(crate) record: Option<PathBuf>,
    /// Answer requests to models from this file, which `--record` wrote, without any network
    #[arg(long, value_name = "FILE")]
    pub(crate) replay: Option<PathBuf>,
    /// For this run, let the `hotcell.toml` beside the graph grant what it says
    #[arg(long)]
    pub(crate) trust: bool,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Check {
    /// Graph files, or folders they are in
    #[arg(required = true)]
    pub(crate) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) parts: Parts,
    /// One more folder of tool components; repeatable
    #[arg(long = "plugins", value_name = "DIR")]
    pub(crate) plugins: Vec<PathBuf>,
    /// One JSON line for each finding, a `result` line last
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Graph {
    /// A graph file, or the folder it is in; may be left out with `--run`
    #[arg(required_unless_present = "run")]
    pub(crate) path: Option<PathBuf>,
    /// Which of several agents of a file is meant
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// The form [default: by the extension of `--output`, else mermaid]
    #[arg(long, value_name = "FORM")]
    pub(crate) format: Option<PictureFormat>,
    /// Mark what happened in this run: visits, times, the way it went
    #[arg(long, value_name = "NAME")]
    pub(crate) run: Option<String>,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// One more folder of tool components; repeatable
    #[arg(long = "plugins", value_name = "DIR")]
    pub(crate) plugins: Vec<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PictureFormat {
    /// Text that Markdown viewers draw
    Mermaid,
    /// A drawing
    Svg,
    /// Text for Graphviz
    Dot,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Runs {
    /// List runs, the newest first
    List {
        #[command(flatten)]
        which: WhichRuns,
        /// How many runs to show
        #[arg(long, default_value_t = 50, value_name = "N")]
        limit: usize,
        /// Show the next page: what the page before said to give here
        #[arg(long, value_name = "PLACE")]
        after: Option<String>,
        /// One JSON line for each run
        #[arg(long)]
        json: bool,
    },
    /// Remove runs that have ended, and give their space back
    Prune {
        #[command(flatten)]
        which: WhichRuns,
    },
    /// Show what happened in a run, node by node
    Show {
        /// The run's name, or the beginning of it
        run: String,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Go on with a run that was interrupted or has been answered
    Resume {
        /// The run's name, or the beginning of it
        run: String,
        #[command(flatten)]
        session: Session,
    },
    /// Go on with a run that failed, from the node that failed
    Retry {
        /// The run's name, or the beginning of it
        run: String,
        #[command(flatten)]
        session: Session,
    },
    /// Answer an open question of a run
    Answer {
        /// The run's name, or the beginning of it
        run: String,
        /// Which question, if several are open; `hotcell runs show` lists their ids
        #[arg(long, value_name = "ID")]
        question: Option<String>,
        /// The answer; `-` reads it from standard input
        #[arg(allow_hyphen_values = true)]
        text: String,
        /// Go on with the run at once
        #[arg(long)]
        resume: bool,
    },
    /// Take the answers that other systems send later to connectors in the mode `callback`, and go on with their runs
    Listen(Listen),
    /// Stop a run for good
    Cancel {
        /// The run's name, or the beginning of it
        run: String,
    },
}

/// Filters for runs. Several filters narrow each other down.
#[derive(Debug, Args)]
pub(crate) struct WhichRuns {
    /// Runs with this status; repeatable
    #[arg(long = "status", value_name = "STATUS", value_parser = run_status)]
    pub(crate) statuses: Vec<RunStatus>,
    /// Runs of the graph or agent with this name
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Runs of this thread
    #[arg(long, value_name = "NAME")]
    pub(crate) thread: Option<String>,
    /// Runs that were started within this time, such as `90m`, `12h` or `7d`
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub(crate) newer_than: Option<Duration>,
    /// Runs that were started before that, such as `90m`, `12h` or `7d` ago
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub(crate) older_than: Option<Duration>,
    /// Runs with these words in their input, their result or their agent's name; the beginning of a word is enough
    #[arg(long, value_name = "WORDS")]
    pub(crate) text: Option<String>,
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

/// An answer is a POST of JSON with the session that the connector handed over, as `Authorization: Bearer SESSION` or
/// `?session=SESSION`. Only who knows the session of an open request can answer it, once.
#[derive(Debug, Args)]
pub(crate) struct Listen {
    /// Where to listen; port 0 takes a free one
    #[arg(default_value = "127.0.0.1:8090", value_name = "ADDRESS:PORT")]
    pub(crate) address: std::net::SocketAddr,
    /// The model of nodes that name none, as `provider:model`
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// One more folder of plugins; repeatable
    #[arg(long = "plugins", value_name = "DIR")]
    pub(crate) plugins: Vec<PathBuf>,
    /// Let the `hotcell.toml` beside the graphs grant what they say
    #[arg(long)]
    pub(crate) trust: bool,
}

/// Where plugins are looked for, and for which agent.
#[derive(Debug, Args)]
pub(crate) struct Shelf {
    /// The folder of the agent: its `plugins`, `hotcell.toml` and `hotcell.lock`
    #[arg(long = "in", value_name = "DIR", default_value = ".")]
    pub(crate) folder: PathBuf,
    /// One more folder of plugins; repeatable
    #[arg(long = "plugins", value_name = "DIR")]
    pub(crate) plugins: Vec<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Plugin {
    /// Make a new plugin that builds and passes its test as it is
    New(PluginNew),
    /// Make the component of a plugin, check it, and show what it offers and asks for
    Build {
        /// The folder of the plugin
        #[arg(default_value = ".")]
        project: PathBuf,
    },
    /// Build a plugin and play its cases, with its fuel compared to the baseline
    Test(PluginTest),
    /// Build a plugin and measure the calls of its cases
    Bench(PluginBench),
    /// List the plugins of a folder, what they offer, and whether they may be used
    List {
        #[command(flatten)]
        shelf: Shelf,
        /// One JSON line for each plugin
        #[arg(long)]
        json: bool,
    },
    /// Show all that a plugin says about itself, and what it was granted
    Inspect {
        /// Its name, or its file
        plugin: String,
        #[command(flatten)]
        shelf: Shelf,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Put a plugin into the folder of an agent
    Add {
        /// Its component
        file: PathBuf,
        #[command(flatten)]
        shelf: Shelf,
        /// Put it in the place of the one that has its name
        #[arg(long)]
        replace: bool,
    },
    /// Give a plugin what it asks for, or less, and pin it to its component
    Grant(Grant),
    /// Take back all that a plugin was granted
    Revoke {
        /// Its name
        plugin: String,
        #[command(flatten)]
        shelf: Shelf,
    },
    /// Take a plugin out of the folder of an agent, with all that it was granted
    Remove {
        /// Its name
        plugin: String,
        #[command(flatten)]
        shelf: Shelf,
    },
    /// Check plugins against `hotcell.lock`, the contract and their signatures
    Verify {
        /// Its name; without it, all
        plugin: Option<String>,
        #[command(flatten)]
        shelf: Shelf,
        /// A public key of minisign that has to have signed them; repeatable
        #[arg(long = "key", value_name = "KEY")]
        keys: Vec<String>,
    },
    /// Run hostile guests against this set-up, and see what stops them
    ///
    /// Each is one sealed call without any grant, under the limits that `hotcell.toml` sets for a plugin named
    /// `hostile`, beside a harmless guest that has to keep answering. It exits with 1 if one of them was not stopped,
    /// or by something else than what it expects.
    Attack {
        /// A folder of `.wat` and `.wasm` files [default: the guests that hotcell brings]
        ///
        /// A guest succeeds only if it gets what it wants. A comment `;; expect: deadline or out-of-fuel` at the
        /// beginning of a `.wat` file says what has to stop it, otherwise anything may.
        hostile: Option<PathBuf>,
        #[command(flatten)]
        shelf: Shelf,
    },
    /// Sign a component; the signature is put beside it
    Sign {
        /// The component
        file: PathBuf,
        /// The file with the secret key
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
    },
    /// Make a pair of keys for signing
    Keygen {
        /// Where to put the secret key; the public one goes beside it, with `.pub`
        file: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct PluginNew {
    /// Its name, such as `weather` or `acme:weather`
    pub(crate) name: String,
    /// What it is
    #[arg(long, value_parser = ["tool", "script", "connector", "hooks", "node"], default_value = "tool")]
    pub(crate) kind: String,
    /// What it is written in
    #[arg(long, value_parser = ["rust", "python", "js", "ts", "c"], default_value = "rust")]
    pub(crate) lang: String,
    /// The folder to make [default: one with the plugin's name]
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct PluginTest {
    /// The folder of the plugin
    #[arg(default_value = ".")]
    pub(crate) project: PathBuf,
    /// Play the cases against this component, and build nothing
    #[arg(long, value_name = "FILE")]
    pub(crate) component: Option<PathBuf>,
    /// Take what the cases use now as the new baseline
    #[arg(long)]
    pub(crate) update: bool,
    /// Let HTTP requests out, and keep what comes back in the cases
    #[arg(long)]
    pub(crate) record: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PluginBench {
    /// The folder of the plugin
    #[arg(default_value = ".")]
    pub(crate) project: PathBuf,
    /// Measure this component, and build nothing
    #[arg(long, value_name = "FILE")]
    pub(crate) component: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Grant {
    /// The plugin's name
    pub(crate) plugin: String,
    #[command(flatten)]
    pub(crate) shelf: Shelf,
    /// A server it may ask, such as `https://api.example.org`, in the place of those it asks for; repeatable
    #[arg(long, value_name = "URL")]
    pub(crate) http: Vec<String>,
    /// A directory for it, as `GUEST=DIRECTORY`, with `:rw` at the end if it may write there; repeatable
    #[arg(long, value_name = "GUEST=DIR[:rw]")]
    pub(crate) fs: Vec<String>,
    /// Only this capability; repeatable
    #[arg(long, value_name = "CAPABILITY", value_parser = ["fs", "http", "env", "secret", "kv", "llm", "tool", "ask", "clock"])]
    pub(crate) only: Vec<String>,
    /// Nothing: it is used without what it asks for
    #[arg(long, conflicts_with_all = ["http", "fs", "only"])]
    pub(crate) nothing: bool,
    /// Do not ask whether this is meant
    #[arg(long, short)]
    pub(crate) yes: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Trust {
    /// The folder
    #[arg(default_value = ".")]
    pub(crate) folder: PathBuf,
    /// Do not ask whether this is meant
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Trust it no longer
    #[arg(long)]
    pub(crate) forget: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
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
