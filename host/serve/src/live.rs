//! Runs that this process has in hand: those that it works on, and those that it is about to go on with.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use hotcell_runtime::{Counted, Event, Observer, People, Question, RunId, RunReport};
use tokio::sync::{broadcast, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::happenings::{Happening, Heard, KEPT};
use crate::news::News;
use crate::object::Object;

/// A run that this process has in hand.
pub(crate) struct Live {
    /// Made when somebody listens for the first time: it has room for many, and to most runs nobody listens
    events: OnceLock<broadcast::Sender<Happening>>,
    /// The turns that have begun and are not completed, each with what is told of that
    open: Mutex<BTreeMap<u64, Arc<str>>>,
    /// Cancelled when nobody has it in hand any more
    pub(crate) done: CancellationToken,
    /// Whether something of it became due meanwhile, so that it is looked at again then
    pub(crate) is_due: AtomicBool,
    /// How it stood when it gave control back last
    report: Mutex<Option<Arc<RunReport>>>,
    /// What it was begun with, if this process has begun it
    beginning: OnceLock<BegunWith>,
    /// How often somebody was to go on with it, and how many of these have begun or given up
    expected: AtomicU64,
    settled: AtomicU64,
}

impl Live {
    fn new() -> Self {
        Live {
            events: OnceLock::new(),
            open: Mutex::default(),
            done: CancellationToken::new(),
            is_due: AtomicBool::new(false),
            report: Mutex::default(),
            beginning: OnceLock::new(),
            expected: AtomicU64::new(0),
            settled: AtomicU64::new(0),
        }
    }

    /// Somebody is to go on with it, and drops this when that has begun.
    pub(crate) fn expect(self: &Arc<Self>) -> Expected {
        self.expected.fetch_add(1, Ordering::SeqCst);
        Expected(self.clone())
    }

    /// What happens from now on and is not committed: nodes that begin, pieces of a model's text.
    pub(crate) fn events(&self) -> Heard {
        // Whatever is told is in one of them, and in one only.
        let open = self.open();
        let events = self.events.get_or_init(|| broadcast::Sender::new(KEPT));
        Heard { receiver: events.subscribe(), open: open.clone() }
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<str>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_heard(&self) -> bool {
        self.events.get().is_some_and(|events| events.receiver_count() > 0)
    }

    /// Tells something to those who listen, and that a turn has begun also to those who come later.
    fn tell(&self, event: &Event<'_>) {
        let turn = match event {
            Event::NodeStarted { turn, .. } | Event::NodeCompleted { turn, .. } => Some(*turn),
            _ if self.is_heard() => None,
            _ => return,
        };
        let begins = matches!(event, Event::NodeStarted { .. });
        let begun = if begins { happening(event) } else { None };
        let mut open = self.open();
        if let Some(turn) = turn {
            match &begun {
                Some(Happening::Live(text)) => drop(open.insert(turn, text.clone())),
                _ => drop(open.remove(&turn)),
            }
        }
        // Whoever comes later is told what is open then.
        let Some(events) = self.events.get().filter(|events| events.receiver_count() > 0) else { return };
        if let Some(happening) = begun.or_else(|| happening(event)) {
            let _ = events.send(happening);
        }
    }

    /// How it stood when it gave control back last, in this process.
    pub(crate) fn report(&self) -> Option<Arc<RunReport>> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps what it was begun with.
    pub(crate) fn was_begun_with(&self, beginning: BegunWith) {
        let _ = self.beginning.set(beginning);
    }

    /// What it was begun with and how it stood when it gave control back last, both in this process.
    pub(crate) fn beginning_and_end(&self) -> Option<(&BegunWith, Arc<RunReport>)> {
        Some((self.beginning.get()?, self.report()?))
    }
}

/// What a run was begun with that is no fork: what is shown of it besides how it stands.
pub(crate) struct BegunWith {
    /// What its agent was loaded from
    pub(crate) source: String,
    pub(crate) thread: Option<String>,
    pub(crate) metadata: Object,
}

/// Somebody is to go on with a run, and has not begun.
pub(crate) struct Expected(Arc<Live>);

impl Drop for Expected {
    fn drop(&mut self) {
        self.0.settled.fetch_add(1, Ordering::SeqCst);
    }
}

/// All of them.
#[derive(Default)]
pub(crate) struct InHand {
    runs: Mutex<HashMap<RunId, (usize, Arc<Live>)>>,
    /// Runs of which there is something to tell
    pub(crate) news: News,
}

impl InHand {
    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, (usize, Arc<Live>)>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A run, if it is in hand.
    pub(crate) fn get(&self, run: &RunId) -> Option<Arc<Live>> {
        self.runs().get(run).map(|(_, live)| live.clone())
    }

    pub(crate) fn len(&self) -> usize {
        self.runs().len()
    }

    /// All that are in hand.
    pub(crate) fn all(&self) -> Vec<RunId> {
        self.runs().keys().cloned().collect()
    }

    /// Has a run in hand until what is given back is dropped.
    pub(crate) fn take(self: &Arc<Self>, run: &RunId) -> Hold {
        let mut runs = self.runs();
        let (holds, live) = runs.entry(run.clone()).or_insert_with(|| (0, Arc::new(Live::new())));
        *holds += 1;
        Hold { run: run.clone(), live: live.clone(), all: self.clone() }
    }

    /// The same for a run that nobody else has in hand, to go on with it.
    fn take_alone(self: &Arc<Self>, run: &RunId) -> Option<(Hold, Expected)> {
        let mut runs = self.runs();
        if runs.contains_key(run) {
            return None;
        }
        let live = Arc::new(Live::new());
        let expected = live.expect();
        runs.insert(run.clone(), (1, live.clone()));
        Some((Hold { run: run.clone(), live, all: self.clone() }, expected))
    }

    /// Has a run in hand that rests, to go on with it; `look` reads whether it does. The journal says so before whoever worked on the run
    /// lets it go: that is waited for, so long at most. Nothing if somebody else is to go on with it, or it is not let go.
    pub(crate) async fn take_resting<E, W>(
        self: &Arc<Self>,
        run: &RunId,
        within: Duration,
        look: impl Fn() -> W,
    ) -> Result<Option<(Hold, Expected)>, E>
    where
        W: Future<Output = Result<(), E>>,
    {
        let until = Instant::now() + within;
        loop {
            let Some(live) = self.get(run) else {
                look().await?;
                return Ok(self.take_alone(run));
            };
            let settled = live.settled.load(Ordering::SeqCst);
            look().await?;
            // Whoever had begun before it was read came to this rest. Others have it before them.
            if live.expected.load(Ordering::SeqCst) > settled {
                return Ok(None);
            }
            if tokio::time::timeout_at(until, live.done.cancelled()).await.is_err() {
                return Ok(None);
            }
        }
    }
}

/// Has a run in hand.
pub(crate) struct Hold {
    pub(crate) run: RunId,
    pub(crate) live: Arc<Live>,
    all: Arc<InHand>,
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut runs = self.all.runs();
        let Some((holds, _)) = runs.get_mut(&self.run) else { return };
        *holds -= 1;
        if *holds == 0 {
            runs.remove(&self.run);
            self.live.done.cancel();
        }
    }
}

/// A run that has begun.
pub(crate) struct Begun {
    pub(crate) run: RunId,
    pub(crate) live: Arc<Live>,
    /// What happens in it from its beginning on, for whoever wanted to listen
    pub(crate) events: Option<Heard>,
}

/// Tells what happens in a run to those who listen, and its name to whoever began it. Nobody is there to answer: questions wait
/// in the journal.
pub(crate) struct Told {
    all: Arc<InHand>,
    hold: OnceLock<Hold>,
    begun: Mutex<Option<oneshot::Sender<Begun>>>,
    /// Whether whoever began it listens
    listens: bool,
    /// Counts as work until the run itself does, and says that somebody is to go on with it
    working: Mutex<Option<(Counted, Expected)>>,
}

impl Told {
    /// For a run that is to begin; who began it is told its name as soon as it is in the journal.
    pub(crate) fn beginning(all: Arc<InHand>, listens: bool) -> (Arc<Self>, oneshot::Receiver<Begun>) {
        let (begun, told) = oneshot::channel();
        (
            Arc::new(Told {
                all,
                hold: OnceLock::new(),
                begun: Mutex::new(Some(begun)),
                listens,
                working: Mutex::default(),
            }),
            told,
        )
    }

    /// For a run that goes on.
    pub(crate) fn going_on(hold: Hold, working: Counted, expected: Expected) -> Arc<Self> {
        let working = Mutex::new(Some((working, expected)));
        let told =
            Told { all: hold.all.clone(), hold: OnceLock::new(), begun: Mutex::default(), listens: false, working };
        let _ = told.hold.set(hold);
        Arc::new(told)
    }

    /// The run, if it has begun.
    pub(crate) fn run(&self) -> Option<&RunId> {
        self.hold.get().map(|hold| &hold.run)
    }

    /// Keeps how the run stands for those who wait for it.
    pub(crate) fn reported(&self, report: RunReport) {
        if let Some(hold) = self.hold.get() {
            self.all.news.add(&hold.run);
            *hold.live.report.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(report));
        }
    }
}

