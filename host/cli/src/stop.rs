//! Ctrl-C and SIGTERM: the first stops work in flight and leaves a run that can be resumed, the second ends the process
//! at once. So does the first where the work does not notice it: signals are waited for on a thread of their own, which no
//! work holds up.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::task::AtomicWaker;
use tokio_util::sync::CancellationToken;

use crate::exit::Exit;
use crate::screen::Screen;

/// How long work that is to stop may give no sign of life.
const PATIENCE: Duration = Duration::from_millis(800);
/// How often it is asked for one.
const INTERVAL: Duration = Duration::from_millis(50);

/// Runs `work` to its end. At the first signal `cancel` is cancelled, and `work` is to end by itself; if it cannot even be
/// asked to, because something works in it without letting go, the process ends.
pub(crate) async fn on_signal<T>(screen: Arc<Screen>, cancel: CancellationToken, work: impl Future<Output = T>) -> T {
    let pulse = Arc::new(Pulse::default());
    let felt = pulse.clone();
    let over = CancellationToken::new();
    let _over = over.clone().drop_guard();
    // Without a handler Ctrl-C kills, and what was committed can still be resumed.
    let _ = std::thread::Builder::new().name("hotcell-signals".to_owned()).spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        if let Ok(runtime) = runtime {
            runtime.block_on(async {
                tokio::select! {
                    () = over.cancelled() => {}
                    () = wait(&screen, &cancel, &felt) => {}
                }
            });
        }
    });
    let mut work = pin!(work);
    std::future::poll_fn(|context| {
        pulse.waker.register(context.waker());
        pulse.beats.fetch_add(1, Ordering::Relaxed);
        work.as_mut().poll(context)
    })
    .await
}

async fn wait(screen: &Screen, cancel: &CancellationToken, pulse: &Pulse) {
    let Ok(mut signals) = Signals::new() else { return };
    signals.next().await;
    screen.warning("stopping; press Ctrl-C again to end at once");
    cancel.cancel();
    tokio::select! {
        () = signals.next() => {}
        () = pulse.stops() => screen.warning("the work in progress does not react; what was committed can be resumed (`hotcell runs list` names the run)"),
    }
    std::process::exit(Exit::Interrupted as i32);
}

/// Signs of life of a piece of work.
#[derive(Default)]
struct Pulse {
    waker: AtomicWaker,
    beats: AtomicU64,
}

impl Pulse {
    /// Waits until there are no signs of life although they are asked for.
    async fn stops(&self) {
        loop {
            let before = self.beats.load(Ordering::Relaxed);
            self.waker.wake();
            let answered = async {
                while self.beats.load(Ordering::Relaxed) == before {
                    tokio::time::sleep(INTERVAL).await;
                }
            };
            if tokio::time::timeout(PATIENCE, answered).await.is_err() {
                return;
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Signals(tokio::signal::windows::CtrlC);

#[cfg(not(unix))]
impl Signals {
    fn new() -> std::io::Result<Self> {
        tokio::signal::windows::ctrl_c().map(Signals)
    }

    async fn next(&mut self) {
        self.0.recv().await;
    }
}

#[cfg(test)]
mod tests {
    use super::{CancellationToken, Pulse};

    #[tokio::test]
    async fn work_that_gives_no_sign_of_life_counts_as_stuck() {
        Pulse::default().stops().await;
    }

    #[tokio::test]
    async fn work_that_is_polled_gives_signs_of_life() {
        let (screen, cancel) =
            (crate::screen::Screen::new(crate::arguments::ColourWhen::Never), CancellationToken::new());
        let done = super::on_signal(screen.into(), cancel, async {
            tokio::task::yield_now().await;
            "done"
        });
        assert_eq!(done.await, "done");
    }
}
