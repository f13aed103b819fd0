//! A deterministic embedding: the words of a text, hashed into a fixed number of buckets.
//!
//! Two texts are near each other exactly when they share words, which is all a test of retrieval needs.

use serde_json::{Value, json};

/// How many numbers an embedding has.
pub const EMBEDDING_WIDTH: usize = 256;

/// The embedding of `text`: how often each bucket's words occur, scaled to length 1 (all zero for a text without
/// words). A word is a run of letters and digits, without regard to case.
#[must_use]
pub fn bag_of_words(text: &str) -> Vec<f32> {
    let mut counts = vec![0f32; EMBEDDING_WIDTH];
    let lower = text.to_lowercase();
    for word in lower.split(|character: char| !character.is_alphanumeric()) {
        if !word.is_empty() {
            counts[bucket(word)] += 1.0;
        }
    }
    let length = counts.iter().map(|count| count * count).sum::<f32>().sqrt();
    if length > 0.0 {
        for count in &mut counts {
            *count /= length;
        }
    }
    counts
}

/// The answer to an `/embeddings` request, or what is wrong with the request.
pub(crate) fn embeddings_reply(request: &Value) -> Result<Value, String> {
    let model = request.get("model").and_then(Value::as_str).unwrap_or_default();
    if !model.starts_with("test:") {
        return Err(format!("no embedding model `{model}` here: only names that start with `test:` are answered"));
    }
    let texts: Vec<&str> = match request.get("input") {
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(texts)) => texts.iter().filter_map(Value::as_str).collect(),
        _ => return Err("`input` must be a text or a list of texts".to_owned()),
    };
    let data: Vec<Value> = texts
        .iter()
        .enumerate()
        .map(|(index, text)| json!({"object": "embedding", "index": index, "embedding": bag_of_words(text)}))
        .collect();
    let tokens: usize = texts.iter().map(|text| text.split_whitespace().count()).sum();
    Ok(json!({
        "object": "list",
        "model": model,
        "data": data,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }))
}

/// FNV-1a of the word, reduced to a bucket: the same on every machine and in every version of the compiler.
fn bucket(word: &str) -> usize {
    let hash = word
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    (hash % EMBEDDING_WIDTH as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn likeness(left: &str, right: &str) -> f32 {
        bag_of_words(left).iter().zip(bag_of_words(right)).map(|(left, right)| left * right).sum()
    }

    #[test]
    fn shared_words_decide_likeness() {
        assert!((likeness("Refunds take 5 days.", "refunds TAKE 5 days") - 1.0).abs() < 1e-6);
        assert!(
            likeness("refunds take days", "when do refunds arrive")
                > likeness("refunds take days", "open nine to five")
        );
        assert!(bag_of_words("...").iter().all(|count| *count == 0.0));
    }

    #[test]
    fn only_test_models_are_answered() {
        let reply = embeddings_reply(&json!({"model": "test:words", "input": ["a", "b"]})).expect("answered");
        assert_eq!(reply["data"].as_array().map(Vec::len), Some(2));
        assert_eq!(reply["data"][1]["index"], 1);
        assert!(embeddings_reply(&json!({"model": "other", "input": "a"})).is_err());
        assert!(embeddings_reply(&json!({"model": "test:words"})).is_err());
    }
}
