//! Any text as a case of a plugin, or as the baseline beside it: it is refused, or calls one thing and is given no directory
//! but those of its own folder.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use hotcell_harness::{BASELINE_FILE, Baseline, Case, HostCall, HostReply, keep_replies, read_cases};
use libfuzzer_sys::fuzz_target;

struct World {
    folder: PathBuf,
    _place: tempfile::TempDir,
}

static WORLD: LazyLock<World> = LazyLock::new(|| {
    let place = tempfile::tempdir().expect("no folder");
    let folder = place.path().canonicalize().expect("no folder").join("cases");
    std::fs::create_dir_all(folder.join("data")).expect("no folder");
    World { folder, _place: place }
});

fuzz_target!(|text: &str| {
    let folder = &WORLD.folder;
    let (file, baseline) = (folder.join("a.json"), folder.join(BASELINE_FILE));
    if let Ok(case) = Case::parse(text, folder) {
        assert!(case.call().is_ok(), "it calls nothing");
        assert!(case.grants().fs.iter().all(|grant| grant.host.starts_with(folder)), "it is given more");
        assert!(case.outside().iter().all(|grant| !grant.host.starts_with(folder)), "it asks for its own");

        std::fs::write(&file, text).expect("the folder is gone");
        let reply = HostReply { call: HostCall::Http, request: None, reply: None, error: Some("no".to_owned()) };
        if keep_replies(folder, "a", std::slice::from_ref(&reply)).is_ok() {
            let read = read_cases(folder).expect("it cannot be read back");
            assert!(read.iter().any(|(_, case)| case.replies.contains(&reply)), "the reply is lost");
        }
        std::fs::remove_file(&file).expect("the folder is gone");
    }
    std::fs::write(&baseline, text).expect("the folder is gone");
    if let Ok(Some(read)) = Baseline::read(folder) {
        read.write(folder).expect("it cannot be written");
        assert!(Baseline::read(folder).is_ok(), "it cannot be read back");
    }
    std::fs::remove_file(&baseline).expect("the folder is gone");
});
