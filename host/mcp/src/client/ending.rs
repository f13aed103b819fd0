//! Why a connection to a server ended, and what its process said last.
//!
//! Several places notice an end: the reader, the writer, whoever waits for the process. The first reason counts.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::error::McpError;
use crate::text::clean;

/// How much of a process's error output is kept.
const STDERR_KEPT: usize = 8 << 10;

/// How long whoever reports an end waits for the process to be gone, so that its exit code can be named.
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// One connection's end.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    ended: CancellationToken,
    fault: Mutex<Option<String>>,
    stderr: Mutex<VecDeque<u8>>,
    process: OnceLock<Process>,
}

/// The process behind a connection.
#[derive(Debug, Default)]
struct Process {
    gone: CancellationToken,
    exit: Mutex<Option<String>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ending {
    /// The end of a connection to a process, which is going to be waited for.
    pub(crate) fn of_process() -> Self {
        let ending = Ending::default();
        ending.process.get_or_init(Process::default);
        ending
    }

    /// The connection is over without anybody's fault: closed by one of both sides.
    pub(crate) fn end(&self) {
        self.ended.cancel();
    }

    /// The connection is over because of what the server did.
    pub(crate) fn end_because(&self, fault: impl Into<String>) {
        locked(&self.fault).get_or_insert_with(|| fault.into());
        self.ended.cancel();
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_cancelled()
    }

    /// Waits for the end.
    pub(crate) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Keeps the last bytes of the process's error output.
    pub(crate) fn keep_stderr(&self, bytes: &[u8]) {
        let mut kept = locked(&self.stderr);
        let bytes = &bytes[bytes.len().saturating_sub(STDERR_KEPT)..];
        let excess = (kept.len() + bytes.len()).saturating_sub(STDERR_KEPT);
        kept.drain(..excess);
        kept.extend(bytes);
    }

    /// The last lines of the process's error output, cleaned.
    pub(crate) fn stderr(&self) -> String {
        let kept: Vec<u8> = locked(&self.stderr).iter().copied().collect();
        clean(&String::from_utf8_lossy(&kept), STDERR_KEPT)
    }

    /// The process is gone; `exit` says how, if it went by itself.
    pub(crate) fn process_gone(&self, exit: Option<String>) {
        if let Some(process) = self.process.get() {
            *locked(&process.exit) = exit;
            process.gone.cancel();
        }
        self.ended.cancel();
    }

    /// The end as an error. Waits a moment for the process to be gone.
    pub(crate) async fn report(&self, server: &str) -> McpError {
        let mut exit = None;
        if let Some(process) = self.process.get() {
            // Without an exit code the report is still true, so it does not matter if this takes too long.
            let _ = tokio::time::timeout(GONE_WITHIN, process.gone.cancelled()).await;
            exit = locked(&process.exit).clone();
        }
        let fault = locked(&self.fault).clone();
        let reason = fault.or(exit).unwrap_or_else(|| "it closed the connection".to_owned());
        McpError::Ended { server: server.to_owned(), reason, stderr: self.stderr() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_fault_counts() {
        let ending = Ending::default();
        assert!(!ending.has_ended());
        ending.end_because("first");
        ending.end_because("second");
        ending.end();
        let error = ending.report("s").await.to_string();
        assert_eq!(error, "the MCP server `s` has ended: first");
    }

    #[tokio::test]
    async fn an_exit_code_is_named() {
        let ending = Ending::of_process();
        ending.end();
        ending.keep_stderr(b"oh no\x1b[0m\n");
        ending.process_gone(Some("it exited with code 3".to_owned()));
        let error = ending.report("s").await.to_string();
        assert!(error.contains("code 3") && error.ends_with("oh no[0m"), "{error}");
    }

    #[test]
    fn only_the_end_of_the_error_output_is_kept() {
        let ending = Ending::default();
        for number in 0..10_000 {
            ending.keep_stderr(format!("line {number}\n").as_bytes());
        }
        let kept = ending.stderr();
        assert!(kept.len() <= STDERR_KEPT && kept.ends_with("line 9999\n"), "{}", kept.len());
        ending.keep_stderr(&[b'x'; 3 * STDERR_KEPT]);
        assert_eq!(ending.stderr(), "x".repeat(STDERR_KEPT));
    }
}
