//! The command line as clap sees it: names, help texts, and nothing that acts.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

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
    /// See and continue runs
    #[command(subcommand)]
    Runs(Runs),
    /// Print a completion script for a shell
    Completions(Completions),
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Run {
    /// A graph file, or the folder it is in
    pub(crate) path: PathBuf,
    /// What you want from the graph; `-` reads it from standard input
    pub(crate) prompt: Option<String>,
    /// Give a variable of the graph its value; repeatable
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) variables: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) session: Session,
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
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Check {
    /// Graph files, or folders they are in
    #[arg(required = true)]
    pub(crate) paths: Vec<PathBuf>,
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
        /// One JSON line for each run
        #[arg(long)]
        json: bool,
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
    /// Answer the oldest open question of a run
    Answer {
        /// The run's name, or the beginning of it
        run: String,
        /// The answer; `-` reads it from standard input
        #[arg(allow_hyphen_values = true)]
        text: String,
        /// Go on with the run at once
        #[arg(long)]
        resume: bool,
    },
    /// Stop a run for good
    Cancel {
        /// The run's name, or the beginning of it
        run: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
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
    fn a_variable_needs_a_name_and_keeps_further_equals_signs() {
        assert_eq!(variable("a=b=c"), Ok(("a".into(), "b=c".into())));
        assert_eq!(variable("a="), Ok(("a".into(), String::new())));
        assert!(variable("=b").is_err() && variable("ab").is_err());
    }
}
