//! What is known of turns that began in an earlier process, or earlier in this one.

mod older;

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, SystemTime};

use hotcell_budget::{Account, Usage};
use hotcell_graph::Value;
use hotcell_journal::{Completed, Entry, EntryPath, Fact, NodeFailure};
use thiserror::Error;

use crate::copied::copied_in;
use crate::permit::Decided;
use crate::token::Turn;

/// What an effect does: its kind, and what exactly. A repeated turn must do the same again to get the same answer.
pub(crate) struct Deed {
    pub(crate) kind: &'static str,
    pub(crate) subject: String,
    /// Whether nobody outside can notice it, so that it may be done again until its answer is committed
    pub(crate) is_unnoticed: bool,
}

impl Deed {
    /// What is done, by name, and what it is done with, of which a digest is kept.
    pub(crate) fn new(kind: &'static str, name: &str, with: &[&str]) -> Self {
        if with.is_empty() {
            return Deed { kind, subject: name.to_owned(), is_unnoticed: false };
        }
        let mut digest = blake3::Hasher::new();
        for text in with {
            digest.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        }
        let digest = digest.finalize().to_hex();
        Deed { kind, subject: format!("{name} {}", &digest[..16]), is_unnoticed: false }
    }
}

/// An effect of an earlier process.
struct Known {
    kind: String,
    /// Empty in journals of older versions
    subject: String,
    answer: Value,
    account: Account,
}

/// The journal has another effect at a place than the one that is to be done there.
#[derive(Debug, Error)]
#[error(
    "at {place}, number {number}, the journal has `{known}`, and `{wanted}` would be done now; what it is made from has changed \
     since: undo the change to go on, or start a new run"
)]
pub(crate) struct EffectMismatch {
    place: EntryPath,
    number: u32,
    /// Kind and subject of the effect in the journal
    known: String,
    /// Kind and subject of the other one
    wanted: String,
}

/// What is known of turns that began in an earlier process.
#[derive(Default)]
pub(crate) struct Remembered {
    effects: HashMap<(EntryPath, u32), Known>,
    pub(crate) answers: HashMap<(EntryPath, u32), AnswerState>,
    /// Until when questions wait that are open
    pub(crate) deadlines: HashMap<(EntryPath, u32), SystemTime>,
    /// What moved the schedules of graphs within the run, by where they were called
    agents: HashMap<EntryPath, Vec<Moved>>,
    /// How many attempts of a turn failed and were followed by another one
    pub(crate) attempts: HashMap<EntryPath, u32>,
    /// Nodes that failed and after which the run went on, in their order
    pub(crate) failures: Vec<NodeFailure>,
    /// Whether somebody cancelled the run: what was begun outside is called off then
    pub(crate) is_cancelled: bool,
    /// Until when nodes wait, by the graph that they are nodes of
    timers: HashMap<(EntryPath, String), SystemTime>,
    /// Capabilities that were asked for
    pub(crate) denials: Decided,
    /// Where the questions are asked today that an older version asked elsewhere
    adopted: HashMap<(EntryPath, u32), (EntryPath, u32)>,
}

/// How a question stands that was put.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AnswerState {
    /// It has no answer, and waits until then if it does not wait for ever
    Open(Option<SystemTime>),
    /// It was answered
    Answered(String),
    /// Its time was over
    Expired,
}

/// What moved the schedule of a graph.
#[derive(Clone)]
pub(crate) enum Moved {
    /// A turn was completed
    Completed(EntryPath, Completed),
    /// A node had waited as long as it may
    Expired(String),
}

impl Remembered {
    /// What the entries of a run say: beside the memory, its own completed turns in order, and what was used.
    pub(crate) fn of(entries: Vec<Entry>) -> (Self, Vec<Moved>, Usage) {
        let mut remembered = Self::default();
        let mut own = Vec::new();
        let mut spent = Spent::default();
        let copied = entries.first().and_then(|first| match &first.fact {
            Fact::Started(header) => copied_in(&header.given),
            _ => None,
        });
        for (number, entry) in (1..).zip(entries) {
            spent.entry(&entry);
            if let Fact::Completed(completed) = &entry.fact {
                remembered.failures.extend(NodeFailure::of(&entry.place, completed));
            }
            own.extend(remembered.add(entry));
            if copied == Some(number) {
                remembered.denials.note_copied();
            }
        }
        (remembered, own, spent.total())
    }

