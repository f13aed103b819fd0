//! All tests of this crate that go through its public interface, in one program: each further program would be compiled
//! and linked with everything that the crate stands on.

mod build;
mod c_json;
mod missing_tools;
mod new;
#[cfg(unix)]
mod setup;
