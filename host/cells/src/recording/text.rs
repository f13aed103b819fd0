//! Bytes and digests in recordings.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What is kept of a text in its place: enough to see whether another one is the same.
pub(super) fn digest_of(text: &str) -> String {
    let digest = blake3::hash(text.as_bytes()).to_hex();
    format!("blake3:{digest} of {} bytes", text.len())
}

/// Something short that stands for texts that may be long.
pub(crate) fn short_digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    hasher.finalize().to_hex()[..24].to_owned()
}

/// Bytes, as text where they are text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Blob(pub(crate) Vec<u8>);

impl Serialize for Blob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => Hex { hex: to_hex(&self.0) }.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Blob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match TextOrHex::deserialize(deserializer)? {
            TextOrHex::Text(text) => Ok(Blob(text.into_bytes())),
            TextOrHex::Hex(Hex { hex }) => from_hex(&hex).map(Blob).ok_or_else(|| D::Error::custom("no hexadecimal")),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Hex {
    hex: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum TextOrHex {
    Text(String),
    Hex(Hex),
}

pub(super) fn to_hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble & 15)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
}

pub(super) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| digit.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
mod tests {
    use super::{Blob, from_hex};

    #[test]
    fn bytes_are_text_where_they_can_be_and_come_back_as_they_were() {
        for (bytes, written) in [
            (b"plain \"text\"".to_vec(), r#""plain \"text\"""#),
            (vec![0xff, 0x00, 0x7f], r#"{"hex":"ff007f"}"#),
            (Vec::new(), r#""""#),
        ] {
            let blob = Blob(bytes);
            let text = serde_json::to_string(&blob).unwrap_or_default();
            assert_eq!(text, written);
            assert_eq!(serde_json::from_str::<Blob>(&text).ok(), Some(blob));
        }
        assert_eq!((from_hex("f"), from_hex("gg"), from_hex("é0")), (None, None, None));
    }
}
