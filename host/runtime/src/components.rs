//! Components that come with hotcell and that the file of an agent sets up itself: what they may reach is what the file
//! names, as far as the file may reach it (`[grants.agent]`).
//!
//! A plugin that is installed waits for the operator's decision. A component of this kind needs none of its own, because it can do
//! nothing that the file could not do: each call gets the servers that the file names and the operator granted to the file, the
//! secrets that the file hands it, towards those servers only and as placeholders, and a store of its own.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use hotcell_budget::{Budget, BudgetScope};
use hotcell_cells::{Cell, Cells, Grants, HttpGrant, HttpGrantError, HttpRequested, SecretGrant, Secrets, Terms};
use hotcell_dialects::DeclaredComponent;
use hotcell_engine::{CallReport, CallSite, ToolCall};
use hotcell_plugins::{LimitError, Owner, Plugin, PluginError, Settings, StoresError};
use thiserror::Error;

use crate::address::{AddressError, parse_address};
use crate::context::LoadContext;
use crate::permissions::{FILE_GRANTS, Permissions};
use crate::plugin_registry::{ComponentUnusable, NotPrepared};
use crate::recordings;
use crate::settle::{into_report, log_of};
use crate::withholding::withhold;

/// The setting of a component with the address at which its service is, where that is not the usual one.
const BASE_URL: &str = "base_url";
/// How long one call may take at least.
const PATIENCE: Duration = Duration::from_secs(30);

/// The components that a file has set up, by their names.
#[derive(Clone)]
pub(crate) struct AgentComponents {
    cells: Cells,
    permissions: Arc<Permissions>,
    declared: Arc<Mutex<BTreeMap<String, Arc<SetUp>>>>,
}

/// A component as a file has set it up.
struct SetUp {
    /// Who used what for it
    name: String,
    carried: Arc<Carried>,
    /// All but what is granted, in the name of the file: what is denied is to be granted to that
    terms: Terms,
    /// What it may have at most
    bound: Grants,
    /// What was granted to the file
    of_file: Arc<Grants>,
    held_back: Arc<Grants>,
    cell: OnceLock<Result<Cell, ComponentUnusable>>,
}

