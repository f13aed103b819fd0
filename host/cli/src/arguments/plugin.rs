//! The command line of plugins, of their authors and of operators.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};

use super::MorePlugins;

/// The languages of plugins, also by their whole names.
fn languages() -> impl TypedValueParser<Value = String> {
    let named = |name: &'static str, alias: &'static str| PossibleValue::new(name).alias(alias);
    let names = [
        PossibleValue::new("rust"),
        PossibleValue::new("python"),
        named("js", "javascript"),
        named("ts", "typescript"),
        PossibleValue::new("c"),
    ];
    PossibleValuesParser::new(names).map(|name| match name.as_str() {
        "javascript" => "js".to_owned(),
        "typescript" => "ts".to_owned(),
        _ => name,
    })
}

/// Where plugins are looked for, and for which agent.
#[derive(Debug, Args)]
pub(crate) struct PluginFolders {
    /// Agent folder (with `plugins`, `hotcell.toml` and `hotcell.lock`)
    #[arg(long = "in", value_name = "DIR", default_value = ".")]
    pub(crate) folder: PathBuf,
    #[command(flatten)]
    pub(crate) more: MorePlugins,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Plugin {
    /// Create a plugin project that builds and passes its tests
    New(PluginNew),
    /// Install the tools that build plugins in a language, once for all plugins
    ///
    /// They are installed in hotcell's data folder. A project that has its own, in `node_modules` or `.venv`, uses those.
    Setup {
        /// Programming language
        #[arg(value_parser = languages())]
        lang: String,
    },
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
    /// Call one tool of a plugin and print its result
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
        /// Also delete the data that it stored for this folder
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
    /// Run hostile guests, folders, graphs, servers and clients against this setup and report what stops them
    ///
    /// Each guest gets one sealed call without grants, under the limits that `hotcell.toml` sets for a plugin named
    /// `hostile`, while a harmless guest has to keep answering. Agents in untrusted folders, hostile servers that an agent
    /// was granted, and hostile clients of `hotcell serve` run on this machine only (127.0.0.1). Exits with 1 if one of
    /// them was not stopped, or not as expected. Run it after an upgrade; it takes about a minute.
    Attack {
        /// Folder of `.wat` and `.wasm` files, to run only these guests [default: everything built into hotcell]
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
    #[arg(long, value_parser = languages(), default_value = "rust")]
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
    /// Run only cases whose names contain this text; repeatable
    #[arg(long = "case", value_name = "TEXT", conflicts_with = "update")]
    pub(crate) cases: Vec<String>,
    /// Show logs, standard error and usage of every case, not only of those that fail
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Test this component instead of building one
    #[arg(long, value_name = "FILE")]
    pub(crate) component: Option<PathBuf>,
    /// Run the cases of a Python or JavaScript plugin without building it: not sealed, and without limits and fuel
    ///
    /// The code runs as a program on this machine, with your permissions. Run the cases without it before you publish a plugin.
    #[arg(long, conflicts_with_all = ["component", "update", "record"])]
    pub(crate) fast: bool,
    /// Store the current fuel use as the new baseline
    #[arg(long)]
    pub(crate) update: bool,
    /// Send HTTP requests for real and record the responses in the cases
    #[arg(long)]
    pub(crate) record: bool,
    /// Allow the directories outside of the cases' folder that the cases name, and with `--record` the servers
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
    /// Grant everything that it requests to a component that is not installed
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
    /// Allow the directories outside of the cases' folder that the cases name
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
    #[arg(long, value_name = "CAPABILITY", value_parser = ["fs", "http", "env", "secret", "kv", "llm", "tool", "ask", "clock", "random"])]
    pub(crate) only: Vec<String>,
    /// Grant this capability in addition to those granted before; `all` means everything the plugin requests; repeatable
    #[arg(long, value_name = "CAPABILITY", conflicts_with = "only", value_parser = ["fs", "http", "env", "secret", "kv", "llm", "tool", "ask", "clock", "random", "all"])]
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
