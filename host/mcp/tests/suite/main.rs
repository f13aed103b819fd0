//! All tests of this crate that go through its public interface, in one program: each further program would be compiled
//! and linked with everything that the crate stands on.

mod common;
mod events;
mod http;
mod latency;
mod leaving;
mod pipe;
mod real_servers;
mod stateless;
mod stdio;
mod stdio_faults;
mod strangers_http;
mod tls;
