//! Capabilities that calls of a run were denied: what is asked for, and what whoever runs this decided.

use std::collections::HashMap;
use std::sync::Mutex;

use hotcell_graph::Value;
use hotcell_journal::EntryPath;

use crate::what_if::locked;

/// Capabilities that a run asks for, at most: what a guest wants must not decide how often somebody is asked.
pub(crate) const MOST_OF_RUN: usize = 32;

/// A capability that whoever runs this granted when a call was denied it.
#[derive(Clone, Debug, PartialEq)]
pub struct Permit {
    /// The capability, as it was told with [`CallSite::deny`](crate::CallSite::deny)
    pub denial: Value,
    /// For how long
    pub scope: PermitScope,
}

/// For how long a capability is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermitScope {
    /// For this call
    Once,
    /// For calls of this run
    Run,
    /// For this and all runs, as long as it is written where such decisions are kept
    Always,
}

impl PermitScope {
    /// What a decision grants; none for a refusal, and everything that is no decision is one.
    pub(crate) fn of_decision(answer: &str) -> Option<Self> {
        match answer.trim() {
            "once" => Some(PermitScope::Once),
            "run" => Some(PermitScope::Run),
            "always" => Some(PermitScope::Always),
            _ => None,
        }
    }
}

/// A capability that a call was denied, for whoever runs this.
#[derive(Clone, Debug, PartialEq)]
pub struct Denied {
    /// What is asked for, in words
    pub text: String,
    /// What it is: an object that is the same each time the same is denied
    pub denial: Value,
}

/// What was granted to one call, and what it was denied.
#[derive(Default)]
pub(crate) struct Denials {
    pub(crate) permits: Vec<Permit>,
    /// What was refused before, and is not asked for again
    refused: Vec<Value>,
    told: Mutex<Told>,
}

#[derive(Default)]
struct Told {
    denied: Vec<Denied>,
    /// Whether the call did something outside that would be done twice if it were made again
    has_acted: bool,
}

impl Denials {
    pub(crate) fn new(permits: Vec<Permit>, refused: Vec<Value>) -> Self {
        Denials { permits, refused, told: Mutex::default() }
    }

    pub(crate) fn deny(&self, denied: Denied) {
        if self.refused.contains(&denied.denial) {
            return;
        }
        let mut told = locked(&self.told);
        if !told.denied.contains(&denied) {
            told.denied.push(denied);
        }
    }

    pub(crate) fn acted(&self) {
        locked(&self.told).has_acted = true;
    }

    /// What is to be asked for before the call is made again; nothing of a call that must not be made again.
    pub(crate) fn take(&self) -> Vec<Denied> {
        let told = std::mem::take(&mut *locked(&self.told));
        if told.has_acted { Vec::new() } else { told.denied }
    }
}

/// A question of a run for a capability.
struct Asked {
    denial: Value,
    is_decided: bool,
    /// Whether it was decided for another run, whose entries this one has
    is_of_other: bool,
}

/// What a run asked for, and what was decided, as far as its entries say.
#[derive(Default)]
pub(crate) struct Decided {
    asked: HashMap<(EntryPath, u32), Asked>,
    /// What counts for more than one call
    permits: Vec<Permit>,
    refused: Vec<Value>,
}

impl Decided {
    /// What was granted to all calls of the run.
    pub(crate) fn permits(&self) -> &[Permit] {
        &self.permits
    }

    /// What was refused.
    pub(crate) fn refused(&self) -> &[Value] {
        &self.refused
    }

    /// Takes note of a question.
    pub(crate) fn note_asked(&mut self, at: (EntryPath, u32), denial: Value) {
        self.asked.entry(at).or_insert(Asked { denial, is_decided: false, is_of_other: false });
    }

