//! The names under which a server may be addressed.
//!
//! A web page anywhere can make a browser send requests to a name that its owner has resolve to this machine. Such requests
//! name that name as their `Host`, and are told from those of a person by nothing else.

use std::fmt;

use http::header::HOST;
use http::uri::Authority;
use http::{HeaderMap, Uri};

/// The names under which a server may be addressed.
#[derive(Clone, Debug)]
pub struct Hosts {
    /// As `name` or `name:port`, in small letters
    names: Vec<String>,
}

/// Why a request is not answered under the name that it was sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostRefused {
    /// It has no `Host`, several of them, or one that is no name
    Missing,
    /// It is not one of this server's names
    Unknown,
}

impl fmt::Display for HostRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HostRefused::Missing => "the request has no usable `Host` header",
            HostRefused::Unknown => "the `Host` header is not one of this server's names",
        })
    }
}

impl Hosts {
    /// The names of this machine as it sees itself, and further ones, as `name` or `name:port`.
    pub fn local_and(further: &[String]) -> Self {
        let local = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned);
        Hosts { names: local.into_iter().chain(further.iter().map(|name| name.to_ascii_lowercase())).collect() }
    }

    /// Whether a request was sent to one of the names.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), HostRefused> {
        let mut named = headers.get_all(HOST).iter();
        let (host, more) = (named.next(), named.next());
        let host = match (uri.authority(), host, more) {
            (_, _, Some(_)) => return Err(HostRefused::Missing),
            (Some(authority), _, _) => Some(authority.clone()),
            (None, Some(host), None) => host.to_str().ok().and_then(|host| host.parse::<Authority>().ok()),
            (None, None, None) => None,
        };
        let host = host.filter(|host| !host.as_str().contains('@')).ok_or(HostRefused::Missing)?;
        let (whole, name) = (host.as_str().to_ascii_lowercase(), host.host().to_ascii_lowercase());
        match self.names.iter().any(|known| *known == name || *known == whole) {
            true => Ok(()),
            false => Err(HostRefused::Unknown),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(hosts: &[&str]) -> Result<(), HostRefused> {
        let known = Hosts::local_and(&["hotcell.example.org".to_owned(), "other.example:8443".to_owned()]);
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(HOST, host.parse().expect("a header"));
        }
        known.check(&Uri::from_static("/runs"), &headers)
    }

    #[test]
    fn names_of_this_server_are_taken_with_any_port_unless_one_was_said() {
        for host in
            ["localhost", "LOCALHOST:18820", "127.0.0.1:1", "[::1]:9", "hotcell.example.org", "other.example:8443"]
        {
            assert_eq!(check(&[host]), Ok(()), "{host}");
        }
    }

    #[test]
    fn every_other_name_is_refused() {
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "other.example",
            "other.example:1",
            "127.0.0.2",
            "[::2]",
        ] {
            assert_eq!(check(&[host]), Err(HostRefused::Unknown), "{host}");
        }
        for hosts in
            [&[][..], &["localhost", "localhost"], &[""], &["a b"], &["evil.example@localhost"], &["localhost/x"]]
        {
            assert_eq!(check(hosts), Err(HostRefused::Missing), "{hosts:?}");
        }
    }
}