#[async_trait]
impl People for Told {
    async fn ask(&self, _question: &Question) -> Option<String> {
        None
    }
}

impl Observer for Told {
    fn event(&self, event: &Event<'_>) {
        if let Event::RunStarted { run, .. } = event {
            drop(self.working.lock().unwrap_or_else(PoisonError::into_inner).take());
            let hold = self.hold.get_or_init(|| self.all.take(run));
            let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(begun) = begun {
                let events = self.listens.then(|| hold.live.events());
                let _ = begun.send(Begun { run: hold.run.clone(), live: hold.live.clone(), events });
            }
            return;
        }
        if let Some(hold) = self.hold.get() {
            if self.all.news.are_wanted() && is_question(event) {
                self.all.news.add(&hold.run);
            }
            hold.live.tell(event);
        }
    }

    fn wants_text(&self) -> bool {
        self.hold.get().is_some_and(|hold| hold.live.is_heard())
    }
}

/// Whether somebody is asked something.
fn is_question(event: &Event<'_>) -> bool {
    matches!(innermost(event), Event::Asked { .. })
}

/// What happened in the agent in which it happened.
fn innermost<'e>(event: &'e Event<'e>) -> &'e Event<'e> {
    let mut innermost = event;
    while let Event::Within { within, .. } = innermost {
        innermost = within;
    }
    innermost
}

