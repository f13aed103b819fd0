//! `hotcell plugin attack`: hostile guests against this machine, this build and the limits of a folder; and hostile folders.

mod folders;

use std::path::Path;

use hotcell_budget::Budget;
use hotcell_harness::{ATTACK_NAME, Attack, Attacked, NEIGHBOUR_NAME, Siege, Stop, built_in_attacks, read_attacks};

use hotcell_runtime::Host;

use super::{Context, Desk, print};
use crate::arguments::PluginFolders;
use crate::exit::{Exit, Failure};
use crate::narration::short;
use crate::screen::{ERROR, GOOD};
use crate::table::{Align, Table};
use crate::untrusted::one_line;

pub(super) fn perform(context: &Context, hostile: Option<&Path>, folders: &PluginFolders) -> Result<Exit, Failure> {
    let attacks = match hostile {
        Some(folder) => read_attacks(folder),
        None => built_in_attacks(),
    };
    let attacks = attacks.map_err(|error| Failure::refused(one_line(&error.to_string(), 1_000)))?;
    if attacks.is_empty() {
        return Err(Failure::refused("there is no `.wat` or `.wasm` file in that folder"));
    }
    let desk = Desk::new(context, folders)?;
    let settings = desk.folder.settings();
    let budget = |name| settings.budget(name, Budget::default()).map_err(Failure::refused);
    let siege = Siege::new(hotcell_runtime::cells_cache(), budget(ATTACK_NAME)?, budget(NEIGHBOUR_NAME)?)
        .map_err(|error| Failure::failed(error.to_string()))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(error.to_string()))?;

    let colour = context.colours_output();
    let painted =
        |style: anstyle::Style, text: &str| if colour { format!("{style}{text}{style:#}") } else { text.to_owned() };
    let mut table = Table::new([
        ("", Align::Left),
        ("GUEST", Align::Left),
        ("TRIES", Align::Left),
        ("STOPPED BY", Align::Left),
        ("TOOK", Align::Right),
        ("NEIGHBOUR", Align::Right),
    ]);
    let mut problems = Vec::new();
    for attack in &attacks {
        if context.screen.is_terminal() {
            context.screen.working(&format!("attacking with {}", one_line(&attack.name, 100)));
        }
        let attacked = runtime.block_on(siege.attack(attack));
        table.row([
            if attacked.passed { painted(GOOD, "ok") } else { painted(ERROR, "FAIL") },
            one_line(&attack.name, 40),
            one_line(&attack.tries, 80),
            attacked.stopped.map_or_else(|| "nothing".to_owned(), |stop| stop.word().into_owned()),
            short(attacked.took),
            short(attacked.neighbour.slowest),
        ]);
        problems.extend(problem(attack, &attacked));
    }
    context.screen.worked();
    print(&table.lines(0, str::to_owned).join("\n"))?;
    for problem in &problems {
        print(&format!("\n{problem}"))?;
    }
    let failed = problems.len();
    print(&format!("\n{} guests were stopped as expected, {failed} were not", attacks.len() - failed))?;
    let failed = failed + if hostile.is_none() { against_folders(&desk.host, &painted)? } else { 0 };
    Ok(if failed > 0 { Exit::Failed } else { Exit::Done })
}

/// Tries the hostile folders, and gives how many were not stopped as expected.
fn against_folders(host: &Host, painted: &dyn Fn(anstyle::Style, &str) -> String) -> Result<usize, Failure> {
    let mut table = Table::new([("", Align::Left), ("FOLDER", Align::Left), ("TRIES", Align::Left)]);
    let mut problems = Vec::new();
    for attack in &folders::ATTACKS {
        let (passed, said) = match attack.attempt(host) {
            Ok(attacked) => (attacked.passed, attacked.said),
            Err(reason) => (false, format!("it could not be made: {reason}")),
        };
        let word = if passed { painted(GOOD, "ok") } else { painted(ERROR, "FAIL") };
        table.row([word, attack.name.to_owned(), attack.tries.to_owned()]);
        if !passed {
            let said = one_line(&said, 500);
            problems.push(format!("{}: `{}` had to be said; it was: {said}", attack.name, attack.expects));
        }
    }
    print(&format!("\n{}", table.lines(0, str::to_owned).join("\n")))?;
    for problem in &problems {
        print(&format!("\n{problem}"))?;
    }
    let failed = problems.len();
    print(&format!("\n{} folders were stopped as expected, {failed} were not", folders::ATTACKS.len() - failed))?;
    Ok(failed)
}

/// What is wrong about how an attack ended.
fn problem(attack: &Attack, attacked: &Attacked) -> Option<String> {
    if attacked.passed {
        return None;
    }
    let name = one_line(&attack.name, 100);
    if let Some(failure) = &attacked.neighbour.failed {
        return Some(format!("{name}: its neighbour did not go on: {}", one_line(failure, 500)));
    }
    let expected: Vec<String> = attack.expects.iter().map(|stop: &Stop| stop.word().into_owned()).collect();
    let expected = if expected.is_empty() { "anything".to_owned() } else { expected.join(" or ") };
    Some(format!("{name}: {expected} had to stop it; {}", one_line(&attacked.detail, 500)))
}
