//! Sessions over HTTP whose calls learn that nobody waits for them any more.
//!
//! The library keeps a call going when the stream with its answer breaks, because the client may come back for the rest
//! of it. A client that is gone for good would leave its call to wait until the session ends, which is an hour when it
//! waits for a person. So each stream of a call is watched here.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::Stream;
use rmcp::model::{ClientJsonRpcMessage, GetExtensions as _, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError, SessionError,
};
use rmcp::transport::streamable_http_server::session::{RestoreOutcome, ServerSseMessage, SessionId, SessionManager};
use tokio_util::sync::CancellationToken;

/// How long a client whose connection for a call broke may take to come back for it, with `Last-Event-ID`. After that
/// the call is cancelled. A client is told to try again after [`RETRY_AFTER`], so this leaves room for a few attempts.
pub const CLIENT_BACK_WITHIN: Duration = Duration::from_secs(5);

/// The most sessions at a time.
pub(super) const MOST_SESSIONS: usize = 256;
/// Of the sessions that others leave, one owner has one part in so many: however many owners have all they get, there is room for one more.
const SHARE: usize = 4;

/// After what time a client whose stream broke should come back for it.
pub(super) const RETRY_AFTER: Duration = Duration::from_secs(1);

type Messages = Pin<Box<dyn Stream<Item = ServerSseMessage> + Send + Sync>>;

/// Put into a request: cancelled when its client is gone for good.
#[derive(Clone, Debug)]
pub(super) struct ClientGone(pub(super) CancellationToken);

/// Sessions of this process, with a look at who still reads the answers.
#[derive(Debug, Default)]
pub(super) struct AttendedSessions {
    pub(super) local: LocalSessionManager,
    calls: Mutex<HashMap<SessionId, Vec<Weak<Call>>>>,
    /// Who may use a session, where requests say whose they are
    owners: Mutex<HashMap<SessionId, String>>,
    /// How many sessions are about to begin, by whose they are
    beginning: Mutex<HashMap<String, usize>>,
}

/// The place of a session that is about to begin, among those of its owner.
#[derive(Debug)]
pub(super) struct Place {
    sessions: Arc<AttendedSessions>,
    /// None when the session has begun
    owner: Option<String>,
}

