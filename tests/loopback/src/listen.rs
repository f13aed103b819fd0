//! A server on a free port of `127.0.0.1`.
//!
//! It lives on a thread of its own, so that tests with and without an async runtime can use it, and so that a
//! test which blocks its runtime does not stop the replies.

use std::{
    convert::Infallible,
    fmt, io,
    net::{SocketAddr, TcpListener},
    sync::Arc,
    thread::JoinHandle,
};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{
    Request, Response,
    body::Incoming,
    header::{CONTENT_TYPE, HeaderName, HeaderValue},
    http::request::Parts,
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::sync::oneshot;

use crate::respond::HttpReply;

/// A server that listens. Dropping it stops it.
pub(crate) struct Listening {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Listening {
    /// Starts a server that answers every request with what `handler` gives.
    pub(crate) fn start<F, R>(handler: F) -> io::Result<Self>
    where
        F: Fn(Parts, Bytes) -> R + Send + Sync + 'static,
        R: Future<Output = HttpReply> + Send + 'static,
    {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("loopback".to_owned()).spawn(move || {
            runtime.block_on(async move {
                tokio::select! {
                    () = accept(listener, Arc::new(handler)) => {}
                    _ = stopped => {}
                }
            });
        })?;
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl fmt::Debug for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listening").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the server thread has been printed by its hook; a destructor has nothing to add.
            let _ = thread.join();
        }
    }
}

async fn accept<F, R>(listener: TcpListener, handler: Arc<F>)
where
    F: Fn(Parts, Bytes) -> R + Send + Sync + 'static,
    R: Future<Output = HttpReply> + Send + 'static,
{
    // A listener that cannot be registered answers nobody, which every test notices.
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let handler = Arc::clone(&handler);
        tokio::spawn(async move {
            let service = service_fn(move |request| answer(request, Arc::clone(&handler)));
            // A client that goes away in the middle is part of many tests.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer<F, R>(request: Request<Incoming>, handler: Arc<F>) -> Result<Response<Full<Bytes>>, Infallible>
where
    F: Fn(Parts, Bytes) -> R,
    R: Future<Output = HttpReply>,
{
    let (head, body) = request.into_parts();
    let body = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(_) => Bytes::new(),
    };
    let reply = handler(head, body).await;
    let mut response = Response::new(Full::new(Bytes::from(reply.body)));
    *response.status_mut() = reply.status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(reply.content_type));
    for (name, value) in reply.headers {
        // What cannot be sent is left out, as a test that looks for it notices.
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse::<HeaderValue>()) {
            response.headers_mut().insert(name, value);
        }
    }
    Ok(response)
}
