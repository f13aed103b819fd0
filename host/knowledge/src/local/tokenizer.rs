//! The tokenizer of a model, as far as its parts are known to be harmless.
//!
//! A tokenizer's file is a program: a chain of replacements doubles a text with each of them, a pattern goes back and forth
//! without end, a template repeats a text a thousand times. So only parts are taken that make no text much longer and look at
//! each character a few times; these are what the models of the BERT family have. Others are refused by name.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;
use tokenizers::Tokenizer;

/// Parts in a sequence, those of sequences in it included.
const MAX_PARTS: usize = 16;
/// Tokens beside those of the vocabulary.
const MAX_ADDED: usize = 20_000;
/// Characters of a word that is cut into pieces: the time for it grows with their square.
const MAX_WORD: u64 = 1_000;
/// Bytes that a character may become where a table says what it becomes.
const MAX_REPLACEMENT: usize = 64;
/// Pieces of the template for one text.
const MAX_PIECES: usize = 8;

/// What normalises a text, cuts it into words, makes tokens of words, and puts tokens around them.
const NORMALISERS: &[&str] =
    &["BertNormalizer", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "Nmt", "Strip", "StripAccents"];
const CUTTERS: &[&str] = &["BertPreTokenizer", "Digits", "Metaspace", "Punctuation", "Whitespace", "WhitespaceSplit"];
const MODELS: &[&str] = &["Unigram", "WordLevel", "WordPiece"];
const FRAMES: &[&str] = &["BertProcessing", "TemplateProcessing"];

/// Reads a tokenizer, or says what is wrong with it.
pub(super) fn read(bytes: &[u8]) -> Result<Tokenizer, String> {
    let mut file: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let part = |name: &str| file.get(name).filter(|part| !part.is_null());
    let mut parts = 0;
    if let Some(normaliser) = part("normalizer") {
        check(normaliser, "normalizers", &mut parts, &normaliser_is_harmless)?;
    }
    if let Some(cutter) = part("pre_tokenizer") {
        check(cutter, "pretokenizers", &mut parts, &|part| known(part, "pre_tokenizer", CUTTERS))?;
    }
    if let Some(frame) = part("post_processor") {
        known(frame, "post_processor", FRAMES)?;
        if frame.get("single").and_then(Value::as_array).is_some_and(|pieces| pieces.len() > MAX_PIECES) {
            return Err(format!("its template has more than {MAX_PIECES} pieces"));
        }
    }
    let model = part("model").ok_or("it has no `model`")?;
    // Files of before say it by what they hold.
    if model.get("type").is_some() {
        known(model, "model", MODELS)?;
    } else if model.get("max_input_chars_per_word").is_none() {
        return Err("its `model` has no type".to_owned());
    }
    if model.get("max_input_chars_per_word").is_some_and(|most| most.as_u64().is_none_or(|most| most > MAX_WORD)) {
        return Err(format!("its words have more than {MAX_WORD} characters"));
    }
    if part("added_tokens").and_then(Value::as_array).is_some_and(|tokens| tokens.len() > MAX_ADDED) {
        return Err(format!("it adds more than {MAX_ADDED} tokens"));
    }
    // Neither is used: nothing is padded, nothing becomes text again, and what is too long is cut by hotcell.
    if let Some(file) = file.as_object_mut() {
        for unused in ["decoder", "padding", "truncation"] {
            file.insert(unused.to_owned(), Value::Null);
        }
    }
    serde_json::from_value(file).map_err(|error| error.to_string())
}

/// Goes through a part and, where it is a sequence, through its members.
fn check(
    part: &Value,
    members: &str,
    parts: &mut usize,
    judge: &dyn Fn(&Value) -> Result<(), String>,
) -> Result<(), String> {
    *parts += 1;
    if *parts > MAX_PARTS {
        return Err(format!("it has more than {MAX_PARTS} parts"));
    }
    if kind(part) != "Sequence" {
        return judge(part);
    }
    let members = part.get(members).and_then(Value::as_array).ok_or("a sequence has no members")?;
    members.iter().try_for_each(|member| {
        if kind(member) == "Sequence" {
            return Err("a sequence lies in a sequence".to_owned());
        }
        *parts += 1;
        if *parts > MAX_PARTS { Err(format!("it has more than {MAX_PARTS} parts")) } else { judge(member) }
    })
}

fn kind(part: &Value) -> &str {
    part.get("type").and_then(Value::as_str).unwrap_or_default()
}

fn known(part: &Value, of: &str, names: &[&str]) -> Result<(), String> {
    let kind = kind(part);
    if names.contains(&kind) {
        return Ok(());
    }
    let kind = crate::untrusted::shown(kind);
    Err(format!("its `{of}` is of the type `{kind}`, which is not supported; supported are {}", names.join(", ")))
}

