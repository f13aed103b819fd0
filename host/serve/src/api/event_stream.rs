//! Runs as streams of server-sent events.
//!
//! Each entry of the run is an event with an id, as soon as it is committed. A client that comes back with the last id that it saw
//! (`Last-Event-ID`, which browsers send by themselves) gets what comes after it: it misses nothing, and gets nothing twice.
//! What is not committed (a node that begins, a piece of a model's text) is told in between without an id, to those who listen
//! at that moment; a client that does not keep up gets less of that, and costs nobody anything.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::future::BoxFuture;
use futures::{FutureExt as _, Stream, stream};
use hotcell_runtime::{JournalError, NumberedEntry, RunId, RunRecord, RunStatus};
use http::HeaderMap;

use super::params::bad;
use crate::follow::Follower;
use crate::happenings::{Happenings, Heard};
use crate::leash::Leash;
use crate::problem::{Problem, shown};
use crate::state::Server;

/// How often a stream without events shows that it lives.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

/// How long a stream may go on when the server closes.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What a client has seen of a run.
pub(super) enum Seen {
    /// Everything, and it has ended
    All,
    /// Everything up to an entry
    Until(u64),
}

/// What a client has seen of a run, as the header `Last-Event-ID` or the query says.
pub(super) async fn seen(
    server: &Server,
    record: &RunRecord,
    headers: &HeaderMap,
    after: Option<u64>,
) -> Result<Seen, Problem> {
    let run = &record.id;
    let seen = match (last_event(headers, run)?, after) {
        (Some(_), Some(_)) => return Err(bad("give `Last-Event-ID` or `after`, not both")),
        (seen, after) => seen.or(after),
    };
    if let Some(seen) = seen
        && record.status.is_final()
        && server.runs().store().entries(run, seen, 1).await?.entries.is_empty()
    {
        return Ok(Seen::All);
    }
    Ok(Seen::Until(seen.unwrap_or(0)))
}

/// A stream of a run that began before.
pub(super) fn follow(server: &Server, run: &RunId, after: u64, cancels: bool, telling: impl Telling) -> Response {
    let live = server.runs().live(run).map(|live| live.events());
    sse(server, run, after, live, Leash::new(server, run, cancels), telling).into_response()
}

/// Makes events of what happens in a run.
pub(super) trait Telling: Send + 'static {
    /// What is told first.
    fn begin(&mut self) -> Vec<Event>;
    /// What an entry is told as.
    fn entry(&mut self, entry: &NumberedEntry) -> Vec<Event>;
    /// What something is told as that is not committed, which comes as JSON.
    fn live(&mut self, happened: &str) -> Vec<Event>;
    /// Whether the stream goes on where the run rests like this, because the run goes on by itself, or does so already.
    fn waits(&mut self, _run: &RunRecord) -> impl Future<Output = Result<bool, Problem>> + Send {
        std::future::ready(Ok(false))
    }
    /// What is told when the run rests.
    fn end(&mut self, run: &RunRecord) -> impl Future<Output = Result<Vec<Event>, Problem>> + Send;
    /// What is told if the run cannot be read.
    fn problem(&self, problem: &Problem) -> Event;
}

/// The number of the last event that a client saw.
fn last_event(headers: &HeaderMap, run: &RunId) -> Result<Option<u64>, Problem> {
    let Some(id) = headers.get("last-event-id") else { return Ok(None) };
    let id = id.to_str().unwrap_or_default();
    let number = match id.rsplit_once(':') {
        Some((of, number)) if of == run.as_str() => number,
        Some(_) => return Err(bad(format!("the event `{}` is not one of run `{run}`", shown(id)))),
        None => id,
    };
    number.parse().map(Some).map_err(|_| bad(format!("there is no event `{}`", shown(id))))
}

/// A step of somebody who follows a run, which goes on while other things happen.
type Step = BoxFuture<'static, (Follower, Result<Option<Vec<NumberedEntry>>, JournalError>)>;

