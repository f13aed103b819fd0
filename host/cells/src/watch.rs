//! The clock of a call: its deadline holds, and others get their turn, whatever the guest does.
//!
//! Fuel makes a guest yield, but native code that works for a guest (random numbers, the transcoding of strings, growing a
//! table) costs next to no fuel. So the clock is read whenever such code returns to the guest: a call whose time is over
//! ends there, and one that has held its thread for long lets others go on. What remains is one piece of native code at a
//! time, and each of those is limited by what a call may hand over or have in memory.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use wasmtime::{CallHook, CallHookHandler, StoreContextMut};

/// How long a guest may hold its thread with calls of native code.
const TURN: Duration = Duration::from_millis(1);

/// The time of the call is over; it ends the call, and no guest can catch it.
#[derive(Debug, thiserror::Error)]
#[error("the time of the call is over")]
pub(crate) struct DeadlineOver;

/// When a call has to end, and when it lets others go on.
#[derive(Debug)]
pub(crate) struct Watch {
    /// None for a call whose time ends beyond all time.
    deadline: Option<Instant>,
    turn_ends: Instant,
}

impl Watch {
    /// The watch of a call that began then and may take `wall_clock`.
    pub(crate) fn start(began: Instant, wall_clock: Duration) -> Self {
        Self { deadline: began.checked_add(wall_clock), turn_ends: began + TURN }
    }

    /// The end of the call.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// What is due now.
    fn look(&mut self) -> Due {
        let now = Instant::now();
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            return Due::End;
        }
        if now < self.turn_ends {
            return Due::Nothing;
        }
        self.turn_ends = now + TURN;
        Due::Turn
    }
}

enum Due {
    Nothing,
    Turn,
    End,
}

/// Something that has the watch of a call.
pub(crate) trait Watched {
    fn watch(&mut self) -> &mut Watch;
}

/// Looks at the watch of a call whenever native code returns to its guest.
pub(crate) struct Watcher;

type Looked<'a> = Pin<Box<dyn Future<Output = wasmtime::Result<()>> + Send + 'a>>;

impl<T: Watched + Send + 'static> CallHookHandler<T> for Watcher {
    // Written out, because this runs for every call of the host: a box of something without size allocates nothing.
    fn handle_call_event<'life0, 'life1, 'async_trait>(
        &'life0 self,
        mut store: StoreContextMut<'life1, T>,
        hook: CallHook,
    ) -> Looked<'async_trait>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        Self: 'async_trait,
    {
        if !matches!(hook, CallHook::ReturningFromHost) {
            return Box::pin(GoOn);
        }
        match store.data_mut().watch().look() {
            Due::Nothing => Box::pin(GoOn),
            Due::Turn => Box::pin(LetOthers { done: false }),
            Due::End => Box::pin(End),
        }
    }
}

/// Nothing is due.
struct GoOn;

impl Future for GoOn {
    type Output = wasmtime::Result<()>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(Ok(()))
    }
}

/// Gives the thread away once.
struct LetOthers {
    done: bool,
}

impl Future for LetOthers {
    type Output = wasmtime::Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.done {
            return Poll::Ready(Ok(()));
        }
        self.done = true;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Ends the call.
struct End;

impl Future for End {
    type Output = wasmtime::Result<()>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(Err(wasmtime::Error::new(DeadlineOver)))
    }
}
