//! Signatures of posts to the mesh: HMAC-SHA256 over time, nonce and body, or over the body alone.

use sha2::{Digest, Sha256};

/// The block of SHA-256.
const BLOCK: usize = 64;

/// The headers that the newer scheme adds.
pub(super) fn newer(secret: &str, timestamp: i64, nonce: &str, body: &[u8]) -> [(&'static str, String); 3] {
    let mut signed = format!("{timestamp}.{nonce}.").into_bytes();
    signed.extend_from_slice(body);
    [
        ("X-LeafMesh-Timestamp", timestamp.to_string()),
        ("X-LeafMesh-Nonce", nonce.to_owned()),
        ("X-LeafMesh-Signature", signature(secret, &signed)),
    ]
}

/// The header that the older scheme adds.
pub(super) fn older(secret: &str, body: &[u8]) -> [(&'static str, String); 1] {
    [("X-LeafMesh-Signature", signature(secret, body))]
}

fn signature(secret: &str, text: &[u8]) -> String {
    let hex: String = hmac(secret.as_bytes(), text).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={hex}")
}

/// RFC 2104. It is written out because the one that the server uses must not check itself.
fn hmac(secret: &[u8], text: &[u8]) -> [u8; 32] {
    let mut key = [0u8; BLOCK];
    match secret.len() > BLOCK {
        true => key[..32].copy_from_slice(&Sha256::digest(secret)),
        false => key[..secret.len()].copy_from_slice(secret),
    }
    let inner = Sha256::new_with_prefix(key.map(|byte| byte ^ 0x36)).chain_update(text).finalize();
    Sha256::new_with_prefix(key.map(|byte| byte ^ 0x5c)).chain_update(inner).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::{hmac, newer, older};

    const BODY: &[u8] = br#"{"session_id":"sess1","decision":"approved","message":"Looks good"}"#;

    #[test]
    fn known_signatures() {
        let newer = newer("s3cr3t", 1_700_000_000, "nonce123", BODY);
        assert_eq!(newer[0].1, "1700000000");
        assert_eq!(newer[2].1, "sha256=b0834c64f314edb86ac0cc0ebb5b0af21a6e671c48ae90cf42eec9c445cfd643");
        let older = older("s3cr3t", BODY);
        assert_eq!(older[0].1, "sha256=2fcfacc2f7d159ab66c2c7d67b0deaa5bc3821b14b8af41c8f3821f1cf56736f");
        // RFC 4231, case 6: a key longer than a block.
        let long = hmac(&[0xaa; 131], b"Test Using Larger Than Block-Size Key - Hash Key First");
        assert_eq!(&long[..4], [0x60, 0xe4, 0x31, 0x59]);
    }
}
