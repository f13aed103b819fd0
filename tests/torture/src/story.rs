//! One run from its start to its rest, through as many processes as it takes.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::journal::Texts;
use crate::life::{self, Disturbance, Kill, Life, Moment, States};
use crate::scenario::Scenario;
use crate::stage::Stage;
use crate::world::World;

/// More processes than this are needed by no run that gets on.
const MOST_LIVES: usize = 120;

/// What goes on between processes.
pub(crate) trait Fate {
    /// When the next process is killed, which comes after so many of the requests; none for one that is left alone.
    fn kill(&mut self, requests: usize) -> Option<Kill>;
    /// A process was sent a signal while it lived.
    fn killed(&mut self);
    /// When a second process wants the run of one that is left alone, if at all.
    fn rival(&mut self, requests: usize) -> Option<Moment>;
    /// Chooses one of so many.
    fn choose(&mut self, many: usize) -> usize;
}

/// What happened.
#[derive(Default)]
pub(crate) struct Story {
    pub(crate) lives: usize,
    /// Deaths at which something was under way
    pub(crate) hits: usize,
    /// Times that the run failed and was retried
    pub(crate) retries: usize,
    /// Processes that had a rival
    pub(crate) rivals: usize,
    /// Effects that were under way when a process ended by itself, and were given up
    pub(crate) given_up: usize,
    /// The longest life, what it told and what it asked for
    pub(crate) longest: Duration,
    pub(crate) events: usize,
    /// Committed work that was done again
    pub(crate) repeated: Vec<String>,
    /// Why it did not come to rest
    pub(crate) stuck: Option<String>,
    pub(crate) states: States,
    /// How many runs there are, and what `hotcell runs show --json` said of the newest
    pub(crate) runs: usize,
    pub(crate) shown: Value,
    /// A line for each process
    pub(crate) log: Vec<String>,
}

/// The turns of a run, by number.
type Turns = BTreeMap<String, Value>;

/// What is done next.
struct Step {
    arguments: Vec<String>,
    /// The exit codes of a process that nobody disturbs
    codes: &'static [i32],
}

impl Step {
    fn new(words: &[&str], codes: &'static [i32]) -> Self {
        Step { arguments: words.iter().map(|word| (*word).to_owned()).collect(), codes }
    }

    fn starts(&self) -> bool {
        self.arguments.first().is_some_and(|word| word == "run")
    }
}

/// Exit codes of a command that drives a run: it is done, it failed, it waits.
const DRIVEN: &[i32] = &[0, 1, 3];
/// What every command that drives a run is told.
const DRIVING: [&str; 3] = ["--json", "--quiet", "--no-input"];

impl Story {
    /// Tells the whole run. Errors are of the torturer, not of the run.
    pub(crate) fn tell(
        scenario: &Scenario,
        stage: &Stage<'_>,
        world: &World,
        fate: &mut dyn Fate,
    ) -> Result<Self, String> {
        let mut story = Story::default();
        let mut turns = Turns::new();
        loop {
            let step = match story.next(scenario, fate) {
                Ok(Some(step)) => step,
                Ok(None) => break,
                Err(why) => {
                    story.stuck = Some(why);
                    break;
                }
            };
            story.lives += 1;
            if story.lives > MOST_LIVES {
                story.stuck = Some(format!("not at rest after {MOST_LIVES} processes"));
                break;
            }
            let life = story.live(scenario, &step, stage, world, fate)?;
            let texts = Texts::read(&stage.journal())?;
            let under_way = world.ledger().commit(|token| texts.has(token));
            let (runs, shown) = stage.show()?;
            if step.starts() {
                turns.clear();
                if runs == story.runs && world.ledger().was_asked() {
                    story.repeated.push("the world was asked before the run was in the journal".into());
                }
            }
            story.runs = runs;
            story.shown = shown;
            story.look_at(&life, &turns);
            let now = turns_of(&story.shown);
            story.compare(&turns, &now);
            turns = now;
            if life.killed {
                story.hits += usize::from(under_way > 0 || left_unfinished(&life, &turns));
            } else {
                story.given_up += world.ledger().give_up();
            }
            story.stuck = story.stuck_by(&life, &step, stage);
            if story.stuck.is_some() {
                break;
            }
        }
        story.repeated.extend(world.ledger().violations().iter().cloned());
        Ok(story)
    }

    /// The next process.
    fn live(
        &mut self,
        scenario: &Scenario,
        step: &Step,
        stage: &Stage<'_>,
        world: &World,
        fate: &mut dyn Fate,
    ) -> Result<Life, String> {
        let arguments: Vec<&str> = step.arguments.iter().map(String::as_str).collect();
        let done = world.ledger().committed();
        let (mut kill, mut disturbance) = (None, None);
        if !step.starts()
            && let Some(moment) = fate.rival(done)
        {
            let wants = self.rival(scenario, fate)?;
            let wants: Vec<&str> = wants.arguments.iter().map(String::as_str).collect();
            disturbance = Some(Disturbance::Rival(moment, Box::new(stage.hotcell(&wants))));
        }
        if disturbance.is_none() {
            kill = fate.kill(done);
            disturbance = kill.map(Disturbance::Kill);
        }
        let told = stage.path(&format!("process-{}.log", self.lives));
        let life = life::live(stage.hotcell(&arguments), world, disturbance, &told)?;
        if life.killed {
            fate.killed();
        }
        self.rivals += usize::from(life.rivalled);
        life::states(&stage.plain(&said(&told)), &mut self.states);
        self.longest = self.longest.max(life.elapsed);
        self.events = self.events.max(life.events.len());
        let (words, code, killed, rivalled) = (arguments.join(" "), life.code, life.killed, life.rivalled);
        self.log.push(format!("{words} -> {code:?}, killed {killed} ({kill:?}), rival {rivalled}"));
        Ok(life)
    }