fn normaliser_is_harmless(part: &Value) -> Result<(), String> {
    match kind(part) {
        "Replace" => {
            let shrinks = |pattern: &str, by: &str| !pattern.is_empty() && by.len() <= pattern.len();
            let by = part.get("content").and_then(Value::as_str).unwrap_or_default();
            let pattern = part.get("pattern");
            let text = pattern.and_then(|pattern| pattern.get("String")).and_then(Value::as_str);
            // The one expression that models have: several spaces become one.
            let spaces = pattern.and_then(|pattern| pattern.get("Regex")).and_then(Value::as_str) == Some(" {2,}");
            if text.is_some_and(|text| shrinks(text, by)) || (spaces && by.len() <= 2) {
                return Ok(());
            }
            Err("its `normalizer` replaces texts by longer ones, or by an expression, which is not supported"
                .to_owned())
        }
        "Precompiled" => {
            let table = part.get("precompiled_charsmap").and_then(Value::as_str).unwrap_or_default();
            if longest_replacement(table)? > MAX_REPLACEMENT {
                return Err(format!("its `normalizer` replaces a character by more than {MAX_REPLACEMENT} bytes"));
            }
            Ok(())
        }
        _ => known(part, "normalizer", NORMALISERS),
    }
}

/// The longest text in a table of characters: in Base64, the bytes of a tree after their number, then texts that end with
/// zero.
fn longest_replacement(table: &str) -> Result<usize, String> {
    let broken = || "the table of its `normalizer` is broken".to_owned();
    let bytes = STANDARD.decode(table).map_err(|_| broken())?;
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(broken)?;
    let texts = rest.get(u32::from_le_bytes(*length) as usize..).ok_or_else(broken)?;
    Ok(texts.split(|byte| *byte == 0).map(<[u8]>::len).max().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    use serde_json::{Value, json};

    use super::read;

    fn tokenizer(part: &str, value: Value) -> Value {
        let mut file = json!({
            "version": "1.0", "truncation": null, "padding": { "strategy": "nonsense" }, "added_tokens": [],
            "normalizer": { "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                "strip_accents": null, "lowercase": true },
            "pre_tokenizer": { "type": "BertPreTokenizer" },
            "post_processor": null, "decoder": { "type": "WordPiece", "prefix": "##", "cleanup": true },
            "model": { "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 100, "vocab": { "[UNK]": 0, "a": 1, "##a": 2 } },
        });
        file[part] = value;
        file
    }

    fn told(part: &str, value: Value) -> String {
        match read(tokenizer(part, value).to_string().as_bytes()) {
            Ok(_) => "taken".to_owned(),
            Err(error) => error,
        }
    }

    fn replace(pattern: Value, content: &str) -> Value {
        json!({ "type": "Replace", "pattern": pattern, "content": content })
    }

    #[test]
    fn the_tokenizer_of_a_model_is_taken() {
        let read = read(tokenizer("version", json!("1.0")).to_string().as_bytes()).expect("a tokenizer");
        assert_eq!(read.encode("AA a", false).expect("tokens").get_ids(), [1, 2, 1]);
        let sequence = json!({ "type": "Sequence", "normalizers": [{ "type": "NFD" }, { "type": "Lowercase" },
            replace(json!({ "String": "``" }), "\""), replace(json!({ "Regex": " {2,}" }), " ")] });
        assert_eq!(told("normalizer", sequence), "taken");
        assert_eq!(told("pre_tokenizer", Value::Null), "taken");
    }

    #[test]
    fn what_makes_a_text_long_or_takes_long_is_refused_by_name() {
        let doubling: Vec<Value> = (0..8).map(|_| replace(json!({ "String": "a" }), "aa")).collect();
        let many: Vec<Value> = (0..17).map(|_| json!({ "type": "NFC" })).collect();
        let nested = json!({ "type": "Sequence", "normalizers": [{ "type": "Sequence", "normalizers": [] }] });
        let table = |longest: usize| {
            let bytes: Vec<u8> = [0, 0, 0, 0].into_iter().chain(std::iter::repeat_n(b'x', longest)).collect();
            json!({ "type": "Precompiled", "precompiled_charsmap": STANDARD.encode(&bytes) })
        };
        for (part, value, expected) in [
            ("normalizer", json!({ "type": "Sequence", "normalizers": doubling }), "replaces texts by longer ones"),
            ("normalizer", replace(json!({ "String": "" }), ""), "replaces texts by longer ones"),
            ("normalizer", replace(json!({ "Regex": "(a+)+$" }), ""), "by an expression"),
            ("normalizer", json!({ "type": "Sequence", "normalizers": many }), "more than 16 parts"),
            ("normalizer", nested, "a sequence lies in a sequence"),
            ("normalizer", json!({ "type": "Prepend", "prepend": "x" }), "`Prepend`, which is not supported"),
            ("normalizer", table(65), "replaces a character by more than 64 bytes"),
            ("normalizer", json!({ "type": "Precompiled", "precompiled_charsmap": "////" }), "is broken"),
            ("pre_tokenizer", json!({ "type": "Split", "pattern": { "Regex": "(a+)+$" } }), "`Split`, which is not"),
            ("post_processor", json!({ "type": "ByteLevel" }), "`ByteLevel`, which is not supported"),
            (
                "post_processor",
                json!({ "type": "TemplateProcessing", "single": vec![json!({}); 9] }),
                "more than 8 pieces",
            ),
            ("model", json!({ "type": "BPE", "vocab": {}, "merges": [] }), "`BPE`, which is not supported"),
            (
                "model",
                json!({ "type": "WordPiece", "max_input_chars_per_word": 1_000_000 }),
                "more than 1000 characters",
            ),
            ("model", json!({}), "has no type"),
            ("model", Value::Null, "has no `model`"),
            ("added_tokens", json!(vec![json!({}); 20_001]), "adds more than 20000 tokens"),
        ] {
            let told = told(part, value);
            assert!(told.contains(expected), "`{expected}` is not in `{told}`");
        }
    }
}
