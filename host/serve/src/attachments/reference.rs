//! How a text refers to an attachment.

use std::fmt;
use std::str::FromStr;

use hotcell_graph::Value;
use hotcell_graph::value::MAX_KEPT_DEPTH;
use sha2::{Digest as _, Sha256};

/// What begins the name of a digest.
const SCHEME: &str = "sha256:";
/// What begins a reference; the digits of the digest come after it.
const PREFIX: &str = "attachment:sha256:";
/// Hexadecimal digits of a digest.
const DIGITS: usize = 64;
/// Attachments to which something refers at most.
pub(crate) const MOST: usize = 100;
/// How deep in lists and objects is looked: as deep as a value may be that a journal keeps.
const DEEPEST: usize = MAX_KEPT_DEPTH;
/// What looking at a value costs beside its text. Values share what they are made of, so a few of them can stand for any number.
const EACH: usize = 4;

/// The SHA-256 digest of an attachment, by which it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Digest([u8; 32]);

impl Digest {
    /// That of these bytes.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Digest(Sha256::digest(bytes).into())
    }

    /// That which has these bytes itself.
    pub(crate) fn new(bytes: [u8; 32]) -> Self {
        Digest(bytes)
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// What a text has in it that refers to the attachment.
    pub(crate) fn reference(&self) -> String {
        format!("attachment:{self}")
    }

    /// The one whose digits are these. What is written in another way would be a second name of the same.
    fn of_digits(digits: &[u8]) -> Option<Self> {
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        if digits.len() != DIGITS {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = (digit(pair[0])? << 4) | digit(pair[1])?;
        }
        Some(Digest(bytes))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(SCHEME)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A text is no digest.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotADigest;

impl FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        text.strip_prefix(SCHEME).and_then(|digits| Digest::of_digits(digits.as_bytes())).ok_or(NotADigest)
    }
}

/// The attachments to which texts and values refer, each once and in the order in which they come.
pub(crate) struct References {
    found: Vec<Digest>,
    /// Bytes that are still looked at
    left: usize,
    are_too_many: bool,
}

impl References {
    /// Looks at so many bytes.
    pub(crate) fn within(bytes: usize) -> Self {
        References { found: Vec::new(), left: bytes, are_too_many: false }
    }

    /// Those that were found, [`MOST`] at most.
    pub(crate) fn found(&self) -> &[Digest] {
        &self.found
    }

    /// Whether there are more than [`MOST`].
    pub(crate) fn are_too_many(&self) -> bool {
        self.are_too_many
    }

    /// Looks at a text.
    pub(crate) fn add_text(&mut self, text: &str) {
        let mut end = text.len().min(self.left);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        // What is left of a text that is cut is not for the next one.
        self.left = if end < text.len() { 0 } else { self.left - end };
        for (at, _) in text[..end].match_indices(PREFIX) {
            let rest = &text.as_bytes()[at + PREFIX.len()..];
            let is_whole = rest.get(DIGITS).is_none_or(|next| !next.is_ascii_alphanumeric());
            let digest = rest.get(..DIGITS).filter(|_| is_whole).and_then(Digest::of_digits);
            let Some(digest) = digest.filter(|digest| !self.found.contains(digest)) else { continue };
            if self.found.len() == MOST {
                self.are_too_many = true;
                self.left = 0;
                return;
            }
            self.found.push(digest);
        }
    }

    /// Looks at all texts in a value.
    pub(crate) fn add_value(&mut self, value: &Value) {
        self.look_into(value, 0);
    }