/// Why a component that comes with hotcell cannot be set up as a file describes it.
#[derive(Debug, Error)]
pub(crate) enum SetUpError {
    /// Those that come with hotcell cannot be unpacked
    #[error(transparent)]
    Unpack(#[from] io::Error),
    /// None of that name comes with hotcell
    #[error("no component `{0}` comes with hotcell")]
    Missing(String),
    /// It does not say what it offers
    #[error(transparent)]
    Plugin(#[from] PluginError),
    /// What stands for a server is no address of one
    #[error(transparent)]
    Address(#[from] AddressError),
    /// What stands for a server cannot be granted
    #[error(transparent)]
    Server(#[from] HttpGrantError),
    /// It cannot have a store
    #[error(transparent)]
    Stores(#[from] StoresError),
    /// What the settings say of its limits is not of its form
    #[error(transparent)]
    Limit(#[from] LimitError),
}

/// A component that hotcell carries.
pub(crate) struct Carried {
    plugin: Plugin,
    component: Arc<[u8]>,
}

impl Carried {
    /// The one of that name. Each is looked at once in a process.
    fn find(name: &str) -> Result<Arc<Self>, SetUpError> {
        static KNOWN: OnceLock<Mutex<HashMap<String, Arc<Carried>>>> = OnceLock::new();
        let mut known = KNOWN.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(carried) = known.get(name) {
            return Ok(carried.clone());
        }
        let shipped = hotcell_interpreters::plugins()?;
        let found = shipped.into_iter().find(|one| one.name == name);
        let component = found.ok_or_else(|| SetUpError::Missing(name.to_owned()))?.component;
        let carried = Arc::new(Carried { plugin: Plugin::of_bytes(&component)?, component: component.into() });
        known.insert(name.to_owned(), carried.clone());
        Ok(carried)
    }

    /// The component with this digest, if hotcell carries it.
    pub(crate) fn of_digest(digest: &str) -> Option<Vec<u8>> {
        let shipped = hotcell_interpreters::plugins().ok()?;
        shipped.into_iter().find(|one| hotcell_cells::digest(&one.component) == digest).map(|one| one.component)
    }
}

/// Where a component is set up: whose settings count, and whose store it is.
pub(crate) struct Place<'a> {
    pub(crate) context: &'a LoadContext,
    pub(crate) settings: &'a Settings,
    /// The folder whose settings those are
    pub(crate) project: &'a Path,
}

impl AgentComponents {
    pub(crate) fn new(cells: Cells, permissions: Arc<Permissions>) -> Self {
        AgentComponents { cells, permissions, declared: Arc::default() }
    }

    /// Sets a component up as a file describes it. The error says why that cannot be.
    pub(crate) fn declare(&self, component: &DeclaredComponent, place: &Place<'_>) -> Result<(), SetUpError> {
        let Place { context, settings, project } = place;
        let carried = Carried::find(&component.component)?;
        let config = settings.config(&component.component);
        let bound = bound(component, &carried, config.get(BASE_URL).map(String::as_str))?;
        let full_name = format!("{}{}", DeclaredComponent::PREFIX, component.name);
        let stores = context.stores().and_then(|stores| Ok(stores.of(Owner::of_project(project, &full_name)?)));
        let wall_clock = component.timeout.unwrap_or_default().max(PATIENCE);
        let budget = settings.budget(&component.component, Budget { wall_clock, ..Budget::default() })?;
        let terms = Terms {
            config,
            secrets: Secrets::new(component.secrets.iter().cloned()),
            kv: Some(stores?),
            budget,
            listener: Some(log_of(&full_name)),
            record: settings.record(&component.component),
            ..Terms::new(FILE_GRANTS)
        };
        let set_up = SetUp {
            name: full_name,
            carried,
            terms,
            bound,
            of_file: settings.grants_of_file(FILE_GRANTS),
            held_back: settings.held_back(FILE_GRANTS),
            cell: OnceLock::new(),
        };
        let mut declared = self.declared.lock().unwrap_or_else(PoisonError::into_inner);
        declared.insert(component.name.clone(), Arc::new(set_up));
        Ok(())
    }

    /// Whether a name is that of a tool of such a component.
    pub(crate) fn is_tool(name: &str) -> bool {
        split(name).is_some()
    }

    /// Calls a tool by its full name.
    pub(crate) async fn call(&self, call: &ToolCall<'_>) -> CallReport {
        let found = split(call.name).and_then(|(component, tool)| {
            let declared = self.declared.lock().unwrap_or_else(PoisonError::into_inner);
            Some((declared.get(component)?.clone(), tool))
        });
        let Some((set_up, tool)) = found else { return CallReport::failed(format!("there is no `{}`", call.name)) };
        let (cell, terms) = match self.prepare(&set_up, &call.budget_scope, &call.site) {
            Ok(prepared) => prepared,
            Err(error) => return CallReport::failed(error.to_string()),
        };
        let (arguments, answers) = (call.arguments.to_owned(), call.answers.to_vec());
        let of_cell = hotcell_cells::ToolCall { tool: tool.to_owned(), arguments, answers, terms };
        into_report(&set_up.name, self.cells.call_tool(&cell, of_cell).await, &call.budget_scope, &call.site)
    }

    /// The compiled component and the terms of one call.
    fn prepare(&self, set_up: &SetUp, budget: &BudgetScope, site: &CallSite) -> Result<(Cell, Terms), NotPrepared> {
        let load = || self.cells.load(&set_up.name, &set_up.carried.component).map_err(ComponentUnusable::from);
        let cell = set_up.cell.get_or_init(load).clone()?;
        let of_file = self.permissions.grants(FILE_GRANTS, &set_up.of_file)?;
        let mut terms = recordings::terms_at(&set_up.terms, site);
        terms.grants = Arc::new(within(&set_up.bound, &of_file));
        terms.held_back = Arc::new(within(&set_up.bound, &set_up.held_back));
        withhold(&mut terms, site);
        terms.budget = budget.clamp(&terms.budget)?;
        Ok((cell, terms))
    }
}

/// The component and the tool of a full name.
fn split(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix(DeclaredComponent::PREFIX)?.rsplit_once('/')
}

/// What of `bound` counts where the file has these grants. Only servers are the file's to give away.
fn within(bound: &Grants, of_file: &Grants) -> Grants {
    let servers = |grants: &Grants| Grants { http: grants.http.clone(), ..Grants::default() };
    Grants { http: servers(bound).meet(&servers(of_file)).http, ..bound.clone() }
}

/// What a component may have at most: the servers that the file names, or its own where the file names none, secrets towards those
/// and no others, and its store.
fn bound(component: &DeclaredComponent, carried: &Carried, base_url: Option<&str>) -> Result<Grants, SetUpError> {
    let mut http: Vec<HttpGrant> = Vec::new();
    for address in component.servers.iter().map(String::as_str).chain(base_url.filter(|_| component.servers.is_empty()))
    {
        http.push(server(address)?);
    }
    if http.is_empty() {
        let own = carried.plugin.description.capabilities.http.iter().filter_map(|requested| match requested {
            HttpRequested::Server(server) => Some(server.clone()),
            HttpRequested::Any(_) => None,
        });
        http.extend(own);
    }
    for host in &component.further_hosts {
        http.push(format!("https://{host}").parse()?);
    }
    for server in &mut http {
        // Whether names may lead into private networks is the operator's to say.
        server.private = true;
    }
    let asks = &carried.plugin.description.capabilities;
    let secret = component.secrets.iter().map(|(name, _)| SecretGrant { name: name.clone(), servers: http.clone() });
    Ok(Grants {
        secret: secret.collect(),
        kv: asks.kv,
        clock: asks.clock,
        random: asks.random,
        http,
        ..Grants::default()
    })
}

/// The server of an address.
fn server(address: &str) -> Result<HttpGrant, SetUpError> {
    let url = parse_address(address)?;
    let origin = url.origin();
    if !origin.is_tuple() || !matches!(url.scheme(), "http" | "https") {
        return Err(AddressError::NoWebServer { address: address.to_owned() }.into());
    }
    Ok(origin.ascii_serialization().parse()?)
}

#[cfg(test)]
mod tests {
    use hotcell_cells::Grants;

    use super::{server, within};

    fn grants(text: &str) -> Grants {
        toml::from_str(text).unwrap_or_else(|error| panic!("`{text}`: {error}"))
    }

    #[test]
    fn addresses_stand_for_their_servers() {
        for (address, expected) in [
            ("https://a.example/x/y?q=1", Ok("https://a.example")),
            ("http://127.0.0.1:8080/a", Ok("http://127.0.0.1:8080")),
            ("https://user:pass@a.example/", Ok("https://a.example")),
            ("ftp://a.example", Err("not the address of a web server")),
            ("a.example", Err("not a valid address")),
        ] {
            match (server(address).map(|grant| grant.to_string()), expected) {
                (Ok(grant), Ok(expected)) => assert_eq!(grant, expected, "{address}"),
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{address}: {error}"),
                (got, _) => panic!("{address}: {got:?}"),
            }
        }
    }

    #[test]
    fn a_component_reaches_what_the_file_names_and_the_operator_granted_to_the_file() {
        let bound = grants(
            "kv = true\nhttp = ['https://a.example', 'https://b.example']\n\
             secret = [{ name = 'key', servers = ['https://a.example'] }]",
        );
        let of_file = grants("http = ['https://a.example', 'https://c.example']\nenv = ['HOME']\nllm = true");
        let expected = grants(
            "kv = true\nhttp = ['https://a.example']\nsecret = [{ name = 'key', servers = ['https://a.example'] }]",
        );
        assert_eq!(within(&bound, &of_file), expected);
        assert_eq!(within(&bound, &Grants::default()).http, Vec::new());
    }
}
