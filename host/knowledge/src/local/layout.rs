//! The files of a model.

use std::{io, path::Path};

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::{LocalModelError, bert::Config};

/// The most tokens of a text, whatever the model says: the time for one grows with their square.
const MOST_TOKENS: usize = 8192;

/// The file with the numbers of the model.
const WEIGHTS: &str = "model.safetensors";
/// The most bytes of it, and of each other file: the largest models that a processor is good for have two billion bytes.
const MAX_WEIGHTS: u64 = 4 << 30;
const MAX_FILE: u64 = 64 << 20;

/// How the vectors of a text's tokens become that of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pooling {
    Mean,
    Cls,
}

/// What the files of a model say, and the two large ones as they are.
pub(super) struct Layout {
    pub(super) directory: std::path::PathBuf,
    pub(super) config: Config,
    pub(super) pooling: Pooling,
    pub(super) normalise: bool,
    /// The most tokens of a text with the two that stand around it.
    pub(super) max_length: usize,
    pub(super) lowercase: bool,
    pub(super) tokenizer: Vec<u8>,
    pub(super) weights: Vec<u8>,
}

#[derive(Deserialize)]
struct Module {
    path: String,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct PoolingConfig {
    #[serde(default)]
    pooling_mode_cls_token: bool,
    #[serde(default)]
    pooling_mode_mean_tokens: bool,
    #[serde(default)]
    pooling_mode_max_tokens: bool,
    #[serde(default)]
    pooling_mode_mean_sqrt_len_tokens: bool,
    #[serde(default)]
    pooling_mode_weightedmean_tokens: bool,
    #[serde(default)]
    pooling_mode_lasttoken: bool,
}

#[derive(Default, Deserialize)]
struct SentenceConfig {
    max_seq_length: Option<usize>,
    #[serde(default)]
    do_lower_case: bool,
}

impl Layout {
    pub(super) fn read(directory: &Path) -> Result<Self, LocalModelError> {
        let files = Files { directory };
        let config = files.config()?;
        let (pooling, normalise) = files.modules()?;
        let sentence: SentenceConfig = files.optional_json("sentence_bert_config.json")?.unwrap_or_default();
        let limit = config.max_position_embeddings.min(MOST_TOKENS);
        let max_length = sentence.max_seq_length.unwrap_or(limit).min(limit);
        if max_length < 3 {
            return Err(files.unusable("sentence_bert_config.json", "it leaves no room for a text"));
        }
        Ok(Self {
            directory: directory.to_owned(),
            config,
            pooling,
            normalise,
            max_length,
            lowercase: sentence.do_lower_case,
            tokenizer: files.required("tokenizer.json")?,
            weights: files.required(WEIGHTS)?,
        })
    }
}

struct Files<'a> {
    directory: &'a Path,
}

impl Files<'_> {
    fn unusable(&self, file: &'static str, reason: impl ToString) -> LocalModelError {
        LocalModelError::Unusable { directory: self.directory.to_owned(), file, reason: reason.to_string() }
    }

    fn unsupported(&self, what: impl Into<String>) -> LocalModelError {
        LocalModelError::Unsupported { directory: self.directory.to_owned(), what: what.into() }
    }

    fn required(&self, file: &'static str) -> Result<Vec<u8>, LocalModelError> {
        let limit = if file == WEIGHTS { MAX_WEIGHTS } else { MAX_FILE };
        match hotcell_files::read(self.directory.join(file), limit) {
            Ok(bytes) => Ok(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(LocalModelError::Missing { directory: self.directory.to_owned(), file })
            }
            Err(error) => Err(self.unusable(file, error)),
        }
    }

    fn optional_json<T: DeserializeOwned>(&self, file: &'static str) -> Result<Option<T>, LocalModelError> {
        match hotcell_files::read(self.directory.join(file), MAX_FILE) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes).map_err(|error| self.unusable(file, error))?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.unusable(file, error)),
        }
    }

    fn config(&self) -> Result<Config, LocalModelError> {
        let file = "config.json";
        let value: Value = serde_json::from_slice(&self.required(file)?).map_err(|error| self.unusable(file, error))?;
        match value.get("model_type").and_then(Value::as_str) {
            Some("bert") => {}
            Some(other) => return Err(self.unsupported(format!("of the architecture `{other}`"))),
            None => return Err(self.unusable(file, "it does not say its `model_type`")),
        }
        let config: Config = serde_json::from_value(value).map_err(|error| self.unusable(file, error))?;
        config.check().map_err(|reason| self.unusable(file, reason))?;
        Ok(config)
    }

    /// How tokens are pooled and whether the result is normalised. A model that does not say is pooled by the mean.
    fn modules(&self) -> Result<(Pooling, bool), LocalModelError> {
        let modules: Vec<Module> = self.optional_json("modules.json")?.unwrap_or_default();
        let mut normalise = false;
        for Module { path, kind } in &modules {
            // What is refused is what changes the vectors and is not done here.
            match kind.rsplit('.').next().unwrap_or_default() {
                "Transformer" if path.is_empty() => {}
                "Pooling" if path == "1_Pooling" => {}
                "Normalize" => normalise = true,
                other => return Err(self.unsupported(format!("one with a module `{other}` in `{path}`"))),
            }
        }
        let pooling: Option<PoolingConfig> = self.optional_json("1_Pooling/config.json")?;
        let Some(pooling) = pooling else { return Ok((Pooling::Mean, normalise)) };
        let others = pooling.pooling_mode_max_tokens
            || pooling.pooling_mode_mean_sqrt_len_tokens
            || pooling.pooling_mode_weightedmean_tokens
            || pooling.pooling_mode_lasttoken;
        match (pooling.pooling_mode_mean_tokens, pooling.pooling_mode_cls_token) {
            (true, false) if !others => Ok((Pooling::Mean, normalise)),
            (false, true) if !others => Ok((Pooling::Cls, normalise)),
            _ => Err(self.unsupported("one with another pooling")),
        }
    }
}
