//! Event streams of Amazon Web Services: frames with headers, a payload and two checksums.

use bytes::{Buf as _, Bytes, BytesMut};
use thiserror::Error;

/// Bytes of the largest frame.
const LARGEST: usize = 16 << 20;
/// Bytes of the headers of a frame, as the format has it.
const LARGEST_HEADERS: usize = 128 << 10;
/// Bytes before the headers of a frame: its length, that of its headers, and the checksum of both.
const PRELUDE: usize = 12;
/// Bytes of the checksum at the end.
const CHECKSUM: usize = 4;

/// One frame.
#[derive(Debug)]
pub(super) struct Frame {
    /// The headers that are texts
    headers: Vec<(String, String)>,
    pub(super) payload: Bytes,
}

impl Frame {
    /// The text of a header, or nothing.
    pub(super) fn header(&self, wanted: &str) -> &str {
        self.headers.iter().find(|(name, _)| name == wanted).map_or("", |(_, text)| text)
    }
}

/// Why a stream cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(super) enum FrameError {
    #[error("a checksum of the event stream is wrong")]
    Checksum,
    #[error("a frame of the event stream has an impossible length")]
    Length,
    #[error("the headers of a frame of the event stream cannot be read")]
    Headers,
}

/// The frames of a stream that comes in pieces.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// What came and is not read yet
    rest: BytesMut,
}

impl Frames {
    /// Takes the next piece.
    pub(super) fn push(&mut self, piece: &[u8]) {
        self.rest.extend_from_slice(piece);
    }

    /// Whether the stream is between two frames.
    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next frame that has come as a whole.
    ///
    /// # Errors
    ///
    /// When it is none.
    pub(super) fn next(&mut self) -> Result<Option<Frame>, FrameError> {
        let Some((mut prelude, _)) = self.rest.split_at_checked(PRELUDE) else { return Ok(None) };
        let check = crc32fast::hash(prelude.get(..PRELUDE - CHECKSUM).unwrap_or_default());
        let (length, of_headers) = (prelude.get_u32(), prelude.get_u32());
        if prelude.get_u32() != check {
            return Err(FrameError::Checksum);
        }
        let length = usize::try_from(length).map_err(|_| FrameError::Length)?;
        let of_headers = usize::try_from(of_headers).map_err(|_| FrameError::Length)?;
        let most = length.checked_sub(PRELUDE + CHECKSUM).ok_or(FrameError::Length)?;
        if length > LARGEST || of_headers > most.min(LARGEST_HEADERS) {
            return Err(FrameError::Length);
        }
        if self.rest.len() < length {
            return Ok(None);
        }
        let mut frame = self.rest.split_to(length).freeze();
        let mut check = frame.split_off(length - CHECKSUM);
        if check.get_u32() != crc32fast::hash(&frame) {
            return Err(FrameError::Checksum);
        }
        frame.advance(PRELUDE);
        let headers = frame.split_to(of_headers);
        Ok(Some(Frame { headers: texts_of(headers).ok_or(FrameError::Headers)?, payload: frame }))
    }
}

/// The headers that are texts; none if the bytes are no headers.
fn texts_of(mut bytes: Bytes) -> Option<Vec<(String, String)>> {
    let mut texts = Vec::new();
    while bytes.has_remaining() {
        let length = bytes.try_get_u8().ok()?;
        let name = taken(&mut bytes, usize::from(length))?;
        let kind = bytes.try_get_u8().ok()?;
        let length = match kind {
            // Yes and no.
            0 | 1 => 0,
            // Numbers of one, two, four and eight bytes, and a time.
            2 => 1,
            3 => 2,
            4 => 4,
            5 | 8 => 8,
            // Bytes and texts say how long they are.
            6 | 7 => usize::from(bytes.try_get_u16().ok()?),
            // An identifier.
            9 => 16,
            _ => return None,
        };
        let value = taken(&mut bytes, length)?;
        if kind == 7 {
            texts.push((String::from_utf8(name.to_vec()).ok()?, String::from_utf8(value.to_vec()).ok()?));
        }
    }
    Some(texts)
}

fn taken(bytes: &mut Bytes, length: usize) -> Option<Bytes> {
    (bytes.len() >= length).then(|| bytes.split_to(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame with one header of each kind, and a payload.
    fn frame() -> Vec<u8> {
        let mut headers = Vec::new();
        for (kind, value) in [
            (0, &b""[..]),
            (2, b"1"),
            (3, b"12"),
            (4, b"1234"),
            (5, b"12345678"),
            (6, b"\0\x02ab"),
            (7, b"\0\x05chunk"),
            (8, b"12345678"),
            (9, b"0123456789abcdef"),
        ] {
            headers.extend_from_slice(&[1, b'a' + kind, kind]);
            headers.extend_from_slice(value);
        }
        of(&headers, b"{}")
    }

    fn of(headers: &[u8], payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(PRELUDE + headers.len() + payload.len() + CHECKSUM).expect("a length");
        let mut frame = length.to_be_bytes().to_vec();
        frame.extend_from_slice(&u32::try_from(headers.len()).expect("a length").to_be_bytes());
        frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
        frame.extend_from_slice(headers);
        frame.extend_from_slice(payload);
        frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
        frame
    }

    #[test]
    fn frames_are_read_whatever_the_pieces_they_come_in() {
        let two = [frame(), frame()].concat();
        for size in [1, 7, two.len()] {
            let (mut frames, mut read) = (Frames::default(), 0);
            for piece in two.chunks(size) {
                frames.push(piece);
                while let Some(frame) = frames.next().expect("a frame") {
                    assert_eq!((frame.header("h"), frame.header("a"), &*frame.payload), ("chunk", "", &b"{}"[..]));
                    read += 1;
                }
            }
            assert_eq!((read, frames.is_empty()), (2, true), "{size}");
        }
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        let read = |bytes: &[u8]| {
            let mut frames = Frames::default();
            frames.push(bytes);
            frames.next().map(|frame| frame.map(|frame| frame.payload.len()))
        };
        let whole = frame();
        assert_eq!(read(whole.get(..whole.len() - 1).expect("most of it")), Ok(None), "the end is missing");
        for place in [0, 9, 14, whole.len() - 1] {
            let mut changed = whole.clone();
            changed[place] ^= 1;
            assert_eq!(read(&changed), Err(FrameError::Checksum), "{place}");
        }
        let prelude = |length: u32, headers: u32| {
            let mut bytes = [length.to_be_bytes(), headers.to_be_bytes()].concat();
            bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
            bytes
        };
        for (length, headers) in [(15, 0), (16, 1), (u32::MAX, 0), (64, u32::MAX), (1 << 20, (128 << 10) + 1)] {
            assert_eq!(read(&prelude(length, headers)), Err(FrameError::Length), "{length} {headers}");
        }
        for headers in [&[9, b'a'][..], &[1, b'a', 7, 0, 9], &[1, b'a', 10], &[1, b'a', 7, 0, 1, 0xff], &[1]] {
            assert_eq!(read(&of(headers, b"")), Err(FrameError::Headers), "{headers:?}");
        }
    }
}
