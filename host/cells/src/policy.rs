//! The one place that decides what a guest may have. Every interface and every version of the contract asks
//! [`decide`]; nothing is granted anywhere else, and what no grant covers is denied.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use serde::{Deserialize, Serialize};
use url::{Host, Url};

use crate::grants::{Access, ClockGrant, DirectoryGrant, Grants, HostGrant, HttpGrant, RandomGrant, Scheme};

/// What a guest asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// A directory by the path the guest uses for it.
    Directory {
        /// The guest's path.
        guest: &'a str,
        /// What it wants to do there.
        access: Access,
    },
    /// An HTTP request, before any name is resolved.
    Http {
        /// The scheme of the URL.
        scheme: Scheme,
        /// The host of the URL.
        host: &'a Host<String>,
        /// The port of the URL.
        port: u16,
        /// The method, in capitals.
        method: &'a str,
    },
    /// A connection to an address that the host of a granted request was resolved to.
    Address {
        /// The scheme of the URL.
        scheme: Scheme,
        /// The host of the URL.
        host: &'a Host<String>,
        /// The port of the URL.
        port: u16,
        /// The method, in capitals.
        method: &'a str,
        /// The address.
        address: IpAddr,
    },
    /// A socket of its own, whatever for.
    Socket,
    /// An environment variable of the host.
    Variable {
        /// Its name.
        name: &'a str,
    },
    /// A clock that is more exact than milliseconds.
    PreciseClock,
    /// Random numbers that differ from call to call.
    FreshRandom,
    /// A placeholder for a secret.
    Secret {
        /// Its name.
        name: &'a str,
    },
    /// Putting a secret's value into a request.
    SecretTo {
        /// Its name.
        name: &'a str,
        /// The scheme of the URL.
        scheme: Scheme,
        /// The host of the URL.
        host: &'a Host<String>,
        /// The port of the URL.
        port: u16,
        /// The method, in capitals.
        method: &'a str,
    },
    /// The plugin's own store.
    KeyValue,
    /// The model of the run.
    Model,
    /// A tool of another plugin.
    Tool {
        /// Its name.
        name: &'a str,
    },
    /// A question to a person.
    Ask,
    /// Running as a program of this machine.
    Process,
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It was granted.
    Allow,
    /// It was not; this says how it can be.
    Deny(Capability),
}

impl Decision {
    /// Whether the request was granted.
    pub fn is_allowed(&self) -> bool {
        matches!(self, Self::Allow)
    }
}

/// Decides a request to a URL, before any name is resolved; none if it is not one of a web server.
pub fn decide_url(grants: &Grants, url: &Url, method: &str) -> Option<Decision> {
    let scheme = match url.scheme() {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        _ => return None,
    };
    let host = url.host()?.to_owned();
    let port = url.port().unwrap_or(scheme.default_port());
    Some(decide(grants, &Request::Http { scheme, host: &host, port, method }))
}

/// Decides a connection to an address that the host of a URL was resolved to; none if it is not one of a web server.
pub fn decide_address(grants: &Grants, url: &Url, method: &str, address: IpAddr) -> Option<Decision> {
    let scheme = match url.scheme() {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        _ => return None,
    };
    let host = url.host()?.to_owned();
    let port = url.port().unwrap_or(scheme.default_port());
    Some(decide(grants, &Request::Address { scheme, host: &host, port, method, address }))
}

