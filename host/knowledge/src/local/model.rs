//! From texts to vectors.

use std::path::PathBuf;

use candle_core::{DType, Device, IndexOp, Result as TensorResult, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::BertModel;
use tokenizers::{Encoding, Tokenizer, TruncationParams};

use super::{
    LocalModelError,
    layout::{Layout, Pooling},
};

/// The most texts that go through the model at once. More costs memory and gains nothing on a CPU.
const AT_ONCE: usize = 16;
/// The tokens that the model puts around a text.
const AROUND: usize = 2;

pub(super) struct Model {
    bert: BertModel,
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
        let mut measuring = Tokenizer::from_bytes(&tokenizer).map_err(wrong_tokenizer)?;
        measuring.with_padding(None);
        measuring.with_truncation(None).map_err(wrong_tokenizer)?;
        let mut cutting = measuring.clone();
        let truncation = TruncationParams { max_length, ..TruncationParams::default() };
        cutting.with_truncation(Some(truncation)).map_err(wrong_tokenizer)?;

        let wrong_weights = |error: candle_core::Error| unusable(&directory, "model.safetensors", error.to_string());
        let builder = VarBuilder::from_buffered_safetensors(weights, DType::F32, &Device::Cpu);
        let bert = BertModel::load(builder.map_err(wrong_weights)?, &config).map_err(wrong_weights)?;
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
        for (place, text) in texts.iter().enumerate() {
            let lowered = self.lowercase.then(|| text.to_lowercase());
            let text = lowered.as_deref().unwrap_or(text);
            let encoding = self.cutting.encode_fast(text, true).map_err(|error| error.to_string())?;
            encodings.push((place, encoding));
        }
        // Texts of the same length together, so that little is computed for padding.
        encodings.sort_by_key(|(_, encoding)| encoding.len());
        let mut vectors = vec![Vec::new(); texts.len()];
        for group in encodings.chunks(AT_ONCE) {
            let computed = self.forward(group).map_err(|error| error.to_string())?;
            for ((place, _), vector) in group.iter().zip(computed) {
                vectors[*place] = vector;
            }
        }
        Ok(vectors)
    }

    fn forward(&self, group: &[(usize, Encoding)]) -> TensorResult<Vec<Vec<f32>>> {
        let width = group.iter().map(|(_, encoding)| encoding.len()).max().unwrap_or(0);
        let (mut ids, mut mask) = (Vec::new(), Vec::new());
        for (_, encoding) in group {
            let length = encoding.len();
            ids.extend_from_slice(encoding.get_ids());
            ids.resize(ids.len() + width - length, 0);
            mask.resize(mask.len() + length, 1_f32);
            mask.resize(mask.len() + width - length, 0_f32);
        }
        let shape = (group.len(), width);
        let ids = Tensor::from_vec(ids, shape, &Device::Cpu)?;
        let mask = Tensor::from_vec(mask, shape, &Device::Cpu)?;
        let tokens = self.bert.forward(&ids, &ids.zeros_like()?, Some(&mask))?;
        let pooled = match self.pooling {
            Pooling::Cls => tokens.i((.., 0))?.contiguous()?,
            Pooling::Mean => {
                let sums = tokens.broadcast_mul(&mask.unsqueeze(2)?)?.sum(1)?;
                sums.broadcast_div(&mask.sum_keepdim(1)?)?
            }
        };
        let pooled = if self.normalise {
            // The smallest length that is divided by, as the reference has it.
            let lengths = pooled.sqr()?.sum_keepdim(1)?.sqrt()?.clamp(1e-12, f64::MAX)?;
            pooled.broadcast_div(&lengths)?
        } else {
            pooled
        };
        pooled.to_vec2()
    }
}
