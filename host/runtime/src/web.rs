//! What an agent's own file sends: requests over HTTP, and the addresses of models that it names. Both go by the grants of
//! the agent (`[grants.agent]`) and through the one policy.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hotcell_budget::{Account, Budget, BudgetScope, Bytes};
use hotcell_cells::policy::{self, Decision, decide_address, decide_url};
use hotcell_cells::{Denial, Grants, OwnRequest, SendError, Terms};
use hotcell_engine::{PortError, Web, WebCall, WebFailure, WebReply, WebReport};
use hotcell_graph::Value;
use hotcell_graph::types::to_text;
use hotcell_models::{Model, ModelError, ModelName, OnText, Providers, Reply, Request, Server};
use thiserror::Error;

use crate::address::{AddressError, parse_address};
use crate::permissions::{FILE_GRANTS, Permissions, Revoked};

/// The type of a body that is a form.
const FORM: &str = "application/x-www-form-urlencoded";
/// How long one request may take that does not say it.
const LIMIT: Duration = Duration::from_secs(60);
/// How long one may take at most.
const LONGEST: Duration = Duration::from_secs(600);
/// Bytes that one request may send, and that its answer may have.
const MOST: Bytes = Bytes(16 << 20);

/// Sends what the grants of an agent allow.
pub(crate) struct AgentWeb {
    pub(crate) grants: Arc<Grants>,
    pub(crate) permissions: Arc<Permissions>,
}

#[async_trait]
impl Web for AgentWeb {
    async fn send(&self, call: WebCall, budget_scope: Arc<BudgetScope>) -> WebReport {
        let failed = |error: PortError| WebReport { result: Err(error.into()), account: Account::default() };
        let wall_clock = call.time.map_or(LIMIT, |time| time.min(LONGEST));
        let budget = Budget { http_requests: 1, http_bytes: MOST, wall_clock, ..Budget::default() };
        let budget = match budget_scope.clamp(&budget) {
            Ok(budget) => budget,
            Err(overdrawn) => return failed(PortError::new(overdrawn)),
        };
        let request = match to_request(call) {
            Ok(request) => request,
            Err(error) => return failed(PortError::new(error)),
        };
        let grants = match self.permissions.grants(FILE_GRANTS, &self.grants) {
            Ok(grants) => grants,
            Err(revoked) => return failed(PortError::new(revoked)),
        };
        let terms = Terms { grants, budget, ..Terms::new(FILE_GRANTS) };
        let (result, usage) = hotcell_cells::send(&terms, request).await;
        budget_scope.spend(&usage);
        let reply = |reply: hotcell_cells::OwnReply| match String::from_utf8(reply.body) {
            Ok(body) => Ok(WebReply { status: reply.status, body }),
            Err(_) => Err(PortError::new("the answer is not UTF-8 text").into()),
        };
        let failure = |error: SendError| WebFailure { may_pass: error.may_pass(), error: PortError::new(error) };
        WebReport { result: result.map_err(failure).and_then(reply), account: Account::of(FILE_GRANTS, usage) }
    }
}

/// The request as it goes over the wire: its query behind its address, its body as JSON or as a form.
fn to_request(call: WebCall) -> Result<OwnRequest, AddressError> {
    let WebCall { method, url, query, mut headers, body, time: _ } = call;
    let mut url = parse_address(&url)?;
    if !query.is_empty() {
        url.query_pairs_mut().extend_pairs(query);
    }
    let kind = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    let is_form =
        kind.is_some_and(|(_, kind)| kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(FORM));
    let body = match body {
        None => Vec::new(),
        Some(Value::Object(entries)) if is_form => {
            let mut form = url::form_urlencoded::Serializer::new(String::new());
            for (name, value) in entries.iter() {
                form.append_pair(name, &to_text(value));
            }
            form.finish().into_bytes()
        }
        Some(body) => {
            if kind.is_none() {
                headers.push(("content-type".to_owned(), "application/json".to_owned()));
            }
            // A text that says itself what it is goes out as it is.
            match body {
                Value::Text(text) if headers.iter().all(|(_, value)| value != "application/json") => {
                    text.as_bytes().to_vec()
                }
                body => body.to_json().into_bytes(),
            }
        }
    };
    Ok(OwnRequest { method, url: url.to_string(), headers, body })
}

