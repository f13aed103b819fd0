//! Taking connections.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::paced::Paced;
use crate::strangers::{Peer, Strangers};

/// How long nothing is accepted after a connection could not be: out of file descriptors, for one; it passes.
const PAUSE: Duration = Duration::from_millis(50);

/// What clients may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time. For one more, the oldest is closed whose client is not [known](Peer::is_known)
    pub connections: usize,
    /// How long the head of a request may take to arrive, and how long a connection may lie idle
    pub head_within: Duration,
    /// The bytes of the head of a request
    pub head_bytes: usize,
    /// How long a client may take nothing of what it is sent
    pub taken_within: Duration,
    /// How long connections may take to end when the server is shut down
    pub shutdown_within: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 1024,
            head_within: Duration::from_secs(10),
            head_bytes: 64 << 10,
            taken_within: Duration::from_secs(30),
            shutdown_within: Duration::from_secs(5),
        }
    }
}

/// Serves until `shutdown` is cancelled: then no more connections are taken, and what is being answered gets
/// [`Limits::shutdown_within`].
pub async fn serve(listener: TcpListener, router: Router, limits: Limits, shutdown: CancellationToken) {
    let room = Arc::new(Semaphore::new(limits.connections));
    let strangers = Arc::new(Strangers::default());
    let connections = TaskTracker::new();
    // Cancelled when connections have had their time to end.
    let cut = CancellationToken::new();
    while let Some(accepted) = shutdown.run_until_cancelled(listener.accept()).await {
        match accepted {
            Ok((stream, address)) => {
                if room.available_permits() == 0 {
                    strangers.close_oldest();
                }
                let Some(Ok(place)) = shutdown.run_until_cancelled(room.clone().acquire_owned()).await else { break };
                let peer = Peer(Arc::new(strangers.add(address.ip(), &cut)));
                let (router, shutdown) = (router.clone(), shutdown.clone());
                connections.spawn(async move {
                    let end = peer.0.end.clone();
                    end.run_until_cancelled(connection(stream, router, limits, peer, shutdown)).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    drop(listener);
    connections.close();
    if tokio::time::timeout(limits.shutdown_within, connections.wait()).await.is_err() {
        tracing::warn!(connections = connections.len(), "connections did not end in time and were cut");
        cut.cancel();
        connections.wait().await;
    }
}

async fn connection(stream: TcpStream, router: Router, limits: Limits, peer: Peer, shutdown: CancellationToken) {
    // Small messages go at once.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection without TCP_NODELAY");
    }
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer.clone());
        router.call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_within)
        .max_header_size(limits.head_bytes)
        .serve_connection(TokioIo::new(Box::pin(Paced::new(stream, limits.taken_within))), service);
    tokio::pin!(connection);
    let served = tokio::select! {
        served = connection.as_mut() => served,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended early");
    }
}
