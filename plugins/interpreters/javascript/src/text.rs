//! Conversions between text and bytes in the encodings that `Buffer` and `TextDecoder` know.

use boa_engine::{JsString, JsValue};

/// A way to write text as bytes, or bytes as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    Utf16Le,
    Latin1,
    Ascii,
    Hex,
    Base64,
    Base64Url,
}

impl Encoding {
    /// The encoding by the name the prelude uses for it.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "utf8" => Self::Utf8,
            "utf16le" => Self::Utf16Le,
            "latin1" => Self::Latin1,
            "ascii" => Self::Ascii,
            "hex" => Self::Hex,
            "base64" => Self::Base64,
            "base64url" => Self::Base64Url,
            _ => return None,
        })
    }
}

/// The bytes of a text. Lone surrogates become U+FFFD in UTF-8.
pub(crate) fn encode(text: &JsString, encoding: Encoding) -> Vec<u8> {
    match encoding {
        Encoding::Utf8 => utf8(text),
        Encoding::Utf16Le => text.iter().flat_map(u16::to_le_bytes).collect(),
        Encoding::Latin1 | Encoding::Ascii => text.iter().map(|unit| unit.to_le_bytes()[0]).collect(),
        Encoding::Hex => {
            let digits: Vec<u8> = text
                .iter()
                .map_while(|unit| u8::try_from(unit).ok().and_then(|byte| char::from(byte).to_digit(16)))
                .map(|digit| digit as u8)
                .collect();
            digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
        }
        Encoding::Base64 | Encoding::Base64Url => from_base64(text),
    }
}

/// The UTF-8 of a text.
pub(crate) fn utf8(text: &JsString) -> Vec<u8> {
    text.to_std_string_lossy().into_bytes()
}

/// The text of some bytes. `None` when `fatal` is set and the bytes are not valid.
pub(crate) fn decode(bytes: &[u8], encoding: Encoding, fatal: bool) -> Option<JsValue> {
    let text = match encoding {
        Encoding::Utf8 if fatal => JsString::from(std::str::from_utf8(bytes).ok()?),
        Encoding::Utf8 => JsString::from(&*String::from_utf8_lossy(bytes)),
        Encoding::Utf16Le => {
            let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
            JsString::from(units.as_slice())
        }
        Encoding::Latin1 => JsString::from(&*bytes.iter().map(|byte| char::from(*byte)).collect::<String>()),
        Encoding::Ascii => JsString::from(&*bytes.iter().map(|byte| char::from(byte & 127)).collect::<String>()),
        Encoding::Hex => {
            const DIGITS: &[u8; 16] = b"0123456789abcdef";
            let digits = bytes.iter().flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
            JsString::from(&*digits.map(char::from).collect::<String>())
        }
        Encoding::Base64 => JsString::from(&*to_base64(bytes, b'+', b'/', true)),
        Encoding::Base64Url => JsString::from(&*to_base64(bytes, b'-', b'_', false)),
    };
    Some(text.into())
}

fn to_base64(bytes: &[u8], plus: u8, slash: u8, padded: bool) -> String {
    let digit = |value: u32| -> char {
        let value = (value & 63) as u8;
        char::from(match value {
            0..=25 => b'A' + value,
            26..=51 => b'a' + value - 26,
            52..=61 => b'0' + value - 52,
            62 => plus,
            _ => slash,
        })
    };
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let at = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        text.push(digit(bits >> 18));
        text.push(digit(bits >> 12));
        if group.len() > 1 {
            text.push(digit(bits >> 6));
        } else if padded {
            text.push('=');
        }
        if group.len() > 2 {
            text.push(digit(bits));
        } else if padded {
            text.push('=');
        }
    }
    text
}

/// Reads both alphabets, skips what belongs to neither and stops at the padding, as Node does.
fn from_base64(text: &JsString) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let mut bits: u32 = 0;
    let mut held = 0;
    for unit in text.iter() {
        let Ok(byte) = u8::try_from(unit) else { continue };
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            b'=' => break,
            _ => continue,
        };
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    bytes
}
