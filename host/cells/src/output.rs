//! What a guest writes to standard output and standard error, kept in memory up to a limit. Nothing reaches the
//! host's own streams from here.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, StreamResult};

/// Bytes a guest may write to a stream in one call.
const PERMIT: usize = 64 << 10;

/// A write went beyond what the call may put out; it ends the call.
#[derive(Debug, thiserror::Error)]
#[error("standard output is longer than {limit} bytes")]
pub(crate) struct OutputOverflow {
    pub(crate) limit: u64,
}

/// What to do with bytes beyond the limit.
#[derive(Clone, Copy, Debug)]
enum Beyond {
    /// End the call.
    Fail,
    /// Forget the oldest.
    KeepTail,
}

#[derive(Debug)]
struct Captured {
    bytes: Vec<u8>,
    written: u64,
}

/// One stream's bytes, shared by every handle a guest opens to it.
#[derive(Clone, Debug)]
pub(crate) struct Capture {
    captured: Arc<Mutex<Captured>>,
    limit: u64,
    beyond: Beyond,
}

impl Capture {
    /// Keeps everything up to `limit` bytes; one byte more ends the call.
    pub(crate) fn whole(limit: u64) -> Self {
        Self::new(limit, Beyond::Fail)
    }

    /// Keeps the last `limit` bytes and counts the others.
    pub(crate) fn tail(limit: u64) -> Self {
        Self::new(limit, Beyond::KeepTail)
    }

    fn new(limit: u64, beyond: Beyond) -> Self {
        Self { captured: Arc::new(Mutex::new(Captured { bytes: Vec::new(), written: 0 })), limit, beyond }
    }

    /// What was kept, leaving nothing.
    pub(crate) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.lock().bytes)
    }

    /// The kept bytes as text that is safe to show, `limit` of them at most.
    pub(crate) fn shown(&self, limit: usize) -> String {
        let captured = self.lock();
        crate::text::tail(&captured.bytes, captured.written, limit)
    }

    /// Bytes written in all, kept or not.
    pub(crate) fn written(&self) -> u64 {
        self.lock().written
    }

    /// A panic while the lock is held cannot leave the bytes in a bad state, so poisoning is ignored.
    fn lock(&self) -> MutexGuard<'_, Captured> {
        self.captured.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append(&self, bytes: &[u8]) -> Result<(), OutputOverflow> {
        let mut captured = self.lock();
        captured.written = captured.written.saturating_add(bytes.len() as u64);
        match self.beyond {
            Beyond::Fail => {
                if captured.written > self.limit {
                    return Err(OutputOverflow { limit: self.limit });
                }
                captured.bytes.extend_from_slice(bytes);
            }
            Beyond::KeepTail => {
                let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
                captured.bytes.extend_from_slice(&bytes[bytes.len().saturating_sub(limit)..]);
                // Twice the limit may gather, so that a flood of small writes does not move the tail every time.
                if captured.bytes.len() > limit.saturating_mul(2) {
                    let excess = captured.bytes.len() - limit;
                    captured.bytes.drain(..excess);
                }
            }
        }
        Ok(())
    }
}

impl IsTerminal for Capture {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Capture {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Capture {
    async fn ready(&mut self) {}
}

impl OutputStream for Capture {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.append(&bytes).map_err(|overflow| StreamError::Trap(wasmtime::Error::new(overflow)))
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(PERMIT)
    }
}

impl AsyncWrite for Capture {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        Poll::Ready(self.append(bytes).map(|()| bytes.len()).map_err(std::io::Error::other))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::Capture;

    #[test]
    fn the_limit_itself_is_accepted_and_one_byte_more_is_not() {
        let capture = Capture::whole(4);
        assert!(capture.append(b"1234").is_ok());
        assert!(capture.append(b"5").is_err());
        assert_eq!(capture.take(), b"1234");
    }

    #[test]
    fn a_tail_keeps_the_end_of_many_and_of_large_writes() {
        let capture = Capture::tail(4);
        for _ in 0..1_000 {
            assert!(capture.append(b"abcdefg").is_ok());
        }
        assert_eq!((capture.shown(4).as_str(), capture.written()), ("(6996 bytes before) …defg", 7_000));
        assert!(capture.append(&[b'x'; 1_000]).is_ok());
        assert!(capture.lock().bytes.capacity() < 4_000);
    }
}
