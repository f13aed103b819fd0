//! Addresses at which commands are reached.

use std::io::Error;
use std::net::SocketAddr;

use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use super::threads;
use crate::exit::Failure;

/// An address at which something will be served.
pub(super) struct Listening {
    pub(super) runtime: Runtime,
    pub(super) listener: TcpListener,
    pub(super) url: String,
}

impl Listening {
    pub(super) fn at(address: SocketAddr) -> Result<Self, Failure> {
        let runtime = threads::start()?;
        let failed = |error: Error| {
            Failure::failed(format!("cannot listen at {address}: {error}; choose another address or port"))
        };
        let listener = runtime.block_on(TcpListener::bind(address)).map_err(failed)?;
        let url = format!("http://{}", listener.local_addr().map_err(failed)?);
        Ok(Listening { runtime, listener, url })
    }
}
