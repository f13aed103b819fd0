//! Lengths in tokens.
//!
//! Why this exists: chunks are cut to a number of tokens, and the cutter asks for the length of many overlapping pieces
//! of one text. The text is tokenised once; the length of a piece is then the number of tokens that begin in it.

use text_splitter::ChunkSizer;

/// Letters of an English-like word for one token.
const LETTERS: usize = 6;
/// Digits of a number for one token.
const DIGITS: usize = 3;
/// Letters outside ASCII for one token, in scripts that part words with spaces.
const FOREIGN_LETTERS: usize = 2;

/// Where the tokens of `text` begin for a model whose tokeniser is not at hand.
///
/// This is an approximation that errs on the side of more tokens: one for each 6 ASCII letters of a word, 3 digits, 2
/// letters of other alphabets, each letter of scripts without spaces, and each other mark that is no white space.
pub(crate) fn approximate_starts(text: &str) -> Vec<usize> {
    let mut starts = Vec::with_capacity(text.len() / 4);
    let mut run = (Kind::Space, 0);
    for (at, character) in text.char_indices() {
        let kind = Kind::of(character);
        run = if kind == run.0 { (kind, run.1 + 1) } else { (kind, 1) };
        let begins = match kind {
            Kind::Space => false,
            Kind::Letter => (run.1 - 1) % LETTERS == 0,
            Kind::Digit => (run.1 - 1) % DIGITS == 0,
            Kind::Foreign => (run.1 - 1) % FOREIGN_LETTERS == 0,
            Kind::Mark => true,
        };
        if begins {
            starts.push(at);
        }
    }
    starts
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Space,
    Letter,
    Digit,
    Foreign,
    Mark,
}

impl Kind {
    fn of(character: char) -> Self {
        match character {
            'a'..='z' | 'A'..='Z' => Self::Letter,
            '0'..='9' => Self::Digit,
            space if space.is_whitespace() => Self::Space,
            // From the CJK radicals on, scripts are written without spaces.
            letter if letter.is_alphabetic() && letter < '\u{2e80}' => Self::Foreign,
            _ => Self::Mark,
        }
    }
}

/// The most bytes for one token. Some tokenisers make one token of a word of any length; without this a picture in
/// base64 would be one small chunk.
const BYTES: usize = 32;

/// How long a text of so many bytes and tokens is.
pub(crate) fn length(bytes: usize, tokens: usize) -> usize {
    tokens.max(bytes / BYTES)
}

/// The tokens of one text, to measure pieces of it.
pub(crate) struct Ruler<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Ruler<'a> {
    pub(crate) fn new(text: &'a str, token_starts: impl FnOnce(&str) -> Vec<usize>) -> Self {
        Self { text, starts: token_starts(text) }
    }

    /// How long the whole text is.
    pub(crate) fn total(&self) -> usize {
        length(self.text.len(), self.starts.len())
    }
}

impl ChunkSizer for Ruler<'_> {
    /// The tokens that begin in `piece`, which must be a slice of the text; a piece from elsewhere counts as empty.
    fn size(&self, piece: &str) -> usize {
        let Some(from) = (piece.as_ptr() as usize).checked_sub(self.text.as_ptr() as usize) else { return 0 };
        let to = from + piece.len();
        let before = |place: usize| self.starts.partition_point(|&start| start < place);
        length(piece.len(), before(to) - before(from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn approximation() {
        for (text, tokens) in [
            ("", 0),
            (" \n", 0),
            ("The cat sat.", 4),
            ("internationalisation", 4),
            ("12345 6", 3),
            ("Привет", 3),
            ("東京", 2),
            ("a_b", 3),
            ("x".repeat(600).as_str(), 100),
        ] {
            assert_eq!(approximate_starts(text).len(), tokens, "{text}");
        }
    }

    #[test]
    fn pieces_are_measured_by_the_tokens_that_begin_in_them() {
        let text = "one two, three";
        let ruler = Ruler::new(text, approximate_starts);
        assert_eq!((ruler.total(), ruler.size(text), ruler.size(&text[4..]), ruler.size(&text[5..8])), (4, 4, 3, 1));
        assert_eq!(ruler.size(""), 0);
    }
}
