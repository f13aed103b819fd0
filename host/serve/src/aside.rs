//! Work that waits for a disk or for other processes, in the middle of what answers requests.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Does something that may wait for a disk, for a lock or for another process, without keeping other tasks from going on: those of
/// this thread are handed to another one meanwhile. Everything that the server does with its files while it answers comes through here.
///
/// Where there is no other thread to hand them to, it is done as it is.
pub(crate) fn aside<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::aside;

    #[test]
    fn what_waits_keeps_nobody_else_waiting() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("a runtime");
        let (tell, told) = channel();
        runtime.block_on(async {
            let waiting = tokio::spawn(async move { aside(|| told.recv()) });
            // There is one thread for both. Without another one, this would never be told.
            let telling = tokio::spawn(async move { tell.send(7) });
            assert_eq!((telling.await.expect("no panic"), waiting.await.expect("no panic")), (Ok(()), Ok(7)));
        });
    }

    #[test]
    fn it_is_done_where_there_is_no_other_thread() {
        assert_eq!(aside(|| 1), 1);
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        assert_eq!(runtime.block_on(async { aside(|| 2) }), 2);
    }
}
