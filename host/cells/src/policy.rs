//! The one place that decides what a guest may have. Every interface and every version of the contract asks
//! [`decide`]; nothing is granted anywhere else, and what no grant covers is denied.

mod capability;
mod denial;
mod private;

use std::net::IpAddr;
use std::path::Path;

use url::{Host, Url};

use self::capability::server;
pub use self::capability::{Capability, path_grant};
pub use self::denial::Denial;
pub use self::private::is_private;
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
    let (scheme, host, port) = server_of(url)?;
    Some(decide(grants, &Request::Http { scheme, host: &host, port, method }))
}

/// Decides a connection to an address that the host of a URL was resolved to; none if it is not one of a web server.
pub fn decide_address(grants: &Grants, url: &Url, method: &str, address: IpAddr) -> Option<Decision> {
    let (scheme, host, port) = server_of(url)?;
    Some(decide(grants, &Request::Address { scheme, host: &host, port, method, address }))
}

/// The web server that a URL names.
fn server_of(url: &Url) -> Option<(Scheme, Host<String>, u16)> {
    let scheme = match url.scheme() {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        _ => return None,
    };
    Some((scheme, url.host()?.to_owned(), url.port().unwrap_or(scheme.default_port())))
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use url::Host;

    use super::{Capability, Decision, Denial, Request, decide};
    use crate::grants::{Access, Grants, Scheme};

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
}
