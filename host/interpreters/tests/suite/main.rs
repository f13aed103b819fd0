//! All tests of this crate that go through its public interface, in one program: each further program would be compiled
//! and linked with everything that the crate stands on.

mod common;
mod files;
mod http;
mod scripts;
mod seal;
