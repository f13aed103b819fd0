//! What is answered, by resource. A module adds its routes to [`routes`]; each of them says in its OpenAPI description which
//! role it needs.

pub(crate) mod a2a;
mod agents;
mod agui;
mod attachments;
mod bundles;
mod cancel;
mod decisions;
mod distinct;
mod docs;
pub(crate) mod errors;
mod event_stream;
pub(crate) mod extract;
mod fork;
mod going_on;
mod health;
mod in_thread;
mod inbox;
mod items;
mod keys;
mod langgraph;
pub(crate) mod listed;
pub(crate) mod mcp;
mod metrics;
mod new_run;
mod openai;
mod page;
pub(crate) mod params;
mod plugins;
mod reading;
mod reexecute;
mod runs;
mod schedules;
mod stream;
mod tenant;
mod thread_search;
mod thread_view;
mod threads;
mod turn;

use axum::Router;
use http::Method;
use utoipa::openapi::path::{ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{
    ContentBuilder, InfoBuilder, OpenApi, OpenApiBuilder, Ref, RefOr, Required, ResponseBuilder,
    security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme},
};
use utoipa_axum::router::OpenApiRouter;

use crate::mesh;
use crate::once;
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
        .merge(docs::routes())
        .merge(tenant::routes())
        .merge(keys::routes())
        .merge(metrics::routes())
        .merge(agents::routes())
        .merge(bundles::routes())
        .merge(threads::routes())
        .merge(thread_search::routes())
        .merge(runs::routes())
        .merge(cancel::routes())
        .merge(fork::routes())
        .merge(reexecute::routes())
        .merge(stream::routes())
        .merge(going_on::routes())
        .merge(inbox::routes())
        .merge(decisions::routes())
        .merge(attachments::routes())
        .merge(items::routes())
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
    describe_keys(&mut document);
    (router, document)
}

/// Operations that change something take a key, with which they can be asked for again.
fn describe_keys(document: &mut OpenApi) {
    let key = ParameterBuilder::new()
        .name(once::KEY.as_str())
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some("The same request with the same key is carried out once, and answered as it was, for a day"))
        .schema(Some(
            ObjectBuilder::new()
                .schema_type(Type::String)
                .min_length(Some(1))
                .max_length(Some(once::LONGEST))
                .pattern(Some("^[!-~]{1,255}$"))
                .build(),
        ))
        .build();
    for (path, item) in &mut document.paths.paths {
        let Some(operation) = item.post.as_mut().filter(|_| once::takes_key(&Method::POST, path)) else { continue };
        let is_for_callers = operation
            .security
            .as_ref()
            .is_some_and(|needs| needs.iter().any(|need| *need != SecurityRequirement::default()));
        if is_for_callers {
            operation.parameters.get_or_insert_default().push(RefOr::T(key.clone()));
        }
    }
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
