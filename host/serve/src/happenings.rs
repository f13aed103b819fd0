//! What happens in a run and is not committed, put between its entries where it happened.
//!
//! Entries are read from the store and happenings arrive in memory, each as fast as it can. What keeps them in order is that a turn
//! is told in both: a happening says that the turn at this place is committed, and an entry is what was committed.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use hotcell_runtime::{Entry, EntryPath, Fact};
use tokio::sync::broadcast::{self, error::RecvError, error::TryRecvError};

/// Happenings of a run that are kept for a client that reads slowly; what is older is left out for it, and for nobody else.
pub(crate) const KEPT: usize = 256;

/// Something that happened in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Happening {
    /// It is in no entry. As JSON
    Live(Arc<str>),
    /// The turn at this place was completed, which an entry says
    Completed(Arc<str>),
}

/// What whoever begins to listen to a run hears of it.
pub(crate) struct Heard {
    /// What happens from now on
    pub(crate) receiver: broadcast::Receiver<Happening>,
    /// What is told of the turns that are under way, by their numbers
    pub(crate) open: BTreeMap<u64, Arc<str>>,
}

/// Those of one run, for one client that reads its entries.
pub(crate) struct Happenings {
    /// Whether the first of its entries is still to be told, before which nothing happened
    is_new: bool,
    /// What is told of turns that were under way when the client came, by their numbers, until it was told
    open: BTreeMap<u64, Arc<str>>,
    /// None when nothing more will come
    receiver: Option<broadcast::Receiver<Happening>>,
    /// Came, and was not told
    waiting: VecDeque<Happening>,
    /// The places of turns whose entries were told before it came that they were completed
    told: VecDeque<Box<str>>,
}

impl Happenings {
    /// For a client that has seen the entries up to the one with this number.
    pub(crate) fn new(heard: Option<Heard>, seen: u64) -> Self {
        let (receiver, open) = heard.map_or_else(Default::default, |heard| (Some(heard.receiver), heard.open));
        Happenings { is_new: seen == 0, open, receiver, waiting: VecDeque::new(), told: VecDeque::new() }
    }

    /// What is told when every entry was told that there was: the turns that are under way.
    pub(crate) fn caught_up(&mut self) -> Vec<Arc<str>> {
        std::mem::take(&mut self.open).into_values().collect()
    }

    /// What is told of turns that began before something of one of them was committed.
    fn begun(&mut self, place: &EntryPath) -> Vec<Arc<str>> {
        let Some(turn) = place.turn().filter(|_| !self.open.is_empty()) else { return Vec::new() };
        let later = self.open.split_off(&(turn + 1));
        std::mem::replace(&mut self.open, later).into_values().collect()
    }

    /// What is told next, as JSON; waits for ever when there is nothing more. Whoever drops this while it waits misses nothing.
    pub(crate) async fn next(&mut self) -> Arc<str> {
        loop {
            if let Some(live) = self.pop() {
                return live;
            }
            let Some(receiver) = &mut self.receiver else { return std::future::pending().await };
            match receiver.recv().await {
                Ok(happening) => self.wait(happening),
                // The client was too slow for it.
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => self.receiver = None,
            }
        }
    }

    /// What is told before this entry, which is the next one, as JSON.
    pub(crate) fn before(&mut self, entry: &Entry) -> Vec<Arc<str>> {
        self.take_what_came();
        if std::mem::take(&mut self.is_new) {
            return Vec::new();
        }
        let mut before = self.begun(&entry.place);
        let Fact::Completed(_) = &entry.fact else {
            before.extend(std::iter::from_fn(|| self.pop()));
            return before;
        };
        let place = entry.place.as_str();
        let is_it = |happening: &Happening| matches!(happening, Happening::Completed(of) if **of == *place);
        if let Some(at) = self.waiting.iter().position(is_it) {
            before.extend(self.waiting.drain(..=at).filter_map(Happening::live));
            return before;
        }
        before.extend(std::iter::from_fn(|| self.pop()));
        if self.receiver.is_some() && !entry.place.is_step() {
            push(&mut self.told, place.into());
        }
        before
    }

    /// What is left when the last entry was told.
    pub(crate) fn rest(&mut self) -> Vec<Arc<str>> {
        self.take_what_came();
        let mut rest = self.caught_up();
        rest.extend(self.waiting.drain(..).filter_map(Happening::live));
        rest
    }

