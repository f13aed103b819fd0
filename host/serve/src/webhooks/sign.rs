//! Signatures of Standard Webhooks.

use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;

/// What a secret begins with.
const PREFIX: &str = "whsec_";
/// Bytes that a secret may have.
const BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// A secret by which posts are signed.
pub(super) struct Secret(Vec<u8>);

impl FromStr for Secret {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let encoded = text.strip_prefix(PREFIX).ok_or("it has to begin with `whsec_`")?;
        let bytes = STANDARD.decode(encoded).map_err(|_| "what follows `whsec_` has to be base64")?;
        if BYTES.contains(&bytes.len()) { Ok(Secret(bytes)) } else { Err("it has to have 24 to 64 bytes") }
    }
}

impl Secret {
    /// The headers of a post that is sent now. Its id is the same when it is sent again.
    pub(super) fn headers(&self, id: &str, now: SystemTime, body: &str) -> Vec<(String, String)> {
        let seconds = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs().to_string();
        // A key of any length is one.
        let mac = Hmac::<Sha256>::new_from_slice(&self.0).map(|mut mac| {
            mac.update(format!("{id}.{seconds}.{body}").as_bytes());
            STANDARD.encode(mac.finalize().into_bytes())
        });
        let signature = format!("v1,{}", mac.unwrap_or_default());
        [("webhook-id", id.to_owned()), ("webhook-timestamp", seconds), ("webhook-signature", signature)]
            .map(|(name, value)| (name.to_owned(), value))
            .into()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// The example of the specification.
    #[test]
    fn a_post_is_signed_as_the_specification_says() {
        let secret: Secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().expect("a secret");
        let now = UNIX_EPOCH + Duration::from_secs(1_614_265_330);
        let headers = secret.headers("msg_p5jXN8AQM9LWM0D4loKWxJek", now, r#"{"test": 2432232314}"#);
        assert_eq!(headers[2].1, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn what_is_no_secret_is_refused() {
        for wrong in ["", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_short", "whsec_!!!!"] {
            assert!(wrong.parse::<Secret>().is_err(), "{wrong}");
        }
        assert!(format!("whsec_{}", STANDARD.encode([7; 65])).parse::<Secret>().is_err());
    }
}
