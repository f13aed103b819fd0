//! What a person sees for each kind of bad input: `refused/*.yaml` are the inputs, the snapshots beside them the
//! complete output. Files called `warning_*` give a graph all the same.

mod surroundings;

use std::path::Path;
use std::sync::Arc;

use hotcell_dialects::loki;
use hotcell_graph::diagnostic::{Severity, SourceFile, render};

use surroundings::Fake;

#[test]
fn every_kind_of_bad_input_is_explained() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/refused");
    let mut paths: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    paths.sort();
    assert!(paths.len() > 60, "the inputs are not there");
    let mut settings = insta::Settings::new();
    settings.set_snapshot_path(folder.join("shown"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        for path in paths {
            let name = path.file_stem().unwrap().to_str().unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            let file = Arc::new(SourceFile { name: format!("{name}.yaml"), text });
            let loaded =
                if name.starts_with("config_") { loki::load_config(&file, &Fake) } else { loki::load(&file, &Fake) };
            let errors = loaded.diagnostics.iter().filter(|one| one.severity == Severity::Error).count();
            assert!(!loaded.diagnostics.is_empty(), "{name} is not complained about");
            assert_eq!(errors == 0, name.starts_with("warning_"), "{name} has {errors} errors");
            assert_eq!(loaded.graph.is_some(), errors == 0, "{name}");
            insta::assert_snapshot!(name, render(&loaded.diagnostics, false));
        }
    });
}

#[test]
fn a_file_that_is_too_large_is_not_read() {
    let text = format!("name: {}", "x".repeat(hotcell_dialects::document::MAX_BYTES));
    let loaded = loki::load(&Arc::new(SourceFile { name: "graph.yaml".into(), text }), &Fake);
    let [only] = &loaded.diagnostics[..] else { panic!("{:?}", loaded.diagnostics.len()) };
    assert_eq!(only.message, "the file has 16777222 bytes, and at most 16777216 are read");
}

/// Each is refused with its place, soon, and without taking memory for what it stands for.
#[test]
fn attack_70_yaml_that_grows_or_nests_without_end_is_refused_with_its_place() {
    let mut laughs = "l0: &l0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let entry = format!("*l{}, ", level - 1).repeat(10);
        laughs.push_str(&format!("l{level}: &l{level} [{}]\n", entry.trim_end_matches(", ")));
    }
    let deep = format!("name: {}{}\n", "[".repeat(100_000), "]".repeat(100_000));
    let steps: String = (0..100_000).map(|level| format!("{}a:\n", " ".repeat(level % 2_000))).collect();
    let cases = [
        ("bomb", laughs),
        ("deep", deep),
        ("stairs", steps),
        ("twins", "name: a\nstart: b\nname: c\nnodes: { b: { type: end, output: x } }\n".to_owned()),
        ("circle", "name: &a [*a]\n".to_owned()),
        ("unknown", "name: *nobody\n".to_owned()),
        ("merge", "a: &a { <<: *a }\nname: x\n".to_owned()),
    ];
    for (name, text) in cases {
        let started = std::time::Instant::now();
        let loaded = loki::load(&Arc::new(SourceFile { name: "graph.yaml".into(), text }), &Fake);
        assert!(loaded.graph.is_none(), "{name} was taken");
        assert!(loaded.diagnostics.iter().any(|one| one.span.is_some()), "{name}: {:?}", loaded.diagnostics.first());
        assert!(started.elapsed() < std::time::Duration::from_secs(20), "{name}: {:?}", started.elapsed());
    }
    // One long text is only a long text.
    let text = format!("name: {}\nstart: b\nnodes: {{ b: {{ type: end, output: x }} }}\n", "x".repeat(10 << 20));
    loki::load(&Arc::new(SourceFile { name: "graph.yaml".into(), text }), &Fake);
}

#[test]
fn endless_mistakes_are_cut_off() {
    let text = format!("name: g\nstart: a\nnodes:\n{}", "  a: 1\n".repeat(5000));
    let loaded = loki::load(&Arc::new(SourceFile { name: "graph.yaml".into(), text }), &Fake);
    assert!(loaded.diagnostics.len() <= 2 * hotcell_dialects::document::MAX_DIAGNOSTICS);
}

#[test]
fn two_files_in_one_folder() {
    insta::assert_snapshot!(loki::both_files("desk").to_string(), @"error: the folder `desk` holds both `config.yaml` and `graph.yaml` (remove one of them: `config.yaml` is for a tool loop, `graph.yaml` for a graph)");
}
