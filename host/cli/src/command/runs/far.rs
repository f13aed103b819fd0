//! `hotcell runs --server`: runs of a server.

use std::time::Duration;

use hotcell_runtime::{Entry, Fact, RevisionChoice, RunPage, RunRecord, RunSummary};
use serde_json::{Value, json};

use super::{Context, entries, list, print, read_input, show, watch};
use crate::arguments::{RunsCommand, Session, WhichRuns};
use crate::command::far_session::{FarSession, Order, all_entries, refuse};
use crate::command::on_threads;
use crate::exit::{Exit, Failure};
use crate::far::{self, Answered, Client, Refused, Run};
use crate::untrusted::one_line;

/// How long to wait before a stream that was cut off is taken up again.
const AGAIN: Duration = Duration::from_secs(1);

pub(super) fn perform(context: &Context, client: Client, command: RunsCommand) -> Result<Exit, Failure> {
    match command {
        RunsCommand::List { which, limit, after, json } => list(context, &client, which, limit, after, json),
        RunsCommand::Show { run, entries: true, .. } => {
            let told = on_threads(all_entries(&client, &run))??;
            entries::present(context, told.iter().filter_map(|told| Some((told.seq, far::entry(told)?))))?;
            Ok(Exit::Done)
        }
        RunsCommand::Show { run, json, .. } => {
            let (record, entries) = on_threads(whole(&client, &run))??;
            show::present(context, &record, &entries, json)?;
            Ok(Exit::Done)
        }
        RunsCommand::Watch { run } => watch(context, &client, run),
        RunsCommand::Resume { run, revision, session } => again(context, &client, run, &revision, session, "resume"),
        RunsCommand::Retry { run, revision, session } => again(context, &client, run, &revision, session, "retry"),
        RunsCommand::Answer { run, question, operator, text, resume, revision } => {
            own(&revision)?;
            let text = if text == "-" { read_input("the answer")? } else { text };
            let mut body = json!({ "answer": text });
            for (name, value) in [("question_id", question), ("operator_id", operator)] {
                if let Some(value) = value {
                    body[name] = value.into();
                }
            }
            answer(context, &client, run, &body, resume)
        }
        RunsCommand::Cancel { run } => {
            let cancelled: Run = on_threads(client.post(&["runs", &run, "cancel"], &json!({})))??;
            print(&format!("cancelled run {}", cancelled.run_id))?;
            Ok(Exit::Done)
        }
        RunsCommand::Fork(_) => Err(elsewhere("fork")),
        RunsCommand::Diff { .. } => Err(elsewhere("diff")),
        RunsCommand::Prune { .. } => Err(elsewhere("prune")),
        RunsCommand::Reexecute { .. } => Err(elsewhere("reexecute")),
        RunsCommand::Listen(_) => Err(elsewhere("listen")),
        RunsCommand::Pause { .. } => Err(elsewhere("pause")),
    }
}

/// A command that a server does not carry out.
fn elsewhere(command: &str) -> Failure {
    Failure::refused(format!("`hotcell runs {command}` cannot be used with `--server`"))
        .help("use it where the server's journal is, with `--journal FILE`")
}

/// Which revision a run goes on with, its server decides.
fn own(revision: &RevisionChoice) -> Result<(), Failure> {
    refuse(&[("--revision", !matches!(revision, RevisionChoice::Own))])
}

