//! Plays the cases of the dialect `leafmesh`: a mesh is served by the real server, and a case is a conversation with it.

pub mod case;
mod client;
mod expect;
mod functions;
mod loading;
mod models;
mod outside;
mod play;
mod saved;
mod server;
mod sign;
pub mod step;
mod steps;

pub use loading::play as load;
pub use play::play;

/// The secret of the webhooks of all cases.
const SECRET: &str = "case-secret";
