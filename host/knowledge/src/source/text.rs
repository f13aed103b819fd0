//! From bytes to text.

/// The text in UTF-8 that `bytes` are, without the mark that may stand at its beginning. The error says what is wrong and
/// at which byte.
pub(super) fn decode(bytes: Vec<u8>) -> Result<String, String> {
    if is_utf16(&bytes) {
        return Err("it begins (byte 0) with the mark of UTF-16".to_owned());
    }
    if let Some(at) = bytes.iter().position(|&byte| byte == 0) {
        return Err(format!("byte {at} is zero, as in binary files"));
    }
    match String::from_utf8(bytes) {
        Ok(mut text) => {
            if text.starts_with('\u{feff}') {
                text.drain(..'\u{feff}'.len_utf8());
            }
            Ok(text)
        }
        Err(error) => Err(format!("byte {} begins no character", error.utf8_error().valid_up_to())),
    }
}

/// Whether `bytes` begin with the mark of UTF-16.
pub(super) fn is_utf16(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff])
}

/// Whether `bytes` are UTF-8 up to a character that may go on after them.
pub(super) fn is_utf8_beginning(bytes: &[u8]) -> bool {
    match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_is_said() {
        assert_eq!(decode(b"\xef\xbb\xbfabc".to_vec()), Ok("abc".to_owned()));
        for (bytes, part) in [
            (&b"\xff\xfea\0"[..], "UTF-16"),
            (b"\xfe\xff\0a", "UTF-16"),
            (b"abc\xe9def", "byte 3"),
            (b"ab\0", "byte 2"),
        ] {
            let error = decode(bytes.to_vec()).expect_err("an error");
            assert!(error.contains(part), "{error}");
        }
        assert!(is_utf8_beginning("aß".as_bytes()) && is_utf8_beginning(&"aß".as_bytes()[..2]));
        assert!(!is_utf8_beginning(b"a\xffb"));
    }
}
