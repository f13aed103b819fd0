//! The forms that an entry of a list of documents can have.

use super::SourceError;

/// An entry of a list of documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Named {
    /// `http://` or `https://`.
    Url(String),
    /// `LOADER:PATH`.
    Loader { name: String, path: String },
    /// A file or a directory; with one of `*?[{` in it also a pattern.
    Path(String),
}

impl Named {
    /// Reads one entry.
    ///
    /// An address begins with `http://` or `https://`. A loader is a name of two or more letters, digits, `-` and `_`
    /// that begins with a letter, then `:`, then anything that does not begin with `//`; a single letter is a drive.
    pub(crate) fn parse(entry: &str) -> Result<Self, SourceError> {
        let refuse = |reason: &str| SourceError::Form { entry: entry.to_owned(), reason: reason.to_owned() };
        if entry.trim().is_empty() {
            return Err(refuse("has no name; write a path, an address or `LOADER:PATH`"));
        }
        if entry.contains('\0') {
            return Err(refuse("has a NUL character in its name"));
        }
        let Some((name, rest)) = entry.split_once(':').filter(|(name, _)| is_loader_name(name)) else {
            return Ok(Self::Path(entry.to_owned()));
        };
        if !rest.starts_with("//") {
            if rest.is_empty() {
                return Err(refuse("names a loader and nothing to load; write `LOADER:PATH`"));
            }
            return Ok(Self::Loader { name: name.to_owned(), path: rest.to_owned() });
        }
        if !matches!(name.to_ascii_lowercase().as_str(), "http" | "https") {
            return Err(refuse("is of an unknown scheme; only `http://` and `https://` are fetched"));
        }
        if entry.contains('*') {
            return Err(refuse("is a pattern of addresses; list the pages one by one"));
        }
        match url::Url::parse(entry) {
            Ok(url) if url.has_host() => Ok(Self::Url(entry.to_owned())),
            Ok(_) => Err(refuse("does not name a host")),
            Err(error) => Err(refuse(&format!("is not a valid address: {error}"))),
        }
    }
}

fn is_loader_name(name: &str) -> bool {
    name.len() >= 2
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.chars().all(|other| other.is_ascii_alphanumeric() || matches!(other, '-' | '_'))
}

/// Whether a path may be a pattern.
pub(super) fn is_pattern(path: &str) -> bool {
    path.contains(['*', '?', '[', '{'])
}

/// The most patterns that one with braces stands for, and the most bytes of it: each pair of braces multiplies their number.
pub(super) const MOST_ALTERNATIVES: usize = 1_000;
const LONGEST_PATTERN: usize = 4_096;

/// `a.{md,txt}` as `a.md` and `a.txt`. Braces are not nested; a pattern without a pair of them stays as it is. None for one
/// that stands for more than [`MOST_ALTERNATIVES`].
pub(super) fn alternatives(pattern: &str) -> Option<Vec<String>> {
    if pattern.len() > LONGEST_PATTERN {
        return None;
    }
    let (mut all, mut rest) = (vec![String::new()], pattern);
    while let Some((before, inside)) = rest.split_once('{')
        && let Some((choices, after)) = inside.split_once('}')
    {
        if all.len() * choices.split(',').count() > MOST_ALTERNATIVES {
            return None;
        }
        let with = |begin: &String| choices.split(',').map(|choice| format!("{begin}{before}{choice}")).collect();
        all = all.iter().flat_map(|begin| -> Vec<String> { with(begin) }).collect();
        rest = after;
    }
    all.iter_mut().for_each(|begun| begun.push_str(rest));
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        let path = |path: &str| Named::Path(path.to_owned());
        let loader = |name: &str, path: &str| Named::Loader { name: name.to_owned(), path: path.to_owned() };
        for (entry, expected) in [
            ("./knowledge/", path("./knowledge/")),
            ("a/b:c.md", path("a/b:c.md")),
            ("c:/x.md", path("c:/x.md")),
            ("9a:x", path("9a:x")),
            ("https://a.example/spec", Named::Url("https://a.example/spec".to_owned())),
            ("git:https://a.example/x", loader("git", "https://a.example/x")),
            ("jina:a b", loader("jina", "a b")),
            ("my-loader_2:/abs", loader("my-loader_2", "/abs")),
        ] {
            assert_eq!(Named::parse(entry).expect("a source"), expected, "{entry}");
        }
        for (entry, part) in [
            ("", "no name"),
            ("ftp://a/b", "unknown scheme"),
            ("git:", "nothing to load"),
            ("https://a.example/**", "one by one"),
            ("http://", "address"),
            ("a\0b", "NUL"),
        ] {
            let error = Named::parse(entry).expect_err(entry).to_string();
            assert!(error.contains(part), "{entry}: {error}");
        }
    }

    #[test]
    fn braces() {
        let alternatives = |pattern: &str| alternatives(pattern).map(|all| all.join(" "));
        assert_eq!(alternatives("a/*.{md,txt}").as_deref(), Some("a/*.md a/*.txt"));
        assert_eq!(alternatives("{a,b}{c,d}").as_deref(), Some("ac ad bc bd"));
        assert_eq!((alternatives("a{b").as_deref(), alternatives("a}b").as_deref()), (Some("a{b"), Some("a}b")));
        // Each pair of braces doubles what the pattern stands for.
        assert!(alternatives(&"{a,b}".repeat(9)).is_some());
        for pattern in
            ["{a,b}".repeat(10), "{a,b}".repeat(64), "{a}".repeat(5_000), format!("{{{}}}", ",".repeat(2_000))]
        {
            assert_eq!(alternatives(&pattern), None);
        }
    }
}
