//! What the operator granted to a script or plugin, in the shape it has in `hotcell.toml`.
//!
//! ```toml
//! [grants."scripts/fetch.py"]
//! http = ["https://api.example.org", { url = "http://localhost:8080", methods = ["GET"] }]
//! env = ["LANG"]
//! fs = [{ host = "data", guest = "/data" }, { host = "out", guest = "/out", access = "read-write", max_files = 100 }]
//! clock = "precise"
//! random = "seeded"
//! secret = [{ name = "API_KEY", servers = ["https://api.example.org"] }]
//! kv = true
//! llm = true
//! tool = ["search"]
//! ask = true
//!
//! [grants."mcp:library"]             # a server that is a program of this machine
//! process = true
//! ```
//!
//! This module holds and parses grants; what a grant allows is decided in [`policy`](crate::policy) alone.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use hotcell_budget::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use url::{Host, Url};

/// Everything granted to one script or plugin. The default is nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Grants {
    /// Directories.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fs: Vec<DirectoryGrant>,
    /// Servers that may be asked over HTTP.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub http: Vec<HttpGrant>,
    /// Environment variables of the host, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// How exactly the time may be told.
    #[serde(skip_serializing_if = "is_default")]
    pub clock: ClockGrant,
    /// Where random numbers come from.
    #[serde(skip_serializing_if = "is_default")]
    pub random: RandomGrant,
    /// Secrets whose placeholders are replaced in HTTP requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secret: Vec<SecretGrant>,
    /// A store of its own that outlives the call.
    #[serde(skip_serializing_if = "is_default")]
    pub kv: bool,
    /// The model of the run.
    #[serde(skip_serializing_if = "is_default")]
    pub llm: bool,
    /// Tools of other plugins, by name; `*` stands for all within reach of the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool: Vec<String>,
    /// Questions to the person the graph works for.
    #[serde(skip_serializing_if = "is_default")]
    pub ask: bool,
    /// Running as a program of this machine, with everything that the person who runs hotcell may do: for servers that
    /// are programs. No cell can be granted this.
    #[serde(skip_serializing_if = "is_default")]
    pub process: bool,
}

/// A secret that a guest may send to some servers without ever seeing it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretGrant {
    /// The name of the secret.
    pub name: String,
    /// Where it may be sent. A request to such a server needs its own grant as well.
    pub servers: Vec<HttpGrant>,
}

pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Grants {
    /// Whether a call with them can change something that outlives it.
    pub fn changes_something(&self) -> bool {
        let writes = self.fs.iter().any(|grant| grant.access == Access::ReadWrite);
        let reads = |method: &String| matches!(method.as_str(), "GET" | "HEAD");
        let sends = self.http.iter().any(|grant| grant.methods.is_empty() || !grant.methods.iter().all(reads));
        writes || sends || self.kv || self.process || !self.tool.is_empty()
    }

    /// Whether a call with them can reach something beyond this machine.
    pub fn reaches_out(&self) -> bool {
        !self.http.is_empty() || self.llm || self.process || !self.tool.is_empty()
    }

    /// The same grants with relative host directories taken from `folder`, the folder of `hotcell.toml`.
    #[must_use]
    pub fn relative_to(mut self, folder: &Path) -> Self {
        for grant in &mut self.fs {
            grant.host = folder.join(&grant.host);
        }
        self
    }
}

/// A directory of the host that a guest may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirectoryGrant {
    /// The directory on the host, relative to the folder of `hotcell.toml`.
    pub host: PathBuf,
    /// The absolute path under which the guest finds it, such as `/data`.
    pub guest: String,
    /// What may be done there; reading, if nothing is said.
    #[serde(default)]
    pub access: Access,
    /// Bytes that the directory may hold with all that is in it, for guests that write there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<Bytes>,
    /// Files, directories and links that the directory may hold with all that is in it, for guests that write there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_files: Option<u64>,
}

