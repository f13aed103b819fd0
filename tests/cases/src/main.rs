//! The command: `hotcell-cases [--covers TAG] [--skip TAG] [--list] [--reexecute[=TIMES]] [--pending FILE] PATH...`.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::exit;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use hotcell_cases::again::Reexecution;
use hotcell_cases::discover::{Selection, discover};
use hotcell_cases::disputed::Disputed;
use hotcell_cases::pending::Pending;
use hotcell_cases::report;
use hotcell_cases::runner::Runner;
use hotcell_cases::stage::Stage;

/// Some case failed.
const FAILED: i32 = 1;
/// The command could not do what it was asked to.
const UNUSABLE: i32 = 2;

/// Runs test cases and compares what happens with what they expect.
///
/// Ends with the line `N passed, N failed, N skipped`. Exit code 0: none failed; 1: some failed; 2: nothing was run.
#[derive(Debug, Parser)]
#[command(name = "hotcell-cases", version)]
struct Arguments {
    /// Directories that are, or hold, cases: a case is a directory with a `case.json`
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Only cases whose `covers` has this tag (or one of these, if repeated)
    #[arg(long, value_name = "TAG")]
    covers: Vec<String>,
    /// No case whose `covers` has this tag
    #[arg(long, value_name = "TAG")]
    skip: Vec<String>,
    /// Show the cases that would run, and run none
    #[arg(long)]
    list: bool,
    /// Show the cases that passed as well
    #[arg(long, short)]
    verbose: bool,
    /// How many cases run at once; cases that depend on time always run alone
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Execute every recorded call again, this often, and compare what it gives and uses; a case with a difference fails
    #[arg(long, value_name = "TIMES", num_args = 0..=1, require_equals = true, default_missing_value = "1")]
    reexecute: Option<u32>,
    /// A file with cases that hotcell does not pass yet, one to a line: they are run, and one that fails counts as skipped, one that
    /// passes as failed
    #[arg(long, value_name = "FILE")]
    pending: Option<PathBuf>,
    /// How long one run may take
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    timeout: u64,
}

fn main() {
    let code = match run(&Arguments::parse()) {
        Ok(code) => code,
        Err(problem) => {
            let _ = writeln!(io::stderr(), "error: {problem}");
            UNUSABLE
        }
    };
    // A case that was given up may still be busy on its thread; the process does not wait for it.
    exit(code);
}

fn run(arguments: &Arguments) -> Result<i32, Box<dyn std::error::Error>> {
    let cases = discover(&arguments.paths)?;
    let pending = arguments.pending.as_deref().map(Pending::read).transpose()?.unwrap_or_default();
    let selection = Selection { covers: arguments.covers.clone(), skip: arguments.skip.clone() };
    let mut output = io::stdout().lock();
    if arguments.list {
        report::list(&mut output, &cases, &selection)?;
        return Ok(0);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let reexecution = arguments.reexecute.map(|times| Arc::new(Reexecution::new(times)));
    let stage = Stage::build(runtime.handle().clone(), Duration::from_secs(arguments.timeout))?;
    let runner = Runner {
        stage: Stage { reexecution: reexecution.clone(), ..stage },
        jobs: arguments.jobs.unwrap_or(cores),
        selection,
        disputed: Disputed::of_the_project(),
    };
    let is_watched = io::stderr().is_terminal();
    let mut reports = runner.run(cases, |done, all| {
        if is_watched {
            let _ = write!(io::stderr(), "\r{done}/{all}{}", if done == all { "\r\x1b[K" } else { "" });
        }
    });
    reports.iter_mut().for_each(|report| pending.judge(report));
    if let Some(reexecution) = reexecution {
        report::again(&mut output, &reexecution.counted())?;
    }
    let totals = report::write(&mut output, &reports, arguments.verbose)?;
    output.flush()?;
    runtime.shutdown_background();
    Ok(if totals.failed == 0 { 0 } else { FAILED })
}
