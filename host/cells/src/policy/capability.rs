//! What a guest can be denied, in words, the line that grants it, and who has it.

use std::fmt;
use std::net::Ipv4Addr;
use std::path::Path;

use serde::{Deserialize, Serialize};
use url::{Host, Url};

use super::{Request, decide, decide_address, decide_url};
use crate::grants::{Access, ClockGrant, Grants, HostGrant, HttpGrant, Scheme};
use crate::requests::Requests;

/// A capability that was denied, with what granting it needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "capability", rename_all = "kebab-case")]
pub enum Capability {
    /// A directory.
    #[serde(rename = "fs")]
    Directory {
        /// The guest's path.
        guest: String,
        /// What it wanted to do there.
        access: Access,
    },
    /// An HTTP request.
    Http {
        /// Scheme, host and port as a URL.
        server: String,
        /// The method.
        method: String,
        /// The name led to an address inside a private network.
        private: bool,
    },
    /// A raw socket or a name look-up, which nothing grants.
    Socket,
    /// An environment variable.
    #[serde(rename = "env")]
    Variable {
        /// Its name.
        name: String,
    },
    /// An exact clock.
    #[serde(rename = "clock")]
    PreciseClock,
    /// Random numbers that differ.
    #[serde(rename = "random")]
    FreshRandom,
    /// A secret.
    Secret {
        /// Its name.
        name: String,
        /// The server it was to be sent to; none where only its placeholder was asked for.
        server: Option<String>,
    },
    /// The plugin's own store.
    #[serde(rename = "kv")]
    KeyValue,
    /// The model of the run.
    #[serde(rename = "llm")]
    Model,
    /// A tool of another plugin.
    Tool {
        /// Its name.
        name: String,
    },
    /// A question to a person.
    Ask,
    /// Running as a program of this machine.
    Process,
}

/// What an operator writes to grant `name` a directory of this machine.
pub fn path_grant(name: &str, directory: &str, guest: &str) -> String {
    let (name, directory, guest) = (quoted(name), quoted(directory), quoted(guest));
    format!(
        "to grant it, write into `hotcell.toml`:\n[grants.{name}]\nfs = [{{ host = {directory}, guest = {guest} }}]"
    )
}

/// Scheme, host and port as a URL.
pub(super) fn server(scheme: Scheme, host: &Host<String>, port: u16) -> String {
    HttpGrant { scheme, host: HostGrant::Exactly(host.clone()), port, methods: Vec::new(), private: false }.to_string()
}

impl Capability {
    pub(super) fn http(scheme: Scheme, host: &Host<String>, port: u16, method: &str, private: bool) -> Self {
        Self::Http { server: server(scheme, host, port), method: method.to_owned(), private }
    }

