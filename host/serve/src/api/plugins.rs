//! Plugins: what they ask for, and what they are granted. It is decided as with `hotcell plugin grant`, `revoke` and `remove`.

use std::collections::BTreeMap;
use std::path::{Path as FilePath, PathBuf};

use axum::Json;
use axum::extract::{Path, State};
use hotcell_runtime::plugins::{Access, DirectoryGrant, GrantError, GrantOrder, HttpGrant, Plugin};
use hotcell_runtime::{DecideError, PluginDesk, RemoveError};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::extract;
use super::params::Query;
use crate::plugin_view::PluginView;
use crate::problem::{Problem, shown};
use crate::state::Server;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(get, remove)).routes(routes!(grant, revoke))
}

/// The most entries of a list in an order.
const MOST: usize = 100;

/// The folders of agents, each with the ids of those in it.
fn folders(server: &Server) -> BTreeMap<PathBuf, Vec<String>> {
    let mut folders: BTreeMap<PathBuf, Vec<String>> = BTreeMap::new();
    for (id, agent) in server.agents().all() {
        folders.entry(agent.folder.clone()).or_default().push(id);
    }
    folders
}

/// Does something with a folder's plugins where waiting holds up nobody.
async fn at_desk<T: Send + 'static>(
    server: &Server,
    folder: PathBuf,
    work: impl FnOnce(PluginDesk) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let host = server.runs().host().clone();
    let work = move || {
        let desk = host.plugin_desk(&folder).map_err(|error| {
            tracing::warn!(target: "hotcell::serve", %error, "what is granted in a folder cannot be read");
            Problem::conflict("what is granted in the agent's folder cannot be read; the server's log says why")
        })?;
        work(desk)
    };
    tokio::task::spawn_blocking(work).await.map_err(|error| Problem::internal(&error))?
}

/// Plugins.
#[derive(Serialize, ToSchema)]
struct PluginList {
    /// One entry for each plugin within reach of each folder of agents
    items: Vec<PluginView>,
}

/// List plugins, what they ask for and what they are granted
///
/// A plugin that waits for a decision has the standing `waiting`.
#[utoipa::path(
    get, path = "/plugins", tag = "Plugins", security(("key" = ["operate", "administer"])),
    params(("agent_id" = Option<String>, Query, description = "Only plugins within reach of this agent")),
    responses((status = 200, body = PluginList))
)]
async fn list(State(server): State<Server>, mut query: Query) -> Result<Json<PluginList>, Problem> {
    let wanted = query.text("agent_id").map(|id| server.agents().find(&id)).transpose()?;
    query.end()?;
    let mut items = Vec::new();
    for (folder, ids) in folders(&server) {
        if wanted.as_ref().is_some_and(|(_, agent)| agent.folder != folder) {
            continue;
        }
        let views = at_desk(&server, folder, move |desk| Ok(PluginView::all(&desk, &ids))).await?;
        items.extend(views);
    }
    Ok(Json(PluginList { items }))
}

/// The folder of an agent, and the ids of those in it.
fn folder_of(server: &Server, agent: &str) -> Result<(PathBuf, Vec<String>), Problem> {
    let folder = server.agents().find(agent)?.1.folder.clone();
    let ids = folders(server).remove(&folder).unwrap_or_default();
    Ok((folder, ids))
}

/// The plugin of a name within reach.
fn find(desk: &PluginDesk, name: &str) -> Result<(PathBuf, Plugin), Problem> {
    let found = desk.catalogue.find(name).map(|(file, plugin)| (file.to_owned(), plugin.clone()));
    found.ok_or_else(|| {
        let detail =
            format!("there is no plugin `{}` within reach of the agent; `GET /plugins` lists them", shown(name));
        Problem::not_found(detail).kind("unknown-plugin", "There is no such plugin")
    })
}

/// Look at a plugin within reach of an agent
#[utoipa::path(
    get, path = "/plugins/{name}", tag = "Plugins", security(("key" = ["operate", "administer"])),
    params(
        ("name" = String, Path, description = "Its name"),
        ("agent_id" = String, Query, description = "The agent"),
    ),
    responses((status = 200, body = PluginView))
)]
async fn get(
    State(server): State<Server>,
    Path(name): Path<String>,
    mut query: Query,
) -> Result<Json<PluginView>, Problem> {
    let (folder, ids) = folder_of(&server, &named_agent(&mut query)?)?;
    query.end()?;
    let view = at_desk(&server, folder, move |desk| {
        let (file, plugin) = find(&desk, &name)?;
        Ok(PluginView::of(&desk, &file, &plugin, &ids))
    });
    Ok(Json(view.await?))
}

fn named_agent(query: &mut Query) -> Result<String, Problem> {
    query.text("agent_id").ok_or_else(|| Problem::unprocessable("name the agent with `agent_id`"))
}

