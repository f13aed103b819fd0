//! A model whose vectors are the words of a text, and a world of a few documents.

use std::{
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use hotcell_knowledge::{
    Build, BuildError, EmbedError, Embedder, Extract, Fetch, Fetched, Format, KnowledgeBase, Loader, Outside,
    OutsideError, Report, Settings,
};

/// Texts with the same words have the same vector. It counts what it embeds and can stop answering.
pub(crate) struct Words {
    name: String,
    pub(crate) embedded: AtomicUsize,
    pub(crate) texts: Mutex<Vec<String>>,
    /// After so many texts it answers with one vector too few.
    pub(crate) fails_after: AtomicUsize,
    pub(crate) in_flight: usize,
}

impl Words {
    pub(crate) fn new(name: &str) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            embedded: AtomicUsize::new(0),
            texts: Mutex::default(),
            fails_after: AtomicUsize::new(usize::MAX),
            in_flight: 1,
        })
    }

    pub(crate) fn count(&self) -> usize {
        self.embedded.load(Ordering::SeqCst)
    }
}

fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split(|mark: char| !mark.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(move |word| (word.as_ptr() as usize - text.as_ptr() as usize, word))
}

#[async_trait]
impl Embedder for Words {
    fn name(&self) -> &str {
        &self.name
    }

    fn token_starts(&self, text: &str) -> Vec<usize> {
        words(text).map(|(start, _)| start).collect()
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let before = self.embedded.load(Ordering::SeqCst);
        if before + texts.len() > self.fails_after.load(Ordering::SeqCst) {
            return Err(EmbedError::Count { model: self.name.clone(), asked: texts.len(), got: texts.len() - 1 });
        }
        // Later calls answer first, so that order is not by luck.
        if self.in_flight > 1 {
            tokio::time::sleep(std::time::Duration::from_millis(20 - (before as u64 / 4) % 20)).await;
        }
        self.embedded.fetch_add(texts.len(), Ordering::SeqCst);
        self.texts.lock().expect("a lock").extend_from_slice(texts);
        let vector = |text: &String| {
            let mut vector = vec![0.01_f32; 64];
            for (_, word) in words(text) {
                let hash =
                    word.to_lowercase().bytes().fold(7_usize, |hash, byte| hash * 31 % 1_000_003 + byte as usize);
                vector[hash % 64] += 1.0;
            }
            vector
        };
        Ok(texts.iter().map(vector).collect())
    }
}

pub(crate) struct World;

#[async_trait]
impl Fetch for World {
    async fn get(&self, url: &str) -> Result<Fetched, OutsideError> {
        let found = |content_type: &str, text: &str| {
            Ok(Fetched { content_type: content_type.to_owned(), bytes: text.as_bytes().to_vec() })
        };
        match url {
            "https://a.example/page" => found("text/html; charset=utf-8", "<h1>Walrus</h1>"),
            "https://a.example/notes.md" => found("text/plain", "# Notes\n\nThe narwhal has a tusk."),
            "https://a.example/picture" => found("image/png", "?"),
            "https://a.example/large" => found("text/plain", &"word ".repeat(1000)),
            other => Err(OutsideError::new(format!("`{other}` was not granted"))),
        }
    }
}

#[async_trait]
impl Loader for World {
    async fn load(&self, loader: &str, path: &str) -> Result<String, OutsideError> {
        match loader {
            "notes" => Ok(format!("The {path} is loaded.")),
            other => Err(OutsideError::new(format!("there is no loader `{other}`"))),
        }
    }
}

#[async_trait]
impl Extract for World {
    async fn text(&self, format: Format, bytes: Vec<u8>) -> Result<String, OutsideError> {
        let text = String::from_utf8_lossy(&bytes);
        match format {
            Format::Html => Ok(text.replace("<h1>", "# ").replace("</h1>", "")),
            Format::Pdf => {
                text.strip_prefix("%PDF ").map(str::to_owned).ok_or_else(|| OutsideError::new("it is damaged"))
            }
        }
    }
}

/// A build of `documents` in `folder`, small chunks, into `folder/kb.db`.
pub(crate) fn build(folder: &Path, documents: &[&str], embedder: &Arc<Words>) -> Build {
    let outside = Outside { fetch: Arc::new(World), loader: Arc::new(World), extract: Arc::new(World) };
    Build {
        file: folder.join("kb.db"),
        folder: folder.to_owned(),
        documents: documents.iter().map(|&document| document.to_owned()).collect(),
        settings: Settings { chunk_size: 20, chunk_overlap: 0, batch_size: 4, ..Settings::default() },
        embedder: embedder.clone(),
        outside,
    }
}

pub(crate) async fn run(build: &Build) -> Result<Report, BuildError> {
    build.run(&|_| {}).await
}

pub(crate) async fn open(build: &Build) -> KnowledgeBase {
    KnowledgeBase::open(&build.file, build.embedder.clone()).await.expect("a knowledge base")
}

pub(crate) fn write(folder: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(path, text).expect("a file");
    }
}
