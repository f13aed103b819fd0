//! Compiled schemas that are kept. Compiling one of a few lines takes as long as a sealed call.

use std::sync::{Arc, LazyLock};

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use serde_json::Value;

use super::{JsonSchema, MAX_PATTERN_COMPILED, SchemaProblem};

/// Bytes that all of them may take, by an estimate that is too high.
const MAX_BYTES: u64 = 64 << 20;
/// Schemas for which there is room at first.
const USUAL: usize = 64;
/// Bytes that a byte of a schema's text takes compiled.
const BYTES_PER_BYTE: u64 = 64;
/// Keywords with patterns, each of which takes much more.
const PATTERNS: [&str; 2] = ["\"pattern\"", "\"patternProperties\""];

/// By their texts: two texts of one schema differ in the order of what is said of a value.
static KEPT: LazyLock<Cache<String, Arc<JsonSchema>, Estimate>> =
    LazyLock::new(|| Cache::with_weighter(USUAL, MAX_BYTES, Estimate));

#[derive(Clone)]
struct Estimate;

impl Weighter<String, Arc<JsonSchema>> for Estimate {
    fn weight(&self, text: &String, _: &Arc<JsonSchema>) -> u64 {
        bytes(text)
    }
}

/// How much memory a schema takes at most. A text that only looks like a pattern counts as one.
fn bytes(text: &str) -> u64 {
    // An object of patterns may have one in every four bytes.
    let patterns = match text.matches(PATTERNS[1]).count() {
        0 => text.matches(PATTERNS[0]).count(),
        _ => text.len() / 4,
    };
    text.len() as u64 * BYTES_PER_BYTE + patterns as u64 * MAX_PATTERN_COMPILED as u64
}

pub(super) fn compiled(schema: &Value) -> Result<Arc<JsonSchema>, SchemaProblem> {
    KEPT.get_or_insert_with(&schema.to_string(), || JsonSchema::compile(schema).map(Arc::new))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_is_compiled_once_and_one_with_another_order_is_another() {
        let schema = json!({ "type": "object", "required": ["kept"] });
        let first = compiled(&schema).expect("a schema");
        assert!(Arc::ptr_eq(&first, &compiled(&schema.clone()).expect("a schema")));
        let other = json!({ "required": ["kept"], "type": "object" });
        assert!(!Arc::ptr_eq(&first, &compiled(&other).expect("a schema")));
    }

    #[test]
    fn what_is_no_schema_is_said_every_time() {
        for _ in 0..2 {
            compiled(&json!({ "type": "kept" })).expect_err("no schema");
        }
    }

    #[test]
    fn schemas_of_a_stranger_do_not_fill_the_memory() {
        let pattern = |number: usize| json!({ "pattern": format!("kept{number}") });
        let heavy = json!({ "allOf": (0..200).map(pattern).collect::<Vec<_>>() });
        assert!(bytes(&heavy.to_string()) > MAX_BYTES);
        let first = compiled(&heavy).expect("a schema");
        assert!(!Arc::ptr_eq(&first, &compiled(&heavy).expect("a schema")), "it is too large to be kept");
        for number in 0..500 {
            compiled(&pattern(number)).expect("a schema");
        }
        assert!(KEPT.weight() <= MAX_BYTES);
        assert!(KEPT.len() < 200, "{}", KEPT.len());
    }
}
