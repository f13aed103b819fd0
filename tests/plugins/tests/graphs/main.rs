//! Plugins in graphs, end to end, as an operator sets them up: what was granted works, and nothing else does.

mod agent_spec;
mod agents;
mod attacks;
mod budget;
mod capabilities;
mod coverage;
mod declarative;
mod declared_hooks;
mod denials;
mod desk;
mod forks;
mod functions;
mod hooks;
mod imports;
mod knowledge;
mod nodes;
mod recordings;
mod remote;
mod revisions;
mod servers;
mod stores;
mod threads;
mod transports;
mod trust;