/// Why the agent may not send the words of its conversation to an address.
#[derive(Debug, Error)]
enum NotPermitted {
    #[error("it is not a valid address: {0}")]
    NoAddress(#[from] url::ParseError),
    #[error("it is not the address of a web server")]
    NoWebServer,
    #[error("{0}")]
    Denied(Box<Denial>),
    #[error(transparent)]
    Revoked(#[from] Revoked),
}

/// Whether the agent may send the words of its conversation to this address, with the key that stands in this variable: whether the
/// name of the server may lead into a private network.
fn permit(grants: &Grants, address: &str, key: Option<&str>) -> Result<bool, NotPermitted> {
    let denied = |capability| NotPermitted::Denied(Box::new(Denial::new(FILE_GRANTS, capability)));
    let url = url::Url::parse(address)?;
    match decide_url(grants, &url, "POST") {
        Some(Decision::Allow) => {}
        Some(Decision::Deny(capability)) => return Err(denied(capability)),
        None => return Err(NotPermitted::NoWebServer),
    }
    // The file says where the key goes, so it needs the variable that the key stands in.
    if let Some(name) = key
        && let Decision::Deny(capability) = policy::decide(grants, &policy::Request::Variable { name })
    {
        return Err(denied(capability));
    }
    // Any private address stands for all: the policy tells them from public ones and not from each other.
    let private = decide_address(grants, &url, "POST", Ipv4Addr::LOCALHOST.into());
    Ok(matches!(private, Some(Decision::Allow)))
}

/// The models of a host as the file of an agent reaches them: at an address that the file names only if the server is
/// granted.
pub(crate) struct AgentModel {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) providers: Arc<Providers>,
    pub(crate) grants: Arc<Grants>,
    pub(crate) permissions: Arc<Permissions>,
}

#[async_trait]
impl Model for AgentModel {
    async fn complete(&self, mut request: Request, on_text: Option<OnText<'_>>) -> Result<Reply, ModelError> {
        let named = match &request.server {
            _ if self.providers.has_one_server() => None,
            Some(Server::Address(address)) => Some((address.clone(), None)),
            Some(Server::ProviderAt { provider, address, .. }) => Some((address.clone(), Some(provider.clone()))),
            Some(Server::Provider(_) | Server::PrivateAddress(_)) | None => None,
        };
        if let Some((address, provider)) = named {
            let key = provider.as_deref().and_then(|provider| self.providers.own_key_variable(provider));
            let granted = self.permissions.grants(FILE_GRANTS, &self.grants).map_err(NotPermitted::from);
            let permitted = granted.and_then(|granted| permit(&granted, &address, key));
            let refused = |error: NotPermitted| ModelError::InvalidRequest {
                provider: address.clone(),
                reason: error.to_string(),
            };
            let is_private = permitted.map_err(refused)?;
            request.server = Some(match (provider, is_private) {
                (Some(provider), is_private) => Server::ProviderAt { provider, address, is_private },
                (None, true) => Server::PrivateAddress(address),
                (None, false) => Server::Address(address),
            });
        }
        self.model.complete(request, on_text).await
    }

    fn count_tokens(&self, model: &ModelName, text: &str) -> Option<usize> {
        // A recording knows no tokenizer: what was counted when it was made has to be counted in the same way again.
        self.model.count_tokens(model, text).or_else(|| self.providers.count_tokens(model, text))
    }
}

#[cfg(test)]
mod tests {
    use hotcell_cells::Grants;

    use super::permit;

    #[test]
    fn a_key_goes_where_the_file_says_if_both_are_granted() {
        const ADDRESS: &str = "https://plant.openai.azure.com/openai/v1";
        const KEY: &str = "AZURE_FOUNDRY_API_KEY";
        let grants = |http: bool, env: bool| Grants {
            http: http.then(|| "https://plant.openai.azure.com".parse().expect("a server")).into_iter().collect(),
            env: env.then(|| KEY.to_owned()).into_iter().collect(),
            ..Grants::default()
        };
        assert!(permit(&grants(true, true), ADDRESS, Some(KEY)).is_ok_and(|is_private| !is_private));
        assert!(permit(&grants(true, false), ADDRESS, None).is_ok(), "without a key the address is enough");
        let refused = |http, env| permit(&grants(http, env), ADDRESS, Some(KEY)).expect_err("refused").to_string();
        assert!(refused(true, false).contains("`env` for `AZURE_FOUNDRY_API_KEY`"), "{}", refused(true, false));
        assert!(refused(false, true).contains("https://plant.openai.azure.com"), "{}", refused(false, true));
    }
}
