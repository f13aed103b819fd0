//! Work that takes long in the middle of what does not wait.

use tokio::runtime::{Handle, RuntimeFlavor};

/// Does something that takes long. Other tasks of this thread are handed to another one meanwhile, where there is one.
pub(super) fn in_place<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::in_place;

    #[test]
    fn what_takes_long_keeps_nobody_else_waiting() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("a runtime");
        let (tell, told) = channel();
        runtime.block_on(async {
            let long = tokio::spawn(async move { in_place(|| told.recv()) });
            // There is one thread for both. Without another one, this would never be told.
            let telling = tokio::spawn(async move { tell.send(7) });
            assert_eq!((telling.await.expect("no panic"), long.await.expect("no panic")), (Ok(()), Ok(7)));
        });
    }

    #[test]
    fn it_is_done_where_there_is_no_other_thread() {
        assert_eq!(in_place(|| 1), 1);
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        assert_eq!(runtime.block_on(async { in_place(|| 2) }), 2);
    }
}
