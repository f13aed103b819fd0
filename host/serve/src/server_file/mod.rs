//! The server file: how a server is set up that several tenants share, and what belongs to each of them.

mod oidc;
mod text;
mod variables;

use std::net::SocketAddr;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use hotcell_budget::{Cost, Fuel};
use hotcell_files::MAX_TEXT;
use hotcell_runtime::{Environment, Host, HostOptions, JournalChoice, StoresChoice};
use thiserror::Error;
use url::Url;

use self::text::{ServerText, TenantText};
use crate::access::oidc::{Oidc, OidcSettings, TenantOf};
use crate::agents::sent::place_of;
use crate::groups::{Groups, NotGroups};
use crate::quota::{MonthBudget, Quota};
use crate::site::Tenant;
use crate::state::ServeSettings;
use crate::tenant_name::{NotAName, TenantName};
use crate::webhooks::WebhookSettings;

/// The largest weight of a tenant.
const MOST_WEIGHT: u32 = 1_000;
/// The variable with the default model of a tenant.
const MODEL: &str = "HOTCELL_MODEL";

/// A server file that was read.
#[derive(Clone, Debug)]
pub struct ServerFile {
    /// Where the server listens, if the file says so
    pub listen: Option<SocketAddr>,
    /// What all tenants have in common, with the file of the server's keys
    pub settings: ServeSettings,
    /// The tenants, in the order of their names
    pub tenants: Vec<TenantSetup>,
}

/// What a server file says of a tenant.
#[derive(Clone, Debug)]
pub struct TenantSetup {
    /// What it is called
    pub name: TenantName,
    /// Its folders with agents, or files of agents
    pub folders: Vec<PathBuf>,
    /// Its folders with plugins, beside those of its agents
    pub plugins: Vec<PathBuf>,
    /// The folder with its journal, its data of plugins and its server's file
    pub state: PathBuf,
    /// Its variables, and no others
    pub environment: Environment,
    /// Whether the grants in its agents' `hotcell.toml` are trusted
    pub trust: bool,
    /// Whether MCP servers of its agents that are programs may be started
    pub programs: bool,
    /// How many of its runs are worked on at a time
    pub max_runs: usize,
    /// The weight of its share of the cells
    pub weight: u32,
    /// What it may use
    pub quota: Quota,
    /// Where others are told what becomes of its runs
    pub webhooks: WebhookSettings,
    /// The groups of its people
    pub groups: Groups,
}

/// Why a server file cannot be used.
#[derive(Debug, Error)]
#[error("the server file `{}` cannot be used: {cause}", file.display())]
pub struct ServerFileError {
    file: PathBuf,
    cause: Cause,
}

