//! A node's turn: what it may do to the outside, and the memory of what it did.
//!
//! Everything outside that answers within a turn is an effect with a number. Answers are committed, so a turn that is
//! repeated after a crash, or after a person answered hours later, gets the same answers at the same numbers and goes
//! on where it stopped, without asking anyone twice.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use hotcell_budget::{Account, Purse, Usage};
use hotcell_graph::ir::Graph;
use hotcell_graph::{Key, Value};
use hotcell_journal::{Completed, Entry, EntryPath, Fact, JournalError, Question, RunId, RunWriter, Write};
use tokio::sync::Notify;

use crate::event::Event;
use crate::hook::{self, HookPoint};
use crate::ports::Ports;
use crate::schedule::Turn;

/// Why a turn has no result.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The node failed
    Failed(String),
    /// It waits for a person
    Waiting,
    /// The journal has something else than what would be done now; nothing may go on
    Diverged(String),
    /// The journal failed: nothing may go on
    Journal(JournalError),
}

impl From<JournalError> for Stop {
    fn from(error: JournalError) -> Self {
        Stop::Journal(error)
    }
}

/// What all turns of a run share.
pub(crate) struct RunContext {
    pub(crate) graph: Arc<Graph>,
    pub(crate) run: RunId,
    pub(crate) ports: Ports,
    pub(crate) writer: Arc<dyn RunWriter>,
    pub(crate) variables: Arc<[(Key, String)]>,
    pub(crate) purse: Arc<Purse>,
    pub(crate) remembered: Arc<Mutex<Remembered>>,
    /// Told when answers arrive that were sent to the run
    pub(crate) answered: Arc<Notify>,
    /// Turns of this graph whose people think
    pub(crate) idle: Arc<Idle>,
    /// Where in a run this is, for an agent that a node of the run called
    pub(crate) base: Option<EntryPath>,
    /// How many agents and graphs deep
    pub(crate) depth: u32,
    /// The node in whose name questions are asked; none means the node that asks
    pub(crate) asks_as: Option<Key>,
}

impl RunContext {
    /// Where entries about a turn belong.
    pub(crate) fn place_of(&self, turn: Turn) -> EntryPath {
        self.base.as_ref().map_or_else(|| EntryPath::of_turn(turn), |base| base.within(turn))
    }

    /// The turn that a place means.
    pub(crate) fn turn_at(&self, place: &EntryPath) -> Option<Turn> {
        match &self.base {
            None => place.as_str().parse().ok(),
            Some(base) => place.strip(base)?.parse().ok(),
        }
    }

    /// The memory of the run, shared with the agents it calls.
    pub(crate) fn remembered(&self) -> MutexGuard<'_, Remembered> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Turns that wait for somebody who is here. They need no place among those that are worked on.
#[derive(Default)]
pub(crate) struct Idle {
    turns: AtomicUsize,
    pub(crate) changed: Notify,
}

impl Idle {
    pub(crate) fn turns(&self) -> usize {
        self.turns.load(Ordering::Relaxed)
    }

