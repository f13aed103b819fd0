//! What observers are told of a run with redacted values.

use std::sync::Arc;

use hotcell_journal::Question;

use crate::event::{Event, Observer};
use crate::redaction::Redaction;

/// Tells an observer everything but redacted values. Texts of models are not told piece by piece: a value may begin in one piece and
/// end in the next.
pub(crate) struct Veiled {
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) redaction: Arc<Redaction>,
}

impl Observer for Veiled {
    fn event(&self, event: &Event<'_>) {
        veil(event, &self.redaction, &mut |event| self.observer.event(event));
    }
}

fn veil(event: &Event<'_>, redaction: &Redaction, tell: &mut dyn FnMut(&Event<'_>)) {
    match *event {
        Event::ModelText { .. } => {}
        Event::ModelRetried { node, error, attempt } => {
            tell(&Event::ModelRetried { node, error: &redaction.text(error), attempt });
        }
        Event::ToolCalled { node, place, tool, arguments, error, usage, elapsed } => {
            let (arguments, error) = (redaction.result(arguments), error.map(|error| redaction.text(error)));
            let (arguments, error) = (&*arguments, error.as_deref());
            tell(&Event::ToolCalled { node, place, tool, arguments, error, usage, elapsed });
        }
        Event::ModelFailed { node, model, place, error, kind, elapsed } => {
            tell(&Event::ModelFailed { node, model, place, error: &redaction.text(error), kind, elapsed });
        }
        Event::NodeFailed { node, turn, error, elapsed, place } => {
            tell(&Event::NodeFailed { node, turn, error: &redaction.text(error), elapsed, place });
        }
        Event::Noticed { node, text, help } => {
            let (text, help) = (redaction.text(text), help.map(|help| redaction.text(help)));
            tell(&Event::Noticed { node, text: &text, help: help.as_deref() });
        }
        Event::Asked { question } => tell(&Event::Asked { question: &redaction.question(question) }),
        Event::Expired { question } => tell(&Event::Expired { question: &redaction.question(question) }),
        Event::Within { node, agent, within } => {
            veil(within, redaction, &mut |within| tell(&Event::Within { node, agent, within }));
        }
        Event::NodeCompleted { node, turn, next, failure, elapsed, usage, place } => {
            let failure = failure.map(|failure| redaction.text(failure));
            let failure = failure.as_deref();
            tell(&Event::NodeCompleted { node, turn, next, failure, elapsed, usage, place });
        }
        Event::RunCompleted { run, output, failures, elapsed, usage } => {
            let (output, failures) = (redaction.result(output), redaction.failures(failures));
            tell(&Event::RunCompleted { run, output: &output, failures: &failures, elapsed, usage });
        }
        Event::RunFailed { run, node, error } => {
            tell(&Event::RunFailed { run, node, error: &redaction.text(error) });
        }
        Event::RunWaiting { run, questions } => {
            let questions: Vec<Question> = questions.iter().map(|question| redaction.question(question)).collect();
            tell(&Event::RunWaiting { run, questions: &questions });
        }
        Event::RunStopped { run, reason } => tell(&Event::RunStopped { run, reason: &redaction.text(reason) }),
        // Names, numbers and times.
        Event::RunStarted { .. }
        | Event::Revision { .. }
        | Event::NodeStarted { .. }
        | Event::ItemStarted { .. }
        | Event::CellCalled { .. }
        | Event::ModelRequested { .. }
        | Event::ModelAnswered { .. }
        | Event::Answered { .. }
        | Event::RunCancelled { .. }
        | Event::RunPaused { .. }
        | Event::RunInterrupted { .. } => tell(event),
    }
}
