//! What is answered, by resource. A module adds its routes to [`routes`]; each of them says in its OpenAPI description which
//! role it needs.

mod agents;
pub(crate) mod extract;
mod health;
mod inbox;
mod langgraph;
pub(crate) mod params;
mod runs;
mod stream;
mod threads;

use axum::Router;
use utoipa::openapi::{
    ContentBuilder, InfoBuilder, OpenApi, OpenApiBuilder, Ref, RefOr, ResponseBuilder,
    security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
};
use utoipa::{PartialSchema as _, ToSchema as _};
use utoipa_axum::router::OpenApiRouter;

use crate::mesh;
use crate::problem::{MEDIA_TYPE, Problem};
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
        .merge(agents::routes())
        .merge(threads::routes())
        .merge(runs::routes())
        .merge(stream::routes())
        .merge(inbox::routes())
        .merge(langgraph::routes())
        .merge(mesh::routes())
        .split_for_parts();
    describe_errors(&mut document);
    (router, document)
}

/// Every operation may end with a problem.
fn describe_errors(document: &mut OpenApi) {
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(Problem::name()))).build();
    let response = ResponseBuilder::new().description("Why the request was not answered").content(MEDIA_TYPE, content);
    let response = response.build();
    for item in document.paths.paths.values_mut() {
        let operations =
            [&mut item.get, &mut item.put, &mut item.post, &mut item.delete, &mut item.patch].into_iter().flatten();
        for operation in operations {
            operation.responses.responses.insert("default".to_owned(), RefOr::T(response.clone()));
        }
    }
    let components = document.components.get_or_insert_default();
    components.schemas.insert(Problem::name().into_owned(), Problem::schema());
    let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some("An API key")).build();
    components.security_schemes.insert(SCHEME.to_owned(), RefOr::T(SecurityScheme::Http(scheme)));
}
