//! Ctrl-C and SIGTERM: the first stops work in flight and leaves a run that can be resumed, the second ends the process
//! at once.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::exit::Exit;
use crate::screen::Screen;

/// Cancels `cancel` at the first signal. Has to be called within a tokio runtime.
pub(crate) fn on_signal(screen: Arc<Screen>, cancel: CancellationToken) {
    tokio::spawn(async move {
        // Without a handler Ctrl-C kills, and what was committed can still be resumed.
        let Ok(mut signals) = Signals::new() else { return };
        signals.next().await;
        screen.warning("stopping; press Ctrl-C again to end at once");
        cancel.cancel();
        signals.next().await;
        std::process::exit(Exit::Interrupted as i32);
    });
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
