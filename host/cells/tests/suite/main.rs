//! All tests of this crate that go through its public interface, in one program: each further program would be compiled
//! and linked with everything that the crate stands on.

mod contract;
mod cpu_and_time;
#[cfg(unix)]
mod disk;
#[cfg(unix)]
mod files;
mod kinds;
mod loading;
mod memory;
mod mutations;
mod native_work;
mod output_and_logs;
mod recordings;
mod services;
mod support;
mod surroundings;
mod wasi;
