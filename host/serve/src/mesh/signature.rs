//! Signatures of posts to a mesh, and of those that it sends.
//!
//! `X-LeafMesh-Signature: sha256=HEX` is HMAC-SHA256 over the time, a nonce and the body, with dots in between; the older scheme, which
//! has to be allowed, is over the body alone and knows neither time nor nonce.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hmac::{Hmac, Mac as _};
use http::HeaderMap;
use sha2::Sha256;

const SIGNATURE: &str = "x-leafmesh-signature";
const TIMESTAMP: &str = "x-leafmesh-timestamp";
const NONCE: &str = "x-leafmesh-nonce";
/// What a signature begins with.
const SCHEME: &str = "sha256=";
/// Characters of the longest nonce.
const LONGEST_NONCE: usize = 128;

/// What the signature of a post says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Signed {
    /// There is none
    Not,
    /// It is good. The nonce may be used once; the older scheme has none
    Well(Option<String>),
}

/// How signatures are looked at.
pub(super) struct Rules<'a> {
    pub(super) secret: &'a [u8],
    pub(super) now: SystemTime,
    /// How far the time of a post may be from ours, in both directions
    pub(super) skew: Duration,
    /// Whether the scheme over the body alone counts
    pub(super) is_older_allowed: bool,
}

fn mac(secret: &[u8], parts: &[&[u8]]) -> Option<Hmac<Sha256>> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).ok()?;
    parts.iter().for_each(|part| mac.update(part));
    Some(mac)
}

/// The headers of a post that is sent now.
pub(super) fn sign(secret: &[u8], now: SystemTime, nonce: &str, body: &[u8]) -> Vec<(&'static str, String)> {
    let seconds = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs().to_string();
    let mac = mac(secret, &[seconds.as_bytes(), b".", nonce.as_bytes(), b".", body]);
    let digest = mac.map(|mac| mac.finalize().into_bytes()).unwrap_or_default();
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    vec![(TIMESTAMP, seconds), (NONCE, nonce.to_owned()), (SIGNATURE, format!("{SCHEME}{hex}"))]
}

