//! Rerankers behind HTTP.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{Endpoint, exchange::Exchange};
use crate::rerank::{RerankError, Reranker};

/// A reranker behind a server that answers `POST {base}/rerank` as Cohere and Jina do.
pub struct RemoteReranker {
    exchange: Exchange,
}

#[derive(Serialize)]
struct Question<'a> {
    model: &'a str,
    query: &'a str,
    documents: &'a [String],
    top_n: usize,
}

#[derive(Deserialize)]
struct Answer {
    results: Vec<Ranked>,
}

#[derive(Deserialize)]
struct Ranked {
    index: usize,
    relevance_score: f64,
}

impl RemoteReranker {
    /// A reranker at `endpoint`, asked with `client`. The client should follow no redirects.
    ///
    /// # Errors
    ///
    /// The base URL or the key cannot be used.
    pub fn new(client: reqwest::Client, endpoint: Endpoint) -> Result<Self, RerankError> {
        let model = endpoint.name.clone();
        let exchange = Exchange::new(client, endpoint, "rerank");
        Ok(Self { exchange: exchange.map_err(|source| RerankError::Remote { model, source })? })
    }
}

#[async_trait]
impl Reranker for RemoteReranker {
    fn name(&self) -> &str {
        &self.exchange.endpoint().name
    }

    async fn rerank(&self, query: &str, passages: &[String], top: usize) -> Result<Vec<(usize, f64)>, RerankError> {
        if passages.is_empty() || top == 0 {
            return Ok(Vec::new());
        }
        let model = || self.name().to_owned();
        let top_n = top.min(passages.len());
        let question = Question { model: &self.exchange.endpoint().model, query, documents: passages, top_n };
        let answer = self.exchange.ask::<Answer>(&question).await;
        let answer = answer.map_err(|source| RerankError::Remote { model: model(), source })?;
        let mut seen = vec![false; passages.len()];
        let mut ranked = Vec::with_capacity(answer.results.len());
        for Ranked { index, relevance_score } in answer.results {
            match seen.get_mut(index) {
                Some(seen) if !*seen => *seen = true,
                _ => return Err(RerankError::Index { model: model(), index, passages: passages.len() }),
            }
            ranked.push((index, relevance_score));
        }
        // A stable order also where the server gives none.
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        ranked.truncate(top);
        Ok(ranked)
    }
}
