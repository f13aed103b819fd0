//! The encoder BERT: from the tokens of texts to a vector for each token.
//!
//! Why this exists: it is the one architecture that runs here, and a few products of matrices for each of its layers need
//! no library of tensors. The tokens of several texts stand one below the other, so nothing is computed for padding; only
//! attention keeps the texts apart.
//!
//! What it must not do: have memory by a size that no tensor confirmed, or train.

use serde::Deserialize;

use super::{
    math::{self, Matrix},
    weights::Weights,
};

/// The tokens of a text whose view of all others is computed at once; what that needs is not the square of the text.
const QUERIES: usize = 512;

/// What `config.json` says about the encoder.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Config {
    pub(super) vocab_size: usize,
    pub(super) hidden_size: usize,
    pub(super) num_hidden_layers: usize,
    pub(super) num_attention_heads: usize,
    pub(super) intermediate_size: usize,
    pub(super) hidden_act: Activation,
    pub(super) max_position_embeddings: usize,
    pub(super) type_vocab_size: usize,
    pub(super) layer_norm_eps: f32,
    #[serde(default, rename = "position_embedding_type")]
    _positions: Positions,
}

/// The function within a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Activation {
    Gelu,
    #[serde(alias = "gelu_new", alias = "gelu_pytorch_tanh", alias = "gelu_approximate")]
    GeluApproximate,
    Relu,
}

/// How places in a text are told from each other. Others than these change what attention computes.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Positions {
    #[default]
    Absolute,
}

impl Config {
    /// What is wrong with it whatever the weights are.
    pub(super) fn check(&self) -> Result<(), String> {
        for (name, size) in [
            ("vocab_size", self.vocab_size),
            ("hidden_size", self.hidden_size),
            ("num_hidden_layers", self.num_hidden_layers),
            ("num_attention_heads", self.num_attention_heads),
            ("intermediate_size", self.intermediate_size),
            ("max_position_embeddings", self.max_position_embeddings),
            ("type_vocab_size", self.type_vocab_size),
        ] {
            if size == 0 {
                return Err(format!("`{name}` is 0"));
            }
        }
        if !self.hidden_size.is_multiple_of(self.num_attention_heads) {
            return Err("`hidden_size` is not a multiple of `num_attention_heads`".to_owned());
        }
        Ok(())
    }
}

/// An encoder with its weights.
pub(super) struct Bert {
    words: Vec<f32>,
    /// For each place in a text, with what is added for the first of two texts; there is never a second.
    places: Vec<f32>,
    norm: Norm,
    layers: Vec<Layer>,
    hidden: usize,
    heads: usize,
    activation: Activation,
}

struct Norm {
    weight: Vec<f32>,
    bias: Vec<f32>,
    epsilon: f32,
}

/// A product with weights, and what is added to it.
struct Linear {
    /// A row for each number that goes in.
    weight: Vec<f32>,
    bias: Vec<f32>,
}

struct Layer {
    /// Queries, keys and values, side by side.
    attention: Linear,
    attention_out: Linear,
    attention_norm: Norm,
    inner: Linear,
    out: Linear,
    norm: Norm,
}

impl Bert {
    /// Takes the weights out of a file. The error is what is wrong with the file.
    pub(super) fn load(weights: &Weights<'_>, config: &Config) -> Result<Self, String> {
        let (hidden, inner) = (config.hidden_size, config.intermediate_size);
        let norm = |name: &str| {
            let (weight, bias) = weights.norm(name, hidden)?;
            Ok::<_, String>(Norm { weight, bias, epsilon: config.layer_norm_eps })
        };
        let table = |name: &str, rows| weights.get(&format!("embeddings.{name}_embeddings.weight"), &[rows, hidden]);
        let words = table("word", config.vocab_size)?;
        let mut places = table("position", config.max_position_embeddings)?;
        let types = table("token_type", config.type_vocab_size)?;
        places.chunks_exact_mut(hidden).for_each(|place| add(place, &types[..hidden]));
        let layer = |index: usize| {
            let name = |part: &str| format!("encoder.layer.{index}.{part}");
            let linear = |part: &str, from, to| Linear::load(weights, &[name(part)], from, to);
            let attention = ["query", "key", "value"].map(|part| name(&format!("attention.self.{part}")));
            Ok::<_, String>(Layer {
                attention: Linear::load(weights, &attention, hidden, hidden)?,
                attention_out: linear("attention.output.dense", hidden, hidden)?,
                attention_norm: norm(&name("attention.output.LayerNorm"))?,
                inner: linear("intermediate.dense", hidden, inner)?,
                out: linear("output.dense", inner, hidden)?,
                norm: norm(&name("output.LayerNorm"))?,
            })
        };
        Ok(Self {
            words,
            places,
            norm: norm("embeddings.LayerNorm")?,
            layers: (0..config.num_hidden_layers).map(layer).collect::<Result<_, _>>()?,
            hidden,
            heads: config.num_attention_heads,
            activation: config.hidden_act,
        })
    }

    /// How many numbers the vector of a token has.
    pub(super) fn hidden(&self) -> usize {
        self.hidden
    }

