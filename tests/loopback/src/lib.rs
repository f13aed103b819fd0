//! Scripted servers on `127.0.0.1` for tests.
//!
//! Why this exists: a test of anything that talks to a model has to go through real HTTP, or it does not test
//! what users run, and it must neither leave the machine nor depend on what a model feels like saying. A
//! [`Loopback`] is an OpenAI-compatible server (Chat Completions, Responses and embeddings) that gives the replies it was told to give, in order, and keeps
//! every request for the test to look at.
//!
//! What it must not do: decide whether a request was right. It records requests in a form that belongs to no
//! provider ([`ModelRequest`]); comparing them with an expectation is the business of the test.

mod embeddings;
mod listen;
pub mod mcp;
mod request;
mod respond;
mod responses;
mod script;
mod server;
mod site;
pub mod tls;
mod web;

pub use embeddings::{EMBEDDING_WIDTH, bag_of_words};
pub use request::{ModelRequest, OfferedTool, RequestMessage, RequestToolCall};
pub use script::{Script, ScriptError};
pub use server::{Arrival, Delays, Loopback};
pub use site::Site;
pub use web::{WebAnswer, WebRequest, WebServer};
