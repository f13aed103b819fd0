//! What is posted to a mesh by systems outside.

use axum::extract::Request;

use super::meshes::Mesh;
use crate::api::extract::read;
use crate::problem::Problem;
use crate::state::Server;

/// Bytes of a post, whatever its mesh allows: they are held before it is known who sends them.
const MOST: usize = 64 << 20;

/// The body of a post.
pub(super) async fn posted(server: &Server, mesh: &Mesh, request: Request) -> Result<Vec<u8>, Problem> {
    let allowed = usize::try_from(mesh.settings.webhooks.max_payload_bytes).unwrap_or(MOST);
    read(request, allowed.min(MOST), server.settings().body_within).await
}
