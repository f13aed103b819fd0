//! What becomes of something that was posted to another server.

use std::time::Duration;

use hotcell_runtime::{PortError, WebReply};

/// Why something was not posted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failed {
    pub(crate) reason: String,
    /// Whether another try would not help
    pub(crate) is_final: bool,
    /// Whether it may have arrived all the same
    pub(crate) is_uncertain: bool,
}

impl Failed {
    /// It did not arrive, and another try would not help.
    pub(crate) fn for_good(reason: impl Into<String>) -> Self {
        Failed { reason: reason.into(), is_final: true, is_uncertain: false }
    }

    /// It did not arrive, and another try may help.
    pub(crate) fn for_now(reason: impl Into<String>) -> Self {
        Failed { reason: reason.into(), is_final: false, is_uncertain: false }
    }

    /// Nobody said whether it arrived.
    pub(crate) fn uncertain(reason: impl Into<String>) -> Self {
        Failed { reason: reason.into(), is_final: false, is_uncertain: true }
    }
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
            Err(Failed { is_final: is_final(reply.status), ..Failed::for_now(reason) })
        }
        Ok(Err(error)) => Err(Failed::uncertain(error.to_string())),
        Err(_) => Err(Failed::uncertain(format!("`{to}` did not answer within {} s", within.as_secs_f64()))),
    }
}
