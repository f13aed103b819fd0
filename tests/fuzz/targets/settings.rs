//! Any text as a file in which an operator or a stranger's folder decides: `hotcell.toml`, `hotcell.lock`, `mcp.json`, prices,
//! recordings, descriptions of grants. It is refused, or says the same when it is read again.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use hotcell_cells::Recording;
use hotcell_models::Prices;
use hotcell_plugins::{AgentFolder, Trust, parse_grants};
use libfuzzer_sys::fuzz_target;

static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().expect("no folder"));

fn opened(file: &str, text: &str) {
    let path: PathBuf = FOLDER.path().join(file);
    std::fs::write(&path, text).expect("the folder is gone");
    for trust in [Trust::Everything, Trust::Listed(FOLDER.path().join("trust.list"))] {
        match AgentFolder::open(FOLDER.path(), &trust) {
            Ok(folder) => {
                let is_trusted = folder.is_trusted();
                for (_, lines) in folder.wishes() {
                    assert!(lines.iter().all(|line| !line.contains('\n')), "a line has a break in it");
                }
                // Nobody trusts it: it grants nothing.
                if !is_trusted {
                    assert_eq!(*folder.settings().grants("x"), hotcell_plugins::Grants::default());
                }
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    std::fs::remove_file(&path).expect("the folder is gone");
}

fuzz_target!(|text: &str| {
    opened("hotcell.toml", text);
    opened("hotcell.lock", text);
    drop(hotcell_mcp::parse_servers(text, &|_, name| Some(name.to_owned())));
    drop(Prices::parse(text));
    if let Ok(grants) = parse_grants(text) {
        let written = toml::to_string(&grants).expect("grants cannot be written");
        assert_eq!(parse_grants(&written).as_ref(), Ok(&grants), "{written}");
        grants.in_words();
    }
    drop(Recording::read(text).map(|recording| recording.http_replies()));
});
