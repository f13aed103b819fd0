//! Where clients of the protocol learn how to get in: the metadata of a protected resource (RFC 9728), and the challenge that names it.

use axum::extract::{Path, Request, State};
use axum::response::Response;
use axum::{Extension, Json};
use http::header::{AUTHORIZATION, HOST, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::access::oidc::{OidcSettings, TenantOf};
use crate::problem::{Problem, shown};
use crate::role::Role;
use crate::state::{Server, TENANTS};
use crate::step::Next;
use crate::tenant_name::NamedTenant;

/// The path of what is protected.
const MCP: &str = "/mcp";
/// What begins the path of the metadata; the path of what is protected comes after it.
const METADATA: &str = "/.well-known/oauth-protected-resource";

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(of_server)).routes(routes!(of_mcp)).routes(routes!(of_agent))
}

/// The tenant that the path of a request named, if it did.
type Named = Option<Extension<NamedTenant>>;

/// A protected resource (RFC 9728).
#[derive(Serialize, ToSchema)]
struct ProtectedResource {
    /// Its address
    resource: String,
    /// What it is called
    resource_name: &'static str,
    /// Who issues tokens that count there, beside API keys of the server: issuers of OpenID Connect
    #[serde(skip_serializing_if = "Vec::is_empty")]
    authorization_servers: Vec<String>,
    /// The roles that count there
    scopes_supported: Vec<&'static str>,
    /// How a key is shown
    bearer_methods_supported: Vec<&'static str>,
}

impl ProtectedResource {
    fn at(server: &Server, headers: &HeaderMap, named: Named, path: &str) -> Json<Self> {
        Json(ProtectedResource {
            resource: format!("{}{path}", address(server, headers, named.as_deref())),
            resource_name: "hotcell",
            authorization_servers: issuers(server, named.as_deref()),
            scopes_supported: vec![Role::Run.as_str(), Role::Answer.as_str()],
            bearer_methods_supported: vec!["header"],
        })
    }
}

/// The issuers of tokens that count for a tenant. One whose tokens belong to a single tenant is told to those who name that tenant.
fn issuers(server: &Server, named: Option<&NamedTenant>) -> Vec<String> {
    let counts = |settings: &&OidcSettings| match &settings.tenant {
        TenantOf::Claim { .. } => true,
        TenantOf::Only(tenant) => named.is_some_and(|NamedTenant(name)| name.as_str() == tenant.as_str()),
    };
    server.settings().oidc.iter().filter(counts).map(|settings| settings.issuer.clone()).collect()
}

/// Show how clients of the Model Context Protocol get in
#[utoipa::path(
    get, path = "/.well-known/oauth-protected-resource", tag = "MCP", security(()),
    responses((status = 200, body = ProtectedResource))
)]
async fn of_server(State(server): State<Server>, headers: HeaderMap, named: Named) -> Json<ProtectedResource> {
    ProtectedResource::at(&server, &headers, named, MCP)
}

/// Show how clients of the Model Context Protocol get in at `/mcp`
#[utoipa::path(
    get, path = "/.well-known/oauth-protected-resource/mcp", tag = "MCP", security(()),
    responses((status = 200, body = ProtectedResource))
)]
async fn of_mcp(State(server): State<Server>, headers: HeaderMap, named: Named) -> Json<ProtectedResource> {
    ProtectedResource::at(&server, &headers, named, MCP)
}

/// Show how clients of the Model Context Protocol get in at `/mcp/{agent_id}`
///
/// Whether there is such an agent is not said.
#[utoipa::path(
    get, path = "/.well-known/oauth-protected-resource/mcp/{agent_id}", tag = "MCP", security(()),
    params(("agent_id" = String, Path, description = "The agent")),
    responses((status = 200, body = ProtectedResource))
)]
async fn of_agent(
    State(server): State<Server>,
    headers: HeaderMap,
    named: Named,
    Path(agent): Path<String>,
) -> Result<Json<ProtectedResource>, Problem> {
    let is_id = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if !agent.bytes().all(is_id) {
        return Err(Problem::not_found(format!("there is no address `{MCP}/{}`", shown(&agent))));
    }
    Ok(ProtectedResource::at(&server, &headers, named, &format!("{MCP}/{agent}")))
}

/// Tells whoever is refused at `/mcp` where the metadata is.
pub(crate) async fn challenge(server: Server, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    if path != MCP && !path.strip_prefix(MCP).is_some_and(|rest| rest.starts_with('/')) {
        return next.run(request).await;
    }
    let named = request.extensions().get::<NamedTenant>();
    let metadata = format!("{}{METADATA}{path}", address(&server, request.headers(), named)).replace('"', "%22");
    let error = if request.headers().contains_key(AUTHORIZATION) { ", error=\"invalid_token\"" } else { "" };
    let scope = [Role::Run, Role::Answer].map(Role::as_str).join(" ");
    let challenge = format!("Bearer resource_metadata=\"{metadata}\", scope=\"{scope}\"{error}");
    let mut response = next.run(request).await;
    if response.status() == StatusCode::UNAUTHORIZED
        && let Ok(challenge) = HeaderValue::try_from(challenge)
    {
        response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    }
    response
}

/// Where the server is, as its client knows it: the name that the request was sent to is one of the server's. A tenant is part of it
/// where the client named one, whether there is one of that name or not.
fn address(server: &Server, headers: &HeaderMap, named: Option<&NamedTenant>) -> String {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let base = match (&server.settings().public_url, host) {
        (Some(url), _) => url.trim_end_matches('/').to_owned(),
        (None, Some(host)) => format!("http://{host}"),
        (None, None) => return server.base_url(),
    };
    match named {
        Some(NamedTenant(name)) => format!("{base}{TENANTS}{name}"),
        None => base,
    }
}