impl DirectoryGrant {
    /// A directory without limits of its own.
    pub fn new(host: impl Into<PathBuf>, guest: impl Into<String>, access: Access) -> Self {
        Self { host: host.into(), guest: guest.into(), access, max_bytes: None, max_files: None }
    }
}

/// What a guest may do in a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// List and read.
    #[default]
    Read,
    /// List, read, create, change and delete.
    ReadWrite,
}

/// How exactly a guest may tell the time. A clock cannot be refused, because reading it has no way to fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClockGrant {
    /// In whole milliseconds: enough for dates, too coarse to measure the host with.
    #[default]
    Coarse,
    /// As exactly as the host can.
    Precise,
}

/// Where a guest's random numbers come from. They cannot be refused, because asking has no way to fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RandomGrant {
    /// A generator fit for secrets, seeded by the operating system for every call.
    #[default]
    Fresh,
    /// The same numbers on every call.
    Seeded,
}

/// A server that may be asked over HTTP: scheme, host and port, and the methods.
///
/// It is written as a URL without a path, or as a table with `url`, `methods` and `private`. A host that begins
/// with `*.` stands for every name below it. Addresses inside private networks are only reached when the URL names
/// the address itself or `localhost`, or when `private = true`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpGrant {
    /// `http` or `https`.
    pub scheme: Scheme,
    /// The host.
    pub host: HostGrant,
    /// The port; that of the scheme, if the URL names none.
    pub port: u16,
    /// Methods in capitals; empty means all.
    pub methods: Vec<String>,
    /// Whether the name may lead to an address of a private network.
    pub private: bool,
}

/// A scheme that HTTP requests may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Plain text.
    Http,
    /// Over TLS.
    Https,
}

impl Scheme {
    /// The scheme as it stands in a URL.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port that a URL without one means.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// The hosts that a grant covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostGrant {
    /// This host, as the URL standard writes it: lower case, punycode, canonical addresses.
    Exactly(Host<String>),
    /// Every name that ends in a dot and this domain.
    Below(String),
}

impl fmt::Display for HttpGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.scheme.name())?;
        match &self.host {
            HostGrant::Exactly(host) => write!(f, "{host}")?,
            HostGrant::Below(domain) => write!(f, "*.{domain}")?,
        }
        if self.port == self.scheme.default_port() {
            return Ok(());
        }
        write!(f, ":{}", self.port)
    }
}

/// What is wrong with the URL of a grant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not a server: {reason}; write it like `https://api.example.org` or `http://localhost:8080`")]
pub struct HttpGrantError {
    given: String,
    reason: String,
}

impl FromStr for HttpGrant {
    type Err = HttpGrantError;

    fn from_str(given: &str) -> Result<Self, HttpGrantError> {
        let wrong = |reason: String| HttpGrantError { given: given.to_owned(), reason };
        let (below, plain) = match given.split_once("://*.") {
            Some((scheme, rest)) => (true, format!("{scheme}://{rest}")),
            None => (false, given.to_owned()),
        };
        let url = Url::parse(&plain).map_err(|error| {
            wrong(match error {
                url::ParseError::RelativeUrlWithoutBase => "it does not begin with `https://` or `http://`".to_owned(),
                other => other.to_string(),
            })
        })?;
        let scheme = match url.scheme() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            other => return Err(wrong(format!("the scheme `{other}` is neither `http` nor `https`"))),
        };
        let host = url.host().ok_or_else(|| wrong("it does not name a host".to_owned()))?;
        if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("paths cannot be granted".to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("it has a user name or password".to_owned()));
        }
        // A parser of addresses takes a `*` for a letter, and writes it where it would be read as more than that.
        if matches!(&host, Host::Domain(name) if name.contains('*')) {
            return Err(wrong("a `*` stands right after `://` and before a dot, or nowhere".to_owned()));
        }
        let host = match (below, host) {
            (false, host) => HostGrant::Exactly(host.to_owned()),
            (true, Host::Domain(domain)) => HostGrant::Below(domain.to_owned()),
            (true, _) => return Err(wrong("`*.` stands before an address".to_owned())),
        };
        let port = url.port().unwrap_or(scheme.default_port());
        Ok(Self { scheme, host, port, methods: Vec::new(), private: false })
    }
}

