//! Which role a route needs: it is written in the OpenAPI document and nowhere else.

use std::collections::{HashMap, HashSet};

use http::Method;
use utoipa::openapi::path::{Operation, Parameter, ParameterIn, PathItem};
use utoipa::openapi::{OpenApi, RefOr};

use crate::role::Role;

/// The name of the security scheme of the document.
pub(crate) const SCHEME: &str = "key";

/// Who may use a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Everybody: it says nothing about anything
    Nothing,
    /// Whoever has one of these roles
    Roles(Vec<Role>),
}

/// What each route needs.
pub(crate) struct Rules {
    /// By the path as the router has it: what is asked for with each request is found without anything being copied for it
    routes: HashMap<String, Vec<Rule>>,
    /// The paths that are those of meshes
    meshes: HashSet<String>,
}

/// What a method of a path needs.
struct Rule {
    method: Method,
    needs: Needs,
    takes_query: bool,
}

/// How the document marks what belongs to a mesh.
const MESH: &str = "Mesh";
/// How it marks what belongs to protocols that say themselves what becomes of queries.
const PROTOCOLS: [&str; 3] = [MESH, "A2A", "MCP"];

impl Rules {
    /// What the document says.
    ///
    /// # Errors
    /// The routes that say nothing, or something that is no rule.
    pub(crate) fn of(document: &OpenApi) -> Result<Self, String> {
        let (mut routes, mut meshes) = (HashMap::<String, Vec<Rule>>::new(), HashSet::new());
        for (path, item) in &document.paths.paths {
            for (method, operation) in operations(item) {
                let needs = needs(operation)
                    .ok_or_else(|| format!("the route `{method} {path}` does not say which role it needs"))?;
                let is_own = !operation.tags.iter().flatten().any(|tag| PROTOCOLS.contains(&tag.as_str()));
                let takes_query = !is_own || takes_query(operation);
                routes.entry(path.clone()).or_default().push(Rule { method, needs, takes_query });
                if operation.tags.iter().flatten().any(|tag| tag == MESH) {
                    meshes.insert(path.clone());
                }
            }
        }
        Ok(Rules { routes, meshes })
    }

    fn rule(&self, method: &Method, path: &str) -> Option<&Rule> {
        // Whoever may read may ask for the head.
        let method = if method == Method::HEAD { &Method::GET } else { method };
        self.routes.get(path)?.iter().find(|rule| rule.method == *method)
    }

    /// What a request to a route needs; none if there is no such route.
    pub(crate) fn get(&self, method: &Method, path: &str) -> Option<&Needs> {
        self.rule(method, path).map(|rule| &rule.needs)
    }

    /// Whether a route may be asked with a query.
    pub(crate) fn takes_query(&self, method: &Method, path: &str) -> bool {
        self.rule(method, path).is_none_or(|rule| rule.takes_query)
    }

    /// Whether a route belongs to a mesh.
    pub(crate) fn is_of_mesh(&self, path: &str) -> bool {
        self.meshes.contains(path)
    }
}

/// The operations of a path.
pub(crate) fn operations(item: &PathItem) -> impl Iterator<Item = (Method, &Operation)> {
    [
        (Method::GET, &item.get),
        (Method::PUT, &item.put),
        (Method::POST, &item.post),
        (Method::DELETE, &item.delete),
        (Method::OPTIONS, &item.options),
        (Method::HEAD, &item.head),
        (Method::PATCH, &item.patch),
        (Method::TRACE, &item.trace),
    ]
    .into_iter()
    .filter_map(|(method, operation)| Some((method, operation.as_ref()?)))
}

fn takes_query(operation: &Operation) -> bool {
    let is_in_query = |parameter: &RefOr<Parameter>| match parameter {
        RefOr::T(parameter) => parameter.parameter_in == ParameterIn::Query,
        RefOr::Ref(_) => true,
    };
    operation.parameters.iter().flatten().any(is_in_query)
}

fn needs(operation: &Operation) -> Option<Needs> {
    let security = operation.security.as_ref()?;
    let written = serde_json::to_value(security).ok()?;
    let mut roles = Vec::new();
    for one in written.as_array()? {
        let one = one.as_object()?;
        if one.is_empty() {
            return Some(Needs::Nothing);
        }
        for role in one.get(SCHEME)?.as_array()? {
            roles.push(role.as_str()?.parse().ok()?);
        }
    }
    (!roles.is_empty()).then_some(Needs::Roles(roles))
}
