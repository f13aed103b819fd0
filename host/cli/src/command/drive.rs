//! Driving a run on behalf of a person: what `hotcell run` and `hotcell runs resume` share.

use std::future::Future;
use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::Arc;

use hotcell_graph::diagnostic::{Diagnostic, Severity, render};
use hotcell_runtime::{Agent, Event, Host, HostError, Loading, ModelSource, Observer, RunReport};
use hotcell_telemetry::About;
use tokio_util::sync::CancellationToken;

use super::conclude::{Concluded, Conclusion};
use super::{Context, HostArguments, telemetry, threads};
use crate::arguments::Session;
use crate::events::{self, JsonLines};
use crate::exit::{Exit, Failure};
use crate::narration::{Narrator, Warnings};
use crate::people::Person;
use crate::stop;

/// A host and everything around one run of it.
pub(super) struct Drive<'a> {
    context: &'a Context,
    host: Host,
    arguments: Session,
    narrator: Arc<Narrator>,
    conclusion: Conclusion<'a>,
}

/// Tells everybody.
struct Everybody(Vec<Arc<dyn Observer>>);

impl Observer for Everybody {
    fn event(&self, event: &Event<'_>) {
        for observer in &self.0 {
            observer.event(event);
        }
    }
}

impl<'a> Drive<'a> {
    pub(super) fn new(context: &'a Context, mut arguments: Session) -> Result<Self, Failure> {
        let with = std::mem::take(&mut arguments.with);
        let source = match (arguments.record.take(), arguments.replay.take()) {
            (Some(file), _) => ModelSource::Record(file),
            (None, Some(file)) => ModelSource::Replay(file),
            (None, None) => ModelSource::Providers,
        };
        let quiet = arguments.quiet;
        if quiet {
            context.screen.tell_warnings();
        } else {
            context.screen.tell_plugins();
        }
        let interactive = !arguments.no_input && std::io::stdin().is_terminal() && context.screen.is_terminal();
        let host = context.host(HostArguments {
            source: Some(source),
            quiet,
            starts_programs: true,
            interactive,
            ..with.into()
        })?;
        let narrator = Arc::new(Narrator::new(context.screen.clone(), host.default_model()));
        let (json, quiet) = (arguments.json, arguments.quiet);
        let conclusion = Conclusion { context, json, quiet, narrator: narrator.clone() };
        Ok(Drive { context, host, arguments, narrator, conclusion })
    }

    /// Loads a graph, telling what is or may be wrong with it.
    pub(super) fn load(&self, path: &Path, loading: &Loading<'_>) -> Result<Agent, Failure> {
        let (found, agent) = match self.context.try_load(|| self.host.load_with(path, loading)) {
            Ok(agent) => (agent.warnings.clone(), Some(agent)),
            Err(refused) => (refused.diagnostics, None),
        };
        // What could be better is for `hotcell check`.
        let found: Vec<Diagnostic> = found.into_iter().filter(|found| found.severity > Severity::Note).collect();
        if self.arguments.json {
            for diagnostic in &found {
                events::line(&events::diagnostic(path, diagnostic))?;
            }
        }
        if !found.is_empty() {
            let screen = &self.context.screen;
            screen.line(render(&found, screen.colour()).trim_end());
        }
        match agent {
            Some(agent) => Ok(agent),
            None if self.arguments.json => {
                events::line(&events::refusal(Exit::Refused, "the graph has errors"))?;
                Err(Failure::said(Exit::Refused))
            }
            None => Err(Failure::said(Exit::Refused)),
        }
    }

    /// Runs to where it ends or waits, and tells the outcome.
    pub(super) fn go<F>(
        &self,
        strict: bool,
        run: impl FnOnce(Host, hotcell_runtime::Session) -> F,
    ) -> Result<Exit, Failure>
    where
        F: Future<Output = Result<RunReport, HostError>>,
    {
        let attended =
            attended(self.context, &self.arguments, &self.narrator, |session| run(self.host.clone(), session))?;
        let report = match attended {
            Ok(report) => report,
            Err(error) => return Err(self.refuse(error.into())?),
        };
        self.conclusion.conclude(&Concluded::of(&report), strict)
    }

    /// Why nothing was begun, after it was told to programs.
    pub(super) fn refuse(&self, failure: Failure) -> Result<Failure, Failure> {
        self.conclusion.refuse(failure)
    }

    /// Whether a node that fails without a fallback fails the command.
    pub(super) fn is_strict(&self) -> bool {
        self.arguments.strict
    }
}

/// Has work done that a person may answer, watch and stop, on several threads.
pub(super) fn attended<F, T, E>(
    context: &Context,
    arguments: &Session,
    narrator: &Arc<Narrator>,
    work: impl FnOnce(hotcell_runtime::Session) -> F,
) -> Result<Result<T, E>, Failure>
where
    F: Future<Output = Result<T, E>>,
{
    let runtime = threads::start()?;
    let screen = &context.screen;
    let cancel = CancellationToken::new();
    let person = Arc::new(Person::new(
        screen.clone(),
        arguments.answers.clone(),
        arguments.no_input,
        arguments.quiet,
        cancel.clone(),
    ));
    let told: Arc<dyn Observer> = if arguments.quiet { Arc::new(Warnings(screen.clone())) } else { narrator.clone() };
    let mut observers = vec![told];
    if arguments.json {
        observers.push(Arc::new(JsonLines));
    }
    let telemetry = runtime.block_on(async { telemetry::of_environment() })?;
    let observer: Arc<dyn Observer> = Arc::new(Everybody(observers));
    let observer = match &telemetry {
        Some(telemetry) => telemetry.watch(About::default(), observer),
        None => observer,
    };
    let session = hotcell_runtime::Session { people: person.clone(), observer, cancel: cancel.clone() };
    let work = async { work(session).await };
    let result = runtime.block_on(stop::on_signal(screen.clone(), cancel, work));
    if let Some(telemetry) = telemetry {
        runtime.block_on(telemetry.close());
    }
    // A question on the terminal may still be waiting for a key; nothing else outlives the run.
    runtime.shutdown_background();
    screen.worked();
    let unused = person.unused_answers();
    if unused > 0 && result.is_ok() {
        let verb = if unused == 1 { "answer was" } else { "answers were" };
        screen.warning(&format!("{unused} {verb} not used: no question was asked"));
    }
    Ok(result)
}