/// Looks at the signature of a post.
///
/// # Errors
/// What is wrong with it.
pub(super) fn verify(rules: &Rules<'_>, headers: &HeaderMap, body: &[u8]) -> Result<Signed, &'static str> {
    let one = |name: &str| {
        let mut values = headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (None, _) => Ok(None),
            (Some(value), None) => value.to_str().map(Some).map_err(|_| "a header of the signature cannot be read"),
            _ => Err("a header of the signature is given twice"),
        }
    };
    let (signature, timestamp, nonce) = (one(SIGNATURE)?, one(TIMESTAMP)?, one(NONCE)?);
    let (signature, dated) = match (signature, timestamp, nonce) {
        (None, None, None) => return Ok(Signed::Not),
        (Some(signature), None, None) if rules.is_older_allowed => (signature, None),
        (Some(signature), Some(timestamp), Some(nonce)) => (signature, Some((timestamp, nonce))),
        _ => return Err("the signature needs all three headers: signature, timestamp and nonce"),
    };
    let digest =
        signature.strip_prefix(SCHEME).and_then(bytes).ok_or("the signature is not `sha256=` with 64 hex digits")?;
    let mac = match dated {
        Some((timestamp, nonce)) => mac(rules.secret, &[timestamp.as_bytes(), b".", nonce.as_bytes(), b".", body]),
        None => mac(rules.secret, &[body]),
    };
    // In a time that does not say where it differs.
    mac.ok_or("there is no secret")?.verify_slice(&digest).map_err(|_| "the signature does not fit the body")?;
    let Some((timestamp, nonce)) = dated else { return Ok(Signed::Well(None)) };
    let seconds: u64 = timestamp.parse().map_err(|_| "the timestamp is not a number of seconds")?;
    let now = rules.now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    if now.abs_diff(seconds) > rules.skew.as_secs() {
        return Err("the timestamp is too far from the time here");
    }
    // A dot ends it in what is signed: with one in it, it could have taken over the beginning of the body.
    if nonce.is_empty() || nonce.len() > LONGEST_NONCE || nonce.contains('.') {
        return Err("the nonce has to have 1 to 128 characters, and no dot");
    }
    Ok(Signed::Well(Some(nonce.to_owned())))
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digits = hex.as_bytes();
    let is_hex = digits.len() == 64 && digits.iter().all(u8::is_ascii_hexdigit);
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    is_hex.then(|| digits.chunks(2).map(pair).collect())?
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = br#"{"session_id":"sess1","decision":"approved","message":"Looks good"}"#;
    const OLDER: &str = "sha256=2fcfacc2f7d159ab66c2c7d67b0deaa5bc3821b14b8af41c8f3821f1cf56736f";
    const NEWER: &str = "sha256=b0834c64f314edb86ac0cc0ebb5b0af21a6e671c48ae90cf42eec9c445cfd643";

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().expect("a name"), value.parse().expect("a value"))).collect()
    }

    fn rules(seconds: u64, is_older_allowed: bool) -> Rules<'static> {
        let now = UNIX_EPOCH + Duration::from_secs(seconds);
        Rules { secret: b"s3cr3t", now, skew: Duration::from_secs(300), is_older_allowed }
    }

    #[test]
    fn a_signature_counts_within_five_minutes_and_for_its_body_alone() {
        let signed = headers(&[(SIGNATURE, NEWER), (TIMESTAMP, "1700000000"), (NONCE, "nonce123")]);
        for (seconds, fits) in
            [(1_700_000_300, true), (1_699_999_700, true), (1_700_000_301, false), (1_699_999_699, false)]
        {
            let found = verify(&rules(seconds, false), &signed, BODY);
            assert_eq!(found == Ok(Signed::Well(Some("nonce123".to_owned()))), fits, "{seconds}: {found:?}");
        }
        assert!(verify(&rules(1_700_000_000, true), &signed, b"{}").is_err());
        let sent = sign(b"s3cr3t", UNIX_EPOCH + Duration::from_secs(1_700_000_000), "nonce123", BODY);
        assert!(sent.contains(&(SIGNATURE, NEWER.to_owned())));
    }

    #[test]
    fn nothing_of_a_body_becomes_a_part_of_the_nonce() {
        // Keys that somebody chose have the end of the body be one, too.
        let whole = br#"{"votes":{"x.{":1,":1,":2}}"#;
        let sent = sign(b"s3cr3t", UNIX_EPOCH, "n", whole);
        let (_, signature) = sent.iter().find(|(name, _)| *name == SIGNATURE).expect("it is signed");
        let moved = headers(&[(SIGNATURE, signature.as_str()), (TIMESTAMP, "0"), (NONCE, r#"n.{"votes":{"x"#)]);
        let end = whole.strip_prefix(br#"{"votes":{"x."#).expect("its end");
        let found = verify(&rules(0, false), &moved, end);
        assert_eq!(found, Err("the nonce has to have 1 to 128 characters, and no dot"));
    }

    #[test]
    fn half_of_a_signature_is_none_and_the_older_scheme_has_to_be_allowed() {
        assert_eq!(verify(&rules(0, true), &HeaderMap::new(), BODY), Ok(Signed::Not));
        let older = headers(&[(SIGNATURE, OLDER)]);
        assert_eq!(verify(&rules(0, true), &older, BODY), Ok(Signed::Well(None)));
        for wrong in [
            older,
            headers(&[(SIGNATURE, NEWER), (TIMESTAMP, "1700000000")]),
            headers(&[(TIMESTAMP, "1700000000"), (NONCE, "nonce123")]),
            headers(&[(SIGNATURE, "sha256=00"), (TIMESTAMP, "1700000000"), (NONCE, "nonce123")]),
            headers(&[(SIGNATURE, &NEWER[7..]), (TIMESTAMP, "1700000000"), (NONCE, "nonce123")]),
            headers(&[(SIGNATURE, NEWER), (TIMESTAMP, "1700000001"), (NONCE, "nonce123")]),
        ] {
            assert!(verify(&rules(1_700_000_000, false), &wrong, BODY).is_err(), "{wrong:?}");
        }
    }
}
