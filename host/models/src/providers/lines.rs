//! A body that is streamed, cut where its lines end.
//!
//! The provider library looks for the end of a line from the line's beginning whenever more of it comes, and moves what is behind a line forward when it
//! takes that line out. So a server that sends a long line in many pieces, or a large piece with many short lines, would have it work in proportion to the
//! square of what was sent. It is given whole lines, few at a time.

use bytes::{Bytes, BytesMut};

/// Bytes of short lines that are given together.
const TOGETHER: usize = 1 << 10;

/// What came of a body and was not given yet.
#[derive(Debug, Default)]
pub(super) struct WholeLines {
    rest: BytesMut,
    /// How many of these bytes are known to hold no end of a line
    looked_at: usize,
}

impl WholeLines {
    /// Takes the next piece.
    pub(super) fn push(&mut self, piece: &[u8]) {
        self.rest.extend_from_slice(piece);
    }

    /// Whole lines that have come; none while a line has not ended.
    pub(super) fn next(&mut self) -> Option<Bytes> {
        let mut end = 0;
        while end < TOGETHER {
            let from = end.max(self.looked_at);
            let unread = self.rest.get(from..).unwrap_or_default();
            match unread.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
                // A long one goes alone: nothing is to be moved that often.
                Some(at) if end > 0 && from + at >= TOGETHER => {
                    self.looked_at = from + at;
                    break;
                }
                Some(at) => end = from + at + 1,
                None => {
                    self.looked_at = self.rest.len();
                    break;
                }
            }
        }
        if end == 0 {
            return None;
        }
        self.looked_at = self.looked_at.saturating_sub(end);
        Some(self.rest.split_to(end).freeze())
    }

    /// The last line, if nothing ended it.
    pub(super) fn rest(self) -> Option<Bytes> {
        Some(self.rest.freeze()).filter(|rest| !rest.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is given of a body that comes in pieces of this size.
    fn given(body: &[u8], size: usize) -> Vec<Bytes> {
        let (mut lines, mut given) = (WholeLines::default(), Vec::new());
        for piece in body.chunks(size) {
            lines.push(piece);
            given.extend(std::iter::from_fn(|| lines.next()));
        }
        given.extend(lines.rest());
        given
    }

    #[test]
    fn lines_are_given_whole_and_nothing_is_lost() {
        let body = format!("data: a\r\n\r\ndata: {}\n\n: b\rdata: c\r\rdata: end", "x".repeat(5_000));
        for size in [1, 2, 3, 7, 1_000, 10_000] {
            let given = given(body.as_bytes(), size);
            assert_eq!(given.concat(), body.as_bytes(), "{size}");
            let (_, whole) = given.split_last().expect("some");
            assert!(whole.iter().all(|piece| piece.ends_with(b"\n") || piece.ends_with(b"\r")), "{size}");
        }
    }

    #[test]
    fn a_long_line_is_given_once_and_short_ones_are_not_given_all_together() {
        let long = [vec![b'x'; 100_000], vec![b'\n']].concat();
        assert_eq!(given(&long, 1), std::slice::from_ref(&long));
        let short = given(&vec![b'\n'; 100_000], 100_000);
        assert!(short.iter().all(|piece| piece.len() <= TOGETHER), "{}", short.len());
        assert_eq!(short.concat().len(), 100_000);
        let both = [vec![b'\n'; 1_000], long.clone()].concat();
        assert_eq!(given(&both, 1 << 20), [both[..1_000].to_vec(), long]);
    }
}
