//! `plugin.toml`: what a project says about its plugin that its code does not.

use std::path::{Component, Path, PathBuf};
use std::{fmt, io};

use serde::de::value::SeqAccessDeserializer;
use serde::de::{IntoDeserializer as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::project::{Kind, Language, NameError, check_name};

/// The name of the file.
pub(crate) const FILE: &str = "plugin.toml";

/// What may stand below `[capabilities]`.
const CAPABILITIES: [&str; 10] = ["fs", "http", "env", "clock", "random", "secret", "kv", "llm", "tool", "ask"];

/// What stands in a `plugin.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) version: Option<String>,
    #[serde(default)]
    pub(crate) description: Option<String>,
    kind: Kinds,
    pub(crate) language: Language,
    /// The file with the code, relative to the project.
    pub(crate) source: PathBuf,
    /// The folder of the SDK, relative to the project.
    #[serde(default = "own_sdk")]
    pub(crate) sdk: PathBuf,
    #[serde(default)]
    pub(crate) capabilities: Map<String, Value>,
}

/// One kind, or a list of them.
#[derive(Debug)]
struct Kinds(Vec<Kind>);

impl<'de> Deserialize<'de> for Kinds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrSeveral;

        impl<'de> Visitor<'de> for OneOrSeveral {
            type Value = Kinds;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a kind of plugin, such as \"tool\", or a list of kinds")
            }

            fn visit_str<E: serde::de::Error>(self, kind: &str) -> Result<Kinds, E> {
                Kind::deserialize(kind.into_deserializer()).map(|kind| Kinds(vec![kind]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, kinds: A) -> Result<Kinds, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(kinds)).map(Kinds)
            }
        }

        deserializer.deserialize_any(OneOrSeveral)
    }
}

fn own_sdk() -> PathBuf {
    "sdk".into()
}

/// What is wrong with a `plugin.toml`.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// It cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is not TOML of the documented form.
    #[error("`{}` is not of the documented form: {message}", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// What is wrong and where.
        message: String,
    },
    /// The plugin has a name that no plugin may have.
    #[error("in `{}`: {source}", path.display())]
    Name {
        /// The file.
        path: PathBuf,
        /// What is wrong with the name.
        source: NameError,
    },
}

impl Manifest {
    /// Reads the manifest of the project in `directory`.
    pub(crate) fn read(directory: &Path) -> Result<Self, ManifestError> {
        let path = directory.join(FILE);
        let text = match hotcell_files::read_text(&path, hotcell_files::MAX_TEXT) {
            Ok(text) => text,
            Err(source) => return Err(ManifestError::Read { path, source }),
        };
        let manifest: Self = match toml::from_str(&text) {
            Ok(manifest) => manifest,
            Err(error) => return Err(ManifestError::Form { path, message: error.to_string().trim_end().to_owned() }),
        };
        let form = |message: &str| ManifestError::Form { path: path.clone(), message: message.to_owned() };
        if let Err(source) = check_name(&manifest.name) {
            return Err(ManifestError::Name { path, source });
        }
        if manifest.kinds().is_empty() {
            return Err(form(
                "`kind` is empty; it is one of `tool`, `script`, `connector`, `hooks`, `node` or a list of them",
            ));
        }
        if manifest.language == Language::Rust {
            return Err(form("a plugin in Rust is described by its `Cargo.toml` and its code; remove this file"));
        }
        // What was built is refused for it, too, after a while and without the name of this file.
        if let Some(unknown) = manifest.capabilities.keys().find(|key| !CAPABILITIES.contains(&key.as_str())) {
            let known = CAPABILITIES.map(|key| format!("`{key}`")).join(", ");
            return Err(form(&format!("`{unknown}` under `[capabilities]` is not a capability; they are {known}")));
        }
        let leads_out = |part: Component<'_>| !matches!(part, Component::Normal(_) | Component::CurDir);
        if manifest.source.components().any(leads_out) || manifest.source.file_stem().is_none() {
            return Err(form("`source` has to be a file inside the project, such as `src/plugin.py`"));
        }
        Ok(manifest)
    }

    /// The kinds of the plugin.
    pub(crate) fn kinds(&self) -> &[Kind] {
        &self.kind.0
    }

    /// Whether the plugin asks for a capability.
    pub(crate) fn asks_for(&self, capability: &str) -> bool {
        match self.capabilities.get(capability) {
            None | Some(Value::Null | Value::Bool(false)) => false,
            Some(Value::Array(items)) => !items.is_empty(),
            Some(_) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::Manifest;

    fn problem(text: &str) -> String {
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(directory.path().join("plugin.toml"), text).expect("the file");
        Manifest::read(directory.path()).map_or_else(|error| error.to_string(), |_| "accepted".to_owned())
    }

    #[test]
    fn what_is_wrong_is_said() {
        let good = "name = \"x\"\nkind = [\"tool\", \"hooks\"]\nlanguage = \"c\"\nsource = \"src/plugin.c\"\n";
        assert_eq!(problem(good), "accepted");
        let cases = [
            (good.replace("\"x\"", "\"a b\""), "`a b` is not a valid plugin name"),
            (good.replace("\"c\"", "\"cobol\""), "cobol"),
            (good.replace("[\"tool\", \"hooks\"]", "[]"), "`kind` is empty"),
            (
                good.replace("[\"tool\", \"hooks\"]", "\"tol\""),
                "unknown variant `tol`, expected one of `tool`, `script`",
            ),
            (good.replace("\"hooks\"]", "\"hoks\"]"), "unknown variant `hoks`, expected one of `tool`, `script`"),
            (
                good.replace("[\"tool\", \"hooks\"]", "1"),
                "expected a kind of plugin, such as \"tool\", or a list of kinds",
            ),
            (good.replace("src/", "../"), "inside the project"),
            (good.replace("\"c\"", "\"rust\""), "`Cargo.toml`"),
            (format!("{good}colour = 1\n"), "colour"),
            (format!("{good}[capabilities]\nhtpp = [\"*\"]\n"), "`htpp` under `[capabilities]` is not a capability"),
        ];
        for (text, expected) in cases {
            let found = problem(&text);
            assert!(found.contains(expected), "`{expected}` is not in `{found}`");
        }
    }
}