    /// What a person would do now; nothing if all is at rest.
    fn next(&mut self, scenario: &Scenario, fate: &mut dyn Fate) -> Result<Option<Step>, String> {
        let status = self.shown["status"].as_str().unwrap_or_default();
        let run = match self.shown["run"].as_str() {
            Some(run) if status != "completed" => run,
            _ => {
                let Some(start) = scenario.start(self.runs) else { return Ok(None) };
                let mut words = vec!["run"];
                words.extend(start.iter().map(String::as_str));
                words.extend(DRIVING);
                return Ok(Some(Step::new(&words, DRIVEN)));
            }
        };
        let questions = self.questions();
        match status {
            "failed" => {
                self.retries += 1;
                Ok(Some(Step::new(&[&["runs", "retry", run][..], &DRIVING].concat(), DRIVEN)))
            }
            // A run may be resumed with questions open: it does what else there is to do, and waits again.
            "waiting" | "interrupted" if !questions.is_empty() && fate.choose(4) != 0 => {
                self.answer(scenario, fate).map(Some)
            }
            "waiting" | "interrupted" => Ok(Some(self.resume())),
            other => Err(format!("nothing can be done with a run that is `{other}`: {}", self.shown["outcome"])),
        }
    }

    fn questions(&self) -> Vec<&Value> {
        self.shown["questions"].as_array().into_iter().flatten().collect()
    }

    fn resume(&self) -> Step {
        let run = self.shown["run"].as_str().unwrap_or_default();
        Step::new(&[&["runs", "resume", run][..], &DRIVING].concat(), DRIVEN)
    }

    /// The answer to one of the open questions, which there have to be.
    fn answer(&self, scenario: &Scenario, fate: &mut dyn Fate) -> Result<Step, String> {
        let (run, questions) = (self.shown["run"].as_str().unwrap_or_default(), self.questions());
        let question = questions[fate.choose(questions.len())];
        let asked = question.to_string();
        let Some(person) = scenario.people.iter().find(|person| asked.contains(&person.asked)) else {
            return Err(format!("nobody answers {asked}"));
        };
        let id = question["id"].as_str().unwrap_or_default();
        let answer = ["runs", "answer", run, &person.answer, "--question", id];
        Ok(match fate.choose(4) {
            0 => Step::new(&[&answer[..], &["--resume"]].concat(), DRIVEN),
            _ => Step::new(&answer, &[0]),
        })
    }

    /// What somebody else does who wants the same run: goes on with it, or answers what is open.
    fn rival(&self, scenario: &Scenario, fate: &mut dyn Fate) -> Result<Step, String> {
        match self.questions().is_empty() || fate.choose(2) == 0 {
            true => Ok(self.resume()),
            false => self.answer(scenario, fate),
        }
    }

    /// Why a run does not get on after a process.
    fn stuck_by(&self, life: &Life, step: &Step, stage: &Stage<'_>) -> Option<String> {
        let command = step.arguments.join(" ");
        if life.hung {
            return Some(format!("process {} did not end: `{command}`", self.lives));
        }
        // Of two processes that want one run, one is refused; so is one that cannot load the agent.
        if life.killed || life.rivalled || life.refused || life.code.is_some_and(|code| step.codes.contains(&code)) {
            return None;
        }
        let said = said(&stage.path(&format!("process-{}.log", self.lives)));
        let said: Vec<&str> = said.lines().filter(|line| !line.contains(" hotcell::graph: ")).collect();
        let result = life.events.last().unwrap_or(&Value::Null);
        Some(format!("`{command}` ended with {:?}: {} {result}", life.code, said.join(" / ")))
    }

    /// No turn begins again that was committed before the process began.
    fn look_at(&mut self, life: &Life, committed: &Turns) {
        for turn in life::turns(&life.events, "node_started") {
            if committed.contains_key(&turn.to_string()) {
                self.repeated.push(format!("process {} began turn {turn} again, which was committed", self.lives));
            }
        }
    }

    /// What was committed stays as it is.
    fn compare(&mut self, before: &Turns, now: &Turns) {
        for (turn, what) in before {
            if now.get(turn) != Some(what) {
                let now = now.get(turn).unwrap_or(&Value::Null);
                self.repeated.push(format!("process {} changed committed turn {turn}: {what} to {now}", self.lives));
            }
        }
    }
}

/// What a process said on standard error.
fn said(file: &Path) -> String {
    std::fs::read(file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}

/// The committed turns, without what they used.
fn turns_of(shown: &Value) -> Turns {
    let turns = shown["turns"].as_array().into_iter().flatten();
    turns
        .map(|turn| {
            let number = turn["turn"].as_str().unwrap_or_default().to_owned();
            let mut what = turn.clone();
            if let Some(fields) = what.as_object_mut() {
                fields.retain(|key, _| matches!(key.as_str(), "node" | "next" | "failure" | "writes" | "elapsed_ms"));
            }
            (number, what)
        })
        .collect()
}

/// Whether some turn had begun that is not committed.
fn left_unfinished(life: &Life, turns: &Turns) -> bool {
    life::turns(&life.events, "node_started").iter().any(|turn| !turns.contains_key(&turn.to_string()))
}
