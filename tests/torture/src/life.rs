//! The life of one process: it is started, watched, and perhaps killed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::world::World;

/// No process of a scenario needs this long; one that does hangs.
const LONGEST: Duration = Duration::from_secs(180);
const LOOK: Duration = Duration::from_micros(300);

/// When and how a process is killed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kill {
    pub(crate) moment: Moment,
    pub(crate) signal: Signal,
}

/// A moment in the life of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Moment {
    /// So long after its start
    After(Duration),
    /// So long after it told so many events
    Events(usize, Duration),
    /// So long after it made so many requests
    Requests(usize, Duration),
}

/// What happens to a process.
pub(crate) enum Disturbance {
    Kill(Kill),
    /// Another process is started that wants the same run
    Rival(Moment, Box<Command>),
}

/// What is known of a process that is over.
pub(crate) struct Life {
    /// Its exit code; none if a signal ended it
    pub(crate) code: Option<i32>,
    /// Whether it was sent a signal in time
    pub(crate) killed: bool,
    /// Whether the world refused to tell it what tools there are
    pub(crate) refused: bool,
    /// Whether it had a rival
    pub(crate) rivalled: bool,
    /// Whether it had to be ended because it did not end
    pub(crate) hung: bool,
    pub(crate) events: Vec<Value>,
    pub(crate) elapsed: Duration,
}

/// The states that were seen before nodes, by graph and node.
pub(crate) type States = BTreeMap<String, BTreeSet<String>>;

/// Runs a command to its end, or to the moment at which it is killed. What it says on standard error goes to `told`.
pub(crate) fn live(
    mut command: Command,
    world: &World,
    mut disturbance: Option<Disturbance>,
    told: &Path,
) -> Result<Life, String> {
    let problem = |error: std::io::Error| error.to_string();
    world.ledger().begin_life();
    let (requests_before, refusals_before) = (world.requests(), world.refusals());
    let begun = Instant::now();
    let mut child =
        command.stdout(Stdio::piped()).stderr(File::create(told).map_err(problem)?).spawn().map_err(problem)?;
    let events: Arc<Mutex<Vec<Value>>> = Arc::default();
    let read = child.stdout.take().map(|stdout| {
        let events = Arc::clone(&events);
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // What the process was writing when it died is no line.
                if let Ok(event) = serde_json::from_str(&line) {
                    events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
                }
            }
        })
    });
    let count = || events.lock().unwrap_or_else(PoisonError::into_inner).len();
    let (mut killed, mut hung) = (false, false);
    let mut rival: Option<Child> = None;
    let mut due = None;
    let mut status = None;
    let mut elapsed = Duration::ZERO;
    loop {
        if status.is_none() {
            status = child.try_wait().map_err(problem)?;
            elapsed = begun.elapsed();
        }
        let rival_is_over = match rival.as_mut() {
            Some(rival) => rival.try_wait().map_err(problem)?.is_some(),
            None => true,
        };
        if status.is_some() && rival_is_over {
            break;
        }
        if let (Some(coming), None) = (&mut disturbance, status) {
            let moment = match coming {
                Disturbance::Kill(kill) => kill.moment,
                Disturbance::Rival(moment, _) => *moment,
            };
            due = due.or_else(|| match moment {
                Moment::After(pause) => Some(begun + pause),
                Moment::Events(wanted, pause) => (count() >= wanted).then(|| Instant::now() + pause),
                Moment::Requests(wanted, pause) => {
                    (world.requests() - requests_before >= wanted).then(|| Instant::now() + pause)
                }
            });
            if due.is_some_and(|due| Instant::now() >= due) {
                match coming {
                    Disturbance::Kill(kill) => killed = signal(&child, kill.signal),
                    Disturbance::Rival(_, command) => {
                        rival = Some(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().map_err(problem)?);
                    }
                }
                disturbance = None;
            }
        }
        if begun.elapsed() > LONGEST {
            hung = true;
            // The one that is over already cannot be killed, which is no news.
            let _ = child.kill();
            let _ = rival.as_mut().map(Child::kill);
        }
        std::thread::sleep(LOOK);
    }
    let code = status.and_then(|status| status.code());
    if let Some(read) = read {
        let _ = read.join();
    }
    world.settle().map_err(problem)?;
    let events = std::mem::take(&mut *events.lock().unwrap_or_else(PoisonError::into_inner));
    let refused = world.refusals() > refusals_before;
    Ok(Life { code, killed, refused, rivalled: rival.is_some(), hung, events, elapsed })
}

/// Whether there was somebody to send it to: a process that is not waited for keeps its number.
fn signal(child: &Child, signal: Signal) -> bool {
    kill_process(Pid::from_child(child), signal).is_ok()
}

/// Adds the states that a process told on standard error.
pub(crate) fn states(text: &str, states: &mut States) {
    for line in text.lines() {
        let Some((_, place)) = line.split_once("TRACE hotcell::graph: ") else { continue };
        let Some((node, state)) = place.split_once(": state ") else { continue };
        // A line that was cut off by death is no state.
        if let Ok(mut state) = serde_json::from_str::<Value>(state) {
            // When a run began is no result of it.
            if let Some(keys) = state.as_object_mut() {
                keys.remove("__now__");
            }
            states.entry(node.to_owned()).or_default().insert(state.to_string());
        }
    }
}

/// The turns of the run's own nodes that began, or that were told to be committed.
pub(crate) fn turns(events: &[Value], kind: &str) -> BTreeSet<u64> {
    events.iter().filter(|event| event["event"] == kind).filter_map(|event| event["turn"].as_u64()).collect()
}
