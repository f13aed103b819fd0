//! The command line of the server and its keys.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::{RunWith, age, listen_address};

/// Every agent below the folders is served, in any language. The API is the Agent Protocol; `/openapi.json` describes it.
/// On SIGTERM or Ctrl-C the server starts no more runs; runs that have not finished after `--drain` are resumed at its next start.
///
/// With `--config`, one server has several tenants, each with agents, runs, keys and limits of its own.
///
/// Without API keys, anyone who can reach the address may do anything, so only loopback addresses are accepted. As soon as a key
/// exists, every request needs one.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Serve {
    #[command(subcommand)]
    pub(crate) keys: Option<ServeCommand>,
    /// Folders with agents at any depth, or agent files
    #[arg(default_value = ".")]
    pub(crate) paths: Vec<PathBuf>,
    /// Server file with tenants, see `hotcell explain server.toml`
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["paths", "hosts", "cors_origins", "public_url", "max_runs", "rate_limit", "drain", "model", "plugins", "trust", "webhook", "webhook_servers", "groups"]
    )]
    pub(crate) config: Option<PathBuf>,
    /// Address to listen on; port 0 picks a free port [default: that of the server file, or 127.0.0.1:18820]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listen_address)]
    pub(crate) listen: Option<std::net::SocketAddr>,
    /// Additional `Host` header to accept; repeatable
    #[arg(long = "host", value_name = "NAME[:PORT]")]
    pub(crate) hosts: Vec<String>,
    /// Origin of web pages that may use the server, such as `https://app.example.com`; repeatable
    #[arg(long = "cors-origin", value_name = "ORIGIN", value_parser = web_origin)]
    pub(crate) cors_origins: Vec<String>,
    /// Base address for links in outgoing messages [default: the address it listens on]
    #[arg(long, value_name = "URL", value_parser = web_address)]
    pub(crate) public_url: Option<String>,
    /// Address to post to when a run asks a question or ends; signed with `HOTCELL_WEBHOOK_SECRET`
    #[arg(long, value_name = "URL", value_parser = web_address)]
    pub(crate) webhook: Option<String>,
    /// Server that clients may name for webhooks of their own runs, such as `https://*.example.com`; repeatable
    #[arg(long = "webhook-to", value_name = "SERVER")]
    pub(crate) webhook_servers: Vec<String>,
    /// Maximum number of runs to work on at a time
    #[arg(long, default_value_t = 1024, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_runs: u32,
    /// Maximum number of requests per second for each API key; 0 for no limit
    #[arg(long, default_value_t = 1000, value_name = "N")]
    pub(crate) rate_limit: u32,
    /// How long runs may take to finish on shutdown, such as `20s`
    #[arg(long, default_value = "20s", value_name = "TIME", value_parser = age)]
    pub(crate) drain: Duration,
    /// Group of people, such as `finance=ada,bob`; they may answer questions for `group:finance`; repeatable
    #[arg(long = "group", value_name = "NAME=PERSON,...", value_parser = group)]
    pub(crate) groups: Vec<(String, Vec<String>)>,
    /// How to detect changed agent files: `auto` (by file system events), `off`, or by polling at this interval, such as `5s` for
    /// network folders
    #[arg(long, default_value = "auto", value_name = "auto|off|TIME", value_parser = watching)]
    pub(crate) watch: hotcell_serve::Watching,
    #[command(flatten)]
    pub(crate) with: RunWith,
    /// Log format on standard error; `json` writes one object per line for every request and run
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) log_format: LogFormat,
}

/// How the log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people; warnings and errors only unless `RUST_LOG` is set
    #[default]
    Text,
    /// One JSON object per line
    Json,
}

/// How changed files are noticed.
fn watching(text: &str) -> Result<hotcell_serve::Watching, String> {
    match text {
        "auto" => Ok(hotcell_serve::Watching::Events),
        "off" => Ok(hotcell_serve::Watching::Never),
        text => age(text)
            .map(hotcell_serve::Watching::Every)
            .map_err(|_| "write `auto`, `off` or a time such as `5s`".to_owned()),
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServeCommand {
    /// Create, list and revoke API keys
    Key(ServeKeys),
}

/// A running server notices changes at its next request. Keys belong to the journal that `--journal` names, or to the server file that
/// `--config` names.
#[derive(Debug, Args)]
pub(crate) struct ServeKeys {
    #[command(subcommand)]
    pub(crate) command: ServeKey,
    /// Server file with tenants
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

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
        /// Tenant of the server file that the key belongs to
        #[arg(long, value_name = "NAME")]
        tenant: Option<hotcell_serve::TenantName>,
        /// How long the key is valid, such as `12h` or `30d` [default: until it is revoked]
        #[arg(long, value_name = "TIME", value_parser = age)]
        expires: Option<Duration>,
    },
    /// List keys with their names, roles and expiry; never the secret part
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

/// A group with its members.
fn group(text: &str) -> Result<(String, Vec<String>), String> {
    let (name, members) = text.split_once('=').ok_or("write the name and the members, such as `finance=ada,bob`")?;
    Ok((name.trim().to_owned(), members.split(',').map(|member| member.trim().to_owned()).collect()))
}

/// An origin of web pages, as browsers send it.
fn web_origin(text: &str) -> Result<String, String> {
    match hotcell_serve::is_origin(text) {
        true => Ok(text.to_owned()),
        false => Err("an origin has a scheme, a name and at most a port, such as `https://app.example.com`".to_owned()),
    }
}

/// An address of a web server.
fn web_address(text: &str) -> Result<String, String> {
    let is_web = ["http://", "https://"].iter().any(|scheme| text.len() > scheme.len() && text.starts_with(scheme));
    if is_web { Ok(text.to_owned()) } else { Err("it has to begin with `http://` or `https://`".to_owned()) }
}
