//! Who a request is from, as far as sessions are concerned.

use axum::extract::FromRequestParts;
use http::request::Parts;

use super::meshes::Mesh;
use super::store::SessionKey;
use crate::problem::{Problem, shown};
use crate::state::Server;

/// The header that names the tenant.
const TENANT: &str = "x-tenant-id";
/// Characters of the longest name of a session or tenant.
const LONGEST: usize = 128;

/// The tenant of a request; empty where none is named.
pub(super) struct Tenant(pub(super) String);

impl FromRequestParts<Server> for Tenant {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Server) -> Result<Self, Problem> {
        let mut named = parts.headers.get_all(TENANT).iter();
        let Some(name) = named.next() else { return Ok(Tenant(String::new())) };
        match name.to_str().ok().filter(|name| is_name(name) && named.next().is_none()) {
            Some(name) => Ok(Tenant(name.to_owned())),
            None => Err(Problem::unprocessable(format!("`X-Tenant-ID` has to be {NAME}"))),
        }
    }
}

impl Tenant {
    /// The session of a mesh that is called that.
    pub(super) fn session(self, mesh: &Mesh, id: &str) -> Result<SessionKey, Problem> {
        match is_name(id) {
            true => Ok(SessionKey { scope: mesh.scope.clone(), tenant: self.0, id: id.to_owned() }),
            false => Err(Problem::unprocessable(format!("`session_id` has to be {NAME}, and is `{}`", shown(id)))),
        }
    }
}

const NAME: &str = "one name of 1 to 128 letters, digits and `_`, `.`, `:`, `-`";

fn is_name(text: &str) -> bool {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "_.:-".contains(letter);
    (1..=LONGEST).contains(&text.len()) && text.chars().all(fits)
}
