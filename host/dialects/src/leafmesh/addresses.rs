//! Addresses in a mesh: outside of this machine they take `https`.

use std::net::IpAddr;

use hotcell_graph::diagnostic::Span;

use super::interpolate::names_vault;
use super::reading::Reading;
use crate::document::{Fields, SourceText};

/// Reports an address that cannot be posted to: outside of this machine it takes `https`.
pub(super) fn check_url(reading: &Reading<'_, '_>, fields: &Fields<'_, '_>, name: &str, url: &SourceText) {
    check_address(reading, fields, name, (url, &url.span));
}

/// The same for one that stands somewhere else.
pub(super) fn check_address(
    reading: &Reading<'_, '_>,
    fields: &Fields<'_, '_>,
    name: &str,
    (url, span): (&str, &Span),
) {
    let text = url.trim();
    if text.is_empty() || names_vault(text) {
        return;
    }
    let Some((scheme, rest)) = text.split_once("://").filter(|(_, rest)| !rest.is_empty()) else {
        let error = fields.error(format!("`{name}` is not a valid address: `{text}`"), span);
        reading.reader.report(error.help("write it in full: `https://host/path`"));
        return;
    };
    if scheme == "https" || (scheme == "http" && is_local(rest)) {
        return;
    }
    let error = fields.error(format!("`{name}` must begin with `https://`, not `{scheme}://`"), span);
    reading.reader.report(error.help("only this machine is spoken to without encryption"));
}

/// Whether what follows the scheme of an address is this machine.
fn is_local(rest: &str) -> bool {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = match host.strip_prefix('[') {
        Some(inner) => inner.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    // A name that begins like an address of this machine is one of anybody.
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::is_local;

    #[test]
    fn only_this_machine_is_this_machine() {
        for rest in ["127.0.0.1:80/a", "127.1.2.3", "localhost:1", "[::1]:8080/x", "u:p@127.0.0.1/"] {
            assert!(is_local(rest), "{rest}");
        }
        for rest in
            ["127.evil.example", "127.0.0.1.evil.example/", "localhost.evil.example", "127.0.0.1@evil.example", ""]
        {
            assert!(!is_local(rest), "{rest}");
        }
    }
}
