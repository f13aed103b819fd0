//! Options that commands about agents have in common.

use std::path::PathBuf;

use clap::Args;

/// What agents are run with that their files don't bring. A command whose trust goes less far, or further, says so by its own
/// help text.
#[derive(Debug, Default, Args)]
pub(crate) struct RunWith {
    /// Default model for nodes that don't set one, as `provider:model`
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) more: MorePlugins,
    /// Trust the grants in the agents' `hotcell.toml`
    #[arg(long)]
    pub(crate) trust: bool,
}

/// Where plugins are looked for beside the folders that are searched anyway.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct MorePlugins {
    /// Additional plugin folder; repeatable
    #[arg(long = "plugins", value_name = "DIR")]
    pub(crate) plugins: Vec<PathBuf>,
}

/// Which of the agents of a file is meant.
#[derive(Debug, Default, Args)]
pub(crate) struct WhichAgent {
    /// Agent to use, if the file defines several
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
}

/// Where the data goes that a command makes.
#[derive(Debug, Default, Args)]
pub(crate) struct OutputFile {
    /// Output file [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}
