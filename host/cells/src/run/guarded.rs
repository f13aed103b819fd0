//! The guarded part of a call: it ends with the guest, with its time, or with a panic of the host.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::Poll;
use std::time::Instant;

use super::enter::Returned;

/// How the guarded part of a call ended.
pub(super) enum Outcome {
    Returned(wasmtime::Result<Returned>),
    DeadlineOver,
    Panicked(String),
}

/// Runs a call until it ends, its time is over, or the host panics. The timer is only set up for a call that waits.
pub(super) async fn guarded<C>(deadline: Option<Instant>, mut call: Pin<&mut C>) -> Outcome
where
    C: Future<Output = wasmtime::Result<Returned>>,
{
    let mut timer: Option<Pin<Box<tokio::time::Sleep>>> = None;
    poll_fn(|cx| {
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Poll::Ready(Outcome::DeadlineOver);
        }
        match catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(cx))) {
            Ok(Poll::Ready(result)) => return Poll::Ready(Outcome::Returned(result)),
            Ok(Poll::Pending) => {}
            Err(panic) => return Poll::Ready(Outcome::Panicked(panic_message(panic.as_ref()))),
        }
        let Some(deadline) = deadline else { return Poll::Pending };
        let timer = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline.into())));
        timer.as_mut().poll(cx).map(|()| Outcome::DeadlineOver)
    })
    .await
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned());
    crate::text::one_line(&text, 500)
}