    /// The vectors of all tokens of `texts`, one after the other.
    ///
    /// # Errors
    ///
    /// A token is not in the vocabulary, or a text is longer than the model takes.
    pub(super) fn forward(&self, texts: &[&[u32]]) -> Result<Vec<f32>, String> {
        let mut states = self.embed(texts)?;
        math::norm(&mut states, &self.norm.weight, &self.norm.bias, self.norm.epsilon);
        let mut attended = vec![0.0; states.len()];
        let mut scores = Vec::new();
        for layer in &self.layers {
            let parts = layer.attention.apply(&states, None);
            let mut from = 0;
            for text in texts {
                self.attend(&parts, from, text.len(), &mut scores, &mut attended);
                from += text.len();
            }
            let mut between = layer.attention_out.apply(&attended, Some(&states));
            layer.attention_norm.apply(&mut between);
            let mut inner = layer.inner.apply(&between, None);
            match self.activation {
                Activation::Gelu => math::gelu(&mut inner),
                Activation::GeluApproximate => math::gelu_by_tanh(&mut inner),
                Activation::Relu => math::relu(&mut inner),
            }
            states = layer.out.apply(&inner, Some(&between));
            layer.norm.apply(&mut states);
        }
        Ok(states)
    }

    fn embed(&self, texts: &[&[u32]]) -> Result<Vec<f32>, String> {
        let mut states = Vec::with_capacity(texts.iter().map(|text| text.len() * self.hidden).sum());
        for text in texts {
            let mut places = self.places.chunks_exact(self.hidden);
            for &token in *text {
                let place = places.next().ok_or("a text is longer than the model takes")?;
                let word = usize::try_from(token).ok().and_then(|token| {
                    let begin = token.checked_mul(self.hidden)?;
                    self.words.get(begin..begin.checked_add(self.hidden)?)
                });
                let word = word.ok_or_else(|| format!("the token {token} of the tokenizer is not in the model"))?;
                states.extend(word.iter().zip(place).map(|(word, place)| word + place));
            }
        }
        Ok(states)
    }

    /// What the `length` tokens from `from` on see in each other, from their queries, keys and values in `parts`.
    fn attend(&self, parts: &[f32], from: usize, length: usize, scores: &mut Vec<f32>, attended: &mut [f32]) {
        let (hidden, size) = (self.hidden, self.hidden / self.heads);
        let scale = 1.0 / (size as f32).sqrt();
        for head in 0..self.heads {
            let part = |number: usize, first: usize, rows: usize| {
                let data = &parts[(from + first) * 3 * hidden + number * hidden + head * size..];
                Matrix { data, rows, columns: size, row_step: 3 * hidden, column_step: 1 }
            };
            for first in (0..length).step_by(QUERIES) {
                let rows = QUERIES.min(length - first);
                scores.clear();
                scores.resize(rows * length, 0.0);
                math::multiply(scale, part(0, first, rows), part(1, 0, length).transposed(), 0.0, scores, length);
                math::shares(scores, length);
                let out = &mut attended[(from + first) * hidden + head * size..];
                math::multiply(1.0, Matrix::of_rows(scores, length), part(2, 0, length), 0.0, out, hidden);
            }
        }
    }
}

impl Norm {
    fn apply(&self, rows: &mut [f32]) {
        math::norm(rows, &self.weight, &self.bias, self.epsilon);
    }
}

impl Linear {
    /// Those of `names`, from `from` to `to` numbers each, side by side.
    fn load(weights: &Weights<'_>, names: &[String], from: usize, to: usize) -> Result<Self, String> {
        let (mut rows, mut bias) = (Vec::new(), Vec::new());
        for name in names {
            rows.append(&mut weights.get(&format!("{name}.weight"), &[to, from])?);
            bias.append(&mut weights.get(&format!("{name}.bias"), &[to])?);
        }
        Ok(Self { weight: transposed(&rows, from), bias })
    }

    /// The product with rows of numbers, with `more` added where there is more.
    fn apply(&self, rows: &[f32], more: Option<&[f32]>) -> Vec<f32> {
        let to = self.bias.len();
        let rows = Matrix::of_rows(rows, self.weight.len() / to);
        let mut out = self.bias.repeat(rows.rows);
        if let Some(more) = more {
            add(&mut out, more);
        }
        math::multiply(1.0, rows, Matrix::of_rows(&self.weight, to), 1.0, &mut out, to);
        out
    }
}

fn add(to: &mut [f32], more: &[f32]) {
    to.iter_mut().zip(more).for_each(|(to, more)| *to += more);
}

/// The columns of `rows` as rows. Products with weights that lie so are a tenth faster.
fn transposed(rows: &[f32], columns: usize) -> Vec<f32> {
    /// The rows that are written side by side, for the sake of the cache.
    const BLOCK: usize = 16;
    let count = rows.len() / columns.max(1);
    let mut out = vec![0.0; rows.len()];
    for first in (0..count).step_by(BLOCK) {
        for column in 0..columns {
            for row in first..count.min(first + BLOCK) {
                out[column * count + row] = rows[row * columns + column];
            }
        }
    }
    out
}

#[cfg(test)]
mod tests;
