//! How every HTTP server of hotcell takes connections, and what a client may cost it.
//!
//! A [`Router`](axum::Router) says what is answered. Here is what comes before that: so many connections and no more, so
//! much time for the head of a request and for reading a reply, an orderly end, and the names under which a server may be
//! addressed. Bodies are read by whoever answers, with limits of its own.

mod held;
mod hosts;
mod listen;
mod paced;
mod strangers;

pub use held::with_body;
pub use hosts::{HostRefused, Hosts};
pub use listen::{Limits, serve};
pub use strangers::{Known, Peer};