/// What is granted to a plugin.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct GrantCreate {
    /// The agent in whose folder it is granted; the other agents of the folder have it, too
    agent_id: String,
    /// The SHA-256 digest of the component that is meant, as `GET /plugins` has it
    digest: String,
    /// Only these capabilities; otherwise all that it asks for, or for an update what it was granted before
    #[serde(default)]
    only: Vec<String>,
    /// These capabilities beside what it was granted before; `all` for everything
    #[serde(default)]
    add: Vec<String>,
    /// Servers, such as `https://api.example.org`, in the place of those that it asks for
    #[serde(default)]
    http: Vec<String>,
    /// Directories of the server by the plugin's paths
    #[serde(default)]
    fs: Vec<DirectoryCreate>,
    /// Nothing: the plugin is used without what it asks for
    #[serde(default)]
    nothing: bool,
    /// Also if a newer version of it was granted something before
    #[serde(default)]
    allow_older: bool,
}

/// A directory that is granted.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct DirectoryCreate {
    /// The path that the plugin uses
    guest: String,
    /// The directory on the server, absolute
    host: String,
    /// Whether it may write there
    #[serde(default)]
    writable: bool,
}

fn order(wanted: &GrantCreate) -> Result<GrantOrder, Problem> {
    if [wanted.only.len(), wanted.add.len(), wanted.http.len(), wanted.fs.len()].iter().any(|count| *count > MOST) {
        return Err(Problem::unprocessable(format!("a list has more than {MOST} entries")));
    }
    let server =
        |url: &String| url.parse::<HttpGrant>().map_err(|error| Problem::unprocessable(format!("`http`: {error}")));
    let directory = |wanted: &DirectoryCreate| {
        let host = FilePath::new(&wanted.host);
        if !wanted.guest.starts_with('/') || wanted.guest.len() < 2 {
            return Err(Problem::unprocessable("`guest` has to be an absolute path, such as `/data`"));
        }
        if !host.is_absolute() || !host.is_dir() {
            return Err(Problem::unprocessable("`host` has to be a directory of the server, as an absolute path"));
        }
        let access = if wanted.writable { Access::ReadWrite } else { Access::Read };
        Ok(DirectoryGrant::new(host, &wanted.guest, access))
    };
    Ok(GrantOrder {
        http: wanted.http.iter().map(server).collect::<Result<_, _>>()?,
        fs: wanted.fs.iter().map(directory).collect::<Result<_, _>>()?,
        only: wanted.only.clone(),
        add: wanted.add.clone(),
        nothing: wanted.nothing,
    })
}

/// Refuses what would reach beyond the tenant: directories of the server, and which versions of plugins count for all tenants.
fn check_tenant(server: &Server, wanted: &GrantCreate) -> Result<(), Problem> {
    let beyond = match (wanted.fs.is_empty(), wanted.allow_older) {
        _ if server.tenant().is_none() => return Ok(()),
        (false, _) => "`fs`",
        (true, true) => "`allow_older`",
        (true, false) => return Ok(()),
    };
    let detail = format!(
        "{beyond} reaches beyond the tenant, and nothing was changed; whoever runs the server decides on that with `hotcell plugin grant`"
    );
    Err(Problem::new(StatusCode::FORBIDDEN, detail).kind("beyond-tenant", "It reaches beyond the tenant"))
}

/// Grant a plugin what it asks for
///
/// It is written to the `hotcell.toml` of the agent's folder and pinned to the component in `hotcell.lock`. Runs that begin from
/// now on have it. On a server with tenants, `fs` and `allow_older` are left to whoever runs the server (403).
#[utoipa::path(
    post, path = "/plugins/{name}/grants", tag = "Plugins", security(("key" = ["administer"])),
    params(("name" = String, Path, description = "The plugin")),
    request_body = GrantCreate, responses((status = 200, body = PluginView))
)]
async fn grant(
    State(server): State<Server>,
    Path(name): Path<String>,
    extract::Json(wanted): extract::Json<GrantCreate>,
) -> Result<Json<PluginView>, Problem> {
    check_tenant(&server, &wanted)?;
    let (folder, ids) = folder_of(&server, &wanted.agent_id)?;
    let order = order(&wanted)?;
    let _deciding = server.agents().deciding.lock().await;
    let view = at_desk(&server, folder, move |mut desk| {
        let (file, plugin) = find(&desk, &name)?;
        let digest = &plugin.survey.digest;
        if *digest != wanted.digest {
            let detail =
                format!("plugin `{}` is another component than the one that is meant; look at it again", shown(&name));
            let problem = Problem::conflict(detail).kind("plugin-changed", "The plugin is another component");
            return Err(problem.with("digest", digest.as_str()));
        }
        let grants = desk.decide(&plugin, &order, wanted.allow_older)?;
        desk.grant(&plugin, &grants, wanted.allow_older)?;
        Ok(PluginView::of(&desk, &file, &plugin, &ids))
    });
    let view = view.await?;
    server.refresh().await;
    Ok(Json(view))
}

