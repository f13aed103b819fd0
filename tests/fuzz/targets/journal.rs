//! A journal in which bytes were changed: it is refused or read, what is wrong with it is said, and no run of it goes on
//! from what was not written. The input is a list of changes, three bytes of place and one of value each.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use hotcell_journal::{RunQuery, RunStore as _, SqliteStore};
use libfuzzer_sys::fuzz_target;
use tokio::runtime::{Builder, Runtime};

struct World {
    runtime: Runtime,
    folder: tempfile::TempDir,
    journal: Vec<u8>,
}

/// A small journal with runs of all kinds, which the tests of the journal keep.
static WORLD: LazyLock<World> = LazyLock::new(|| {
    let runtime = Builder::new_current_thread().enable_all().build().expect("no runtime");
    let folder = tempfile::tempdir().expect("no folder");
    let golden = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../host/engine/tests/golden/runs-605af10.db");
    let place = folder.path().join("seed.db");
    std::fs::copy(golden, &place).expect("there is no journal");
    drop(SqliteStore::open(&place).expect("the journal is wrong"));
    let journal = std::fs::read(&place).expect("there is no journal");
    World { runtime, folder, journal }
});

fuzz_target!(|bytes: &[u8]| {
    let world = &*WORLD;
    let mut journal = world.journal.clone();
    for change in bytes.chunks_exact(4).take(64) {
        let place = u32::from_be_bytes([0, change[0], change[1], change[2]]) as usize % journal.len();
        journal[place] = change[3];
    }
    let place = world.folder.path().join("changed.db");
    for ending in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(world.folder.path().join(format!("changed.db{ending}")));
    }
    std::fs::write(&place, journal).expect("the folder is gone");
    let Ok(store) = SqliteStore::open(&place) else { return };
    world.runtime.block_on(async {
        let Ok(page) = store.list(&RunQuery::default()).await else { return };
        for run in page.runs.iter().take(8) {
            if let Ok(history) = store.history(&run.id).await {
                let _ = history.whole();
            }
        }
    });
});
