//! Any bytes as an archive of agents that a client sends to `hotcell serve`: it is refused in one line, or unpacked within its
//! limits. Either way nothing lands outside of its folder, and there are only files and folders in it. Checksums of headers
//! are put right first, so that what the headers say is looked at.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "the server uses more of it")]
#[path = "../../../host/serve/src/agents/bundle.rs"]
mod bundle;

/// Bytes of a block of an archive.
const BLOCK: usize = 512;
/// Where the checksum of a header is.
const CHECKSUM: std::ops::Range<usize> = 148..156;

fn with_checksums(bytes: &[u8]) -> Vec<u8> {
    let mut archive = bytes.to_vec();
    for block in archive.chunks_exact_mut(BLOCK) {
        if &block[257..262] == b"ustar" {
            block[CHECKSUM].fill(b' ');
            let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
            block[CHECKSUM].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        }
    }
    archive
}

/// Files and folders below a folder, and their bytes.
fn measure(folder: &Path, found: &mut (usize, u64)) {
    for entry in std::fs::read_dir(folder).expect("the folder is gone") {
        let entry = entry.expect("the folder is gone");
        let metadata = entry.path().symlink_metadata().expect("it is gone");
        assert!(metadata.is_file() || metadata.is_dir(), "{:?} is neither a file nor a folder", entry.path());
        found.0 += 1;
        if metadata.is_dir() {
            measure(&entry.path(), found);
        } else {
            found.1 += metadata.len();
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let place = tempfile::tempdir().expect("no folder");
    let folder = place.path().join("in");
    std::fs::create_dir(&folder).expect("no folder");
    if let Err(error) = bundle::unpack(&with_checksums(bytes), &folder) {
        let text = error.to_string();
        assert!(!text.chars().any(char::is_control) && text.len() < 4_096, "{text:?}");
    }
    assert_eq!(std::fs::read_dir(place.path()).expect("the folder is gone").count(), 1, "something is outside");
    let mut found = (0, 0);
    measure(&folder, &mut found);
    // Each entry may need ten folders.
    assert!(found.0 <= 20_000 && found.1 <= 64 << 20, "{found:?}");
});