    /// What the entries say of a turn that began in this process and is begun again.
    pub(crate) fn refresh(&mut self, entries: Vec<Entry>, turn: Turn) {
        let is_own = |place: &EntryPath| place.turn() == Some(turn);
        self.effects.retain(|(place, _), _| !is_own(place));
        self.answers.retain(|(place, _), _| !is_own(place));
        self.deadlines.retain(|(place, _), _| !is_own(place));
        self.agents.retain(|base, _| !is_own(base));
        self.attempts.retain(|place, _| !is_own(place));
        self.adopted.retain(|(place, _), _| !is_own(place));
        entries.into_iter().filter(|entry| is_own(&entry.place)).for_each(|entry| drop(self.add(entry)));
    }

    /// Takes note of an entry; gives back what is not kept here, a completed turn of the run's own graph.
    fn add(&mut self, Entry { place, fact }: Entry) -> Option<Moved> {
        match fact {
            Fact::Effect { number, kind, subject, answer, account } => {
                self.effects.insert((place, number), Known { kind, subject, answer, account });
            }
            Fact::Retried => self.forget_refusals(),
            Fact::Asked { number, question } => {
                if let Some(denial) = question.denial {
                    self.denials.note_asked((place.clone(), number), denial);
                }
                self.answers.entry((place, number)).or_insert(AnswerState::Open(question.expires));
            }
            Fact::Expired { number } => {
                self.answers.insert((place, number), AnswerState::Expired);
            }
            Fact::Answered { number, text } => self.answer(place, number, text),
            Fact::Attempt { attempt, .. } => {
                self.attempts.insert(place, attempt);
            }
            Fact::TimerSet { node, at } => {
                self.timers.insert((place, node), at);
            }
            Fact::TimerFired { node } if place == EntryPath::of_run() => return Some(Moved::Expired(node)),
            Fact::TimerFired { node } => self.agents.entry(place).or_default().push(Moved::Expired(node)),
            Fact::Completed(completed) => match place.around() {
                None => return Some(Moved::Completed(place, completed)),
                Some(base) => self.agents.entry(base).or_default().push(Moved::Completed(place, completed)),
            },
            _ => {}
        }
        None
    }

    /// Takes note of an answer.
    pub(crate) fn answer(&mut self, place: EntryPath, number: u32, text: String) {
        let asked = (place, number);
        let asked = self.adopted.get(&asked).cloned().unwrap_or(asked);
        self.denials.note_answer(&asked, &text);
        self.answers.insert(asked, AnswerState::Answered(text));
    }

    /// Where the journal has a question.
    pub(crate) fn asked_at(&self, place: &EntryPath, number: u32) -> (EntryPath, u32) {
        let here = (place.clone(), number);
        let of_older = self.adopted.iter().find(|(_, new)| **new == here).map(|(old, _)| old.clone());
        of_older.unwrap_or(here)
    }

    /// The first of the questions of these turns that is due, with when that is.
    pub(crate) fn next_due(&self, is_wanted: impl Fn(Turn) -> bool) -> Option<(Turn, SystemTime)> {
        let own = self.deadlines.iter().filter_map(|((place, _), at)| Some((place.turn()?, *at)));
        own.filter(|(turn, _)| is_wanted(*turn)).min_by_key(|(turn, at)| (*at, *turn))
    }

    /// Forgets what models and tools refused at the end of a place, so that they are asked again.
    fn forget_refusals(&mut self) {
        let mut last: HashMap<EntryPath, u32> = HashMap::new();
        for (place, number) in self.effects.keys() {
            let last = last.entry(place.clone()).or_default();
            *last = (*last).max(*number);
        }
        for (place, mut number) in last {
            while self.effects.get(&(place.clone(), number)).is_some_and(|known| is_refusal(&known.answer)) {
                self.effects.remove(&(place.clone(), number));
                let Some(before) = number.checked_sub(1) else { break };
                number = before;
            }
        }
    }

