//! Whether a post is from the provider: looked at on the bytes that came, before anything reads them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hmac::{Hmac, Mac as _};
use http::HeaderMap;
use ring::signature::{ED25519, UnparsedPublicKey};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

/// How far the time of a post may be from ours, in both directions.
const SKEW: Duration = Duration::from_secs(300);
/// Bytes of a public key and of a signature of Ed25519, and of HMAC-SHA256.
const KEY: usize = 32;
const SIGNATURE: usize = 64;
const DIGEST: usize = 32;

/// What is wrong with a signature.
pub(super) type Wrong = &'static str;

/// Slack: HMAC-SHA256 over the version, the time and the body.
///
/// # Errors
/// What is wrong with the signature.
pub(super) fn slack(secret: &str, now: SystemTime, headers: &HeaderMap, body: &[u8]) -> Result<(), Wrong> {
    let timestamp = one(headers, "x-slack-request-timestamp")?;
    let digest = hex::<DIGEST>(one(headers, "x-slack-signature")?.strip_prefix("v0=").unwrap_or_default())?;
    check(secret, &[b"v0:", timestamp.as_bytes(), b":", body], &digest)?;
    is_of_now(timestamp, now)
}

/// Whether the time that a provider signed is not far from the time here. It has nothing but digits, so that nothing of the body that comes after it
/// is taken for a part of it.
fn is_of_now(timestamp: &str, now: SystemTime) -> Result<(), Wrong> {
    let digits = Some(timestamp).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let seconds: u64 = digits.and_then(|text| text.parse().ok()).ok_or("the timestamp is not a number of seconds")?;
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    match now.abs_diff(seconds) > SKEW.as_secs() {
        true => Err("the timestamp is too far from the time here"),
        false => Ok(()),
    }
}

/// WhatsApp: HMAC-SHA256 over the body.
///
/// # Errors
/// What is wrong with the signature.
pub(super) fn whatsapp(secret: &str, headers: &HeaderMap, body: &[u8]) -> Result<(), Wrong> {
    let digest = hex::<DIGEST>(one(headers, "x-hub-signature-256")?.strip_prefix("sha256=").unwrap_or_default())?;
    check(secret, &[body], &digest)
}

/// Telegram: the secret itself.
///
/// # Errors
/// What is wrong with it.
pub(super) fn telegram(secret: &str, headers: &HeaderMap) -> Result<(), Wrong> {
    same(secret, one(headers, "x-telegram-bot-api-secret-token")?)
}

/// Discord: a signature of Ed25519 over the time and the body.
///
/// # Errors
/// What is wrong with it.
pub(super) fn discord(key: &[u8; KEY], now: SystemTime, headers: &HeaderMap, body: &[u8]) -> Result<(), Wrong> {
    let timestamp = one(headers, "x-signature-timestamp")?;
    let signature = hex::<SIGNATURE>(one(headers, "x-signature-ed25519")?)?;
    let signed = [timestamp.as_bytes(), body].concat();
    let fits = UnparsedPublicKey::new(&ED25519, key).verify(&signed, &signature);
    fits.map_err(|_| "the signature does not fit the body")?;
    is_of_now(timestamp, now)
}

/// The public key that stands in a setting.
pub(super) fn public_key(text: &str) -> Option<[u8; KEY]> {
    hex::<KEY>(text).ok()
}

/// Whether two secrets are the same, in a time that does not say where they differ.
///
/// # Errors
/// When they are not.
pub(super) fn same(secret: &str, given: &str) -> Result<(), Wrong> {
    match secret.as_bytes().ct_eq(given.as_bytes()).into() {
        true => Ok(()),
        false => Err("the secret is another one"),
    }
}

fn check(secret: &str, parts: &[&[u8]], digest: &[u8]) -> Result<(), Wrong> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).map_err(|_| "there is no secret")?;
    parts.iter().for_each(|part| mac.update(part));
    // In a time that does not say where it differs.
    mac.verify_slice(digest).map_err(|_| "the signature does not fit the body")
}

/// A header that is there once.
pub(super) fn one<'h>(headers: &'h HeaderMap, name: &str) -> Result<&'h str, Wrong> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().map_err(|_| "a header of the signature cannot be read"),
        (None, _) => Err("it is not signed"),
        _ => Err("a header of the signature is given twice"),
    }
}

