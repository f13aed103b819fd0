//! Models of Amazon Bedrock, through Converse: one form of request and reply for all of them. Requests are signed, and replies
//! that are streamed come in frames.

mod body;
mod frames;
mod reply;
mod sign;

use http::header::CONTENT_TYPE;
use jiff::Timestamp;
use url::{Host, Url};

pub(super) use self::sign::Signer;
use self::{
    frames::Frames,
    reply::{Gathered, malformed},
    sign::{Scope, Signed},
};
use super::{
    convert,
    settings::{Provider, Secret},
    transport::{Transport, TransportError},
};
use crate::{
    Api, ModelError, OnText, Reply, Request,
    untrusted::{shown, without_secret},
};

/// What hotcell calls the provider.
pub(super) const NAME: &str = "bedrock";
/// What requests are signed for.
const SERVICE: &str = "bedrock";
/// Where requests are signed for if their address does not say it.
const REGION: &str = "us-east-1";
/// Under what thoughts of a model are kept with its message.
const REASONING: &str = "bedrock";
const JSON: &str = "application/json";

/// What requests are paid with.
#[derive(Debug, Clone)]
pub(super) enum Access {
    /// Each request is signed
    Signed(Signer),
    /// The key goes with each request
    Bearer(Secret),
}

impl Access {
    /// What a server says, fit to be shown: without the key, and without what comes with one that is good for a while only.
    fn shown(&self, said: &str) -> String {
        let (key, session) = match self {
            Access::Signed(signer) => (&signer.secret, signer.session.as_ref()),
            Access::Bearer(key) => (key, None),
        };
        let said = without_secret(said, key.expose());
        shown(&without_secret(&said, session.map_or("", Secret::expose)))
    }

    /// The headers by which a request shows who sends it.
    fn headers(&self, url: &Url, body: &[u8]) -> Vec<(&'static str, String)> {
        match self {
            Access::Bearer(key) => vec![("authorization", format!("Bearer {}", key.expose()))],
            Access::Signed(signer) => {
                let scope = Scope { region: region(url), service: SERVICE, now: Timestamp::now() };
                signer.headers(scope, Signed { method: "POST", url, content_type: Some(JSON), body })
            }
        }
    }
}

/// Asks a model.
///
/// # Errors
///
/// As [`crate::Model::complete`].
pub(super) async fn ask(
    access: &Access,
    provider: &Provider,
    request: &Request,
    transport: &Transport,
    on_text: Option<OnText<'_>>,
) -> Result<Reply, ModelError> {
    let refuse = |reason: String| ModelError::InvalidRequest { provider: NAME.to_owned(), reason };
    if request.api == Api::Responses {
        return Err(refuse("its requests have a form of their own, and not that of Responses".to_owned()));
    }
    if let Some(name) = request.more.keys().next() {
        return Err(refuse(format!("the setting `{name}` can be sent to servers that speak Chat Completions only")));
    }
    let model = request.model.as_str();
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.:/".contains(c);
    if !model.chars().all(fits) || matches!(model, "." | "..") {
        let reason = "models of Bedrock have letters, digits, `-`, `_`, `.`, `:` and `/` only".to_owned();
        return Err(ModelError::InvalidName { name: shown(model), reason });
    }
    let mut url = provider.url.clone();
    let verb = if on_text.is_some() { "converse-stream" } else { "converse" };
    url.set_path(&format!("{}/model/{}/{verb}", url.path().trim_end_matches('/'), sign::encoded(model)));

    let body = body::body(request, model).to_string();
    let mut sent = transport.client().post(url.clone()).header(CONTENT_TYPE, JSON);
    for (name, value) in access.headers(&url, body.as_bytes()) {
        sent = sent.header(name, value);
    }
    let unreachable = |error: &TransportError| convert::unreachable_server(NAME.to_owned(), error);
    let mut response = sent.body(body).send().await.map_err(|error| unreachable(&transport.failure(error)))?;
    let status = response.status();
    let mut received = 0;
    match on_text {
        Some(on_text) if status.is_success() => {
            let (mut frames, mut gathered) = (Frames::default(), Gathered::default());
            while let Some(piece) =
                transport.next_piece(&mut response, &mut received).await.map_err(|error| unreachable(&error))?
            {
                frames.push(&piece);
                while let Some(frame) = frames.next().map_err(|error| malformed(&error.to_string()))? {
                    if let Some(text) = gathered.take(&frame, access)? {
                        on_text(&text);
                    }
                }
            }
            if !frames.is_empty() {
                return Err(malformed("it stops before its end"));
            }
            gathered.finish(model)
        }
        _ => {
            let mut body = Vec::new();
            while let Some(piece) =
                transport.next_piece(&mut response, &mut received).await.map_err(|error| unreachable(&error))?
            {
                body.extend_from_slice(&piece);
            }
            if status.is_success() {
                return reply::whole(&body, model);
            }
            let said = convert::provider_message(&String::from_utf8_lossy(&body));
            Err(ModelError::Status { status: status.as_u16(), message: access.shown(&said) })
        }
    }
}

/// The region of an address of Amazon's; elsewhere requests are signed for the usual one.
fn region(url: &Url) -> &str {
    let Some(Host::Domain(name)) = url.host() else { return REGION };
    let name = name.strip_suffix(".cn").unwrap_or(name);
    let Some(name) = name.strip_suffix(".amazonaws.com") else { return REGION };
    let name = name.strip_suffix(".vpce").unwrap_or(name);
    name.rsplit('.').next().filter(|region| name.contains('.') && !region.is_empty()).unwrap_or(REGION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_say_their_region() {
        for (address, expected) in [
            ("https://bedrock-runtime.eu-west-1.amazonaws.com", "eu-west-1"),
            ("https://bedrock-runtime-fips.us-gov-west-1.amazonaws.com", "us-gov-west-1"),
            ("https://bedrock-runtime.cn-north-1.amazonaws.com.cn", "cn-north-1"),
            ("https://vpce-1.bedrock-runtime.ap-south-1.vpce.amazonaws.com/", "ap-south-1"),
            ("https://bedrock.amazonaws.com", "us-east-1"),
            ("https://gateway.example.org", "us-east-1"),
            ("http://127.0.0.1:4566", "us-east-1"),
        ] {
            let url: Url = address.parse().expect("an address");
            assert_eq!(region(&url), expected, "{address}");
        }
    }
}
