//! What was asked of the world, and what must not be asked again.
//!
//! Every reply carries a token that is made from its request. Where a token shows up later proves that the reply is
//! known: in the journal, or in another request that was made from it.

use std::collections::{BTreeMap, BTreeSet};

use super::reply::Effect;
use crate::scenario::Fault;

/// One request for an effect.
pub(crate) struct Asked {
    pub(crate) token: String,
    /// The request in a line
    pub(crate) shown: String,
    /// The process that made it, from 1
    pub(crate) life: usize,
    pub(crate) fault: Option<Fault>,
    /// Whether the true reply has gone out whole
    pub(crate) replied: bool,
}

/// Every request of a run.
#[derive(Default)]
pub(crate) struct Ledger {
    asked: Vec<Asked>,
    life: usize,
    /// Tokens of replies that were in the journal when the last process died
    committed: BTreeSet<String>,
    /// Tokens of replies that a later request was made from, and that request
    used: BTreeMap<String, String>,
    /// Tokens of replies that were on their way to a process that ended by itself, and its number
    given_up: BTreeMap<String, usize>,
    violations: Vec<String>,
}

impl Ledger {
    pub(crate) fn asked(&self) -> &[Asked] {
        &self.asked
    }

    /// How many replies the journal had when the last process died.
    pub(crate) fn committed(&self) -> usize {
        self.committed.len()
    }

    /// Everything that was asked for again although its reply was known.
    pub(crate) fn violations(&self) -> &[String] {
        &self.violations
    }

    /// Another process begins.
    pub(crate) fn begin_life(&mut self) {
        self.life += 1;
    }

    /// Whether the last process asked for anything.
    pub(crate) fn was_asked(&self) -> bool {
        self.asked.last().is_some_and(|asked| asked.life == self.life)
    }

    /// Notes which replies the journal has. Those that were made in this life and are not there were under way.
    pub(crate) fn commit(&mut self, is_there: impl Fn(&str) -> bool) -> usize {
        self.committed = self.asked.iter().map(|asked| asked.token.clone()).filter(|token| is_there(token)).collect();
        let under_way = |asked: &&Asked| asked.life == self.life && !self.committed.contains(&asked.token);
        self.asked.iter().filter(under_way).count()
    }

    /// The last process ended by itself: nobody but it is to blame if the journal does not have what was on its way. How
    /// many effects that are.
    pub(crate) fn give_up(&mut self) -> usize {
        let is_given_up = |asked: &&Asked| {
            let happens = asked.fault.is_none_or(|fault| fault == Fault::Slow);
            asked.life == self.life && happens && !self.committed.contains(&asked.token)
        };
        let given_up: Vec<String> = self.asked.iter().filter(is_given_up).map(|asked| asked.token.clone()).collect();
        let many = given_up.len();
        self.given_up.extend(given_up.into_iter().map(|token| (token, self.life)));
        many
    }

    /// The tokens of true replies that went out and that the journal did not have at last.
    pub(crate) fn unknown(&self) -> Vec<&Asked> {
        self.asked.iter().filter(|asked| asked.replied && !self.committed.contains(&asked.token)).collect()
    }

    /// How often a request was refused so far.
    pub(super) fn faults(&self, token: &str) -> usize {
        let refused = |asked: &&Asked| asked.token == token && asked.fault.is_some_and(|fault| fault != Fault::Slow);
        self.asked.iter().filter(refused).count()
    }

    /// Takes a request in: its place here.
    pub(super) fn ask(&mut self, effect: &Effect, fault: Option<Fault>) -> usize {
        let Effect { token, shown, content, .. } = effect;
        let life = self.life;
        if self.committed.contains(token) {
            self.violations.push(format!("process {life} asked again what the journal knew: {shown}"));
        } else if self.asked.iter().any(|asked| asked.token == *token && asked.life == life && asked.replied) {
            self.violations.push(format!("process {life} asked again what it had been told: {shown}"));
        } else if let Some(by) = self.used.get(token) {
            self.violations.push(format!("process {life} asked again what had been used for `{by}`: {shown}"));
        } else if let Some(by) = self.given_up.remove(token) {
            let how = format!("what process {by} did not wait for when it ended by itself");
            self.violations.push(format!("process {life} asked again {how}: {shown}"));
        }
        for asked in &self.asked {
            if content.contains(&asked.token) {
                self.used.entry(asked.token.clone()).or_insert_with(|| shown.clone());
            }
        }
        self.asked.push(Asked { token: token.clone(), shown: shown.clone(), life, fault, replied: false });
        self.asked.len() - 1
    }

    /// An answer has gone out.
    pub(super) fn written(&mut self, entry: usize) {
        if let Some(asked) = self.asked.get_mut(entry) {
            asked.replied = asked.fault.is_none_or(|fault| fault == Fault::Slow);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(ledger: &mut Ledger, token: &str, content: &str) {
        let effect = Effect {
            token: token.to_owned(),
            shown: token.to_owned(),
            content: content.to_owned(),
            kind: "",
            body: String::new(),
            faults: &[],
        };
        let entry = ledger.ask(&effect, None);
        ledger.written(entry);
    }

    fn after_a_death(has: &[&str]) -> Ledger {
        let mut ledger = Ledger::default();
        ledger.begin_life();
        ask(&mut ledger, "t1", "go");
        ledger.commit(|token| has.contains(&token));
        ledger.begin_life();
        ledger
    }

    #[test]
    fn what_was_under_way_at_a_death_may_be_asked_again() {
        let mut ledger = after_a_death(&[]);
        ask(&mut ledger, "t1", "go");
        assert!(ledger.violations().is_empty(), "{:?}", ledger.violations());
    }

    #[test]
    fn what_the_journal_has_may_not() {
        let mut ledger = after_a_death(&["t1"]);
        ask(&mut ledger, "t1", "go");
        assert!(ledger.violations()[0].contains("what the journal knew"), "{:?}", ledger.violations());
    }

    #[test]
    fn what_a_process_was_told_it_may_not_ask_again() {
        let mut ledger = after_a_death(&[]);
        ask(&mut ledger, "t1", "go");
        ask(&mut ledger, "t1", "go");
        assert!(ledger.violations()[0].contains("what it had been told"), "{:?}", ledger.violations());
    }

    #[test]
    fn what_something_was_made_from_has_been_committed() {
        let mut ledger = after_a_death(&[]);
        ask(&mut ledger, "t2", "after t1");
        ledger.commit(|_| false);
        ledger.begin_life();
        ask(&mut ledger, "t1", "go");
        assert!(ledger.violations()[0].contains("used for `t2`"), "{:?}", ledger.violations());
    }

    #[test]
    fn a_process_that_ends_by_itself_waits_for_what_is_under_way() {
        let mut ledger = after_a_death(&[]);
        ask(&mut ledger, "t2", "go on");
        ledger.commit(|_| false);
        assert_eq!(ledger.give_up(), 1);
        ledger.begin_life();
        ask(&mut ledger, "t2", "go on");
        assert!(ledger.violations()[0].contains("ended by itself"), "{:?}", ledger.violations());
    }
}
