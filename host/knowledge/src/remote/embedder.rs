//! Embedding models behind HTTP.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{Endpoint, Protocol, RemoteError, exchange::Exchange};
use crate::{
    embed::{EmbedError, Embedder, check_vectors},
    tokens::approximate_starts,
};

/// How many requests are under way at once.
const IN_FLIGHT: usize = 4;

/// An embedding model behind an OpenAI-compatible server or Ollama.
///
/// Lengths in tokens are an approximation, since the model's tokeniser is not at hand: one token for each 6 letters of an
/// English word, 3 digits, 2 letters of other alphabets, and each other mark. It counts rather more than less.
pub struct RemoteEmbedder {
    exchange: Exchange,
    protocol: Protocol,
}

#[derive(Serialize)]
struct OpenAiQuestion<'a> {
    model: &'a str,
    input: &'a [String],
    encoding_format: &'static str,
}

#[derive(Deserialize)]
struct OpenAiAnswer {
    data: Vec<OpenAiVector>,
}

#[derive(Deserialize)]
struct OpenAiVector {
    index: Option<usize>,
    embedding: Vec<f32>,
}

#[derive(Serialize)]
struct OllamaQuestion<'a> {
    model: &'a str,
    input: &'a [String],
}

#[derive(Deserialize)]
struct OllamaAnswer {
    embeddings: Vec<Vec<f32>>,
}

impl RemoteEmbedder {
    /// A model at `endpoint`, asked with `client`. The client should follow no redirects.
    ///
    /// # Errors
    ///
    /// The base URL or the key cannot be used.
    pub fn new(client: reqwest::Client, protocol: Protocol, endpoint: Endpoint) -> Result<Self, EmbedError> {
        let path = match protocol {
            Protocol::OpenAi => "embeddings",
            Protocol::Ollama => "api/embed",
        };
        let model = endpoint.name.clone();
        let exchange = Exchange::new(client, endpoint, path);
        Ok(Self { exchange: exchange.map_err(|source| EmbedError::Remote { model, source })?, protocol })
    }

    async fn ask(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, RemoteError> {
        let model = &self.exchange.endpoint().model;
        match self.protocol {
            Protocol::Ollama => {
                let answer: OllamaAnswer = self.exchange.ask(&OllamaQuestion { model, input: texts }).await?;
                Ok(answer.embeddings)
            }
            Protocol::OpenAi => {
                let question = OpenAiQuestion { model, input: texts, encoding_format: "float" };
                let answer: OpenAiAnswer = self.exchange.ask(&question).await?;
                self.in_order(answer.data)
            }
        }
    }

    /// The vectors in the order of their indexes; servers that give none answer in the order of the question.
    fn in_order(&self, data: Vec<OpenAiVector>) -> Result<Vec<Vec<f32>>, RemoteError> {
        let mut vectors: Vec<Option<Vec<f32>>> = data.iter().map(|_| None).collect();
        for (place, vector) in data.into_iter().enumerate() {
            let index = vector.index.unwrap_or(place);
            match vectors.get_mut(index) {
                Some(slot) if slot.is_none() => *slot = Some(vector.embedding),
                _ => return Err(self.exchange.malformed(format!("index {index} is wrong or there twice"))),
            }
        }
        Ok(vectors.into_iter().flatten().collect())
    }
}

#[async_trait]
impl Embedder for RemoteEmbedder {
    fn name(&self) -> &str {
        &self.exchange.endpoint().name
    }

    fn token_starts(&self, text: &str) -> Vec<usize> {
        approximate_starts(text)
    }

    fn in_flight(&self) -> usize {
        IN_FLIGHT
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let vectors = self.ask(texts).await;
        let vectors = vectors.map_err(|source| EmbedError::Remote { model: self.name().to_owned(), source })?;
        check_vectors(self.name(), texts.len(), &vectors, None)?;
        Ok(vectors)
    }
}