impl Place {
    /// The session has begun: whose it is, is kept from now on.
    pub(super) async fn taken_by(mut self, session: SessionId) {
        let sessions = self.sessions.clone();
        // It may have ended meanwhile; then it is forgotten with the lock that its end needs.
        let begun = sessions.local.sessions.read().await;
        let mut beginning = sessions.beginning();
        if let Some(owner) = self.owner.take() {
            free(&mut beginning, &owner);
            if begun.contains_key(&session) {
                sessions.owners().insert(session, owner);
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(owner) = self.owner.take() {
            free(&mut self.sessions.beginning(), &owner);
        }
    }
}

/// Counts one session less of those that are about to begin.
fn free(beginning: &mut HashMap<String, usize>, owner: &str) {
    match beginning.get_mut(owner) {
        Some(count) if *count > 1 => *count -= 1,
        _ => {
            beginning.remove(owner);
        }
    }
}

/// A request whose answer has not been sent.
#[derive(Debug, Default)]
struct Call {
    gone: CancellationToken,
    /// What the library calls the stream of this request: the second half of the ids of its events
    stream: OnceLock<String>,
    /// How many connections have read its stream, one after the other
    readers: AtomicU64,
}

/// The stream of a request, as one connection reads it.
struct Reading {
    messages: Messages,
    call: Arc<Call>,
    /// Which of the readers of the call this is
    reader: u64,
    answered: bool,
}

impl AttendedSessions {
    fn calls(&self) -> MutexGuard<'_, HashMap<SessionId, Vec<Weak<Call>>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn owners(&self) -> MutexGuard<'_, HashMap<SessionId, String>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a session may be used by whoever this is. One that is not there may be used by anybody.
    pub(super) fn belongs_to(&self, session: &SessionId, owner: Option<&str>) -> bool {
        self.owners().get(session).is_none_or(|known| Some(known.as_str()) == owner)
    }

    fn beginning(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.beginning.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for one more session of somebody; none if they have their share of them, or are about to.
    pub(super) fn place_for(self: &Arc<Self>, owner: String) -> Option<Place> {
        let mut beginning = self.beginning();
        let about_to = beginning.get(&owner).copied().unwrap_or_default();
        let (own, begun) = {
            let owners = self.owners();
            (owners.values().filter(|known| **known == owner).count() + about_to, owners.len())
        };
        let of_others = begun + beginning.values().sum::<usize>() - own;
        if own >= (MOST_SESSIONS.saturating_sub(of_others) / SHARE).max(1) {
            return None;
        }
        beginning.insert(owner.clone(), about_to + 1);
        Some(Place { sessions: self.clone(), owner: Some(owner) })
    }

    fn add(&self, session: &SessionId, call: &Arc<Call>) {
        let mut calls = self.calls();
        let calls = calls.entry(session.clone()).or_default();
        calls.retain(|call| call.strong_count() > 0);
        calls.push(Arc::downgrade(call));
    }

    /// The call that an event belongs to, if it still goes on.
    fn call_of(&self, session: &SessionId, event: &str) -> Option<Arc<Call>> {
        let stream = stream_of(event)?;
        let calls = self.calls();
        let mut calls = calls.get(session)?.iter().filter_map(Weak::upgrade);
        calls.find(|call| call.stream.get().is_some_and(|known| known == stream))
    }
}

impl Reading {
    fn new(messages: Messages, call: Arc<Call>) -> Self {
        let reader = call.readers.fetch_add(1, Ordering::SeqCst) + 1;
        Reading { messages, call, reader, answered: false }
    }
}

impl Stream for Reading {
    type Item = ServerSseMessage;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<ServerSseMessage>> {
        let polled = self.messages.as_mut().poll_next(context);
        if let Poll::Ready(Some(sent)) = &polled {
            if let Some(stream) = sent.event_id.as_deref().and_then(stream_of) {
                self.call.stream.get_or_init(|| stream.to_owned());
            }
            let last = |message: &ServerJsonRpcMessage| {
                matches!(message, ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_))
            };
            self.answered |= sent.message.as_deref().is_some_and(last);
        }
        polled
    }
}

impl Drop for Reading {
    /// The connection is closed, or another one reads on.
    fn drop(&mut self) {
        if self.answered || self.call.gone.is_cancelled() {
            return;
        }
        let (call, reader) = (self.call.clone(), self.reader);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return call.gone.cancel() };
        runtime.spawn(async move {
            if call.gone.run_until_cancelled(tokio::time::sleep(CLIENT_BACK_WITHIN)).await.is_none() {
                return;
            }
            if call.readers.load(Ordering::SeqCst) == reader {
                tracing::debug!("a client left its call and did not come back");
                call.gone.cancel();
            }
        });
    }
}

/// `INDEX/STREAM` is how the library writes the id of an event that belongs to a request.
fn stream_of(event: &str) -> Option<&str> {
    event.split_once('/').map(|(_, stream)| stream)
}

impl SessionManager for AttendedSessions {
    type Error = LocalSessionManagerError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        if self.local.sessions.read().await.len() >= MOST_SESSIONS {
            return Err(SessionError::Io(std::io::Error::other("too many sessions")).into());
        }
        self.local.create_session().await
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.local.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.local.has_session(id).await
    }

    /// The library gives handlers some time to answer before it cancels them; nobody is there to read those answers.
    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        let calls = self.calls().remove(id).unwrap_or_default();
        for call in calls.iter().filter_map(Weak::upgrade) {
            call.gone.cancel();
        }
        let closed = self.local.close_session(id).await;
        self.owners().remove(id);
        closed
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        mut message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let call = Arc::<Call>::default();
        if let ClientJsonRpcMessage::Request(request) = &mut message {
            request.request.extensions_mut().insert(ClientGone(call.gone.clone()));
        }
        let messages = self.local.create_stream(id, message).await?;
        self.add(id, &call);
        Ok(Reading::new(Box::pin(messages), call))
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.local.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let call = self.call_of(id, &last_event_id);
        let messages: Messages = Box::pin(self.local.resume(id, last_event_id).await?);
        Ok(match call {
            Some(call) => Box::pin(Reading::new(messages, call)),
            None => messages,
        })
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        self.local.accept_message(id, message).await
    }

    async fn restore_session(&self, id: SessionId) -> Result<RestoreOutcome<Self::Transport>, Self::Error> {
        self.local.restore_session(id).await
    }
}
