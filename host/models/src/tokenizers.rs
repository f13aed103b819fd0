//! Tokenizers that the user has of models, by which texts are counted as a model counts them.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use quick_cache::sync::Cache;
use sha2::{Digest as _, Sha256};
use tokenizers::Tokenizer;

use crate::ModelName;
use crate::prices::undated;

/// Bytes that a tokenizer may have.
const LARGEST: u64 = 64 << 20;

/// Texts whose counts are kept for each model.
const MOST_COUNTS: usize = 1 << 14;

/// The tokenizer of a model, once it was looked for.
type Slot = OnceLock<Option<Counter>>;

/// Counts the texts for one model.
struct Counter {
    tokenizer: Tokenizer,
    counts: Counts,
}

/// How many tokens texts have that were counted before: a conversation is sent again with each request, and only what is new in it
/// is counted. A digest costs a small part of what a tokenizer does.
struct Counts(Cache<[u8; 32], usize>);

impl Counts {
    fn new() -> Self {
        Counts(Cache::new(MOST_COUNTS))
    }

    fn of(&self, text: &str, count: impl FnOnce() -> Option<usize>) -> Option<usize> {
        let digest: [u8; 32] = Sha256::digest(text.as_bytes()).into();
        if let Some(known) = self.0.get(&digest) {
            return Some(known);
        }
        let counted = count()?;
        self.0.insert(digest, counted);
        Some(counted)
    }
}

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
        let find = || Some(Counter { tokenizer: find(folder, model)?, counts: Counts::new() });
        let Counter { tokenizer, counts } = slot.get_or_init(find).as_ref()?;
        counts.of(text, || tokenizer.encode_fast(text, false).ok().map(|encoded| encoded.len()))
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
    use super::{Counts, MOST_COUNTS, Tokenizers};
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
    fn a_text_is_counted_once_and_only_so_many_counts_are_kept() {
        let counts = Counts::new();
        let mut counted = Vec::new();
        // Each request has what was said before it, and one message more.
        for said in 1..=20 {
            for message in 0..said {
                let text = format!("message {message}");
                let count = counts.of(&text, || {
                    counted.push(text.clone());
                    Some(message)
                });
                assert_eq!(count, Some(message));
            }
        }
        assert_eq!(counted, (0..20).map(|message| format!("message {message}")).collect::<Vec<_>>());
        assert_eq!(counts.of("not counted", || None), None);
        assert_eq!(counts.of("not counted", || Some(7)), Some(7));
        for more in 0..3 * MOST_COUNTS {
            counts.of(&more.to_string(), || Some(1));
        }
        assert!(counts.0.len() <= MOST_COUNTS, "{}", counts.0.len());
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