/// Take back what is granted to a plugin
///
/// Its next call is denied, also in runs that are under way. A plugin that asks for something cannot be used until somebody decides
/// again.
#[utoipa::path(
    delete, path = "/plugins/{name}/grants", tag = "Plugins", security(("key" = ["administer"])),
    params(
        ("name" = String, Path, description = "The plugin"),
        ("agent_id" = String, Query, description = "The agent in whose folder it was granted"),
    ),
    responses((status = 204, description = "Nothing is granted to it"))
)]
async fn revoke(
    State(server): State<Server>,
    Path(name): Path<String>,
    mut query: Query,
) -> Result<StatusCode, Problem> {
    let (folder, _) = folder_of(&server, &named_agent(&mut query)?)?;
    query.end()?;
    let _deciding = server.agents().deciding.lock().await;
    at_desk(&server, folder, move |mut desk| {
        // One whose component is gone may still be granted something.
        if !desk.revoke(&name)? {
            find(&desk, &name)?;
        }
        Ok(())
    })
    .await?;
    server.refresh().await;
    Ok(StatusCode::NO_CONTENT)
}

/// Remove a plugin of an agent's folder, with what it was granted
#[utoipa::path(
    delete, path = "/plugins/{name}", tag = "Plugins", security(("key" = ["administer"])),
    params(
        ("name" = String, Path, description = "The plugin"),
        ("agent_id" = String, Query, description = "The agent in whose folder it lies"),
        ("purge" = Option<bool>, Query, description = "Whether its data is deleted, too"),
    ),
    responses((status = 204, description = "It is removed"))
)]
async fn remove(
    State(server): State<Server>,
    Path(name): Path<String>,
    mut query: Query,
) -> Result<StatusCode, Problem> {
    let (folder, _) = folder_of(&server, &named_agent(&mut query)?)?;
    let purge = match query.text("purge").as_deref() {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err(Problem::unprocessable("`purge` has to be `true` or `false`")),
    };
    query.end()?;
    let _deciding = server.agents().deciding.lock().await;
    at_desk(&server, folder, move |mut desk| {
        let (file, _) = find(&desk, &name)?;
        Ok(desk.remove(&file, &name, purge)?)
    })
    .await?;
    server.refresh().await;
    Ok(StatusCode::NO_CONTENT)
}

impl From<DecideError> for Problem {
    fn from(error: DecideError) -> Self {
        match error {
            DecideError::Older { .. } => {
                Problem::conflict(format!("{error}; set `allow_older` to use it all the same"))
                    .kind("plugin-older", "A newer version was used before")
            }
            DecideError::Grant(error) => error.into(),
        }
    }
}

impl From<GrantError> for Problem {
    fn from(error: GrantError) -> Self {
        match error {
            GrantError::Untrusted(_) => {
                let detail = "the agent's folder brought a `hotcell.toml` that nobody trusts; whoever runs the server looks at \
                              it and decides with `hotcell trust`";
                Problem::conflict(detail).kind("untrusted", "Nobody trusts the folder")
            }
            GrantError::NoDirectory { plugin, guest } => Problem::unprocessable(format!(
                "`{plugin}` asks for a directory as `{guest}`; say which in `fs`, as `{{\"guest\": \"{guest}\", \"host\": \"/a/directory\"}}`"
            )),
            GrantError::NoServers { plugin } => Problem::unprocessable(format!(
                "`{plugin}` asks for servers that you name; say which in `http`, as `[\"https://api.example.org\"]`"
            )),
            GrantError::Beyond { .. } => Problem::unprocessable(error.to_string()),
            GrantError::File { .. } | GrantError::Exchanged(_) | GrantError::Folder(_) => {
                tracing::error!(target: "hotcell::serve", %error, "what was decided about a plugin cannot be written");
                Problem::conflict(
                    "what was decided cannot be written, and nothing was changed; the server's log says why",
                )
            }
        }
    }
}

impl From<RemoveError> for Problem {
    fn from(error: RemoveError) -> Self {
        match error {
            RemoveError::Elsewhere { plugin, .. } => {
                let detail =
                    format!("plugin `{plugin}` is not one of the agent's folder, and stays; revoke its grants instead");
                Problem::conflict(detail).kind("plugin-shared", "The plugin is shared")
            }
            RemoveError::Grant(error) => error.into(),
            error => Problem::internal(&error),
        }
    }
}