    /// The subject of the effect of an earlier process that is known there.
    pub(crate) fn subject_at(&self, at: &(EntryPath, u32)) -> Option<&str> {
        self.effects.get(at).map(|known| known.subject.as_str())
    }

    /// Whether an effect of an earlier process is known there.
    pub(crate) fn has_effect(&self, at: &(EntryPath, u32)) -> bool {
        self.effects.contains_key(at)
    }

    /// The answer of the effect of that number and who used what for it. A run that was never interrupted remembers
    /// nothing, and does not look.
    pub(crate) fn take_effect(
        &mut self,
        place: &EntryPath,
        number: u32,
        deed: &Deed,
    ) -> Result<Option<(Value, Account)>, EffectMismatch> {
        if self.effects.is_empty() {
            return Ok(None);
        }
        let Some(known) = self.effects.remove(&(place.clone(), number)) else { return Ok(None) };
        let is_same = known.kind == deed.kind && (known.subject.is_empty() || known.subject == deed.subject);
        if !is_same {
            return Err(EffectMismatch {
                place: place.clone(),
                number,
                known: format!("{} {}", known.kind, known.subject),
                wanted: format!("{} {}", deed.kind, deed.subject),
            });
        }
        Ok(Some((known.answer, known.account)))
    }

    /// What moved the schedule of the graph that was called there.
    pub(crate) fn take_agent(&mut self, base: &EntryPath) -> Vec<Moved> {
        self.agents.remove(base).unwrap_or_default()
    }

    /// What the completed turns of the graph that was called there used.
    pub(crate) fn used_at(&self, base: &EntryPath) -> Usage {
        let moves = self.agents.get(base).into_iter().flatten();
        moves.fold(Usage::default(), |mut sum, moved| {
            if let Moved::Completed(_, completed) = moved {
                sum += completed.account.total();
            }
            sum
        })
    }

    /// How long the completed turns of the graph that was called there took, one after the other.
    pub(crate) fn worked_at(&self, base: &EntryPath) -> Duration {
        let moves = self.agents.get(base).into_iter().flatten();
        moves.fold(Duration::ZERO, |sum, moved| match moved {
            Moved::Completed(_, completed) => sum + completed.elapsed,
            Moved::Expired(_) => sum,
        })
    }

    /// Forgets until when nodes of the graph at that place waited that do not wait any more: one that waits again waits anew.
    pub(crate) fn forget_timers(&mut self, base: &EntryPath, waits: impl Fn(&str) -> bool) {
        self.timers.retain(|(of, node), _| of != base || waits(node));
    }

    /// Until when a node of the graph at that place waits, if that was decided before.
    pub(crate) fn timer(&self, base: &EntryPath, node: &str) -> Option<SystemTime> {
        self.timers.get(&(base.clone(), node.to_owned())).copied()
    }
}

/// What was used so far, without counting anything twice: what is within a turn or an effect is in its account, too.
#[derive(Default)]
struct Spent(BTreeMap<String, Usage>);

impl Spent {
    fn entry(&mut self, entry: &Entry) {
        match &entry.fact {
            Fact::Effect { number, kind, account, .. } => self.effect(&entry.place, *number, kind, account),
            Fact::Failed { number, account, .. } => self.failure(&entry.place, *number, account),
            Fact::Attempt { attempt, account, .. } => self.attempt(&entry.place, *attempt, account),
            Fact::Completed(completed) => self.turn(&entry.place, &completed.account),
            _ => {}
        }
    }

    fn turn(&mut self, place: &EntryPath, account: &Account) {
        let below = self.take_below(place);
        // The effects of the turn itself, and what was used for it before it failed.
        let own = self.take_between(format!("{place}#"), format!("{place}$"));
        self.add_whole(place.to_string(), account, [below, own]);
    }

    fn effect(&mut self, place: &EntryPath, number: u32, kind: &str, account: &Account) {
        let parts = match kind {
            "agent" => vec![self.take_below(&place.within(format_args!("agent{number}")))],
            "item" => {
                let run = place.within("run");
                let (below, own) = (self.take_below(&run), self.take_between(format!("{run}#"), format!("{run}$")));
                // What its attempts used is in its account, too.
                vec![below, own, self.take_between(format!("{run}%"), format!("{run}&"))]
            }
            _ => Vec::new(),
        };
        self.add_whole(format!("{place}#{number}"), account, parts);
    }

