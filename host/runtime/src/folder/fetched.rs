//! Texts at addresses that an agent's file names.

use std::string::FromUtf8Error;
use std::sync::Arc;

use hotcell_budget::{Budget, Bytes};
use hotcell_cells::{Terms, fetch};
use thiserror::Error;
use url::Url;

use super::{AgentSurroundings, MAX_TEXT};
use crate::permissions::FILE_GRANTS;
use crate::servers::ThreadError;

/// Why there is no text at an address.
#[derive(Debug, Error)]
pub(super) enum FetchError {
    #[error("it is not a valid address: {0}")]
    NoAddress(#[source] url::ParseError),
    #[error("its folder is not a valid address: {0}")]
    NoFolder(#[source] url::ParseError),
    #[error("it leads out of its folder")]
    LeadsOut,
    #[error("the revision has no text of this address")]
    NotKept,
    #[error(transparent)]
    Thread(#[from] ThreadError),
    #[error(transparent)]
    Fetch(#[from] hotcell_cells::FetchError),
    #[error("it is not UTF-8 text")]
    NotText(#[from] FromUtf8Error),
}

impl AgentSurroundings<'_> {
    /// The text at an address, if the operator granted its server to the file.
    pub(super) fn fetch(&self, url: &str, within: Option<&str>) -> Result<Arc<str>, FetchError> {
        // Parsed, an address has no steps up any more.
        let address = Url::parse(url).map_err(FetchError::NoAddress)?;
        if let Some(within) = within {
            let folder = format!("{}/", within.trim_end_matches('/'));
            let folder = Url::parse(&folder).map_err(FetchError::NoFolder)?;
            if !address.as_str().starts_with(folder.as_str()) {
                return Err(FetchError::LeadsOut);
            }
        }
        let subject = format!("fetch {address}");
        let text = self.context.sources().answer(&subject, || FetchError::NotKept, || self.fetch_now(&address))?;
        Ok(text.into())
    }

    fn fetch_now(&self, address: &Url) -> Result<String, FetchError> {
        let address = address.clone();
        let budget = Budget { http_requests: 8, http_bytes: Bytes(MAX_TEXT), ..Budget::default() };
        let terms =
            Terms { grants: self.reach.settings.grants_of_file(FILE_GRANTS), budget, ..Terms::new(FILE_GRANTS) };
        let fetched = self.context.connections().wait_for(async move { fetch(&terms, address.as_str()).await })??;
        Ok(String::from_utf8(fetched.bytes)?)
    }
}
