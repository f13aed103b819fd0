//! A knowledge base in which bytes were changed: it is refused in one line, or searched within its limits, and never written
//! to. The input is a list of changes, three bytes of place and one of value each.
#![no_main]

use std::sync::{Arc, LazyLock};

use hotcell_knowledge::{KnowledgeBase, SearchError, Signal};
use libfuzzer_sys::fuzz_target;
use tokio::runtime::{Builder, Runtime};

#[allow(dead_code, reason = "the tests of the crate use more of it")]
#[path = "../../../host/knowledge/tests/suite/fakes.rs"]
mod fakes;

use fakes::Words;

const QUESTION: &str = "molten glass, moon and E-4021";
/// What one search gives at most.
const MOST: (usize, usize) = (10_000, 32 << 20);

struct World {
    runtime: Runtime,
    folder: tempfile::TempDir,
    base: Vec<u8>,
    /// Bytes that say something, and those beside them: most of a small file is empty
    places: Vec<usize>,
    embedder: Arc<Words>,
}

static WORLD: LazyLock<World> = LazyLock::new(|| {
    let runtime = Builder::new_current_thread().enable_all().build().expect("no runtime");
    let folder = tempfile::tempdir().expect("no folder");
    fakes::write(
        folder.path(),
        &[
            ("knowledge/bees.md", "# Bees\n\nA honeybee colony keeps its nest warm. Error E-4021 is a cold nest."),
            ("knowledge/glass.md", "# Glass\n\nFloat glass is poured onto a bath of molten tin."),
            ("knowledge/tides.md", "# Tides\n\nSpring tides follow the new moon and the full moon."),
        ],
    );
    let embedder = Words::new("test:words");
    let build = fakes::build(folder.path(), &["./knowledge/"], &embedder);
    runtime.block_on(fakes::run(&build)).expect("it is not built");
    let base = std::fs::read(&build.file).expect("there is no knowledge base");
    let says = |place: usize| base[place.saturating_sub(4)..base.len().min(place + 5)].iter().any(|byte| *byte != 0);
    let places = (0..base.len()).filter(|place| says(*place)).collect();
    World { runtime, folder, base, places, embedder }
});

fn refused(error: &SearchError) {
    assert!(!matches!(error, SearchError::Abnormal { .. }), "{error}");
    let text = error.to_string();
    assert!(!text.chars().any(char::is_control) && text.len() < 8_192, "{text:?}");
}

fuzz_target!(|bytes: &[u8]| {
    let world = &*WORLD;
    let mut base = world.base.clone();
    for change in bytes.chunks_exact(4).take(64) {
        let place = u32::from_be_bytes([0, change[0], change[1], change[2]]) as usize % world.places.len();
        base[world.places[place]] = change[3];
    }
    let file = world.folder.path().join("changed.db");
    for ending in ["-wal", "-shm", "-journal"] {
        let _ = std::fs::remove_file(world.folder.path().join(format!("changed.db{ending}")));
    }
    std::fs::write(&file, &base).expect("the folder is gone");
    world.runtime.block_on(async {
        let opened = match KnowledgeBase::open(&file, world.embedder.clone()).await {
            Ok(opened) => opened,
            Err(error) => return refused(&error),
        };
        for (signal, top) in [(Signal::Words, None), (Signal::Vectors, None), (Signal::Both, Some(usize::MAX))] {
            match opened.search_by(signal, QUESTION, top).await {
                Ok(found) => {
                    let bytes: usize = found.passages.iter().map(|found| found.source.len() + found.text.len()).sum();
                    assert!(found.passages.len() <= MOST.0 && bytes <= MOST.1, "{} passages", found.passages.len());
                    assert!(found.passages.is_sorted_by(|one, next| one.score >= next.score), "they are out of order");
                }
                Err(error) => refused(&error),
            }
        }
    });
    assert!(std::fs::read(&file).is_ok_and(|now| now == base), "it was written to");
});
