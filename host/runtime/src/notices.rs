//! What a script that came to its end wrote to standard error: shown, because nobody else sees that something in it failed.

use hotcell_cells::{Capability, Denial, Terms};
use hotcell_engine::Notice;

/// Characters of standard error that are shown.
const SHOWN: usize = 2000;
/// Files that are warned about.
const FILES: usize = 5;
/// Where a shell script begins in its cell.
const SHELL_FOLDER: &str = "/home/user";
/// Where the agents lie for tools of shell scripts.
const AGENTS: &str = "/llm/agents/";
/// How a shell says that a file is not there, behind the line and the path.
const NOT_THERE: &str = ": No such file or directory";

/// What to tell about a script of that name with this standard error.
pub(crate) fn of(name: &str, stderr: &str) -> Vec<Notice> {
    let text = stderr.trim_end();
    if text.is_empty() {
        return Vec::new();
    }
    let mut notices = vec![Notice { text: cut(text), help: None }];
    if name.ends_with(".sh") {
        notices.extend(text.lines().filter_map(|line| missing(name, line)).take(FILES));
    }
    notices
}

/// What to tell of capabilities that a call did without. It may have come to its end only because nobody looked.
pub(crate) fn of_denials(denials: &[Denial]) -> impl Iterator<Item = Notice> {
    // Interpreters look for files and times that nobody wrote about.
    let is_meant = |denial: &&Denial| {
        !matches!(
            denial.capability,
            Capability::Directory { .. } | Capability::PreciseClock | Capability::FreshRandom | Capability::Socket
        )
    };
    denials.iter().filter(is_meant).map(|denial| Notice { text: denial.what(), help: Some(denial.help()) })
}

/// What to do about a variable of the environment that a script did not find, if that is why it failed. The cell does not see
/// that it was looked for: only what is granted is there.
pub(crate) fn unset_variable(failure: &str, terms: &Terms) -> Option<String> {
    let name = failure.lines().find_map(|line| variable_in(line.trim(), failure))?;
    if terms.env.iter().any(|(known, _)| known == name) {
        return None;
    }
    if terms.grants.env.iter().any(|granted| granted == name) {
        return Some(format!("`{name}` is granted, and it is not set in the environment of hotcell"));
    }
    let capability = Capability::Variable { name: name.to_owned() };
    let held_back = capability.is_in(&terms.held_back);
    let denial = Denial { held_back, ..Denial::new(&*terms.plugin, capability) };
    Some(format!("if `{name}` is meant to come from the environment of hotcell: {}", denial.help()))
}

/// The variable that a line of an error says is missing, as Python and the shell write it.
fn variable_in<'l>(line: &'l str, failure: &str) -> Option<&'l str> {
    let of_python = || line.strip_prefix("KeyError: '")?.strip_suffix('\'').filter(|_| failure.contains("<frozen os>"));
    let of_shell = || {
        let line =
            [": unbound variable", ": parameter null or not set"].iter().find_map(|end| line.strip_suffix(end))?;
        line.rsplit([' ', ':']).next()
    };
    let is_name = |name: &&str| {
        let mut characters = name.chars();
        characters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
            && characters.all(|character| character.is_ascii_alphanumeric() || character == '_')
    };
    of_python().or_else(of_shell).filter(is_name)
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}... ({} characters more)", &text[..end], text[end..].chars().count()),
        None => text.to_owned(),
    }
}

/// A file that a script reads with `source` or a redirection and that is not there, with what would let it read the file:
/// `NAME: line N: PATH: No such file or directory`.
fn missing(name: &str, line: &str) -> Option<Notice> {
    let before = line.strip_suffix(NOT_THERE)?;
    let (_, rest) = before.split_once(": line ")?;
    let (number, path) = rest.split_once(": ")?;
    number.parse::<u32>().ok()?;
    let text = format!("`{name}`, line {number}: there is no file `{path}` in the cell");
    let Some((host, guest)) = folders(path) else {
        return Some(Notice {
            text,
            help: Some("a cell has no files of the machine but those that are granted".to_owned()),
        });
    };
    let grant = format!(
        "a cell has no files of the machine but those that are granted; if the file is there, let the script read its folder in \
         `hotcell.toml`:\n[grants.\"{name}\"]\nfs = [{{ host = \"{host}\", guest = \"{guest}\", access = \"read\" }}]"
    );
    Some(Notice { text, help: Some(grant) })
}