/// Decides one request.
pub fn decide(grants: &Grants, request: &Request<'_>) -> Decision {
    let (allowed, capability) = match request {
        Request::Directory { guest, access } => (
            grants.fs.iter().any(|grant| grant.guest == *guest && grant.access >= *access),
            Capability::Directory { guest: (*guest).to_owned(), access: *access },
        ),
        Request::Http { scheme, host, port, method } => (
            grants.http.iter().any(|grant| covers(grant, *scheme, host, *port, method)),
            Capability::http(*scheme, host, *port, method, false),
        ),
        Request::Address { scheme, host, port, method, address } => {
            let private = is_private(*address);
            let names_it = |grant: &HttpGrant| !private || grant.private || names_private_host(grant);
            (
                grants.http.iter().any(|grant| covers(grant, *scheme, host, *port, method) && names_it(grant)),
                Capability::http(*scheme, host, *port, method, private),
            )
        }
        Request::Socket => (false, Capability::Socket),
        Request::Variable { name } => {
            (grants.env.iter().any(|granted| granted == name), Capability::Variable { name: (*name).to_owned() })
        }
        Request::PreciseClock => (grants.clock == ClockGrant::Precise, Capability::PreciseClock),
        Request::FreshRandom => (grants.random == RandomGrant::Fresh, Capability::FreshRandom),
        Request::Secret { name } => (
            grants.secret.iter().any(|grant| grant.name == *name),
            Capability::Secret { name: (*name).to_owned(), server: None },
        ),
        Request::SecretTo { name, scheme, host, port, method } => {
            let covered = |grant: &HttpGrant| covers(grant, *scheme, host, *port, method);
            (
                grants.secret.iter().any(|grant| grant.name == *name && grant.servers.iter().any(covered)),
                Capability::Secret { name: (*name).to_owned(), server: Some(server(*scheme, host, *port)) },
            )
        }
        Request::KeyValue => (grants.kv, Capability::KeyValue),
        Request::Model => (grants.llm, Capability::Model),
        Request::Tool { name } => (
            grants.tool.iter().any(|granted| granted == name || granted == "*"),
            Capability::Tool { name: (*name).to_owned() },
        ),
        Request::Ask => (grants.ask, Capability::Ask),
        Request::Process => (grants.process, Capability::Process),
    };
    if allowed { Decision::Allow } else { Decision::Deny(capability) }
}

/// Whether a server may have been sent a secret, by this call or by any other one: what it answers may hold the value.
pub(crate) fn may_hold_secret(grants: &Grants, name: &str, scheme: Scheme, host: &Host<String>, port: u16) -> bool {
    let covered = |grant: &HttpGrant| {
        let any_method = HttpGrant { methods: Vec::new(), ..grant.clone() };
        covers(&any_method, scheme, host, port, "")
    };
    grants.secret.iter().any(|grant| grant.name == name && grant.servers.iter().any(covered))
}

/// The environment variables that were granted, with the values that `lookup` finds for them; what it does not find
/// is left out.
pub fn granted_variables(grants: &Grants, lookup: impl Fn(&str) -> Option<String>) -> Vec<(String, String)> {
    let allowed =
        grants.env.iter().filter(|name| decide(grants, &Request::Variable { name: name.as_str() }).is_allowed());
    allowed.filter_map(|name| Some((name.clone(), lookup(name)?))).collect()
}

fn covers(grant: &HttpGrant, scheme: Scheme, host: &Host<String>, port: u16, method: &str) -> bool {
    let host_covered = match (&grant.host, host) {
        (HostGrant::Exactly(granted), host) => granted == host,
        (HostGrant::Below(domain), Host::Domain(name)) => {
            name.strip_suffix(domain.as_str()).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
        }
        (HostGrant::Below(_), _) => false,
    };
    host_covered
        && grant.scheme == scheme
        && grant.port == port
        && (grant.methods.is_empty() || grant.methods.iter().any(|granted| granted == method))
}

/// Whether the grant's own words name a private place: an address, or `localhost`.
fn names_private_host(grant: &HttpGrant) -> bool {
    match &grant.host {
        HostGrant::Exactly(Host::Domain(name)) => name == "localhost",
        HostGrant::Exactly(_) => true,
        HostGrant::Below(_) => false,
    }
}

/// Whether an address is anything else than a public one: loopback, private, link-local, shared, documentation,
/// multicast, reserved, or an IPv6 form that carries such an IPv4 address.
pub fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_private_v4(address),
        IpAddr::V6(address) => is_private_v6(address),
    }
}

fn is_private_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    match (a, b, c) {
        (0 | 10 | 127, _, _) => true,
        (100, 64..=127, _) => true,
        (169, 254, _) => true,
        (172, 16..=31, _) => true,
        (192, 0, 0 | 2) | (192, 88, 99) | (192, 168, _) => true,
        (198, 18..=19, _) | (198, 51, 100) | (203, 0, 113) => true,
        _ => a >= 224,
    }
}

fn is_private_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_private_v4(Ipv4Addr::new(a, b, c, d))
    };
    match segments {
        // Unspecified, loopback, mapped and compatible IPv4: the last two are never needed, so all are refused.
        [0, 0, 0, 0, 0, 0 | 0xffff, ..] => true,
        // Translated IPv4, well-known and local prefix.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => embedded(high, low),
        [0x64, 0xff9b, 1, ..] => true,
        // Discard only, documentation, benchmarking, Teredo and other protocol assignments.
        [0x100, 0, 0, 0, ..] | [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, ..] => true,
        // 6to4.
        [0x2002, high, low, ..] => embedded(high, low),
        // Everything outside global unicast: unique local, link-local, site-local, multicast, reserved.
        [first, ..] => !(0x2000..=0x3fff).contains(&first),
    }
}

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

