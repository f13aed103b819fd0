//! `[record]` of `hotcell.toml` and of the user's `config.toml`: whether calls are recorded, and what of them.

use hotcell_budget::Bytes;
use hotcell_cells::{RECORDING_BYTES, RecordTerms};
use serde::Deserialize;

/// Stands for all scripts and plugins.
const ALL: &str = "*";

/// Whether calls are recorded, and what of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RecordSettings {
    /// Whether calls are recorded at all; they are, if nothing is said
    pub on: Option<bool>,
    /// Scripts and plugins of whose calls only digests are kept; `*` stands for all
    pub private: Vec<String>,
    /// Bytes that the recording of one call may have
    pub max_bytes: Option<u64>,
}

impl RecordSettings {
    /// What counts in a folder that says `folder`, where the user says `self`: what either of them leaves out is left out.
    pub(crate) fn with(&self, folder: &RecordSettings) -> Self {
        let smaller = |one: u64| folder.max_bytes.map_or(one, |other| other.min(one));
        Self {
            on: Some(self.on.unwrap_or(true) && folder.on.unwrap_or(true)),
            private: self.private.iter().chain(&folder.private).cloned().collect(),
            max_bytes: self.max_bytes.map(smaller).or(folder.max_bytes),
        }
    }

    /// How calls of a script or plugin are recorded; none if they are not.
    pub(crate) fn terms(&self, name: &str) -> Option<RecordTerms> {
        let is_on = self.on.unwrap_or(true);
        is_on.then(|| RecordTerms {
            max_bytes: self.max_bytes.map_or(RECORDING_BYTES, Bytes),
            is_private: self.private.iter().any(|private| private == name || private == ALL),
        })
    }

    /// What these settings do, in plain words: by the name of a script or plugin, or an empty one for all of them.
    pub(crate) fn in_words(&self) -> Vec<(&str, String)> {
        let off =
            (self.on == Some(false)).then(|| ("", "no call is recorded, and none can be executed again".to_owned()));
        let size = self.max_bytes.map(|most| ("", format!("a recording of a call has at most {}", Bytes(most))));
        let private = self.private.iter().map(|name| match name.as_str() {
            ALL => ("", "only digests are recorded of all calls".to_owned()),
            name => (name, "have its calls recorded by their digests only".to_owned()),
        });
        off.into_iter().chain(size).chain(private).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::RecordSettings;

    fn settings(text: &str) -> RecordSettings {
        toml::from_str(text).unwrap_or_else(|error| panic!("`{text}`: {error}"))
    }

    #[test]
    fn what_the_user_or_the_folder_leaves_out_is_left_out() {
        let cases = [
            ("", "", Some((1 << 20, false))),
            ("on = false", "on = true", None),
            ("on = true", "on = false", None),
            ("max_bytes = 10", "max_bytes = 99", Some((10, false))),
            ("max_bytes = 99", "max_bytes = 10", Some((10, false))),
            ("", "max_bytes = 7", Some((7, false))),
            ("private = ['a']", "private = ['b']", Some((1 << 20, true))),
            ("", "private = ['*']", Some((1 << 20, true))),
            ("private = ['b']", "", Some((1 << 20, false))),
        ];
        for (user, folder, expected) in cases {
            let terms = settings(user).with(&settings(folder)).terms("a");
            let terms = terms.map(|terms| (terms.max_bytes.0, terms.is_private));
            assert_eq!(terms, expected, "`{user}` and `{folder}`");
        }
    }

    #[test]
    fn what_has_no_meaning_is_refused() {
        for wrong in ["off = true", "on = 'yes'", "max_bytes = -1", "private = 'a'"] {
            assert!(toml::from_str::<RecordSettings>(wrong).is_err(), "{wrong}");
        }
    }
}
