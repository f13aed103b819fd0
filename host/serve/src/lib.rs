//! The server: agents of every language, their runs and the people who answer them, over HTTP.
//!
//! [`Server::new`] finds and loads the agents below some folders, [`Server::serve`] answers requests until it is told to stop.
//! Runs are in the journal of the [`Host`](hotcell_runtime::Host) and nowhere else: a stream of events is the entries of a run
//! as they are committed, so a server that is killed loses nothing, and a client that comes back misses nothing.

mod access;
mod agents;
mod api;
mod deadlines;
mod error;
mod follow;
mod guard;
mod input;
mod key;
mod leash;
mod live;
mod locks;
mod mesh;
mod problem;
mod role;
mod rules;
mod runs;
mod server;
mod state;
mod store;
mod view;

pub use access::Keys;
pub use error::ServeError;
pub use key::{ApiKey, Token};
pub use problem::Problem;
pub use role::Role;
pub use state::{ServeSettings, Server};
