//! From texts to vectors.

use std::{
    path::PathBuf,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use tokenizers::{Tokenizer, TruncationParams};

use super::{
    LocalModelError,
    bert::Bert,
    layout::{Layout, Pooling},
    math, tokenizer,
    weights::Weights,
};

/// The most tokens that go through the model at once, and the least that are worth a thread. More cost memory and gain
/// nothing.
const AT_ONCE: usize = 512;
const WORTH_A_THREAD: usize = 64;
/// The least length that is divided by, as the reference has it.
const LEAST_LENGTH: f32 = 1e-12;
/// The tokens that the model puts around a text.
const AROUND: usize = 2;

pub(super) struct Model {
    bert: Bert,
    /// Cuts texts at the length that the model takes.
    cutting: Tokenizer,
    /// Does not.
    measuring: Tokenizer,
    pooling: Pooling,
    normalise: bool,
    max_length: usize,
    lowercase: bool,
}

impl Model {
    pub(super) fn load(layout: Layout) -> Result<Self, LocalModelError> {
        let Layout { directory, config, pooling, normalise, max_length, lowercase, tokenizer, weights } = layout;
        let unusable = |directory: &PathBuf, file, reason: String| LocalModelError::Unusable {
            directory: directory.clone(),
            file,
            reason,
        };
        let wrong_tokenizer = |error: tokenizers::Error| unusable(&directory, "tokenizer.json", error.to_string());
        let mut measuring =
            tokenizer::read(&tokenizer).map_err(|reason| unusable(&directory, "tokenizer.json", reason))?;
        measuring.with_padding(None);
        measuring.with_truncation(None).map_err(wrong_tokenizer)?;
        let mut cutting = measuring.clone();
        let truncation = TruncationParams { max_length, ..TruncationParams::default() };
        cutting.with_truncation(Some(truncation)).map_err(wrong_tokenizer)?;

        let wrong_weights = |reason| unusable(&directory, "model.safetensors", reason);
        let weights = Weights::new(&weights).map_err(wrong_weights)?;
        let bert = Bert::load(&weights, &config).map_err(wrong_weights)?;
        Ok(Self { bert, cutting, measuring, pooling, normalise, max_length, lowercase })
    }

    pub(super) fn max_tokens(&self) -> usize {
        self.max_length - AROUND
    }

    pub(super) fn token_starts(&self, text: &str) -> Vec<usize> {
        match self.measuring.encode(text, false) {
            Ok(encoding) => encoding.get_offsets().iter().map(|&(start, _)| start).collect(),
            // A word that the tokeniser cannot take is a matter of `embed`; here a length is wanted, whatever it is.
            Err(_) => crate::tokens::approximate_starts(text),
        }
    }

    pub(super) fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, String> {
        let mut encodings = Vec::with_capacity(texts.len());
        for text in texts {
            let lowered = self.lowercase.then(|| text.to_lowercase());
            let text = lowered.as_deref().unwrap_or(text);
            encodings.push(self.cutting.encode_fast(text, true).map_err(|error| error.to_string())?);
        }
        let tokens: Vec<&[u32]> = encodings.iter().map(|encoding| encoding.get_ids()).collect();
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let total: usize = tokens.iter().map(|text| text.len()).sum();
        let groups = groups(&tokens, total.div_ceil(threads).clamp(WORTH_A_THREAD, AT_ONCE));
        let vectors = side_by_side(&groups, threads, |group| self.forward(group));
        let mut all = Vec::with_capacity(texts.len());
        for group in vectors {
            all.append(&mut group?);
        }
        Ok(all)
    }

    fn forward(&self, texts: &[&[u32]]) -> Result<Vec<Vec<f32>>, String> {
        let states = self.bert.forward(texts)?;
        let size = self.bert.hidden();
        let mut rest = states.as_slice();
        let mut vectors = Vec::with_capacity(texts.len());
        for text in texts {
            let (tokens, after) = rest.split_at(text.len() * size);
            rest = after;
            let first =
                tokens.get(..size).ok_or("the tokenizer makes no tokens of a text, not even those around it")?;
            let mut vector = first.to_vec();
            if self.pooling == Pooling::Mean {
                for token in tokens[size..].chunks_exact(size) {
                    vector.iter_mut().zip(token).for_each(|(sum, number)| *sum += number);
                }
                vector.iter_mut().for_each(|sum| *sum /= text.len() as f32);
            }
            if self.normalise {
                let length = math::sum(&vector, |number| number * number).sqrt();
                let length = if length < LEAST_LENGTH { LEAST_LENGTH } else { length };
                vector.iter_mut().for_each(|number| *number /= length);
            }
            vectors.push(vector);
        }
        Ok(vectors)
    }
}

/// Neighbours in groups of at most so many tokens, or of one text.
fn groups<'a, 'b>(texts: &'a [&'b [u32]], most: usize) -> Vec<&'a [&'b [u32]]> {
    let mut groups = Vec::new();
    let (mut begin, mut tokens) = (0, 0);
    for (place, text) in texts.iter().enumerate() {
        if place > begin && tokens + text.len() > most {
            groups.push(&texts[begin..place]);
            (begin, tokens) = (place, 0);
        }
        tokens += text.len();
    }
    groups.push(&texts[begin..]);
    groups
}

/// What `work` makes of each item, in their order, by several threads of which this is one.
fn side_by_side<I: Sync, O: Send>(items: &[I], threads: usize, work: impl Fn(&I) -> O + Sync) -> Vec<O> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(items.len()));
    let take = || {
        while let Some((place, item)) = {
            let place = next.fetch_add(1, Ordering::Relaxed);
            items.get(place).map(|item| (place, item))
        } {
            let made = work(item);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((place, made));
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads.min(items.len()) {
            // Where there is no thread to be had, there is this one.
            if thread::Builder::new().spawn_scoped(scope, take).is_err() {
                break;
            }
        }
        take();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, made)| made).collect()
}
