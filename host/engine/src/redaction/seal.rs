//! Keeping a text where others read, for whoever has the key.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;

/// What stands before and after a sealed text, in the place of what it says.
const OPENING: &str = "<REDACTED:";
const CLOSING: char = '>';

/// The key with which redacted values are sealed in a journal. Whoever has it can read them.
#[derive(Clone)]
pub struct RedactionKey([u8; RedactionKey::LEN]);

impl RedactionKey {
    /// Its bytes.
    pub const LEN: usize = 32;

    /// The key with these bytes.
    pub fn new(bytes: [u8; RedactionKey::LEN]) -> Self {
        RedactionKey(bytes)
    }

    /// A new one, for a journal that ends with the process.
    pub fn random() -> Self {
        RedactionKey(rand::random())
    }

    /// Its bytes, to be kept where nobody else reads.
    pub fn bytes(&self) -> &[u8; RedactionKey::LEN] {
        &self.0
    }
}

impl fmt::Debug for RedactionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RedactionKey(..)")
    }
}

/// What a seal holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    /// A piece of a text
    Text,
    /// A value, as JSON
    Json,
}

impl Held {
    fn tag(self) -> u8 {
        match self {
            Held::Text => b't',
            Held::Json => b'j',
        }
    }

    fn of(tag: u8) -> Option<Self> {
        [Held::Text, Held::Json].into_iter().find(|held| held.tag() == tag)
    }
}

/// Whether something in a text may be taken for a seal.
pub(super) fn looks_sealed(text: &str) -> bool {
    text.contains(OPENING)
}

/// A text of a journal for people: `<REDACTED>` in the place of each seal, also of one that is cut off. What a seal holds is for whoever goes
/// on with the run.
pub fn without_seals(text: &str) -> Cow<'_, str> {
    if !looks_sealed(text) {
        return Cow::Borrowed(text);
    }
    let is_sealed = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    let mut shown = String::new();
    let mut rest = text;
    while let Some((before, sealed)) = rest.split_once(OPENING) {
        shown.push_str(before);
        shown.push_str(OPENING.trim_end_matches(':'));
        shown.push(CLOSING);
        let after = sealed.trim_start_matches(is_sealed);
        rest = after.strip_prefix(CLOSING).unwrap_or(after);
    }
    shown.push_str(rest);
    Cow::Owned(shown)
}

/// Seals texts and opens them again.
pub(super) struct Sealer {
    key: LessSafeKey,
    nonces: hmac::Key,
}

impl Sealer {
    pub(super) fn new(key: &RedactionKey) -> Self {
        let master = hmac::Key::new(hmac::HMAC_SHA256, &key.0);
        let derived = |what: &[u8]| hmac::sign(&master, what);
        let key = UnboundKey::new(&CHACHA20_POLY1305, derived(b"seal").as_ref()).expect("SHA-256 gives 32 bytes");
        Sealer { key: LessSafeKey::new(key), nonces: hmac::Key::new(hmac::HMAC_SHA256, derived(b"nonce").as_ref()) }
    }

    /// The same text gives the same seal, so that what was equal stays equal.
    pub(super) fn seal(&self, held: Held, text: &str) -> String {
        let mut bytes = Vec::with_capacity(1 + text.len() + CHACHA20_POLY1305.tag_len());
        bytes.push(held.tag());
        bytes.extend_from_slice(text.as_bytes());
        let mut nonce = [0; NONCE_LEN];
        nonce.copy_from_slice(&hmac::sign(&self.nonces, &bytes).as_ref()[..NONCE_LEN]);
        let sealed = self.key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut bytes);
        sealed.expect("a text in memory is shorter than what one seal takes");
        format!("{OPENING}{}{CLOSING}", URL_SAFE_NO_PAD.encode([&nonce[..], &bytes].concat()))
    }

    /// What a seal holds, if it was made with this key.
    fn open(&self, sealed: &str) -> Option<(Held, String)> {
        let bytes = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE_LEN>()?;
        let mut sealed = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = self.key.open_in_place(nonce, Aad::empty(), &mut sealed).ok()?;
        let (tag, text) = opened.split_first()?;
        Some((Held::of(*tag)?, String::from_utf8(text.to_vec()).ok()?))
    }

    /// What a text holds that is one seal and nothing else.
    pub(super) fn open_whole(&self, text: &str) -> Option<(Held, String)> {
        let sealed = text.strip_prefix(OPENING)?.strip_suffix(CLOSING)?;
        self.open(sealed)
    }

    /// A text with what its seals hold in their place. What only looks like a seal stays.
    pub(super) fn open_within(&self, text: &str) -> String {
        let mut opened = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(OPENING) {
            let (before, from) = rest.split_at(at);
            opened.push_str(before);
            let inner = &from[OPENING.len()..];
            match inner.find(CLOSING).and_then(|end| Some((end, self.open(&inner[..end])?))) {
                Some((end, (_, held))) => {
                    opened.push_str(&held);
                    rest = &inner[end + CLOSING.len_utf8()..];
                }
                None => {
                    opened.push_str(OPENING);
                    rest = inner;
                }
            }
        }
        opened + rest
    }
}

#[cfg(test)]
mod tests {
    use super::{Held, RedactionKey, Sealer, without_seals};

    #[test]
    fn people_see_no_seals() {
        let sealed = Sealer::new(&RedactionKey::new([7; RedactionKey::LEN])).seal(Held::Text, "secret");
        for (text, shown) in [
            (format!("it is {sealed}, twice {sealed}"), "it is <REDACTED>, twice <REDACTED>"),
            (format!("cut {}…", &sealed[..20]), "cut <REDACTED>…"),
            ("a <REDACTED> and a <".to_owned(), "a <REDACTED> and a <"),
        ] {
            assert_eq!(without_seals(&text), shown);
        }
    }

    #[test]
    fn what_is_sealed_can_be_opened_with_the_key_and_with_no_other() {
        let (key, other) = (Sealer::new(&RedactionKey::random()), Sealer::new(&RedactionKey::random()));
        let sealed = key.seal(Held::Text, "s3cret");
        assert!(!sealed.contains("s3cret"));
        assert_eq!(sealed, key.seal(Held::Text, "s3cret"));
        assert_ne!(sealed, key.seal(Held::Json, "s3cret"));
        let around = format!("a {sealed} b {sealed}");
        assert_eq!(key.open_within(&around), "a s3cret b s3cret");
        assert_eq!(other.open_within(&around), around);
        assert!(key.open_whole(&sealed).is_some_and(|(held, text)| held == Held::Text && text == "s3cret"));
    }

    #[test]
    fn what_looks_like_a_seal_stays() {
        let key = Sealer::new(&RedactionKey::random());
        let sealed = key.seal(Held::Text, "x");
        let broken = sealed.replace("<REDACTED:", "<REDACTED:AA");
        for text in ["<REDACTED:", "<REDACTED:>", "<REDACTED:????>", &broken, "<REDACTED:<REDACTED:"] {
            assert_eq!(key.open_within(text), text);
        }
        assert_eq!(key.open_within(&format!("<REDACTED:{sealed}")), "<REDACTED:x");
    }
}