#[derive(Debug, Error)]
enum Cause {
    #[error("{0}")]
    Read(#[from] std::io::Error),
    #[error("{}", .0.to_string().trim_end())]
    Syntax(#[from] toml::de::Error),
    #[error("{0}")]
    Wrong(String),
}

impl ServerFile {
    /// Reads a server file. Its paths start at its folder; what it does not say is as in [`ServeSettings::default`].
    ///
    /// # Errors
    /// When it cannot be read, says something that is not known, or something that cannot be.
    pub fn read(file: &Path) -> Result<Self, ServerFileError> {
        ServerFile::read_with(file, &Environment::process())
    }

    /// Reads a server file, with these variables of the server for tenants that inherit some.
    ///
    /// # Errors
    /// As [`ServerFile::read`].
    pub fn read_with(file: &Path, server: &Environment) -> Result<Self, ServerFileError> {
        let read = || -> Result<Self, Cause> {
            let file = std::path::absolute(file)?;
            let text: ServerText = toml::from_str(&hotcell_files::read_text(&file, MAX_TEXT)?)?;
            let folder = file.parent().unwrap_or(Path::new("/"));
            server_of(text, folder, server)
        };
        read().map_err(|cause| ServerFileError { file: file.to_owned(), cause })
    }

    /// The file with the API keys of a server file's tenants.
    pub fn keys(&self) -> Option<&Path> {
        self.settings.file.as_deref()
    }
}

impl TenantSetup {
    /// The host of the tenant: it has these variables, plugins and files, and nothing of whoever runs the server but the list of
    /// trusted folders, whose signatures count, and the prices of models.
    pub fn host_options(&self) -> HostOptions {
        // Beside its own folders agents lie there that are sent to it; the folder need not be there yet.
        let within = self.own_folders().into_iter().chain([real(&place_of(&self.file()))]);
        HostOptions {
            journal: JournalChoice::File(self.state.join("runs.db")),
            stores: StoresChoice::File(self.state.join("stores.db")),
            plugins: self.plugins.clone(),
            user_plugins: Some(PathBuf::new()),
            servers: Some(PathBuf::new()),
            trust_named: self.trust,
            starts_programs: self.programs,
            environment: self.environment.clone(),
            share: Some(self.weight),
            within: Some(within.collect()),
            ..HostOptions::default()
        }
    }

    /// The file of what is kept beside its journal.
    fn file(&self) -> PathBuf {
        self.state.join("serve.db")
    }

    /// The folders of its agents and plugins.
    fn own_folders(&self) -> Vec<PathBuf> {
        let agents = self.folders.iter().map(|path| match path.is_file() {
            true => path.parent().unwrap_or(path).to_owned(),
            false => path.clone(),
        });
        agents.chain(self.plugins.iter().cloned()).collect()
    }

    /// The tenant, with the host that was made for it.
    pub fn tenant(self, host: Host) -> Tenant {
        let file = Some(self.file());
        let TenantSetup { name, folders, max_runs, quota, webhooks, groups, .. } = self;
        Tenant { name, host, folders, file, max_runs, quota, webhooks, groups }
    }
}

fn server_of(text: ServerText, folder: &Path, server: &Environment) -> Result<ServerFile, Cause> {
    let state = folder.join(&text.state);
    if text.tenants.is_empty() {
        return Err(Cause::Wrong("it has no tenants; a section `[tenants.NAME]` makes one".to_owned()));
    }
    let common = ServeSettings::default();
    let mut tenants = Vec::new();
    for (name, tenant) in &text.tenants {
        let wrong = |what: String| Cause::Wrong(format!("`[tenants.{name}]`: {what}"));
        let name: TenantName = name.parse().map_err(|error: NotAName| wrong(error.to_string()))?;
        let setup = tenant_of(name, tenant, folder, &state, server).map_err(wrong)?;
        tenants.push(setup);
    }
    apart(&tenants, &state)?;
    let issuer = |oidc: text::OidcText| {
        let issuer = oidc.issuer.clone();
        oidc::settings_of(oidc, folder).map_err(|what| Cause::Wrong(format!("`[[oidc]]` of `{issuer}`: {what}")))
    };
    let oidc: Vec<OidcSettings> = text.oidc.into_iter().map(issuer).collect::<Result<_, _>>()?;
    // What is wrong with it is told here, and not when a server begins.
    Oidc::new(&oidc).map_err(|error| Cause::Wrong(format!("`[[oidc]]`: {error}")))?;
    check_tenants(&oidc, &tenants)?;
    if let Some(origin) = text.cors_origins.iter().find(|origin| !is_origin(origin)) {
        return Err(Cause::Wrong(format!(
            "`cors_origins`: `{origin}` is not an origin of a web page, such as `https://app.example.com`"
        )));
    }
    let settings = ServeSettings {
        cors_origins: text.cors_origins,
        oidc,
        hosts: text.hosts,
        public_url: text.public_url,
        drain: text.drain_seconds.map_or(common.drain, Duration::from_secs),
        requests_per_second: text.requests_per_second.unwrap_or(common.requests_per_second),
        file: Some(state.join("server.db")),
        ..common
    };
    Ok(ServerFile { listen: text.listen, settings, tenants })
}

fn tenant_of(
    name: TenantName,
    text: &TenantText,
    folder: &Path,
    state: &Path,
    server: &Environment,
) -> Result<TenantSetup, String> {
    let paths = |all: &[PathBuf]| all.iter().map(|path| folder.join(path)).collect::<Vec<_>>();
    let folders = paths(&text.agents);
    if let Some(missing) = folders.iter().find(|path| !path.exists()) {
        return Err(format!("there is no `{}` (`agents`)", missing.display()));
    }
    let mut variables = Vec::new();
    if let Some(file) = &text.env_file {
        let file = folder.join(file);
        let read = hotcell_files::read_text(&file, MAX_TEXT).map_err(|error| error.to_string());
        let read = read.and_then(|text| variables::read(&text));
        variables = read.map_err(|error| format!("`env_file` `{}` cannot be used: {error}", file.display()))?;
    }
    for inherited in &text.inherit {
        let value = server.get(inherited).ok_or_else(|| format!("the server has no variable `{inherited}`"))?;
        variables.push((inherited.clone(), value));
    }
    // What is written here counts most.
    variables.extend(text.env.clone());
    variables.extend(text.model.clone().map(|model| (MODEL.to_owned(), model)));
    let own = state.join("tenants").join(name.as_str());
    let positive = |key: &str, number: Option<u32>| match number {
        Some(0) => Err(format!("`{key}` has to be 1 or more; leave it out for no limit")),
        number => Ok(number),
    };
    Ok(TenantSetup {
        folders,
        plugins: paths(&text.plugins),
        state: own.clone(),
        environment: Environment::of(variables),
        trust: text.trust,
        programs: text.programs,
        max_runs: match text.max_runs {
            Some(0) => return Err("`max_runs` has to be 1 or more".to_owned()),
            Some(runs) => usize::try_from(runs).unwrap_or(usize::MAX),
            None => ServeSettings::default().max_runs,
        },
        quota: Quota {
            requests_per_second: positive("requests_per_second", text.requests_per_second)?,
            runs_per_minute: positive("runs_per_minute", text.runs_per_minute)?,
            stored: text.stored_bytes.map(|bytes| (bytes, own.clone())),
            month: MonthBudget {
                cost: match text.month.usd {
                    Some(usd) if !(usd.is_finite() && usd >= 0.0) => {
                        return Err("`month.usd` is not a valid amount".to_owned());
                    }
                    usd => usd.map(Cost::from_usd),
                },
                tokens: text.month.tokens,
                fuel: text.month.fuel.map(Fuel),
            },
        },
        webhooks: WebhookSettings { all: text.webhook.clone(), servers: text.webhook_servers.clone() },
        groups: Groups::of(text.groups.clone()).map_err(|error: NotGroups| format!("`groups`: {error}"))?,
        weight: match text.weight {
            Some(weight @ 1..=MOST_WEIGHT) => weight,
            Some(_) => return Err(format!("`weight` has to be 1 to {MOST_WEIGHT}")),
            None => 1,
        },
        name,
    })
}

/// Refuses tokens of tenants that there are not: a name that is written wrong would otherwise show itself much later.
fn check_tenants(oidc: &[OidcSettings], tenants: &[TenantSetup]) -> Result<(), Cause> {
    let named = oidc.iter().flat_map(|settings| match &settings.tenant {
        TenantOf::Only(only) => vec![only],
        TenantOf::Claim { values, .. } => values.values().collect(),
    });
    for name in named {
        if !tenants.iter().any(|tenant| tenant.name == *name) {
            return Err(Cause::Wrong(format!("`[[oidc]]`: there is no tenant `{name}`")));
        }
    }
    Ok(())
}

/// Whether a text is an origin of web pages, as browsers send it: `https://app.example.com`.
pub fn is_origin(text: &str) -> bool {
    // A star stands for nothing: what is listed is compared as it is.
    !text.contains('*')
        && text
            .parse::<Url>()
            .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.origin().ascii_serialization() == text)
}

/// A path without links, and of what is not there yet without steps back.
fn real(path: &Path) -> PathBuf {
    let there = path.ancestors().find_map(|above| Some((above.canonicalize().ok()?, path.strip_prefix(above).ok()?)));
    let Some((mut real, rest)) = there else { return path.to_owned() };
    for part in rest.components() {
        match part {
            Component::ParentDir => {
                real.pop();
            }
            part => real.push(part),
        }
    }
    real
}

/// Refuses folders that several tenants, or a tenant and the server, would share: files would be a way from one to the other.
fn apart(tenants: &[TenantSetup], state: &Path) -> Result<(), Cause> {
    let mut known: Vec<(String, PathBuf)> = vec![("the server's `state`".to_owned(), real(state))];
    for tenant in tenants {
        let own: Vec<PathBuf> = tenant.own_folders().iter().map(|path| real(path)).collect();
        for path in &own {
            let shared = known.iter().find(|(_, other)| path.starts_with(other) || other.starts_with(path));
            if let Some((whose, other)) = shared {
                return Err(Cause::Wrong(format!(
                    "`{}` of tenant `{}` and `{}` of {whose} are in one another; each needs folders of its own",
                    path.display(),
                    tenant.name,
                    other.display()
                )));
            }
        }
        known.extend(own.into_iter().map(|path| (format!("tenant `{}`", tenant.name), path)));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
