//! `hotcell serve`: agents, runs and people behind one long-lived server.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use hotcell_graph::diagnostic::render;
use hotcell_runtime::{CancellationToken, Host, LoadFailure, state_folder};
use hotcell_serve::{
    Groups, Keys, ServeError, ServeSettings, Server, ServerFile, ServerFileError, Site, Tenant, TenantName,
    WebhookSettings,
};
use serde_json::json;
use tokio::net::TcpListener;

use super::listening::Listening;
use super::{Context, HostArguments, print, telemetry};
use crate::arguments::{Serve, ServeCommand, ServeKey, ServeKeys};
use crate::events;
use crate::exit::{Exit, Failure};
use crate::narration::counted;
use crate::screen::Screen;
use crate::stop;
use crate::table::{Align, Table};
use crate::untrusted::one_line;
use crate::when::{exact, local};

/// Where a server listens where nothing says so.
const ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 18820);

pub(super) fn perform(context: &Context, arguments: Serve) -> Result<Exit, Failure> {
    if let Some(ServeCommand::Key(command)) = arguments.keys {
        return keys(context, command);
    }
    match &arguments.config {
        Some(file) => several(context, file, arguments.listen),
        None => one(context, arguments),
    }
}

/// Serves agents without tenants.
fn one(context: &Context, arguments: Serve) -> Result<Exit, Failure> {
    let screen = &context.screen;
    if let Some(missing) = arguments.paths.iter().find(|path| !path.exists()) {
        return Err(Failure::refused(format!("there is no `{}`", missing.display())));
    }
    let address = arguments.listen.unwrap_or(ADDRESS);
    let file = server_file(context)?;
    if !address.ip().is_loopback() {
        let has_keys = match &file {
            Some(file) => Keys::open(file)?.list()?.iter().any(|key| key.is_valid(SystemTime::now())),
            None => false,
        };
        if !has_keys {
            return Err(ServeError::Open(address).into());
        }
    }
    check_names(address, &arguments.hosts)?;
    let groups = Groups::of(arguments.groups).map_err(|error| Failure::refused(format!("`--group`: {error}")))?;
    let listening = Listening::at(address)?;
    let host = context.host(HostArguments { starts_programs: true, quiet: true, ..arguments.with.into() })?;
    let paths: Vec<String> = arguments.paths.iter().map(|path| format!("`{}`", path.display())).collect();
    let mut settings = ServeSettings {
        folders: arguments.paths,
        watching: arguments.watch,
        webhooks: WebhookSettings { all: arguments.webhook, servers: arguments.webhook_servers },
        hosts: arguments.hosts,
        cors_origins: arguments.cors_origins,
        public_url: arguments.public_url,
        max_runs: usize::try_from(arguments.max_runs).unwrap_or(usize::MAX),
        drain: arguments.drain,
        requests_per_second: arguments.rate_limit,
        groups,
        file,
        ..ServeSettings::default()
    };
    // What sends it works on the threads of the server.
    if let Some(telemetry) = listening.runtime.block_on(async { telemetry::of_environment() })? {
        settings.telemetry = telemetry;
    }
    let url = listening.url.clone();
    listening.serve(screen, async |listener, shutdown| {
        let server = Server::new(host, settings).await?;
        let mut is_empty = server.agent_count() == 0;
        for (path, failure) in server.not_served() {
            not_served(screen, &path, "", &failure);
            is_empty = false;
        }
        if is_empty {
            screen.warning(&format!("there are no agents in {}", one_line(&paths.join(", "), 500)));
        }
        let agents = counted(server.agent_count() as u64, "agent");
        screen.line(&format!("{agents} at {url}; Ctrl-C ends it"));
        server.serve(listener, shutdown).await
    })
}

/// Serves the tenants of a server file.
fn several(context: &Context, file: &Path, listen: Option<SocketAddr>) -> Result<Exit, Failure> {
    let screen = &context.screen;
    if context.global.journal.is_some() && std::env::var_os("HOTCELL_JOURNAL").is_none() {
        return Err(Failure::refused("`--journal` does not go with `--config`: each tenant has a journal of its own"));
    }
    let file = ServerFile::read(file)?;
    let address = listen.or(file.listen).unwrap_or(ADDRESS);
    check_names(address, &file.settings.hosts)?;
    let listening = Listening::at(address)?;
    let mut tenants: Vec<Tenant> = Vec::new();
    for setup in file.tenants {
        let options = setup.host_options();
        let host = match tenants.first() {
            None => Host::new(options)?,
            Some(first) => first.host.beside(options)?,
        };
        tenants.push(setup.tenant(host));
    }
    let mut settings = file.settings;
    if let Some(telemetry) = listening.runtime.block_on(async { telemetry::of_environment() })? {
        settings.telemetry = telemetry;
    }
    let url = listening.url.clone();
    listening.serve(screen, async |listener, shutdown| {
        let count = counted(tenants.len() as u64, "tenant");
        let site = Site::new(settings, tenants).await?;
        for (tenant, path, failure) in site.not_served() {
            not_served(screen, &path, &format!(" of tenant `{tenant}`"), &failure);
        }
        let agents = counted(site.agent_count() as u64, "agent");
        screen.line(&format!("{agents} of {count} at {url}; Ctrl-C ends it"));
        site.serve(listener, shutdown).await
    })
}

/// Refuses an address that others reach under names that nobody said.
fn check_names(address: SocketAddr, hosts: &[String]) -> Result<(), Failure> {
    if address.ip().is_loopback() || !hosts.is_empty() {
        return Ok(());
    }
    Err(Failure::refused(format!("{address} can be reached under names that are not known"))
        .help("name them with `--host NAME`, or `hosts` in the server file; requests to other names are refused"))
}