/// What those who listen are told of an event; nothing where an entry of the run says the same.
fn happening(event: &Event<'_>) -> Option<Happening> {
    match innermost(event) {
        Event::NodeStarted { .. }
        | Event::ItemStarted { .. }
        | Event::ModelRequested { .. }
        | Event::ModelText { .. }
        | Event::ModelAnswered { .. }
        | Event::ModelFailed { .. }
        | Event::ModelRetried { .. }
        | Event::ToolCalled { .. }
        | Event::CellCalled { .. }
        | Event::NodeFailed { .. }
        | Event::Noticed { .. } => serde_json::to_string(event).ok().map(|text| Happening::Live(text.into())),
        Event::NodeCompleted { place, .. } => Some(Happening::Completed((*place).into())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Longer than any test takes.
    const LONG: Duration = Duration::from_secs(3_600);

    #[tokio::test]
    async fn a_run_that_rests_is_had_when_it_is_let_go_and_by_one_only() {
        let all = Arc::<InHand>::default();
        let run = RunId::from("r".to_owned());
        let looks = AtomicUsize::new(0);
        let rests = || async {
            looks.fetch_add(1, Ordering::SeqCst);
            Ok::<(), &str>(())
        };
        // It is in the journal that it rests, and whoever worked on it still has it.
        let finishing = all.take(&run);
        let letting_go = async {
            while looks.load(Ordering::SeqCst) == 0 {
                tokio::task::yield_now().await;
            }
            drop(finishing);
        };
        let (taken, ()) = tokio::join!(all.take_resting(&run, LONG, rests), letting_go);
        let (hold, expected) = taken.expect("it rests").expect("it was let go");
        assert_eq!(looks.load(Ordering::SeqCst), 2, "it is read anew after it was let go");

        // Who comes second is not kept waiting.
        assert!(all.take_resting(&run, LONG, rests).await.expect("it rests").is_none());
        // Not even if the first one begins after it was read that the run rests.
        let begins = Mutex::new(Some(expected));
        let begun = || async {
            drop(begins.lock().expect("unpoisoned").take());
            Ok::<(), &str>(())
        };
        assert!(all.take_resting(&run, LONG, begun).await.expect("it rests").is_none());
        let works = || async { Err::<(), &str>("it works") };
        assert_eq!(all.take_resting(&run, LONG, works).await.err(), Some("it works"));
        // It rests again, and is not let go in time.
        assert!(all.take_resting(&run, Duration::ZERO, rests).await.expect("it rests").is_none());
        drop(hold);
        assert!(all.take_resting(&run, Duration::ZERO, rests).await.expect("it rests").is_some());
    }
}