/// So many bytes in hexadecimal digits.
fn hex<const N: usize>(text: &str) -> Result<[u8; N], Wrong> {
    let digits = text.as_bytes();
    let mut bytes = [0; N];
    if digits.len() != 2 * N || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err("the signature does not have the right form");
    }
    let value = |digit: u8| (digit as char).to_digit(16).and_then(|value| u8::try_from(value).ok()).unwrap_or_default();
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        *byte = value(pair[0]) << 4 | value(pair[1]);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use http::HeaderMap;

    use super::{discord, public_key, slack, telegram, whatsapp};

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().expect("a name"), value.parse().expect("a value"))).collect()
    }

    #[test]
    fn slack_within_five_minutes() {
        let (secret, body) = ("8f742231b10e8888abcd99yyyzzz85a5", b"token=x&team_id=T1&text=hi");
        let signature = "v0=9bb4e84362bfac9d44dbf79112b82e640106abe3bd65aacf7f0bdcb664beff41";
        let (time, sign) = ("x-slack-request-timestamp", "x-slack-signature");
        let signed = headers(&[(time, "1531420618"), (sign, signature)]);
        let at = |seconds: u64| UNIX_EPOCH + Duration::from_secs(seconds);
        for (offset, fits) in [(0, true), (300, true), (301, false)] {
            assert_eq!(slack(secret, at(1_531_420_618 + offset), &signed, body).is_ok(), fits, "{offset} s late");
            assert_eq!(slack(secret, at(1_531_420_618 - offset), &signed, body).is_ok(), fits, "{offset} s early");
        }
        let now = at(1_531_420_618);
        assert!(slack("other", now, &signed, body).is_err());
        assert!(slack(secret, now, &signed, b"token=x&team_id=T1&text=ho").is_err());
        for wrong in [
            HeaderMap::new(),
            headers(&[(time, "1531420618")]),
            headers(&[(sign, signature)]),
            headers(&[(time, "1531420619"), (sign, signature)]),
            headers(&[(time, "-1"), (sign, signature)]),
            headers(&[(time, "1531420618"), (sign, &signature[3..])]),
            headers(&[(time, "1531420618"), (sign, "v0=")]),
            headers(&[(time, "1531420618"), (sign, &signature[..66])]),
            headers(&[(time, "1531420618"), (time, "1531420618"), (sign, signature)]),
        ] {
            assert!(slack(secret, now, &wrong, body).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn whatsapp_and_telegram() {
        let name = "x-hub-signature-256";
        let signature = "sha256=09eceea024af6e6343b760cc9bd3ae7c056938dd636e24e92109eb8219500384";
        let body = br#"{"object":"whatsapp_business_account","entry":[]}"#;
        assert!(whatsapp("appsecret", &headers(&[(name, signature)]), body).is_ok());
        assert!(whatsapp("appsecret", &headers(&[(name, signature)]), &body[1..]).is_err());
        assert!(whatsapp("appsecreT", &headers(&[(name, signature)]), body).is_err());
        assert!(whatsapp("appsecret", &HeaderMap::new(), body).is_err());
        let name = "x-telegram-bot-api-secret-token";
        assert!(telegram("abc_DEF-123", &headers(&[(name, "abc_DEF-123")])).is_ok());
        for wrong in ["", "abc_DEF-12", "abc_DEF-1234", "ABC_DEF-123"] {
            assert!(telegram("abc_DEF-123", &headers(&[(name, wrong)])).is_err(), "{wrong}");
        }
    }

    #[test]
    fn discord_by_a_public_key() {
        let key = public_key("03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8").expect("a key");
        let (time, sign) = ("x-signature-timestamp", "x-signature-ed25519");
        let signature = "c1098e97d711377f30225d53d94b89d43537f92e5b3afaddc590781b1f9f9d4b2eeab335d370be3b9a090bc61a85b86448bc140dcd195f1569c2bff181257607";
        let signed = headers(&[(time, "1700000000"), (sign, signature)]);
        let at = |seconds: u64| UNIX_EPOCH + Duration::from_secs(seconds);
        let now = at(1_700_000_000);
        for (seconds, fits) in
            [(1_700_000_000, true), (1_700_000_300, true), (1_700_000_301, false), (1_699_999_699, false)]
        {
            assert_eq!(discord(&key, at(seconds), &signed, br#"{"type":1}"#).is_ok(), fits, "{seconds}");
        }
        assert!(discord(&key, now, &signed, br#"{"type":2}"#).is_err());
        for (said, body) in [("1700000001", &br#"{"type":1}"#[..]), (r#"1700000000{"type"#, &br#"":1}"#[..])] {
            let moved = headers(&[(time, said), (sign, signature)]);
            assert!(discord(&key, now, &moved, body).is_err(), "{said}");
        }
        assert!(discord(&key, now, &headers(&[(time, "1700000000"), (sign, "00")]), br#"{"type":1}"#).is_err());
        assert!(discord(&[0; 32], now, &signed, br#"{"type":1}"#).is_err());
        assert!(["", "03a1", &"g".repeat(64), &"é".repeat(32)].iter().all(|text| public_key(text).is_none()));
    }
}
