//! What stands before the routes of a server, or before those of all tenants: it finds out who sent a request, and hands it to the
//! server of their tenant. That server has agents, runs, threads and a file of its own, and knows of no other one, so that no
//! route can forget whose it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use hotcell_http::Limits;
use http::Uri;
use http::uri::PathAndQuery;
use tower_http::catch_panic::CatchPanicLayer;
use tower_service::Service as _;

use crate::access::Identity;
use crate::guard;
use crate::mesh::meshes::{MESHES, NamedMesh};
use crate::problem::Problem;
use crate::state::{Common, Server, TENANTS};
use crate::tenant_name::{NamedTenant, TenantName};

/// A server with its routes.
pub(crate) struct Served {
    pub(crate) server: Server,
    pub(crate) router: Router,
}

/// What stands before the routes. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Front(Arc<Inner>);

struct Inner {
    common: Common,
    limits: Limits,
    /// The server without tenants; with tenants one that has nothing, for whoever is none of them and names none of them
    common_server: Served,
    /// The servers of tenants; none on a server without tenants
    tenants: Option<BTreeMap<TenantName, Served>>,
}

impl Front {
    /// Before the only server there is.
    pub(crate) fn of_one(common: Common, only: Served) -> Self {
        let limits = only.server.settings().limits;
        Front(Arc::new(Inner { common, limits, common_server: only, tenants: None }))
    }

    /// Before the servers of tenants, and one that has nothing.
    pub(crate) fn of_several(common: Common, nobody: Served, tenants: BTreeMap<TenantName, Served>) -> Self {
        let limits = nobody.server.settings().limits;
        Front(Arc::new(Inner { common, limits, common_server: nobody, tenants: Some(tenants) }))
    }

    /// What clients may cost.
    pub(crate) fn limits(&self) -> Limits {
        self.0.limits
    }

    /// What the servers have in common.
    pub(crate) fn common(&self) -> &Common {
        &self.0.common
    }

    /// Everything that is answered.
    pub(crate) fn router(self) -> Router {
        Router::new().fallback(answer).layer(CatchPanicLayer::custom(guard::panicked)).with_state(self)
    }

    /// The server that a request is for. The path is from then on the one that the server knows.
    async fn choose(&self, request: &mut Request) -> Result<&Served, Problem> {
        let Inner { common, common_server, tenants, .. } = &*self.0;
        guard::check_host(&common.hosts, request.uri(), request.headers())?;
        let mut identity = common.access.identify(request.headers()).await;
        let Some(tenants) = tenants else {
            request.extensions_mut().insert(identity);
            return Ok(common_server);
        };
        let of_caller = match &identity {
            Identity::Known(known) => known.tenant.clone(),
            _ => None,
        };
        let found = match named(request.uri(), TENANTS) {
            Some((name, within)) => {
                let found = name.parse().ok().and_then(|name: TenantName| tenants.get(&name));
                // Whoever is known to another tenant is nobody here.
                if matches!(identity, Identity::Known(_)) && of_caller.is_none_or(|own| own.as_str() != name) {
                    identity = Identity::Wrong;
                }
                let named = NamedTenant(name.to_owned());
                *request.uri_mut() = within;
                request.extensions_mut().insert(named);
                found
            }
            None => of_caller.and_then(|own| tenants.get(&own)),
        };
        // Somebody's tenant may be gone.
        if found.is_none() && matches!(identity, Identity::Known(_)) {
            identity = Identity::Wrong;
        }
        request.extensions_mut().insert(identity);
        // A tenant that there is not looks like one that has nothing.
        Ok(found.unwrap_or(common_server))
    }
}

/// What a path that begins like this names, and what is meant there.
fn named<'u>(uri: &'u Uri, begin: &str) -> Option<(&'u str, Uri)> {
    let rest = uri.path_and_query()?.as_str().strip_prefix(begin)?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (name, within) = rest.split_at(end);
    let within = if within.starts_with('/') { within.to_owned() } else { format!("/{within}") };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(within).ok()?);
    Some((name, Uri::from_parts(parts).ok()?))
}

async fn answer(State(front): State<Front>, mut request: Request) -> Response {
    match front.choose(&mut request).await {
        Ok(served) => {
            let mesh = named(request.uri(), MESHES).map(|(name, within)| (NamedMesh(name.to_owned()), within));
            if let Some((name, within)) = mesh {
                *request.uri_mut() = within;
                request.extensions_mut().insert(name);
            }
            let mut router = served.router.clone();
            router.call(request).await.unwrap_or_else(|never| match never {})
        }
        Err(problem) => guard::secured(problem.into_response()),
    }
}

#[cfg(test)]
mod tests {
    use super::{TENANTS, named};

    #[test]
    fn a_path_names_a_tenant_and_what_is_meant_there() {
        for (path, name, within) in [
            ("/tenants/acme/runs", "acme", "/runs"),
            ("/tenants/acme/runs/1?x=%2F", "acme", "/runs/1?x=%2F"),
            ("/tenants/acme", "acme", "/"),
            ("/tenants/acme?x=1", "acme", "/?x=1"),
            ("/tenants/acme/tenants/other/runs", "acme", "/tenants/other/runs"),
            ("/tenants//runs", "", "/runs"),
            ("/tenants/a%2Fb/runs", "a%2Fb", "/runs"),
        ] {
            let uri = path.parse().expect("an address");
            let (found, uri) = named(&uri, TENANTS).expect(path);
            assert_eq!((found, uri.to_string().as_str()), (name, within), "{path}");
        }
        for path in ["/runs", "/tenants", "/x/tenants/acme/runs", "//tenants/acme/runs"] {
            assert!(named(&path.parse().expect("an address"), TENANTS).is_none(), "{path}");
        }
    }
}
