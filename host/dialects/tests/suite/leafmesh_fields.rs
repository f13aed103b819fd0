//! Fields of meshes, one by one: `leafmesh/fields.json` has meshes, each with everything that a check says of it. A field that is
//! read and changes nothing is named; what is said points at it.

use std::path::Path;
use std::sync::Arc;

use hotcell_dialects::leafmesh;
use hotcell_graph::diagnostic::{Diagnostic, Severity, SourceFile};
use serde_json::Value;

use crate::surroundings::Fake;

/// `LINE:COLUMN severity: message (help)`
fn told(diagnostic: &Diagnostic) -> String {
    let place = diagnostic.span.as_ref().map_or_else(String::new, |span| {
        let before = &span.file.text[..span.start];
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        format!("{}:{column} ", before.matches('\n').count() + 1)
    });
    let severity = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    };
    let help = diagnostic.help.as_ref().map_or_else(String::new, |help| format!(" ({help})"));
    format!("{place}{severity}: {}{help}", diagnostic.message)
}

#[test]
fn every_field_is_read_or_told_of() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/leafmesh/fields.json");
    let cases: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let texts = |case: &Value, key: &str| -> Vec<String> {
        let texts = case[key].as_array().unwrap_or_else(|| panic!("{case} has no `{key}`"));
        texts.iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let mut wrong = Vec::new();
    for case in &cases {
        let text = texts(case, "mesh").join("\n");
        let loaded = leafmesh::load(&Arc::new(SourceFile { name: "mesh.yaml".into(), text }), &Fake);
        let mut said: Vec<String> = loaded.diagnostics.iter().map(told).collect();
        let mut missing = texts(case, "said");
        // What is expected is the beginning of what is said: not each case is about the help.
        missing.retain(|expected| match said.iter().position(|said| said.starts_with(expected.as_str())) {
            Some(place) => {
                said.remove(place);
                false
            }
            None => true,
        });
        if !missing.is_empty() || !said.is_empty() {
            wrong.push(format!("{}: not said: {missing:#?}, but: {said:#?}", case["field"]));
        }
    }
    assert!(!cases.is_empty() && wrong.is_empty(), "{}", wrong.join("\n"));
}
