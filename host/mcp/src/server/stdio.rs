//! Serving the program that started this one, over standard input and output.

use std::sync::Arc;

use rmcp::service::{QuitReason, ServiceExt};
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::handler::Session;
use super::{Catalog, Identity};
use crate::error::ServeError;
use crate::text::shown;

/// The longest line that is read, in bytes; longer ones are skipped.
const LONGEST_LINE: usize = 8 << 20;

/// Serves over standard input and output until the input ends or `shutdown` is cancelled. Nothing else may be
/// written to standard output meanwhile.
///
/// # Errors
/// The client does not begin as the protocol says.
pub async fn serve_stdio(
    catalog: Arc<dyn Catalog>,
    identity: Identity,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    let (input, output) = rmcp::transport::stdio_pipes();
    serve_pipe(catalog, identity, input, output, shutdown).await
}

/// Serves over any two streams, as [`serve_stdio`] does.
///
/// # Errors
/// As [`serve_stdio`].
pub async fn serve_pipe(
    catalog: Arc<dyn Catalog>,
    identity: Identity,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    let transport = AsyncRwTransport::new_server(input, output).with_max_line_length(LONGEST_LINE);
    let session = Session::new(catalog, identity);
    let running = match session.serve_with_ct(transport, shutdown.clone()).await {
        Ok(running) => running,
        Err(_) if shutdown.is_cancelled() => return Ok(()),
        Err(error) => return Err(ServeError::Handshake { reason: shown(&error.to_string()) }),
    };
    let failed = |reason: String| ServeError::Failed { reason };
    match running.waiting().await {
        Ok(QuitReason::JoinError(error)) | Err(error) => Err(failed(error.to_string())),
        Ok(_) => Ok(()),
    }
}
