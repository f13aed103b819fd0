//! What becomes of something that was posted to another server.

use std::time::Duration;

use hotcell_runtime::{PortError, WebReply};

/// Why something was not posted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failed {
    pub(crate) reason: String,
    /// Whether another try would not help
    pub(crate) is_final: bool,
}

/// What came of sending something to `to`, in so much time.
pub(crate) async fn posted(
    to: &str,
    within: Duration,
    is_final: impl Fn(u16) -> bool,
    sending: impl Future<Output = Result<WebReply, PortError>>,
) -> Result<(), Failed> {
    match tokio::time::timeout(within, sending).await {
        Ok(Ok(reply)) if (200..300).contains(&reply.status) => Ok(()),
        Ok(Ok(reply)) => {
            let reason = format!("`{to}` answered with the status {}", reply.status);
            Err(Failed { reason, is_final: is_final(reply.status) })
        }
        Ok(Err(error)) => Err(Failed { reason: error.to_string(), is_final: false }),
        Err(_) => {
            let reason = format!("`{to}` did not answer within {} s", within.as_secs_f64());
            Err(Failed { reason, is_final: false })
        }
    }
}