    fn failure(&mut self, place: &EntryPath, number: Option<u32>, account: &Account) {
        // Beside what comes when it is done again, which is counted anew.
        match number {
            Some(number) => self.add(format!("{place}!{number}"), account),
            None => self.add(format!("{place}!"), account),
        }
    }

    fn attempt(&mut self, place: &EntryPath, attempt: u32, account: &Account) {
        // All that the attempt did is in its account; the next one does it anew.
        let of_attempt = attempt_place(place, attempt);
        let below = self.take_below(&of_attempt);
        let own = self.take_between(format!("{of_attempt}#"), format!("{of_attempt}$"));
        self.add_whole(format!("{place}%{attempt}"), account, [below, own]);
    }

    /// Adds what was used for something with everything within it. Of a part that was cut off, because it took longer than it may,
    /// whoever waited for it was not told what it used: then what its own entries say is more.
    fn add_whole(&mut self, key: String, account: &Account, parts: impl IntoIterator<Item = Usage>) {
        *self.0.entry(key).or_default() += larger(&account.total(), &sum(parts));
    }

    fn add(&mut self, key: String, account: &Account) {
        *self.0.entry(key).or_default() += account.total();
    }

    /// Takes everything within a place: its parts follow each other in the order of texts.
    fn take_below(&mut self, place: &EntryPath) -> Usage {
        self.take_between(format!("{place}."), format!("{place}/"))
    }

    fn take_between(&mut self, from: String, to: String) -> Usage {
        let keys: Vec<String> = self.0.range(from..to).map(|(key, _)| key.clone()).collect();
        sum(keys.iter().filter_map(|key| self.0.remove(key)))
    }

    fn total(self) -> Usage {
        sum(self.0.into_values())
    }
}

fn sum(all: impl IntoIterator<Item = Usage>) -> Usage {
    all.into_iter().fold(Usage::default(), |mut sum, usage| {
        sum += usage;
        sum
    })
}

/// Of each amount the larger one.
fn larger(one: &Usage, other: &Usage) -> Usage {
    Usage {
        calls: one.calls.max(other.calls),
        fuel: one.fuel.max(other.fuel),
        wall_clock: one.wall_clock.max(other.wall_clock),
        peak_memory: one.peak_memory.max(other.peak_memory),
        output: one.output.max(other.output),
        stderr: one.stderr.max(other.stderr),
        log_lines: one.log_lines.max(other.log_lines),
        http_requests: one.http_requests.max(other.http_requests),
        http_sent: one.http_sent.max(other.http_sent),
        http_received: one.http_received.max(other.http_received),
        file_bytes: one.file_bytes.max(other.file_bytes),
        files: one.files.max(other.files),
        model_requests: one.model_requests.max(other.model_requests),
        input_tokens: one.input_tokens.max(other.input_tokens),
        output_tokens: one.output_tokens.max(other.output_tokens),
        cost: one.cost.max(other.cost),
    }
}

/// What was used for a run, in all processes, as far as these entries of it say, the first one first; nothing is counted twice.
pub fn used(entries: &[Entry]) -> Usage {
    let mut spent = Spent::default();
    entries.iter().for_each(|entry| spent.entry(entry));
    spent.total()
}

/// Where an attempt at a turn has its effects.
pub(crate) fn attempt_place(turn: &EntryPath, attempt: u32) -> EntryPath {
    if attempt > 1 { turn.within(format_args!("try{attempt}")) } else { turn.clone() }
}

/// The only key of the answer of a model that refused.
pub(crate) const REFUSED: &str = "refused";

/// Whether an effect was answered with nothing but a failure: of a model that refused, or of a tool.
fn is_refusal(answer: &Value) -> bool {
    let failed = |object: &hotcell_graph::Object| object.get(REFUSED).or_else(|| object.get("error")).is_some();
    answer.as_object().is_some_and(|object| object.len() == 1 && failed(object))
}