/// Whether something that runs outside of cells may be given a path of this machine: one in a granted directory, links
/// followed.
pub fn decide_host_path(grants: &Grants, path: &Path) -> Decision {
    let real = |path: &Path| path.canonicalize().ok();
    let holds = |grant: &DirectoryGrant| {
        real(&grant.host).zip(real(path)).is_some_and(|(directory, path)| path.starts_with(directory))
    };
    match grants.fs.iter().any(holds) {
        true => Decision::Allow,
        false => Decision::Deny(Capability::Directory { guest: path.display().to_string(), access: Access::Read }),
    }
}

/// What an operator writes to grant `name` a directory of this machine.
pub fn path_grant(name: &str, directory: &str, guest: &str) -> String {
    let (name, directory, guest) = (quoted(name), quoted(directory), quoted(guest));
    format!(
        "to grant it, write into `hotcell.toml`:\n[grants.{name}]\nfs = [{{ host = {directory}, guest = {guest} }}]"
    )
}

/// Scheme, host and port as a URL.
fn server(scheme: Scheme, host: &Host<String>, port: u16) -> String {
    HttpGrant { scheme, host: HostGrant::Exactly(host.clone()), port, methods: Vec::new(), private: false }.to_string()
}

impl Capability {
    fn http(scheme: Scheme, host: &Host<String>, port: u16, method: &str, private: bool) -> Self {
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

/// A request of a guest that was denied, told to the operator with the lines that would grant it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denial {
    /// The script or plugin, by the name grants are given to.
    pub plugin: String,
    /// What it asked for.
    #[serde(flatten)]
    pub capability: Capability,
    /// Whether `hotcell.toml` grants it and does not count, because the operator does not trust it.
    #[serde(default, skip_serializing_if = "crate::grants::is_default")]
    pub held_back: bool,
}

impl Denial {
    /// Who asked for what.
    pub fn what(&self) -> String {
        format!("`{}` asked for {}, which is not granted", self.plugin, self.capability)
    }

    /// What would grant it.
    pub fn help(&self) -> String {
        if self.held_back {
            return "`hotcell.toml` would grant it, and nobody trusts that file as it is: look at it, and decide, with \
                    `hotcell trust DIR`"
                .to_owned();
        }
        match self.capability.grant_line() {
            Some(line) => format!("to grant it, write into `hotcell.toml`:\n[grants.{}]\n{line}", quoted(&self.plugin)),
            None => "nothing grants it".to_owned(),
        }
    }

    /// A request of the script or plugin of that name that was denied.
    pub fn new(plugin: impl Into<String>, capability: Capability) -> Self {
        Self { plugin: plugin.into(), capability, held_back: false }
    }

    /// The same with other texts in the place of what the guest wrote.
    pub(crate) fn map_texts(mut self, change: impl Fn(String) -> String) -> Self {
        let texts = match &mut self.capability {
            Capability::Directory { guest: one, .. }
            | Capability::Variable { name: one }
            | Capability::Tool { name: one } => {
                vec![one]
            }
            Capability::Http { server, method, .. } => vec![server, method],
            Capability::Secret { name, server } => std::iter::once(name).chain(server).collect(),
            Capability::Socket
            | Capability::PreciseClock
            | Capability::FreshRandom
            | Capability::KeyValue
            | Capability::Model
            | Capability::Ask
            | Capability::Process => Vec::new(),
        };
        for text in texts {
            *text = change(std::mem::take(text));
        }
        self
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what(), self.help())
    }
}

