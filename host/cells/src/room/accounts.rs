//! Who has how much of a room, and who is served next. It waits for nothing: whoever waits is a value that it keeps.

use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque};

/// The part of a share that others leave free: one of so many.
const KEPT_FREE: u128 = 4;

/// Places for calls, and units of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) calls: u32,
    pub(super) units: u32,
}

impl Amount {
    fn fits(self, within: Amount) -> bool {
        self.calls <= within.calls && self.units <= within.units
    }

    fn plus(self, other: Amount) -> Amount {
        Amount { calls: self.calls.saturating_add(other.calls), units: self.units.saturating_add(other.units) }
    }

    fn minus(self, other: Amount) -> Amount {
        Amount { calls: self.calls.saturating_sub(other.calls), units: self.units.saturating_sub(other.units) }
    }
}

/// Who has how much. `W` waits.
pub(super) struct Accounts<W> {
    total: Amount,
    free: Amount,
    open: BTreeMap<u64, Account<W>>,
    /// Of all for whom others leave a part free
    weights: u128,
    /// The number of the next share
    next: u64,
    /// Counts what was handed out
    served: u64,
}

struct Account<W> {
    weight: u32,
    /// Whether others leave a part of it free
    has_reserve: bool,
    used: Amount,
    waiting: VecDeque<(u32, W)>,
    /// When it was served last
    served: u64,
}

/// Those who do not wait any more.
pub(super) struct Done<W> {
    /// Those who get something
    pub(super) granted: Vec<(W, Amount)>,
    /// Those who are gone
    pub(super) gone: Vec<W>,
}

impl<W> Accounts<W> {
    pub(super) fn new(total: Amount) -> Self {
        Accounts { total, free: total, open: BTreeMap::new(), weights: 0, next: 0, served: 0 }
    }

    pub(super) fn open(&mut self, weight: u32, has_reserve: bool) -> u64 {
        let number = self.next;
        self.next += 1;
        let account = Account { weight, has_reserve, used: Amount::default(), waiting: VecDeque::new(), served: 0 };
        self.open.insert(number, account);
        if has_reserve {
            self.weights += u128::from(weight);
        }
        number
    }

    pub(super) fn close(&mut self, number: u64) {
        if let Some(closed) = self.open.remove(&number)
            && closed.has_reserve
        {
            self.weights -= u128::from(closed.weight);
        }
    }

    /// Takes a place with so much memory, if there is one and nobody of the same share waits for one.
    pub(super) fn take(&mut self, number: u64, units: u32) -> Option<Amount> {
        let own = self.open.get(&number)?;
        if !own.waiting.is_empty() {
            return None;
        }
        let others_wait = self.somebody_waits();
        let amount = self.bounded(number, units);
        self.fits(number, amount, others_wait).then(|| self.use_up(number, amount))
    }

    /// Whether anybody waits, of whatever share.
    pub(super) fn somebody_waits(&self) -> bool {
        self.open.values().any(|account| !account.waiting.is_empty())
    }

    pub(super) fn wait(&mut self, number: u64, units: u32, waiter: W) {
        if let Some(account) = self.open.get_mut(&number) {
            account.waiting.push_back((units, waiter));
        }
    }

    pub(super) fn give_back(&mut self, number: u64, amount: Amount) {
        self.free = self.free.plus(amount);
        if let Some(account) = self.open.get_mut(&number) {
            account.used = account.used.minus(amount);
        }
    }

    /// Hands out what is free, in order.
    pub(super) fn grant(&mut self, is_gone: impl Fn(&W) -> bool) -> Done<W> {
        let mut done = Done { granted: Vec::new(), gone: Vec::new() };
        loop {
            for account in self.open.values_mut() {
                while let Some((_, waiter)) = account.waiting.pop_front_if(|(_, waiter)| is_gone(waiter)) {
                    done.gone.push(waiter);
                }
            }
            let Some((number, amount)) = self.next_served() else { return done };
            let waiter = self.open.get_mut(&number).and_then(|account| account.waiting.pop_front());
            let Some((_, waiter)) = waiter else { return done };
            let amount = self.use_up(number, amount);
            done.granted.push((waiter, amount));
        }
    }

    /// Whose turn it is, and what they get.
    fn next_served(&self) -> Option<(u64, Amount)> {
        let mut waiting: Vec<(u64, u32)> =
            self.open.iter().filter_map(|(number, account)| Some((*number, account.waiting.front()?.0))).collect();
        waiting.sort_by(|(one, _), (other, _)| self.order(*one, *other));
        let mut somebody_waits = false;
        for (number, units) in waiting {
            let amount = self.bounded(number, units);
            if self.fits(number, amount, somebody_waits) {
                return Some((number, amount));
            }
            // Nobody who has more overtakes.
            somebody_waits = true;
        }
        None
    }

    /// Who has less, by their weights; of those who have the same, who was served longer ago.
    fn order(&self, one: u64, other: u64) -> Ordering {
        let (Some(a), Some(b)) = (self.open.get(&one), self.open.get(&other)) else { return Ordering::Equal };
        let level = |of: &Account<W>, against: &Account<W>| self.part(of.used) * u128::from(against.weight);
        level(a, b).cmp(&level(b, a)).then(a.served.cmp(&b.served)).then(one.cmp(&other))
    }

    /// The larger of the parts that an amount is of all calls and of all memory, in a unit that all amounts have in common.
    fn part(&self, of: Amount) -> u128 {
        let times = |a: u32, b: u32| u128::from(a) * u128::from(b);
        times(of.calls, self.total.units).max(times(of.units, self.total.calls))
    }

    /// Whether a share may have that much more. What others leave free for it, it may always have; more than that only what they
    /// need not have left free for others, and if nobody waits who has less.
    fn fits(&self, number: u64, amount: Amount, somebody_waits: bool) -> bool {
        let Some(account) = self.open.get(&number) else { return false };
        if !amount.fits(self.free) {
            return false;
        }
        if account.used.plus(amount).fits(self.reserve(account)) {
            return true;
        }
        let others = self.open.iter().filter(|(other, _)| **other != number);
        let kept =
            others.fold(Amount::default(), |sum, (_, account)| sum.plus(self.reserve(account).minus(account.used)));
        !somebody_waits && kept.fits(self.free.minus(amount))
    }

    /// What others leave free for a share.
    fn reserve(&self, account: &Account<W>) -> Amount {
        if !account.has_reserve {
            return Amount::default();
        }
        let part = |total: u32| {
            let part = u128::from(total) * u128::from(account.weight) / self.weights.max(1) / KEPT_FREE;
            u32::try_from(part).unwrap_or(u32::MAX)
        };
        Amount { calls: part(self.total.calls), units: part(self.total.units) }
    }

    /// A place with so much memory, or as much as the share can ever have.
    fn bounded(&self, number: u64, units: u32) -> Amount {
        let others = self.open.iter().filter(|(other, _)| **other != number);
        let kept: u32 = others.fold(0, |sum: u32, (_, account)| sum.saturating_add(self.reserve(account).units));
        Amount { calls: 1, units: units.min(self.total.units.saturating_sub(kept).max(1)) }
    }

    fn use_up(&mut self, number: u64, amount: Amount) -> Amount {
        self.served += 1;
        self.free = self.free.minus(amount);
        if let Some(account) = self.open.get_mut(&number) {
            account.used = account.used.plus(amount);
            account.served = self.served;
        }
        amount
    }
}