    fn take_what_came(&mut self) {
        while let Some(receiver) = &mut self.receiver {
            match receiver.try_recv() {
                Ok(happening) => self.wait(happening),
                Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
        }
    }

    fn wait(&mut self, happening: Happening) {
        push(&mut self.waiting, happening);
    }

    /// The next one, unless it happened after a turn whose entry is still to be told.
    fn pop(&mut self) -> Option<Arc<str>> {
        if self.is_new || !self.open.is_empty() {
            return None;
        }
        while let Some(Happening::Completed(place)) = self.waiting.front() {
            let at = self.told.iter().position(|told| **told == **place)?;
            self.told.remove(at);
            self.waiting.pop_front();
        }
        self.waiting.pop_front().and_then(Happening::live)
    }
}

impl Happening {
    fn live(self) -> Option<Arc<str>> {
        match self {
            Happening::Live(text) => Some(text),
            Happening::Completed(_) => None,
        }
    }
}

/// Adds something, and forgets the oldest if there are too many.
fn push<T>(kept: &mut VecDeque<T>, new: T) {
    if kept.len() >= KEPT {
        kept.pop_front();
    }
    kept.push_back(new);
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use hotcell_runtime::Completed;

    use super::*;

    fn completed(place: &str) -> Entry {
        let done = Completed {
            node: "node".into(),
            writes: Vec::new(),
            next: None,
            output: None,
            failure: None,
            failure_kind: None,
            handled: false,
            elapsed: Default::default(),
            account: Default::default(),
        };
        Entry { place: EntryPath::from(place.to_owned()), fact: Fact::Completed(done) }
    }

    fn heard(sender: &broadcast::Sender<Happening>, open: &[(u64, &str)]) -> Option<Heard> {
        let open = open.iter().map(|(turn, text)| (*turn, (*text).into())).collect();
        Some(Heard { receiver: sender.subscribe(), open })
    }

    fn live(text: &str) -> Happening {
        Happening::Live(text.into())
    }

    fn done(place: &str) -> Happening {
        Happening::Completed(place.into())
    }

    /// Everything that is told while no entry is read.
    fn now(happenings: &mut Happenings) -> Vec<Arc<str>> {
        std::iter::from_fn(|| happenings.next().now_or_never()).collect()
    }

    fn texts(told: &[Arc<str>]) -> Vec<&str> {
        told.iter().map(|text| &**text).collect()
    }

    /// A turn begins, is completed, and the next one begins: whichever of the two channels is faster.
    #[test]
    fn it_is_told_where_it_happened() {
        let sender = broadcast::Sender::new(KEPT);
        let mut happenings = Happenings::new(heard(&sender, &[]), 0);
        let send = |all: Vec<Happening>| all.into_iter().for_each(|one| drop(sender.send(one)));
        // The entry is read late.
        send(vec![live("1 begins"), done("1"), live("2 begins")]);
        assert!(now(&mut happenings).is_empty(), "the run has not begun");
        assert!(happenings.before(&Entry::of_run(Fact::Resumed)).is_empty());
        assert_eq!(texts(&now(&mut happenings)), ["1 begins"]);
        assert!(happenings.before(&completed("1")).is_empty());
        assert_eq!(texts(&now(&mut happenings)), ["2 begins"]);
        // The entry is read early.
        send(vec![live("2 works")]);
        assert_eq!(texts(&happenings.before(&completed("2"))), ["2 works"]);
        send(vec![done("2"), live("3 begins")]);
        assert_eq!(texts(&now(&mut happenings)), ["3 begins"]);
        // Several entries are read at once, and everything has happened.
        send(vec![done("3"), live("4 begins"), done("4"), live("5 begins")]);
        assert!(happenings.before(&completed("3")).is_empty());
        assert_eq!(texts(&happenings.before(&completed("4"))), ["4 begins"]);
        assert_eq!(texts(&happenings.rest()), ["5 begins"]);
    }

    #[test]
    fn entries_that_are_told_to_others_stop_nothing() {
        let sender = broadcast::Sender::new(KEPT);
        let mut happenings = Happenings::new(heard(&sender, &[]), 4);
        // The client came back and has seen the entry of turn 1.
        for happening in [done("1"), live("2 begins"), done("2"), live("3 begins")] {
            sender.send(happening).unwrap();
        }
        assert_eq!(texts(&happenings.before(&completed("2"))), ["2 begins"]);
        assert_eq!(texts(&now(&mut happenings)), ["3 begins"]);
        drop(sender);
        assert!(happenings.next().now_or_never().is_none());
        assert!(happenings.rest().is_empty());
    }

    /// Two turns are under way when a client comes that has seen four entries.
    #[test]
    fn who_comes_late_is_told_what_is_under_way() {
        let sender = broadcast::Sender::new(KEPT);
        let come = || Happenings::new(heard(&sender, &[(3, "3 begins"), (4, "4 begins")]), 4);
        let asked = Entry { place: EntryPath::of_turn(3), fact: Fact::Waiting };
        let (mut late, mut later) = (come(), come());
        sender.send(live("3 works")).unwrap();
        assert!(now(&mut late).is_empty(), "entries before that may be left");
        assert!(late.before(&completed("2")).is_empty());
        assert_eq!(texts(&late.before(&asked)), ["3 begins"]);
        assert_eq!(texts(&late.caught_up()), ["4 begins"]);
        assert_eq!(texts(&now(&mut late)), ["3 works"]);
        assert_eq!(texts(&later.caught_up()), ["3 begins", "4 begins"]);
        assert!(later.caught_up().is_empty());
        assert_eq!(texts(&now(&mut later)), ["3 works"]);
    }

    #[test]
    fn no_more_is_kept_than_a_few() {
        let sender = broadcast::Sender::new(4);
        let mut happenings = Happenings::new(heard(&sender, &[]), 4);
        for number in 0..10 {
            sender.send(live(&number.to_string())).unwrap();
        }
        assert_eq!(texts(&happenings.rest()), ["6", "7", "8", "9"]);
        for number in 0..3 * KEPT {
            happenings.before(&completed(&number.to_string()));
        }
        assert_eq!(happenings.told.len(), KEPT);
    }
}
