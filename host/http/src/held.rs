//! Bodies with which something is kept.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use hyper::body::{Frame, SizeHint};

/// The same body, with which `kept` is dropped: when it was sent to its end, or whoever it is for is gone.
pub fn with_body<T: Send + Unpin + 'static>(body: Body, kept: T) -> Body {
    Body::new(Held { body, _kept: kept })
}

struct Held<T> {
    body: Body,
    _kept: T,
}

impl<T: Unpin> hyper::body::Body for Held<T> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::body::{Body, to_bytes};
    use hyper::body::Body as _;

    use super::with_body;

    #[tokio::test]
    async fn a_body_is_the_same_and_what_is_kept_goes_with_it() {
        let kept = Arc::new(());
        let body = with_body(Body::from("text"), kept.clone());
        assert_eq!((body.size_hint().exact(), Arc::strong_count(&kept)), (Some(4), 2));
        assert_eq!(&to_bytes(body, 10).await.expect("a text")[..], b"text");
        assert_eq!(Arc::strong_count(&kept), 1);
        drop(with_body(Body::empty(), kept.clone()));
        assert_eq!(Arc::strong_count(&kept), 1);
    }
}
