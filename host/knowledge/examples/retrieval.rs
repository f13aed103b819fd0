//! Measures building and asking a knowledge base of 10,000 chunks.
//!
//! `cargo run --release -p hotcell-knowledge --example retrieval [-- MODEL_DIRECTORY [CHUNKS [DIMENSIONS]]]`. Without a
//! model only what this crate does is measured, with made-up vectors; with one, the model's share is measured too.

#![allow(clippy::print_stdout)]

use std::{
    error::Error,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use hotcell_knowledge::{Build, EmbedError, Embedder, KnowledgeBase, LocalEmbedder, Outside, Settings, Signal};

/// How often is asked.
const QUESTIONS: usize = 300;
/// How many chunks are embedded with the model.
const EMBEDDED: usize = 128;
/// The words of the texts; the first are far more frequent than the last.
const WORDS: usize = 20_000;

/// Makes up vectors from the bytes of a text.
struct MadeUp(usize);

#[async_trait]
impl Embedder for MadeUp {
    fn name(&self) -> &str {
        "made-up"
    }

    fn token_starts(&self, text: &str) -> Vec<usize> {
        text.split(' ').map(|word| word.as_ptr() as usize - text.as_ptr() as usize).collect()
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let vector = |text: &String| {
            let mut random = Random(text.bytes().fold(7, |hash, byte| hash * 31 % 1_000_003 + u64::from(byte)));
            (0..self.0).map(|_| random.next() as f32 / u32::MAX as f32 - 0.5).collect()
        };
        Ok(texts.iter().map(vector).collect())
    }
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
    }

    /// A word as in a language: half of a text are some forty words.
    fn word(&mut self) -> String {
        let share = f64::from(self.next()) / f64::from(u32::MAX);
        format!("w{}", (WORDS as f64).powf(share) as usize)
    }

    fn text(&mut self, words: usize) -> String {
        (0..words).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }
}

async fn build(
    folder: &Path,
    name: &str,
    embedder: Arc<dyn Embedder>,
) -> Result<(Build, Duration, usize), Box<dyn Error>> {
    let build = Build {
        file: folder.join(format!("{name}.kb")),
        folder: folder.to_owned(),
        documents: vec![name.to_owned()],
        settings: Settings { chunk_size: 200, chunk_overlap: 0, ..Settings::default() },
        embedder,
        outside: Outside::nothing(),
    };
    let started = Instant::now();
    let report = build.run(&|_| {}).await?;
    Ok((build, started.elapsed(), report.chunks))
}

/// Writes documents of ten chunks of 200 words each.
fn write(folder: &Path, name: &str, chunks: usize, random: &mut Random) -> Result<(), Box<dyn Error>> {
    std::fs::create_dir_all(folder.join(name))?;
    for document in 0..chunks.div_ceil(10) {
        let paragraphs: Vec<String> = (0..10).map(|_| random.text(200)).collect();
        std::fs::write(folder.join(name).join(format!("{document:06}.txt")), paragraphs.join("\n\n"))?;
    }
    Ok(())
}

async fn ask(base: &KnowledgeBase, signal: Signal, random: &mut Random) -> Result<String, Box<dyn Error>> {
    let mut times = Vec::with_capacity(QUESTIONS);
    for _ in 0..QUESTIONS {
        let question = random.text(8);
        let started = Instant::now();
        base.search_by(signal, &question, Some(5)).await?;
        times.push(started.elapsed());
    }
    times.sort();
    Ok(format!("p50 {:.2?}, p99 {:.2?}", times[QUESTIONS / 2], times[QUESTIONS * 99 / 100]))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default| arguments.get(at).map_or(Ok(default), |text| text.parse::<usize>());
    let (chunks, dimensions) = (number(1, 10_000)?, number(2, 384)?);
    let folder = std::env::temp_dir().join(format!("hotcell-retrieval-{}", std::process::id()));
    let mut random = Random(1);

    write(&folder, "store", chunks, &mut random)?;
    let embedder = Arc::new(MadeUp(dimensions));
    let (built, time, chunks) = build(&folder, "store", embedder.clone()).await?;
    let size = std::fs::metadata(&built.file)?.len() >> 20;
    println!("{chunks} chunks of 200 words, vectors of {dimensions} numbers, {size} MiB");
    println!("build without a model: {:.0} chunks/s", chunks as f64 / time.as_secs_f64());
    let started = Instant::now();
    let base = KnowledgeBase::open(&built.file, embedder).await?;
    println!("open: {:.2?}", started.elapsed());
    for signal in [Signal::Both, Signal::Words, Signal::Vectors] {
        println!("search {signal:?}, without a model: {}", ask(&base, signal, &mut random).await?);
    }

    if let Some(model) = arguments.first().filter(|directory| !directory.is_empty()) {
        let embedder = Arc::new(LocalEmbedder::open("local", model).await?);
        // Real words, so that the model has as many tokens as in real texts.
        let prose = include_str!("../src/lib.rs").replace("//!", "");
        let texts: Vec<String> = prose.split_whitespace().map(str::to_owned).collect();
        let passage = |length: usize, random: &mut Random| {
            let words = (0..length).map(|_| texts[random.next() as usize % texts.len()].clone());
            words.collect::<Vec<_>>().join(" ")
        };
        for length in [30, 100, 180] {
            let passages: Vec<String> = (0..EMBEDDED).map(|_| passage(length, &mut random)).collect();
            let tokens = passages.iter().map(|text| embedder.token_starts(text).len()).sum::<usize>() / EMBEDDED;
            let started = Instant::now();
            // As a build does it: some batches at once.
            let mut batches = tokio::task::JoinSet::new();
            for batch in passages.chunks(32).map(<[String]>::to_vec) {
                if batches.len() >= embedder.in_flight() {
                    batches.join_next().await.transpose()?;
                }
                let embedder = embedder.clone();
                batches.spawn(async move { embedder.embed(&batch).await.map(|vectors| vectors.len()) });
            }
            for count in batches.join_all().await {
                count?;
            }
            let rate = EMBEDDED as f64 / started.elapsed().as_secs_f64();
            println!("model, chunks of {tokens} tokens: {rate:.0} chunks/s");
        }
        let mut times = Vec::new();
        for _ in 0..50 {
            let question = [passage(10, &mut random)];
            let started = Instant::now();
            embedder.embed(&question).await?;
            times.push(started.elapsed());
        }
        times.sort();
        println!("model, question of 10 words: p50 {:.2?}, p99 {:.2?}", times[25], times[49]);

        write(&folder, "small", 50, &mut random)?;
        std::fs::write(folder.join("small/text.md"), &prose)?;
        let (small, ..) = build(&folder, "small", embedder.clone()).await?;
        let base = KnowledgeBase::open(&small.file, embedder).await?;
        println!("search Both with the model, few chunks: {}", ask(&base, Signal::Both, &mut random).await?);
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
