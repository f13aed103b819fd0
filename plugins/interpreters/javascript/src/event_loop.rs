//! The event loop: promise jobs, timers and what ends a script.
//!
//! Waiting for a timer or an answer is a wait of the host, not a loop: it costs no fuel. Nothing here reads a clock before
//! the first timer is set, so that none gets into the snapshot.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::Future as _;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context as TaskContext, Poll, Waker};

use boa_engine::builtins::promise::{OperationType, Promise};
use boa_engine::context::HostHooks;
use boa_engine::context::time::{Clock, JsInstant};
use boa_engine::error::PanicError;
use boa_engine::job::{GenericJob, Job, JobExecutor, NativeAsyncJob, PromiseJob};
use boa_engine::object::builtins::{JsFunction, JsPromise};
use boa_engine::{Context, JsError, JsObject, JsResult, JsValue};
use wasip2::clocks::{monotonic_clock, wall_clock};

use crate::bindings::hotcell::cell::http;
use crate::host;

const NANOSECONDS_PER_MILLISECOND: f64 = 1e6;

struct Timer {
    callback: JsFunction,
    /// Nanoseconds between two calls, for an interval.
    interval: Option<u64>,
    /// Whether the script goes on because of it.
    keeps_alive: bool,
}

/// Jobs and timers of the one context, and how the script asked to end.
#[derive(Default)]
pub(crate) struct EventLoop {
    promise_jobs: RefCell<VecDeque<PromiseJob>>,
    async_jobs: RefCell<VecDeque<NativeAsyncJob>>,
    generic_jobs: RefCell<VecDeque<GenericJob>>,
    /// By the time they are due and, at the same time, by their number.
    timers: RefCell<BTreeMap<(u64, u32), Timer>>,
    last_timer: Cell<u32>,
    /// Who is told of the answers to requests, by the numbers of these.
    requests: RefCell<BTreeMap<u32, JsFunction>>,
    exit: Cell<Option<u8>>,
    rejected: RefCell<Vec<JsObject<Promise>>>,
}

impl EventLoop {
    /// The event loop of a context.
    pub(crate) fn of(context: &Context) -> Rc<Self> {
        context.downcast_job_executor::<Self>().expect("every context of this cell is built with this executor")
    }

    /// Starts a timer and returns its number.
    pub(crate) fn start(&self, callback: JsFunction, milliseconds: f64, repeat: bool) -> u32 {
        let id = self.last_timer.get() + 1;
        self.last_timer.set(id);
        // Cast saturates, which is what an endless delay should do.
        let nanoseconds = (milliseconds * NANOSECONDS_PER_MILLISECOND) as u64;
        let timer = Timer { callback, interval: repeat.then_some(nanoseconds), keeps_alive: true };
        self.timers.borrow_mut().insert((monotonic_clock::now().saturating_add(nanoseconds), id), timer);
        id
    }

    /// Forgets a timer; one that is gone already is no mistake.
    pub(crate) fn stop(&self, id: u32) {
        self.timers.borrow_mut().retain(|(_, known), _| *known != id);
    }

    /// Lets the script end although this timer still runs.
    pub(crate) fn release(&self, id: u32) {
        for ((_, known), timer) in self.timers.borrow_mut().iter_mut() {
            if *known == id {
                timer.keeps_alive = false;
            }
        }
    }

    /// Ends the script: the error passes every `catch` and `finally`.
    pub(crate) fn exit(&self, code: u8) -> JsError {
        self.exit.set(Some(code));
        PanicError::new("the script called process.exit").into()
    }

    /// The code of `process.exit`, once it was called.
    pub(crate) fn exited(&self) -> Option<u8> {
        self.exit.get()
    }

    /// Starts a request and returns its number. `callback` is told what becomes of it.
    pub(crate) fn ask(&self, request: &http::Request, callback: JsFunction) -> u32 {
        let number = http::start(request);
        self.requests.borrow_mut().insert(number, callback);
        number
    }

    /// Gives up a request; one that is done is no mistake.
    pub(crate) fn give_up(&self, number: u32) {
        if self.requests.borrow_mut().remove(&number).is_some() {
            http::cancel(number);
        }
    }

    /// Runs until nothing is left to do. An error is an uncaught exception, or the end through [`EventLoop::exit`].
    pub(crate) fn run(&self, context: &mut Context) -> JsResult<()> {
        loop {
            self.run_microtasks(context)?;
            let asks = !self.requests.borrow().is_empty();
            let due = self.next_due(asks);
            let left = due.map(|due| due.saturating_sub(monotonic_clock::now()));
            match (asks, left) {
                (false, None) => return Ok(()),
                (false, Some(0)) => {}
                (false, Some(_)) => monotonic_clock::subscribe_instant(due.unwrap_or_default()).block(),
                // Also where a timer is due: one that always is must not keep answers away.
                (true, left) => {
                    if let Some((number, outcome)) = http::wait(left) {
                        self.tell(number, outcome, context)?;
                        continue;
                    }
                }
            }
            if let Some(due) = due {
                self.run_due(monotonic_clock::now().max(due), context)?;
            }
        }
    }

