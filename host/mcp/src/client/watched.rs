//! A connection of whichever kind, with what holds for all of them: a stranger cannot keep this host busy by
//! talking, and cannot give an answer that is larger than agreed. What it tells of its calls is heard here, in order.

use std::io;
use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::model::ServerJsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

use super::ending::Ending;
use super::handler::Activity;
use super::pace::{ANSWER, Pace, UNASKED};

/// A connection that is slowed down where the server talks too much, and whose end is known to all.
pub(crate) struct Watched<T> {
    inner: T,
    activity: Arc<Activity>,
    ending: Arc<Ending>,
    limit: Option<usize>,
    pace: Pace,
}

impl<T: Transport<RoleClient>> Watched<T> {
    /// Watches a connection on which an answer may have `limit` bytes, if the connection does not see to that itself.
    pub(crate) fn new(inner: T, limit: Option<usize>, activity: Arc<Activity>, ending: Arc<Ending>) -> Self {
        Watched { inner, activity, ending, limit, pace: Pace::new() }
    }

    async fn next(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        self.pace.ready().await;
        self.inner.receive().await
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Watched<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let ending = self.ending.clone();
        let message = tokio::select! {
            biased;
            () = ending.ended() => None,
            message = self.next() => message,
        };
        match &message {
            None => self.ending.end(),
            Some(ServerJsonRpcMessage::Request(_)) => self.pace.spend(UNASKED),
            Some(ServerJsonRpcMessage::Notification(told)) => {
                self.pace.spend(UNASKED);
                self.activity.hear(&told.notification);
            }
            Some(answer) => {
                self.pace.spend(ANSWER);
                if let Some(limit) = self.limit.filter(|limit| size(answer) > *limit) {
                    self.ending.end_because(format!("it sent a message of more than {limit} bytes"));
                    return None;
                }
            }
        }
        message
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.ending.end();
        self.inner.close().await
    }
}

/// The bytes of a message, without keeping them.
fn size(message: &RxJsonRpcMessage<RoleClient>) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    match serde_json::to_writer(&mut count, message) {
        Ok(()) => count.0,
        // What cannot be written cannot have been read either; nothing is refused for that.
        Err(_) => 0,
    }
}
