//! `hotcell runs watch`: a run that another process works on, node by node while they are done.

use hotcell_runtime::{Completed, Entry, Fact, RunRecord, RunStatus, open_questions};

use super::{Context, HostArguments, print, wait};
use crate::command::conclude::describe_question;
use crate::exit::{Exit, Failure};
use crate::narration::short;
use crate::screen::{DIM, STRONG, Screen, WARNING};
use crate::untrusted::{lines, one_line};

/// Entries that are read at once.
const AT_ONCE: usize = 256;
/// How much of an error is shown, in characters.
const SHOWN: usize = 400;

pub(super) fn perform(context: &Context, run: &str) -> Result<Exit, Failure> {
    let host = context.host(HostArguments::default())?;
    let journal = host.journal();
    let screen = &context.screen;
    let run = wait(journal.find(run))?.id;
    let mut after = 0;
    loop {
        let page = wait(journal.entries(&run, after, AT_ONCE))?;
        for read in &page.entries {
            tell(screen, &read.entry);
            after = read.number;
        }
        if !page.entries.is_empty() {
            continue;
        }
        if page.status == RunStatus::Running {
            wait(journal.moved_on(&run, after))?;
            continue;
        }
        let record = wait(journal.find(run.as_str()))?;
        // Otherwise somebody goes on with it.
        if record.status == page.status {
            let entries = wait(journal.history(&run))?.whole()?;
            entries.iter().skip(usize::try_from(after).unwrap_or(usize::MAX)).for_each(|entry| tell(screen, entry));
            return end(context, &record, &entries);
        }
    }
}

/// Tells of an entry, if anything is to be told of it.
pub(super) fn tell(screen: &Screen, entry: &Entry) {
    if let Some((style, line)) = told(entry) {
        screen.line(&screen.paint(style, &format!("▸ {line}")));
    }
}

/// What is told of an entry: a node that is done, an attempt that failed.
fn told(entry: &Entry) -> Option<(anstyle::Style, String)> {
    if entry.place.is_step() {
        return None;
    }
    match &entry.fact {
        Fact::Started(header) => Some((DIM, format!("graph: {}", one_line(&header.graph, SHOWN)))),
        Fact::Resumed | Fact::Retried => Some((DIM, "the run goes on".to_owned())),
        Fact::Withheld { effect } => Some((WARNING, format!("withheld: {}", one_line(effect, SHOWN)))),
        Fact::Completed(completed) => Some(done(completed)),
        Fact::Attempt { error, .. } => Some((WARNING, format!("tried: {}", one_line(error, SHOWN)))),
        Fact::Asked { question, .. } => {
            Some((DIM, format!("{} asks: {}", one_line(&question.node, SHOWN), one_line(&question.text, SHOWN))))
        }
        Fact::Expired { .. } => Some((WARNING, "nobody answered in time".to_owned())),
        _ => None,
    }
}

fn done(completed: &Completed) -> (anstyle::Style, String) {
    let node = one_line(&completed.node, SHOWN);
    let to = match completed.next.as_deref() {
        Some([]) | None => String::new(),
        Some(next) => format!(" -> {}", one_line(&next.join(", "), SHOWN)),
    };
    let took = short(completed.elapsed);
    match &completed.failure {
        Some(failure) => (WARNING, format!("{node} failed ({took}): {}{to}", one_line(failure, SHOWN))),
        None => (DIM, format!("{node} ({took}){to}")),
    }
}

/// Tells what a run came to, and how the command ends.
pub(super) fn end(context: &Context, record: &RunRecord, entries: &[Entry]) -> Result<Exit, Failure> {
    let screen = &context.screen;
    let outcome = record.outcome.as_deref().unwrap_or_default();
    match record.status {
        RunStatus::Completed => print(outcome).map(|()| Exit::Done),
        RunStatus::Failed | RunStatus::Stopped => {
            screen.error(&lines(outcome), None);
            Ok(Exit::Failed)
        }
        RunStatus::Waiting => {
            let open = open_questions(entries);
            for asked in &open {
                screen.line(&describe_question(&asked.question, open.len() > 1, &|text| screen.paint(STRONG, text)));
            }
            screen.line(&format!("answer with: {}", context.runs_command("answer", record.id.as_str(), "'...'")));
            Ok(Exit::Waiting)
        }
        RunStatus::Paused => {
            let command = context.runs_command("resume", record.id.as_str(), "");
            screen.line(&format!("run {} is paused; resume it with: {command}", one_line(record.id.as_str(), SHOWN)));
            Ok(Exit::Interrupted)
        }
        status => {
            screen.line(&format!("run {} is {status}", one_line(record.id.as_str(), SHOWN)));
            Ok(Exit::Interrupted)
        }
    }
}