    /// Whether anything more is looked at.
    fn look_into(&mut self, value: &Value, depth: usize) -> bool {
        self.left = self.left.saturating_sub(EACH);
        if self.left == 0 || depth > DEEPEST {
            return self.left > 0;
        }
        match value {
            Value::Text(text) => self.add_text(text),
            Value::List(items) => return items.iter().all(|item| self.look_into(item, depth + 1)),
            Value::Object(entries) => {
                return entries.iter().all(|(key, value)| {
                    self.add_text(key);
                    self.look_into(value, depth + 1)
                });
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        self.left > 0
    }
}

#[cfg(test)]
mod tests {
    use hotcell_graph::List;

    use super::*;

    fn digest(number: usize) -> Digest {
        Digest::of(number.to_string().as_bytes())
    }

    fn in_text(text: &str) -> Vec<Digest> {
        let mut references = References::within(usize::MAX);
        references.add_text(text);
        references.found().to_vec()
    }

    #[test]
    fn a_digest_is_written_in_one_way() {
        let written = digest(1).to_string();
        assert_eq!(written, "sha256:6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b");
        assert_eq!(written.parse::<Digest>(), Ok(digest(1)));
        let (short, long) = (&written[..written.len() - 1], format!("{written}0"));
        let other = ["", "sha256:", &written[7..], short, &long, &written.to_uppercase(), "sha256:../../etc/passwd"];
        for text in other.into_iter().chain([&*written.replace('6', "é"), &format!(" {written}")]) {
            assert_eq!(text.parse::<Digest>(), Err(NotADigest), "{text}");
        }
    }

    #[test]
    fn references_are_found_wherever_a_text_has_them() {
        let (one, two) = (digest(1), digest(2));
        for text in [
            one.reference(),
            format!("see {}.", one.reference()),
            format!("é{}é", one.reference()),
            format!("{{\"reference\":\"{}\",\"name\":\"x\"}}", one.reference()),
            format!("{0} and {0}", one.reference()),
        ] {
            assert_eq!(in_text(&text), [one], "{text}");
        }
        assert_eq!(in_text(&format!("{}, {}", two.reference(), one.reference())), [two, one]);
        for text in [
            one.to_string(),
            format!("{}0", one.reference()),
            format!("{}x", one.reference()),
            one.reference().replace("sha256", "SHA256"),
            one.reference().replace('b', "B"),
            one.reference()[..80].to_owned(),
            "attachment:sha256:".repeat(3),
        ] {
            assert!(in_text(&text).is_empty(), "{text}");
        }
    }

    #[test]
    fn values_are_looked_through_and_no_further_than_is_said() {
        let texts = |texts: &[String]| texts.iter().map(|text| Value::text(text.as_str())).collect::<List>();
        let list = Value::List(texts(&[digest(1).reference(), "x".repeat(1000), digest(2).reference()]));
        let named = [("a".into(), list.clone()), (digest(3).reference().into(), Value::Null)];
        let value = Value::Object(named.into_iter().collect());
        let found = |value: &Value, bytes: usize| {
            let mut references = References::within(bytes);
            references.add_value(value);
            references.found().to_vec()
        };
        assert_eq!(found(&value, usize::MAX), [digest(1), digest(2), digest(3)]);
        assert_eq!(found(&value, 500), [digest(1)]);
        // Any number of bytes, in few.
        let mut shared = list;
        for _ in 0..60 {
            shared = Value::List([shared.clone(), shared].into_iter().collect());
        }
        assert_eq!(found(&shared, 100_000), [digest(1), digest(2)]);
        let mut deep = Value::text(digest(1).reference());
        for _ in 0..=DEEPEST {
            deep = Value::List([deep].into_iter().collect());
        }
        assert!(found(&deep, usize::MAX).is_empty());
        // A text that is cut is cut between its characters.
        let mut references = References::within(5);
        references.add_text("ééééé");
        references.add_text(&digest(1).reference());
        assert!(references.found().is_empty());
    }

    #[test]
    fn there_are_so_many_and_more_are_noticed() {
        let text = |count: usize| (0..count).map(|number| digest(number).reference() + " ").collect::<String>();
        let mut references = References::within(usize::MAX);
        references.add_text(&text(MOST));
        references.add_text(&text(MOST));
        assert_eq!((references.found().len(), references.are_too_many()), (MOST, false));
        references.add_text(&text(MOST + 1));
        assert_eq!((references.found().len(), references.are_too_many()), (MOST, true));
    }
}
