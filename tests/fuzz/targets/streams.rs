//! Any bytes as what a server streams: events of an MCP server, and frames of Amazon's. Whatever the pieces in which they come,
//! the same is read from them, and no event is larger than agreed. Checksums of frames are put right first.
#![no_main]

use hotcell_mcp::{EventReader, StreamEvent};
use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "the provider uses more of it")]
#[path = "../../../host/models/src/providers/bedrock/frames.rs"]
mod frames;

use frames::Frames;

/// Bytes of an event.
const LIMIT: usize = 200;

fn events(pieces: &[&[u8]]) -> (Vec<StreamEvent>, bool) {
    let (mut reader, mut events) = (EventReader::new(LIMIT), Vec::new());
    let whole = pieces.iter().all(|piece| reader.read(piece, &mut events).is_ok());
    (events, whole)
}

/// Payloads of frames, and how reading them ended.
fn payloads(pieces: &[&[u8]]) -> (Vec<Vec<u8>>, String) {
    let (mut frames, mut read) = (Frames::default(), Vec::new());
    for piece in pieces {
        frames.push(piece);
        loop {
            match frames.next() {
                Ok(Some(frame)) => {
                    frame.header(":event-type");
                    read.push(frame.payload.to_vec());
                }
                Ok(None) => break,
                Err(error) => return (read, error.to_string()),
            }
        }
    }
    (read, format!("whole: {}", frames.is_empty()))
}

fn with_checksums(bytes: &[u8]) -> Vec<u8> {
    let mut stream = bytes.to_vec();
    let mut at = 0;
    while stream.len() - at >= 16 {
        let said = u32::from_be_bytes([stream[at], stream[at + 1], stream[at + 2], stream[at + 3]]);
        let check = crc32fast::hash(&stream[at..at + 8]);
        stream[at + 8..at + 12].copy_from_slice(&check.to_be_bytes());
        let length = said as usize;
        if length < 16 || length > stream.len() - at {
            break;
        }
        let end = at + length;
        let check = crc32fast::hash(&stream[at..end - 4]);
        stream[end - 4..end].copy_from_slice(&check.to_be_bytes());
        at = end;
    }
    stream
}

fuzz_target!(|bytes: &[u8]| {
    let (size, bytes) = bytes.split_first().map_or((1, bytes), |(size, rest)| (usize::from(*size).max(1), rest));
    let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
    let (read, whole) = events(&pieces);
    assert_eq!((&read, whole), (&events(&[bytes]).0, events(&[bytes]).1), "pieces of {size}");
    // What is no UTF-8 becomes a sign of three bytes.
    assert!(read.iter().all(|event| event.name.len() + event.data.len() <= 3 * LIMIT), "an event is too large");

    let stream = with_checksums(bytes);
    let pieces: Vec<&[u8]> = stream.chunks(size).collect();
    assert_eq!(payloads(&pieces), payloads(&[stream.as_slice()]), "pieces of {size}");
});