    /// Takes note of the answer to a question, if it is one for a capability.
    pub(crate) fn note_answer(&mut self, at: &(EntryPath, u32), answer: &str) {
        let Some(asked) = self.asked.get_mut(at).filter(|asked| !asked.is_of_other) else { return };
        asked.is_decided = true;
        let denial = asked.denial.clone();
        match PermitScope::of_decision(answer) {
            None if self.refused.contains(&denial) => {}
            None => self.refused.push(denial),
            Some(scope) => {
                self.refused.retain(|refused| *refused != denial);
                if scope != PermitScope::Once {
                    self.permits.retain(|known| known.denial != denial);
                    self.permits.push(Permit { denial, scope });
                }
            }
        }
    }

    /// Takes note that the entries so far are those of another run: what was decided there counts there.
    pub(crate) fn note_copied(&mut self) {
        self.permits.clear();
        self.refused.clear();
        self.asked.values_mut().for_each(|asked| asked.is_of_other = asked.is_decided);
    }

    /// Whether a question was decided for another run.
    pub(crate) fn is_of_other(&self, at: &(EntryPath, u32)) -> bool {
        self.asked.get(at).is_some_and(|asked| asked.is_of_other)
    }

    /// Whether the question was put before.
    pub(crate) fn was_asked(&self, at: &(EntryPath, u32)) -> bool {
        self.asked.contains_key(at)
    }

    /// Whether one more question may be put.
    pub(crate) fn has_room(&self) -> bool {
        self.asked.len() < MOST_OF_RUN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(number: u32) -> (EntryPath, u32) {
        (EntryPath::of_turn(1), number)
    }

    #[test]
    fn what_is_granted_once_counts_for_no_other_call_and_a_later_decision_replaces_one() {
        let mut decided = Decided::default();
        let (one, two) = (Value::text("one"), Value::text("two"));
        for (number, denial, answer) in [(0, &one, "once"), (1, &one, "refuse"), (2, &two, "always"), (3, &one, "run")]
        {
            decided.note_asked(at(number), denial.clone());
            decided.note_answer(&at(number), answer);
            let refused: &[Value] = if number == 1 || number == 2 { std::slice::from_ref(&one) } else { &[] };
            assert_eq!(decided.refused(), refused, "{answer}");
        }
        let permits = [(two, PermitScope::Always), (one, PermitScope::Run)];
        assert_eq!(decided.permits(), permits.map(|(denial, scope)| Permit { denial, scope }));
        // The answer to another question decides nothing.
        decided.note_answer(&at(9), "always");
        assert_eq!(decided.permits().len(), 2);
    }

    #[test]
    fn what_is_no_decision_is_a_refusal() {
        for answer in ["", "yes", "ALWAYS", "once more", "refuse"] {
            assert_eq!(PermitScope::of_decision(answer), None, "{answer}");
        }
        assert_eq!(PermitScope::of_decision(" run\n"), Some(PermitScope::Run));
    }

    #[test]
    fn what_was_decided_for_another_run_does_not_count_for_its_copy() {
        let mut decided = Decided::default();
        decided.note_asked(at(0), Value::text("one"));
        decided.note_answer(&at(0), "run");
        decided.note_asked(at(1), Value::text("two"));
        decided.note_copied();
        assert!(decided.permits().is_empty() && decided.is_of_other(&at(0)) && !decided.is_of_other(&at(1)));
        // A turn that is begun again is read again.
        decided.note_asked(at(0), Value::text("one"));
        decided.note_answer(&at(0), "run");
        assert!(decided.permits().is_empty());
        decided.note_answer(&at(1), "run");
        assert_eq!(decided.permits().len(), 1);
    }

    #[test]
    fn a_call_that_acted_outside_asks_for_nothing() {
        let denied = |text: &str| Denied { text: text.to_owned(), denial: Value::text(text) };
        let denials = Denials::new(Vec::new(), vec![Value::text("refused")]);
        for text in ["a", "a", "refused", "b"] {
            denials.deny(denied(text));
        }
        assert_eq!(denials.take(), [denied("a"), denied("b")]);
        denials.deny(denied("a"));
        denials.acted();
        assert!(denials.take().is_empty());
    }
}