    fn tell(&self, number: u32, outcome: http::Outcome, context: &mut Context) -> JsResult<()> {
        let Some(callback) = self.requests.borrow_mut().remove(&number) else { return Ok(()) };
        let outcome = host::outcome(outcome, context)?;
        callback.call(&JsValue::undefined(), &[outcome], context).map(|_| ())
    }

    /// When the next timer fires, if one is left that the script waits for, or if it waits for something else.
    fn next_due(&self, waits: bool) -> Option<u64> {
        let timers = self.timers.borrow();
        let waits = waits || timers.values().any(|timer| timer.keeps_alive);
        waits.then(|| timers.keys().next().map(|(due, _)| *due)).flatten()
    }

    fn run_due(&self, now: u64, context: &mut Context) -> JsResult<()> {
        let due: Vec<(u64, u32)> = self.timers.borrow().range(..=(now, u32::MAX)).map(|(key, _)| *key).collect();
        for key in due {
            // An earlier callback may have stopped it.
            let Some(timer) = self.timers.borrow_mut().remove(&key) else { continue };
            let callback = timer.callback.clone();
            if let Some(interval) = timer.interval {
                self.timers.borrow_mut().insert((now.saturating_add(interval), key.1), timer);
            }
            callback.call(&JsValue::undefined(), &[], context)?;
            self.run_microtasks(context)?;
        }
        Ok(())
    }

    fn run_microtasks(&self, context: &mut Context) -> JsResult<()> {
        loop {
            let job = self.promise_jobs.borrow_mut().pop_front();
            if let Some(job) = job {
                job.call(context)?;
                continue;
            }
            let job = self.generic_jobs.borrow_mut().pop_front();
            if let Some(job) = job {
                job.call(context)?;
                continue;
            }
            let jobs = std::mem::take(&mut *self.async_jobs.borrow_mut());
            if jobs.is_empty() {
                break;
            }
            for job in jobs {
                self.finish(job, context)?;
            }
        }
        context.clear_kept_objects();
        let unhandled = std::mem::take(&mut *self.rejected.borrow_mut()).into_iter().next();
        match unhandled {
            Some(promise) => Err(rejection(promise.upcast())),
            None => Ok(()),
        }
    }

    /// The only native futures are module loads, which are answered at once; anything that waited would wait for ever.
    fn finish(&self, job: NativeAsyncJob, context: &mut Context) -> JsResult<()> {
        let cell = RefCell::new(context);
        let mut future = pin!(job.call(&cell));
        match future.as_mut().poll(&mut TaskContext::from_waker(Waker::noop())) {
            Poll::Ready(result) => result.map(|_| ()),
            Poll::Pending => Ok(()),
        }
    }
}

/// The reason of a rejected promise, as the exception it amounts to.
fn rejection(promise: JsObject) -> JsError {
    use boa_engine::builtins::promise::PromiseState;
    match JsPromise::from_object(promise).map(|promise| promise.state()) {
        Ok(PromiseState::Rejected(reason)) => JsError::from_opaque(reason),
        _ => JsError::from_opaque(JsValue::undefined()),
    }
}

impl JobExecutor for EventLoop {
    fn enqueue_job(self: Rc<Self>, job: Job, _context: &mut Context) {
        match job {
            Job::PromiseJob(job) => self.promise_jobs.borrow_mut().push_back(job),
            Job::AsyncJob(job) => self.async_jobs.borrow_mut().push_back(job),
            Job::GenericJob(job) => self.generic_jobs.borrow_mut().push_back(job),
            // `Atomics.waitAsync` has nobody to wake it, and the instance ends before any finalizer would run.
            _ => {}
        }
    }

    fn run_jobs(self: Rc<Self>, context: &mut Context) -> JsResult<()> {
        self.run(context)
    }
}

/// Keeps the promises that were rejected and have no handler yet.
pub(crate) struct Hooks(pub(crate) Rc<EventLoop>);

impl HostHooks for Hooks {
    fn promise_rejection_tracker(&self, promise: &JsObject<Promise>, operation: OperationType, _context: &mut Context) {
        let mut rejected = self.0.rejected.borrow_mut();
        match operation {
            OperationType::Reject => rejected.push(promise.clone()),
            OperationType::Handle => rejected.retain(|known| !JsObject::equals(known, promise)),
        }
    }

    fn local_timezone_offset_seconds(&self, _unix_time_seconds: i64) -> i32 {
        0
    }
}

/// The clocks of the call that is going on; nothing is remembered between two readings.
pub(crate) struct CallClock;

impl Clock for CallClock {
    fn now(&self) -> JsInstant {
        let now = monotonic_clock::now();
        JsInstant::new(now / 1_000_000_000, (now % 1_000_000_000) as u32)
    }

    fn system_time_millis(&self) -> i64 {
        let now = wall_clock::now();
        i64::try_from(now.seconds).unwrap_or(i64::MAX).saturating_mul(1000) + i64::from(now.nanoseconds / 1_000_000)
    }
}
