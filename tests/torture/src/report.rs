//! What the torturer prints.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "printing is what this module is for")]

use crate::torture::Tally;

const HEADS: [&str; 11] = [
    "RUNS",
    "PROCESSES",
    "KILLS",
    "HIT WORK",
    "RIVALS",
    "FAULTS",
    "RETRIES",
    "GIVEN UP",
    "DIFFERENT",
    "REPEATED",
    "STUCK",
];

/// How much of a violation is shown.
const SHOWN: usize = 8;
const WIDTH: usize = 400;

pub(crate) fn line(text: &str) {
    println!("{text}");
}

pub(crate) fn problem(text: &str) {
    eprintln!("hotcell-torture: {text}");
}

/// The table, the sums, and the first violation of each scenario. Whether there was none.
pub(crate) fn table(tallies: &[(String, Result<Tally, String>)]) -> bool {
    let width = tallies.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let row = |name: &str, cells: &[String]| {
        let cells: Vec<String> =
            cells.iter().zip(HEADS).map(|(cell, head)| format!("{cell:>width$}", width = head.len())).collect();
        line(format!("{name:<width$}  {}", cells.join("  ")).trim_end());
    };
    row("SCENARIO", &HEADS.map(str::to_owned));
    let mut sums = [0; HEADS.len()];
    for (name, tally) in tallies {
        let Ok(tally) = tally else {
            row(name, &["not run".to_owned()]);
            continue;
        };
        let numbers = [
            tally.runs,
            tally.lives,
            tally.kills,
            tally.hits,
            tally.rivals,
            tally.faults,
            tally.retries,
            tally.given_up,
            tally.different,
            tally.repeated,
            tally.stuck,
        ];
        sums.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
        row(name, &numbers.map(|number| number.to_string()));
    }
    row("all", &sums.map(|number| number.to_string()));
    let mut is_clean = true;
    for (name, tally) in tallies {
        match tally {
            Err(why) => {
                is_clean = false;
                problem(&format!("{name}: {why}"));
            }
            Ok(Tally { violation: Some(violation), .. }) => {
                is_clean = false;
                problem(&format!("{name}, first violation, again with `--seed {} --only {name}`", violation.seed));
                for what in violation.what.iter().take(SHOWN) {
                    let shown: String = what.chars().take(WIDTH).collect();
                    problem(&format!("  {shown}{}", if shown.len() < what.len() { "..." } else { "" }));
                }
                problem(&format!("  all of it is in {}", violation.folder.join("torture.log").display()));
                problem(&format!("  the journal is {}", violation.folder.join("runs.db").display()));
            }
            Ok(_) => {}
        }
    }
    is_clean
}
