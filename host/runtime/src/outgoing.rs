//! What whoever serves agents sends outside of any run: to servers that the operator named, by the same policy and connection as
//! everything else.

use std::sync::Arc;

use hotcell_budget::BudgetScope;
use hotcell_cells::{Grants, HttpGrant, HttpGrantError};
use hotcell_engine::{PortError, Web as _, WebCall, WebReply};
use url::Url;

use crate::permissions::Permissions;
use crate::web::AgentWeb;

/// Servers to which something may be sent.
#[derive(Clone, Default)]
pub struct OutgoingServers(Arc<Grants>);

impl OutgoingServers {
    /// These servers, as `https://name`, `https://name:port` or `https://*.name`. A name that leads to a private address is not one of
    /// them, unless it says so itself: `localhost`, or an address.
    ///
    /// # Errors
    /// Which of them is none.
    pub fn parse(servers: &[String]) -> Result<Self, HttpGrantError> {
        let http = servers.iter().map(|server| server.parse()).collect::<Result<Vec<HttpGrant>, _>>()?;
        Ok(OutgoingServers(Arc::new(Grants { http, ..Grants::default() })))
    }

    /// The server of this address alone, wherever its name leads: the operator named it.
    ///
    /// # Errors
    /// Why it is none.
    pub fn of_address(address: &Url) -> Result<Self, HttpGrantError> {
        let server: HttpGrant = address.origin().ascii_serialization().parse()?;
        let http = vec![HttpGrant { private: true, ..server }];
        Ok(OutgoingServers(Arc::new(Grants { http, ..Grants::default() })))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.http.is_empty()
    }

    /// Whether an address is at one of them.
    pub fn has(&self, address: &Url) -> bool {
        hotcell_cells::policy::decide_url(&self.0, address, "POST").is_some_and(|decision| decision.is_allowed())
    }

    /// Sends a request to one of them, once. A redirect is an answer.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn send(&self, call: WebCall) -> Result<WebReply, PortError> {
        let permissions = Permissions::as_given(std::path::Path::new(""));
        let web = AgentWeb { grants: self.0.clone(), permissions };
        web.send(call, Arc::new(BudgetScope::default())).await.result.map_err(|failure| failure.error)
    }
}
