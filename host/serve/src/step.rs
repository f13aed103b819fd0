//! What a request passes on its way to its route: steps, one within the other.
//!
//! All of them are one layer of the router. A layer of its own for each would be simpler, but a router copies everything behind a layer
//! for each request that passes it, twice.

use axum::extract::Request;
use axum::middleware;
use axum::response::Response;
use futures::future::BoxFuture;

use crate::state::Server;

/// Does something before a request is answered, and with the reply.
pub(crate) type Step = fn(Server, Request, Next) -> BoxFuture<'static, Response>;

/// What is behind a step: the steps after it, and the route.
pub(crate) struct Next {
    server: Server,
    steps: &'static [Step],
    route: middleware::Next,
}

impl Next {
    /// All steps, and the route behind them.
    pub(crate) fn new(server: Server, steps: &'static [Step], route: middleware::Next) -> Self {
        Next { server, steps, route }
    }

    /// Has a request answered.
    pub(crate) async fn run(self, request: Request) -> Response {
        match self.steps.split_first() {
            Some((step, steps)) => {
                let server = self.server.clone();
                step(server, request, Next { steps, ..self }).await
            }
            None => self.route.run(request).await,
        }
    }
}
