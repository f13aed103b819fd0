//! `hotcell plugin replay`: a changed component over the recorded calls of runs.

use hotcell_runtime::{RunId, RunQuery};

use super::{Context, HostArguments};
use crate::arguments::PluginReplay;
use crate::command::again::Shown;
use crate::command::{on_threads, wait};
use crate::exit::{Exit, Failure};
use crate::untrusted::one_line;

/// How many runs are looked up at a time.
const PAGE: usize = 500;

pub(super) fn perform(context: &Context, arguments: &PluginReplay) -> Result<Exit, Failure> {
    let file = &arguments.component;
    let bytes = hotcell_files::read(file, hotcell_files::MAX_COMPONENT)
        .map_err(|error| Failure::refused(format!("cannot read `{}`: {error}", file.display())))?;
    let host = context.host(HostArguments::default())?;
    let loaded = host.load_for_replay(&file.to_string_lossy(), &bytes);
    context.screen.worked();
    let (cell, named) = loaded.map_err(|error| Failure::refused(one_line(&error.to_string(), 1_000)))?;
    let plugin = arguments.of.clone().or(named).ok_or_else(|| {
        Failure::refused(format!("`{}` does not say its name", file.display()))
            .help("say whose calls are meant with `--of`: a script by its path in its agent's folder")
    })?;
    let runs = runs(context, &host, arguments)?;
    let mut shown = Shown::new(context, arguments.json, false);
    let mut calls = 0;
    let work = async {
        for run in &runs {
            let tally = host.replay(&cell, &plugin, run, &mut |call| shown.call(run, &call)).await?;
            calls += tally.calls();
        }
        Ok::<(), hotcell_runtime::JournalError>(())
    };
    on_threads(work)??;
    context.screen.worked();
    if calls == 0 {
        let plugin = one_line(&plugin, 100);
        return Err(Failure::refused(format!("these runs have no recorded call of `{plugin}`"))
            .help("say whose calls are meant with `--of`, or name other runs"));
    }
    shown.end()
}

/// The runs that are meant, the oldest first.
fn runs(context: &Context, host: &hotcell_runtime::Host, arguments: &PluginReplay) -> Result<Vec<RunId>, Failure> {
    if !arguments.runs.is_empty() {
        return arguments.runs.iter().map(|run| Ok(wait(host.journal().find(run))?.id)).collect();
    }
    let mut query = RunQuery { graph: arguments.agent.clone(), limit: PAGE, ..RunQuery::default() };
    let mut runs = Vec::new();
    loop {
        let page = wait(host.journal().list(&query))?;
        runs.extend(page.runs.into_iter().map(|run| run.id));
        match page.next {
            Some(next) => query.after = Some(next),
            None => break,
        }
    }
    runs.reverse();
    if runs.is_empty() {
        let journal = context.global.journal.as_deref();
        let journal = journal.map_or("your journal".to_owned(), |journal| format!("`{}`", journal.display()));
        let of_agent = arguments.agent.as_ref().map(|agent| format!(" of `{}`", one_line(agent, 100)));
        let of_agent = of_agent.unwrap_or_default();
        return Err(Failure::refused(format!("there is no run{of_agent} in {journal}")));
    }
    Ok(runs)
}