/// Tells why an agent is not served.
fn not_served(screen: &Screen, path: &Path, whose: &str, failure: &LoadFailure) {
    screen.warning(&format!("`{}`{whose} is not served:", one_line(&path.display().to_string(), 300)));
    screen.line(render(&failure.diagnostics, screen.colour()).trim_end());
}

impl Listening {
    /// Serves until a signal says that it is enough.
    fn serve(
        self,
        screen: &Arc<Screen>,
        work: impl AsyncFnOnce(TcpListener, CancellationToken) -> Result<(), ServeError>,
    ) -> Result<Exit, Failure> {
        let shutdown = CancellationToken::new();
        let work = work(self.listener, shutdown.clone());
        let served = self.runtime.block_on(stop::on_signal(screen.clone(), shutdown, work));
        self.runtime.shutdown_background();
        served?;
        Ok(Exit::Done)
    }
}

/// Makes, lists and takes back API keys.
fn keys(context: &Context, arguments: ServeKeys) -> Result<Exit, Failure> {
    let (file, tenants) = match &arguments.config {
        Some(config) => {
            let server = ServerFile::read(config)?;
            let tenants: Vec<TenantName> = server.tenants.iter().map(|tenant| tenant.name.clone()).collect();
            (server.keys().map(Path::to_owned), Some(tenants))
        }
        None => (server_file(context)?, None),
    };
    let file =
        file.ok_or_else(|| Failure::refused("keys cannot be kept with `--journal memory`").help("name a file"))?;
    let keys = Keys::open(&file)?;
    let now = SystemTime::now();
    match arguments.command {
        ServeKey::Add { name, roles, tenant, expires } => {
            check_tenant(tenant.as_ref(), tenants.as_deref())?;
            let token = keys.add(&name, tenant.as_ref(), &roles, expires.map(|time| now + time))?;
            context.screen.line("this key is shown once:");
            print(&token.reveal())?;
        }
        ServeKey::List { json } => {
            let heads = ["ID", "TENANT", "NAME", "ROLES", "CREATED", "STATUS"];
            let mut table = Table::new(heads.map(|head| (head, Align::Left)));
            for key in keys.list()? {
                let roles = key.roles.iter().map(|role| role.as_str()).collect::<Vec<_>>();
                let status = match (key.is_revoked, key.expires) {
                    (true, _) => "revoked".to_owned(),
                    (false, Some(expires)) if expires <= now => "expired".to_owned(),
                    (false, Some(expires)) => format!("until {}", local(expires)),
                    (false, None) => "valid".to_owned(),
                };
                let tenant = key.tenant.as_ref().map(TenantName::as_str);
                if json {
                    events::line(&json!({
                        "id": key.id, "name": key.name, "tenant": tenant, "roles": roles, "created": exact(key.created),
                        "expires": key.expires.and_then(exact), "revoked": key.is_revoked, "valid": key.is_valid(now),
                    }))?;
                }
                let tenant = tenant.unwrap_or_default().to_owned();
                table.row([key.id, tenant, key.name, roles.join(", "), local(key.created), status]);
            }
            if !json {
                print(&table.lines(0, str::to_owned).join("\n"))?;
            }
        }
        ServeKey::Revoke { id } => {
            if !keys.revoke(&id)? {
                return Err(Failure::refused(format!("there is no key `{}` that is valid", one_line(&id, 100)))
                    .help("`hotcell serve key list` shows the keys"));
            }
        }
    }
    Ok(Exit::Done)
}

/// Refuses a key of a tenant that there is not, and one of nobody where there are tenants.
fn check_tenant(tenant: Option<&TenantName>, tenants: Option<&[TenantName]>) -> Result<(), Failure> {
    let listed = |tenants: &[TenantName]| tenants.iter().map(TenantName::as_str).collect::<Vec<_>>().join("`, `");
    match (tenant, tenants) {
        (None, None) => Ok(()),
        (Some(tenant), Some(tenants)) if tenants.contains(tenant) => Ok(()),
        (Some(tenant), Some(tenants)) => {
            Err(Failure::refused(format!("the server file has no tenant `{tenant}`; it has `{}`", listed(tenants))))
        }
        (None, Some(tenants)) => Err(Failure::refused("a key of a server with tenants belongs to one of them")
            .help(format!("say which with `--tenant`: `{}`", listed(tenants)))),
        (Some(_), None) => {
            Err(Failure::refused("without a server file there are no tenants").help("name one with `--config FILE`"))
        }
    }
}

/// The file of what the server keeps beside the journal: `runs.serve.db` for `runs.db`.
fn server_file(context: &Context) -> Result<Option<PathBuf>, Failure> {
    Ok(match &context.global.journal {
        Some(path) if path == Path::new("memory") => None,
        Some(path) => Some(path.with_extension("serve.db")),
        None => Some(state_folder()?.join("runs.serve.db")),
    })
}

impl From<ServerFileError> for Failure {
    fn from(error: ServerFileError) -> Self {
        Failure::refused(error.to_string())
    }
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        match error {
            ServeError::Journal(error) => error.into(),
            ServeError::Open(_)
            | ServeError::Agents(_)
            | ServeError::Tenants(_)
            | ServeError::Oidc(_)
            | ServeError::Webhook(_) => Failure::refused(error.to_string()),
            other => Failure::failed(other.to_string()),
        }
    }
}
