//! `hotcell runs`: what the journal knows, and going on with it.

mod diff;
mod entries;
mod far;
mod fork;
mod list;
mod listen;
mod reexecute;
mod show;
mod watch;

use std::time::SystemTime;

use hotcell_runtime::{RevisionChoice, RunQuery, RunStatus, UserKey};

use super::conclude::describe_answered;
use super::drive::Drive;
use super::given::read_input;
use super::{Context, HostArguments, print, wait};
use crate::arguments::{Runs, RunsCommand, Session, WhichRuns};
use crate::command::origin;
use crate::exit::{Exit, Failure};
use crate::far::Client;
use crate::narration::counted;

pub(super) fn perform(context: &Context, Runs { far, command }: Runs) -> Result<Exit, Failure> {
    if let Some(client) = Client::of(&far, &context.screen)? {
        return far::perform(&context.for_server(&client), client, command);
    }
    match command {
        RunsCommand::List { which, limit, after, json } => {
            list::perform(context, &RunQuery { limit, after, ..query(which) }, json)
        }
        RunsCommand::Prune { which } => prune(context, which),
        RunsCommand::Show { run, entries: true, .. } => entries::perform(context, &run),
        RunsCommand::Show { run, json, .. } => show::perform(context, &run, json),
        RunsCommand::Fork(arguments) => fork::perform(context, arguments),
        RunsCommand::Diff { a, b, json } => diff::perform(context, &a, &b, json),
        RunsCommand::Reexecute { run, place, json } => reexecute::perform(context, &run, place, json),
        RunsCommand::Watch { run } => watch::perform(context, &run),
        RunsCommand::Resume { run, revision, session } => resume(context, run, revision, session),
        RunsCommand::Retry { run, revision, session } => retry(context, run, revision, session),
        RunsCommand::Answer { operator: Some(_), .. } => {
            Err(Failure::refused("`--operator` needs `--server`: whoever has the journal may answer every question")
                .help("leave `--operator` out"))
        }
        RunsCommand::Answer { run, question, operator: None, text, resume, revision } => {
            answer(context, run, question.as_deref(), &text, resume.then_some(revision))
        }
        RunsCommand::Listen(arguments) => listen::perform(context, arguments),
        RunsCommand::Pause { run } => pause(context, &run),
        RunsCommand::Cancel { run } => cancel(context, &run),
    }
}

fn resume(context: &Context, run: String, revision: RevisionChoice, session: Session) -> Result<Exit, Failure> {
    let session = as_it_was_started(context, &run, session)?;
    let drive = Drive::new(context, session)?;
    drive.go(drive.is_strict(), |host, session| async move { host.resume_with(&run, &revision, session).await })
}

fn retry(context: &Context, run: String, revision: RevisionChoice, session: Session) -> Result<Exit, Failure> {
    let session = as_it_was_started(context, &run, session)?;
    let drive = Drive::new(context, session)?;
    drive.go(drive.is_strict(), |host, session| async move { host.retry_with(&run, &revision, session).await })
}

/// The options that a run was started with, where the command line does not say otherwise.
fn as_it_was_started(context: &Context, run: &str, session: Session) -> Result<Session, Failure> {
    let record = wait(context.host(HostArguments::default())?.journal().find(run))?;
    Ok(origin::restored(&record, session, &UserKey::of_user()))
}

fn answer(
    context: &Context,
    run: String,
    question: Option<&str>,
    text: &str,
    go_on: Option<RevisionChoice>,
) -> Result<Exit, Failure> {
    let text = if text == "-" { read_input("the answer")? } else { text.to_owned() };
    let host = context.host(HostArguments::default())?;
    let answered = wait(host.answer_as_operator(&run, question, &text))?;
    context.screen.line(&describe_answered(&answered));
    if wait(host.journal().find(&run))?.status == RunStatus::Running {
        context.screen.line("the run is still working and continues with the answer");
        return Ok(Exit::Done);
    }
    if let Some(revision) = go_on {
        return resume(context, run, revision, Session::default());
    }
    context.screen.line(&format!("resume it with: {}", context.runs_command("resume", &run, "")));
    Ok(Exit::Done)
}

fn pause(context: &Context, run: &str) -> Result<Exit, Failure> {
    let record = wait(context.host(HostArguments::default())?.pause(run))?;
    match record.status {
        RunStatus::Paused => print(&format!("paused run {}", record.id))?,
        _ => print(&format!("run {} pauses when its current nodes are done", record.id))?,
    }
    context.screen.line(&format!("resume it with: {}", context.runs_command("resume", record.id.as_str(), "")));
    Ok(Exit::Done)
}

fn cancel(context: &Context, run: &str) -> Result<Exit, Failure> {
    let record = wait(context.host(HostArguments::default())?.cancel(run))?;
    print(&format!("cancelled run {}", record.id))?;
    Ok(Exit::Done)
}

fn query(which: WhichRuns) -> RunQuery {
    let ago = |age| SystemTime::now().checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH);
    RunQuery {
        statuses: which.statuses,
        graph: which.agent,
        thread: which.thread,
        since: which.newer_than.map(ago),
        before: which.older_than.map(ago),
        text: which.text,
        ..RunQuery::default()
    }
}

fn prune(context: &Context, which: WhichRuns) -> Result<Exit, Failure> {
    let query = query(which);
    let everything = query.statuses.is_empty()
        && [&query.graph, &query.thread, &query.text].into_iter().all(Option::is_none)
        && query.since.is_none()
        && query.before.is_none();
    if everything {
        return Err(Failure::refused("say which runs to remove")
            .help("for example `hotcell runs prune --older-than 30d --status completed`"));
    }
    if let Some(status) = query.statuses.iter().find(|status| !status.is_final()) {
        return Err(Failure::refused(format!("runs that are {status} are not removed"))
            .help("cancel them first, or name another status"));
    }
    let host = context.host(HostArguments::default())?;
    let pruned = wait(host.journal().prune(&query))?;
    let bytes = indicatif::HumanBytes(pruned.bytes);
    print(&format!("removed {}; the journal is {bytes} smaller", counted(pruned.runs, "run")))?;
    Ok(Exit::Done)
}
