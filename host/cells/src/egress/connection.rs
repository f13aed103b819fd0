//! Connections: to an address that the policy allowed, over TLS where the scheme asks for it, with every byte counted.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use url::Host;
use wasmtime_wasi_http::Error;

use super::Shared;
use super::destination::Destination;
use crate::grants::Scheme;
use crate::own_tls::OwnTls;
use crate::policy::{Decision, Request, decide};

/// Who knows the addresses of a name.
#[async_trait]
pub(super) trait Resolve: Send + Sync {
    /// The addresses of a name, with this port.
    async fn resolve(&self, name: &str, port: u16) -> std::io::Result<Vec<SocketAddr>>;
}

/// The system knows.
struct System;

#[async_trait]
impl Resolve for System {
    async fn resolve(&self, name: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
        Ok(tokio::net::lookup_host((name, port)).await?.collect())
    }
}

/// Connects to the first address of the destination that the policy allows and that answers. The name is looked up
/// once: an address that was checked is the one that is connected, whatever the name means a moment later.
pub(super) async fn connect(shared: &Arc<Shared>, destination: &Destination, method: &str) -> Result<Metered, Error> {
    let mut denied = None;
    let mut failed = None;
    for address in addresses(shared, destination).await? {
        let request = Request::Address {
            scheme: destination.scheme,
            host: &destination.host,
            port: destination.port,
            method,
            address: address.ip(),
        };
        if let Decision::Deny(capability) = decide(&shared.grants, &request) {
            denied = Some(capability);
            continue;
        }
        match TcpStream::connect(address).await {
            Ok(stream) => return secure(shared, destination, stream).await,
            Err(error) => failed = Some(error),
        }
    }
    match (failed, denied) {
        (Some(error), _) => Err(Error::Connect(error)),
        (None, Some(capability)) => {
            shared.deny(capability);
            Err(Error::DestinationIpProhibited)
        }
        (None, None) => Err(Error::DestinationNotFound),
    }
}

async fn addresses(shared: &Shared, destination: &Destination) -> Result<Vec<SocketAddr>, Error> {
    let port = destination.port;
    match &destination.host {
        Host::Ipv4(address) => Ok(vec![SocketAddr::from((*address, port))]),
        Host::Ipv6(address) => Ok(vec![SocketAddr::from((*address, port))]),
        Host::Domain(name) => {
            let found = shared.names.as_deref().unwrap_or(&System).resolve(name, port).await;
            found.map_err(|_| Error::DnsError { rcode: None, info_code: None })
        }
    }
}

/// Puts TLS on the connection where the scheme asks for it, and the meter around what the guest sends and gets.
async fn secure(shared: &Arc<Shared>, destination: &Destination, stream: TcpStream) -> Result<Metered, Error> {
    let inner: Box<dyn Duplex> = match destination.scheme {
        Scheme::Http => Box::new(stream),
        Scheme::Https => {
            let name = match &destination.host {
                Host::Domain(name) => rustls::pki_types::ServerName::try_from(name.clone())
                    .map_err(|_| Error::DnsError { rcode: None, info_code: None })?,
                Host::Ipv4(address) => rustls::pki_types::ServerName::from(std::net::IpAddr::V4(*address)),
                Host::Ipv6(address) => rustls::pki_types::ServerName::from(std::net::IpAddr::V6(*address)),
            };
            let configuration = OwnTls::or_of_the_web(shared.tls.as_ref()).ok_or(Error::ConfigurationError)?;
            let connector = tokio_rustls::TlsConnector::from(configuration);
            Box::new(connector.connect(name, stream).await.map_err(Error::Tls)?)
        }
    };
    Ok(Metered { inner, shared: shared.clone() })
}

trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// A connection whose bytes count against the call's budget; one byte too many breaks it.
pub(super) struct Metered {
    inner: Box<dyn Duplex>,
    shared: Arc<Shared>,
}

impl Metered {
    fn count(&self, counter: &AtomicU64, bytes: usize) -> std::io::Result<()> {
        let before = counter.fetch_add(bytes as u64, Ordering::Relaxed);
        if before.saturating_add(bytes as u64) <= self.shared.max_bytes {
            return Ok(());
        }
        self.shared.exhaust();
        Err(std::io::Error::other("the HTTP budget of the call is used up"))
    }
}

impl AsyncRead for Metered {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        match Pin::new(&mut self.inner).poll_read(cx, buffer) {
            Poll::Ready(Ok(())) => {
                let read = buffer.filled().len() - before;
                Poll::Ready(self.count(&self.shared.received, read))
            }
            other => other,
        }
    }
}

impl AsyncWrite for Metered {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        match Pin::new(&mut self.inner).poll_write(cx, bytes) {
            Poll::Ready(Ok(written)) => Poll::Ready(self.count(&self.shared.sent, written).map(|()| written)),
            other => other,
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
