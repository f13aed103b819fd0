//! `hotcell runs`: what the journal knows, and going on with it.

mod list;
mod listen;
mod show;

use hotcell_runtime::{Journal, JournalError, RunRecord, RunStatus};

use super::drive::{Drive, describe_answered};
use super::run::read_input;
use super::{Context, HostArguments, print};
use crate::arguments::{Runs, Session};
use crate::command::origin;
use crate::exit::{Exit, Failure};

pub(super) fn perform(context: &Context, arguments: Runs) -> Result<Exit, Failure> {
    match arguments {
        Runs::List { json } => list::perform(context, json),
        Runs::Show { run, json } => show::perform(context, &run, json),
        Runs::Resume { run, session } => resume(context, run, session),
        Runs::Retry { run, session } => retry(context, run, session),
        Runs::Answer { run, question, text, resume } => answer(context, run, question.as_deref(), &text, resume),
        Runs::Listen(arguments) => listen::perform(context, arguments),
        Runs::Cancel { run } => cancel(context, &run),
    }
}

fn resume(context: &Context, run: String, session: Session) -> Result<Exit, Failure> {
    let session = as_it_was_started(context, &run, session)?;
    Drive::new(context, session)?.go(|host, session| async move { host.resume(&run, session).await })
}

fn retry(context: &Context, run: String, session: Session) -> Result<Exit, Failure> {
    let session = as_it_was_started(context, &run, session)?;
    Drive::new(context, session)?.go(|host, session| async move { host.retry(&run, session).await })
}

/// The options that a run was started with, where the command line does not say otherwise.
fn as_it_was_started(context: &Context, run: &str, session: Session) -> Result<Session, Failure> {
    let record = context.host(HostArguments::default())?.journal().find(run)?;
    Ok(origin::restored(&record, session))
}

fn answer(context: &Context, run: String, question: Option<&str>, text: &str, go_on: bool) -> Result<Exit, Failure> {
    let text = if text == "-" { read_input("the answer")? } else { text.to_owned() };
    let host = context.host(HostArguments::default())?;
    let answered = host.answer(&run, question, &text)?;
    context.screen.line(&describe_answered(&answered));
    if go_on {
        return resume(context, run, Session::default());
    }
    context.screen.line(&format!("go on with: {}", context.runs_command(&format!("resume {run}"))));
    Ok(Exit::Done)
}

fn cancel(context: &Context, run: &str) -> Result<Exit, Failure> {
    let record = context.host(HostArguments::default())?.cancel(run)?;
    print(&format!("cancelled run {}", record.id))?;
    Ok(Exit::Done)
}

/// How a run stands, in one word. A run whose process is gone is `interrupted`: its status in the journal is still
/// `running`, but nobody holds its lock.
fn standing(journal: &dyn Journal, record: &RunRecord) -> &'static str {
    match record.status {
        RunStatus::Running => match journal.lock(&record.id) {
            Err(JournalError::Busy(_)) => "running",
            _ => "interrupted",
        },
        status => status.as_str(),
    }
}
