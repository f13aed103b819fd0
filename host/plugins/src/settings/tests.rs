//! What settings say, and what is wrong with them.

use super::*;

fn settings(text: &str) -> Result<Settings, String> {
    let folder = tempfile::tempdir().unwrap();
    Settings::parse(folder.path(), text, &Path::to_path_buf).map_err(|error| error.to_string())
}

#[test]
fn limits_are_laid_over_the_defaults_and_cut_to_the_ceiling() {
    let settings = settings("[budget.\"a.js\"]\nfuel = 7\n[ceiling]\nmemory = 1000\n").unwrap();
    let budget = settings.budget("a.js", Budget::interpreter()).unwrap();
    assert_eq!((budget.fuel.0, budget.memory.0, budget.output), (7, 1000, Budget::interpreter().output));
    assert_eq!(settings.budget("b.js", Budget::default()).unwrap().fuel, Budget::default().fuel);
}

#[test]
fn settings_that_nobody_trusts_grant_nothing_and_widen_nothing() {
    let text = "[hooks]\norder = []\noptional = ['a']\n[grants.a]\nkv = true\n[budget.a]\nfuel = 9000000000\nlog_lines = 3\n[plugins.a.config]\nx = 'y'\n";
    let settings = settings(text).unwrap();
    assert!(settings.wish_for_something() && settings.grants("a").kv);
    let settings = settings.distrusted();
    let budget = settings.budget("a", Budget::default()).unwrap();
    assert_eq!((budget.fuel, budget.log_lines), (Budget::default().fuel, 3));
    assert!(!settings.grants("a").kv && settings.held_back("a").kv);
    assert_eq!((settings.config("a").len(), settings.hook_order()), (0, None));
    assert!(!settings.is_optional_hook("a"));
}

#[test]
fn a_run_can_be_strict_without_trust() {
    let strict = settings("[run]\nstrict = true\n").unwrap();
    assert!(strict.is_strict() && !strict.wish_for_something() && strict.distrusted().is_strict());
    assert!(!settings("").unwrap().is_strict());
    assert!(settings("[run]\nstrct = true\n").unwrap_err().contains("unknown field `strct`"));
}

#[test]
fn without_trust_a_run_writes_less_to_its_journal_and_never_more() {
    let bytes = |text: &str| {
        let settings = settings(text).unwrap();
        let (wishes, trusted) = (settings.wish_for_something(), settings.journal_bytes());
        assert_eq!(settings.wishes().is_empty(), !wishes, "{text}");
        (wishes, trusted, settings.distrusted().journal_bytes())
    };
    let (less, more) = (Bytes::mib(1), Bytes(1 << 40));
    assert_eq!(bytes(""), (false, JOURNAL_BYTES, JOURNAL_BYTES));
    assert_eq!(bytes("[run]\njournal_bytes = 1048576\n"), (false, less, less));
    assert_eq!(bytes("[run]\njournal_bytes = 1099511627776\n"), (true, more, JOURNAL_BYTES));
    for wrong in ["-1", "'much'", "1.5"] {
        let error = settings(&format!("[run]\njournal_bytes = {wrong}\n")).unwrap_err();
        assert!(error.contains("journal_bytes"), "{error}");
    }
}

#[test]
fn secrets_come_from_where_the_operator_keeps_them() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "from-file\n").unwrap();
    let secret = |name: &str| format!("{{ name = '{name}', servers = [] }}");
    let text = format!(
        "[grants.a]\nsecret = [{}, {}, {}, {}]\n[secrets]\nE = {{ env = 'VAR' }}\nF = {{ file = '{}' }}\n",
        secret("E"),
        secret("F"),
        secret("PLAIN"),
        secret("UNSET"),
        file.path().display()
    );
    let settings = settings(&text).unwrap();
    let environment = |name: &str| match name {
        "VAR" | "HOTCELL_SECRET_PLAIN" | "HOTCELL_SECRET_OTHER" => Some(name.to_lowercase()),
        _ => None,
    };
    assert_eq!(format!("{:?}", settings.secrets("a", &environment)), r#"{"E", "F", "PLAIN"}"#);
    assert_eq!(format!("{:?}", settings.secrets("b", &environment)), "{}");
}

#[test]
fn nobody_is_asked_for_what_calls_are_denied_where_nobody_trusts_the_settings() {
    let asks = settings("[denials]\nask = true\n").unwrap();
    assert!(asks.asks_denials() && asks.wish_for_something() && !asks.wishes().is_empty());
    assert!(!asks.distrusted().asks_denials());
    let quiet = settings("[denials]\nask = false\n").unwrap();
    assert!(!quiet.asks_denials() && !quiet.wish_for_something());
}

#[test]
fn what_has_no_meaning_is_refused_with_its_name() {
    for (text, fragment) in [
        ("[grant.x]\n", "unknown field `grant`"),
        ("[grants.x]\nhtpt = []\n", "unknown field `htpt`"),
        ("[ceiling]\nfule = 1\n", "`[ceiling]`: unknown field `fule`"),
        ("[denials]\nasks = true\n", "unknown field `asks`"),
        ("[budget.\"a.js\"]\nfuel = \"much\"\n", "`[budget.\"a.js\"]`"),
        ("[grants\n", "line 1"),
    ] {
        let error = settings(text).unwrap_err();
        assert!(error.contains(fragment), "{error}");
    }
}

/// A file of the folder that became a link would have whose key it leads to sent to the servers of the secret.
#[cfg(unix)]
#[test]
fn the_file_of_a_secret_in_the_folder_leads_nowhere_else() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("agent");
    std::fs::create_dir_all(folder.join("sub")).unwrap();
    std::fs::create_dir(place.path().join("keys")).unwrap();
    std::fs::write(place.path().join("keys/mine"), "mine").unwrap();
    std::os::unix::fs::symlink(place.path().join("keys/mine"), folder.join("link")).unwrap();
    std::os::unix::fs::symlink(place.path().join("keys"), folder.join("away")).unwrap();
    std::os::unix::fs::symlink(&folder, place.path().join("agent-too")).unwrap();
    std::fs::write(folder.join("sub/own"), "own").unwrap();
    for (file, is_read) in [
        ("agent/sub/own", true),
        ("keys/mine", true),
        ("agent/link", false),
        ("agent/away/mine", false),
        ("agent-too/link", false),
        ("agent/away/../link", false),
        ("agent/sub/../../keys/mine", true),
    ] {
        let path = place.path().canonicalize().unwrap().join(file);
        let text = format!(
            "[grants.a]\nsecret = [{{ name = 'K', servers = [] }}]\n[secrets]\nK = {{ file = '{}' }}\n",
            path.display()
        );
        let settings = Settings::of_folder(&folder, &text).unwrap();
        let found = format!("{:?}", settings.secrets("a", &|_| None));
        assert_eq!(found, if is_read { r#"{"K"}"# } else { "{}" }, "{file}");
    }
}
