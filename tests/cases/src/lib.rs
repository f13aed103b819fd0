//! Runs directories of test cases through hotcell and compares what happens with what they expect.
//!
//! Why this exists: the rulings on the languages are cases, and a case is data that anybody can add. What a case means
//! is decided in one place: [`case_file`] reads it, [`world`] with [`loki`], [`sherma`], [`agent_spec`], [`agentloom`] or [`mesh`] plays it through the host library the way a
//! user's program would, [`check`] compares. The runner must not know any case, and must not look at anything of the
//! host but its public interface.

pub mod again;
pub mod agent_spec;
pub mod agentloom;
pub mod canary;
pub mod case_file;
pub mod check;
pub mod discover;
pub mod disputed;
pub mod flow;
mod given;
pub mod http;
pub mod loki;
pub mod matcher;
pub mod mesh;
pub mod mismatch;
pub mod observed;
mod order;
pub mod pairing;
pub mod pending;
pub mod report;
pub mod requests;
mod roundtrip;
pub mod runner;
pub mod sherma;
pub mod stage;
pub mod tools;
pub mod witness;
pub mod world;
