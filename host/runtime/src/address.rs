//! Addresses that files name.

use thiserror::Error;
use url::Url;

/// Why a text is not the address of a web server.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum AddressError {
    /// It is no address
    #[error("`{address}` is not a valid address: {cause}")]
    Form {
        /// The text
        address: String,
        /// Why not
        #[source]
        cause: url::ParseError,
    },
    /// It is an address of something else
    #[error("`{address}` is not the address of a web server")]
    NoWebServer {
        /// The text
        address: String,
    },
}

/// The address that a text is.
pub(crate) fn parse_address(address: &str) -> Result<Url, AddressError> {
    Url::parse(address).map_err(|cause| AddressError::Form { address: address.to_owned(), cause })
}
