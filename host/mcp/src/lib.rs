//! The Model Context Protocol, in both directions.
//!
//! As a client ([`Server`]): programs and services that somebody else wrote offer tools, and agents call them. The
//! server is a stranger. What it says is bounded in size, number and time, its texts are cleaned before anybody
//! reads them, and the worst that it can do is to end its own connection.
//!
//! As a server ([`Catalog`], [`serve_stdio`], [`serve_http`]): what this host offers, plugins and graphs, is offered
//! to other programs as tools.
//!
//! The protocol itself is the business of the official library. None of its types are part of this crate's
//! interface, so that a new generation of it changes nothing elsewhere. This crate must not know what an agent, a
//! plugin or a graph is, and it decides nothing about who may call what: that belongs to whoever holds a [`Server`].
//!
//! Spoken are the protocol's revisions from 2024-11-05 to 2025-11-25, and as a server 2026-07-28, too, which has no
//! sessions: a tool that asks ends its call with the question, and the client calls again with the answer. Sampling,
//! roots, resources, prompts and completions are not offered, in either direction.

mod client;
mod error;
mod exchange;
mod server;
mod settings;
mod text;

pub use client::{
    AddressCheck, ClientEvents, EventReader, HttpClient, HttpReply, Progress, Server, StreamEvent, TooLarge, ToolInfo,
    ToolReply, Unattended, http_client, http_client_within,
};
pub use error::{FailedExchange, McpError, ServeError, SettingsError};
pub use exchange::{Elicited, LogLevel};
pub use hotcell_tls::TlsFiles;
pub use server::{
    Answer, Asked, Asks, CLIENT_BACK_WITHIN, CallContext, Called, Calling, Catalog, CatalogError, Client, Content,
    ElicitError, GoingOn, HttpServer, HttpSettings, Identity, McpService, OfferedTool, SessionOwner, serve_http,
    serve_pipe, serve_stdio,
};
pub use settings::{Limits, ServerSettings, Transport, parse_servers};
