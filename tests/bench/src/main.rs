//! Measures hotcell beside what it replaces: `hotcell-bench [NAME...] [--json] [--rounds N]`.
//!
//! The alternatives run the same work in the same process run, interleaved round by round, because machines are noisy:
//! ratios are what counts, medians are what is printed.

mod measure;
mod table;
mod work;

use std::process::ExitCode;

use clap::Parser;

/// Measures hotcell beside what it replaces, on this machine, in this run.
#[derive(Parser)]
#[command(name = "hotcell-bench")]
struct Arguments {
    /// What to measure; everything if nothing is named
    names: Vec<String>,
    /// Prints JSON lines instead of a table
    #[arg(long)]
    json: bool,
    /// How often each piece of work is repeated
    #[arg(long, default_value_t = 20)]
    rounds: usize,
    /// Lists what can be measured
    #[arg(long)]
    list: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.list {
        for work in work::all() {
            table::line(&format!("{:<16} {}", work.name, work.about));
        }
        return ExitCode::SUCCESS;
    }
    let known = work::all();
    for name in &arguments.names {
        if !known.iter().any(|work| work.name == name) {
            table::problem(&format!("there is no benchmark `{name}`; `--list` shows what there is"));
            return ExitCode::from(2);
        }
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            table::problem(&format!("cannot start: {error}"));
            return ExitCode::FAILURE;
        }
    };
    if let Ok(journal) = std::env::var(work::waiting::ALONE) {
        return match runtime.block_on(work::waiting::each(&journal)) {
            Ok(bytes) => {
                table::line(&bytes.to_string());
                ExitCode::SUCCESS
            }
            Err(error) => {
                table::problem(&error.to_string());
                ExitCode::FAILURE
            }
        };
    }
    let mut failed = false;
    for work in known {
        if !arguments.names.is_empty() && !arguments.names.iter().any(|name| name == work.name) {
            continue;
        }
        match runtime.block_on((work.run)(arguments.rounds.max(3))) {
            Ok(results) if arguments.json => table::json(work.name, &results),
            Ok(results) => table::print(work.name, work.about, &results),
            Err(error) => {
                failed = true;
                table::problem(&format!("{}: {error}", work.name));
            }
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
