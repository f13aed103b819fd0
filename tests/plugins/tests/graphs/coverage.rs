//! Every attack of the list has a test that bears its number, and every promise of the threat model the test that it names.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Attacks are numbered from 1 to this.
const ATTACKS: u32 = 80;

/// The names of all functions in the files of a folder, and of the files.
fn collect(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target" && name != "node_modules") {
                collect(&path, names);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let name = |rest: &str| rest.split(['(', '<']).next().unwrap_or_default().to_owned();
            names.extend(text.split("fn ").skip(1).map(name));
            names.extend(path.file_name().map(|name| name.to_string_lossy().into_owned()));
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn names() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for folder in ["host", "tests"] {
        collect(&root().join(folder), &mut names);
    }
    names
}

/// The numbers at the beginning of a name such as `attack_24_27_…`.
fn numbers(name: &str) -> impl Iterator<Item = u32> {
    let rest = name.strip_prefix("attack_").unwrap_or_default();
    rest.split('_').map_while(|part| part.parse().ok())
}

#[test]
fn every_attack_has_a_test() {
    let names = names();
    let numbers: BTreeSet<u32> = names.iter().flat_map(|name| numbers(name)).collect();
    let missing: Vec<u32> = (1..=ATTACKS).filter(|number| !numbers.contains(number)).collect();
    assert!(missing.is_empty(), "no test is named after the attacks {missing:?}");
}

#[test]
fn every_promise_names_tests_that_exist() {
    let (root, names) = (root(), names());
    let attacks: BTreeSet<u32> = names.iter().flat_map(|name| numbers(name)).collect();
    let exists = |token: &str| match token.strip_suffix("…") {
        Some(attack) => numbers(attack).all(|number| attacks.contains(&number)) && numbers(attack).next().is_some(),
        None if token.contains('/') => root.join(token).exists(),
        None if token.starts_with("hotcell-") => root.join("host").join(&token["hotcell-".len()..]).is_dir(),
        None if token.starts_with("attack_")
            && token.rsplit('_').next().is_some_and(|end| end.parse::<u32>().is_ok()) =>
        {
            numbers(token).all(|number| attacks.contains(&number))
        }
        // A case of the shared suite, which lies beside the repository.
        None if token.starts_with(|first: char| first.is_ascii_digit()) => true,
        None if token.contains("::") => true,
        None => names.contains(token) || names.contains(&format!("{token}.rs")) || is_module(&root.join("host"), token),
    };
    let model = std::fs::read_to_string(root.join("THREAT_MODEL.md")).unwrap();
    let promises = model.split("## Promises").nth(1).and_then(|rest| rest.split("\n## ").next()).unwrap();
    let mut count = 0;
    for row in promises.lines().filter(|line| line.starts_with("| ")).skip(2) {
        let kept_by = row.trim_end_matches('|').rsplit('|').next().unwrap();
        let tokens: Vec<&str> = kept_by.split('`').skip(1).step_by(2).collect();
        assert!(!tokens.is_empty(), "nothing keeps: {row}");
        for token in tokens {
            assert!(exists(token), "`{token}` is not there: {row}");
        }
        count += 1;
    }
    assert!(count > 40, "only {count} promises were found");
}

/// Whether there is a module of that name that is a folder.
fn is_module(folder: &Path, name: &str) -> bool {
    std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).any(|path| {
        path.file_name().is_some_and(|found| found == name)
            || (!path.ends_with("target") && !path.ends_with("node_modules") && is_module(&path, name))
    })
}
