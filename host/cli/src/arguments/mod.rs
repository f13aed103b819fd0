//! The command line as clap sees it: names, help texts, and nothing that acts.

mod agents;
mod far;
mod plugin;
mod runs;
mod serve;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use hotcell_runtime::ComponentsFile;

pub(crate) use self::agents::{MorePlugins, OutputFile, RunWith, WhichAgent};
pub(crate) use self::far::Far;
pub(crate) use self::plugin::{
    Grant, Plugin, PluginBench, PluginCall, PluginFolders, PluginNew, PluginReplay, PluginStore, PluginTest,
};
pub(crate) use self::runs::{Fork, Listen, Runs, RunsCommand, WhichRuns};
pub(crate) use self::serve::{LogFormat, Serve, ServeCommand, ServeKey, ServeKeys};

/// The help text of `--trust` where one run is driven
const TRUST_ONE: &str =
    "Trust the grants in the `hotcell.toml` of the agent's own folder for this run; not those of agents that it calls";

const EXIT_CODES: &str = "\
Exit codes:
  0    success; the run completed
  1    the run failed, or the environment did (journal, files), or a node failed without
       a fallback under `--strict` (or `strict = true` under `[run]` in `hotcell.toml`)
  2    invalid usage: bad arguments, a graph with errors, a missing variable, no such run
  3    the run waits for an answer
  130  interrupted by Ctrl-C or SIGTERM (the run can be resumed), paused, or cancelled";

/// Runs declarative agent graphs. Scripts and tools run in WebAssembly cells, and can reach only what you grant.
#[derive(Debug, Parser)]
#[command(name = "hotcell", version, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Clone, Debug, Args)]
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
    /// Create a small agent to start from; it runs without a model
    New(New),
    /// Run an agent or graph
    Run(Run),
    /// Validate agents and graphs without running them
    Check(Check),
    /// Draw a graph, or the path a run took through it
    Graph(Graph),
    /// Convert an agent or graph of Loki or sherma to the Open Agent Specification
    ///
    /// What cannot be expressed there is refused with the name of the node. AgentLoom files and LeafMesh meshes are never converted;
    /// `hotcell explain agent-spec` gives the reasons. A configuration of the specification itself is written as JSON.
    Convert(Convert),
    /// Inspect agents
    #[command(subcommand)]
    Agent(Agent),
    /// Search for better settings of meshes
    #[command(subcommand)]
    Mesh(Mesh),
    /// Inspect and continue runs
    Runs(Runs),
    /// Develop, grant and sign plugins
    #[command(subcommand)]
    Plugin(Box<Plugin>),
    /// Serve plugins and agents as tools over the Model Context Protocol
    Mcp(Mcp),
    /// Serve agents and their runs over HTTP, with an inbox for questions to people
    Serve(Serve),
    /// Trust the grants in a folder's `hotcell.toml`, or revoke that trust
    Trust(Trust),
    /// Explain a file, a key or a limit, such as `hotcell.toml`, `hooks` or `fuel`
    Explain(Explain),
    /// Remove compiled code from the cache; it is compiled again when needed
    ///
    /// The cache holds at most 4 GiB, and drops entries that have not been used for 60 days. To remove runs, use `hotcell runs prune`; to remove
    /// data of plugins, use `hotcell plugin remove --purge`.
    Clean(Clean),
    /// Print a shell completion script
    Completions(Completions),
}

#[derive(Debug, Args)]
pub(crate) struct New {
    /// Name of the agent
    pub(crate) name: String,
    /// Language of the agent
    #[arg(long, value_parser = ["loki", "sherma", "agent-spec", "agentloom", "leafmesh"], default_value = "loki")]
    pub(crate) lang: String,
    /// Folder to create [default: the agent's name]
    #[arg(long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Clean {
    /// Remove only what has not been used for this long, such as `12h` or `7d`; use is recorded once a day
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub(crate) unused_for: Option<Duration>,
    /// Show how much would be removed, without removing it
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
#[command(mut_arg("trust", |trust| trust.help("Trust the grants in the folders' `hotcell.toml`")))]
pub(crate) struct Mcp {
    /// Folders whose plugins and agents are served; agents may also lie one level below
    #[arg(default_value = ".")]
    pub(crate) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) with: RunWith,
    /// Serve Streamable HTTP at this address under `/mcp`; port 0 picks a free port. There is no authentication: bind to a
    /// loopback address, or put an authenticating proxy in front
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listen_address)]
    pub(crate) http: Option<std::net::SocketAddr>,
    /// Additional `Host` header to accept; repeatable
    #[arg(long = "host", value_name = "NAME[:PORT]", requires = "http")]
    pub(crate) hosts: Vec<String>,
    /// Additional web origin to accept; repeatable
    #[arg(long = "origin", value_name = "URL", requires = "http")]
    pub(crate) origins: Vec<String>,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Run {
    /// Agent or graph file, or the folder that contains it; with `--server`, the id or name of an agent that is served
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
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) thread: Option<String>,
    #[command(flatten)]
    pub(crate) which: WhichAgent,
    #[command(flatten)]
    pub(crate) parts: Parts,
    #[command(flatten)]
    pub(crate) session: Session,
    #[command(flatten)]
    pub(crate) far: Far,
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
    #[command(flatten)]
    pub(crate) which: WhichAgent,
    #[command(flatten)]
    pub(crate) parts: Parts,
    #[command(flatten)]
    pub(crate) to: OutputFile,
    #[command(flatten)]
    pub(crate) more: MorePlugins,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Mesh {
    /// Search for better settings of a mesh, and write a proposal
    ///
    /// Settings are scored by running the scenarios of `evolution.test_scenarios`, so models are asked often; `evolution` says what is
    /// varied and how. The proposal is JSON with the fields to change for each agent. The mesh's file isn't changed.
    Evolve(Evolve),
}