/// The folder of a file as it would be called from the agent's folder, and as the script calls it.
fn folders(path: &str) -> Option<(String, String)> {
    // The path is a script's own text: it must not say more in the lines that grant something than where the file is.
    if path.contains(['"', '\\']) || path.contains(char::is_control) {
        return None;
    }
    if let Some(below) = path.strip_prefix(AGENTS) {
        let (folder, _) = below.rsplit_once('/')?;
        return Some((format!("../{folder}"), format!("{AGENTS}{folder}")));
    }
    if path.starts_with('/') || path.is_empty() {
        return None;
    }
    let (folder, _) = path.rsplit_once('/').unwrap_or((".", path));
    let mut up = 0;
    let mut down: Vec<&str> = Vec::new();
    for part in folder.split('/').filter(|part| !matches!(*part, "" | ".")) {
        match part {
            ".." if down.pop().is_none() => up += 1,
            ".." => {}
            part => down.push(part),
        }
    }
    let base: Vec<&str> = SHELL_FOLDER.split('/').filter(|part| !part.is_empty()).collect();
    let kept = base.len().checked_sub(up)?;
    let guest: Vec<&str> = base[..kept].iter().copied().chain(down.iter().copied()).collect();
    let host: Vec<&str> = std::iter::repeat_n("..", up).chain(down).collect();
    let host = if host.is_empty() { ".".to_owned() } else { host.join("/") };
    (!guest.is_empty()).then(|| (host, format!("/{}", guest.join("/"))))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_file_that_a_shell_does_not_find_is_a_warning_with_the_grant() {
        let stderr = "scripts/s.sh: line 3: scripts/../../.shared/utils.sh: No such file or directory\ncat: x: No such file or directory\n";
        let notices = of("scripts/s.sh", stderr);
        assert_eq!(notices.len(), 2);
        assert_eq!((notices[0].text.as_str(), &notices[0].help), (stderr.trim_end(), &None));
        let help = notices[1].help.as_deref().unwrap_or_default();
        assert!(notices[1].text.contains("line 3") && notices[1].text.contains(".shared/utils.sh"));
        assert!(help.contains("[grants.\"scripts/s.sh\"]"), "{help}");
        assert!(help.contains("{ host = \"../.shared\", guest = \"/home/.shared\", access = \"read\" }"), "{help}");
        assert!(of("scripts/s.py", stderr).len() == 1 && of("scripts/s.sh", " \n").is_empty());
    }

    #[test]
    fn folders_are_called_as_script_and_operator_see_them() {
        for (path, expected) in [
            ("x.sh", Some((".", "/home/user"))),
            ("./lib/x.sh", Some(("lib", "/home/user/lib"))),
            ("scripts/../../.shared/x.sh", Some(("../.shared", "/home/.shared"))),
            ("../../../../x.sh", None),
            ("../../x.sh", None),
            ("/etc/profile", None),
            ("x\", guest = \"/\", access = \"read-write\" }] #/x.sh", None),
            ("", None),
            ("/llm/agents/.shared/x.sh", Some(("../.shared", "/llm/agents/.shared"))),
        ] {
            assert_eq!(folders(path), expected.map(|(host, guest)| (host.to_owned(), guest.to_owned())), "{path}");
        }
    }

    #[test]
    fn a_variable_that_a_script_misses_is_named_with_its_grant() {
        let python = "exited with code 1: Traceback (most recent call last):\n  File \"<frozen os>\", line 709, in \
                      __getitem__\nKeyError: 'KEY'";
        let shells = ["s.sh: line 2: KEY: unbound variable", "s.sh: line 1: KEY: parameter null or not set"];
        let terms = |grants: &str, held_back: &str| Terms {
            grants: Arc::new(toml::from_str(grants).unwrap()),
            held_back: Arc::new(toml::from_str(held_back).unwrap()),
            ..Terms::new("s.sh")
        };
        for failure in [python, shells[0], shells[1]] {
            let hint = unset_variable(failure, &terms("", "")).unwrap_or_default();
            assert!(hint.contains("[grants.\"s.sh\"]\nenv = [\"KEY\"]"), "{failure}: {hint}");
            let hint = unset_variable(failure, &terms("", "env = ['KEY']")).unwrap_or_default();
            assert!(hint.contains("`hotcell trust DIR`"), "{failure}: {hint}");
            let hint = unset_variable(failure, &terms("env = ['KEY']", "")).unwrap_or_default();
            assert!(hint.contains("is not set"), "{failure}: {hint}");
        }
        for other in ["KeyError: 'KEY'", "line 3: a b: unbound variable x", "s.sh: line 1: $1: unbound variable"] {
            assert_eq!(unset_variable(other, &terms("", "")), None, "{other}");
        }
    }

    #[test]
    fn what_a_call_did_without_is_a_warning_with_its_grant() {
        let denials = [
            Denial::new("s.sh", Capability::KeyValue),
            Denial::new("s.sh", Capability::Directory { guest: "/usr".to_owned(), access: Default::default() }),
        ];
        let notices: Vec<Notice> = of_denials(&denials).collect();
        assert_eq!(notices.len(), 1);
        assert!(notices[0].text.contains("`kv`"), "{notices:?}");
        assert!(notices[0].help.as_deref().is_some_and(|help| help.contains("kv = true")), "{notices:?}");
    }

    #[test]
    fn much_is_cut() {
        let notices = of("a.py", &"é".repeat(3000));
        assert!(notices[0].text.ends_with("... (1000 characters more)"), "{}", notices[0].text.len());
    }
}
