//! Where a request goes, as the host reads it, whatever the guest made of the URL.

use http::Request as HttpRequest;
use url::{Host, Url};
use wasmtime_wasi_http::{Error, WasiBody};

use crate::grants::Scheme;

/// Where a request goes, parsed once.
pub(super) struct Destination {
    pub(super) scheme: Scheme,
    pub(super) host: Host<String>,
    pub(super) port: u16,
}

impl Destination {
    pub(super) fn of(request: &HttpRequest<WasiBody>) -> Result<Self, Error> {
        let uri = request.uri();
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(Error::HttpRequestUriInvalid);
        };
        let url = Url::parse(&format!("{scheme}://{authority}/")).map_err(|_| Error::HttpRequestUriInvalid)?;
        if !url.username().is_empty() || url.password().is_some() || url.path() != "/" {
            return Err(Error::HttpRequestUriInvalid);
        }
        let scheme = match url.scheme() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            _ => return Err(Error::HttpProtocolError),
        };
        let host = url.host().ok_or(Error::HttpRequestUriInvalid)?.to_owned();
        Ok(Self { scheme, host, port: url.port().unwrap_or(scheme.default_port()) })
    }

    /// The value of the `host` header.
    pub(super) fn authority(&self) -> String {
        if self.port == self.scheme.default_port() {
            return self.host.to_string();
        }
        format!("{}:{}", self.host, self.port)
    }
}