fn list(
    context: &Context,
    client: &Client,
    which: WhichRuns,
    limit: usize,
    after: Option<String>,
    as_json: bool,
) -> Result<Exit, Failure> {
    refuse(&[("--newer-than", which.newer_than.is_some()), ("--older-than", which.older_than.is_some())]).map_err(
        |failure| failure.help("leave it out; a server filters by `--status`, `--agent`, `--thread` and `--text`"),
    )?;
    let standing = which.statuses.iter().map(|status| status.as_str()).collect::<Vec<_>>().join(",");
    let limit = limit.to_string();
    let wanted = [
        ("standing", Some(standing).filter(|standing| !standing.is_empty())),
        ("agent_id", which.agent),
        ("thread_id", which.thread),
        ("text", which.text),
        ("limit", Some(limit)),
        ("after", after),
    ];
    let query: Vec<(&str, &str)> = wanted.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?))).collect();
    let page: far::RunPage = on_threads(client.get(&["runs"], &query))??;
    if page.runs.is_empty() && !as_json {
        context.screen.line("no matching runs");
        return Ok(Exit::Done);
    }
    let runs = page.runs.into_iter().map(summary).collect();
    list::present(context, &RunPage { runs, next: page.next }, as_json)
}

fn summary(run: Run) -> RunSummary {
    let agent = run.agent_id.unwrap_or_default();
    RunSummary {
        id: run.run_id.into(),
        graph: agent.clone(),
        source: agent,
        thread: run.thread_id,
        status: run.standing,
        created: run.created_at,
        updated: run.updated_at,
        outcome: run.outcome,
    }
}

/// A run with all of its entries.
async fn whole(client: &Client, run: &str) -> Result<(RunRecord, Vec<Entry>), Refused> {
    let found: Run = client.get(&["runs", run], &[]).await?;
    let entries: Vec<Entry> = all_entries(client, run).await?.iter().filter_map(far::entry).collect();
    Ok((far::record(&found, &entries), entries))
}

fn watch(context: &Context, client: &Client, run: String) -> Result<Exit, Failure> {
    let screen = &context.screen;
    let followed = on_threads(async {
        let (mut seen, mut entries, mut rests) = (0, Vec::new(), false);
        while !rests {
            let Some(mut stream) = client.follow(&run, seen).await? else { break };
            while let Some((name, data)) = stream.next().await? {
                rests = name == "end";
                if rests {
                    break;
                }
                if name == "error" {
                    let unread = |error: serde_json::Error| {
                        Refused::Broken(format!("what the server says cannot be read: {error}"))
                    };
                    return Err(Refused::Problem(serde_json::from_value(data).map_err(unread)?));
                }
                let Ok(told) = serde_json::from_value::<far::RunEntry>(data) else { continue };
                seen = told.seq;
                if let Some(entry) = far::entry(&told) {
                    watch::tell(screen, &entry);
                    entries.push(entry);
                }
            }
            if !rests {
                // It was cut off.
                tokio::time::sleep(AGAIN).await;
            }
        }
        let stands: Run = client.get(&["runs", &run], &[]).await?;
        Ok::<_, Refused>((far::record(&stands, &entries), entries))
    })?;
    let (record, entries) = followed?;
    watch::end(context, &record, &entries)
}

fn again(
    context: &Context,
    client: &Client,
    run: String,
    revision: &RevisionChoice,
    session: Session,
    how: &'static str,
) -> Result<Exit, Failure> {
    own(revision)?;
    FarSession::new(context, client, session)?.go(Order::GoOn { run, at: Some(how) })
}

fn answer(context: &Context, client: &Client, run: String, body: &Value, resume: bool) -> Result<Exit, Failure> {
    let answered = on_threads(async {
        let answered: Answered = client.post(&["runs", &run, "answers"], body).await?;
        let (_, entries) = whole(client, &run).await?;
        Ok::<_, Refused>((answered, entries))
    })?;
    let (answered, entries) = answered?;
    let node = entries.iter().find_map(|entry| match &entry.fact {
        Fact::Asked { question, .. } if question.id == answered.question_id => Some(question.node.clone()),
        _ => None,
    });
    let node = node.unwrap_or(answered.question_id);
    context.screen.line(&format!("answered the question of `{}`", one_line(&node, 200)));
    if !resume {
        context.screen.line("the run is still working and continues with the answer");
        return Ok(Exit::Done);
    }
    FarSession::new(context, client, Session::default())?.go(Order::GoOn { run, at: None })
}
