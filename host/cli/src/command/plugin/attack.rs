//! `hotcell plugin attack`: hostile guests against this machine, this build and the limits of a folder; and hostile folders, graphs,
//! servers and clients.

mod clients;
mod folders;
mod graphs;
mod ground;
mod servers;

use std::future::Future;
use std::path::Path;
use std::time::{Duration, Instant};

use hotcell_budget::Budget;
use hotcell_harness::{
    ATTACK_NAME, Attack, Attacked, NEIGHBOUR_NAME, Siege, Stop, Stranger, StrangerError, built_in_attacks,
    hostile_clients, hostile_graphs, hostile_servers, read_attacks,
};
use hotcell_runtime::Host;
use hotcell_runtime::plugins::LimitError;
use tokio::runtime::Runtime;

use self::ground::LONGEST;
use super::{Context, Desk, print};
use crate::arguments::PluginFolders;
use crate::command::threads;
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
    let refused = |error: LimitError| Failure::refused(error.to_string());
    let budget = |name| settings.budget(name, Budget::default()).map_err(refused);
    let siege = Siege::new(hotcell_runtime::cells_cache(), budget(ATTACK_NAME)?, budget(NEIGHBOUR_NAME)?)
        .map_err(|error| Failure::failed(error.to_string()))?;
    let runtime = threads::start()?;

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
    let rest = match hostile {
        Some(_) => 0,
        None => against_the_rest(context, &desk.host, &runtime, &painted)?,
    };
    // Whoever was not stopped may still be at work.
    runtime.shutdown_background();
    let failed = failed + rest;
    Ok(if failed > 0 { Exit::Failed } else { Exit::Done })
}

/// What came of somebody who is not a guest.
pub(super) struct Tried {
    name: String,
    tries: String,
    /// A part of what has to be said
    expects: String,
    took: Duration,
    /// What was said; the error is why nothing was, or what they got
    said: Result<String, String>,
}

impl Tried {
    /// Waits for what is said, but not for ever.
    async fn of<T>(stranger: &Stranger<T>, work: impl Future<Output = Result<String, String>>) -> Self {
        let begun = Instant::now();
        let late = || Err(format!("nothing had stopped it after {} s", LONGEST.as_secs()));
        let said = tokio::time::timeout(LONGEST, work).await.unwrap_or_else(|_| late());
        let Stranger { name, tries, expects, .. } = stranger;
        Tried { name: name.clone(), tries: tries.clone(), expects: expects.clone(), took: begun.elapsed(), said }
    }

    fn passed(&self) -> bool {
        self.said.as_ref().is_ok_and(|said| said.contains(&self.expects))
    }

    fn problem(&self) -> Option<String> {
        let said = match &self.said {
            Ok(said) if said.contains(&self.expects) => return None,
            Ok(said) => format!("`{}` had to be said; it was: {}", self.expects, one_line(said, 500)),
            Err(reason) => one_line(reason, 500),
        };
        Some(format!("{}: {said}", self.name))
    }
}

/// Tries everybody who is not a guest, and gives how many were not stopped as expected.
fn against_the_rest(
    context: &Context,
    host: &Host,
    runtime: &Runtime,
    painted: &dyn Fn(anstyle::Style, &str) -> String,
) -> Result<usize, Failure> {
    let unread = |error: StrangerError| Failure::failed(error.to_string());
    let working = |what: &str| {
        if context.screen.is_terminal() {
            context.screen.working(&format!("attacking with hostile {what}"));
        }
    };
    let mut failed = 0;
    let mut report = |what: What, tried: &[Tried]| -> Result<(), Failure> {
        context.screen.worked();
        failed += tried.iter().filter(|tried| !tried.passed()).count();
        tell(what, tried, painted)
    };
    working("folders");
    let tried: Vec<Tried> = folders::ATTACKS.iter().map(|attack| attack.attempt(host)).collect();
    report(("FOLDER", "folders"), &tried)?;
    working("graphs");
    let graphs = hostile_graphs().map_err(unread)?;
    let tried: Vec<Tried> = graphs.iter().map(|attack| runtime.block_on(graphs::attempt(host, attack))).collect();
    report(("GRAPH", "graphs"), &tried)?;
    // They wait more than they work.
    working("servers");
    let servers = hostile_servers().map_err(unread)?;
    let all = servers.iter().map(|attack| servers::attempt(host, attack));
    report(("SERVER", "servers"), &runtime.block_on(futures::future::join_all(all)))?;
    working("clients");
    let clients = hostile_clients().map_err(unread)?;
    let tried = runtime.block_on(clients::attempt(host, &clients)).map_err(Failure::failed)?;
    report(("CLIENT", "clients"), &tried)?;
    Ok(failed)
}

/// What some are, as a heading and in a sentence.
type What = (&'static str, &'static str);

/// Shows what came of some.
fn tell(
    (heading, what): What,
    tried: &[Tried],
    painted: &dyn Fn(anstyle::Style, &str) -> String,
) -> Result<(), Failure> {
    let mut table = Table::new([
        ("", Align::Left),
        (heading, Align::Left),
        ("TRIES", Align::Left),
        ("STOPPED BY", Align::Left),
        ("TOOK", Align::Right),
    ]);
    for one in tried {
        table.row([
            if one.passed() { painted(GOOD, "ok") } else { painted(ERROR, "FAIL") },
            one.name.clone(),
            one.tries.clone(),
            one_line(&one.expects, 60),
            short(one.took),
        ]);
    }
    print(&format!("\n{}", table.lines(0, str::to_owned).join("\n")))?;
    let problems: Vec<String> = tried.iter().filter_map(Tried::problem).collect();
    for problem in &problems {
        print(&format!("\n{problem}"))?;
    }
    print(&format!("\n{} {what} were stopped as expected, {} were not", tried.len() - problems.len(), problems.len()))
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
