//! Room for calls: how many work at once, and how much memory they have together. A call takes its place, and its limit of memory,
//! before it starts and gives both back when it ends, so that many calls at once cannot have more than the machine has.
//!
//! Whoever shares the room with others has a [`Share`] of it. Within a share, who comes first is served first, however much it
//! needs. Between shares, what becomes free goes to the one that has least, by its weight; what nobody else wants, anybody may
//! have. A part of each share is left free by all others, so that nobody waits for the end of somebody else's calls to begin.

mod accounts;

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use hotcell_budget::Bytes;
use tokio::sync::oneshot;

use self::accounts::{Accounts, Amount};

/// The unit in which memory is handed out.
const UNIT: u64 = 1 << 20;

/// Room for calls. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Room(Arc<Mutex<Accounts<Waiter>>>);

/// Whoever waits for a place, and the share of which it will be.
type Waiter = (oneshot::Sender<Place>, Arc<Share>);

/// A share of a room, as long as it is not dropped.
pub(crate) struct Share {
    room: Room,
    number: u64,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.room.accounts().close(self.number);
        self.room.hand_out();
    }
}

/// What one call has of a room, until this is dropped.
pub(crate) struct Place {
    share: Arc<Share>,
    amount: Amount,
}

impl Drop for Place {
    fn drop(&mut self) {
        let room = &self.share.room;
        let mut accounts = room.accounts();
        accounts.give_back(self.share.number, self.amount);
        let somebody_waits = accounts.somebody_waits();
        drop(accounts);
        if somebody_waits {
            room.hand_out();
        }
    }
}

impl Room {
    /// Room for so many calls with so much memory together.
    pub(crate) fn new(calls: usize, memory: Bytes) -> Self {
        let total = Amount { calls: u32::try_from(calls).unwrap_or(u32::MAX).max(1), units: units(memory).max(1) };
        Room(Arc::new(Mutex::new(Accounts::new(total))))
    }

    /// A share of this weight, of which a part is left free by all others.
    pub(crate) fn share(&self, weight: u32) -> Arc<Share> {
        Arc::new(Share { room: self.clone(), number: self.accounts().open(weight.max(1), true) })
    }

    /// The share of whoever has none of their own; nothing is left free for it.
    pub(crate) fn rest(&self) -> Arc<Share> {
        Arc::new(Share { room: self.clone(), number: self.accounts().open(1, false) })
    }

    fn accounts(&self) -> MutexGuard<'_, Accounts<Waiter>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives what is free to those who wait for it.
    fn hand_out(&self) {
        // What is dropped here wants the accounts again.
        let done = self.accounts().grant(|(sender, _)| sender.is_closed());
        for ((sender, share), amount) in done.granted {
            // Nobody may wait any more; the place is dropped then.
            let _ = sender.send(Place { share, amount });
        }
        drop(done.gone);
    }
}

impl Share {
    /// Waits for a place with so much memory. Who needs more than there is in all has it alone.
    pub(crate) async fn take(self: &Arc<Self>, memory: Bytes) -> Place {
        loop {
            if let Some(place) = self.at_once(memory) {
                return place;
            }
            let (sender, receiver) = oneshot::channel();
            self.room.accounts().wait(self.number, units(memory), (sender, self.clone()));
            self.room.hand_out();
            // Those who hand out never drop a sender that somebody waits for.
            if let Ok(place) = (Waiting { receiver, room: self.room.clone() }).await {
                return place;
            }
        }
    }

    /// A place, if there is one at this moment.
    pub(crate) fn try_take(self: &Arc<Self>, memory: Bytes) -> Option<Place> {
        self.at_once(memory)
    }

    fn at_once(self: &Arc<Self>, memory: Bytes) -> Option<Place> {
        let amount = self.room.accounts().take(self.number, units(memory))?;
        Some(Place { share: self.clone(), amount })
    }
}

/// Waits for a place. Others may get on when it does not wait any more.
struct Waiting {
    receiver: oneshot::Receiver<Place>,
    room: Room,
}

impl Future for Waiting {
    type Output = Result<Place, oneshot::error::RecvError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.receiver).poll(context)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.receiver.close();
        self.room.hand_out();
    }
}

fn units(memory: Bytes) -> u32 {
    u32::try_from(memory.0.div_ceil(UNIT)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