    /// The name of the grant that has it: what of it is asked for is left out.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Directory { .. } => "fs",
            Self::Http { .. } => "http",
            Self::Socket => "socket",
            Self::Variable { .. } => "env",
            Self::PreciseClock => "clock",
            Self::FreshRandom => "random",
            Self::Secret { .. } => "secret",
            Self::KeyValue => "kv",
            Self::Model => "llm",
            Self::Tool { .. } => "tool",
            Self::Ask => "ask",
            Self::Process => "process",
        }
    }

    /// The line of `hotcell.toml` that grants it, where there is one.
    pub fn grant_line(&self) -> Option<String> {
        match self {
            Self::Directory { guest, access } => {
                let access = match access {
                    Access::Read => "read",
                    Access::ReadWrite => "read-write",
                };
                let guest = quoted(guest);
                Some(format!("fs = [{{ host = \"A DIRECTORY\", guest = {guest}, access = \"{access}\" }}]"))
            }
            Self::Http { server, private: true, .. } => {
                Some(format!("http = [{{ url = {}, private = true }}]", quoted(server)))
            }
            Self::Http { server, .. } => Some(format!("http = [{}]", quoted(server))),
            Self::Socket => None,
            Self::Variable { name } => Some(format!("env = [{}]", quoted(name))),
            Self::PreciseClock => Some("clock = \"precise\"".to_owned()),
            Self::FreshRandom => Some("random = \"fresh\"".to_owned()),
            Self::Secret { name, server } => {
                let server = quoted(server.as_deref().unwrap_or("https://A SERVER"));
                Some(format!("secret = [{{ name = {}, servers = [{server}] }}]", quoted(name)))
            }
            Self::KeyValue => Some("kv = true".to_owned()),
            Self::Model => Some("llm = true".to_owned()),
            Self::Tool { name } => Some(format!("tool = [{}]", quoted(name))),
            Self::Ask => Some("ask = true".to_owned()),
            Self::Process => Some("process = true".to_owned()),
        }
    }

    /// Whether these grants have it.
    pub fn is_in(&self, grants: &Grants) -> bool {
        let request = match self {
            Self::Directory { guest, access } => Request::Directory { guest, access: *access },
            Self::Http { server, method, private } => {
                let Ok(url) = Url::parse(server) else { return false };
                let decision = match private {
                    // Any address of this machine stands for those that need a grant of their own.
                    true => decide_address(grants, &url, method, Ipv4Addr::LOCALHOST.into()),
                    false => decide_url(grants, &url, method),
                };
                return decision.is_some_and(|decision| decision.is_allowed());
            }
            Self::Variable { name } => Request::Variable { name },
            Self::Secret { name, .. } => Request::Secret { name },
            Self::Tool { name } => Request::Tool { name },
            Self::PreciseClock => Request::PreciseClock,
            Self::FreshRandom => Request::FreshRandom,
            Self::KeyValue => Request::KeyValue,
            Self::Model => Request::Model,
            Self::Ask => Request::Ask,
            Self::Process => Request::Process,
            Self::Socket => Request::Socket,
        };
        decide(grants, &request).is_allowed()
    }

    /// Whether a plugin with these requests asks for it. What a plugin does not ask for cannot be granted to it.
    pub fn is_asked_for(&self, requests: &Requests) -> bool {
        match self {
            Self::Directory { guest, access } => {
                requests.fs.iter().any(|asked| asked.access >= *access && Path::new(guest).starts_with(&asked.guest))
            }
            Self::Http { server, method, .. } => server
                .parse::<HttpGrant>()
                .is_ok_and(|server| requests.asks_for_server(&HttpGrant { methods: vec![method.clone()], ..server })),
            Self::Variable { name } => requests.env.contains(name),
            Self::PreciseClock => requests.clock == ClockGrant::Precise,
            Self::Secret { name, .. } => requests.secret.iter().any(|asked| asked.name == *name),
            Self::KeyValue => requests.kv,
            Self::Model => requests.llm,
            Self::Tool { name } => requests.tool.iter().any(|asked| asked == name || asked == "*"),
            Self::Ask => requests.ask,
            // Asking has nothing to do with these.
            Self::Socket | Self::FreshRandom | Self::Process => true,
        }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory { guest, access: Access::Read } => write!(f, "`fs` to read `{guest}`"),
            Self::Directory { guest, access: Access::ReadWrite } => write!(f, "`fs` to write `{guest}`"),
            Self::Http { server, method, private: false } => write!(f, "`http` for `{method} {server}`"),
            Self::Http { server, method, private: true } => {
                write!(f, "`http` for `{method} {server}`, which leads into a private network")
            }
            Self::Socket => f.write_str("a raw socket"),
            Self::Variable { name } => write!(f, "`env` for `{name}`"),
            Self::PreciseClock => f.write_str("`clock` in full precision"),
            Self::FreshRandom => f.write_str("`random` numbers that differ"),
            Self::Secret { name, server: None } => write!(f, "`secret` `{name}`"),
            Self::Secret { name, server: Some(server) } => write!(f, "`secret` `{name}` for `{server}`"),
            Self::KeyValue => f.write_str("`kv`, a store of its own"),
            Self::Model => f.write_str("`llm`, the model of the run"),
            Self::Tool { name } => write!(f, "`tool` `{name}`"),
            Self::Ask => f.write_str("`ask`, questions to a person"),
            Self::Process => f.write_str("`process`, running as a program of this machine"),
        }
    }
}

/// A TOML basic string.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            control if control.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(control))),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}
