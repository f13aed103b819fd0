//! What is answered, by resource. A module adds its routes to [`routes`]; each of them says in its OpenAPI description which
//! role it needs.

pub(crate) mod a2a;
mod agents;
mod agui;
mod bundles;
pub(crate) mod errors;
pub(crate) mod extract;
mod going_on;
mod health;
mod inbox;
mod keys;
mod langgraph;
pub(crate) mod mcp;
mod metrics;
mod openai;
pub(crate) mod params;
mod plugins;
mod runs;
mod schedules;
mod stream;
mod tenant;
mod threads;
mod turn;

use axum::Router;
use utoipa::openapi::{
    ContentBuilder, InfoBuilder, OpenApi, OpenApiBuilder, Ref, RefOr, ResponseBuilder,
    security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
};
use utoipa_axum::router::OpenApiRouter;

use crate::mesh;
use crate::rules::SCHEME;
use crate::state::Server;

/// Everything that is answered, and the document that describes it.
pub(crate) fn routes() -> (Router<Server>, OpenApi) {
    let info = InfoBuilder::new()
        .title("hotcell")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some("Agents, runs and people behind one server. Errors are problem details (RFC 9457)."))
        .build();
    let (router, mut document) = OpenApiRouter::with_openapi(OpenApiBuilder::new().info(info).build())
        .merge(health::routes())
        .merge(tenant::routes())
        .merge(keys::routes())
        .merge(metrics::routes())
        .merge(agents::routes())
        .merge(bundles::routes())
        .merge(threads::routes())
        .merge(runs::routes())
        .merge(stream::routes())
        .merge(going_on::routes())
        .merge(inbox::routes())
        .merge(schedules::routes())
        .merge(plugins::routes())
        .merge(langgraph::routes())
        .merge(openai::routes())
        .merge(a2a::routes())
        .merge(agui::routes())
        .merge(mcp::routes())
        .merge(mesh::routes())
        .split_for_parts();
    describe_errors(&mut document);
    (router, document)
}

/// Every operation may end with an error, in the form of its protocol.
fn describe_errors(document: &mut OpenApi) {
    for item in document.paths.paths.values_mut() {
        let operations =
            [&mut item.get, &mut item.put, &mut item.post, &mut item.delete, &mut item.patch].into_iter().flatten();
        for operation in operations {
            let tag = operation.tags.iter().flatten().next().map(String::as_str);
            let (media_type, schema) = errors::described(tag.unwrap_or_default());
            let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(schema))).build();
            let response = ResponseBuilder::new().description("Why the request was not answered");
            let response = response.content(media_type, content).build();
            operation.responses.responses.insert("default".to_owned(), RefOr::T(response));
        }
    }
    let components = document.components.get_or_insert_default();
    components.schemas.extend(errors::schemas());
    let scheme = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("An API key, or a token of OpenID Connect"))
        .build();
    components.security_schemes.insert(SCHEME.to_owned(), RefOr::T(SecurityScheme::Http(scheme)));
}