#[derive(Debug, Args)]
#[command(mut_arg("trust", |trust| trust.help("Trust the grants of the mesh's folder for this command")))]
pub(crate) struct Evolve {
    /// Mesh file, or the folder that contains it
    pub(crate) path: PathBuf,
    #[command(flatten)]
    pub(crate) to: OutputFile,
    /// Maximum number of settings to score
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) evaluations: u64,
    /// Seed of the search [default: the time]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    #[command(flatten)]
    pub(crate) with: RunWith,
}

/// Options of every command that drives a run.
#[derive(Debug, Default, Args)]
#[command(mut_arg("trust", |trust| trust.help(TRUST_ONE)))]
pub(crate) struct Session {
    /// Answer to the next question; repeatable, used in order
    #[arg(long = "answer", value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) answers: Vec<String>,
    #[command(flatten)]
    pub(crate) with: RunWith,
    /// Write events to standard output as JSON lines; the last line is the `result`
    #[arg(long)]
    pub(crate) json: bool,
    /// Suppress progress output, but not warnings
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
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Check {
    /// Agent or graph files, or folders that contain them
    #[arg(required = true)]
    pub(crate) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) parts: Parts,
    #[command(flatten)]
    pub(crate) more: MorePlugins,
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
    #[command(flatten)]
    pub(crate) which: WhichAgent,
    #[command(flatten)]
    pub(crate) more: MorePlugins,
    /// Write it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Graph {
    /// Graph file, or the folder that contains it; optional with `--run`
    #[arg(required_unless_present = "run")]
    pub(crate) path: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) which: WhichAgent,
    /// Output format [default: from the extension of `--output`, otherwise mermaid]
    #[arg(long, value_name = "FORM")]
    pub(crate) format: Option<PictureFormat>,
    /// Annotate the graph with this run: visits, durations, edges taken
    #[arg(long, value_name = "NAME")]
    pub(crate) run: Option<String>,
    #[command(flatten)]
    pub(crate) to: OutputFile,
    #[command(flatten)]
    pub(crate) more: MorePlugins,
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

/// The address that a server listens on.
fn listen_address(text: &str) -> Result<std::net::SocketAddr, String> {
    text.parse().map_err(|_| "it has to be an IP address and a port, such as `127.0.0.1:8080`".to_owned())
}

fn age(text: &str) -> Result<Duration, String> {
    let wrong = || "it has to be a number with a unit, such as `20s`, `90m`, `12h` or `7d`".to_owned();
    let span: jiff::Span = text.parse().map_err(|_| wrong())?;
    let duration = span.to_duration(jiff::SpanRelativeTo::days_are_24_hours()).map_err(|_| wrong())?;
    Duration::try_from(duration).map_err(|_| wrong())
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Arguments::command().debug_assert();
    }

    /// The help texts of an option, by the commands that have it.
    fn texts_of(option: &str) -> Vec<(String, String)> {
        fn visit(command: &clap::Command, option: &str, texts: &mut Vec<(String, String)>) {
            let of_option = command.get_arguments().filter(|argument| argument.get_long() == Some(option));
            let text = |argument: &clap::Arg| argument.get_help().map(ToString::to_string).unwrap_or_default();
            texts.extend(of_option.map(|argument| (command.get_name().to_owned(), text(argument))));
            command.get_subcommands().for_each(|command| visit(command, option, texts));
        }
        let mut texts = Vec::new();
        visit(&Arguments::command(), option, &mut texts);
        texts
    }

    #[test]
    fn an_option_means_the_same_wherever_it_is() {
        let plugins = texts_of("plugins");
        assert!(plugins.len() > 10, "{plugins:?}");
        assert!(plugins.iter().all(|(_, text)| text == "Additional plugin folder; repeatable"), "{plugins:?}");
        let defaults = texts_of("model").into_iter().filter(|(command, _)| !matches!(&**command, "fork" | "call"));
        for (command, text) in defaults {
            assert_eq!(text, "Default model for nodes that don't set one, as `provider:model`", "{command}");
        }
        for (command, text) in texts_of("trust") {
            let expected = match &*command {
                "run" | "resume" | "retry" | "fork" => TRUST_ONE,
                "mcp" => "Trust the grants in the folders' `hotcell.toml`",
                "evolve" => "Trust the grants of the mesh's folder for this command",
                _ => "Trust the grants in the agents' `hotcell.toml`",
            };
            assert_eq!(text, expected, "{command}");
        }
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
