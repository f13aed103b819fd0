//! `hotcell serve`: agents, runs and people behind one long-lived server.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use hotcell_graph::diagnostic::render;
use hotcell_runtime::{CancellationToken, state_folder};
use hotcell_serve::{Keys, ServeError, ServeSettings, Server};
use serde_json::json;

use super::{Context, HostArguments, print};
use crate::arguments::{Serve, ServeCommand, ServeKey};
use crate::events;
use crate::exit::{Exit, Failure};
use crate::narration::counted;
use crate::stop;
use crate::table::{Align, Table};
use crate::untrusted::one_line;
use crate::when::{exact, local};

pub(super) fn perform(context: &Context, arguments: Serve) -> Result<Exit, Failure> {
    if let Some(ServeCommand::Key(command)) = arguments.keys {
        return keys(context, command);
    }
    let screen = &context.screen;
    if let Some(missing) = arguments.paths.iter().find(|path| !path.exists()) {
        return Err(Failure::refused(format!("there is no `{}`", missing.display())));
    }
    let address = arguments.listen;
    let file = server_file(context)?;
    if !address.ip().is_loopback() {
        let has_keys = match &file {
            Some(file) => Keys::open(file)?.list()?.iter().any(|key| key.is_valid(SystemTime::now())),
            None => false,
        };
        if !has_keys {
            return Err(ServeError::Open(address).into());
        }
        if arguments.hosts.is_empty() {
            return Err(Failure::refused(format!("{address} can be reached under names that are not known"))
                .help("name them with `--host NAME`; requests to other names are refused"));
        }
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
        public_url: arguments.public_url,
        max_runs: usize::try_from(arguments.max_runs).unwrap_or(usize::MAX),
        drain: arguments.drain,
        requests_per_second: arguments.rate_limit,
        file,
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

/// Makes, lists and takes back API keys.
fn keys(context: &Context, command: ServeKey) -> Result<Exit, Failure> {
    let file = server_file(context)?
        .ok_or_else(|| Failure::refused("keys cannot be kept with `--journal memory`").help("name a file"))?;
    let keys = Keys::open(&file)?;
    let now = SystemTime::now();
    match command {
        ServeKey::Add { name, roles, expires } => {
            let token = keys.add(&name, &roles, expires.map(|time| now + time))?;
            context.screen.line("this key is shown once:");
            print(&token.reveal())?;
        }
        ServeKey::List { json } => {
            let mut table = Table::new(["ID", "NAME", "ROLES", "CREATED", "STATUS"].map(|head| (head, Align::Left)));
            for key in keys.list()? {
                let roles = key.roles.iter().map(|role| role.as_str()).collect::<Vec<_>>();
                let status = match (key.is_revoked, key.expires) {
                    (true, _) => "revoked".to_owned(),
                    (false, Some(expires)) if expires <= now => "expired".to_owned(),
                    (false, Some(expires)) => format!("until {}", local(expires)),
                    (false, None) => "valid".to_owned(),
                };
                if json {
                    events::line(&json!({
                        "id": key.id, "name": key.name, "roles": roles, "created": exact(key.created),
                        "expires": key.expires.and_then(exact), "revoked": key.is_revoked, "valid": key.is_valid(now),
                    }))?;
                }
                table.row([key.id, key.name, roles.join(", "), local(key.created), status]);
            }
            if !json {
                print(&table.lines(0, str::to_owned).join("\n"))?;
            }
        }
        ServeKey::Revoke { id } => {
            if !keys.revoke(&id)? {
                return Err(Failure::refused(format!("there is no key `{}` that counts", one_line(&id, 100)))
                    .help("`hotcell serve key list` shows the keys"));
            }
        }
    }
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
