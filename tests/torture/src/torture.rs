//! Runs of one scenario under fire, each held against the run that nothing disturbed.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::life::{Kill, Moment, States};
use crate::scenario::Scenario;
use crate::stage::{Stage, Tools};
use crate::story::{Fate, Story};
use crate::world::{Weather, World};

/// What came of a scenario.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) runs: usize,
    pub(crate) lives: usize,
    pub(crate) kills: usize,
    pub(crate) hits: usize,
    /// Requests that were made to go wrong, slow ones included
    pub(crate) faults: usize,
    pub(crate) retries: usize,
    pub(crate) rivals: usize,
    pub(crate) given_up: usize,
    pub(crate) different: usize,
    pub(crate) repeated: usize,
    pub(crate) stuck: usize,
    pub(crate) violation: Option<Violation>,
}

/// The first thing that must not have happened.
pub(crate) struct Violation {
    pub(crate) seed: u64,
    pub(crate) what: Vec<String>,
    /// The folder with the journal and what every process said
    pub(crate) folder: PathBuf,
}

/// What a run comes to when nothing disturbs it.
struct Reference {
    status: Value,
    outcome: Value,
    turns: Vec<String>,
    asked: BTreeSet<String>,
    states: States,
    longest: Duration,
    events: usize,
    requests: usize,
}

/// Nothing happens between processes, and questions are answered in order.
struct Peace;

impl Fate for Peace {
    fn kill(&mut self, _: usize) -> Option<Kill> {
        None
    }

    fn killed(&mut self) {}

    fn rival(&mut self, _: usize) -> Option<Moment> {
        None
    }

    fn choose(&mut self, many: usize) -> usize {
        // Answering comes before resuming, and the last question before the first.
        many - 1
    }
}

/// Random deaths.
struct Fire<'a> {
    rng: fastrand::Rng,
    left: usize,
    kills: usize,
    reference: &'a Reference,
}

impl Fate for Fire<'_> {
    fn kill(&mut self, requests: usize) -> Option<Kill> {
        if self.left == 0 {
            return None;
        }
        let signal = match self.rng.u8(0..10) {
            0 => Signal::TERM,
            1 => Signal::INT,
            _ => Signal::KILL,
        };
        Some(Kill { moment: self.moment(requests), signal })
    }

    fn rival(&mut self, requests: usize) -> Option<Moment> {
        (self.rng.u8(0..8) == 0).then(|| self.moment(requests))
    }

    fn killed(&mut self) {
        self.left -= 1;
        self.kills += 1;
    }

    fn choose(&mut self, many: usize) -> usize {
        self.rng.usize(0..many)
    }
}

impl Fire<'_> {
    fn moment(&mut self, done: usize) -> Moment {
        // A process that goes on with a run has less to do than one that begins it.
        let all = self.reference.requests;
        let left = all.saturating_sub(done);
        let events = self.reference.events * left.max(1) / all.max(1);
        match self.rng.u8(0..5) {
            0 => Moment::After(self.reference.longest.mul_f64(self.rng.f64())),
            1 => Moment::Events(self.rng.usize(0..=events), self.pause()),
            _ => Moment::Requests(self.rng.usize(1..=left.max(1)), self.pause()),
        }
    }

    /// From at once to as long as an answer of the world takes.
    fn pause(&mut self) -> Duration {
        Duration::from_micros(if self.rng.bool() { self.rng.u64(0..1_000) } else { self.rng.u64(0..40_000) })
    }
}

/// Kills processes of a scenario until that has happened `kills` times. A problem is one of the torturer or of the
/// scenario itself.
pub(crate) fn torture(
    scenario: Scenario,
    tools: &Tools,
    kills: usize,
    seed: u64,
    fault_rate: f64,
) -> Result<Tally, String> {
    let scenario = Arc::new(scenario);
    let reference = undisturbed(&scenario, tools)?;
    let mut tally = Tally::default();
    while tally.kills < kills {
        let seed = seed.wrapping_add(tally.runs as u64);
        let left = kills - tally.kills;
        let before = tally.kills;
        disturbed(&scenario, tools, &reference, Weather { seed, fault_rate }, left, &mut tally)?;
        if tally.runs >= 20 && tally.kills == before && tally.kills == 0 {
            return Err("none of its processes lives long enough to be killed".into());
        }
    }
    Ok(tally)
}

fn undisturbed(scenario: &Arc<Scenario>, tools: &Tools) -> Result<Reference, String> {
    // The first run compiles scripts, which is no measure of how long it takes.
    let mut told = None;
    for _ in 0..2 {
        let world = start(scenario, Weather { seed: 0, fault_rate: 0.0 }).map_err(|error| error.to_string())?;
        let stage = Stage::set(tools, scenario, &world.url()).map_err(|error| error.to_string())?;
        let story = Story::tell(scenario, &stage, &world, &mut Peace)?;
        let ledger = world.ledger();
        let broken = |what: &str| Err(format!("without any disturbance, {what}"));
        if let Some(stuck) = &story.stuck {
            drop(ledger);
            return broken(&format!("it is stuck: {stuck}; see {}", stage.keep().display()));
        }
        if let Some(repeated) = story.repeated.first() {
            return broken(&format!("it does something twice, which cannot be told from a repetition: {repeated}"));
        }
        if story.retries > 0 || story.shown["status"] != "completed" {
            return broken(&format!("it does not complete: {}", story.shown["outcome"]));
        }
        let unknown: Vec<&str> = ledger.unknown().iter().map(|asked| asked.shown.as_str()).collect();
        if !unknown.is_empty() {
            return broken(&format!("the journal does not have what was replied to {}", unknown.join("; ")));
        }
        if story.events == 0 || (story.states.is_empty() && !scenario.result_has_state) {
            return broken("it tells its states or what happens not at all, so they cannot be compared");
        }
        let asked = ledger.asked().iter().map(|asked| asked.token.clone()).collect();
        let requests = world.requests();
        told = Some(Reference {
            status: story.shown["status"].clone(),
            outcome: plain(&stage, &story.shown["outcome"]),
            turns: turns(&story.shown),
            asked,
            states: story.states,
            longest: story.longest,
            events: story.events,
            requests,
        });
    }
    told.ok_or_else(|| "no undisturbed run".into())
}

