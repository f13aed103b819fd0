//! Items that are worked on side by side: which may begin, and whether one is worth a task of its own.

use std::future::ready;
use std::task::Poll;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use tokio::task::{JoinError, coop};
use tokio_util::task::AbortOnDropHandle;

/// Work that takes longer than this is worth a task, which another core may take. Handing over costs a part of it.
const WORTH_A_TASK: Duration = Duration::from_micros(100);
/// How many items begin as tasks after one that was worth it. Then it is looked again: that one may have been an exception.
const TASKS_IN_A_ROW: u32 = 16;

/// How several items are worked on at one time.
pub(super) struct SideBySide {
    limit: usize,
    asking: bool,
    /// Items that begin as tasks before it is looked again whether they are worth it
    tasks: u32,
}

impl SideBySide {
    /// No more than `limit` items side by side. Those that may ask somebody take turns, so that they ask in their order
    /// and nobody is asked two things at once.
    pub(super) fn new(limit: usize, asking: bool) -> Self {
        SideBySide { limit: limit.max(1), asking, tasks: 0 }
    }

    /// Whether one more item may start while so many are running. Those that wait for an answer are not running: the others
    /// go on.
    pub(super) fn may_start(&self, running: usize) -> bool {
        running < if self.asking { 1 } else { self.limit }
    }

    /// Begins the work on an item. It is done here if it is done at once; otherwise it goes on as a task, which ends when
    /// what is returned is dropped. After an item that takes its time without waiting for anything, the next ones begin as
    /// tasks.
    pub(super) async fn start<T: Send + 'static>(
        &mut self,
        mut work: BoxFuture<'static, T>,
    ) -> BoxFuture<'static, Result<T, JoinError>> {
        if self.tasks == 0 {
            // Many small items must not keep others from this thread.
            coop::consume_budget().await;
            let begun = Instant::now();
            let polled = futures::poll!(&mut work);
            if begun.elapsed() > WORTH_A_TASK {
                self.tasks = TASKS_IN_A_ROW;
            }
            if let Poll::Ready(done) = polled {
                return Box::pin(ready(Ok(done)));
            }
        } else {
            self.tasks -= 1;
        }
        Box::pin(AbortOnDropHandle::new(tokio::spawn(work)))
    }
}
