//! A node's turn: what it may do to the outside, and the memory of what it did.
//!
//! Everything outside that answers within a turn is an effect with a number. Answers are committed, so a turn that is
//! repeated after a crash, or after a person answered hours later, gets the same answers at the same numbers and goes
//! on where it stopped, without asking anyone twice.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use hotcell_budget::Account;
use hotcell_graph::{Key, Value};
use hotcell_journal::{Entry, EntryPath, Fact, JournalError, Question, Write};

use crate::call_site::CallSite;
use crate::context::{Idle, Interruption, RunContext};
use crate::event::Event;
use crate::hook::{self, HookPoint};
use crate::memory::{AnswerState, Deed, attempt_place};
use crate::telling;
use crate::what_if::Notes;

/// Who answers in the place of a person, with who used what for it: the answer, why there is none, or nothing if nobody is there.
pub(crate) type Answerer<'a> = BoxFuture<'a, (Account, Option<Result<String, Interruption>>)>;

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
    /// Whether no other attempt at it would help
    pub(crate) gave_up: bool,
    /// Whether a model refused it for good: whoever runs the graph around it again is refused again
    pub(crate) final_refusal: bool,
    /// Whether it took longer than it may
    pub(crate) timed_out: bool,
    /// What kind of failure it failed with, where the graph tells kinds apart
    pub(crate) failure_kind: Option<String>,
    /// What was withheld from what it called
    notes: Notes,
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
            gave_up: false,
            final_refusal: false,
            timed_out: false,
            failure_kind: None,
            notes: Notes::default(),
            number: 0,
        }
    }

    /// Takes note that no other attempt at the node would help.
    pub(crate) fn give_up(&mut self) {
        self.gave_up = true;
        if let Some(acting) = &self.context.acting {
            acting.gave_up.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    }

    /// Takes note that a model refused what the node asks for good, and gives up.
    pub(crate) fn note_final_refusal(&mut self) {
        self.give_up();
        self.final_refusal = true;
        if let Some(acting) = &self.context.acting {
            acting.final_refusal.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    }

    /// Which attempt at the turn this is, from 1.
    pub(crate) fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Begins the turn again after it failed. Nothing that it did counts any more, and all that it used does.
    pub(crate) async fn try_again(&mut self, error: String) -> Result<(), Interruption> {
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
        self.failure_kind = None;
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

    /// Where calls of this turn are made.
    pub(crate) fn site(&self) -> CallSite {
        self.context.site_at(&self.place, &self.notes)
    }

    /// Stops the turn if something was withheld from what it called.
    pub(crate) async fn stop_if_withheld(&self) -> Result<(), Interruption> {
        self.context.stop_if_withheld(&self.place, &self.notes).await
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

    /// The committed answer of the next effect; none, and it is still the next one, if it was not done before.
    pub(crate) fn recall(&mut self, deed: &Deed) -> Result<Option<Value>, Interruption> {
        let known = self.context.remembered().take_effect(&self.place, self.number, deed);
        let known = known.map_err(|mismatch| Interruption::Diverged(mismatch.to_string()))?;
        Ok(known.map(|(answer, account)| {
            self.number += 1;
            self.recorded += account;
            answer
        }))
    }

    /// The subject of the next effect, if it was done before.
    pub(crate) fn known_next(&self) -> Option<String> {
        self.context.remembered().subject_at(&self.next_place()).map(str::to_owned)
    }

    /// Where the next effect or question is found.
    pub(crate) fn next_place(&self) -> (EntryPath, u32) {
        (self.place.clone(), self.number)
    }

    /// The committed answer of an effect, or `perform`'s answer, which is committed with what was used for it before it is
    /// returned; that of a deed that nobody notices is committed before anything outside follows from it. A failure is
    /// committed, too; it is not remembered, because it ends the turn.
    pub(crate) async fn effect<F>(
        &mut self,
        deed: Deed,
        perform: impl FnOnce(Arc<RunContext>) -> F,
    ) -> Result<Value, Interruption>
    where
        F: Future<Output = (Account, Result<Value, Interruption>)>,
    {
        if let Some(answer) = self.recall(&deed)? {
            return Ok(answer);
        }
        let number = self.next_number();
        if !deed.is_unnoticed {
            // What leaves follows from everything that was committed before.
            self.context.writer.settled().await?;
        }
        let (account, result) = perform(self.context.clone()).await;
        self.recorded += account.clone();
        self.stop_if_withheld().await?;
        let Deed { kind, subject, is_unnoticed } = deed;
        match result {
            Ok(answer) => {
                let fact = Fact::Effect { number, kind: kind.to_owned(), subject, answer: answer.clone(), account };
                match is_unnoticed {
                    true => {
                        let entry = Entry { place: self.place.clone(), fact };
                        self.context.writer.append_later(vec![entry]).await?;
                    }
                    false => self.commit(fact).await?,
                }
                Ok(answer)
            }
            Err(stop) => {
                if let Some(error) = stop.reason().map(str::to_owned) {
                    // What was used within an agent or an item has entries of its own.
                    let account = if matches!(kind, "agent" | "item") { Account::default() } else { account };
                    self.commit(Fact::Failed { number: Some(number), error, account }).await?;
                }
                Err(stop)
            }
        }
    }

    /// What came by a callback, which is in the journal like an answer. Nobody is asked for it: the turn waits.
    pub(crate) async fn await_callback(&mut self, question: Question) -> Result<String, Interruption> {
        let (number, known) = self.next_answer();
        match known {
            Some(AnswerState::Answered(body)) => return Ok(body),
            Some(AnswerState::Open(_) | AnswerState::Expired) => {}
            None => self.commit(Fact::Asked { number, question: question.clone() }).await?,
        }
        self.emit(&Event::Asked { question: &question });
        Err(Interruption::Waiting)
    }

    /// What came by a callback that is waited for no longer than that; none if its time was over.
    pub(crate) async fn callback_until(
        &mut self,
        question: Question,
        wait: Option<Duration>,
    ) -> Result<Option<String>, Interruption> {
        let nobody = Box::pin(async { (Account::default(), None) });
        self.ask_until(question, wait, Some(nobody)).await
    }

    /// The number of the next question, and how it stands if it was put before.
    fn next_answer(&mut self) -> (u32, Option<AnswerState>) {
        let number = self.next_number();
        let mut remembered = self.context.remembered();
        (number, remembered.answers.remove(&(self.place.clone(), number)))
    }

    /// A person's answer to a question that waits for as long as it takes. The question is committed before the person sees it.
    pub(crate) async fn ask(&mut self, question: Question) -> Result<String, Interruption> {
        let answer = self.ask_until(question, None, None).await?;
        answer.ok_or_else(|| Interruption::Failed("nobody answered in time".to_owned()))
    }

    /// The answer to a question that waits no longer than `wait`; none if its time was over. How long that is, is decided when it
    /// is put. Without `by`, a person answers.
    pub(crate) async fn ask_until(
        &mut self,
        mut question: Question,
        wait: Option<Duration>,
        by: Option<Answerer<'_>>,
    ) -> Result<Option<String>, Interruption> {
        if let Some(node) = &self.context.asks_as {
            question.node = node.to_string();
        }
        if let Some(within) = &self.context.asks_within {
            question.node = format!("{within}.{}", question.node);
        }
        let (number, known) = self.next_answer();
        match known {
            Some(AnswerState::Answered(answer)) => return self.answered(&question, answer).await.map(Some),
            Some(AnswerState::Expired) => return Ok(None),
            Some(AnswerState::Open(expires)) => question.expires = expires,
            None => {
                let context = self.context.clone();
                let event =
                    || hook::event([("node", self.node.as_ref().into()), ("question", question.text.as_str().into())]);
                // A capability is between the policy and whoever runs this: hooks are guests themselves.
                let changed = match question.denial {
                    Some(_) => None,
                    None => telling::tell(&context, &mut self.account, HookPoint::BeforeQuestion, event).await?,
                };
                if let Some(text) = changed.as_ref().and_then(|event| event.get("question")?.as_text()) {
                    text.clone_into(&mut question.text);
                }
                // One that is longer than clocks can say is waited for as long as it takes.
                question.expires = wait.and_then(|wait| context.ports.clock.now().checked_add(wait));
                self.commit(Fact::Asked { number, question: question.clone() }).await?;
            }
        }
        self.emit(&Event::Asked { question: &question });
        let key = (self.place.clone(), number);
        if let Some(expires) = question.expires {
            self.context.remembered().deadlines.insert(key.clone(), expires);
        }
        let (used, heard) = self.first_answer(&question, &key, by).await;
        self.account += used;
        if !matches!(heard, Err(Interruption::Waiting)) {
            self.context.remembered().deadlines.remove(&key);
        }
        match heard? {
            Some(text) => {
                self.emit(&Event::Answered { node: &question.node });
                self.answered(&question, text).await.map(Some)
            }
            None => {
                self.emit(&Event::Expired { question: &question });
                Ok(None)
            }
        }
    }

    /// The answer of somebody who is here, or of somebody elsewhere who was faster; none if the time is over. Beside it, who used
    /// what for it.
    async fn first_answer(
        &self,
        question: &Question,
        key: &(EntryPath, u32),
        by: Option<Answerer<'_>>,
    ) -> (Account, Result<Option<String>, Interruption>) {
        let context = &self.context;
        if let Err(error) = context.writer.settled().await {
            return (Account::default(), Err(error.into()));
        }
        let clock = context.ports.clock.clone();
        let left = question.expires.map(|expires| expires.duration_since(clock.now()).unwrap_or_default());
        let is_person = by.is_none();
        let _thinking = self.idle.clone().filter(|_| is_person).map(Idle::enter);
        let mut waits = is_person.then(|| clock.idle());
        let shown = context.redaction.as_ref().map(|redaction| redaction.question(question));
        let shown = shown.as_ref().unwrap_or(question);
        let may_answer = question.denial.is_none() || context.ports.people.may_grant();
        let mut here = by.unwrap_or_else(|| {
            Box::pin(async {
                let answer = if may_answer { context.ports.people.ask(shown).await } else { None };
                (Account::default(), answer.map(Ok))
            })
        });
        let mut due = pin!(async {
            match left {
                Some(left) if left.is_zero() => {}
                Some(left) => clock.sleep(left).await,
                None => std::future::pending().await,
            }
        });
        let mut used = Account::default();
        let (mut is_answered_here, mut is_over) = (false, false);
        loop {
            let news = context.answered.notified();
            if let Some(AnswerState::Answered(text)) = context.remembered().answers.get(key) {
                return (used, Ok(Some(text.clone())));
            }
            let fact = tokio::select! {
                biased;
                () = &mut due, if !is_over => {
                    is_over = true;
                    Fact::Expired { number: key.1 }
                }
                (account, answer) = &mut here, if !is_answered_here => {
                    is_answered_here = true;
                    used += account;
                    if let Err(stop) = self.stop_if_withheld().await {
                        return (used, Err(stop));
                    }
                    match answer {
                        None => return (used, Err(Interruption::Waiting)),
                        Some(Err(stop)) => return (used, Err(stop)),
                        Some(Ok(text)) => Fact::Answered { number: key.1, text },
                    }
                }
                () = news => continue,
            };
            // To commit it is work.
            drop(waits.take());
            match self.first(fact).await {
                // Another answer is on its way.
                Ok(None) => {
                    context.remembered().deadlines.remove(key);
                    waits = is_person.then(|| clock.idle());
                }
                Ok(Some(first)) => return (used, Ok(first)),
                Err(stop) => return (used, Err(stop)),
            }
        }
    }

    /// Commits an answer, or that there is none in time, unless somebody was faster: then there is nothing.
    async fn first(&self, fact: Fact) -> Result<Option<Option<String>>, Interruption> {
        let (number, text) = match &fact {
            Fact::Answered { number, text } => (*number, Some(text.clone())),
            Fact::Expired { number } => (*number, None),
            _ => return Ok(None),
        };
        let (place, number) = self.context.remembered().asked_at(&self.place, number);
        let fact = match fact {
            Fact::Answered { text, .. } => Fact::Answered { number, text },
            _ => Fact::Expired { number },
        };
        match self.context.writer.append(vec![Entry { place, fact }]).await {
            Err(JournalError::NotAsked { .. } | JournalError::Expired { .. }) => Ok(None),
            other => Ok(other.map(|()| Some(text))?),
        }
    }

    /// What hooks make of an answer. The answer as it was given is in the journal.
    async fn answered(&mut self, question: &Question, answer: String) -> Result<String, Interruption> {
        if question.denial.is_some() {
            return Ok(answer);
        }
        let context = self.context.clone();
        let event = || {
            hook::event([
                ("node", self.node.as_ref().into()),
                ("question", question.text.as_str().into()),
                ("answer", answer.as_str().into()),
            ])
        };
        let changed = telling::tell(&context, &mut self.account, HookPoint::AfterQuestion, event).await?;
        let changed = changed.as_ref().and_then(|event| event.get("answer")?.as_text()).map(str::to_owned);
        Ok(changed.unwrap_or(answer))
    }

    async fn commit(&self, fact: Fact) -> Result<(), Interruption> {
        let entry = Entry { place: self.place.clone(), fact };
        Ok(self.context.writer.append(vec![entry]).await?)
    }
}
