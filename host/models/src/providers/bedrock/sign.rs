//! Signatures of Amazon Web Services, version 4: who sends a request, and that nobody changed it on its way.

use std::fmt::Write as _;

use jiff::Timestamp;
use ring::hmac;
use sha2::{Digest as _, Sha256};
use url::Url;

use super::super::settings::Secret;

/// How a request is signed.
const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// Who signs.
#[derive(Debug, Clone)]
pub(in super::super) struct Signer {
    /// The identifier of the key
    pub(in super::super) id: String,
    /// The key
    pub(in super::super) secret: Secret,
    /// What comes with keys that are good for a while only
    pub(in super::super) session: Option<Secret>,
}

/// What a signature is good for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) region: &'a str,
    pub(super) service: &'a str,
    pub(super) now: Timestamp,
}

/// The request that is signed. It has no query.
#[derive(Debug, Clone, Copy)]
pub(super) struct Signed<'a> {
    pub(super) method: &'a str,
    pub(super) url: &'a Url,
    pub(super) content_type: Option<&'a str>,
    pub(super) body: &'a [u8],
}

impl Signer {
    /// The headers that a request needs beside those that it has.
    pub(super) fn headers(&self, scope: Scope<'_>, request: Signed<'_>) -> Vec<(&'static str, String)> {
        let time = scope.now.strftime("%Y%m%dT%H%M%SZ").to_string();
        let day = time.get(..8).unwrap_or_default();
        let host = request.url.host_str().unwrap_or_default();
        let host = request.url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        // In the order of their names.
        let mut signed = Vec::new();
        signed.extend(request.content_type.map(|kind| ("content-type", kind.to_owned())));
        signed.push(("host", host));
        signed.push(("x-amz-date", time.clone()));
        signed.extend(self.session.as_ref().map(|token| ("x-amz-security-token", token.expose().to_owned())));
        let lines: String = signed.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
        let names: Vec<&str> = signed.iter().map(|(name, _)| *name).collect();
        let names = names.join(";");
        let body = hex(&Sha256::digest(request.body));
        let (method, path) = (request.method, encoded_path(request.url.path()));
        let canonical = format!("{method}\n{path}\n\n{lines}\n{names}\n{body}");

        let place = format!("{day}/{}/{}/aws4_request", scope.region, scope.service);
        let text = format!("{ALGORITHM}\n{time}\n{place}\n{}", hex(&Sha256::digest(canonical.as_bytes())));
        let first = format!("AWS4{}", self.secret.expose());
        let key = [day, scope.region, scope.service, "aws4_request"]
            .iter()
            .fold(first.into_bytes(), |key, part| mac(&key, part.as_bytes()));
        let signature = hex(&mac(&key, text.as_bytes()));
        let credential = format!("{}/{place}", self.id);
        let authorization =
            format!("{ALGORITHM} Credential={credential}, SignedHeaders={names}, Signature={signature}");
        // These two the client writes.
        signed.retain(|(name, _)| !matches!(*name, "host" | "content-type"));
        signed.push(("authorization", authorization));
        signed
    }
}

/// A name as it stands in a path: everything is encoded but letters, digits and `-`, `.`, `_`, `~`.
pub(super) fn encoded(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            // Writing to a text does not fail.
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

/// The path of an address as it is signed: once more encoded.
fn encoded_path(path: &str) -> String {
    let parts: Vec<String> = path.split('/').map(encoded).collect();
    parts.join("/")
}

fn mac(key: &[u8], text: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text).as_ref().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What requests of Amazon's published examples, and of its own library, end with.
    #[test]
    fn signatures_are_those_of_amazon() {
        const BEDROCK: &str = "https://bedrock-runtime.us-east-1.amazonaws.com/model";
        let claude = format!("{BEDROCK}/anthropic.claude-3-sonnet-20240229-v1%3A0/converse");
        let profile = format!("{BEDROCK}/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fx/converse-stream");
        let example = "https://example.amazonaws.com/";
        for (service, method, address, session, names, signature) in [
            (
                "service",
                "GET",
                example,
                None,
                "host;x-amz-date",
                "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
            ),
            (
                "service",
                "POST",
                example,
                None,
                "host;x-amz-date",
                "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
            ),
            (
                "bedrock",
                "POST",
                claude.as_str(),
                None,
                "content-type;host;x-amz-date",
                "40d653c02194693240e5b71d203b1071531ccebc4a946fc5c4668c6b6d699356",
            ),
            (
                "bedrock",
                "POST",
                claude.as_str(),
                Some("TOKEN"),
                "content-type;host;x-amz-date;x-amz-security-token",
                "dd7ef6cb4f4f013fa0c4a62f16046e89d1107f043d58ebef6b11922d586cba4f",
            ),
            (
                "bedrock",
                "POST",
                profile.as_str(),
                None,
                "content-type;host;x-amz-date",
                "f33dab28c2bc6b2ac3610c0b384efbbdcff13c55a46dfac9dcf1a71bd9dad9dd",
            ),
        ] {
            let signer = Signer {
                id: "AKIDEXAMPLE".to_owned(),
                secret: Secret::new("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
                session: session.map(Secret::new),
            };
            let now = "2015-08-30T12:36:00Z".parse().expect("a time");
            let url: Url = address.parse().expect("an address");
            let is_bedrock = service == "bedrock";
            let signed = Signed {
                method,
                url: &url,
                content_type: is_bedrock.then_some("application/json"),
                body: if is_bedrock { br#"{"messages":[]}"# } else { b"" },
            };
            let headers = signer.headers(Scope { region: "us-east-1", service, now }, signed);
            let header =
                |wanted: &str| headers.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.as_str());
            let credential = format!("AKIDEXAMPLE/20150830/us-east-1/{service}/aws4_request");
            let expected =
                format!("AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={names}, Signature={signature}");
            assert_eq!(header("authorization"), Some(expected.as_str()), "{method} {address}");
            assert_eq!(header("x-amz-date"), Some("20150830T123600Z"));
            assert_eq!(header("x-amz-security-token"), session);
        }
    }
}