/// A TOML basic string.
fn quoted(text: &str) -> String {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use url::Host;

    use super::{Capability, Decision, Denial, Request, decide, is_private};
    use crate::grants::{Access, Grants, HttpGrant, Scheme};

    #[test]
    fn a_denial_says_where_what_would_grant_it_does_not_count() {
        let grants: Grants = toml::from_str(
            "http = ['https://*.x.org']\nfs = [{ host = 'h', guest = '/d' }]\nenv = ['A']\nkv = true\ntool = ['*']",
        )
        .unwrap();
        let http =
            |server: &str, private| Capability::Http { server: server.to_owned(), method: "GET".to_owned(), private };
        let directory = |access| Capability::Directory { guest: "/d".to_owned(), access };
        let name = || "A".to_owned();
        for (capability, expected) in [
            (http("https://a.x.org", false), true),
            (http("https://a.x.org", true), false),
            (http("https://y.org", false), false),
            (directory(Access::Read), true),
            (directory(Access::ReadWrite), false),
            (Capability::Variable { name: name() }, true),
            (Capability::Secret { name: name(), server: None }, false),
            (Capability::Tool { name: name() }, true),
            (Capability::KeyValue, true),
            (Capability::Model, false),
            (Capability::Ask, false),
            (Capability::Process, false),
            (Capability::Socket, false),
        ] {
            assert_eq!(capability.is_in(&grants), expected, "{capability}");
        }
        let denial = Denial { held_back: true, ..Denial::new("a.py", Capability::KeyValue) };
        let text = denial.to_string();
        assert!(text.contains("`hotcell trust DIR`") && !text.contains("write into"), "{text}");
    }

    #[test]
    fn every_text_of_a_denial_can_be_changed() {
        let name = || "hush".to_owned();
        for capability in [
            Capability::Directory { guest: name(), access: Access::Read },
            Capability::Http { server: name(), method: name(), private: false },
            Capability::Variable { name: name() },
            Capability::Secret { name: name(), server: Some(name()) },
            Capability::Tool { name: name() },
        ] {
            let denial = Denial::new("p", capability);
            assert!(denial.to_string().contains("hush"));
            let changed = denial.map_texts(|text| text.replace("hush", "(secret)"));
            assert!(!changed.to_string().contains("hush"), "{changed}");
        }
    }

    fn grants(text: &str) -> Grants {
        toml::from_str(text).unwrap_or_else(|error| panic!("`{text}`: {error}"))
    }

    fn http<'a>(scheme: Scheme, host: &'a Host<String>, port: u16, method: &'a str) -> Request<'a> {
        Request::Http { scheme, host, port, method }
    }

    #[test]
    fn nothing_is_granted_by_default() {
        let host = Host::Domain("x.org".to_owned());
        let requests = [
            Request::Directory { guest: "/data", access: Access::Read },
            http(Scheme::Https, &host, 443, "GET"),
            Request::Socket,
            Request::Variable { name: "HOME" },
            Request::PreciseClock,
            Request::Secret { name: "KEY" },
            Request::SecretTo { name: "KEY", scheme: Scheme::Https, host: &host, port: 443, method: "GET" },
            Request::KeyValue,
            Request::Model,
            Request::Tool { name: "search" },
            Request::Ask,
            Request::Process,
        ];
        for request in requests {
            assert!(!decide(&Grants::default(), &request).is_allowed(), "{request:?}");
        }
    }

    #[test]
    fn attack_47_a_server_is_compared_by_scheme_host_port_and_method() {
        let grants =
            grants("http = ['https://api.x.org', 'https://*.y.org', { url = 'http://z.org:81', methods = ['get'] }]");
        let cases = [
            (Scheme::Https, "api.x.org", 443, "DELETE", true),
            (Scheme::Http, "api.x.org", 443, "GET", false),
            (Scheme::Https, "api.x.org", 444, "GET", false),
            (Scheme::Https, "api.x.org.", 443, "GET", false),
            (Scheme::Https, "evil-api.x.org", 443, "GET", false),
            (Scheme::Https, "x.org", 443, "GET", false),
            (Scheme::Https, "a.y.org", 443, "GET", true),
            (Scheme::Https, "a.b.y.org", 443, "GET", true),
            (Scheme::Https, "y.org", 443, "GET", false),
            (Scheme::Https, ".y.org", 443, "GET", false),
            (Scheme::Https, "evily.org", 443, "GET", false),
            (Scheme::Http, "z.org", 81, "GET", true),
            (Scheme::Http, "z.org", 81, "POST", false),
        ];
        for (scheme, host, port, method, expected) in cases {
            let host = Host::Domain(host.to_owned());
            let decision = decide(&grants, &http(scheme, &host, port, method));
            assert_eq!(decision.is_allowed(), expected, "{} {host} {port} {method}", scheme.name());
        }
    }

    #[test]
    fn attack_43_44_only_public_addresses_are_public() {
        let private = [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.8.8.8",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:8.8.8.8",
            "64:ff9b::127.0.0.1",
            "64:ff9b:1::8.8.8.8",
            "2002:7f00:1::",
            "2001::1",
            "2001:db8::1",
            "100::1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "5f00::1",
        ];
        let public = ["1.1.1.1", "8.8.8.8", "172.32.0.1", "192.0.1.1", "2606:4700::1111", "64:ff9b::8.8.8.8"];
        for address in private {
            assert!(address.parse().is_ok_and(is_private), "{address} counts as public");
        }
        for address in public {
            assert!(address.parse().is_ok_and(|address| !is_private(address)), "{address} counts as private");
        }
    }

    #[test]
    fn attack_43_a_name_may_lead_into_a_private_network_only_when_that_was_granted() {
        let cases = [
            ("http = ['http://x.org']", "x.org", "93.184.216.34", true),
            ("http = ['http://x.org']", "x.org", "127.0.0.1", false),
            ("http = ['http://x.org']", "x.org", "::ffff:10.0.0.1", false),
            ("http = [{ url = 'http://x.org', private = true }]", "x.org", "10.0.0.1", true),
            ("http = ['http://localhost']", "localhost", "127.0.0.1", true),
            ("http = ['http://*.localhost']", "a.localhost", "127.0.0.1", false),
            ("http = ['http://127.0.0.1']", "127.0.0.1", "127.0.0.1", true),
            ("http = ['http://127.0.0.1']", "127.0.0.2", "127.0.0.2", false),
        ];
        for (granted, host, address, expected) in cases {
            let (host, address) = match (Host::parse(host), address.parse()) {
                (Ok(host), Ok(address)) => (host, address),
                wrong => panic!("{wrong:?}"),
            };
            let request = Request::Address { scheme: Scheme::Http, host: &host, port: 80, method: "GET", address };
            assert_eq!(decide(&grants(granted), &request).is_allowed(), expected, "{granted} {host} {address}");
        }
    }

    #[test]
    fn read_access_does_not_cover_writing() {
        let grants = grants("fs = [{ host = 'a', guest = '/a' }, { host = 'b', guest = '/b', access = 'read-write' }]");
        for (guest, access, expected) in [
            ("/a", Access::Read, true),
            ("/a", Access::ReadWrite, false),
            ("/b", Access::ReadWrite, true),
            ("/b", Access::Read, true),
            ("/c", Access::Read, false),
        ] {
            let decision = decide(&grants, &Request::Directory { guest, access });
            assert_eq!(decision.is_allowed(), expected, "{guest} {access:?}");
        }
    }

    #[test]
    fn only_granted_variables_are_looked_up() {
        let grants = grants("env = ['LANG', 'UNSET']");
        let host = |name: &str| match name {
            "LANG" => Some("de".to_owned()),
            "UNSET" => None,
            other => panic!("`{other}` was not granted"),
        };
        assert_eq!(super::granted_variables(&grants, host), [("LANG".to_owned(), "de".to_owned())]);
    }

    /// What a denial prints can be pasted: it parses, and it grants the request.
    #[test]
    fn attack_42_a_denial_prints_the_grant_that_allows_it() -> Result<(), Box<dyn std::error::Error>> {
        let host = Host::Domain("api.example.org".to_owned());
        let address = "10.0.0.1".parse()?;
        let requests = [
            http(Scheme::Https, &host, 8443, "GET"),
            Request::Address { scheme: Scheme::Https, host: &host, port: 443, method: "GET", address },
            Request::Variable { name: "A \"quoted\\ name\n" },
            Request::Directory { guest: "/data", access: Access::ReadWrite },
            Request::PreciseClock,
        ];
        for request in requests {
            let Decision::Deny(capability) = decide(&Grants::default(), &request) else {
                panic!("{request:?} was allowed");
            };
            let text = Denial::new("scripts/a \"b\".py", capability).to_string();
            let (_, lines) = text.split_once(":\n").ok_or("no lines")?;
            let file: BTreeMap<String, BTreeMap<String, Grants>> = toml::from_str(lines)?;
            assert!(decide(&file["grants"]["scripts/a \"b\".py"], &request).is_allowed(), "{text}");
        }
        Ok(())
    }

    #[test]
    fn a_denial_is_written_in_full() -> Result<(), Box<dyn std::error::Error>> {
        let grant: HttpGrant = "https://api.example.org".parse()?;
        let capability = Capability::Http { server: grant.to_string(), method: "GET".to_owned(), private: false };
        let denial = Denial::new("scripts/fetch.py", capability);
        let expected = "`scripts/fetch.py` asked for `http` for `GET https://api.example.org`, which is not granted; \
                        to grant it, write into `hotcell.toml`:\n[grants.\"scripts/fetch.py\"]\n\
                        http = [\"https://api.example.org\"]";
        assert_eq!(denial.to_string(), expected);
        assert_eq!(
            serde_json::to_string(&denial)?,
            r#"{"plugin":"scripts/fetch.py","capability":"http","server":"https://api.example.org","method":"GET","private":false}"#
        );
        Ok(())
    }
}
