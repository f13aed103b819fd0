//! `hotcell runs listen`: takes answers that other systems send later.

use std::sync::Arc;

use hotcell_runtime::{CancellationToken, Event, Nobody, Observer, OnResumed, Outcome, Session, serve_callbacks};

use super::super::listening::Listening;
use super::super::{Context, HostArguments};
use crate::arguments::Listen;
use crate::exit::{Exit, Failure};
use crate::narration::revision;
use crate::screen::Screen;
use crate::stop;
use crate::untrusted::one_line;

/// Characters of a result that are shown.
const SHOWN: usize = 200;

/// Tells with what runs go on, where that is not simply what the files say.
struct Revisions(Arc<Screen>);

impl Observer for Revisions {
    fn event(&self, event: &Event<'_>) {
        if let Event::Revision { run, digest, current, changed } = event {
            self.0.line(&format!("run {run} {}", revision(digest, *current, changed)));
        }
    }
}

pub(super) fn perform(context: &Context, arguments: Listen) -> Result<Exit, Failure> {
    let screen = &context.screen;
    if !context.keeps_runs() {
        return Err(Failure::refused("no other process can see the runs of `--journal memory`").help("name a file"));
    }
    let Listening { runtime, listener, url } = Listening::at(arguments.address)?;
    let host = context.host(HostArguments {
        starts_programs: true,
        quiet: true,
        callback_url: Some(url.clone()),
        ..arguments.with.into()
    })?;
    let cancel = CancellationToken::new();
    let session =
        Session { people: Arc::new(Nobody), observer: Arc::new(Revisions(screen.clone())), cancel: cancel.clone() };
    let told: OnResumed = {
        let screen = screen.clone();
        Arc::new(move |run, report| {
            let text = match report.as_ref().map(|report| &report.outcome) {
                Ok(Outcome::Completed { output }) => format!("is done: {}", one_line(output, SHOWN)),
                Ok(Outcome::Stopped { reason }) => format!("stopped: {}", one_line(reason, SHOWN)),
                Ok(Outcome::Failed { error, .. }) => format!("failed: {}", one_line(error, SHOWN)),
                Ok(Outcome::Waiting { .. }) => "was answered and waits again".to_owned(),
                Ok(Outcome::Paused) => "was answered and is paused".to_owned(),
                Ok(Outcome::Interrupted) => "was answered and stopped; it can be resumed".to_owned(),
                Ok(Outcome::Cancelled) => "was answered and cancelled".to_owned(),
                Err(error) => format!("was answered and cannot be resumed: {}", one_line(&error.to_string(), SHOWN)),
            };
            screen.line(&format!("run {run} {text}"));
        })
    };
    screen.line(&format!("answers are taken at {url}; Ctrl-C ends it"));
    let work = serve_callbacks(host, listener, session, told);
    runtime.block_on(stop::on_signal(screen.clone(), cancel, work));
    runtime.shutdown_background();
    Ok(Exit::Done)
}
