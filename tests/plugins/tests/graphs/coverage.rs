//! Every attack of the list has a test that bears its number.

use std::collections::BTreeSet;
use std::path::Path;

/// Attacks are numbered from 1 to this.
const ATTACKS: u32 = 80;

/// Collects the numbers at the beginning of names such as `attack_24_27_…`, of functions in the files of a folder.
fn collect(folder: &Path, numbers: &mut BTreeSet<u32>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                collect(&path, numbers);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            for name in text.split("fn attack_").skip(1) {
                numbers.extend(name.split('_').map_while(|part| part.parse::<u32>().ok()));
            }
        }
    }
}

#[test]
fn every_attack_has_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut numbers = BTreeSet::new();
    for folder in ["host", "tests"] {
        collect(&root.join(folder), &mut numbers);
    }
    let missing: Vec<u32> = (1..=ATTACKS).filter(|number| !numbers.contains(number)).collect();
    assert!(missing.is_empty(), "no test is named after the attacks {missing:?}");
}
