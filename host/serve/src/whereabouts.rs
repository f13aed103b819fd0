//! Texts for people elsewhere say what is wrong with a file, and not where the server has its files.

use std::path::{Path, PathBuf};

/// What ends a path that stands in a text without quotes.
const ENDS: &str = "`'\"()[]{}<>,;:|";
/// What may stand before a path in a text, beside space. Before the `/` of a relative path, of a variable or of an address is something
/// else.
const BEFORE: &str = "`'\"([{<>=,;:|";

/// A text of an agent's loading without the places of files: what lies in the folder of the agent is said relative to it, and of
/// every other path its last name is left. `agent` is the agent's file or its folder.
pub(crate) fn without_whereabouts(text: &str, agent: &Path) -> String {
    let own = if agent.is_dir() { agent } else { agent.parent().unwrap_or(agent) };
    let mut folders = vec![own.to_owned()];
    folders.extend(own.canonicalize());
    // Everything lies within the root, and nothing is said by that.
    folders.retain(|folder| folder.is_absolute() && folder.parent().is_some());
    let mut shown = String::with_capacity(text.len());
    let (mut rest, mut before) = (text, None);
    while let Some(at) = rest.find('/') {
        let (head, tail) = rest.split_at(at);
        let last = head.chars().next_back().or(before);
        shown.push_str(head);
        // The address of a file has no server in it.
        let is_address = last == Some(':') && tail.starts_with("//") && !tail.starts_with("///");
        let begins = last.is_none_or(|last| last.is_whitespace() || BEFORE.contains(last)) && !is_address;
        let end = if begins { end_of(tail, last) } else { 1 };
        let (path, after) = tail.split_at(end);
        if begins {
            shown.push_str(&said(path, &folders));
        } else {
            shown.push_str(path);
        }
        (rest, before) = (after, path.chars().next_back());
    }
    shown.push_str(rest);
    // A folder that was named relative to where the server was started.
    match own.to_str() {
        Some(own) if !own.starts_with('/') && own.contains('/') => shown.replace(&format!("{own}/"), ""),
        _ => shown,
    }
}

/// Where a path ends with which a text begins. `before` is what stands before it.
fn end_of(text: &str, before: Option<char>) -> usize {
    let quote = before.filter(|before| "`'\"".contains(*before));
    let closed = quote.and_then(|quote| text.find(quote));
    let open = || text.find(|one: char| one.is_whitespace() || ENDS.contains(one));
    closed.or_else(open).unwrap_or(text.len())
}

/// What is said of a path.
fn said(path: &str, own: &[PathBuf]) -> String {
    let full = Path::new(path);
    if let Some(inside) = own.iter().find_map(|folder| full.strip_prefix(folder).ok()) {
        return if inside.as_os_str().is_empty() { ".".to_owned() } else { inside.display().to_string() };
    }
    // One with a single name says nothing of places, and may be something else than a path.
    match full.components().count() {
        0..=2 => path.to_owned(),
        _ => full.file_name().map_or_else(|| "..".to_owned(), |name| name.to_string_lossy().into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::without_whereabouts;

    #[test]
    fn where_files_are_is_not_said() {
        let cases = [
            ("`/srv/agents/desk/x.js` is missing", "`x.js` is missing"),
            ("`/srv/agents/desk/lib/x.js`, in `/srv/agents/desk`", "`lib/x.js`, in `.`"),
            // Of what lies elsewhere the name is left, also of a folder with a name that begins alike.
            ("`/srv/agents/other/y` and /srv/agents/desktop/z", "`y` and z"),
            ("plugin `/home/ada/my plugins/a.wasm`: bad", "plugin `a.wasm`: bad"),
            ("cannot read /etc/hotcell/key.pem: denied (/home/ada/.ssh/id)", "cannot read key.pem: denied (id)"),
            ("adopt p --in /home/ada/x --plugins=/home/ada/y/", "adopt p --in x --plugins=y"),
            ("PATH is /a/b:/c/d, and \"/e/f/..\"", "PATH is b:d, and \"..\""),
            ("see file:///etc/hotcell/a.toml", "see file:a.toml"),
            // What is no place on this machine stays.
            ("ask https://example.org/a/b and//c", "ask https://example.org/a/b and//c"),
            (
                "`scripts/a.js`, ./a/b, ~/a/b, ${HOME}/a/b, and/or, `/webhook/` or /",
                "`scripts/a.js`, ./a/b, ~/a/b, ${HOME}/a/b, and/or, `/webhook/` or /",
            ),
            ("no path", "no path"),
            ("an open `/srv/a/b c", "an open `b c"),
            ("/ä/ö/ü ß", "ü ß"),
        ];
        for (text, expected) in cases {
            let agent = std::path::Path::new("/srv/agents/desk/graph.yaml");
            assert_eq!(without_whereabouts(text, agent), expected, "{text}");
        }
        for agent in ["graph.yaml", "/graph.yaml"] {
            assert_eq!(without_whereabouts("in /etc/hotcell/a", std::path::Path::new(agent)), "in a");
        }
        let named = std::path::Path::new("agents/desk/graph.yaml");
        assert_eq!(without_whereabouts("`agents/desk/x.js` is missing", named), "`x.js` is missing");
    }

    #[test]
    fn a_folder_is_known_by_its_real_path_too() {
        let folder = tempfile::tempdir().expect("a folder");
        let real = folder.path().canonicalize().expect("a path");
        let text = format!("`{}` and `{}`", real.join("a.js").display(), real.join("b/c.js").display());
        assert_eq!(without_whereabouts(&text, folder.path()), "`a.js` and `b/c.js`");
    }
}
