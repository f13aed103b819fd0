//! Tokenizers that the user has of models, by which texts are counted as a model counts them.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokenizers::Tokenizer;

use crate::ModelName;
use crate::prices::undated;

/// Bytes that a tokenizer may have.
const LARGEST: u64 = 64 << 20;

/// The tokenizer of a model, once it was looked for.
type Slot = OnceLock<Option<Tokenizer>>;

/// The tokenizers in a folder: `MODEL.json` for each model, in the form of Hugging Face's `tokenizer.json`.
pub struct Tokenizers {
    folder: Option<PathBuf>,
    read: Mutex<HashMap<ModelName, Arc<Slot>>>,
}

impl Tokenizers {
    /// Those in this folder. A file is read when its model is first counted for.
    #[must_use]
    pub fn of_folder(folder: Option<PathBuf>) -> Self {
        Tokenizers { folder, read: Mutex::default() }
    }

    /// How many tokens a text has for a model; none where its tokenizer is not there, or cannot be used.
    pub fn count(&self, model: &ModelName, text: &str) -> Option<usize> {
        let folder = self.folder.as_deref()?;
        // Only whoever counts for the same model waits until its file is read.
        let slot = self.read.lock().unwrap_or_else(PoisonError::into_inner).entry(model.clone()).or_default().clone();
        let tokenizer = slot.get_or_init(|| find(folder, model)).as_ref()?;
        tokenizer.encode_fast(text, false).ok().map(|encoded| encoded.len())
    }
}

impl fmt::Debug for Tokenizers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokenizers").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// The tokenizer of a model, by its name without its provider, with the date at its end or without it.
fn find(folder: &Path, model: &ModelName) -> Option<Tokenizer> {
    // A name comes from an agent's file, and is no path.
    let is_name = |name: &&str| !name.starts_with('.') && !name.contains(['/', '\\']);
    [Some(model.model()), undated(model.model())].into_iter().flatten().filter(is_name).find_map(|name| {
        let path = folder.join(format!("{name}.json"));
        match read(&path) {
            Ok(tokenizer) => Some(tokenizer),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                tracing::warn!(
                    target: "hotcell::models",
                    "the tokenizer {} cannot be used, so tokens of {model} are estimated: {error}", path.display()
                );
                None
            }
        }
    })
}

fn read(path: &Path) -> io::Result<Tokenizer> {
    let bytes = hotcell_files::read(path, LARGEST)?;
    Tokenizer::from_bytes(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::Tokenizers;
    use crate::ModelName;

    /// A word is a token.
    const WORDS: &str = r#"{
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null, "decoder": null,
        "model": {"type": "WordLevel", "vocab": {"a": 0, "?": 1}, "unk_token": "?"}
    }"#;

    fn model(name: &str) -> ModelName {
        name.parse().unwrap()
    }

    #[test]
    fn texts_are_counted_by_the_tokenizer_of_the_model() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("words.json"), WORDS).unwrap();
        let tokenizers = Tokenizers::of_folder(Some(folder.path().to_owned()));
        for name in ["words", "own:words", "own:words-2026-01-31", "own:words-latest"] {
            assert_eq!(tokenizers.count(&model(name), "one two a"), Some(3), "{name}");
        }
        assert_eq!(tokenizers.count(&model("own:others"), "one two a"), None);
    }

    #[test]
    fn a_name_is_no_path_and_a_broken_file_is_no_tokenizer() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("in")).unwrap();
        std::fs::write(folder.path().join("words.json"), WORDS).unwrap();
        std::fs::write(folder.path().join("in/broken.json"), "{}").unwrap();
        let tokenizers = Tokenizers::of_folder(Some(folder.path().join("in")));
        for name in ["own:../words", "../words", "own:broken", "own:."] {
            assert_eq!(tokenizers.count(&model(name), "one"), None, "{name}");
        }
        assert_eq!(Tokenizers::of_folder(None).count(&model("words"), "one"), None);
    }
}
