//! Plays the cases of a plugin against its component: what goes in, what has to come out, what it may use.
//!
//! A case is a JSON file in the folder `cases` beside the plugin's source. It runs sealed like in a graph, with a fixed
//! clock and seed, with the grants it names and with the replies of the host it carries, so that it gives the same
//! result and uses the same fuel every time. `hotcell plugin test` is this library behind a command; a test of
//! `cargo test` can use it as well:
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use hotcell_harness::{Harness, read_cases};
//!
//! let harness = Harness::new(None)?;
//! let component = std::fs::read("build/weather.wasm")?;
//! for (name, case) in read_cases("cases".as_ref())? {
//!     let played = harness.play(&component, &case).await?;
//!     assert!(played.problems.is_empty(), "{name}: {}", played.problems.join("\n"));
//! }
//! # Ok(())
//! # }
//! ```

mod baseline;
mod case;
mod expect;
mod hostile;
mod measure;
mod native;
mod play;
mod replies;
mod strangers;

pub use baseline::{BASELINE_FILE, Baseline, BaselineError, Compared};
pub use hotcell_cells::{CompileEvent, CompileListener, ENGINE, PlaceFinder};

pub use case::{Call, Case, CaseError, Expectation, HostCall, HostReply, keep_replies, read_cases};
pub use hostile::{
    ATTACK_NAME, Attack, AttackError, Attacked, NEIGHBOUR_NAME, Neighbour, Siege, Stop, built_in_attacks, read_attacks,
};
pub use measure::Measured;
pub use native::play_natively;
pub use play::{Harness, HarnessError, Played};
pub use strangers::{
    HostileClient, HostileGraph, HostileServer, Reply, Serves, Stranger, StrangerError, Text, Then, hostile_clients,
    hostile_graphs, hostile_servers,
};

/// The SHA-256 digest of a component, in hexadecimal.
pub fn digest(component: &[u8]) -> String {
    hotcell_cells::digest(component)
}
