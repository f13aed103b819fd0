//! Recordings of calls on their way into the journal and out of it.

use std::io;
use std::str::Utf8Error;

use hotcell_cells::{Recording, RecordingError, Terms};
use hotcell_engine::CallSite;
use thiserror::Error;

/// Bytes above which a recording is compressed: below, that costs more than it gives.
const COMPRESSED: usize = 2 << 10;
/// The least effort: what takes a call milliseconds is compressed in some ten microseconds.
const EFFORT: i32 = 1;
/// How a compressed recording begins.
const MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
/// Bytes that a recording has at most when it is unpacked.
const UNPACKED: usize = 1 << 30;

/// Why a recording that lies in the journal cannot be used.
#[derive(Debug, Error)]
pub enum UnreadRecording {
    /// It cannot be unpacked
    #[error("it is damaged: {0}")]
    Packed(#[source] io::Error),
    /// It is no text
    #[error("it is damaged: {0}")]
    NoText(#[from] Utf8Error),
    /// It is no recording, or one of a newer version
    #[error(transparent)]
    Form(#[from] RecordingError),
}

/// The terms of a call that is made there: it is recorded if somebody keeps the recording.
pub(crate) fn terms_at(terms: &Terms, site: &CallSite) -> Terms {
    let record = terms.record.filter(|_| site.keeps_recordings());
    Terms { record, ..terms.clone() }
}

/// Keeps the recording of a call, if there is one.
pub(crate) fn keep(name: &str, recording: Option<String>, site: &CallSite) {
    if let Some(recording) = recording {
        site.record(name, packed(recording));
    }
}

fn packed(recording: String) -> Vec<u8> {
    if recording.len() <= COMPRESSED {
        return recording.into_bytes();
    }
    // Without memory for it, it is kept as it is.
    zstd::bulk::compress(recording.as_bytes(), EFFORT).unwrap_or_else(|_| recording.into_bytes())
}

/// Reads a recording as it lies in the journal.
pub(crate) fn read(body: &[u8]) -> Result<Recording, UnreadRecording> {
    let unpacked = match body.starts_with(&MAGIC) {
        true => {
            let bytes = zstd::bulk::Decompressor::upper_bound(body).unwrap_or(UNPACKED).min(UNPACKED);
            Some(zstd::bulk::decompress(body, bytes).map_err(UnreadRecording::Packed)?)
        }
        false => None,
    };
    Ok(Recording::read(std::str::from_utf8(unpacked.as_deref().unwrap_or(body))?)?)
}

#[cfg(test)]
mod tests {
    use super::{packed, read};

    #[test]
    fn large_recordings_are_compressed_and_come_back() {
        let text = format!(
            r#"{{"layout":1,"engine":"e","component":"c","plugin":"p","call":{{"kind":"tool","tool":"t","arguments":"{}"}},
            "gave":{{"text":"1"}},"fuel":5}}"#,
            "x".repeat(100_000)
        );
        let body = packed(text.clone());
        assert!(body.len() < 1_000, "{}", body.len());
        let recording = read(&body).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(read(text.as_bytes()).unwrap(), recording);
    }

    #[test]
    fn what_is_no_recording_is_said() {
        for (body, expected) in [
            (&b"{}"[..], "it is damaged: missing field `layout`"),
            (&b"\xff"[..], "it is damaged: invalid utf-8"),
            (&b"\x28\xB5\x2F\xFDxx"[..], "it is damaged: "),
            (
                &br#"{"layout":7,"other":1}"#[..],
                "a newer version of hotcell recorded it (layout 7, this version reads up to 1)",
            ),
        ] {
            let error = read(body).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
