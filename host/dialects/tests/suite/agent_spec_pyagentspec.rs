//! Agent Spec configurations are exchanged with `pyagentspec`, where `agent_spec/pyagentspec/install.sh` has installed it.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;

use hotcell_dialects::agent_spec::{self, Part};
use hotcell_dialects::{Dialect, recognise};
use hotcell_graph::diagnostic::render;
use serde_json::{Value as Json, json};

use crate::configurations::{
    World, parts_beside, parts_of_case, read_case, scratch, shared_cases, source, with_pyagentspec,
    written_and_read_again,
};

/// Writes all parts into one file beside a configuration, by the keys under which that knows them.
fn lay_beside(folder: &Path, stem: &str, parts: &[Part]) {
    let mut all = serde_json::Map::new();
    for part in parts {
        let json: Json = serde_json::from_str(&part.file.text).unwrap();
        for (key, value) in json["$referenced_components"].as_object().unwrap() {
            let renamed = part.rename.iter().find(|(from, _)| from == key).map_or(key, |(_, to)| to);
            all.insert(renamed.clone(), value.clone());
        }
    }
    if !all.is_empty() {
        let text = json!({ "$referenced_components": all }).to_string();
        std::fs::write(folder.join(format!("{stem}.parts.json")), text).unwrap();
    }
}

#[test]
fn what_pyagentspec_writes_is_read_and_what_we_write_it_reads() {
    let theirs = scratch("agent-spec-theirs");
    let ours = scratch("agent-spec-ours");
    let world = World { tools: None, plugins: BTreeSet::new(), servers: RefCell::default() };
    let Some(written) = with_pyagentspec("generate.py", &[&theirs]) else { return };
    let mut read = 0;
    for entry in std::fs::read_dir(&theirs).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some((stem, extension)) = name.rsplit_once('.').filter(|(stem, _)| !stem.ends_with(".parts")) else {
            continue;
        };
        assert_eq!(recognise(&name, &source(&theirs, &name).text), Some(Dialect::AgentSpec), "{name}");
        let part = |file| Part { file, rename: Vec::new() };
        let parts: Vec<Part> = parts_beside(&theirs, stem).into_iter().map(part).collect();
        let (configuration, diagnostics) = agent_spec::read(&source(&theirs, &name), &parts, &world);
        let configuration = configuration.unwrap_or_else(|| panic!("{name}\n{}", render(&diagnostics, false)));
        let text = written_and_read_again(&configuration, &parts, &world);
        let target = if extension == "json" { stem.to_owned() } else { name.clone() };
        std::fs::write(ours.join(format!("{target}.json")), text).unwrap();
        lay_beside(&ours, &target, &parts);
        read += 1;
    }
    assert_eq!(written.trim(), read.to_string());
    let loaded = with_pyagentspec("load.py", &[&ours, &theirs]).unwrap();
    assert!(loaded.starts_with(&format!("{read} ")), "{loaded}");
    // What hand-written documents become is read too.
    let cases = scratch("agent-spec-cases");
    let mut count = 0;
    for (folder, case) in shared_cases().into_iter().filter(|(_, case)| case.get("plugins").is_none()) {
        if let (Some(configuration), _) = read_case(&folder, &case) {
            let name = folder.file_name().unwrap().to_string_lossy().into_owned();
            std::fs::write(cases.join(format!("{name}.json")), agent_spec::write(&configuration)).unwrap();
            lay_beside(&cases, &name, &parts_of_case(&folder, &case));
            count += 1;
        }
    }
    let loaded = with_pyagentspec("load.py", &[&cases]).unwrap();
    assert!(loaded.starts_with(&format!("{count} ")), "{loaded}");
}
