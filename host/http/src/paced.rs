//! A connection whose other end has to read what it is sent.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

pin_project! {
    /// A connection that ends when the other side takes nothing for so long.
    pub(crate) struct Paced<T> {
        #[pin]
        inner: T,
        #[pin]
        patience: Sleep,
        within: Duration,
        // Whether it waits for the other side
        waits: bool,
    }
}

impl<T> Paced<T> {
    pub(crate) fn new(inner: T, within: Duration) -> Self {
        Paced { inner, patience: tokio::time::sleep(within), within, waits: false }
    }

    /// Whether something could be written, or the patience is at its end.
    fn written<V>(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut T>, &mut Context<'_>) -> Poll<io::Result<V>>,
    ) -> Poll<io::Result<V>> {
        let mut this = self.project();
        if let Poll::Ready(done) = write(this.inner, context) {
            *this.waits = false;
            return Poll::Ready(done);
        }
        if !*this.waits {
            *this.waits = true;
            this.patience.as_mut().reset(Instant::now() + *this.within);
        }
        ready!(this.patience.poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the other side does not read")))
    }
}

impl<T: AsyncRead> AsyncRead for Paced<T> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.project().inner.poll_read(context, into)
    }
}

impl<T: AsyncWrite> AsyncWrite for Paced<T> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.written(context, |inner, context| inner.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.written(context, |inner, context| inner.poll_write_vectored(context, parts))
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.written(context, |inner, context| inner.poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.written(context, |inner, context| inner.poll_shutdown(context))
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn who_reads_slowly_is_served_and_who_does_not_read_is_not() {
        let within = Duration::from_millis(50);
        let (near, mut far) = tokio::io::duplex(1);
        let mut near = Box::pin(Paced::new(near, within));
        let mut context = Context::from_waker(Waker::noop());
        let mut read = [0; 1];
        // Three bytes in more than three times the patience, which begins anew with each of them. No timer fires while this task does not
        // sleep, so that the patience cannot end between a write that waits and the next read, however slow the machine is.
        for _ in 0..3 {
            let written = near.as_mut().poll_write(&mut context, &[1]);
            assert!(matches!(written, Poll::Ready(Ok(1))), "{written:?}");
            tokio::time::sleep(within).await;
            let waits = near.as_mut().poll_write(&mut context, &[1]);
            assert!(waits.is_pending(), "{waits:?}");
            far.read_exact(&mut read).await.expect("something came");
        }
        let error = near.write_all(&[1; 2]).await.expect_err("nobody reads");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(far);
    }
}
