//! What a plugin can be, what it can be written in, and how it may be called.

use std::fmt;

use serde::Deserialize;

/// Bytes of a plugin's name.
const MAX_NAME: usize = 64;

/// What a plugin offers. One plugin may offer several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Tools for the models of a graph.
    Tool,
    /// A script node.
    Script,
    /// A connection to another system.
    Connector,
    /// Hooks around what a run does.
    Hooks,
    /// Node types.
    Node,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 5] = [Kind::Tool, Kind::Script, Kind::Connector, Kind::Hooks, Kind::Node];

    /// The word for it on the command line and in `plugin.toml`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Script => "script",
            Self::Connector => "connector",
            Self::Hooks => "hooks",
            Self::Node => "node",
        }
    }

    /// The interface of the contract that such a plugin exports, without package and version.
    #[must_use]
    pub fn interface(self) -> &'static str {
        match self {
            Self::Tool => "call-tool",
            Self::Script => "run-script",
            Self::Connector => "connect",
            Self::Hooks => "hook",
            Self::Node => "run-node",
        }
    }
}

/// What a plugin is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Language {
    /// Rust, built by cargo.
    #[serde(rename = "rust")]
    Rust,
    /// Python, built by `componentize-py`.
    #[serde(rename = "python")]
    Python,
    /// JavaScript, built by `esbuild` and `componentize-js`.
    #[serde(rename = "js")]
    JavaScript,
    /// TypeScript, built as JavaScript is.
    #[serde(rename = "ts")]
    TypeScript,
    /// C, built by clang.
    #[serde(rename = "c")]
    C,
}

impl Language {
    /// All of them.
    pub const ALL: [Language; 5] =
        [Language::Rust, Language::Python, Language::JavaScript, Language::TypeScript, Language::C];

    /// The word for it on the command line and in `plugin.toml`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::JavaScript => "js",
            Self::TypeScript => "ts",
            Self::C => "c",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.word())
    }
}

impl fmt::Display for Language {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.word())
    }
}

/// Why a plugin cannot be called so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{name}` is not a valid plugin name: use 1 to {MAX_NAME} ASCII letters, digits, `_`, `-` and `.`, with \
     at most one `:` between two such parts, as in `weather` or `acme:weather`"
)]
pub struct NameError {
    /// The name.
    pub name: String,
}

/// Checks the name of a plugin.
///
/// # Errors
///
/// [`NameError`] where it is empty, too long or has other characters than a name may have.
pub fn check_name(name: &str) -> Result<(), NameError> {
    let plain = |part: &str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        // A part of dots alone would be a folder above.
        !part.is_empty() && part.bytes().all(allowed) && part.bytes().any(|byte| byte != b'.')
    };
    let parts_are_plain = match name.split_once(':') {
        Some((space, own)) => plain(space) && plain(own),
        None => plain(name),
    };
    if parts_are_plain && name.len() <= MAX_NAME {
        return Ok(());
    }
    Err(NameError { name: name.chars().take(MAX_NAME + 20).collect() })
}

/// The name of the plugin's file without its ending: its name with `-` in the place of `:`, which some systems refuse.
pub(crate) fn file_stem(name: &str) -> String {
    name.replace(':', "-")
}

/// The name as cargo and npm accept it: small letters, digits, `-` and `_`, beginning with a letter.
pub(crate) fn package_name(name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|letter| match letter {
            ':' | '.' => '-',
            other => other.to_ascii_lowercase(),
        })
        .collect();
    if plain.starts_with(|letter: char| letter.is_ascii_lowercase()) { plain } else { format!("plugin-{plain}") }
}

#[cfg(test)]
mod tests {
    use super::{check_name, package_name};

    #[test]
    fn names_are_plain_with_one_colon_at_most() {
        let long = "x".repeat(64);
        for name in ["weather", "acme:weather", "A.b-c_d", "7", long.as_str()] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        let too_long = "x".repeat(65);
        for name in ["", ":", "a:", ":b", "a:b:c", "a b", "a/b", "..", "a:..", "wörter", "a\n", too_long.as_str()] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn package_names_suit_cargo_and_npm() {
        assert_eq!(package_name("acme:Weather.v2"), "acme-weather-v2");
        assert_eq!(package_name("7up"), "plugin-7up");
        assert_eq!(package_name("_x"), "plugin-_x");
    }
}
