//! What the server answers, as a page for people. It needs nothing from anywhere else, and runs nothing.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use axum::extract::State;
use axum::response::Html;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::rules::operations;
use crate::state::Server;

pub(super) fn routes() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(docs))
}

/// What the server answers, as a page
#[utoipa::path(
    get, path = "/docs", tag = "Server", security(()), responses((status = 200, content_type = "text/html", body = String))
)]
async fn docs(State(server): State<Server>) -> Html<String> {
    Html(page(server.document()))
}

/// A text within a page.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn page(document: &OpenApi) -> String {
    let mut parts: BTreeMap<&str, String> = BTreeMap::new();
    for (path, item) in &document.paths.paths {
        for (method, operation) in operations(item) {
            let tag = operation.tags.iter().flatten().next().map_or("", String::as_str);
            let summary = escaped(operation.summary.as_deref().unwrap_or_default());
            let more = operation
                .description
                .as_deref()
                .map_or_else(String::new, |text| format!("<dd>{}</dd>\n", escaped(text)));
            // Writing to a text does not fail.
            let _ = write!(
                parts.entry(tag).or_default(),
                "<dt><code>{method} {}</code></dt>\n<dd>{summary}</dd>\n{more}",
                escaped(path)
            );
        }
    }
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>{title}</title></head>\n<body>\n\
         <h1>{title} {version}</h1>\n<p><a href=\"openapi.json\">openapi.json</a> says what each of them takes and gives.</p>\n",
        title = escaped(&document.info.title),
        version = escaped(&document.info.version),
    );
    for (tag, operations) in parts {
        let _ = write!(page, "<h2>{}</h2>\n<dl>\n{operations}</dl>\n", escaped(tag));
    }
    page + "</body>\n</html>\n"
}
