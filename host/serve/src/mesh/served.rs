//! The mesh that a request is for.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::request::Parts;

use super::meshes::{Mesh, NamedMesh};
use crate::problem::Problem;
use crate::state::Server;

/// The mesh that a request is for: the one that its address names, or the only one.
pub(super) struct Served(pub(super) Arc<Mesh>);

impl FromRequestParts<Server> for Served {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Server) -> Result<Self, Problem> {
        // Before that it is not as it was changed.
        server.ready().cancelled().await;
        server.meshes().asked(parts.extensions.get::<NamedMesh>()).map(Served)
    }
}
