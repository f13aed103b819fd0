//! A node's turn: what it may do to the outside, and the memory of what it did.
//!
//! Everything outside that answers within a turn is an effect with a number. Answers are committed, so a turn that is
//! repeated after a crash, or after a person answered hours later, gets the same answers at the same numbers and goes
//! on where it stopped, without asking anyone twice.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use hotcell_budget::Account;
use hotcell_graph::{Key, Value};
use hotcell_journal::{Entry, EntryPath, Fact, JournalError, Question, Write};

use crate::call_site::CallSite;
use crate::context::{Idle, Interruption, RunContext};
use crate::event::Event;
use crate::hook::{self, HookPoint};
use crate::memory::{Deed, attempt_place};
use crate::telling;

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
    /// Whether it took longer than it may
    pub(crate) timed_out: bool,
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
            timed_out: false,
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
        CallSite::new(self.context.writer.clone(), self.place.clone())
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
    ) -> Result<Value, Interruption>
    where
        F: Future<Output = (Account, Result<Value, Interruption>)>,
    {
        let number = self.next_number();
        let known =
            self.context.remembered().take_effect(&self.place, number, &deed).map_err(Interruption::Diverged)?;
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
            Some(Some(body)) => return Ok(body),
            Some(None) => {}
            None => self.commit(Fact::Asked { number, question: question.clone() }).await?,
        }
        self.emit(&Event::Asked { question: &question });
        Err(Interruption::Waiting)
    }

    /// The number of the next question, and its answer if it was put before: none within if it is open.
    fn next_answer(&mut self) -> (u32, Option<Option<String>>) {
        let number = self.next_number();
        let mut remembered = self.context.remembered();
        (number, remembered.answers.remove(&(self.place.clone(), number)))
    }

    /// The person's answer to a question. The question is committed before the person sees it.
    pub(crate) async fn ask(&mut self, mut question: Question) -> Result<String, Interruption> {
        if let Some(node) = &self.context.asks_as {
            question.node = node.to_string();
        }
        if let Some(within) = &self.context.asks_within {
            question.node = format!("{within}.{}", question.node);
        }
        let (number, known) = self.next_answer();
        match known {
            Some(Some(answer)) => return self.answered(&question, answer).await,
            Some(None) => {}
            None => {
                let context = self.context.clone();
                let event =
                    || hook::event([("node", self.node.as_ref().into()), ("question", question.text.as_str().into())]);
                let changed = telling::tell(&context, &mut self.account, HookPoint::BeforeQuestion, event).await?;
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
    async fn first_answer(&self, question: &Question, number: u32) -> Result<String, Interruption> {
        let context = &self.context;
        context.writer.settled().await?;
        let _thinking = self.idle.clone().map(Idle::enter);
        let _waits = context.ports.clock.idle();
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
                    let Some(text) = answer else { return Err(Interruption::Waiting) };
                    let (place, number) = context.remembered().asked_at(&self.place, number);
                    let fact = Fact::Answered { number, text: text.clone() };
                    match context.writer.append(vec![Entry { place, fact }]).await.map_err(Interruption::from) {
                        // Another answer is on its way.
                        Err(Interruption::Journal(JournalError::NotAsked { .. })) => is_answered_here = true,
                        other => return other.map(|()| text),
                    }
                }
                () = news => {}
            }
        }
    }

    /// What hooks make of an answer. The answer as it was given is in the journal.
    async fn answered(&mut self, question: &Question, answer: String) -> Result<String, Interruption> {
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