/// How a grant is written when more than the URL is said.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HttpGrantTable {
    url: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    methods: Vec<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    private: bool,
}

impl<'de> Deserialize<'de> for HttpGrant {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrTable;

        impl<'de> serde::de::Visitor<'de> for TextOrTable {
            type Value = HttpGrant;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a URL or a table with `url`, `methods` and `private`")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<HttpGrant, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<HttpGrant, A::Error> {
                let table = HttpGrantTable::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
                let mut grant: HttpGrant = table.url.parse().map_err(serde::de::Error::custom)?;
                grant.methods = table.methods.into_iter().map(|method| method.to_ascii_uppercase()).collect();
                grant.private = table.private;
                Ok(grant)
            }
        }

        deserializer.deserialize_any(TextOrTable)
    }
}

impl Serialize for HttpGrant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.methods.is_empty() && !self.private {
            return serializer.collect_str(self);
        }
        HttpGrantTable { url: self.to_string(), methods: self.methods.clone(), private: self.private }
            .serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::{Access, Grants, HttpGrant};

    #[test]
    fn grants_are_read_from_their_documented_form() -> Result<(), toml::de::Error> {
        let text = r#"
            [grants."scripts/fetch.py"]
            http = ["https://API.example.org", { url = "http://localhost:8080", methods = ["get"] }]
            env = ["LANG"]
            fs = [{ host = "data", guest = "/data" }, { host = "/out", guest = "/out", access = "read-write" }]
            clock = "precise"
        "#;
        let file: BTreeMap<String, BTreeMap<String, Grants>> = toml::from_str(text)?;
        let grants = file["grants"]["scripts/fetch.py"].clone().relative_to(Path::new("/agent"));
        assert_eq!(grants.http[0].to_string(), "https://api.example.org");
        assert_eq!(
            (grants.http[1].to_string().as_str(), grants.http[1].methods.as_slice()),
            ("http://localhost:8080", ["GET".to_owned()].as_slice())
        );
        assert_eq!((grants.fs[0].host.as_path(), grants.fs[0].access), (Path::new("/agent/data"), Access::Read));
        assert_eq!((grants.fs[1].host.as_path(), grants.fs[1].access), (Path::new("/out"), Access::ReadWrite));
        Ok(())
    }

    #[test]
    fn a_server_is_written_one_way_and_nonsense_is_refused() {
        let good = [
            ("https://x.org", "https://x.org"),
            ("https://x.org:443/", "https://x.org"),
            ("http://X.ORG:8080", "http://x.org:8080"),
            ("https://*.x.org", "https://*.x.org"),
            ("https://bücher.example", "https://xn--bcher-kva.example"),
            ("http://0x7f.1", "http://127.0.0.1"),
            ("http://[::1]:3000", "http://[::1]:3000"),
        ];
        for (given, written) in good {
            assert_eq!(given.parse::<HttpGrant>().map(|grant| grant.to_string()).as_deref(), Ok(written));
        }
        let bad =
            ["", "x.org", "ftp://x.org", "https://", "https://x.org/path", "https://u:p@x.org", "http://*.1.2.3.4"];
        // What was read as one name must not be written as a pattern.
        let stars = [
            "https:///*.x.org",
            "https:*.x.org",
            "https://%2a.x.org",
            "https://*.*.x.org",
            "https://a*.x.org",
            "https://*",
        ];
        for given in bad.into_iter().chain(stars) {
            assert!(given.parse::<HttpGrant>().is_err(), "`{given}` was accepted");
        }
    }

    #[test]
    fn an_unknown_grant_is_an_error() {
        assert!(toml::from_str::<Grants>("network = true").is_err());
        assert!(toml::from_str::<Grants>("http = [{ uri = 'https://x.org' }]").is_err());
    }
}
