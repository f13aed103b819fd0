//! Tokens of Google Cloud. A service account shows by a signature that it is itself, and is given a token for an hour.

use std::{
    fmt::Write as _,
    path::PathBuf,
    time::{Duration, Instant, SystemTime},
};

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use ring::{
    rand::SystemRandom,
    signature::{RSA_PKCS1_SHA256, RsaKeyPair},
};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Mutex;
use url::Url;

use super::{
    convert,
    settings::Secret,
    transport::{Connections, Way},
};
use crate::{ModelError, untrusted::shown};

/// What the tokens are for.
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
/// How tokens are asked for.
const GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
/// The server that gives tokens where the file names none.
const TOKENS: &str = "https://oauth2.googleapis.com/token";
/// How long what is signed is good, and how long before its end a token is used no more.
const GOOD_FOR: Duration = Duration::from_secs(3600);
const EARLY: Duration = Duration::from_secs(60);
/// Bytes of the largest file with an account, and of the largest reply.
const LARGEST: u64 = 64 << 10;

/// A service account, whose file is read when it is needed first.
#[derive(Debug)]
pub(super) struct ServiceAccount {
    file: PathBuf,
    /// Held while one is asked for, so that all who wait have the same one
    token: Mutex<Option<Token>>,
}

#[derive(Debug)]
struct Token {
    text: Secret,
    until: Instant,
}

/// What stands in the file.
#[derive(Deserialize)]
struct Account {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    client_email: String,
    #[serde(default)]
    private_key: String,
    token_uri: Option<String>,
}

/// What the server of tokens answers.
#[derive(Deserialize)]
struct Given {
    access_token: String,
    expires_in: u64,
}

impl ServiceAccount {
    pub(super) fn new(file: impl Into<PathBuf>) -> Self {
        ServiceAccount { file: file.into(), token: Mutex::default() }
    }

    /// A token that is good for a while.
    ///
    /// # Errors
    ///
    /// When the file cannot be used, or the server of tokens gives none.
    pub(super) async fn token(&self, provider: &str, connections: &Connections) -> Result<Secret, ModelError> {
        let mut kept = self.token.lock().await;
        if let Some(token) = kept.as_ref().filter(|token| token.until > Instant::now()) {
            return Ok(token.text.clone());
        }
        let (url, form) = self.asked(SystemTime::now()).map_err(|reason| {
            let file = shown(&self.file.display().to_string());
            let reason = format!("the service account `{file}` cannot be used: {reason}");
            ModelError::InvalidRequest { provider: provider.to_owned(), reason }
        })?;
        let given = ask(provider, connections, &url, form).await?;
        let good_for = Duration::from_secs(given.expires_in).min(GOOD_FOR).saturating_sub(EARLY);
        let text = Secret::new(given.access_token);
        *kept = Some(Token { text: text.clone(), until: Instant::now() + good_for });
        Ok(text)
    }

    /// Where a token is asked for, and with what.
    fn asked(&self, now: SystemTime) -> Result<(Url, String), String> {
        let text = hotcell_files::read_text(&self.file, LARGEST).map_err(|error| error.to_string())?;
        let account: Account = serde_json::from_str(&text).map_err(|error| {
            // What is wrong may hold a part of the key.
            format!("it is not an account, at line {} column {}", error.line(), error.column())
        })?;
        if account.kind != "service_account" {
            return Err(format!("its type is `{}`, and has to be `service_account`", shown(&account.kind)));
        }
        let server = account.token_uri.as_deref().unwrap_or(TOKENS);
        let url: Url = server.parse().map_err(|error| format!("`token_uri` is not a valid address: {error}"))?;
        let key = RsaKeyPair::from_pkcs8(&of_pem(&account.private_key)?)
            .map_err(|error| format!("`private_key` is not an RSA key: {error}"))?;
        let begin = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let claims = json!({
            "iss": account.client_email, "scope": SCOPE, "aud": server, "iat": begin, "exp": begin + GOOD_FOR.as_secs(),
        });
        let part = |value: &serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let mut token = format!("{}.{}", part(&json!({ "alg": "RS256", "typ": "JWT" })), part(&claims));
        let mut signature = vec![0; key.public().modulus_len()];
        key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), token.as_bytes(), &mut signature)
            .map_err(|_| "it cannot sign".to_owned())?;
        // Writing to a text does not fail.
        let _ = write!(token, ".{}", URL_SAFE_NO_PAD.encode(signature));
        let form = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("grant_type", GRANT)
            .append_pair("assertion", &token)
            .finish();
        Ok((url, form))
    }
}

/// The bytes of a key in PEM.
fn of_pem(text: &str) -> Result<Vec<u8>, String> {
    let body = text.split_once("-----BEGIN PRIVATE KEY-----").and_then(|(_, rest)| rest.split_once("-----END"));
    let (body, _) = body.ok_or("`private_key` is not a key in PEM")?;
    let body: String = body.chars().filter(|letter| !letter.is_whitespace()).collect();
    STANDARD.decode(body).map_err(|_| "`private_key` is not a key in PEM".to_owned())
}

/// Asks the server of tokens for one.
async fn ask(provider: &str, connections: &Connections, url: &Url, form: String) -> Result<Given, ModelError> {
    let transport = connections
        .transport(url, Way::Operators, None)
        .map_err(|error| convert::unreachable_server(provider.to_owned(), &error))?;
    let request = transport.client().post(url.clone()).body(form);
    let request = request.header(http::header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    let failed = |error: reqwest::Error| convert::unreachable_server(provider.to_owned(), &transport.failure(error));
    let mut response = request.send().await.map_err(failed)?;
    let status = response.status();
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(failed)? {
        if (body.len() + piece.len()) as u64 > LARGEST {
            return Err(ModelError::TooLarge { limit: LARGEST });
        }
        body.extend_from_slice(&piece);
    }
    if !status.is_success() {
        let message = format!("no token of Google Cloud: {}", shown(&String::from_utf8_lossy(&body)));
        return Err(ModelError::Status { status: status.as_u16(), message });
    }
    serde_json::from_slice(&body)
        .map_err(|_| ModelError::Malformed { reason: "it should be a token of Google Cloud".to_owned() })
}
