//! What happens in a run, for one reader: events in their order, then what came of it.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hotcell_runtime::{Event, HostError, Observer, RunReport};
use pyo3::prelude::*;
use tokio::sync::oneshot;

use crate::function;

/// What came of a run.
pub(crate) type Ended = Result<Arc<RunReport>, Arc<HostError>>;

/// What a reader finds.
pub(crate) enum Found {
    /// An event, as JSON
    Event(String),
    /// Nothing yet
    Nothing,
    /// It is over
    End,
}

/// What happens in a run. The run is not held up by a reader that is slow: what was not read yet is kept.
pub(crate) struct Feed {
    inner: Mutex<Inner>,
    changed: Condvar,
    /// Whether there is a reader of events
    is_read: bool,
    /// The event loop of whoever awaits the run; the functions of the program that are coroutines run in it
    event_loop: Mutex<Option<Py<PyAny>>>,
}

#[derive(Default)]
struct Inner {
    run: Option<String>,
    events: VecDeque<String>,
    ended: Option<Ended>,
    waiting: Vec<oneshot::Sender<()>>,
}

impl Feed {
    pub(crate) fn new(is_read: bool, event_loop: Option<Py<PyAny>>) -> Arc<Self> {
        let event_loop = Mutex::new(event_loop);
        Arc::new(Feed { inner: Mutex::default(), changed: Condvar::new(), is_read, event_loop })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name of the run, once it has begun.
    pub(crate) fn run(&self) -> Option<String> {
        self.inner().run.clone()
    }

    /// What came of it, once it is over.
    pub(crate) fn ended(&self) -> Option<Ended> {
        self.inner().ended.clone()
    }

    pub(crate) fn end(&self, ended: Ended) {
        let mut inner = self.inner();
        if let Some(run) = &inner.run {
            function::leave_loop(run);
        }
        inner.ended = Some(ended);
        self.tell(inner);
    }

    /// Takes the next event, if there is one.
    pub(crate) fn take(&self) -> Found {
        let mut inner = self.inner();
        match inner.events.pop_front() {
            Some(event) => Found::Event(event),
            None if inner.ended.is_some() => Found::End,
            None => Found::Nothing,
        }
    }

    /// Waits at most so long for a change.
    pub(crate) fn wait(&self, time: Duration) {
        let inner = self.inner();
        if inner.events.is_empty() && inner.ended.is_none() {
            drop(self.changed.wait_timeout(inner, time));
        }
    }

    /// Is sent something, or dropped, at the next change; at once where something is there.
    pub(crate) fn changes(&self) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        let mut inner = self.inner();
        if inner.events.is_empty() && inner.ended.is_none() {
            inner.waiting.push(sender);
        }
        receiver
    }

    fn tell(&self, mut inner: MutexGuard<'_, Inner>) {
        let waiting = std::mem::take(&mut inner.waiting);
        drop(inner);
        // Whoever waited may be gone.
        for one in waiting {
            let _ = one.send(());
        }
        self.changed.notify_all();
    }
}

impl Observer for Feed {
    fn event(&self, event: &Event<'_>) {
        if let Event::RunStarted { run, .. } = event {
            let event_loop = self.event_loop.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(event_loop) = event_loop {
                function::enter_loop(run.as_str(), event_loop);
            }
            self.inner().run = Some(run.to_string());
        }
        if self.is_read
            && let Ok(event) = serde_json::to_string(event)
        {
            let mut inner = self.inner();
            inner.events.push_back(event);
            self.tell(inner);
        }
    }

    fn wants_text(&self) -> bool {
        self.is_read
    }
}
