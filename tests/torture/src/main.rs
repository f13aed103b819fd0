//! Kills hotcell at random moments: `hotcell-torture [--kills N] [--seed S] [--only NAME]`.
//!
//! Every scenario runs once undisturbed. Then it runs again and again, in a world whose models and servers refuse,
//! break off and dawdle now and then, and its processes are killed while they work. Each run must come to the result
//! of the undisturbed one, must never ask the world again for what the journal has, and must come to rest.
//!
//! hotcell is used as a person uses it: through its command line.

mod journal;
mod life;
mod report;
mod scenario;
mod stage;
mod story;
mod torture;
mod world;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use clap::Parser;

use crate::scenario::Scenario;
use crate::stage::Tools;
use crate::torture::{Tally, torture};

/// Kills hotcell at random moments and holds what comes of it against undisturbed runs.
///
/// Exit code 0: no result differs, no committed work was repeated, nothing is stuck; 1: otherwise; 2: nothing was run.
#[derive(Parser)]
#[command(name = "hotcell-torture", version)]
struct Arguments {
    /// How many processes are killed in all
    #[arg(long, default_value_t = 40)]
    kills: usize,
    /// What chance is made from; a run that went wrong says with which seed its scenario begins with it
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only this scenario; repeatable
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Which part of the requests to the outside world goes wrong
    #[arg(long, default_value_t = 0.25, value_name = "FROM 0 TO 1")]
    faults: f64,
    /// How many scenarios run at once [default: as many as there are cores]
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// The command to kill [default: `hotcell` beside this one]
    #[arg(long, value_name = "FILE")]
    hotcell: Option<PathBuf>,
    /// Lets the world do, too, what hotcell is known not to stand
    #[arg(long)]
    unmended: bool,
    /// Shows the scenarios
    #[arg(long)]
    list: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            report::problem(&problem);
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<bool, String> {
    let mut scenarios = scenario::all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios"))?;
    if let Some(unknown) = arguments.only.iter().find(|name| !scenarios.iter().any(|known| known.name == **name)) {
        return Err(format!("there is no scenario `{unknown}`; `--list` shows what there is"));
    }
    scenarios.retain(|scenario| arguments.only.is_empty() || arguments.only.contains(&scenario.name));
    if arguments.list {
        for scenario in &scenarios {
            report::line(&format!("{:<20} {}", scenario.name, scenario.about));
        }
        return Ok(true);
    }
    if arguments.unmended {
        scenarios.iter_mut().for_each(Scenario::add_unmended);
    }
    let here = std::env::current_exe().map_err(|error| error.to_string())?;
    let hotcell = arguments.hotcell.clone().unwrap_or_else(|| here.with_file_name("hotcell"));
    if !hotcell.is_file() {
        return Err(format!("`{}` is not there; build it with `cargo build --release`", hotcell.display()));
    }
    let cache = here.with_file_name("torture-cache");
    let tools = Tools { hotcell: hotcell.canonicalize().map_err(|error| error.to_string())?, cache };
    let tallies = all(scenarios, &tools, arguments);
    Ok(report::table(&tallies))
}

/// Every scenario, several at once, in the order of their names.
fn all(scenarios: Vec<Scenario>, tools: &Tools, arguments: &Arguments) -> Vec<(String, Result<Tally, String>)> {
    let many = scenarios.len().max(1);
    // What cannot be shared evenly goes to the first ones.
    let share = |index: usize| arguments.kills / many + usize::from(index < arguments.kills % many);
    let waiting: Mutex<VecDeque<(usize, Scenario)>> = Mutex::new(scenarios.into_iter().enumerate().collect());
    let done = Mutex::new(Vec::new());
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..arguments.jobs.unwrap_or(cores) {
            scope.spawn(|| {
                while let Some((index, scenario)) = next(&waiting) {
                    let name = scenario.name.clone();
                    let tally = torture(scenario, tools, share(index), arguments.seed, arguments.faults);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((name, tally));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by(|left, right| left.0.cmp(&right.0));
    done
}

fn next(waiting: &Mutex<VecDeque<(usize, Scenario)>>) -> Option<(usize, Scenario)> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
}
