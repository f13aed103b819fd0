//! Bodies of requests. A guest may write one to its end whatever has become of the request meanwhile: it was denied,
//! nobody listens, or the server answered early. Otherwise the guest would be told that a stream was closed, after as
//! many bytes as chance had it, in place of what really happened.

use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use wasmtime_wasi_http::{Error, WasiBody};

/// What takes up the rest of the bodies of a call that nobody reads any more. Its tasks end with it; what a guest can make
/// them take up is bounded by its fuel and its time, and nothing of it is kept.
#[derive(Default)]
pub(super) struct Uploads {
    /// Made with the first body: most calls send none
    unread: OnceLock<Arc<Mutex<JoinSet<()>>>>,
}

impl Uploads {
    /// The same body, which is read to its end even if its reader gives it up.
    pub(super) fn to_the_end(&self, body: WasiBody) -> WasiBody {
        Upload { body, unread: Arc::downgrade(self.unread.get_or_init(Arc::default)) }.boxed_unsync()
    }
}

struct Upload {
    body: WasiBody,
    unread: Weak<Mutex<JoinSet<()>>>,
}

impl Body for Upload {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.unread = Weak::new();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let (Some(unread), Ok(runtime)) = (self.unread.upgrade(), Handle::try_current()) else { return };
        if self.body.is_end_stream() {
            return;
        }
        let mut body = std::mem::replace(&mut self.body, super::whole(Bytes::new()));
        let mut unread = unread.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that came to their end need not be kept until the call ends.
        while unread.try_join_next().is_some() {}
        unread.spawn_on(async move { while let Some(Ok(_)) = body.frame().await {} }, &runtime);
    }
}
