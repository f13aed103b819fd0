//! Items that are worked on side by side: which may begin, and whether one is worth a task of its own.

use std::future::ready;
use std::task::Poll;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use tokio::task::{JoinError, coop};
use tokio_util::task::AbortOnDropHandle;

/// Work that takes longer than this is worth a task, which another core may take. Handing over costs a part of it.
const WORTH_A_TASK: Duration = Duration::from_micros(100);

/// How several items are worked on at one time.
pub(super) struct SideBySide {
    limit: usize,
    asking: bool,
    small: bool,
}

impl SideBySide {
    /// No more than `limit` items side by side. Those that may ask somebody take turns, so that they ask in their order
    /// and nobody is asked two things at once.
    pub(super) fn new(limit: usize, asking: bool) -> Self {
        SideBySide { limit: limit.max(1), asking, small: true }
    }

    /// Whether the item of that number may start, the next in order, while so many are running. Where one waits already, so
    /// many are still started that all whom the limit allows side by side have asked.
    pub(super) fn may_start(&self, running: usize, item: usize, waiting: bool) -> bool {
        let side_by_side = if self.asking { 1 } else { self.limit };
        running < side_by_side && (!waiting || (self.asking && item < self.limit))
    }

    /// Begins the work on an item. It is done here if it is done at once; otherwise it goes on as a task, which ends when
    /// what is returned is dropped. As soon as an item takes its time without waiting for anything, the next ones begin as
    /// tasks.
    pub(super) async fn start<T: Send + 'static>(
        &mut self,
        mut work: BoxFuture<'static, T>,
    ) -> BoxFuture<'static, Result<T, JoinError>> {
        if self.small {
            // Many small items must not keep others from this thread.
            coop::consume_budget().await;
            let begun = Instant::now();
            let polled = futures::poll!(&mut work);
            self.small = begun.elapsed() < WORTH_A_TASK;
            if let Poll::Ready(done) = polled {
                return Box::pin(ready(Ok(done)));
            }
        }
        Box::pin(AbortOnDropHandle::new(tokio::spawn(work)))
    }
}
