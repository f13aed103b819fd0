//! The `hotcell` command from outside: what it prints, how it exits, and that nothing committed is ever lost.

mod again;
mod agent_spec;
mod answers;
mod attack;
mod basics;
mod callbacks;
mod crash;
mod declarative;
mod denials;
mod desk;
mod failures;
#[cfg(unix)]
mod far;
mod forks;
mod inspect;
#[cfg(unix)]
mod limits;
mod mcp;
mod models;
#[cfg(unix)]
mod odd_files;
mod parity;
mod pictures;
mod plugins;
mod redaction;
mod revisions;
mod runs;
#[cfg(unix)]
mod serve;
mod stores;
mod templates;
mod terminal;
