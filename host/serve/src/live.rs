//! Runs that this process has in hand: those that it works on, and those that it is about to go on with.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use async_trait::async_trait;
use hotcell_runtime::{Counted, Event, Observer, People, Question, RunId, RunReport};
use tokio::sync::{broadcast, oneshot};
use tokio_util::sync::CancellationToken;

use crate::happenings::{Happening, Heard, KEPT};
use crate::news::News;

/// A run that this process has in hand.
pub(crate) struct Live {
    events: broadcast::Sender<Happening>,
    /// The turns that have begun and are not completed, each with what is told of that
    open: Mutex<BTreeMap<u64, Arc<str>>>,
    /// Cancelled when nobody has it in hand any more
    pub(crate) done: CancellationToken,
    /// How it stood when it gave control back last
    report: Mutex<Option<Arc<RunReport>>>,
}

impl Live {
    /// What happens from now on and is not committed: nodes that begin, pieces of a model's text.
    pub(crate) fn events(&self) -> Heard {
        // Whatever is told is in one of them, and in one only.
        let open = self.open();
        Heard { receiver: self.events.subscribe(), open: open.clone() }
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<str>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells something to those who listen.
    fn tell(&self, event: &Event<'_>) {
        let is_heard = self.events.receiver_count() > 0;
        let happening = match event {
            Event::NodeStarted { .. } | Event::NodeCompleted { .. } => happening(event),
            _ if is_heard => happening(event),
            _ => None,
        };
        let Some(happening) = happening else { return };
        let mut open = self.open();
        match (event, &happening) {
            (Event::NodeStarted { turn, .. }, Happening::Live(text)) => drop(open.insert(*turn, text.clone())),
            (Event::NodeCompleted { turn, .. }, _) => drop(open.remove(turn)),
            _ => {}
        }
        // Nobody need listen.
        let _ = self.events.send(happening);
    }

    /// How it stood when it gave control back last, in this process.
    pub(crate) fn report(&self) -> Option<Arc<RunReport>> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).clone()
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
        let (holds, live) = runs.entry(run.clone()).or_insert_with(|| {
            let events = broadcast::Sender::new(KEPT);
            let open = Mutex::default();
            (0, Arc::new(Live { events, open, done: CancellationToken::new(), report: Mutex::default() }))
        });
        *holds += 1;
        Hold { run: run.clone(), live: live.clone(), all: self.clone() }
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
    /// Counts as work until the run itself does
    working: Mutex<Option<Counted>>,
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
    pub(crate) fn going_on(hold: Hold, working: Counted) -> Arc<Self> {
        let working = Mutex::new(Some(working));
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
        self.hold.get().is_some_and(|hold| hold.live.events.receiver_count() > 0)
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