    fn enter(self: Arc<Self>) -> Thinking {
        self.turns.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_one();
        Thinking(self)
    }
}

/// Somebody thinks as long as this is there.
struct Thinking(Arc<Idle>);

impl Drop for Thinking {
    fn drop(&mut self) {
        self.0.turns.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What an effect does: its kind, and what exactly. A repeated turn must do the same again to get the same answer.
pub(crate) struct Deed {
    kind: &'static str,
    subject: String,
}

impl Deed {
    /// What is done, by name, and what it is done with, of which a digest is kept.
    pub(crate) fn new(kind: &'static str, name: &str, with: &[&str]) -> Self {
        if with.is_empty() {
            return Deed { kind, subject: name.to_owned() };
        }
        let mut digest = blake3::Hasher::new();
        for text in with {
            digest.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        }
        let digest = digest.finalize().to_hex();
        Deed { kind, subject: format!("{name} {}", &digest[..16]) }
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

/// What is known of turns that began in an earlier process.
#[derive(Default)]
pub(crate) struct Remembered {
    effects: HashMap<(EntryPath, u32), Known>,
    answers: HashMap<(EntryPath, u32), Option<String>>,
    /// What moved the schedules of graphs within the run, by where they were called
    agents: HashMap<EntryPath, Vec<Moved>>,
    /// How many attempts of a turn failed and were followed by another one
    attempts: HashMap<EntryPath, u32>,
    /// Until when nodes wait, by the graph that they are nodes of
    timers: HashMap<(EntryPath, String), SystemTime>,
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
        for entry in entries {
            match &entry.fact {
                Fact::Effect { number, kind, account, .. } => spent.effect(&entry.place, *number, kind, account),
                Fact::Failed { number, account, .. } => spent.failure(&entry.place, *number, account),
                Fact::Attempt { attempt, account, .. } => spent.attempt(&entry.place, *attempt, account),
                Fact::Completed(completed) => spent.turn(&entry.place, &completed.account),
                _ => {}
            }
            own.extend(remembered.add(entry));
        }
        (remembered, own, spent.total())
    }

    /// What the entries say of a turn that began in this process and is begun again.
    pub(crate) fn refresh(&mut self, entries: Vec<Entry>, turn: Turn) {
        let is_own = |place: &EntryPath| place.turn() == Some(turn);
        self.effects.retain(|(place, _), _| !is_own(place));
        self.answers.retain(|(place, _), _| !is_own(place));
        self.agents.retain(|base, _| !is_own(base));
        self.attempts.retain(|place, _| !is_own(place));
        entries.into_iter().filter(|entry| is_own(&entry.place)).for_each(|entry| drop(self.add(entry)));
    }

    /// Takes note of an entry; gives back what is not kept here, a completed turn of the run's own graph.
    fn add(&mut self, Entry { place, fact }: Entry) -> Option<Moved> {
        match fact {
            Fact::Effect { number, kind, subject, answer, account } => {
                self.effects.insert((place, number), Known { kind, subject, answer, account });
            }
            Fact::Retried => self.forget_refusals(),
            Fact::Asked { number, .. } => {
                self.answers.entry((place, number)).or_default();
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
        self.answers.insert((place, number), Some(text));
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

    /// The answer of the effect of that number and who used what for it. A run that was never interrupted remembers
    /// nothing, and does not look.
    fn take_effect(&mut self, place: &EntryPath, number: u32, deed: &Deed) -> Result<Option<(Value, Account)>, String> {
        if self.effects.is_empty() {
            return Ok(None);
        }
        let Some(known) = self.effects.remove(&(place.clone(), number)) else { return Ok(None) };
        let is_same = known.kind == deed.kind && (known.subject.is_empty() || known.subject == deed.subject);
        if !is_same {
            return Err(format!(
                "at {place}, number {number}, the journal has `{} {}`, and `{} {}` would be done now; what it is \
                 made from has changed since: undo the change to go on, or start a new run",
                known.kind, known.subject, deed.kind, deed.subject
            ));
        }
        Ok(Some((known.answer, known.account)))
    }

    /// What moved the schedule of the graph that was called there.
    pub(crate) fn take_agent(&mut self, base: &EntryPath) -> Vec<Moved> {
        self.agents.remove(base).unwrap_or_default()
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
    fn turn(&mut self, place: &EntryPath, account: &Account) {
        self.drop_below(place);
        // The effects of the turn itself, and what was used for it before it failed.
        self.drop_between(format!("{place}#"), format!("{place}$"));
        self.add(place.to_string(), account);
    }

    fn effect(&mut self, place: &EntryPath, number: u32, kind: &str, account: &Account) {
        match kind {
            "agent" => self.drop_below(&place.within(format_args!("agent{number}"))),
            "item" => {
                let run = place.within("run");
                self.drop_below(&run);
                self.drop_between(format!("{run}#"), format!("{run}$"));
            }
            _ => {}
        }
        self.add(format!("{place}#{number}"), account);
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
        self.drop_below(&of_attempt);
        self.drop_between(format!("{of_attempt}#"), format!("{of_attempt}$"));
        self.add(format!("{place}!attempt{attempt}"), account);
    }

    fn add(&mut self, key: String, account: &Account) {
        *self.0.entry(key).or_default() += account.total();
    }

    /// Drops everything within a place: its parts follow each other in the order of texts.
    fn drop_below(&mut self, place: &EntryPath) {
        self.drop_between(format!("{place}."), format!("{place}/"));
    }

    fn drop_between(&mut self, from: String, to: String) {
        let keys: Vec<String> = self.0.range(from..to).map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.0.remove(&key);
        }
    }

    fn total(self) -> Usage {
        self.0.into_values().fold(Usage::default(), |mut sum, usage| {
            sum += usage;
            sum
        })
    }
}

/// Where an attempt at a turn has its effects.
fn attempt_place(turn: &EntryPath, attempt: u32) -> EntryPath {
    if attempt > 1 { turn.within(format_args!("try{attempt}")) } else { turn.clone() }
}

/// The only key of the answer of a model that refused.
pub(crate) const REFUSED: &str = "refused";

/// Whether an effect was answered with nothing but a failure: of a model that refused, or of a tool.
fn is_refusal(answer: &Value) -> bool {
    let failed = |object: &hotcell_graph::Object| object.get(REFUSED).or_else(|| object.get("error")).is_some();
    answer.as_object().is_some_and(|object| object.len() == 1 && failed(object))
}

/// One node's turn, or one item of a map within it.
pub(crate) struct NodeTurn {
    pub(crate) context: Arc<RunContext>,
    pub(crate) place: EntryPath,
    pub(crate) node: Key,
    /// The place of the turn; that of what it does is another one from the second attempt on
    root: EntryPath,
    /// Which attempt it is, from 1
    attempt: u32,
    /// Who used what for attempts that failed
    pub(crate) before: Account,
    /// Who used what, apart from what entries of their own say
    pub(crate) account: Account,
    /// Who used what for effects and graphs within the turn, which have entries of their own
    pub(crate) recorded: Account,
    /// How often it was tried to reach a model for it
    pub(crate) attempts: u32,
    /// What is to be seen in the state while it waits, or after it failed
    pub(crate) shown: Vec<Write>,
    /// Where it says that it waits for somebody who is here; none for a part of a turn, whose other parts go on
    pub(crate) idle: Option<Arc<Idle>>,
    number: u32,
}

impl NodeTurn {
    pub(crate) fn new(context: Arc<RunContext>, place: EntryPath, node: Key) -> Self {
        let failed = context.remembered().attempts.get(&place).copied().unwrap_or(0);
        let attempt = failed + 1;
        NodeTurn {
            context,
            root: place.clone(),
            place: attempt_place(&place, attempt),
            attempt,
            node,
            before: Account::default(),
            account: Account::default(),
            recorded: Account::default(),
            attempts: 1,
            shown: Vec::new(),
            idle: None,
            number: 0,
        }
    }

    /// Which attempt at the turn this is, from 1.
    pub(crate) fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Begins the turn again after it failed. Nothing that it did counts any more, and all that it used does.
    pub(crate) async fn try_again(&mut self, error: String) -> Result<(), Stop> {
        let (attempt, used) = (self.attempt, self.used());
        let fact = Fact::Attempt { attempt, error, account: used.clone() };
        self.context.writer.append(vec![Entry { place: self.root.clone(), fact }]).await?;
        self.before += used;
        self.attempt += 1;
        self.place = attempt_place(&self.root, self.attempt);
        self.number = 0;
        self.attempts = 1;
        self.account = Account::default();
        self.recorded = Account::default();
        self.shown.clear();
        Ok(())
    }

    /// A turn within this one, for a part that runs beside others and therefore needs numbers of its own.
    pub(crate) fn part(&self, part: usize, node: Key) -> Self {
        NodeTurn::new(self.context.clone(), self.place.within(part), node)
    }

    /// Where the next effect runs, if it has turns of its own.
    pub(crate) fn base_of_next(&self) -> EntryPath {
        self.place.within(format_args!("agent{}", self.number))
    }

    /// A place for something that has turns of its own and is no effect.
    pub(crate) fn next_base(&mut self) -> EntryPath {
        let number = self.next_number();
        self.place.within(format_args!("call{number}"))
    }

    fn next_number(&mut self) -> u32 {
        let number = self.number;
        self.number += 1;
        number
    }

    pub(crate) fn emit(&self, event: &Event<'_>) {
        self.context.ports.observer.event(event);
    }

    /// Everything that was used for the turn.
    pub(crate) fn used(&self) -> Account {
        let mut used = self.account.clone();
        used += self.recorded.clone();
        used
    }

    /// The committed answer of an effect, or `perform`'s answer, which is committed with what was used for it before it is
    /// returned. A failure is committed, too; it is not remembered, because it ends the turn.
    pub(crate) async fn effect<F>(
        &mut self,
        deed: Deed,
        perform: impl FnOnce(Arc<RunContext>) -> F,
    ) -> Result<Value, Stop>
    where
        F: Future<Output = (Account, Result<Value, Stop>)>,
    {
        let number = self.next_number();
        let known = self.context.remembered().take_effect(&self.place, number, &deed).map_err(Stop::Diverged)?;
        if let Some((answer, account)) = known {
            self.recorded += account;
            return Ok(answer);
        }
        // What leaves follows from everything that was committed before.
        self.context.writer.settled().await?;
        let (account, result) = perform(self.context.clone()).await;
        self.recorded += account.clone();
        let Deed { kind, subject } = deed;
        match result {
            Ok(answer) => {
                self.commit(Fact::Effect { number, kind: kind.to_owned(), subject, answer: answer.clone(), account })
                    .await?;
                Ok(answer)
            }
            Err(Stop::Failed(error)) => {
                // What was used within an agent or an item has entries of its own.
                let account = if matches!(kind, "agent" | "item") { Account::default() } else { account };
                self.commit(Fact::Failed { number: Some(number), error: error.clone(), account }).await?;
                Err(Stop::Failed(error))
            }
            Err(other) => Err(other),
        }
    }

    /// What came by a callback, which is in the journal like an answer. Nobody is asked for it: the turn waits.
    pub(crate) async fn await_callback(&mut self, question: Question) -> Result<String, Stop> {
        let (number, known) = self.next_answer();
        match known {
            Some(Some(body)) => return Ok(body),
            Some(None) => {}
            None => self.commit(Fact::Asked { number, question: question.clone() }).await?,
        }
        self.emit(&Event::Asked { question: &question });
        Err(Stop::Waiting)
    }

    /// The number of the next question, and its answer if it was put before: none within if it is open.
    fn next_answer(&mut self) -> (u32, Option<Option<String>>) {
        let number = self.next_number();
        let mut remembered = self.context.remembered();
        (number, remembered.answers.remove(&(self.place.clone(), number)))
    }

    /// The person's answer to a question. The question is committed before the person sees it.
    pub(crate) async fn ask(&mut self, mut question: Question) -> Result<String, Stop> {
        if let Some(node) = &self.context.asks_as {
            question.node = node.to_string();
        }
        let (number, known) = self.next_answer();
        match known {
            Some(Some(answer)) => return self.answered(&question, answer).await,
            Some(None) => {}
            None => {
                let context = self.context.clone();
                let event =
                    || hook::event([("node", self.node.as_ref().into()), ("question", question.text.as_str().into())]);
                let changed = hook::tell(&context, &mut self.account, HookPoint::BeforeQuestion, event).await?;
                if let Some(text) = changed.as_ref().and_then(|event| event.get("question")?.as_text()) {
                    text.clone_into(&mut question.text);
                }
                self.commit(Fact::Asked { number, question: question.clone() }).await?;
            }
        }
        self.emit(&Event::Asked { question: &question });
        let text = self.first_answer(&question, number).await?;
        self.emit(&Event::Answered { node: &question.node });
        self.answered(&question, text).await
    }

    /// The answer of somebody who is here, or of somebody elsewhere who was faster.
    async fn first_answer(&self, question: &Question, number: u32) -> Result<String, Stop> {
        let context = &self.context;
        context.writer.settled().await?;
        let _thinking = self.idle.clone().map(Idle::enter);
        let key = (self.place.clone(), number);
        let mut here = pin!(context.ports.people.ask(question));
        let mut is_answered_here = false;
        loop {
            let news = context.answered.notified();
            if let Some(Some(text)) = context.remembered().answers.get(&key) {
                return Ok(text.clone());
            }
            tokio::select! {
                biased;
                answer = &mut here, if !is_answered_here => {
                    let Some(text) = answer else { return Err(Stop::Waiting) };
                    match self.commit(Fact::Answered { number, text: text.clone() }).await {
                        // Another answer is on its way.
                        Err(Stop::Journal(JournalError::NotAsked { .. })) => is_answered_here = true,
                        other => return other.map(|()| text),
                    }
                }
                () = news => {}
            }
        }
    }

    /// What hooks make of an answer. The answer as it was given is in the journal.
    async fn answered(&mut self, question: &Question, answer: String) -> Result<String, Stop> {
        let context = self.context.clone();
        let event = || {
            hook::event([
                ("node", self.node.as_ref().into()),
                ("question", question.text.as_str().into()),
                ("answer", answer.as_str().into()),
            ])
        };
        let changed = hook::tell(&context, &mut self.account, HookPoint::AfterQuestion, event).await?;
        let changed = changed.as_ref().and_then(|event| event.get("answer")?.as_text()).map(str::to_owned);
        Ok(changed.unwrap_or(answer))
    }

    async fn commit(&self, fact: Fact) -> Result<(), Stop> {
        let entry = Entry { place: self.place.clone(), fact };
        Ok(self.context.writer.append(vec![entry]).await?)
    }
}