/// What becomes of a stream whose run rests.
enum Rested {
    /// It ends with these
    Told(Vec<Event>),
    /// It goes on with the run, which stands so
    Waits(RunStatus),
}

/// A client that follows a run.
struct Streaming<T> {
    server: Server,
    run: RunId,
    /// None when everything was read
    step: Option<Step>,
    happenings: Happenings,
    ready: VecDeque<Event>,
    leash: Leash,
    telling: T,
}

fn step(mut follower: Follower) -> Step {
    async move {
        let read = follower.next().await;
        (follower, read)
    }
    .boxed()
}

/// A step of somebody who follows a run that rests, and goes on by itself.
fn step_after_rest(mut follower: Follower) -> Step {
    async move {
        let read = follower.go_on().await;
        (follower, read)
    }
    .boxed()
}

pub(super) fn sse<T: Telling>(
    server: &Server,
    run: &RunId,
    after: u64,
    heard: Option<Heard>,
    leash: Leash,
    mut telling: T,
) -> Sse<impl Stream<Item = Result<Event, Infallible>> + use<T>> {
    let ready = telling.begin().into();
    let streaming = Streaming {
        server: server.clone(),
        run: run.clone(),
        step: Some(step(server.runs().follow(run.clone(), after))),
        happenings: Happenings::new(heard, after),
        ready,
        leash,
        telling,
    };
    // Runs of this server rest when it closes, and whoever follows one is told how it ended. What other processes work on would
    // keep it open.
    let closing = server.closing().clone();
    let closed = Box::pin(async move {
        closing.cancelled().await;
        tokio::time::sleep(LAST_WORDS).await;
    });
    let events = stream::unfold((streaming, closed), async |(mut streaming, mut closed)| {
        let event = tokio::select! {
            // What was committed is told, however late this comes to its turn.
            biased;
            event = streaming.next() => event?,
            () = &mut closed => return None,
        };
        Some((Ok(event), (streaming, closed)))
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(SIGN_OF_LIFE))
}

impl<T: Telling> Streaming<T> {
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            let step = self.step.as_mut()?;
            tokio::select! {
                biased;
                (follower, read) = step => self.read(follower, read).await,
                happened = self.happenings.next() => self.ready.extend(self.telling.live(&happened)),
            }
        }
    }

    async fn read(&mut self, follower: Follower, read: Result<Option<Vec<NumberedEntry>>, JournalError>) {
        self.step = None;
        let problem = match read {
            Ok(Some(entries)) => {
                if entries.is_empty() {
                    let under_way = self.happenings.caught_up();
                    under_way.iter().for_each(|begun| self.ready.extend(self.telling.live(begun)));
                }
                for entry in &entries {
                    let happened = self.happenings.before(&entry.entry);
                    happened.iter().for_each(|happened| self.ready.extend(self.telling.live(happened)));
                    self.ready.extend(self.telling.entry(entry));
                }
                self.step = Some(self::step(follower));
                return;
            }
            Ok(None) => match self.rested().await {
                Ok(Rested::Told(events)) => {
                    self.ready.extend(events);
                    return;
                }
                Ok(Rested::Waits(RunStatus::Waiting)) => {
                    self.step = Some(step_after_rest(follower));
                    return;
                }
                // Somebody has gone on with it since.
                Ok(Rested::Waits(_)) => {
                    self.step = Some(self::step(follower));
                    return;
                }
                Err(problem) => problem,
            },
            Err(error) => error.into(),
        };
        self.ready.push_back(self.telling.problem(&problem));
    }

    /// What is told of the run that rests, unless the stream goes on with it.
    async fn rested(&mut self) -> Result<Rested, Problem> {
        let found = self.server.runs().find(self.run.as_str()).await;
        if let Ok(record) = &found
            && self.telling.waits(record).await?
        {
            return Ok(Rested::Waits(record.status));
        }
        self.leash.let_go();
        let happened = self.happenings.rest();
        happened.iter().for_each(|happened| self.ready.extend(self.telling.live(happened)));
        self.telling.end(&found?).await.map(Rested::Told)
    }
}
