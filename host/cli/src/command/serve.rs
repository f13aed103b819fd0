//! `hotcell serve`: agents, runs and people behind one long-lived server.

use std::path::{Path, PathBuf};

use hotcell_graph::diagnostic::render;
use hotcell_runtime::{CancellationToken, state_folder};
use hotcell_serve::{ServeError, ServeSettings, Server};

use super::{Context, HostArguments};
use crate::arguments::Serve;
use crate::exit::{Exit, Failure};
use crate::narration::counted;
use crate::stop;
use crate::untrusted::one_line;

pub(super) fn perform(context: &Context, arguments: Serve) -> Result<Exit, Failure> {
    let screen = &context.screen;
    if let Some(missing) = arguments.paths.iter().find(|path| !path.exists()) {
        return Err(Failure::refused(format!("there is no `{}`", missing.display())));
    }
    let address = arguments.listen;
    if !address.ip().is_loopback() {
        return Err(ServeError::Open(address).into());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("threads cannot be started: {error}")))?;
    let failed = |error: std::io::Error| Failure::failed(format!("cannot listen at {address}: {error}"));
    let listener = runtime.block_on(tokio::net::TcpListener::bind(address)).map_err(failed)?;
    let url = format!("http://{}", listener.local_addr().map_err(failed)?);
    let host = context.host(HostArguments {
        plugins: arguments.plugins,
        model: arguments.model,
        trust: arguments.trust,
        starts_programs: true,
        quiet: true,
        ..HostArguments::default()
    })?;
    let settings = ServeSettings {
        folders: arguments.paths,
        hosts: arguments.hosts,
        max_runs: usize::try_from(arguments.max_runs).unwrap_or(usize::MAX),
        drain: arguments.drain,
        file: server_file(context)?,
        ..ServeSettings::default()
    };
    let shutdown = CancellationToken::new();
    let work = async {
        let server = Server::new(host, settings).await?;
        for (path, failure) in server.not_served() {
            screen.warning(&format!("`{}` is not served:", one_line(&path.display().to_string(), 300)));
            screen.line(render(&failure.diagnostics, screen.colour()).trim_end());
        }
        let agents = counted(server.agent_count() as u64, "agent");
        screen.line(&format!("{agents} at {url}; Ctrl-C ends it"));
        server.serve(listener, shutdown.clone()).await
    };
    let served = runtime.block_on(stop::on_signal(screen.clone(), shutdown.clone(), work));
    runtime.shutdown_background();
    served?;
    Ok(Exit::Done)
}

/// The file of what the server keeps beside the journal: `runs.serve.db` for `runs.db`.
fn server_file(context: &Context) -> Result<Option<PathBuf>, Failure> {
    Ok(match &context.global.journal {
        Some(path) if path == Path::new("memory") => None,
        Some(path) => Some(path.with_extension("serve.db")),
        None => Some(state_folder()?.join("runs.serve.db")),
    })
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        match error {
            ServeError::Journal(error) => error.into(),
            ServeError::Open(_) | ServeError::Agents(_) => Failure::refused(error.to_string()),
            other => Failure::failed(other.to_string()),
        }
    }
}