fn disturbed(
    scenario: &Arc<Scenario>,
    tools: &Tools,
    reference: &Reference,
    weather: Weather,
    most_kills: usize,
    tally: &mut Tally,
) -> Result<(), String> {
    let world = start(scenario, weather).map_err(|error| error.to_string())?;
    let stage = Stage::set(tools, scenario, &world.url()).map_err(|error| error.to_string())?;
    let mut rng = fastrand::Rng::with_seed(weather.seed);
    let left = rng.usize(1..=5).min(most_kills);
    let mut fire = Fire { rng, left, kills: 0, reference };
    let story = Story::tell(scenario, &stage, &world, &mut fire)?;
    let different = if story.stuck.is_none() { reference.differences(&story, &stage, &world) } else { Vec::new() };
    tally.runs += 1;
    tally.lives += story.lives;
    tally.kills += fire.kills;
    tally.hits += story.hits;
    tally.retries += story.retries;
    tally.rivals += story.rivals;
    tally.given_up += story.given_up;
    tally.faults += world.ledger().asked().iter().filter(|asked| asked.fault.is_some()).count();
    tally.different += usize::from(!different.is_empty());
    tally.repeated += story.repeated.len();
    tally.stuck += usize::from(story.stuck.is_some());
    let stuck = story.stuck.iter().map(|why| format!("stuck: {why}"));
    let repeated = story.repeated.iter().map(|what| format!("repeated: {what}"));
    let what: Vec<String> = stuck.chain(repeated).chain(different).collect();
    if !what.is_empty() && tally.violation.is_none() {
        let ledger = world.ledger();
        let asked = ledger.asked().iter().map(|asked| {
            format!(
                "process {} {:?} replied {}: {} {}",
                asked.life, asked.fault, asked.replied, asked.token, asked.shown
            )
        });
        let log: Vec<String> = story.log.iter().cloned().chain(asked).chain(what.iter().cloned()).collect();
        let _ = std::fs::write(stage.path("torture.log"), log.join("\n"));
        drop(ledger);
        tally.violation = Some(Violation { seed: weather.seed, what, folder: stage.keep() });
    }
    Ok(())
}

fn start(scenario: &Arc<Scenario>, weather: Weather) -> io::Result<World> {
    World::start(Arc::clone(scenario), weather)
}

/// The result of a run. Where branches share a state, the order of an object's entries depends on which of them was faster.
fn plain(stage: &Stage<'_>, result: &Value) -> Value {
    let Some(text) = result.as_str() else { return Value::Null };
    let text = stage.plain(text);
    let mut result: Value = serde_json::from_str(&text).unwrap_or_else(|_| text.into());
    result.sort_all_objects();
    result
}

/// What every turn was, in an order that does not depend on which of two branches was faster.
fn turns(shown: &Value) -> Vec<String> {
    let mut turns: Vec<String> = shown["turns"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|turn| {
            // What was lost with a process is not counted, and what it took to try again is nothing of the turn.
            let used = ["calls", "model_requests", "input_tokens", "output_tokens"].map(|name| &turn["usage"][name]);
            let went = format!("{} -> {} {} {}", turn["node"], turn["next"], turn["writes"], turn["failure"]);
            format!("{went} {used:?}")
        })
        .collect();
    turns.sort();
    turns
}

impl Reference {
    /// In what a run came to something else.
    fn differences(&self, story: &Story, stage: &Stage<'_>, world: &World) -> Vec<String> {
        let mut found = Vec::new();
        let mut differ = |what: &str, expected: String, got: String| {
            if expected != got {
                found.push(format!("different {what}: {got} in place of {expected}"));
            }
        };
        differ("status", self.status.to_string(), story.shown["status"].to_string());
        differ("result", self.outcome.to_string(), plain(stage, &story.shown["outcome"]).to_string());
        differ("turns", format!("{:?}", self.turns), format!("{:?}", turns(&story.shown)));
        let ledger = world.ledger();
        for asked in ledger.asked().iter().filter(|asked| !self.asked.contains(&asked.token)) {
            found.push(format!("different request in process {}: {}", asked.life, asked.shown));
        }
        let answered: BTreeSet<&String> =
            ledger.asked().iter().filter(|asked| asked.replied).map(|asked| &asked.token).collect();
        let missing = self.asked.iter().filter(|token| !answered.contains(token)).count();
        if missing > 0 {
            found.push(format!("different requests: {missing} were never answered"));
        }
        for (node, states) in &story.states {
            let known = self.states.get(node);
            for state in states.iter().filter(|state| !known.is_some_and(|known| known.contains(*state))) {
                found.push(format!("different state {node}: {state}; without disturbance: {known:?}"));
            }
        }
        found
    }
}
